"""A store with terms of another analyser is analysed anew, continued or refused, and never mixed."""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import apsw
import pytest
from store_rows import renew_checksums

from beaver_memory.engine import DATABASE, MemoryEngine
from beaver_memory.errors import StoreError
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.records import NewMemory
from beaver_memory.store.sqlite import SqliteStore, rebuild_terms
from beaver_memory.store.sqlite.connections import Connector
from beaver_memory.testing.store_cases.analysers import analysed_by
from beaver_memory.testing.store_cases.kit import NOW, new
from beaver_memory.views import View

SEEN = Filters(view=View(now=datetime(2027, 1, 1, tzinfo=UTC)))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "memories"


def done_by_hand(folder, *statements):
    """Do something to a database that no version of ours does."""
    with contextlib.closing(apsw.Connection(str(folder / DATABASE))) as connection:
        found = [connection.execute(each).get for each in statements]
    return found[-1]


def fact(folder):
    return done_by_hand(folder, "SELECT value FROM store_facts WHERE name = 'analyser'")


def found(folder, text):
    """Return what the engine finds, opened anew."""
    with MemoryEngine.open(folder) as engine:
        return sorted(hit.memory.title for hit in engine.search(Query(text=text, filters=SEEN)).hits)


def test_a_saved_index_of_an_older_analyser(folder):
    """A saved index with terms of an older analyser is not searched."""
    with MemoryEngine.open(folder) as engine:
        engine.add(NewMemory(title="Ann sold the piano."))
        engine.search(Query(text="piano", filters=SEEN))
        engine.reindex()
    done_by_hand(
        folder,
        "UPDATE store_facts SET value = '2' WHERE name = 'analyser'",
        "UPDATE observations SET terms = x'0000', length = 0",
    )
    renew_checksums(folder / DATABASE)
    with MemoryEngine.open(folder) as engine:
        assert 1 == engine.reindex()
    assert ["Ann sold the piano."] == found(folder, "piano")


def test_it_goes_on_where_it_ended(folder, monkeypatch):
    """An interrupted analysis is continued by the next process, and the store is closed to use before its end."""
    monkeypatch.setattr(rebuild_terms, "AT_ONCE", 2)
    made = []

    def analyse(memory):
        if len(made) == 5:
            raise KeyboardInterrupt
        made.append(memory.id)
        return analysed_by(7)

    folder.mkdir()
    with contextlib.closing(SqliteStore.open(folder / DATABASE)) as store:
        store.add([new(f"m{number}") for number in range(8)], now=NOW)
        with pytest.raises(KeyboardInterrupt):
            store.settle(7, analyse)
        assert "7:4" == fact(folder)
        with pytest.raises(StoreError, match="restart the process"):
            store.add([new("more")], now=NOW)
    rest = []
    with contextlib.closing(SqliteStore.open(folder / DATABASE)) as store:
        store.settle(7, lambda memory: rest.append(memory.id) or analysed_by(7))
        assert [b"by 7"] * 8 == [row.terms for row in store.changed(SEEN.view.owners[0], 0, limit=9)]
    assert ([1, 2, 3, 4, 5], [5, 6, 7, 8], "7") == (made, rest, fact(folder))


def test_an_even_newer_one_begins_anew(folder, monkeypatch):
    """A newer analyser redoes the half-finished work of another one."""
    monkeypatch.setattr(rebuild_terms, "AT_ONCE", 2)
    folder.mkdir()
    with contextlib.closing(SqliteStore.open(folder / DATABASE)) as store:
        store.add([new(f"m{number}") for number in range(3)], now=NOW)
        done_by_hand(folder, "UPDATE store_facts SET value = '7:2' WHERE name = 'analyser'")
        store.settle(8, lambda _: analysed_by(8))
        assert [b"by 8"] * 3 == [row.terms for row in store.changed(SEEN.view.owners[0], 0, limit=9)]


def test_somebody_else_was_faster(folder):
    """An analysis that another process has finished is not repeated."""
    folder.mkdir()
    connector = Connector(folder / DATABASE)
    connector.open()
    with contextlib.closing(SqliteStore(connector)) as store:
        store.settle(7, lambda _: analysed_by(7))
        store.add([new("kept")], now=NOW)
        with connector.writing() as connection:
            assert "" == rebuild_terms.step(connection, 7, lambda _: analysed_by(7))
            assert "newer" == rebuild_terms.step(connection, 6, lambda _: analysed_by(6))
        assert [b"kept"] == [row.terms for row in store.changed(SEEN.view.owners[0], 0, limit=9)]


def test_a_newer_store_is_refused(folder):
    """The engine refuses a store of a newer analyser with a remedy, and leaves it unchanged."""
    with MemoryEngine.open(folder) as engine:
        engine.add(NewMemory(title="tea"))
    done_by_hand(folder, "UPDATE store_facts SET value = '99' WHERE name = 'analyser'")
    with pytest.raises(StoreError, match=r"was written by a newer version of Beaver Hooks; update this one\.$"):
        MemoryEngine.open(folder)
    assert "99" == fact(folder)


@pytest.mark.parametrize(
    "change", ["DELETE FROM store_facts WHERE name = 'analyser'", "UPDATE store_facts SET value = 'x'"]
)
def test_a_fact_that_tells_nothing(folder, change):
    """A store that does not name its analyser is damaged."""
    MemoryEngine.open(folder).close()
    done_by_hand(folder, change)
    with pytest.raises(StoreError, match="is damaged"):
        MemoryEngine.open(folder)


def test_several_at_once(folder, monkeypatch):
    """Stores opened at once share the analysis: each memory is analysed once, and no store is used before the end."""
    monkeypatch.setattr(rebuild_terms, "AT_ONCE", 3)
    folder.mkdir()
    with contextlib.closing(SqliteStore.open(folder / DATABASE)) as store:
        ids = store.add([new(f"m{number}") for number in range(20)], now=NOW)
    made = []

    def settled(_):
        with contextlib.closing(SqliteStore.open(folder / DATABASE)) as each:
            each.settle(7, lambda memory: made.append(memory.id) or analysed_by(7))
            return {row.terms for row in each.changed(SEEN.view.owners[0], 0, limit=99)}

    with ThreadPoolExecutor(4) as threads:
        assert [{b"by 7"}] * 4 == list(threads.map(settled, range(4)))
    assert ids == sorted(made)
