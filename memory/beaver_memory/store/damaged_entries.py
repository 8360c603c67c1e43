"""Makes entries of damaged rows: what can still be read of each column, in a form that JSON holds."""

import base64
from collections.abc import Mapping
from typing import Any

from beaver_memory.records import DamagedEntry, Owner
from beaver_memory.store.checksums import BLOBS

UNREADABLE = object()
"""Stands for the value of a column that the database cannot read."""

SUMMARY = ("agent", "session", "request", "outcome", "decisions", "open_items", "observation_count", "created_at")
"""The columns of a summary, in the order of its checksum."""

_BLOBS = frozenset({*BLOBS, "data"})

RESTORE = "restore the database from a backup"


def entry_of(kind: str, id_: int | str, owner: Owner, values: Mapping[str, Any]) -> DamagedEntry:
    """Return the entry of a damaged row.

    Args:
        kind: the kind of the row.
        id_: the id or the name of the row.
        owner: the owner.
        values: the values of the columns, texts as text or as bytes; `UNREADABLE` for one that cannot be read.
    """
    columns = {name: _plain(name, value) for name, value in values.items() if value is not UNREADABLE}
    if len(columns) < len(values) or not values:
        reason = "unreadable"
    elif any(isinstance(value, dict) and name not in _BLOBS for name, value in columns.items()):
        reason = "not_utf8"
    else:
        reason = "checksum"
    return DamagedEntry(kind=kind, id=id_, owner=owner, reason=reason, columns=columns)


def _plain(name: str, value: Any) -> Any:
    if not isinstance(value, bytes | memoryview):
        return value
    data = bytes(value)
    if name not in _BLOBS:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    return {"base64": base64.b64encode(data).decode("ascii")}


def damaged_memory(id_: int, where: str) -> str:
    """Return the sentence about a memory that fails its checksum; `where` names its tenant."""
    return (
        f"Memory {id_}{where} fails its checksum and is not shown: keep what can be read of it with"
        f" `beaver memory export --damaged`, then {RESTORE}, or erase it with"
        f" `beaver memory forget --damaged {id_} --yes`."
    )


def broken_rule(count: int, what: str) -> str:
    """Return the sentence about rows that break a rule of the tables."""
    return f"{count} {what}: {RESTORE}."


def wrong_count(owner: Owner, counted: int, there: int) -> str:
    """Return the sentence about an owner with another number of memories than was counted."""
    of = f"{owner.kind} {owner.user!a}" if owner.user else "the user without a name"
    within = f" of tenant {owner.tenant!a}" if owner.tenant else ""
    if there < counted:
        return f"{counted - there} of {counted} memories of {of}{within} vanished: {RESTORE}."
    return f"There are {there} memories of {of}{within}, and {counted} were counted."
