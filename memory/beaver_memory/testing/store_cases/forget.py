"""Rules for forgetting memories."""

from datetime import timedelta
from typing import Any

import attrs

from beaver_memory.patterns import Pattern
from beaver_memory.records import CaptureSpend, Owner, QueuedSession, SessionSummary
from beaver_memory.store.protocol import IndexRow, SingleStore
from beaver_memory.store.turn_queue import QueuedTurn
from beaver_memory.testing.store_cases.kit import NOW, OpenStore, agree, holds, looking, new, titles, using
from beaver_memory.views import ALL_PROJECTS

LATER = NOW + timedelta(minutes=5)


def forgotten_everywhere(open_store: OpenStore) -> None:
    """A forgotten memory is found nowhere; other memories stay as they are; an index sees the change."""
    with using(open_store) as store:
        items = [new("gone", at=1, tags=("t",), related_people=("Ann",)), new("left", at=2, related_people=("Ann",))]
        gone, left = store.add(items, now=NOW)
        store.put_vectors(Owner(), "m", [(gone, b"1"), (left, b"2")])
        version = max(*store.versions([Owner()], "m")[0])
        agree([gone], store.forget([gone, gone], looking(), now=LATER), "forget")
        agree(["left"], titles(store.get([gone, left], looking())), "get")
        agree(["left"], titles(store.recent(looking(), limit=9)), "recent")
        agree([], store.recent(looking(tags=("t",)), limit=9), "recent by tag")
        agree([], store.timeline(gone, looking(), before=1, after=1), "timeline")
        agree([], store.history(gone, looking()), "history")
        agree(None, store.change(gone, looking(), event="PIN", now=LATER, pinned=True), "change")
        agree([("Ann", 1)], [(who.name, who.mention_count) for who in store.people(looking(), query="", limit=9)])
        agree(1, store.count(Owner()), "count")
        agree([left], [row.id for row in store.vectors(Owner(), "m", 0, limit=9)], "vectors")
        rows = store.changed(Owner(), version, limit=9)
        uid = bytes.fromhex(items[0].memory.uid)
        told = IndexRow(id=gone, version=rows[0].version, uid=uid, gone=True, updated=LATER.timestamp())
        agree([told], rows, "changed")


def forgotten_once(open_store: OpenStore) -> None:
    """Forgetting again forgets nothing and has no version."""
    with using(open_store) as store:
        (id_,) = store.add([new("gone")], now=NOW)
        store.forget([id_], looking(), now=LATER)
        version = store.last_version(Owner())
        agree([], store.forget([id_], looking(), now=LATER))
        agree(version, store.last_version(Owner()))


def ids_are_never_used_again(open_store: OpenStore) -> None:
    """A new memory has an id that no memory ever had, even after another opening."""
    with using(open_store) as store:
        ids = store.add([new("a"), new("b")], now=NOW)
        store.forget(ids, looking(), now=NOW)
    with using(open_store) as store:
        (later,) = store.add([new("c")], now=NOW)
        holds(later > max(ids))
        agree([], store.get(ids, looking()))


def no_embedding_of_the_forgotten(open_store: OpenStore) -> None:
    """An embedding that arrives after its memory was forgotten is not stored, and not requested either."""
    with using(open_store) as store:
        gone, left = store.add([new("gone"), new("left")], now=NOW)
        agree(2, len(store.unembedded(Owner(), "m", ALL_PROJECTS, limit=9)))
        store.forget([gone], looking(), now=LATER)
        agree([(left, "left")], store.unembedded(Owner(), "m", ALL_PROJECTS, limit=9))
        store.put_vectors(Owner(), "m", [(gone, b"1"), (left, b"2"), (left + 9, b"3"), (2**70, b"4")])
        agree([(left, b"2")], [(row.id, row.data) for row in store.vectors(Owner(), "m", 0, limit=9)])
        agree([], store.check(None))


def what_has_lapsed_is_forgotten(open_store: OpenStore) -> None:
    """A memory that is expired or superseded is forgotten if `lapsed` includes it, and otherwise stays."""
    with using(open_store) as store:
        before = NOW - timedelta(minutes=1)
        items = [new("expired", expires_at=before), new("superseded", valid_until=before), new("live")]
        ids = store.add([*items, new("another's", owner=Owner(user="ann"), expires_at=before)], now=NOW)
        agree([], store.forget(ids[:2], looking(), now=LATER), "without being asked for")
        agree(["expired", "superseded"], titles(store.get(ids, looking(lapsed=True))[:2]), "get")
        agree(ids[:2], store.forget([*ids[:2], ids[3]], looking(lapsed=True), now=LATER), "forget")
        agree(["live"], titles(store.get(ids, looking(lapsed=True))), "what is left")
        agree([], store.check(None))


