"""Joins two databases as one store: memories of scope `global` lie with the person, all others with the project.

A memory of scope `global` is written to the database of the person, which all of that person's projects share. A
project sees only the global memories of that database, which may also hold memories from outside of any project.

The ids of the person's memories are shown with `PERSONAL_IDS` added, so that each id names one memory.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from operator import methodcaller
from typing import Any, TypeVar, cast

import attrs

from beaver_memory.errors import PersonalStoreError, StoreError
from beaver_memory.filters import Filters
from beaver_memory.patterns import Pattern
from beaver_memory.records import CaptureSpend, Change, DamagedEntry, Kept, Memory, Owner, Person, Scope, SessionSummary
from beaver_memory.store.bounds import LARGEST
from beaver_memory.store.changes import renumbered, renumbered_change, renumbered_fields
from beaver_memory.store.people import ranked
from beaver_memory.store.personal import PersonalStore
from beaver_memory.store.protocol import Analysed, SingleStore
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.store.turn_queue import TurnQueue

T = TypeVar("T")

EVERYWHERE: Scope = "global"
"""The scope of the memories in the person's database."""

PERSONAL_IDS = 1_000_000_000
"""The offset of the ids of the person's memories. No project has so many."""


def personal_view(filters: Filters) -> Filters | None:
    """Return the filters for the person's memories that a project may see; `None` if it may see none."""
    if filters.scopes and EVERYWHERE not in filters.scopes:
        return None
    return attrs.evolve(filters, scopes=(EVERYWHERE,))


