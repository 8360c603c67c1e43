"""Several processes on one store: a killed process loses nothing acknowledged, and no process meets a lock.

`BEAVER_LOCAL_KILLS` says how many times a process is killed; 4 by default, 20 in `make test-all`, 500 in `make faults`.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys

import pytest

from beaver_memory.records import Owner
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.testing.store_cases.kit import looking

KILLS = int(os.environ.get("BEAVER_LOCAL_KILLS", "4"))
AT_ONCE = 2
WRITER = """
import sys
from pathlib import Path
from beaver_memory.records import Owner
from beaver_memory.testing.store_cases.kit import NOW, looking, new
from beaver_memory.store.sqlite import SqliteStore

store, name, number = SqliteStore.open(Path(sys.argv[1])), sys.argv[2], 0
while True:
    number += 1
    size = number % 7 + 1
    titles = [f"{name} {number} {each}" for each in range(size)]
    items = [new(title, narrative="filler " * (number % 50), tags=("t",), related_people=("Ann",)) for title in titles]
    ids = store.add(items, now=NOW)
    store.put_vectors(Owner(), "m", [(ids[0], b"vector")])
    if number % 5 == 0:
        store.change(ids[-1], looking(), event="PIN", now=NOW, pinned=True)
    print(*ids, sep=",", end=f";{name} {number}\\n", flush=True)
"""
WORKER = """
import sys
from pathlib import Path
from beaver_memory.patterns import Pattern
from beaver_memory.records import Owner
from beaver_memory.testing.store_cases.kit import NOW, looking, new
from beaver_memory.store.sqlite import SqliteStore

store, name, version, seen = SqliteStore.open(Path(sys.argv[1])), sys.argv[2], 0, 0
for number in range(25):
    ids = store.add([new(f"{name} {number} {each}", related_people=(name,)) for each in range(4)], now=NOW)
    store.put_vectors(Owner(), "m", [(id_, b"vector") for id_ in ids[:2]])
    store.change(ids[0], looking(), event="PIN", now=NOW, pinned=True)
    store.forget(ids[3:], looking(), now=NOW)
    store.touch(ids, tenant="", now=NOW)
    assert 3 == len(store.get(ids, looking()))
    assert store.recent(looking(), limit=5)
    assert store.matching([Pattern(text=name)], looking(), limit=3)
    while rows := store.changed(Owner(), version, limit=50):
        version = rows[-1].version
        seen += len(rows)
store.close()
print("done", flush=True)
"""


def start(script, path, name):
    return subprocess.Popen([sys.executable, "-c", script, str(path), name], stdout=subprocess.PIPE, text=True)


def killed(writer, chance):
    """Kill a writer after a while, and return the ids that it had acknowledged, by the label of each add."""
    lines = [writer.stdout.readline() for _ in range(chance.randrange(1, 12))]
    writer.send_signal(signal.SIGKILL)
    with writer:
        # The last line may be torn.
        rest = writer.stdout.read().rpartition("\n")[0]
    found = {}
    for line in (*lines, *rest.splitlines()):
        ids, _, what = line.strip().partition(";")
        found[what] = [int(id_) for id_ in ids.split(",")]
    return found


@pytest.mark.campaign
@pytest.mark.parametrize("seed", [1])
def test_kill_9_in_the_middle_of_adds(tmp_path, seed):
    """Two processes add to one store and are killed again and again: it is whole, and holds all that they had added."""
    chance, acknowledged, path = random.Random(seed), {}, tmp_path / "memory.db"
    writers = [start(WRITER, path, f"w{number}") for number in range(AT_ONCE)]
    for number in range(AT_ONCE, KILLS):
        acknowledged |= killed(writers.pop(chance.randrange(AT_ONCE)), chance)
        writers.append(start(WRITER, path, f"w{number}"))
    for writer in writers:
        acknowledged |= killed(writer, chance)

    with contextlib.closing(SqliteStore.open(path)) as store:
        problems = store.check(None)
        found = store.recent(looking(), limit=10**6)
        rows = store.changed(Owner(), 0, limit=10**6)
        vectors = {row.id for row in store.vectors(Owner(), "m", 0, limit=10**6)}
    stored = {memory.id: memory.title for memory in found}
    sys.stdout.write(f"{KILLS} kills, {len(acknowledged)} adds acknowledged, {len(stored)} memories stored\n")

    assert [] == problems
    for what, ids in acknowledged.items():
        assert [f"{what} {number}" for number in range(len(ids))] == [stored[id_] for id_ in ids]
        assert ids[0] in vectors
    assert {*stored} == {row.id for row in rows}
    # All of an add is there, or nothing of it.
    parts = {}
    for title in stored.values():
        name, number, _ = title.split()
        parts[name, int(number)] = parts.get((name, int(number)), 0) + 1
    assert [] == [key for key, count in parts.items() if count != key[1] % 7 + 1]
    assert len(acknowledged) >= KILLS


@pytest.mark.campaign
def test_eight_processes_at_once(tmp_path):
    """Eight processes make, write and read one store at the same time: none of them meets an error."""
    path = tmp_path / "memory.db"
    workers = [start(WORKER, path, f"w{number}") for number in range(8)]
    try:
        answers = [worker.communicate(timeout=120)[0] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    with contextlib.closing(SqliteStore.open(path)) as store:
        assert ["done\n"] * 8 == answers
        assert [] == store.check(None)
        assert 8 * 25 * 3 == store.count(Owner())
        people = [(person.name, person.mention_count) for person in store.people(looking(), query="", limit=9)]
        assert [(f"w{number}", 75) for number in range(8)] == people
    assert {"memory.db", ".memory.db.commits"} == {each.name for each in tmp_path.iterdir()}