def counted_in_each_place(open_store: OpenStore) -> None:
    """The rows that hold content of memories are counted by place, and none is left of a forgotten memory."""
    with using(open_store) as store:
        gone, left = store.add([new("gone", tags=("t",), evidence="said so"), new("left", tags=("t",))], now=NOW)
        store.put_vectors(Owner(), "m", [(gone, b"1"), (left, b"2")])
        store.change(gone, looking(), event="PIN", now=LATER, pinned=True)
        every = {"memories": 1, "evidence": 1, "vectors": 1, "history": 1, "labels": 1}
        rows = {place: count for place, count in store.footprint([gone], tenant="").items() if count}
        agree(every, rows, "before")
        agree({}, {place: n for place, n in store.footprint([gone], tenant="x").items() if n}, "of another tenant")
        store.forget([gone], looking(), now=LATER)
        agree({}, {place: n for place, n in store.footprint([gone], tenant="").items() if n}, "after")
        agree(1, store.footprint([gone, left], tenant="")["memories"], "of the other")


def excerpts_of_turns(open_store: OpenStore) -> None:
    """The excerpts of turns are erased from all memories of an owner, histories included, and from no other one."""
    ann, ended = Owner(user="ann"), NOW - timedelta(days=1)
    with using(open_store) as store:
        agree(0, store.drop_evidence(ann, ["t1"], now=LATER), "of an unknown owner")
        said: dict[str, Any] = {"owner": ann, "evidence": "said so"}
        first, second, other, bare = store.add(
            [
                new("first", **said, origin="t1"),
                new("second", **said, origin="t1", valid_until=ended),
                new("other", **said, origin="t2"),
                new("bare", **said),
            ],
            now=NOW,
        )
        (bobs,) = store.add([new("bob's", owner=Owner(user="bob"), evidence="said so", origin="t1")], now=NOW)
        store.put_vectors(ann, "m", [(second, b"1")])
        version, seen = store.last_version(ann), looking(owners=(ann,), lapsed=True)
        before = store.get([first, second, other, bare], seen)
        agree(2, store.drop_evidence(ann, ["t1", "t9"], now=LATER), "erased")
        agree(0, store.drop_evidence(ann, ["t1"], now=LATER), "again")
        agree(0, store.drop_evidence(ann, [], now=LATER), "of no turn")
        after = [attrs.evolve(each, evidence="") for each in before[:2]]
        agree([*after, *before[2:]], store.get([first, second, other, bare], seen), "get")
        agree(["said so"], [each.evidence for each in store.get([bobs], looking(owners=(Owner(user="bob"),)))])
        agree(2, len(store.changed(ann, version, limit=9)), "versions")
        agree([second], [row.id for row in store.vectors(ann, "m", 0, limit=9)], "vectors")
        counts = store.footprint([first, second], tenant="")
        agree((0, 0), (counts["evidence"], counts["history"]), "footprint")
        agree([], store.check(None))


def counted_for_an_owner(open_store: OpenStore) -> None:
    """The rows that tell of an owner are counted by place; those of the same user in another tenant are not."""
    ann, namesake = Owner(user="ann"), Owner(tenant="x", user="ann")
    with using(open_store) as store:
        for owner in (ann, namesake):
            (id_,) = store.add([new("said", owner=owner, tags=("t",), project="p", session="s")], now=NOW)
            store.put_vectors(owner, "m", [(id_, b"1")])
            store.change(id_, looking(owners=(owner,)), event="PIN", now=LATER, pinned=True)
            store.summarise(owner, SessionSummary(session="s", created_at=NOW))
            store.mark_captured(owner, ["turn"])
            store.mark_forgotten(owner, ["gone"])
            store.spend(owner, NOW.date(), CaptureSpend(memories=1), CaptureSpend(memories=9))
            store.queue.put(QueuedTurn(place=QueuedSession(owner=owner), turn="t", content="said", queued_at=NOW))
        agree(dict.fromkeys(_PLACES, 1), _held(store, ann), "before")
        store.forget(store.ids(ann), looking(owners=(ann,)), now=LATER)
        agree({"summaries", "waiting turns", *_RECORDS}, {*_held(store, ann)}, "after forgetting")
        store.queue.erase(ann, ALL_PROJECTS)
        store.drop_summaries(ann)
        store.drop_capture_records(ann)
        agree({}, _held(store, ann), "after all")
        agree(dict.fromkeys(_PLACES, 1), _held(store, namesake), "of another tenant")
        agree({}, _held(store, Owner(user="bob")), "of an unknown user")