class JointStore:
    """Keeps memories in two databases; see `MemoryStore` for what each method does.

    If the database of the person cannot be read, that of the project answers alone. A write to the person's database
    that fails raises `StoreError` and is written nowhere else. Of many memories that are added at once, each database
    stores its part whole or not at all, that of the person first.

    Args:
        project: the database of the project.
        personal: the database of the person.
    """

    def __init__(self, project: SingleStore, personal: PersonalStore) -> None:
        self._project = project
        self._personal = personal

    def close(self) -> None:
        """Close both databases. Closing again does nothing."""
        self._personal.close()
        self._project.close()

    # --- Memories -----------------------------------------------------------------------------------------------

    def add(self, items: Sequence[Analysed], *, now: datetime) -> list[int]:
        """Store memories, each in its database; return their ids, in order."""
        theirs = [item for item in items if _is_personal(item)]
        added = iter(self._write(lambda store: store.add(theirs, now=now)) if theirs else ())
        ours = iter(self._project.add([item for item in items if not _is_personal(item)], now=now))
        return [PERSONAL_IDS + next(added) if _is_personal(item) else next(ours) for item in items]

    def remember(self, items: Sequence[Analysed], *, now: datetime, mention: bool) -> list[Kept]:
        """Store memories that are new to their database; return the outcome of each, in order."""
        theirs = [item for item in items if _is_personal(item)]
        kept = iter(self._write(lambda store: store.remember(theirs, now=now, mention=mention)) if theirs else ())
        others = [item for item in items if not _is_personal(item)]
        ours = iter(self._project.remember(others, now=now, mention=mention))
        return [_shown_kept(next(kept)) if _is_personal(item) else next(ours) for item in items]

    def supersede(self, item: Analysed, ids: Sequence[int], filters: Filters, *, at: datetime, now: datetime) -> Kept:
        """Store a memory, and end others in its database, in one transaction.

        Memories in the other database end afterwards, and name no successor.
        """
        ours, theirs = _parted(ids)
        view = personal_view(filters)
        if _is_personal(item):
            seen = filters if view is None else view
            which = [] if view is None else theirs
            (found,) = self._write(lambda store: [store.supersede(item, which, seen, at=at, now=now)])
            kept, others = _shown_kept(found), ours
        else:
            kept = self._project.supersede(item, ours, filters, at=at, now=now)
            others = [PERSONAL_IDS + id_ for id_ in theirs]
        rest = [id_ for id_ in others if self.change(id_, filters, event="DELETE", now=now, valid_until=at)]
        ended = {*kept.superseded, *rest}
        return attrs.evolve(kept, superseded=tuple(id_ for id_ in dict.fromkeys(ids) if id_ in ended))

    def get(self, ids: Sequence[int], filters: Filters) -> list[Memory]:
        """Return the visible memories among `ids`, in the order of `ids`, each once."""
        ours, theirs = _parted(ids)
        memories = self._project.get(ours, filters) if ours else []
        if theirs:
            memories += self._seen(filters, lambda store, view: store.get(theirs, view))
        found = {memory.id: memory for memory in memories}
        return [found[id_] for id_ in dict.fromkeys(ids) if id_ in found]

    def recent(self, filters: Filters, *, limit: int) -> list[Memory]:
        """Return the newest visible memories, newest first."""
        theirs = self._seen(filters, lambda store, view: store.recent(view, limit=limit))
        found = self._project.recent(filters, limit=limit)
        return sorted((*found, *theirs), key=_age, reverse=True)[: max(limit, 0)] if theirs else found

    def matching(self, patterns: Sequence[Pattern], filters: Filters, *, limit: int) -> list[int]:
        """Return ids of visible memories that hold all of some phrases and prefixes, those of the person last.

        At most `limit` of each database.
        """
        found, view = self._project.matching(patterns, filters, limit=limit), personal_view(filters)
        if view is None:
            return found
        theirs = self._personal.attempt(lambda store: store.matching(patterns, view, limit=limit)) or []
        return [*found, *(PERSONAL_IDS + id_ for id_ in theirs)]

    def timeline(self, anchor: int, filters: Filters, *, before: int, after: int) -> list[Memory]:
        """Return a memory with its neighbours in time, oldest first; an empty list if the anchor is not visible."""
        found = self.get([anchor], filters)
        if not found:
            return []
        at = cast("datetime", found[0].created_at)
        earlier, later = self._project.neighbours(at, anchor, filters, before=before, after=after)
        if (view := personal_view(filters)) is not None:
            place: dict[str, Any] = {"at": at, "id_": anchor - PERSONAL_IDS, "filters": view}
            look = methodcaller("neighbours", **place, before=before, after=after)
            theirs: tuple[list[Memory], list[Memory]] = self._personal.attempt(look) or ([], [])
            earlier += map(_shown, theirs[0])
            later += map(_shown, theirs[1])
        earlier = sorted(earlier, key=_age, reverse=True)[: max(before, 0)]
        return [*reversed(earlier), found[0], *sorted(later, key=_age)[: max(after, 0)]]

    def touch(self, ids: Iterable[int], *, tenant: str, now: datetime) -> None:
        """Record that memories of a tenant were recalled; gives no new version."""
        ours, theirs = _parted(ids)
        self._project.touch(ours, tenant=tenant, now=now)
        if theirs and (store := self._personal.there()) is not None:
            store.touch(theirs, tenant=tenant, now=now)

    def change(self, id_: int, filters: Filters, *, event: str, now: datetime, **fields: Any) -> Memory | None:
        """Change fields of one visible memory and add an entry to its history; return `None` if it does not exist.

        Raises:
            ValueError: a value does not fit, or the change gives a memory of the person another scope.
        """
        if id_ <= PERSONAL_IDS:
            return self._project.change(id_, filters, event=event, now=now, **fields)
        fields = renumbered_fields(fields, -PERSONAL_IDS)
        if fields.get("scope", EVERYWHERE) != EVERYWHERE:
            raise ValueError("a memory of the person holds everywhere; forget it, and add it to the project")
        store, view = self._personal.there(), personal_view(filters)
        if store is None or view is None:
            return None
        changed = store.change(id_ - PERSONAL_IDS, view, event=event, now=now, **fields)
        return None if changed is None else _shown(changed)

    def forget(self, ids: Sequence[int], filters: Filters, *, now: datetime) -> list[int]:
        """Erase visible memories in both databases; return their ids."""
        ours, theirs = _parted(ids)
        gone: set[int] = set()
        view = personal_view(filters)
        if theirs and view is not None and (store := self._personal.there()) is not None:
            gone.update(PERSONAL_IDS + id_ for id_ in store.forget(theirs, view, now=now))
        gone.update(self._project.forget(ours, filters, now=now) if ours else ())
        return [id_ for id_ in dict.fromkeys(ids) if id_ in gone]

    def drop_evidence(self, owner: Owner, turns: Collection[str], *, now: datetime) -> int:
        """Erase the excerpts of turns from all memories of an owner in both databases; return how many had one."""
        theirs = self._personal.attempt(lambda store: store.drop_evidence(owner, turns, now=now)) or 0
        return self._project.drop_evidence(owner, turns, now=now) + theirs

    def footprint(self, ids: Collection[int], *, tenant: str) -> Mapping[str, int]:
        """Return how many rows of both databases hold content of memories of a tenant, by place."""
        ours, theirs = _parted([*ids])
        found = Counter(self._project.footprint(ours, tenant=tenant))
        if theirs:
            found.update(self._personal.attempt(lambda store: store.footprint(theirs, tenant=tenant)) or {})
        return found

    def vectors_of(self, ids: Collection[int], model: str, *, tenant: str) -> dict[int, bytes]:
        """Return the embeddings by `model` of memories of a tenant in both databases, by id."""
        ours, theirs = _parted(ids)
        found = self._project.vectors_of(ours, model, tenant=tenant) if ours else {}
        if theirs:
            more = self._personal.attempt(lambda store: store.vectors_of(theirs, model, tenant=tenant)) or {}
            found |= {PERSONAL_IDS + id_: data for id_, data in more.items()}
        return found

    def history(self, id_: int, filters: Filters) -> list[Change]:
        """Return the history of a visible memory, oldest first."""
        if id_ <= PERSONAL_IDS:
            return self._project.history(id_, filters)
        if (view := personal_view(filters)) is None:
            return []
        found = self._personal.attempt(lambda store: store.history(id_ - PERSONAL_IDS, view)) or []
        return [renumbered_change(each, PERSONAL_IDS) for each in found]

    # --- People and sessions ------------------------------------------------------------------------------------

    def people(self, filters: Filters, *, query: str, limit: int) -> list[Person]:
        """Return people that visible memories are related to, most mentioned first."""
        found = self._project.people(filters, query=query, limit=LARGEST)
        if (view := personal_view(filters)) is not None:
            found += self._personal.attempt(lambda store: store.people(view, query=query, limit=LARGEST)) or []
        return ranked(found, query, limit)

    def summaries(self, owner: Owner, *, limit: int) -> list[SessionSummary]:
        """Return the newest summaries of the project's sessions."""
        return self._project.summaries(owner, limit=limit)

    def summarise(self, owner: Owner, summary: SessionSummary) -> None:
        """Store a session's summary with the project."""
        self._project.summarise(owner, summary)

    def drop_summaries(self, owner: Owner, sessions: Collection[str] | None = None) -> int:
        """Erase the summaries of sessions of an owner, of all its sessions if `None`; return their number."""
        return self._project.drop_summaries(owner, sessions)

    def drop_owner(self, owner: Owner) -> None:
        """Delete every row of an owner without memories, also those that tell that one was forgotten."""
        self._project.drop_owner(owner)
        if (store := self._personal.there()) is not None:
            store.drop_owner(owner)

    def holdings(self, owner: Owner) -> Mapping[str, int]:
        """Return how many rows of both databases tell of an owner, by place: with content, or about capture."""
        theirs = self._personal.attempt(lambda store: store.holdings(owner)) or {}
        return Counter(self._project.holdings(owner)) + Counter(theirs)

    def drop_capture_records(self, owner: Owner) -> None:
        """Delete what capture knows of an owner: captured turns, what they took on each day, forgotten texts."""
        self._project.drop_capture_records(owner)
        if (store := self._personal.there()) is not None:
            store.drop_capture_records(owner)

    def mark_forgotten(self, owner: Owner, texts: Collection[str]) -> None:
        """Record in the project that an owner has forgotten texts, by keyed hashes of their words."""
        self._project.mark_forgotten(owner, texts)

    def forgotten(self, owner: Owner, texts: Collection[str]) -> set[str]:
        """Return those texts whose words an owner has forgotten, in the project or everywhere."""
        theirs = self._personal.attempt(lambda store: store.forgotten(owner, texts)) or set()
        return self._project.forgotten(owner, texts) | theirs

    # --- Capture ------------------------------------------------------------------------------------------------

    def spent(self, owner: Owner, day: date) -> CaptureSpend:
        """Return what the capture of an owner's memories has taken on a day, in the project."""
        return self._project.spent(owner, day)

    def spend(self, owner: Owner, day: date, amount: CaptureSpend, most: CaptureSpend) -> bool:
        """Add to what capture takes on a day in the project, unless a number that grows would pass that of `most`."""
        return self._project.spend(owner, day, amount, most)

    def captured(self, owner: Owner, turns: Collection[str]) -> set[str]:
        """Return those turns from which the owner's memories were captured in the project."""
        return self._project.captured(owner, turns)

    def mark_captured(self, owner: Owner, turns: Collection[str]) -> None:
        """Record in the project that an owner's memories were captured from turns."""
        self._project.mark_captured(owner, turns)

    @property
    def queue(self) -> TurnQueue:
        """The turns of the project that wait to be captured."""
        return self._project.queue

    # --- The whole store ----------------------------------------------------------------------------------------

    def settle(self, analyser: int, analyse: Callable[[Memory], Analysed]) -> None:
        """Bring all terms to one analyser, those of the person as soon as their database is open."""
        self._project.settle(analyser, analyse)
        self._personal.settle(analyser, analyse)

    def count(self, owner: Owner) -> int:
        """Return how many memories of an owner the project can see."""
        return self._project.count(owner) + len(self._ids_of_person(owner))

    def ids(self, owner: Owner, scopes: Collection[Scope] = ()) -> list[int]:
        """Return the ids of an owner's memories, all or those of `scopes`."""
        theirs = self._ids_of_person(owner) if not scopes or EVERYWHERE in scopes else []
        return [*self._project.ids(owner, scopes), *(PERSONAL_IDS + id_ for id_ in theirs)]

    def owners(self, tenant: str | None) -> list[Owner]:
        """Return the owners that have memories, of a tenant or of all."""
        theirs = self._personal.attempt(lambda store: store.owners(tenant)) or []
        return list(dict.fromkeys([*self._project.owners(tenant), *theirs]))

    def drop_vectors(self, model: str) -> int:
        """Delete all embeddings by a model; return their number."""
        store = self._personal.there()
        return self._project.drop_vectors(model) + (0 if store is None else store.drop_vectors(model))

    def stats(self, tenant: str | None) -> Mapping[str, Any]:
        """Return the sums of the figures of both databases, and the number of memories in each."""
        ours, theirs = self._project.stats(tenant), self._personal.attempt(lambda store: store.stats(tenant)) or {}
        both = {name: _sum(value, theirs.get(name)) for name, value in ours.items()}
        each = {"project": ours["memories"], "person": theirs.get("memories", 0)}
        return {**both, "owners": len(self.owners(tenant)), "databases": each}

    def check(self, tenant: str | None) -> list[str]:
        """Return the problems of both databases, one sentence each; an empty list if both are whole."""
        return [*self._project.check(tenant), *self._problems_of_person()]

    def damaged(self, owner: Owner) -> list[DamagedEntry]:
        """Return the rows of an owner in both databases that fail their checksums, as far as they can be read."""
        store = self._personal.there()
        theirs = [] if store is None else store.damaged(owner)
        shown = (attrs.evolve(each, id=PERSONAL_IDS + each.id) if isinstance(each.id, int) else each for each in theirs)
        return [*self._project.damaged(owner), *shown]

    def damaged_among(self, ids: Sequence[int], filters: Filters) -> list[int]:
        """Return the ids of memories of the visible owners that fail their checksums, in both databases."""
        ours, theirs = _parted(ids)
        found = {*self._project.damaged_among(ours, filters)}
        if theirs:
            there = self._personal.attempt(lambda store: store.damaged_among(theirs, filters)) or []
            found.update(PERSONAL_IDS + id_ for id_ in there)
        return [id_ for id_ in dict.fromkeys(ids) if id_ in found]

    @property
    def parts(self) -> tuple[SingleStore, SingleStore | None]:
        """The database of the project, and that of the person, `None` if it does not exist yet.

        Raises:
            StoreError: the database of the person cannot be used.
        """
        return self._project, self._personal.there()

    def _write(self, work: Callable[[SqliteStore], list[T]]) -> list[T]:
        """Return the result of `work` on the database of the person, which is made if it is missing.

        Raises:
            PersonalStoreError: the database cannot be written.
        """
        try:
            return work(self._personal.made())
        except StoreError as error:
            raise PersonalStoreError(self._personal.path, error.category) from error

    def _problems_of_person(self) -> list[str]:
        try:
            store = self._personal.there()
            return (
                []
                if store is None
                else [f"{self._personal.path}: {each}" for each in store.check(None, shift=PERSONAL_IDS)]
            )
        except StoreError as error:
            return [str(error)]

    def _ids_of_person(self, owner: Owner) -> list[int]:
        return self._personal.attempt(lambda store: store.ids(owner, (EVERYWHERE,))) or []

    def _seen(self, filters: Filters, look: Callable[[SingleStore, Filters], list[Memory]]) -> list[Memory]:
        """Return the memories of the person that `look` finds and the project may see."""
        view = personal_view(filters)
        found = [] if view is None else self._personal.attempt(lambda store: look(store, view)) or []
        return [_shown(memory) for memory in found]


def _is_personal(item: Analysed) -> bool:
    return item.memory.scope == EVERYWHERE


def _parted(ids: Iterable[int]) -> tuple[list[int], list[int]]:
    """Return the ids in the project's database, and the ids in the person's without the offset."""
    ours, theirs = [], []
    for id_ in ids:
        if id_ <= PERSONAL_IDS:
            ours.append(id_)
        else:
            theirs.append(id_ - PERSONAL_IDS)
    return ours, theirs


def _shown(memory: Memory) -> Memory:
    return renumbered(memory, PERSONAL_IDS)


def _shown_kept(kept: Kept) -> Kept:
    superseded = tuple(PERSONAL_IDS + id_ for id_ in kept.superseded)
    return attrs.evolve(kept, id=PERSONAL_IDS + kept.id, superseded=superseded)


def _age(memory: Memory) -> tuple[Any, int]:
    return memory.created_at, memory.id


def _sum(ours: Any, theirs: Any) -> Any:
    """Return the sum of two numbers, or of the numbers in two tables."""
    if not isinstance(ours, Mapping):
        return ours + (theirs or 0)
    return {name: ours.get(name, 0) + (theirs or {}).get(name, 0) for name in dict.fromkeys((*ours, *(theirs or {})))}
