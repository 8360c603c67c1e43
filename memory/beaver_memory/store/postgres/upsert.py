"""Adds memories that are not in the store yet; repeating one adds a mention."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs

from beaver_memory.records import Kept, NewMemory, Owner
from beaver_memory.store.fingerprint import digest_of
from beaver_memory.store.postgres.inserts import insert
from beaver_memory.store.postgres.owners import OwnerKey
from beaver_memory.store.postgres.queries import postgres_queries
from beaver_memory.store.postgres.rows import COLUMNS, Stored, new_values, stored_of, with_checksum
from beaver_memory.store.postgres.seen import Seen
from beaver_memory.store.postgres.update import add_history, change, checksum_of, entry_of
from beaver_memory.store.postgres.versions import lock_owners, take_versions
from beaver_memory.store.protocol import Analysed
from beaver_memory.texts import cleaned, cleaned_all, micros, micros_or_none, moment, moment_or_none

_SQL = postgres_queries("upsert")

_Place = tuple[Any, ...]
"""The values in which two equal memories agree."""


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
        changes: old and new values of each change, by field.
    """

    id: int
    owner: Owner
    mentions: int
    expires: datetime | None
    found: Stored | None = None
    item: Analysed | None = None
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
        there = known[_place_of(new)]
        same = next((each for each in there if each.fits(new, now)), None)
        if same is None:
            id_ = next(ids[keys[new.owner].tenant])
            there.insert(0, Candidate(id_, new.owner, 1, _stored_end(new), item=item))
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
    return [any(each.fits(item.memory, now) for each in known[_place_of(item.memory)]) for item in items]


def candidates(
    connection: Any, items: Sequence[Analysed], keys: Mapping[Owner, OwnerKey], *, lock: bool
) -> dict[_Place, list[Candidate]]:
    """Return the stored memories that may equal some, by the values in which they agree, the newest first."""
    hashes: dict[Owner, dict[bytes, None]] = defaultdict(dict)
    for item in items:
        hashes[item.memory.owner][_digest(item.memory)] = None
    known: dict[_Place, list[Candidate]] = defaultdict(list)
    sql = _SQL["same_hashes_locked" if lock else "same_hashes"].format(columns=COLUMNS)
    for owner, mine in hashes.items():
        key = keys[owner]
        given = {"tenant": key.tenant, "owner": key.owner, "hashes": [*mine], "starts": [each[:8] for each in mine]}
        for row in connection.execute(sql, given, binary=True).fetchall():
            found = stored_of(row, {key.owner: owner})
            if found is not None:
                memory = found.memory
                each = Candidate(memory.id, owner, memory.mention_count, memory.expires_at, found)
                known[_place_of(memory)].append(each)
    for there in known.values():
        there.sort(key=lambda each: -each.id)
    return known


def _by_tenant(keys: Any) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for key in sorted(keys, key=lambda each: (each.tenant, each.owner)):
        found[key.tenant].append(key.owner)
    return found


def _write(
    connection: Any, known: Mapping[_Place, Sequence[Candidate]], keys: Mapping[Owner, OwnerKey], now: int
) -> None:
    by_owner: dict[Owner, list[Candidate]] = defaultdict(list)
    for there in known.values():
        for each in there:
            if each.item is not None or each.changes:
                by_owner[each.owner].append(each)
    for owner in sorted(by_owner, key=lambda each: (keys[each].tenant, keys[each].owner)):
        _write_owner(connection, owner, keys[owner], sorted(by_owner[owner], key=lambda each: each.id), now)


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
            rows.append(with_checksum(owner, new_values(each.item, key, each.id, now) | ends))
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


def _place_of(new: NewMemory) -> _Place:
    project = "" if new.scope == "global" else cleaned(new.project)
    session = cleaned(new.session) if new.scope == "session" else ""
    ends = micros_or_none(new.valid_from), micros_or_none(new.valid_until)
    texts = cleaned(new.title), cleaned(new.narrative), cleaned_all(new.facts), cleaned(new.agent)
    return (new.owner, *texts, new.store, new.scope, project, session, *ends)
