"""Rules for changing memories, and for their history."""

from datetime import timedelta
from functools import partial
from typing import Any

import attrs

from beaver_memory.records import Change, Owner, Store
from beaver_memory.store.fingerprint import hash_of
from beaver_memory.testing.store_cases.kit import NOW, OpenStore, agree, holds, looking, new, raises, titles, using
from beaver_memory.views import ALL_PROJECTS

LATER = NOW + timedelta(minutes=5)


def changed_with_history(open_store: OpenStore) -> None:
    """A change is visible at once, has a new version, and an entry in the history that holds the changed fields."""
    with using(open_store) as store:
        (id_,) = store.add([new("old", tags=("a",))], now=NOW)
        before = store.get([id_], looking())[0]
        version = store.last_version(Owner())
        fields: dict[str, Any] = {
            "pinned": True,
            "tags": ("a", "b"),
            "importance": 0.5,
            "expires_at": None,
            "valid_until": LATER,
        }
        found = store.change(id_, looking(), event="PIN", now=LATER, **fields)
        wanted = attrs.evolve(before, pinned=True, tags=("a", "b"), valid_until=LATER, updated_at=LATER)
        agree(wanted, found, "what is returned")
        agree([wanted], store.get([id_], looking(now=NOW)), "what is stored")
        holds(store.last_version(Owner()) > version, "a new version")
        entry = Change(
            event="PIN",
            at=LATER,
            old={"pinned": False, "tags": ("a",), "valid_until": None},
            new={"pinned": True, "tags": ("a", "b"), "valid_until": LATER},
        )
        agree([Change(event="ADD", at=NOW), entry], store.history(id_, looking(now=NOW)), "history")


def history_of_what_may_be_seen(open_store: OpenStore) -> None:
    """The history leaves out changes to, from and within a hidden store; it always has the addition of the memory."""
    with using(open_store) as store:
        (id_,) = store.add([new("one")], now=NOW)
        steps: tuple[tuple[str, dict[str, Any]], ...] = (
            ("a", {"pinned": True}),
            ("b", {"store": "social"}),
            ("c", {"pinned": False}),
            ("d", {"store": "shared"}),
            ("e", {"pinned": True}),
            ("f", {"store": "social"}),
            ("g", {"pinned": False}),
        )
        for event, fields in steps:
            store.change(id_, looking(), event=event, now=LATER, **fields)
        for stores, events in (
            ((Store.SOCIAL,), ["ADD", "c", "g"]),
            ((Store.SHARED, Store.SOCIAL), ["ADD", "c", "d", "e", "f", "g"]),
            ((*Store,), ["ADD", "a", "b", "c", "d", "e", "f", "g"]),
        ):
            agree(events, [each.event for each in store.history(id_, looking(stores=stores))])


def change_of_what_it_says(open_store: OpenStore) -> None:
    """Another text brings its terms, has another hash and cost, and is embedded anew."""
    with using(open_store) as store:
        (id_,) = store.add([new("old words")], now=NOW)
        store.put_vectors(Owner(), "m", [(id_, b"1")])
        found = store.change(
            id_, looking(), event="UPDATE", now=LATER, title="new", facts=("f",), terms=b"new f", length=2
        )
        agree(("new", ("f",), hash_of("new", ("f",))), (found and (found.title, found.facts, found.hash)))
        row = store.changed(Owner(), 0, limit=9)[0]
        agree((b"new f", 2), (row.terms, row.length))
        agree([], store.vectors(Owner(), "m", 0, limit=9), "the embedding of the old text")
        agree([(id_, "new\nf")], store.unembedded(Owner(), "m", ALL_PROJECTS, limit=9), "what is to be embedded")


def an_embedding_stays(open_store: OpenStore) -> None:
    """A change that leaves the text alone leaves the embedding alone."""
    with using(open_store) as store:
        (id_,) = store.add([new("text", at=1)], now=NOW)
        store.put_vectors(Owner(), "m", [(id_, b"1")])
        store.change(id_, looking(), event="UPDATE", now=LATER, tags=("t",), keywords=("k",), terms=b"k", length=3)
        agree([b"1"], [row.data for row in store.vectors(Owner(), "m", 0, limit=9)])
        agree([], store.unembedded(Owner(), "m", ALL_PROJECTS, limit=9))


