"""Adds, changes and forgets memories."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs

from beaver_hostspecs.tokens import estimate_tokens
from beaver_memory.filters import Filters
from beaver_memory.records import Change, Kept, Memory, NewMemory, Owner
from beaver_memory.store.changes import LINKS, changed, columns, later_end, view_of
from beaver_memory.store.fingerprint import hash_of, new_uid
from beaver_memory.store.in_memory.reads import visible
from beaver_memory.store.in_memory.tables import Database, OwnerTable, Row, index_row, key_of, twin_key
from beaver_memory.store.protocol import Analysed, MemoryCopy
from beaver_memory.store.rows import EMBEDDED, clean
from beaver_memory.texts import cleaned, micros, moment

_GIVEN = tuple(each.name for each in attrs.fields(NewMemory))


def add(database: Database, items: Sequence[Analysed], now: datetime) -> list[int]:
    """Add memories; return their ids, in order."""
    now = moment(micros(now))
    rows = [_new_row(item, now) for item in items]
    return [_insert(database, row) for row in rows]


def remember(database: Database, items: Sequence[Analysed], now: datetime, *, mention: bool) -> list[Kept]:
    """Add memories that the store does not hold; return the outcome of each, in order."""
    now = moment(micros(now))
    rows = [_new_row(item, now) for item in items]
    return [_keep(database, row, now, mention=mention) for row in rows]


def supersede(
    database: Database, item: Analysed, ids: Iterable[int], filters: Filters, *, at: datetime, now: datetime
) -> Kept:
    """Add a memory and end others; see `MemoryStore.supersede`."""
    (kept,) = remember(database, [item], now, mention=True)
    view, fields = view_of(item, filters), {"valid_until": at, "superseded_by": kept.id}
    ended = tuple(
        id_
        for id_ in dict.fromkeys(ids)
        if id_ != kept.id and change(database, id_, view, event="DELETE", now=now, fields=fields) is not None
    )
    return attrs.evolve(kept, superseded=ended)


def is_there(database: Database, item: Analysed, now: datetime) -> bool:
    """Return whether `remember` would find a memory."""
    row = _new_row(item, now)
    table = database.table(row.memory.owner)
    return table is not None and _same(database, table, row.memory, now) is not None


def change(
    database: Database, id_: int, filters: Filters, *, event: str, now: datetime, fields: Mapping[str, Any]
) -> Memory | None:
    """Change fields of a visible memory; see `MemoryStore.change`."""
    row = visible(database, [id_], filters).get(id_)
    if row is None:
        return None
    home = database.tenant(filters.view.tenant).homes[id_]
    return _alter(home, row, event=event, now=moment(micros(now)), fields=fields)


def forget(database: Database, ids: Iterable[int], filters: Filters, now: datetime) -> list[int]:
    """Erase visible memories; return their ids, in order."""
    gone, homes = list(visible(database, dict.fromkeys(ids), filters)), database.tenant(filters.view.tenant).homes
    for id_ in gone:
        homes.pop(id_).erase(id_, now)
    for table in database.found(filters.view.owners):
        for link in LINKS:
            for row in [row for row in table.rows.values() if getattr(row.memory, link) in gone]:
                _alter(table, row, event="UPDATE", now=moment(micros(now)), fields={link: None})
    return gone


def drop_evidence(table: OwnerTable, turns: Collection[str]) -> int:
    """Erase the excerpts of turns from the memories of an owner; return how many had one."""
    found = [row for row in table.rows.values() if row.memory.evidence and row.memory.origin in turns]
    for row in found:
        row.memory = attrs.evolve(row.memory, evidence="")
        table.put(row)
    return len(found)


def footprint(database: Database, tenant: str, ids: Iterable[int]) -> dict[str, int]:
    """Return how many rows hold content of memories, by place."""
    homes, found = database.tenant(tenant).homes, Counter[str]()
    for id_ in {*ids} & homes.keys():
        row = homes[id_].rows[id_]
        found["memories"] += 1
        found["evidence"] += bool(row.memory.evidence)
        found["vectors"] += sum(id_ in rows for rows in homes[id_].vectors.values())
        found["history"] += sum(bool(each.old or each.new) for each in row.history)
        found["labels"] += len(row.labels)
    return dict(found)


def restore(database: Database, owner: Owner, copies: Iterable[MemoryCopy]) -> None:
    """Store memories under their ids and versions."""
    table, tenant = database.made(owner), database.tenant(owner.tenant)
    for each in copies:
        memory, copied = each.memory, each.row
        row = None
        tenant.homes.pop(copied.id, None)
        if memory is not None:
            memory = attrs.evolve(memory, owner=table.owner)
            row = Row(
                memory=memory, terms=copied.terms, length=copied.length, added_at=each.added_at, history=each.history
            )
            copied = index_row(row, copied.version)
            tenant.homes[copied.id] = table
        table.restore(row, copied)
        tenant.uids[copied.uid] = copied.id
        tenant.last_id = max(tenant.last_id, copied.id)


def touch(database: Database, tenant: str, ids: Iterable[int], now: datetime) -> None:
    """Record that memories of a tenant were recalled."""
    homes = database.tenant(tenant).homes
    for id_ in ids:
        if id_ in homes:
            row = homes[id_].rows[id_]
            row.memory = attrs.evolve(row.memory, last_accessed_at=moment(micros(now)))


def _new_row(item: Analysed, now: datetime) -> Row:
    """Return the row of a new memory, without an id."""
    given = {name: getattr(item.memory, name) for name in _GIVEN}
    given |= {"owner": key_of(item.memory.owner), "created_at": given["created_at"] or now}
    memory = clean(Memory(**given, id=0, hash="", updated_at=now))
    memory = attrs.evolve(
        memory, hash=hash_of(memory.title, memory.facts), token_count=estimate_tokens(memory.text), updated_at=now
    )
    return Row(memory=memory, terms=item.terms, length=item.length, added_at=now)


def _insert(database: Database, row: Row) -> int:
    owner = row.memory.owner
    tenant, table = database.tenant(owner.tenant), database.made(owner)
    tenant.last_id += 1
    uid = bytes.fromhex(row.memory.uid)
    uid = new_uid() if not uid or uid in tenant.uids else uid
    tenant.uids[uid] = tenant.last_id
    row.memory = attrs.evolve(row.memory, id=tenant.last_id, uid=uid.hex())
    table.put(row)
    tenant.homes[tenant.last_id] = table
    return tenant.last_id


def _keep(database: Database, row: Row, now: datetime, *, mention: bool) -> Kept:
    table = database.made(row.memory.owner)
    there = _same(database, table, row.memory, now)
    if there is None:
        return Kept(id=_insert(database, row), outcome="stored")
    old, mentions = there.memory, there.memory.mention_count + int(mention)
    fields = {"mention_count": mentions, "expires_at": later_end(old.expires_at, row.memory.expires_at)}
    _alter(table, there, event="UPDATE", now=now, fields=fields)
    return Kept(id=old.id, outcome="duplicate", mentions=mentions)


def _same(database: Database, table: OwnerTable, new: Memory, now: datetime) -> Row | None:
    """Return the same memory, found by its uid, else by its words."""
    named = database.tenant(table.owner.tenant).uids.get(bytes.fromhex(new.uid), 0)
    return table.rows.get(named) or _twin(table, new, now)


def _twin(table: OwnerTable, new: Memory, now: datetime) -> Row | None:
    """Return the newest memory that is the same as a new one, unless it expired at another moment."""
    ids = sorted(table.twins.get(twin_key(new), ()), reverse=True)
    rows = (table.rows[id_] for id_ in ids)
    return next((row for row in rows if _lasts(row.memory.expires_at, new.expires_at, now)), None)


def _lasts(end: datetime | None, new_end: datetime | None, now: datetime) -> bool:
    return end is None or end > now or end == new_end


def _alter(table: OwnerTable, row: Row, *, event: str, now: datetime, fields: Mapping[str, Any]) -> Memory:
    """Change fields of a memory, if a value differs; return the memory."""
    old = row.memory
    new, differing = changed(old, fields)
    values = columns(new, differing, fields, (row.terms, row.length))
    if not values:
        return old
    new = attrs.evolve(new, updated_at=now)
    before, after = ({name: getattr(each, name) for name in differing} for each in (old, new))
    entries = (Change(event=cleaned(event), at=now, old=before, new=after),) if differing else ()
    terms, length = values.get("terms", row.terms), values.get("length", row.length)
    table.put(Row(memory=new, terms=terms, length=length, added_at=row.added_at, history=(*row.history, *entries)))
    if EMBEDDED & {*differing}:
        table.outdate(old.id)
    elif "terms" in values:
        table.renew(old.id)
    return new
