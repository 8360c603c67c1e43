"""Rules for filters: each alone, and each with each other."""

import itertools
from datetime import timedelta
from typing import Any

from beaver_memory.filters import Filters
from beaver_memory.records import Memory, Owner, QueuedSession, Store
from beaver_memory.store.protocol import Analysed, SingleStore
from beaver_memory.store.turn_queue import QueuedTurn
from beaver_memory.testing.store_cases.kit import NOW, OpenStore, agree, as_stored, looking, new, titles, using
from beaver_memory.testing.store_cases.reference import may_be_seen
from beaver_memory.views import ALL_PROJECTS

ANN, BOB, OTHER = Owner(user="ann"), Owner(user="bob"), Owner(tenant="other", user="ann")
NOBODY = Owner(user="nobody")
_OWNERS = (ANN, BOB)
_MANY = 120


def _ago(minutes: int) -> Any:
    return NOW - timedelta(minutes=minutes)


FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"owners": ()},
    {"owners": (BOB,)},
    {"owners": (OTHER,)},
    {"stores": ()},
    {"stores": (Store.SHARED,)},
    {"stores": (Store.SHARED, Store.SOCIAL)},
    {"types": ("fact",)},
    {"types": ("fact", "rule")},
    {"tags": ("a",)},
    {"tags": ("a", "b")},
    {"tags": ("none",)},
    {"people": ("ANN",)},
    {"people": ("straße", "bob")},
    {"file": "src"},
    {"file": "src/"},
    {"file": "src/a.py"},
    {"file": "/"},
    {"scopes": ("session",)},
    {"scopes": ("global", "project")},
    {"project": "p"},
    {"project": None},
    {"session": "s1"},
    {"agent": "x"},
    {"sources": ("user",)},
    {"after": _ago(40)},
    {"before": _ago(40)},
    {"as_of": _ago(30)},
    {"lapsed": True},
    {"now": _ago(20)},
)