def changed_to_the_same(open_store: OpenStore) -> None:
    """A change to the present values is no change: no version, no history."""
    with using(open_store) as store:
        (id_,) = store.add([new("one", tags=("a",))], now=NOW)
        before, version = store.get([id_], looking()), store.last_version(Owner())
        found = store.change(id_, looking(), event="UPDATE", now=LATER, title="one", tags=("a",), pinned=False)
        agree(before, [found])
        agree(before, store.get([id_], looking()))
        agree(version, store.last_version(Owner()))
        agree(1, len(store.history(id_, looking())))


def terms_alone(open_store: OpenStore) -> None:
    """A memory can get other terms alone: a new version, and no entry in its history."""
    with using(open_store) as store:
        (id_,) = store.add([new("one")], now=NOW)
        version = store.last_version(Owner())
        store.change(id_, looking(), event="UPDATE", now=LATER, terms=b"other", length=7)
        rows = store.changed(Owner(), version, limit=9)
        agree([(id_, b"other", 7)], [(row.id, row.terms, row.length) for row in rows])
        agree(1, len(store.history(id_, looking())))


def refused_changes(open_store: OpenStore) -> None:
    """A change that is not allowed, or does not fit, is refused, and no part of it is written."""
    with using(open_store) as store:
        (id_,) = store.add([new("one")], now=NOW)
        before, version = store.get([id_], looking()), store.last_version(Owner())
        wrong: tuple[dict[str, Any], ...] = (
            {"id": 7},
            {"owner": Owner(user="x")},
            {"hash": "x"},
            {"deleted_at": NOW},
            {"nonsense": 1},
            {"title": "text without its terms"},
            {"confidence": 2},
            {"scope": "universe"},
            {"created_at": None},
            {"tags": "text"},
            {"pinned": True, "store": "nowhere"},
        )
        for fields in wrong:
            change = partial(store.change, id_, looking(), event="X", now=NOW)
            raises((TypeError, ValueError), partial(change, **fields))
        agree((before, version), (store.get([id_], looking()), store.last_version(Owner())))


def moved_in_time(open_store: OpenStore) -> None:
    """A memory whose time, tags, files and people change is found by the new ones only."""
    with using(open_store) as store:
        fields: dict[str, Any] = {"tags": ("a",), "related_people": ("Ann",), "related_files": ("x/y",)}
        first, _ = store.add([new("moved", at=1, **fields), new("other", at=2)], now=NOW)
        store.unembedded(Owner(), "m", ALL_PROJECTS, limit=1)
        after = {"tags": ("b",), "related_people": ("Bob",), "related_files": ("z/y",), "store": Store.SHARED}
        store.change(first, looking(), event="UPDATE", now=LATER, created_at=NOW + timedelta(minutes=3), **after)
        agree(["moved", "other"], titles(store.recent(looking(), limit=9)))
        for old, now in (({"tags": ("a",)}, {"tags": ("b",)}), ({"people": ("ann",)}, {"people": ("bob",)})):
            agree([], titles(store.recent(looking(**old), limit=9)))
            agree(["moved"], titles(store.recent(looking(**now), limit=9)))
        agree([], titles(store.recent(looking(file="x"), limit=9)))
        agree(["moved"], titles(store.recent(looking(file="z", stores=(Store.SHARED,)), limit=9)))
        agree(["Bob"], [person.name for person in store.people(looking(), query="", limit=9)])
        agree(["moved", "other"], [text for _, text in store.unembedded(Owner(), "m", ALL_PROJECTS, limit=9)])
        agree([], store.check(None))


CASES = (
    changed_with_history,
    history_of_what_may_be_seen,
    change_of_what_it_says,
    an_embedding_stays,
    changed_to_the_same,
    terms_alone,
    refused_changes,
    moved_in_time,
)
