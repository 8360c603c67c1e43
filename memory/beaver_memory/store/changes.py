"""What a change does to a memory and to its history, whatever the database."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs

from beaver_hostspecs.tokens import estimate_tokens
from beaver_memory.filters import Filters
from beaver_memory.records import Change, Memory, Store
from beaver_memory.store.fingerprint import hash_of
from beaver_memory.store.protocol import Analysed
from beaver_memory.store.rows import ANALYSED, EMBEDDED, clean, stored

LINKS = ("superseded_by", "doubted_by")
"""Fields that name another memory by its id."""

_FIXED = frozenset({"id", "uid", "owner", "hash", "token_count", "updated_at", "deleted_at"})
CHANGEABLE = frozenset(each.name for each in attrs.fields(Memory)) - _FIXED


def changed(old: Memory, fields: Mapping[str, Any]) -> tuple[Memory, list[str]]:
    """Return a memory with new values of fields, and the names of those that differ.

    Raises:
        TypeError: a field cannot be changed.
        ValueError: a value does not fit, or the text changes and `terms` or `length` is missing.
    """
    given = {name: value for name, value in fields.items() if name not in {"terms", "length"}}
    unknown = sorted(given.keys() - CHANGEABLE)
    if unknown:
        raise TypeError(f"these fields cannot be changed: {', '.join(unknown)}")
    if given.get("created_at", old.created_at) is None:
        raise ValueError("created_at of a memory that is stored must be a datetime")
    new: Memory = clean(attrs.evolve(old, **given))
    differing = [name for name in given if getattr(new, name) != getattr(old, name)]
    if ANALYSED & {*differing} and not {"terms", "length"} <= fields.keys():
        raise ValueError("a change of what a memory says comes with its terms and its length")
    if EMBEDDED & {*differing}:
        new = attrs.evolve(new, hash=hash_of(new.title, new.facts), token_count=estimate_tokens(new.text))
    return new, differing


def columns(
    new: Memory, differing: list[str], fields: Mapping[str, Any], known: tuple[bytes, int] | None
) -> dict[str, Any]:
    """Return the columns that change, with their new values.

    Args:
        new: the changed memory.
        differing: the names of its fields that differ.
        fields: the fields that the caller gave, with `terms` and `length` if the text changes.
        known: the terms and the length that the store has.
    """
    found = {name: stored(name, getattr(new, name)) for name in differing}
    if "terms" in fields and known != (fields["terms"], fields["length"]):
        found |= {"terms": fields["terms"], "length": fields["length"]}
    if EMBEDDED & {*differing}:
        found |= {"hash": bytes.fromhex(new.hash), "token_count": new.token_count}
    return found


def view_of(item: Analysed, filters: Filters) -> Filters:
    """Return the filters for the memories that a new one may end: those that the caller sees of its owner."""
    return filters.within(owners=tuple(each for each in filters.view.owners if each == item.memory.owner))


def renumbered(memory: Memory, offset: int) -> Memory:
    """Return a memory as another database numbers it: its id and those of its links raised by an offset."""
    links = {name: getattr(memory, name) for name in LINKS}
    return attrs.evolve(memory, id=memory.id + offset, **renumbered_fields(links, offset))


def renumbered_change(change: Change, offset: int) -> Change:
    """Return an entry of the history of a memory that another database numbers otherwise."""
    return attrs.evolve(change, old=renumbered_fields(change.old, offset), new=renumbered_fields(change.new, offset))


def renumbered_fields(fields: Mapping[str, Any], offset: int) -> dict[str, Any]:
    """Return fields of a memory with the ids of its links raised by an offset."""
    return {name: value + offset if name in LINKS and value is not None else value for name, value in fields.items()}


def later_end(one: datetime | None, other: datetime | None) -> datetime | None:
    """Return the later of two ends; `None` means never."""
    return None if one is None or other is None else max(one, other)


def visible_history(
    added_at: datetime, changes: Sequence[Change], store: Store, stores: Collection[Store]
) -> list[Change]:
    """Return the history of a memory, oldest first: its addition, and the changes within some stores.

    Args:
        added_at: when the store got the memory.
        changes: all changes, oldest first.
        store: the store of the memory now.
        stores: the visible stores.
    """
    visible: list[Change] = []
    for change in reversed(changes):
        # A change holds only the changed fields: going backwards tells in which store the memory was before.
        before = change.old.get("store", store)
        if {before, store} <= {*stores}:
            visible.append(change)
        store = before
    return [Change(event="ADD", at=added_at), *reversed(visible)]