def _made(number: int) -> Analysed:
    """Return one of many memories: each field changes at its own period, so that all values meet."""

    def pick(every: int, *values: Any) -> Any:
        return values[(number // every) % len(values)]

    return new(
        f"common word{number}",
        at=-(number * 7 % _MANY) // 2,
        owner=pick(1, ANN, ANN, BOB, ANN, OTHER),
        store=pick(1, *Store),
        type=pick(2, "fact", "rule", "discovery"),
        scope=pick(3, "global", "session", "project"),
        project=pick(1, "", "p", "q", "p"),
        session=pick(2, "s1", "s2"),
        agent=pick(1, "", "x", "y"),
        source=pick(1, "user", "agent"),
        tags=pick(1, (), ("a",), ("b", "a"), ("a b",), ("b",)),
        related_people=pick(1, (), ("Ann",), ("Bob", "ann"), ("STRASSE",)),
        related_files=pick(1, ("src/a.py",), (), ("src/b/c.py", "/etc/x"), ("srcs/a.py",), ("src",)),
        expires_at=pick(4, None, None, _ago(10), NOW + timedelta(days=1)),
        valid_from=pick(5, None, None, _ago(35)),
        valid_until=pick(3, None, None, None, _ago(25)),
    )


def filters_alone_and_in_pairs(open_store: OpenStore) -> None:
    """Every filter, alone and with every other one, lets through the right memories only.

    A filter alone is tried with every question, and a pair with one of them in turn.
    """
    with using(open_store) as store:
        items = [_made(number) for number in range(_MANY)]
        ids = store.add(items, now=NOW)
        everything = [as_stored(item.memory, id_) for item, id_ in zip(items, ids, strict=True)]
        for number, (one, other) in enumerate(itertools.combinations_with_replacement(FILTERS, 2)):
            # A pair has the owners of the filter that names them.
            fields: dict[str, Any] = {"owners": _OWNERS, "now": NOW} | one | other
            filters, about = looking(**fields), f"{one} and {other}"
            wanted = [memory for memory in everything if may_be_seen(memory, filters)]
            wanted.sort(key=lambda memory: (memory.created_at, memory.id), reverse=True)
            for question in _QUESTIONS if one is other else (_QUESTIONS[number % len(_QUESTIONS)],):
                question(store, filters, wanted, everything, about)


def _recent(store: SingleStore, filters: Filters, wanted: list[Memory], everything: list[Memory], about: str) -> None:
    agree(wanted, store.recent(filters, limit=len(everything)), f"recent with {about}")


def _newest(store: SingleStore, filters: Filters, wanted: list[Memory], _: list[Memory], about: str) -> None:
    agree(wanted[:3], store.recent(filters, limit=3), f"the newest three with {about}")


def _get(store: SingleStore, filters: Filters, wanted: list[Memory], everything: list[Memory], about: str) -> None:
    agree(wanted, store.get([memory.id for memory in (*wanted, *everything)], filters), f"get with {about}")


def _timeline(store: SingleStore, filters: Filters, wanted: list[Memory], _: list[Memory], about: str) -> None:
    if wanted:
        middle = len(wanted) // 2
        around = wanted[max(middle - 2, 0) : middle + 4]
        found = store.timeline(wanted[middle].id, filters, before=3, after=2)
        agree(list(reversed(around)), found, f"timeline with {about}")


def _people(store: SingleStore, filters: Filters, wanted: list[Memory], _: list[Memory], about: str) -> None:
    names = {name.casefold() for memory in wanted for name in memory.related_people}
    found_names = {person.name.casefold() for person in store.people(filters, query="", limit=10)}
    agree(names, found_names, f"people with {about}")


_QUESTIONS = (_recent, _get, _newest, _timeline, _people)


def a_hidden_memory_is_hidden_everywhere(open_store: OpenStore) -> None:
    """A reader who may not see a memory can neither read, follow, change nor forget it."""
    with using(open_store) as store:
        (id_,) = store.add([new("mine", owner=ANN, related_people=("Zoe",))], now=NOW)
        for filters in (
            looking(owners=(BOB,)),
            looking(owners=(ANN,), stores=()),
            looking(owners=(ANN,), types=("x",)),
        ):
            agree([], store.get([id_], filters), "get")
            agree([], store.recent(filters, limit=5), "recent")
            agree([], store.timeline(id_, filters, before=1, after=1), "timeline")
            agree([], store.history(id_, filters), "history")
            agree([], store.people(filters, query="", limit=5), "people")
            agree(None, store.change(id_, filters, event="PIN", now=NOW, pinned=True), "change")
            agree([], store.forget([id_], filters, now=NOW), "forget")
        agree(["mine"], [memory.title for memory in store.get([id_], looking(owners=(ANN,)))], "what is left")


def owners_are_apart(open_store: OpenStore) -> None:
    """The questions of an index return an owner's own memories only, and none of an owner with a similar name."""
    with using(open_store) as store:
        one, other = Owner(tenant="a", user="b"), Owner(tenant="ab", user="")
        (first, second) = store.add([new("one", owner=one), new("other", owner=other)], now=NOW)
        store.put_vectors(one, "m", [(first, b"12"), (second, b"34")])
        agree([first], [row.id for row in store.changed(one, 0, limit=9)], "changed")
        agree([first], [row.id for row in store.vectors(one, "m", 0, limit=9)], "vectors")
        agree([], store.vectors(other, "m", 0, limit=9), "vectors of the other one")
        agree([second], [id_ for id_, _ in store.unembedded(other, "m", ALL_PROJECTS, limit=9)], "unembedded")
        agree((1, 1, 0), (store.count(one), store.count(other), store.count(NOBODY)), "count")
        agree([one, other], store.owners(None), "owners")


def a_user_and_a_space(open_store: OpenStore) -> None:
    """A user and a space of the same name are two owners, in memories, waiting turns and marks of forgotten texts."""
    user, space = Owner(tenant="a", user="team"), Owner(tenant="a", user="team", kind="space")
    with using(open_store) as store:
        ids = store.add([new("of the user", owner=user), new("of the space", owner=space)], now=NOW)
        for owner, title in ((user, "of the user"), (space, "of the space")):
            agree([title], titles(store.get(ids, looking(owners=(owner,)))), "get")
            agree([owner], [memory.owner for memory in store.recent(looking(owners=(owner,)), limit=9)], "recent")
            agree(1, store.count(owner), "count")
        agree([user, space], store.owners("a"), "owners")
        store.mark_forgotten(user, ["gone"])
        agree(({"gone"}, set()), (store.forgotten(user, ["gone"]), store.forgotten(space, ["gone"])), "forgotten")
        store.queue.put(QueuedTurn(place=QueuedSession(owner=space), turn="t", content="{}", queued_at=NOW))
        agree([space], store.queue.owners("a"), "owners of turns")
        agree([], store.queue.waiting(user, ALL_PROJECTS, limit=9), "turns of the user")
        agree([], store.check(None), "check")


CASES = (filters_alone_and_in_pairs, a_hidden_memory_is_hidden_everywhere, owners_are_apart, a_user_and_a_space)
