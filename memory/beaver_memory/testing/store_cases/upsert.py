"""Rules for remembering memories that a store may already have."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

from beaver_memory.records import Change, Kept, Owner
from beaver_memory.store.protocol import SingleStore
from beaver_memory.testing.store_cases.kit import NOW, OpenStore, agree, holds, looking, new, titles, using

LATER = NOW + timedelta(minutes=5)
_HOUR = timedelta(hours=1)
_THREADS, _TIMES = 4, 10


def _said(store: SingleStore, title: str = "same", /, *, mention: bool = True, **fields: Any) -> Kept:
    (kept,) = store.remember([new(title, **fields)], now=LATER, mention=mention)
    return kept


def one_more_mention(open_store: OpenStore) -> None:
    """A repeated memory is stored once, with one more mention, a new version, and an entry in its history."""
    with using(open_store) as store:
        first = _said(store, narrative="why", facts=("f",))
        version = store.last_version(Owner())
        again = _said(store, narrative="why", facts=("f",), tags=("t",), session="another")
        agree((Kept(id=first.id, outcome="stored"), Kept(id=first.id, outcome="duplicate", mentions=2)), (first, again))
        agree([2], [memory.mention_count for memory in store.recent(looking(), limit=9)])
        agree([(first.id, 2)], [(row.id, row.mentions) for row in store.changed(Owner(), version, limit=9)])
        entry = Change(event="UPDATE", at=LATER, old={"mention_count": 1}, new={"mention_count": 2})
        agree([Change(event="ADD", at=LATER), entry], store.history(first.id, looking()))


def no_more_mentions(open_store: OpenStore) -> None:
    """If mentions are not counted, a stored memory stays as it is."""
    with using(open_store) as store:
        kept = _said(store)
        before, version = store.get([kept.id], looking()), store.last_version(Owner())
        agree(Kept(id=kept.id, outcome="duplicate"), _said(store, mention=False))
        agree((before, version), (store.get([kept.id], looking()), store.last_version(Owner())))


def another_memory(open_store: OpenStore) -> None:
    """A memory with another text, or for another owner, place or time, is another memory."""
    project, session = {"scope": "project", "project": "p"}, {"scope": "session", "session": "s"}
    others: tuple[dict[str, Any], ...] = (
        {},
        {"narrative": "other"},
        {"facts": ("f",)},
        {"facts": ("f", "g")},
        {"store": "social"},
        {"owner": Owner(user="ann")},
        {"agent": "a"},
        project,
        project | {"project": "q"},
        session,
        session | {"session": "t"},
        session | {"project": "p"},
        {"valid_from": NOW},
        {"valid_until": LATER + _HOUR},
    )
    with using(open_store) as store:
        for outcome in ("stored", "duplicate", "duplicate"):
            kept = [_said(store, **fields).outcome for fields in others]
            agree([outcome] * len(others), kept)
        agree(len(others) - 1, store.count(Owner()))


def where_it_stems_from(open_store: OpenStore) -> None:
    """A global memory is the same from any project and session, and a memory of a project from any session."""
    with using(open_store) as store:
        _said(store)
        agree("duplicate", _said(store, project="p", session="s").outcome)
        _said(store, scope="project", project="p")
        agree("duplicate", _said(store, scope="project", project="p", session="s").outcome)


def the_later_end(open_store: OpenStore) -> None:
    """A repeated memory expires at the later of both ends, and never if one of them never does."""
    soon, late = LATER + _HOUR, LATER + 2 * _HOUR

    def ends(*given: datetime | None, mention: bool = True) -> datetime | None:
        with using(open_store) as store:
            title = repr((given, mention))
            kept = [_said(store, title, mention=mention, expires_at=each) for each in given]
            return store.get([kept[-1].id], looking())[0].expires_at

    agree([late, late, None, None], [ends(soon, late), ends(late, soon), ends(soon, None), ends(None, soon)])
    agree(late, ends(soon, late, mention=False))


def what_is_gone_is_not_there(open_store: OpenStore) -> None:
    """An expired, superseded or forgotten memory is not mentioned; the same with the same end is stored once."""
    with using(open_store) as store:
        expired: dict[str, Any] = {"expires_at": NOW}
        ended: dict[str, Any] = {"valid_until": NOW}
        gone = _said(store)
        store.forget([gone.id], looking(), now=LATER)
        agree(["stored"] * 3, [_said(store, **fields).outcome for fields in (expired, ended, {})])
        agree(["duplicate"] * 2, [_said(store, **fields).outcome for fields in (ended, {})])
        alone = [_said(store, "alone", **expired).outcome for _ in range(2)]
        agree(["stored", "duplicate"], alone)


def many_at_once(open_store: OpenStore) -> None:
    """Equal memories in one call are found too, beside stored ones; all of them are stored, or none."""
    with using(open_store) as store:
        first = _said(store, "a")
        items = [new("b"), new("a"), new("b"), new("c")]
        kept = store.remember(items, now=LATER, mention=True)
        agree(["stored", "duplicate", "duplicate", "stored"], [each.outcome for each in kept])
        agree([kept[0].id, first.id, kept[0].id], [each.id for each in kept[:3]])
        agree([1, 2, 2, 1], [each.mentions for each in kept])
        agree([], store.remember([], now=LATER, mention=True))


def by_many_threads(open_store: OpenStore) -> None:
    """However many threads remember the same at once, it is stored once, and no mention is lost."""
    with using(open_store) as store, ThreadPoolExecutor(_THREADS) as threads:
        kept = list(threads.map(lambda _: _said(store), range(_THREADS * _TIMES)))
        agree([*range(1, len(kept) + 1)], sorted(each.mentions for each in kept))
        agree([len(kept)], [memory.mention_count for memory in store.recent(looking(), limit=9)])


def a_change_is_known(open_store: OpenStore) -> None:
    """A memory with a changed text is found under its new words, and not under the old ones."""
    with using(open_store) as store:
        kept = _said(store, "old")
        store.change(kept.id, looking(), event="UPDATE", now=LATER, title="new", terms=b"new", length=1)
        agree((kept.id, "duplicate"), ((again := _said(store, "new")).id, again.outcome))
        holds(_said(store, "old").id > kept.id)
        agree({"old", "new"}, {*titles(store.recent(looking(), limit=9))})


def what_is_no_text_is_there(open_store: OpenStore) -> None:
    """Texts that no database can hold are compared in their stored form."""
    with using(open_store) as store:
        fields: dict[str, Any] = {"narrative": "\ud800", "facts": ("\0",), "owner": Owner(user="\0"), "agent": "\0"}
        agree(["stored", "duplicate"], [_said(store, "a\0", **fields).outcome for _ in range(2)])


CASES = (
    one_more_mention,
    no_more_mentions,
    another_memory,
    where_it_stems_from,
    the_later_end,
    what_is_gone_is_not_there,
    many_at_once,
    by_many_threads,
    a_change_is_known,
    what_is_no_text_is_there,
)
