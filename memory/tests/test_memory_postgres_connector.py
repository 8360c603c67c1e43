"""The store in PostgreSQL over a server that is down: opened at the first use, reported once, left alone for a while."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import postgres_server
import psycopg
import pytest

from beaver_hostspecs import Secret
from beaver_hostspecs.testing import FrozenClock
from beaver_memory.errors import StoreError
from beaver_memory.store.postgres import PostgresStore, connector
from beaver_memory.store.postgres.connector import REST_SECONDS, SLOW_SECONDS
from beaver_memory.testing.store_cases.kit import NOW, looking, new, titles


class Server:
    """A server that can be down, at once or after a wait, and the reports of a store over it."""

    def __init__(self, patch):
        self.clock, self.told, self.connections = FrozenClock(), [], 0
        self.down, self.seconds = False, 0.0
        self.url = postgres_server.shared()
        postgres_server.emptied(self.url)
        patch.setattr(connector, "connect", self.connected)
        self.store = self.opened()

    def opened(self):
        options = {"told": self.tell, "clock": self.clock}
        return PostgresStore.open(Secret(self.url), schema=postgres_server.SCHEMA, later=True, **options)

    def connected(self, parameters):
        self.connections += 1
        if self.down:
            self.clock.advance(self.seconds)
            raise psycopg.OperationalError("connection refused")
        return self.connect(parameters)

    connect = staticmethod(connector.connect)

    def tell(self, error):
        self.told.append(error and error.category)

    def refusal(self):
        with pytest.raises(StoreError) as caught:
            self.store.recent(looking(), limit=1)
        return caught.value.category


@pytest.fixture
def server(monkeypatch):
    made = Server(monkeypatch)
    with contextlib.closing(made.store):
        yield made


def test_a_server_that_is_down_at_first(server):
    """A store over a server that is down opens, reports the failure once, and serves as soon as the server is up."""
    server.down = True
    server.store.settle(7, lambda memory: new(memory.title))
    category = server.refusal()
    assert category == server.refusal()
    server.down = False
    server.store.add([new("kept")], now=NOW)
    assert ["kept"] == titles(server.store.recent(looking(), limit=1))
    assert [category, None] == server.told


def test_an_outage_of_a_used_server(server):
    """The store reports a failure of a later call once, and its end once."""
    server.store.add([new("kept")], now=NOW)
    server.store._connector._drop()
    server.down = True
    category = server.refusal()
    assert category == server.refusal()
    server.down = False
    assert ["kept"] == titles(server.store.recent(looking(), limit=1))
    assert [category, None] == server.told


def test_a_slow_failure_is_not_repeated_at_once(server):
    """After a failure that took long, calls fail at once until the rest is over; after a quick one they try again."""
    server.down = True
    assert server.refusal() == server.refusal()
    assert 2 == server.connections
    server.seconds = SLOW_SECONDS + 1
    assert 1 == len({server.refusal() for _ in range(5)})
    assert 3 == server.connections
    server.down = False
    server.clock.advance(REST_SECONDS)
    assert [] == server.store.recent(looking(), limit=1)


def test_many_threads_and_a_slow_server(server):
    """Of many threads that call at once, one waits for a server that does not answer."""
    server.down, server.seconds = True, SLOW_SECONDS + 1
    ready = threading.Barrier(8)

    def called(_):
        ready.wait()
        return server.refusal()

    with ThreadPoolExecutor(8) as threads:
        categories = {*threads.map(called, range(8))}
    assert (1, [*categories]) == (server.connections, server.told)


def test_newer_terms_are_refused(server):
    """Terms of a newer analyser are an error at once, not at the first search."""
    with contextlib.closing(server.opened()) as other:
        other.settle(9, lambda memory: new(memory.title))
    with pytest.raises(StoreError) as caught:
        server.store.settle(7, lambda memory: new(memory.title))
    assert "newer" == caught.value.category


def test_a_store_that_is_closed_before_its_first_use(server):
    """A store that is closed before its first use connects to nothing."""
    server.store.close()
    assert ("closed", 0) == (server.refusal(), server.connections)