def marks_of_forgotten_texts(open_store: OpenStore) -> None:
    """A store knows the words that an owner has forgotten, after opening again too, and those of no other owner."""
    ann, namesake, bob = Owner(user="ann"), Owner(tenant="x", user="ann"), Owner(user="bob")
    texts = ("I live in Ulm.", "i LIVE, in ulm", "Ich wohne in Köln", "...", "I live in Bonn.")
    with using(open_store) as store:
        store.add([new("left", owner=owner) for owner in (ann, namesake, bob)], now=NOW)
        agree(set(), store.forgotten(ann, texts), "before")
        store.mark_forgotten(ann, [])
        store.mark_forgotten(ann, ["I live in Ulm.", "Ich wohne in Ko\u0308ln", "", "?"])
        store.mark_forgotten(ann, ["I live in Ulm."])
    with using(open_store) as store:
        agree({*texts[:3]}, store.forgotten(ann, texts), "of the owner")
        agree((set(), set()), (store.forgotten(namesake, texts), store.forgotten(bob, texts)), "of others")
        agree(set(), store.forgotten(Owner(user="unknown"), texts), "of an unknown owner")
        agree(2, store.holdings(ann)["marks of forgotten texts"], "the marks")
        store.drop_capture_records(ann)
        agree(set(), store.forgotten(ann, texts), "after")
        agree(set(), store.forgotten(ann, []), "of no texts")


def _held(store: SingleStore, owner: Owner) -> dict[str, int]:
    found = store.holdings(owner)
    return {place: found[place] for place in _PLACES if found.get(place)}


_RECORDS = ("captured turns", "days of capture", "marks of forgotten texts")
_PLACES = ("memories", "vectors", "history", "labels", "summaries", "waiting turns", *_RECORDS)


def dropped_summaries(open_store: OpenStore) -> None:
    """The summaries of some sessions of an owner are erased, or of all, and no other owner's."""
    ann = Owner(user="ann")
    with using(open_store) as store:
        agree(0, store.drop_summaries(ann), "of an owner without memories")
        for owner in (Owner(), ann):
            for session in ("s", "t", "u"):
                store.summarise(owner, SessionSummary(session=session, request="one", created_at=NOW))
        agree(1, store.drop_summaries(Owner(), ("s", "x")), "of a session")
        agree(["t", "u"], _sessions(store, Owner()), "of the others")
        agree((2, 0), (store.drop_summaries(Owner()), store.drop_summaries(Owner())), "of all")
        agree(["s", "t", "u"], _sessions(store, ann), "of another owner")


def dropped_owner(open_store: OpenStore) -> None:
    """An owner without memories leaves no row, and one with memories stays; others and new memories are as before."""
    ann = Owner(user="ann")
    with using(open_store) as store:
        (left,) = store.add([new("left")], now=NOW)
        (gone,) = store.add([new("gone", owner=ann, tags=("t",), related_people=("Bob",))], now=NOW)
        store.summarise(ann, SessionSummary(session="s", created_at=NOW))
        store.mark_captured(ann, ["turn"])
        store.mark_forgotten(ann, ["gone"])
        store.matching([Pattern(text="gone")], looking(), limit=9)
        store.drop_owner(ann)
        agree(["gone"], titles(store.get([gone], looking(owners=(ann,)))), "with memories")
        store.forget([gone], looking(owners=(ann,)), now=LATER)
        store.drop_owner(ann)
        store.drop_owner(ann)
        agree(([], set(), 0), (_sessions(store, ann), store.captured(ann, ["turn"]), store.last_version(ann)), "rows")
        (later,) = store.add([new("later words", owner=ann)], now=NOW)
        holds(later > gone)
        both = looking(owners=(ann, Owner()))
        agree([later], store.matching([Pattern(text="later words")], both, limit=9), "the word index")
        agree(["left", "later words"], titles(store.get([left, later], both)), "get")
        agree([], store.check(None))


def _sessions(store: SingleStore, owner: Owner) -> list[str]:
    return sorted(each.session for each in store.summaries(owner, limit=9))


CASES = (
    counted_in_each_place,
    excerpts_of_turns,
    counted_for_an_owner,
    marks_of_forgotten_texts,
    dropped_owner,
    dropped_summaries,
    forgotten_everywhere,
    forgotten_once,
    what_has_lapsed_is_forgotten,
    ids_are_never_used_again,
    no_embedding_of_the_forgotten,
)
