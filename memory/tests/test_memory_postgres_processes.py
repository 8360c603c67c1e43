"""Several processes over one PostgreSQL: killed servers lose nothing acknowledged, and a reader misses no change.

A quarter of `BEAVER_LOCAL_KILLS` says how many times the server is killed, which takes it seconds; 3 by default.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time

import postgres_server
import psycopg
import pytest

from beaver_hostspecs import Secret
from beaver_memory.errors import StoreError
from beaver_memory.records import Owner
from beaver_memory.store.postgres import PostgresStore
from beaver_memory.testing.store_cases.kit import NOW, looking, new

pytestmark = pytest.mark.campaign

KILLS = int(os.environ.get("BEAVER_LOCAL_KILLS", "12")) // 4
WRITER = """
import sys
from beaver_hostspecs import Secret
from beaver_memory.errors import StoreError
from beaver_memory.records import Owner
from beaver_memory.store.postgres import PostgresStore
from beaver_memory.testing.store_cases.kit import NOW, looking, new

store, name, number = None, sys.argv[2], 0
while True:
    number += 1
    titles = [f"{name} {number} {each}" for each in range(number % 60 + 1)]
    try:
        store = store or PostgresStore.open(Secret(sys.argv[1]))
        ids = store.add([new(title, tags=("t",), related_people=("Ann",)) for title in titles], now=NOW)
        print(*ids, sep=",", end=f";{number}\\n", flush=True)
        store.put_vectors(Owner(), "m", [(ids[0], b"vector")])
        if number % 5 == 0:
            store.change(ids[-1], looking(), event="PIN", now=NOW, pinned=True)
    except StoreError as error:
        print(f"error;{error.category}", flush=True)
"""
FOLLOWED = """
import sys
from beaver_hostspecs import Secret
from beaver_memory.store.postgres import PostgresStore
from beaver_memory.testing.store_cases.kit import NOW, new

store, name = PostgresStore.open(Secret(sys.argv[1])), sys.argv[2]
for number in range(int(sys.argv[3])):
    store.add([new(f"{name} {number} {each}") for each in range(number % 3 + 1)], now=NOW)
