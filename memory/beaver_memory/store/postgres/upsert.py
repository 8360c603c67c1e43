"""Adds memories that are not in the store yet, and restores those of another store; repeating one adds a mention."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs

from beaver_memory.records import Kept, Memory, NewMemory, Owner
from beaver_memory.store.fingerprint import digest_of
from beaver_memory.store.postgres import embeddings
from beaver_memory.store.postgres.inserts import insert, put_rows, uids_of
from beaver_memory.store.postgres.owners import OwnerKey
from beaver_memory.store.postgres.rows import (
    COLUMNS,
    OBSERVATION,
    OBSERVATION_TYPES,
    TEXT,
    TEXT_TYPES,
    Stored,
    folded_of,
    labels_of,
    new_values,
    row_of,
    stored_of,
    values_of,
    with_checksum,
    words_of,
)
from beaver_memory.store.postgres.sql_filters import Seen
from beaver_memory.store.postgres.update import add_history, change, checksum_of, drop_traces, entry_of, without_content
from beaver_memory.store.postgres.versions import lock_owners, take_versions
from beaver_memory.store.protocol import Analysed, MemoryCopy, VectorRow
from beaver_memory.store.queries import queries_of
from beaver_memory.texts import cleaned, cleaned_all, micros, micros_or_none, moment, moment_or_none

_SQL = queries_of("postgres", "upsert")

_Place = tuple[Any, ...]
"""The values in which two equal memories agree: owner, words, place and time of validity; or owner and uid."""


@attrs.define
class Candidate:
    """A memory of the store, or a new one, to which equal memories are compared.

    Attributes:
        id: its id.
        owner: its owner.
        mentions: how often it was said.
        expires: when it expires.
        found: the memory as it is stored; `None` for a new one.
        item: the new memory; `None` for a stored one.
        uid: that of a new memory, in the end.
        changes: old and new values of each change, by field.
    """

    id: int
    owner: Owner
    mentions: int
    expires: datetime | None
    found: Stored | None = None
    item: Analysed | None = None
    uid: bytes = b""
    changes: list[dict[str, tuple[Any, Any]]] = attrs.field(factory=list)

    def fits(self, new: NewMemory, now: datetime) -> bool:
        """Return whether the memory has not expired, or expires when an equal one would."""
        return self.expires is None or self.expires > now or self.expires == new.expires_at

    def repeat(self, new: NewMemory, *, mention: bool) -> None:
        """Mention the memory once more, if `mention`, and let it expire at the later of both ends."""
        expires = None if self.expires is None or new.expires_at is None else max(self.expires, new.expires_at)
        changes: dict[str, tuple[Any, Any]] = {}
        if mention:
            changes["mention_count"] = (self.mentions, self.mentions + 1)
        if expires != self.expires:
            changes["expires_at"] = (self.expires, expires)
        self.mentions, self.expires = self.mentions + int(mention), expires
        if changes:
            self.changes.append(changes)


def remember(
    connection: Any,
    items: Sequence[Analysed],
    keys: Mapping[Owner, OwnerKey],
    ids: Mapping[int, Iterator[int]],
    now: datetime,
    *,
    mention: bool,
) -> list[Kept]:
    """Add memories unless the store has them, within one transaction; see `MemoryStore.remember`.

    Args:
        connection: a connection.
        items: the memories.
        keys: the numbers of their owners.
        ids: unused ids, by tenant.
        now: the present moment.
        mention: whether a repeated memory is mentioned once more.
    """
    for tenant, owners in _by_tenant(keys.values()).items():
        lock_owners(connection, tenant, owners)
    known = candidates(connection, items, keys, lock=True)
    kept: list[Kept] = []
    for item in items:
        new = item.memory
        same = _same(known, new, now)
        if same is None:
            id_ = next(ids[keys[new.owner].tenant])
            added = Candidate(id_, new.owner, 1, _stored_end(new), item=item)
            for place in _places_of(new):
                known[place].insert(0, added)
            kept.append(Kept(id=id_, outcome="stored"))
        else:
            same.repeat(new, mention=mention)
            kept.append(Kept(id=same.id, outcome="duplicate", mentions=same.mentions))
    _write(connection, known, keys, micros(now))
    return kept


def ended(connection: Any, seen: Seen, kept: Kept, ids: Sequence[int], *, at: datetime, now: datetime) -> Kept:
    """End visible memories in favour of one that was kept, within its transaction; see `MemoryStore.supersede`."""
    fields = {"valid_until": at, "superseded_by": kept.id}
    which = tuple(
        id_
        for id_ in dict.fromkeys(ids)
        if id_ != kept.id and change(connection, seen, id_, event="DELETE", now=now, fields=fields) is not None
    )
    return attrs.evolve(kept, superseded=which)


def knows(connection: Any, items: Sequence[Analysed], keys: Mapping[Owner, OwnerKey], now: datetime) -> list[bool]:
    """Return for each memory whether `remember` would find it."""
    known = candidates(connection, [item for item in items if item.memory.owner in keys], keys, lock=False)
    return [_same(known, item.memory, now) is not None for item in items]


def candidates(
    connection: Any, items: Sequence[Analysed], keys: Mapping[Owner, OwnerKey], *, lock: bool
) -> dict[_Place, list[Candidate]]:
    """Return the stored memories that may equal some, by the values in which they agree, the newest first."""
    by_owner: dict[Owner, list[NewMemory]] = defaultdict(list)
    for item in items:
        by_owner[item.memory.owner].append(item.memory)
    known: dict[_Place, list[Candidate]] = defaultdict(list)
    for owner, mine in by_owner.items():
        rows = _rows(connection, keys[owner], mine, lock=lock)
        found = (stored_of(row, {keys[owner].owner: owner}) for row in rows)
        for each in {each.memory.id: each for each in found if each is not None}.values():
            memory = each.memory
            candidate = Candidate(memory.id, owner, memory.mention_count, memory.expires_at, each)
            for place in _places_of(memory):
                known[place].append(candidate)
    for there in known.values():
        there.sort(key=lambda each: -each.id)
    return known


def _rows(connection: Any, key: OwnerKey, new: Sequence[NewMemory], *, lock: bool) -> list[Any]:
    """Return the rows of an owner that may equal new memories."""
    by_hash, by_uid = ("same_hashes_locked", "same_uids_locked") if lock else ("same_hashes", "same_uids")
    given: dict[str, Any] = {"tenant": key.tenant, "owner": key.owner}
    hashes = [*dict.fromkeys(map(_digest, new))]
    statement = _SQL[by_hash].format(columns=COLUMNS)
    words = given | {"hashes": hashes, "starts": [each[:8] for each in hashes]}
    rows: list[Any] = connection.execute(statement, words, binary=True).fetchall()
    if uids := [bytes.fromhex(each.uid) for each in new if each.uid]:
        statement = _SQL[by_uid].format(columns=COLUMNS)
        rows += connection.execute(statement, given | {"uids": uids}, binary=True).fetchall()
    return rows


def _same(known: Mapping[_Place, Sequence[Candidate]], new: NewMemory, now: datetime) -> Candidate | None:
    """Return the same memory, found by its uid, else by its words."""
    *named, worded = (known.get(place, ()) for place in _places_of(new))
    by_uid = (each for there in named for each in there)
    return next(by_uid, None) or next((each for each in worded if each.fits(new, now)), None)


def _by_tenant(keys: Any) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for key in sorted(keys, key=lambda each: (each.tenant, each.owner)):
        found[key.tenant].append(key.owner)
    return found


def _write(
    connection: Any, known: Mapping[_Place, Sequence[Candidate]], keys: Mapping[Owner, OwnerKey], now: int
) -> None:
    by_owner: dict[Owner, dict[int, Candidate]] = defaultdict(dict)
    for there in known.values():
        for each in there:
            if each.item is not None or each.changes:
                by_owner[each.owner][each.id] = each
    new = [each for mine in by_owner.values() for each in mine.values() if each.item is not None]
    uids = uids_of(connection, [each.item for each in new if each.item is not None], keys)
    for each, uid in zip(new, uids, strict=True):
        each.uid = uid
    for owner in sorted(by_owner, key=lambda each: (keys[each].tenant, keys[each].owner)):
        _write_owner(connection, owner, keys[owner], [by_owner[owner][id_] for id_ in sorted(by_owner[owner])], now)


def _write_owner(connection: Any, owner: Owner, key: OwnerKey, which: Sequence[Candidate], now: int) -> None:
    """Write the new and the repeated memories of an owner: each mention is a change with a version."""
    new = [each for each in which if each.item is not None]
    count = len(new) + sum(len(each.changes) for each in which)
    length = sum(each.item.length for each in new if each.item)
    version = take_versions(connection, key, count, live=len(new), length=length) - 1
    rows: list[dict[str, Any]] = []
    entries: list[dict[str, Any]] = []
    changed: list[dict[str, Any]] = []
    for each in which:
        version += int(each.item is not None)
        for changes in each.changes:
            version += 1
            entries.append(entry_of(each.id, version, "UPDATE", now, changes))
        if each.item is not None:
            ends = {"mention_count": each.mentions, "expires_at": micros_or_none(each.expires), "version": version}
            rows.append(with_checksum(owner, new_values(each.item, key, each.id, now, each.uid) | ends))
        elif each.found is not None:
            changed.append(_repeated(key, each, each.found, version, now))
    if rows:
        insert(connection, rows)
    if changed:
        with connection.cursor() as cursor:
            cursor.executemany(_SQL["repeat_memory"], changed)
    if entries:
        add_history(connection, key.tenant, entries)


def _repeated(key: OwnerKey, each: Candidate, found: Stored, version: int, now: int) -> dict[str, Any]:
    memory = attrs.evolve(found.memory, mention_count=each.mentions, expires_at=each.expires, updated_at=moment(now))
    return {
        "tenant": key.tenant,
        "id": each.id,
        "version": version,
        "now": now,
        "mentions": each.mentions,
        "expires": micros_or_none(each.expires),
        "checksum": checksum_of(attrs.evolve(found, memory=memory)),
    }


def _stored_end(new: NewMemory) -> datetime | None:
    return moment_or_none(micros_or_none(new.expires_at))


def _digest(new: NewMemory) -> bytes:
    return digest_of(cleaned(new.title), cleaned_all(new.facts))


def _places_of(new: NewMemory) -> list[_Place]:
    """Return owner and uid, if there is one, then the other values in which two equal memories agree."""
    project = "" if new.scope == "global" else cleaned(new.project)
    session = cleaned(new.session) if new.scope == "session" else ""
    ends = micros_or_none(new.valid_from), micros_or_none(new.valid_until)
    texts = cleaned(new.title), cleaned(new.narrative), cleaned_all(new.facts), cleaned(new.agent)
    worded = (new.owner, *texts, new.store, new.scope, project, session, *ends)
    return [(new.owner, new.uid), worded] if new.uid else [worded]


def restore(connection: Any, key: OwnerKey, owner: Owner, copies: Sequence[MemoryCopy]) -> None:
    """Store memories in place of earlier copies, within one transaction."""
    lock_owners(connection, key.tenant, [key.owner])
    ids = [each.row.id for each in copies]
    connection.execute(_SQL["raise_ids"], {"tenant": key.tenant, "next": max(ids) + 1})
    gone = connection.execute(_SQL["drop_memories"], {"tenant": key.tenant, "ids": ids}).fetchall()
    drop_traces(connection, key, ids)
    values = [_values(each, key, owner) for each in copies]
    live = [each for each in values if each["deleted_at"] is None]
    counts = {
        "version": max(each.row.version for each in copies),
        "live": len(live) - sum(was_live for was_live, _ in gone),
        "length": sum(each["length"] for each in live) - sum(length for _, length in gone),
    }
    connection.execute(_SQL["raise_counts"], {"tenant": key.tenant, "owner": key.owner} | counts)
    put_rows(connection, "observations", OBSERVATION, OBSERVATION_TYPES, [row_of(each, OBSERVATION) for each in values])
    put_rows(connection, "texts", TEXT, TEXT_TYPES, [row_of(each, TEXT) for each in live])
    add_history(connection, key.tenant, [entry for each in copies for entry in _entries(each)])


def restore_vectors(connection: Any, key: OwnerKey, model: tuple[int, str], rows: Sequence[VectorRow]) -> None:
    """Store embeddings under their versions, within one transaction."""
    given = {"tenant": key.tenant, "owner": key.owner, "version": max(row.version for row in rows)}
    connection.execute(_SQL["raise_counter"], given)
    embeddings.set_rows(connection, key, model, rows, {})


def _values(copy: MemoryCopy, key: OwnerKey, owner: Owner) -> dict[str, Any]:
    added = {"added_at": micros(copy.added_at)}
    places = {"tenant": key.tenant, "owner": key.owner, "version": copy.row.version}
    if copy.memory is None:
        at = micros(copy.added_at)
        empty: dict[str, Any] = {"labels": [], "words": []}
        return with_checksum(owner, without_content(copy.row.id, copy.row.uid, at, at)) | added | places | empty
    return with_checksum(owner, _content(copy, copy.memory, key)) | added | places


def _content(copy: MemoryCopy, memory: Memory, key: OwnerKey) -> dict[str, Any]:
    return {
        **values_of(Stored(memory, copy.row.terms, copy.row.length)),
        "labels": labels_of(memory),
        "words": words_of(key, copy.row.terms),
        "folded": folded_of(memory),
    }


def _entries(copy: MemoryCopy) -> list[dict[str, Any]]:
    """Return the entries of a memory's history; each has a number of its own below the memory's version."""
    first = copy.row.version - len(copy.history) + 1
    return [
        entry_of(copy.row.id, version, each.event, micros(each.at), {n: (each.old[n], each.new[n]) for n in each.old})
        for version, each in enumerate(copy.history, first)
    ]
