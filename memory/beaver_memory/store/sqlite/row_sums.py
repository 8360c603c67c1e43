"""SQL functions that give the checksums of rows; see `store/checksums.py`."""

from collections.abc import Callable
from typing import Any

import apsw

from beaver_memory.errors import DamagedRow
from beaver_memory.records import Owner
from beaver_memory.store.checksums import access_part, change_checksum, memory_checksum, texts_checksum

_Function = Callable[..., Any]


def register(connection: apsw.Connection) -> None:
    """Give a connection its functions: `found_sum`, `change_sum`, `texts_sum` and `touched_sum`."""
    functions: dict[str, _Function] = {
        "found_sum": _found,
        "change_sum": change_checksum,
        "texts_sum": _texts,
        "touched_sum": _touched,
    }
    for name, function in functions.items():
        connection.create_scalar_function(name, function, deterministic=True)


def _found(*values: Any) -> int | None:
    """Return the checksum of a memory, `None` of a damaged one."""
    try:
        found = memory_checksum(Owner(tenant=values[0], user=values[1], kind=values[2]), values[3:])
    except (DamagedRow, TypeError, ValueError):
        return None
    # A damaged moment makes a number that no checksum is.
    return found if found == _stored(found) else None


def _texts(tenant: str, user: str, kind: Any, *values: str | bytes | int) -> int:
    return texts_checksum(Owner(tenant=tenant, user=user, kind=kind), *values)


def _touched(checksum: int, before: int | None, after: int) -> int:
    return _stored(checksum ^ access_part(before) ^ access_part(after))


def _stored(number: int) -> int:
    """Return a number in the 64 bits of a column."""
    return (number + 2**63) % 2**64 - 2**63