store.close()
"""


def start(script, server, *words):
    return subprocess.Popen(
        [sys.executable, "-c", script, server.url, *map(str, words)], stdout=subprocess.PIPE, text=True
    )


@pytest.fixture
def server():
    with postgres_server.running(postgres_server.cluster(postgres_server.folder())) as running:
        yield running


def one_backend(server):
    """Kill a process of the server that serves a client; all clients are cut off."""
    with contextlib.suppress(psycopg.OperationalError), psycopg.connect(server.url) as connection:
        os.kill(connection.info.backend_pid, signal.SIGKILL)
        connection.execute("SELECT 1")


def first_process(server):
    """Kill the first process alone: its children end by themselves."""
    server.stop(signal.SIGKILL)
    time.sleep(0.5)
    server.start()


def all_processes(server):
    """Kill all processes of the server at once."""
    with psycopg.connect(server.url) as connection:
        pids = connection.execute("SELECT pid FROM pg_stat_activity").fetchall()
    os.kill(server.pid, signal.SIGSTOP)
    for pid in (*(pid for (pid,) in pids), server.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    server.stop(signal.SIGKILL)
    time.sleep(0.5)
    server.start()


def opened(server):
    """Return the store; a server that was killed recovers first."""
    for _ in range(100):
        with contextlib.suppress(StoreError):
            return PostgresStore.open(Secret(server.url))
        time.sleep(0.1)
    return PostgresStore.open(Secret(server.url))


@pytest.mark.parametrize("kill", [one_backend, first_process, all_processes])
def test_a_killed_server_loses_nothing(server, kill):
    """Whatever of the server is killed during writes, all acknowledged memories are there, and the store is whole."""
    chance = random.Random(1)
    PostgresStore.open(Secret(server.url)).close()
    acknowledged, errors = set(), set()
    for number in range(KILLS):
        writers = [start(WRITER, server, f"{number}-{each}") for each in range(2)]
        lines = [writer.stdout.readline() for writer in writers for _ in range(chance.randrange(20, 60))]
        kill(server)
        lines += [writer.stdout.readline() for writer in writers for _ in range(20)]
        for writer in writers:
            writer.kill()
            with writer:
                lines += writer.stdout.read().rpartition("\n")[0].splitlines()
        for line in lines:
            ids, _, what = line.strip().partition(";")
            if ids == "error":
                errors.add(what)
            else:
                acknowledged |= {int(id_) for id_ in ids.split(",")}
    with contextlib.closing(opened(server)) as store:
        found = {memory.id for memory in store.get([*acknowledged], looking())}
        assert [] == store.check(None)
    assert (acknowledged, True) == (found, len(acknowledged) > 100)
    assert errors <= {"cut_off", "unsure", "starting", "refused"}
    assert errors


def test_a_reader_that_follows_misses_nothing(server):
    """A reader that asks for the changes above the last that it saw sees every memory of four writers."""
    with contextlib.closing(PostgresStore.open(Secret(server.url))) as store:
        writers = [start(FOLLOWED, server, each, 150) for each in range(4)]
        version, seen, done = 0, set(), False
        while not done or version < store.last_version(Owner()):
            done = all(writer.poll() is not None for writer in writers)
            for row in store.changed(Owner(), version, limit=50):
                assert row.version > version
                version = row.version
                seen.add(row.id)
        for writer in writers:
            with writer:
                assert 0 == writer.wait()
        assert (4 * 300, {*store.ids(Owner())}) == (len(seen), seen)
        assert [] == store.check(None)


def test_a_server_ends_with_its_worker():
    """A server of tests ends when the process that started it is killed."""
    script = (
        "import sys, time; sys.path.insert(0, sys.argv[1]); import postgres_server\n"
        "with postgres_server.running(postgres_server.cluster(postgres_server.folder())) as server:\n"
        "    print(server.pid, server.data, flush=True); time.sleep(60)"
    )
    tests = os.path.dirname(postgres_server.__file__)  # noqa: PTH120
    with subprocess.Popen([sys.executable, "-c", script, tests], stdout=subprocess.PIPE, text=True) as worker:
        pid, data = worker.stdout.readline().split()
        worker.kill()
    until = time.monotonic() + 30
    while os.path.exists(f"/proc/{pid}/fd") and time.monotonic() < until:  # noqa: PTH110
        time.sleep(0.01)
    subprocess.run(["rm", "-rf", os.path.dirname(data)], check=True)  # noqa: PTH120
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


def test_equal_memories_at_once(server):
    """Ten thousand equal memories in one call are one memory with so many mentions."""
    with contextlib.closing(PostgresStore.open(Secret(server.url))) as store:
        items, kept = [new("same")] * 10_000, []
        kept = store.remember(items, now=NOW, mention=True)
        assert (1, 10_000) == (len({each.id for each in kept}), kept[-1].mentions)
        assert [10_000] == [memory.mention_count for memory in store.recent(looking(), limit=9)]
        assert [] == store.check(None)


def test_five_thousand_tenants(server):
    """The memories of 5,000 tenants are rows of the same tables."""
    count = "SELECT count(*) FROM pg_class"
    with contextlib.closing(PostgresStore.open(Secret(server.url))) as store:
        with psycopg.connect(server.url) as connection:
            before = connection.execute(count).fetchone()
        for begin in range(0, 5_000, 500):
            names = [f"tenant {number}" for number in range(begin, begin + 500)]
            store.add([new("x", owner=Owner(tenant=name)) for name in names], now=NOW)
        with psycopg.connect(server.url) as connection:
            assert before == connection.execute(count).fetchone()
        assert 5_000 == len(store.owners(None))
        assert ["x"] == [memory.title for memory in store.recent(looking(owners=(Owner(tenant="tenant 7"),)), limit=3)]
