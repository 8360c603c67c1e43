"""Databases of the version before tenants came first in every key are brought to this one, and lose nothing."""

import contextlib
import signal
import subprocess
import sys
from datetime import timedelta

import apsw
import attrs
import pytest
from old_stores import KEYS, old_store, rows_of
from selection import campaign

from beaver_memory.errors import StoreError
from beaver_memory.patterns import Pattern
from beaver_memory.records import Change, Owner
from beaver_memory.store.protocol import Analysed
from beaver_memory.store.sqlite import SqliteStore, preparation
from beaver_memory.testing.store_cases.kit import NOW, as_stored, looking, new, titles
from beaver_memory.testing.store_cases.memories import FULL

ACME, BETA, ME = Owner(tenant="acme", user="ann"), Owner(tenant="beta", user="ann"), Owner()
ITEMS = [
    new("acme one", owner=ACME, tags=("t",), related_people=("Ann",)),
    new("beta one", owner=BETA),
    new("mine", at=1, narrative="Naïve café, 日本語 🦫", facts=("f",), expires_at=NOW + timedelta(days=9)),
    new("acme two", owner=ACME),
    new("beta forgotten", owner=BETA),
    new("mine too", related_files=("src/a.py",)),
]
MORE = (
    """INSERT INTO observation_labels VALUES (1, 'tag:t', 1772366400000000, 1), (1, 'person:ann', 1772366400000000, 1), (3, 'path:src/a.py', 1772366400000000, 6),
    (3, 'path:src', 1772366400000000, 6)""",
    "INSERT INTO people (owner, folded, name, mention_count, last_mentioned) VALUES (1, 'ann', 'Ann', 1, 1772366400000000)",
    "INSERT INTO models VALUES (1, 'm')",
    "INSERT INTO unembedded SELECT 1, owner, created_at, id FROM observations WHERE id NOT IN (1, 3, 5)",
    "INSERT INTO observation_embeddings VALUES (7, 1, 1, 1, x'0102'), (9, 3, 1, 3, x'03')",
    "INSERT INTO observation_history (memory, event, at, old, new) VALUES (4, 'PIN', 1772366400000000, '{}', '{}')",
    "UPDATE observations SET deleted_at = 1, title = '', hash = x'', terms = x'', length = 0 WHERE id = 5",
    "UPDATE owners SET live = 1 WHERE id = 2",
    "INSERT INTO session_summaries VALUES (3, 'agent', 's', 'r', 'o', '[]', '[\"x\"]', 3, 1772366400000000)",
    "UPDATE counter SET value = 9",
)


@pytest.fixture
def old(tmp_path):
    """A database of the version before, with three owners of three tenants."""
    path = tmp_path / "memory.db"
    old_store(path, ITEMS, *MORE)
    return path


def seen(*owners):
    return looking(owners=owners)


def test_nothing_is_lost(old):
    """Each memory keeps its id, fields, labels, history and embedding; a session keeps its summary."""
    with contextlib.closing(SqliteStore.open(old)) as store:
        assert [] == store.check()
        assert ["acme one", "acme two"] == titles(store.get([1, 2, 3, 4], seen(ACME)))
        assert ["beta one"] == titles(store.get(range(9), seen(BETA)))
        mine = store.get([3], looking())[0]
        assert ("mine", "Naïve café, 日本語 🦫", ("f",), NOW + timedelta(days=9)) == (
            mine.title, mine.narrative, mine.facts, mine.expires_at,
        )  # fmt: skip
        assert ["acme one"] == titles(store.recent(looking(owners=(ACME,), tags=("t",)), limit=9))
        assert ["mine too"] == titles(store.recent(looking(file="src"), limit=9))
        assert ["Ann"] == [person.name for person in store.people(seen(ACME), query="", limit=9)]
        assert [Change(event="ADD", at=NOW), Change(event="PIN", at=NOW)] == store.history(4, seen(ACME))
        assert [(1, 7, b"\1\2")] == [(row.id, row.version, row.data) for row in store.vectors(ACME, "m", 0, limit=9)]
        assert [(6, "mine too")] == store.unembedded(ME, "m", limit=9)
        assert [("agent", "s", ("x",))] == [(s.agent, s.session, s.open_items) for s in store.summaries(ME, limit=9)]
        assert [3] == store.matching([Pattern(text="café")], looking(), limit=9)
        assert (5, 1, 3) == (store.stats()["memories"], store.stats()["forgotten"], store.stats()["owners"])


