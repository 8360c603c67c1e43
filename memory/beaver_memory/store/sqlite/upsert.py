"""Adds memories that are not in the store yet; repeating one adds a mention."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import apsw
import attrs

from beaver_memory.filters import Filters, every_memory
from beaver_memory.records import Kept, NewMemory
from beaver_memory.store.changes import view_of
from beaver_memory.store.fingerprint import hash_of
from beaver_memory.store.protocol import Analysed
from beaver_memory.store.queries import queries_of
from beaver_memory.store.sqlite import inserts, update
from beaver_memory.store.sqlite.owners import OwnerKey, OwnerNumbers, TenantOwners
from beaver_memory.store.sqlite.reads import visible
from beaver_memory.texts import cleaned, cleaned_all, micros, micros_or_none, moment_or_none, packed

_SQL = queries_of("sqlite", "upsert")


def remember(connection: apsw.Connection, book: OwnerNumbers, item: Analysed, now: datetime, *, mention: bool) -> Kept:
    """Add a memory unless the store has it, within one transaction; see `MemoryStore.remember`."""
    new = item.memory
    owner = book.give(connection, new.owner)
    there = _same(connection, new, owner, now)
    whose = TenantOwners(owner[0], {owner[1]: new.owner}, book.damage)
    filters = every_memory([new.owner], now)
    # A damaged memory is never shown, so it is not the same one.
    if there is None or not visible(connection, whose, [there[0]], filters):
        (id_,) = inserts.add(connection, book, [item], now)
        return Kept(id=id_, outcome="stored")
    id_, mentions, expires = there[0], there[1] + int(mention), moment_or_none(there[2])
    if mention or expires != _later(expires, new.expires_at):
        fields = {"mention_count": mentions, "expires_at": _later(expires, new.expires_at)}
        update.change(connection, whose, id_, filters, event="UPDATE", now=now, fields=fields)
    return Kept(id=id_, outcome="duplicate", mentions=mentions)


def supersede(
    connection: apsw.Connection,
    book: OwnerNumbers,
    item: Analysed,
    ids: Sequence[int],
    filters: Filters,
    *,
    at: datetime,
    now: datetime,
) -> Kept:
    """Add a memory and end others, within one transaction; see `MemoryStore.supersede`."""
    kept = remember(connection, book, item, now, mention=True)
    seen = view_of(item, filters)
    whose = book.those_of(connection, seen.view.owners if seen.view.stores else ())
    fields = {"valid_until": at, "superseded_by": kept.id}
    ended = tuple(
        id_
        for id_ in dict.fromkeys(ids)
        if id_ != kept.id
        and update.change(connection, whose, id_, seen, event="DELETE", now=now, fields=fields) is not None
    )
    return attrs.evolve(kept, superseded=ended)


def is_there(connection: apsw.Connection, book: OwnerNumbers, item: Analysed, now: datetime) -> bool:
    """Return whether `remember` would find a memory."""
    owner = book.find(connection, item.memory.owner)
    return owner is not None and _same(connection, item.memory, owner, now) is not None


def _same(connection: apsw.Connection, new: NewMemory, owner: OwnerKey, now: datetime) -> Any:
    """Return id, mentions and end of the same memory, found by its uid, else by its words."""
    named = {"tenant": owner[0], "owner": owner[1], "uid": bytes.fromhex(new.uid)}
    there = connection.execute(_SQL["same_uid"], named).fetchone() if new.uid else None
    return there or connection.execute(_SQL["same_memory"], _key(new, owner, now)).fetchone()


def _key(new: NewMemory, owner: OwnerKey, now: datetime) -> dict[str, object]:
    texts = ("title", "narrative", "agent", "scope", "project", "session")
    return {
        **{name: cleaned(getattr(new, name)) for name in texts},
        "facts": packed(cleaned_all(new.facts)),
        "tenant": owner[0],
        "owner": owner[1],
        "hash": bytes.fromhex(hash_of(new.title, new.facts)),
        "store": new.store.value,
        "valid_from": micros_or_none(new.valid_from),
        "valid_until": micros_or_none(new.valid_until),
        "expires_at": micros_or_none(new.expires_at),
        "now": micros(now),
    }


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    """Return the later of two ends; `None` means never."""
    return None if one is None or other is None else max(one, other)
