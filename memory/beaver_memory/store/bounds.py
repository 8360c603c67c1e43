"""The ids and limits that every database accepts."""

from collections.abc import Iterable

import attrs

from beaver_memory.records import CaptureSpend

LARGEST = 2**63 - 1


def usable(ids: Iterable[int]) -> list[int]:
    """Return the numbers that can be ids, each once."""
    return [id_ for id_ in dict.fromkeys(ids) if 0 < id_ <= LARGEST]


def bounded(limit: int) -> int:
    """Return the limit as a value that a database accepts."""
    return min(max(limit, 0), LARGEST)


def limits(amount: CaptureSpend, most: CaptureSpend) -> dict[str, int]:
    """Return an amount and its limits by the names of the statements; a number that does not grow has no limit."""
    grows = attrs.asdict(amount)
    return grows | {
        f"most_{name}": bounded(number) if grows[name] else LARGEST for name, number in attrs.asdict(most).items()
    }
