"""The store in memory by itself: its life, what forgetting leaves of a memory, and what its check finds."""

import contextlib
import gc

import pytest

from beaver_memory.errors import StoreError
from beaver_memory.records import Owner
from beaver_memory.store.in_memory import Database, InMemoryStore
from beaver_memory.testing.store_cases.kit import NOW, looking, new


def texts_in(thing):
    """Return all texts that can be reached from a thing, without those of modules and classes."""
    known, waiting, found = set(), [thing], []
    while waiting:
        each = waiting.pop()
        if id(each) in known or isinstance(each, type) or callable(each):
            continue
        known.add(id(each))
        found += [str(each)] if isinstance(each, str | bytes) else []
        waiting += gc.get_referents(each)
    return found


def test_a_store_that_is_closed():
    """A closed store says so with each call; another one over the same database goes on."""
    database = Database()
    closed, other = InMemoryStore(database), InMemoryStore(database)
    (id_,) = closed.add([new("kept")], now=NOW)
    closed.close()
    with pytest.raises(StoreError) as caught:
        closed.get([id_], looking())
    assert "The memory store in memory is closed; open it again." == str(caught.value)
    assert ["kept"] == [memory.title for memory in other.get([id_], looking())]


def test_nothing_of_a_forgotten_memory_stays():
    """No text, name, label, term or history entry of a forgotten memory can be reached from the database."""
    database = Database()
    with contextlib.closing(InMemoryStore(database)) as store:
        word = "zebrafinch"
        fields = dict.fromkeys(("tags", "facts", "keywords", "related_people", "related_files"), (word,))
        (id_,) = store.add([new(word, narrative=word, project=word, **fields)], now=NOW)
        store.put_vectors(Owner(), "m", [(id_, word.encode())])
        store.change(id_, looking(), event=word, now=NOW, narrative="other", terms=b"", length=0)
        assert any(word in text for text in texts_in(database))

        store.forget([id_], looking(), now=NOW)

        assert [] == [text for text in texts_in(database) if word in text]


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda table: table.changes.pop(1), "The changes of an owner do not match the memories."),
        (lambda table: setattr(table, "last_version", 1), "The versions of an owner are not in order."),
        (lambda table: table.put_vector("m", 7, b"1"), "Embeddings do not belong to their memories."),
    ],
)
def test_damage_is_found(damage, expected):
    """`check` names a rule that the tables break."""
    database = Database()
    with contextlib.closing(InMemoryStore(database)) as store:
        store.add([new("a"), new("b")], now=NOW)
        damage(database.tables[Owner()])
        assert [expected] == store.check(None)
