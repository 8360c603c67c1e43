"""The versions that are remembered are those of the store."""

import contextlib
import itertools
import subprocess
import sys

import pytest

from beaver_memory.records import Owner
from beaver_memory.store.sqlite import SqliteStore, versions
from beaver_memory.testing.store_cases.kit import NOW, looking, new

OTHERS = [Owner(user=f"u{number}") for number in range(7)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.db"


@pytest.fixture
def store(path):
    with contextlib.closing(SqliteStore.open(path)) as store:
        yield store


def test_each_change_is_seen(store):
    """Every write of this process, an owner's first memory included, changes the versions that the store returns."""
    seen = [store.versions([Owner()], "m")]
    (id_,) = store.add([new("one")], now=NOW)
    seen.append(store.versions([Owner()], "m"))
    store.put_vectors(Owner(), "m", [(id_, b"vector")])
    seen.append(store.versions([Owner()], "m"))
    store.forget([id_], looking(), now=NOW)
    seen.append(store.versions([Owner()], "m"))

    assert [(0, 0)] == seen[0]
    assert [True] * 3 == [after != before for before, after in itertools.pairwise(seen)]
    assert seen[-1] == store.versions([Owner()], "m")


def test_another_process_is_seen(store, path):
    """What another process has written meanwhile is seen."""
    before = store.versions([Owner()])
    code = (
        "import sys; from beaver_memory.engine import MemoryEngine;"
        "from beaver_memory.records import NewMemory;"
        "engine = MemoryEngine.open(sys.argv[1]); engine.add(NewMemory(title='of another process')); engine.close()"
    )
    subprocess.run([sys.executable, "-c", code, str(path.parent)], check=True)

    assert before != store.versions([Owner()])


def test_it_is_asked_once(store, monkeypatch):
    """Without writes the tables are read once for each owner, and the cache stays within its bound."""
    asked = []
    real = versions._versions
    monkeypatch.setattr(versions, "_versions", lambda *args: (asked.append(args[2]), real(*args))[1])
    monkeypatch.setattr(versions, "MOST_KNOWN", 3)
    for _ in range(2):
        for owner in OTHERS[:3]:
            store.versions([owner])
    assert [[owner] for owner in OTHERS[:3]] == asked
    for owner in OTHERS:
        store.versions([owner])

    assert [[(0, 0)]] * 7 == [store.versions([owner]) for owner in OTHERS]
    assert 3 >= max(len(known) for _, known in store._standing._known.values())
