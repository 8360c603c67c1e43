"""Names of memories: random, 16 bytes, the same in every copy of a memory and unique in a tenant."""

import secrets
from collections.abc import Collection, Iterable

LENGTH = 16

Named = tuple[int, bytes]
"""The number of a tenant, and a uid."""


def new_uid() -> bytes:
    """Return a new uid."""
    return secrets.token_bytes(LENGTH)


def free_uids(given: Iterable[Named], taken: Collection[Named]) -> list[bytes]:
    """Return a uid for each new memory: the given one, or a new one where there is none or another memory has it.

    Args:
        given: the tenants of the memories, with the given uids; empty bytes for none.
        taken: the uids of stored memories.
    """
    used, found = {*taken}, []
    for tenant, uid in given:
        free = new_uid() if not uid or (tenant, uid) in used else uid
        used.add((tenant, free))
        found.append(free)
    return found
