"""A block: immutable arrays for some memories of one owner.

A memory has one unit for each of its passages. A unit is a row number in the columns, in order of memories; postings
name units. Postings of labels (`type:fact`, `tag:x`) lie beside those of terms, so a filter is a set of units.
"""

import attrs
import numpy as np

from beaver_memory.records import Store

COLUMNS = {
    "ids": "i8", "passages": "u2", "lengths": "u2", "traits": "u2", "digests": "u4",
    "sessions": "u8", "speakers": "u8",
    "created": "f8", "updated": "f8", "expires": "f8", "valid_from": "f8", "valid_until": "f8",
    "mentions": "u4", "importance": "f4", "confidence": "f4", "pinned": "u1",
    "stores": "u1", "scopes": "u1", "projects": "u8", "agents": "u8",
}  # fmt: skip
"""The columns of a block and their types. A column with a single value takes no room."""

STORES = tuple(Store)
"""The stores behind the numbers in the column `stores`."""

SCOPES = ("global", "project", "session")
"""The scopes behind the numbers in the column `scopes`."""

LENGTH_BITS = 11
"""The bits of a posting's code that hold the length of its unit; the others hold how often the term occurs there."""

LONGEST = (1 << LENGTH_BITS) - 1
MOST_COUNT = (1 << (16 - LENGTH_BITS)) - 1

NONE = 0xFFFFFFFF
"""No unit."""


@attrs.frozen(kw_only=True, eq=False)
class Postings:
    """Lists of units by hash.

    Attributes:
        hashes: sorted.
        starts: the place in `units` where each list begins, and one more for the end.
        units: all lists, one after the other, each ascending.
        codes: beside `units`, for terms: how often the term occurs in the unit, and the unit's length. None for
            labels.
    """

    hashes: np.ndarray
    starts: np.ndarray
    units: np.ndarray
    codes: np.ndarray

    def find(self, hash_: int) -> int:
        """Return the place of a list, or -1."""
        place = int(self.hashes.searchsorted(np.uint64(hash_)))
        return place if place < len(self.hashes) and int(self.hashes[place]) == hash_ else -1

    def all_of(self, hashes: np.ndarray) -> list[slice]:
        """Return the slices of some hashes in `units` and `codes`: an empty one for a hash without a list."""
        if not len(self.hashes):
            return [slice(0, 0)] * len(hashes)
        places = np.minimum(self.hashes.searchsorted(hashes), len(self.hashes) - 1)
        firsts = self.starts[places]
        ends = np.where(self.hashes[places] == hashes, self.starts[places + 1], firsts)
        return list(map(slice, firsts.tolist(), ends.tolist()))

    def of(self, place: int) -> slice:
        """Return the slice of a list in `units` and `codes`."""
        return slice(int(self.starts[place]), int(self.starts[place + 1]))

    def units_of(self, hash_: int) -> np.ndarray:
        """Return the units of a hash."""
        place = self.find(hash_)
        return self.units[self.of(place)] if place >= 0 else self.units[:0]


@attrs.frozen(kw_only=True, eq=False)
class Block:
    """Some memories of one owner, as arrays.

    Attributes:
        columns: see `COLUMNS`.
        terms, labels: postings.
        sessions: the units of each session, in order of time.
        earlier, later: the neighbours of each unit in its session, or `NONE`.
        earliest_end, latest_start: when the first memory ceases to hold, and when the last one begins to.
        has_long: whether a memory has several units.
    """

    columns: dict[str, np.ndarray]
    terms: Postings
    labels: Postings
    sessions: Postings
    earlier: np.ndarray
    later: np.ndarray
    earliest_end: float = attrs.field(init=False)
    latest_start: float = attrs.field(init=False)
    has_long: bool = attrs.field(init=False)

    @earliest_end.default
    def _earliest_end(self) -> float:
        ends = (self.columns["expires"], self.columns["valid_until"])
        return min(float(each.min(initial=np.inf)) for each in ends)

    @latest_start.default
    def _latest_start(self) -> float:
        return float(self.columns["valid_from"].max(initial=-np.inf))

    @has_long.default
    def _has_long(self) -> bool:
        return bool(self.columns["passages"].any())

    @property
    def size(self) -> int:
        """The number of units."""
        return len(self.columns["ids"])


def compact(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return columns in which a column with a single value takes no room."""
    return {name: _compacted(values) for name, values in columns.items()}


def keys_of(block: Block) -> np.ndarray:
    """Return a number for each unit, ascending, from its memory and its passage."""
    keys: np.ndarray = block.columns["ids"] * 65_536 + block.columns["passages"]
    return keys


def linked(columns: dict[str, np.ndarray]) -> tuple[Postings, np.ndarray, np.ndarray]:
    """Return the units by session and time, and the neighbours of each unit in its session."""
    order = _by_session(columns)
    sessions = columns["sessions"][order]
    order, sessions = order[sessions != 0], sessions[sessions != 0]
    begins = np.append(True, sessions[1:] != sessions[:-1])[: len(sessions)]
    starts = begins.nonzero()[0]
    ends = np.append(starts, len(order)).astype("u8")
    postings = Postings(hashes=sessions[starts], starts=ends, units=order, codes=np.empty(0, "u2"))
    return postings, *sides(order, sessions, len(columns["ids"]))


def sides(order: np.ndarray, sessions: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the units before and after each one in its session, or `NONE`.

    Args:
        order: units, by session and time.
        sessions: the session of each unit.
        size: the number of all units.
    """
    earlier, later = np.full(size, NONE, "u4"), np.full(size, NONE, "u4")
    together = sessions[1:] == sessions[:-1]
    earlier[order[1:][together]] = order[:-1][together]
    later[order[:-1][together]] = order[1:][together]
    return earlier, later


def _by_session(columns: dict[str, np.ndarray]) -> np.ndarray:
    # Units are already in order of memories and passages, and a stable sort keeps that order.
    by_time = columns["created"].argsort(kind="stable")
    return by_time[columns["sessions"][by_time].argsort(kind="stable")].astype("u4")


def _compacted(values: np.ndarray) -> np.ndarray:
    if len(values) and bool((values == values[0]).all()):
        return np.broadcast_to(values[:1].copy(), values.shape)
    return values
