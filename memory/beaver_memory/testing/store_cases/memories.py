"""Rules for adding and reading memories."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import attrs

from beaver_memory.patterns import Pattern
from beaver_memory.records import CaptureSpend, NewMemory, Owner, SessionSummary, Store
from beaver_memory.store.protocol import Analysed
from beaver_memory.testing.store_cases.kit import NOW, OpenStore, agree, as_stored, looking, new, titles, using

FULL = NewMemory(
    title="title",
    narrative="narrative",
    facts=("one", "two"),
    summary="summary",
    owner=Owner(tenant="t", user="u"),
    store=Store.SOCIAL,
    type="fact",
    scope="session",
    project="p",
    session="s",
    agent="a",
    speaker="Ann",
    tags=("x", "y", "x"),
    keywords=("k",),
    related_files=("src/a.py",),
    related_people=("Ann", "ann"),
    source="user",
    origin="turn 1",
    evidence="she told me so",
    confidence=0.25,
    importance=0.75,
    pinned=True,
    created_at=NOW - timedelta(days=1, microseconds=1),
    expires_at=NOW + timedelta(days=1),
    valid_from=NOW - timedelta(days=2),
    valid_until=NOW + timedelta(days=2),
    uid="0123456789abcdef" * 2,
)


def every_field_comes_back(open_store: OpenStore) -> None:
    """A memory comes back as it was given, with what the store adds, from another opening too."""
    with using(open_store) as store:
        (id_,) = store.add([Analysed(memory=FULL, terms=b"x", length=1)], now=NOW)
    with using(open_store) as store:
        agree([as_stored(FULL, id_)], store.get([id_], looking(owners=(FULL.owner,))))


def what_is_not_given(open_store: OpenStore) -> None:
    """A memory without a time was said now; one with a time in another zone keeps its moment."""
    east = timezone(timedelta(hours=9))
    with using(open_store) as store:
        ids = store.add([new("now"), new("east", created_at=datetime(2026, 2, 1, 9, tzinfo=east))], now=NOW)
        found = store.get(ids, looking())
        agree([NOW, datetime(2026, 2, 1, tzinfo=UTC)], [memory.created_at for memory in found])
        agree([1, 1], [memory.mention_count for memory in found])


def nothing_is_nothing(open_store: OpenStore) -> None:
    """Empty lists and unknown ids or names give empty results, and change nothing."""
    with using(open_store) as store:
        (id_,) = store.add([new("one")], now=NOW)
        version = store.last_version(Owner())
        agree([], store.add([], now=NOW), "add")
        agree([], store.get([], looking()), "get")
        agree([], store.get([0, -1, id_ + 1, 2**63, 2**70], looking()), "get of what is not there")
        agree([], store.forget([], looking(), now=NOW), "forget")
        agree([], store.forget([2**70, id_ + 1], looking(), now=NOW), "forget of what is not there")
        agree(None, store.change(id_ + 1, looking(), event="PIN", now=NOW, pinned=True), "change")
        agree([], store.recent(looking(), limit=0), "recent")
        agree([], store.recent(looking(), limit=-1), "recent with a limit below nothing")
        agree([], store.timeline(2**70, looking(), before=1, after=1), "timeline")
        agree([], store.history(2**70, looking()), "history")
        agree([], store.summaries(Owner(user="nobody"), limit=5), "summaries")
        store.touch([], tenant="", now=NOW)
        store.touch([2**70], tenant="", now=NOW)
        store.put_vectors(Owner(), "m", [])
        agree(0, store.drop_vectors("never used"), "drop_vectors")
        agree(version, store.last_version(Owner()), "last_version")
        agree(["one"], titles(store.recent(looking(), limit=2**70)), "recent without end")


def in_the_order_of_the_ids(open_store: OpenStore) -> None:
    """Memories come in the requested order, each once; their ids grow."""
    with using(open_store) as store:
        ids = store.add([new(f"m{number}") for number in range(3)], now=NOW)
        agree(sorted(set(ids)), ids, "ids")
        agree(["m2", "m0", "m1"], titles(store.get([ids[2], ids[0], ids[2], ids[1]], looking())), "get")


def newest_first(open_store: OpenStore) -> None:
    """The newest come first by when they were said; at the same moment, the one that was added last."""
    with using(open_store) as store:
        store.add([new("middle", at=2), new("old", at=1), new("new", at=3), new("new too", at=3)], now=NOW)
        agree(["new too", "new", "middle", "old"], titles(store.recent(looking(), limit=9)))
        agree(["new too", "new"], titles(store.recent(looking(), limit=2)))


def phrases_and_prefixes(open_store: OpenStore) -> None:
    """Memories that hold all of some phrases and prefixes are found, newest first, and no invisible ones."""
    whale, config, other = Pattern(text="blue whale"), Pattern(text="conf", is_prefix=True), Pattern(text="蓝鲸")
    texts = ("blue whale", "configuration", "a Blue WHALE, configured", "whale blue", "见蓝鲸")
    with using(open_store) as store:
        ids = store.add([new(text, at=number) for number, text in enumerate(texts)], now=NOW)
        store.add([new("a blue whale and conf 蓝鲸", owner=Owner(user="other"))], now=NOW)

        def found(*patterns: Pattern, limit: int = 9, **fields: object) -> list[int]:
            return store.matching(patterns, looking(**fields), limit=limit)

        agree([ids[2], ids[0]], found(whale), "a phrase")
        agree([ids[2], ids[1]], found(config), "a prefix")
        agree([ids[4]], found(other), "a phrase without spaces")
        agree([[ids[2]], []], [found(whale, config), found(whale, other)], "all of them")
        agree([ids[2]], found(whale, limit=1), "the newest")
        agree([[], [], []], [found(), found(whale, types=("x",)), found(whale, owners=())], "what may not be seen")
        store.change(ids[0], looking(), event="UPDATE", now=NOW, title="red", terms=b"red", length=1)
        store.forget([ids[2]], looking(), now=NOW)
        agree([], found(whale), "changed and forgotten")


def neighbours_in_time(open_store: OpenStore) -> None:
    """A timeline holds a memory's neighbours, oldest first, across visible owners."""
    with using(open_store) as store:
        items = [new(f"m{number}", at=number // 2, owner=Owner(user=f"u{number % 2}")) for number in range(8)]
        ids = store.add(items, now=NOW)
        both = looking(owners=(Owner(user="u0"), Owner(user="u1")))
        agree(["m2", "m3", "m4", "m5"], titles(store.timeline(ids[4], both, before=2, after=1)))
        agree(["m4"], titles(store.timeline(ids[4], both, before=0, after=0)))
        agree(["m0", "m1"], titles(store.timeline(ids[0], both, before=5, after=1)))
        agree(
            ["m2", "m4", "m6"], titles(store.timeline(ids[4], looking(owners=(Owner(user="u0"),)), before=1, after=1))
        )


def touched(open_store: OpenStore) -> None:
    """A recall is recorded, and is no change of the memory."""
    with using(open_store) as store:
        ids = store.add([new("one"), new("two")], now=NOW)
        before = store.last_version(Owner())
        store.touch([ids[0], ids[0], 10**6], tenant="", now=NOW + timedelta(minutes=1))
        store.touch([ids[1]], tenant="another", now=NOW)
        found = store.get(ids, looking())
        agree([NOW + timedelta(minutes=1), None], [memory.last_accessed_at for memory in found])
        agree([NOW, NOW], [memory.updated_at for memory in found])
        agree(before, store.last_version(Owner()))


def known_people(open_store: OpenStore) -> None:
    """People are counted by visible memories, however they are spelt, and found by a part of their name."""
    with using(open_store) as store:
        items = [
            new("1", at=1, related_people=("Ann Lee", "Bob")),
            new("2", at=2, related_people=("ann lee", "ANN LEE")),
            new("3", at=3, related_people=("Bob",), store="social"),
            new("4", at=4, related_people=("Bob",), owner=Owner(user="other")),
            new("5", at=5, related_people=("Bob",), store="shared"),
        ]
        store.add(items, now=NOW)

        def known(query: str = "", limit: int = 9, **fields: object) -> list[tuple[str, int, datetime]]:
            found = store.people(looking(**fields), query=query, limit=limit)
            return [(person.name, person.mention_count, person.last_mentioned) for person in found]

        bob, ann = ("Bob", 3, NOW + timedelta(minutes=5)), ("Ann Lee", 2, NOW + timedelta(minutes=2))
        agree([bob, ann], known())
        agree([bob], known(limit=1))
        agree([ann], known("N L"))
        agree([], known("%"))
        agree([("Bob", 1, NOW + timedelta(minutes=3))], known(stores=("social",)))
        agree(4, known(owners=(Owner(), Owner(user="other")))[0][1])


def summaries_of_sessions(open_store: OpenStore) -> None:
    """A session of an agent has one summary, the last one; an owner sees its own, newest first."""
    owner, other = Owner(user="u"), Owner(user="o")
    first = SessionSummary(session="s1", request="r", created_at=NOW)
    later = SessionSummary(
        session="s1",
        request="r2",
        outcome="o",
        decisions=("d",),
        open_items=("i", "j"),
        observation_count=3,
        created_at=NOW + timedelta(hours=1),
    )
    second = SessionSummary(session="s2", created_at=NOW + timedelta(minutes=1))
    with using(open_store) as store:
        for summary in (first, second, later):
            store.summarise(owner, summary)
        store.summarise(other, first)
        store.summarise(other, of_agent := attrs.evolve(first, agent="a", created_at=NOW + timedelta(minutes=1)))
        agree([later, second], store.summaries(owner, limit=5))
        agree([later], store.summaries(owner, limit=1))
        agree([of_agent, first], store.summaries(other, limit=5))


def spend_of_a_day(open_store: OpenStore) -> None:
    """What capture takes of an owner's day adds up in every open store, and stops at each limit by itself."""
    owner, day, tomorrow = Owner(user="u"), NOW.date(), NOW.date() + timedelta(days=1)
    most = CaptureSpend(memories=3, calls=1, tokens=10)
    two, call, tokens = CaptureSpend(memories=2), CaptureSpend(calls=1, tokens=3), CaptureSpend(tokens=4)
    with using(open_store) as store, using(open_store) as other:
        agree(CaptureSpend(), store.spent(owner, day))
        agree([False], [store.spend(owner, day, CaptureSpend(memories=4), most)])
        agree([True, False, True], [each.spend(owner, day, two, most) for each in (store, other)] + [
            other.spend(owner, day, CaptureSpend(memories=1), most)])  # fmt: skip
        agree([True, False], [each.spend(owner, day, call, most) for each in (other, store)])
        agree([True, False], [store.spend(owner, day, tokens, most) for _ in range(2)])
        agree(CaptureSpend(memories=3, calls=1, tokens=7), other.spent(owner, day))
        agree([True], [store.spend(owner, day, CaptureSpend(calls=1), attrs.evolve(most, memories=0, calls=2))])
        for others in (Owner(user="o"), Owner(tenant="t", user="u")):
            agree((CaptureSpend(), True), (store.spent(others, day), store.spend(others, day, two, most)))
        agree((CaptureSpend(), True), (store.spent(owner, tomorrow), store.spend(owner, tomorrow, two, most)))


def spend_side_by_side(open_store: OpenStore) -> None:
    """Threads that spend at once over several open stores share one limit exactly."""
    owner, one, most = Owner(user="u"), CaptureSpend(memories=1), CaptureSpend(memories=7)
    with using(open_store) as store, using(open_store) as other, ThreadPoolExecutor(4) as threads:
        both = [store, other] * 10
        added = [*threads.map(lambda each: each.spend(owner, NOW.date(), one, most), both)]
        agree((7, CaptureSpend(memories=7)), (sum(added), store.spent(owner, NOW.date())))


def turns_that_were_captured(open_store: OpenStore) -> None:
    """A turn is recorded once as captured, for its owner alone, in every open store."""
    owner, turns = Owner(user="u"), ["t1", "t\ud8002", "t3"]
    with using(open_store) as store, using(open_store) as other:
        agree(set(), store.captured(owner, turns))
        store.mark_captured(owner, [])
        for each in (store, other):
            each.mark_captured(owner, turns[:2])
        agree([{*turns[:2]}] * 2, [each.captured(owner, turns) for each in (store, other)])
        agree(set(), store.captured(Owner(user="o"), turns))
        agree([], store.owners(None))


CASES = (
    every_field_comes_back,
    what_is_not_given,
    nothing_is_nothing,
    in_the_order_of_the_ids,
    newest_first,
    phrases_and_prefixes,
    neighbours_in_time,
    touched,
    known_people,
    summaries_of_sessions,
    spend_of_a_day,
    spend_side_by_side,
    turns_that_were_captured,
)