def test_versions_go_on(old):
    """Versions stay, so what an index has read stays true, and new ones are greater than all that were ever given."""
    with contextlib.closing(SqliteStore.open(old)) as store:
        assert [(4, 7)] == store.versions([ACME], "m")
        assert [2, 5] == [row.version for row in store.changed(BETA, 0, limit=9)]
        store.add([new("later", owner=BETA)], now=NOW)
        assert 10 == store.last_version(BETA)


def test_ids_of_each_tenant_go_on(old):
    """The next id of a tenant follows its own last one, whether or not that memory was forgotten."""
    with contextlib.closing(SqliteStore.open(old)) as store:
        added = [store.add([new("more", owner=owner)], now=NOW) for owner in (ACME, BETA, ME, Owner(tenant="new"))]
        assert [[5], [6], [7], [1]] == added


def test_the_progress(old, monkeypatch):
    """Opening tells the database and how many of its rows are done, from none to all of them."""
    monkeypatch.setattr(preparation, "ROWS_AT_ONCE", 3)
    told = []
    SqliteStore.open(old, migrating=lambda *each: told.append(each)).close()
    assert [(old, done, 8) for done in (0, 3, 6, 8)] == told
    SqliteStore.open(old, migrating=lambda *each: told.append(each)).close()
    assert 4 == len(told)


def test_a_copy_stays(old):
    """The database of before is kept as a copy beside it, which forgetting deletes."""
    before = rows_of(old, "SELECT id, title, version FROM observations")
    with contextlib.closing(SqliteStore.open(old)) as store:
        copy = old.with_name(f"memory.db.v{KEYS}.bak")
        assert before == rows_of(copy, "SELECT id, title, version FROM observations")
        store.forget([3], looking(), now=NOW)
        assert not copy.exists()


def test_a_row_without_an_owner(old):
    """A row that cannot be brought over stops the migration: the database stays as it was."""
    with contextlib.closing(apsw.Connection(str(old))) as connection:
        connection.execute("DELETE FROM owners WHERE id = 2")
    before = rows_of(old, "SELECT * FROM observations")
    with pytest.raises(StoreError, match="could not be migrated"):
        SqliteStore.open(old)
    assert before == rows_of(old, "SELECT * FROM observations")


KILLED = """
import os, signal, sys
from pathlib import Path
from beaver_memory.store.sqlite import SqliteStore, preparation

def told(path, done, total):
    calls.append(done)
    if len(calls) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

calls = []
preparation.ROWS_AT_ONCE = 50
preparation.STEPS_AT_ONCE = 400
SqliteStore.open(Path(sys.argv[1]), migrating=told).close()
print(len(calls))
"""


def opened_by_a_process(path, calls):
    command = [sys.executable, "-c", KILLED, str(path), str(calls)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("place", [0.5, *campaign(0.98, *(step / 40 for step in range(1, 40)))])
def test_it_is_killed(tmp_path, place):
    """Killed at any moment of the migration, a database is whole as before; the next process completes it."""
    path, other = tmp_path / "memory.db", tmp_path / "other.db"
    items = [new(f"m{number}", owner=(ACME, BETA, ME)[number % 3], tags=("t",)) for number in range(120)]
    old_store(path, items)
    old_store(other, items)
    calls = int(opened_by_a_process(other, -1).stdout)
    before = rows_of(path, "SELECT id, title, version FROM observations")

    assert -signal.SIGKILL == opened_by_a_process(path, max(1, round(calls * place))).returncode
    assert before == rows_of(path, "SELECT id, title, version FROM observations")
    with contextlib.closing(SqliteStore.open(path)) as store:
        assert [] == store.check()
        assert 120 == sum(map(store.count, (ACME, BETA, ME)))


def test_the_checksum_of_every_field(tmp_path):
    """A memory with a value in each field has the checksum with which this version stores it, and is shown whole."""
    full = attrs.evolve(FULL, evidence="")  # the earlier version has no such column
    item = Analysed(memory=full, terms=b"terms", length=4)
    paths = tmp_path / "memory.db", tmp_path / "fresh.db"
    old_store(paths[0], [new("x"), item])
    with contextlib.closing(SqliteStore.open(paths[1])) as store:
        store.add([new("x", owner=full.owner), item], now=NOW)
    sums = []
    for path in paths:
        with contextlib.closing(SqliteStore.open(path)) as store:
            assert [as_stored(full, 2)] == store.get([2], looking(owners=(full.owner,)))
        sums.append(rows_of(path, "SELECT checksum FROM observations WHERE id = 2"))
    assert sums[0] == sums[1]
