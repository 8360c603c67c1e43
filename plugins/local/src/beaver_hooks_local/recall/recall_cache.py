"""Caches of the recall gate: the last search of each session, and reusable answers. Thread-safe, bounded."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import attrs

T = TypeVar("T")

MOST = 1_000
"""Sessions, and answers, that are kept; the least recently used entry goes first."""


class RecentItems(Generic[T]):
    """The values of the keys that were used last.

    Args:
        most: how many are kept.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> T | None:
        """Return the value of a key, if it is kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: Hashable, value: T) -> None:
        """Keep a value."""
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key, made if it is not kept; two threads may both make it at the same time."""
        value = self.get(key)
        if value is None:
            value = make()
            self.put(key, value)
        return value


@attrs.frozen(kw_only=True)
class _Kept(Generic[T]):
    answer: T
    version: tuple[int, ...]
    until: float


class Answers(Generic[T]):
    """Answers by the fingerprint of the question, until a write or a time limit.

    Args:
        seconds: how long an answer is kept.
        most: how many answers are kept.
    """

    def __init__(self, seconds: float, most: int = 256) -> None:
        self._seconds = seconds
        self._kept: RecentItems[_Kept[T]] = RecentItems(most)

    def get(self, key: Hashable, *, version: tuple[int, ...], now: float) -> T | None:
        """Return an answer that is neither too old nor from before a write."""
        kept = self._kept.get(key)
        return kept.answer if kept is not None and kept.version == version and now < kept.until else None

    def put(
        self, key: Hashable, answer: T, *, version: tuple[int, ...], now: float, lasts: float | None = None
    ) -> None:
        """Keep an answer, for `lasts` seconds at most if given: a memory in it expires then."""
        seconds = self._seconds if lasts is None else min(self._seconds, lasts)
        self._kept.put(key, _Kept(answer=answer, version=version, until=now + seconds))
