"""One tenant of a shared store: its names, its project, and what a failure of the shared store costs."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from memory_stores import STORES

from beaver_hostspecs.testing import FrozenClock
from beaver_memory.engine import MemoryEngine
from beaver_memory.errors import StoreError
from beaver_memory.query import Query
from beaver_memory.records import NewMemory, Owner
from beaver_memory.store.in_memory import Database, InMemoryStore
from beaver_memory.store.shared import is_part
from beaver_memory.store.tenant import REST_SECONDS, SLOW_SECONDS, TenantStore
from beaver_memory.testing.store_cases.kit import NOW, looking, new, titles
from beaver_memory.testing.stores import STORE_CASES

ANN = Owner(user="ann")
WHOLE = [
    case
    for case in STORE_CASES
    if case.name in {"identity_and_numbers", "pending_by_model", "embeddings_by_model", "owners_are_apart"}
]


class Server:
    """A shared store that can be down, at once or after a wait, and the reports of one tenant's view of it."""

    def __init__(self, tenant="acme", project=""):
        self.database, self.clock = Database(), FrozenClock()
        self.told, self.openings = [], 0
        self.down, self.seconds = False, 0.0
        self.store = TenantStore(self.opened, tenant, project, told=self.tell, clock=self.clock)

    def opened(self):
        self.openings += 1
        if self.down:
            self.clock.advance(self.seconds)
            raise StoreError("postgresql://server/beaver", "refused")
        return InMemoryStore(self.database)

    def tell(self, error):
        self.told.append(error and error.category)

    def refusal(self):
        with pytest.raises(StoreError) as caught:
            self.store.recent(looking(), limit=1)
        return caught.value.category


@pytest.mark.parametrize(
    ("name", "expected"),
    [("acme", True), ("acme/x", True), ("acme/x/y", True), ("acmes", False), ("acm", False), ("", False)],
)
def test_parts_of_a_tenant(name, expected):
    """A tenant has itself and the names after its slash as parts, and no other name."""
    assert expected == is_part(name, "acme")


def test_names_of_owners():
    """A caller's tenant is a part of the tenant of the store, and comes back under the caller's name."""
    server = Server()
    owners = [ANN, Owner(tenant="team", user="ann")]
    ids = server.store.add([new(owner.tenant or "own", owner=owner) for owner in owners], now=NOW)
    assert [Owner(tenant="acme", user="ann"), Owner(tenant="acme/team", user="ann")] == [*server.database.tables]
    assert owners == server.store.owners()
    for owner in owners:
        (memory,) = server.store.get(ids, looking(owners=(owner,)))
        assert owner == memory.owner


def test_another_tenant_cannot_be_named():
    """No name of a caller leads out of the tenant of the store."""
    server = Server()
    outside = InMemoryStore(server.database)
    for tenant in ("", "other", "acme2"):
        outside.add([new("secret", owner=Owner(tenant=tenant, user="ann"))], now=NOW)
    for tenant in ("", "other", "acme2", "../other", "/other", "acme"):
        assert [] == server.store.recent(looking(owners=(Owner(tenant=tenant, user="ann"),)), limit=9)
    assert ([], 0) == (server.store.owners(), server.store.stats()["memories"])


def test_the_project_of_a_store():
    """Memories of a project get its name; the reader sees them, global ones and those without a project, no others."""
    server = Server(project="billing")
    other = TenantStore(lambda: InMemoryStore(server.database), "acme", "web")
    with MemoryEngine(server.store, view=server.store.view) as engine, MemoryEngine(other, view=other.view) as web:
        engine.add([NewMemory(title="deploy from stable", scope="project"), NewMemory(title="deploy with care")])
        web.add([NewMemory(title="deploy from main", scope="project")])
        filters = looking(now=NOW.replace(year=2126))
        seen = {"deploy from stable", "deploy with care"}
        assert seen == {*titles(server.store.recent(filters, limit=9))}
        answer = engine.search(Query(text="deploy", filters=filters, limit=1_000))
        # The third memory is no candidate: it is left out before ranking.
        assert (seen, 2) == ({hit.memory.title for hit in answer.hits}, answer.total)
        assert ["billing", ""] == [hit.memory.project for hit in sorted(answer.hits, key=lambda hit: hit.memory.id)]


def test_a_server_that_is_down_at_first():
    """A store over a server that is down opens, reports the failure once, and serves as soon as the server is up."""
    server = Server()
    server.down = True
    server.store.settle(7, lambda memory: new(memory.title))
    assert ["refused"] * 2 == [server.refusal(), server.refusal()]
    server.down = False
    server.store.add([new("kept")], now=NOW)
    assert ["kept"] == titles(server.store.recent(looking(), limit=1))
    assert ["refused", None] == server.told
    assert 7 == server.database.analyser


def test_an_outage_of_a_used_server():
    """The store reports a failure of a later call once, and its end once."""
    server = Server()
    server.store.add([new("kept")], now=NOW)
    inner = server.store._store
    inner.close()
    assert ["closed"] * 2 == [server.refusal(), server.refusal()]
    inner._closed = False
    assert ["kept"] == titles(server.store.recent(looking(), limit=1))
    assert ["closed", None] == server.told


def test_a_slow_failure_is_not_repeated_at_once():
    """After a failure that took long, calls fail at once until the rest is over; after a quick one they try again."""
    server = Server()
    server.down = True
    assert "refused" == server.refusal()
    assert "refused" == server.refusal()
    assert 2 == server.openings
    server.seconds = SLOW_SECONDS + 1
    assert ["refused"] * 5 == [server.refusal() for _ in range(5)]
    assert 3 == server.openings
    server.down = False
    server.clock.advance(REST_SECONDS)
    assert [] == server.store.recent(looking(), limit=1)


def test_many_threads_and_a_slow_server():
    """Of many threads that call at once, one waits for a server that does not answer."""
    server = Server()
    server.down, server.seconds = True, SLOW_SECONDS + 1
    ready = threading.Barrier(8)

    def called(_):
        ready.wait()
        return server.refusal()

    with ThreadPoolExecutor(8) as threads:
        assert ["refused"] * 8 == [*threads.map(called, range(8))]
    assert (1, ["refused"]) == (server.openings, server.told)


def test_newer_terms_are_refused():
    """Terms of a newer analyser are an error at once, not at the first search."""
    server = Server()
    InMemoryStore(server.database).settle(9, lambda memory: new(memory.title))
    with pytest.raises(StoreError) as caught:
        server.store.settle(7, lambda memory: new(memory.title))
    assert "newer" == caught.value.category


def test_a_closed_store():
    """A store that is closed before its first use opens nothing."""
    server = Server()
    server.store.close()
    assert ("closed", 0) == (server.refusal(), server.openings)


@pytest.mark.parametrize("case", WHOLE, ids=lambda case: case.name)
def test_a_tenant_in_postgresql(case):
    """The questions about a whole store are about one tenant of a PostgreSQL database."""
    with STORES["tenant_in_postgres"]() as open_store:
        case.run(open_store)

        with contextlib.closing(open_store()) as store:
            assert [] == store.check()


def test_damaged_rows_of_a_tenant():
    """A tenant is asked for its damaged rows under its own names, and a store in memory has none."""
    server = Server()
    server.store.add([new("one", owner=ANN)], now=NOW)
    assert [] == server.store.damaged(ANN)
    assert [] == server.store.damaged_among([1], looking(owners=(ANN,)))
