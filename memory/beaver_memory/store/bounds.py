"""The ids and limits that every database accepts."""

from collections.abc import Iterable

LARGEST = 2**63 - 1


def usable(ids: Iterable[int]) -> list[int]:
    """Return the numbers that can be ids, each once."""
    return [id_ for id_ in dict.fromkeys(ids) if 0 < id_ <= LARGEST]


def bounded(limit: int) -> int:
    """Return the limit as a value that a database accepts."""
    return min(max(limit, 0), LARGEST)
