"""The open turns, and the ids of recently closed ones."""

from collections import OrderedDict
from collections.abc import Iterator
from math import inf

import attrs

from beaver_hooks.turns.open_turn import OpenTurn
from beaver_hostspecs import Clock, TurnAlreadyOpen, TurnClosed, UnknownTurn

MOST_CLOSED = 10_000
"""The remembered ids of closed turns, so that closing one again is recognised and changes nothing."""


@attrs.frozen(kw_only=True)
class _Page:
    opened: OpenTurn
    since: float


class OpenTurns:
    """Open turns by id, and the ids of closed turns for as long as a turn may idle.

    Args:
        clock: the source of the time.
        idle_seconds: how long a turn may idle, and how long its id is remembered after it is closed.
    """

    def __init__(self, *, clock: Clock, idle_seconds: float) -> None:
        self._clock = clock
        self._idle_seconds = idle_seconds
        self._open: dict[str, _Page] = {}
        self._closed: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[OpenTurn]:
        return iter([page.opened for page in self._open.values()])

    def enter(self, opened: OpenTurn) -> None:
        """Enter a turn; its id must be new."""
        if opened.id in self._open:
            raise TurnAlreadyOpen("a turn with this id is open; commit or drop it first, or give each turn its own id")
        if opened.id in self._closed:
            raise TurnClosed("a turn with this id was closed; give each turn its own id")
        self._put(opened, self._clock.monotonic())

    def get(self, turn_id: str) -> OpenTurn | None:
        """Return an open turn, or `None`."""
        page = self._open.get(turn_id)
        return page.opened if page else None

    def holds(self, opened: OpenTurn) -> bool:
        """Whether this very turn is open."""
        return self.get(opened.id) is opened

    def find(self, turn_id: str) -> OpenTurn:
        """Return an open turn, or raise `TurnClosed` or `UnknownTurn`."""
        if (opened := self.get(turn_id)) is not None:
            return opened
        if turn_id in self._closed:
            raise TurnClosed("this turn was committed or dropped before")
        raise UnknownTurn("no turn with this id is open in this host")

    def touch(self, opened: OpenTurn) -> None:
        """Start the idle time of a turn anew, unless the turn is held."""
        page = self._open.get(opened.id)
        if page is not None and page.opened is opened and page.since != inf:
            self._put(opened, self._clock.monotonic())

    def hold(self, opened: OpenTurn) -> None:
        """Hold a turn that a `with` block will close, so that it never idles."""
        if self.holds(opened):
            self._put(opened, inf)

    def _put(self, opened: OpenTurn, since: float) -> None:
        # Removed first, so that the pages stay in the order of their last use.
        self._open.pop(opened.id, None)
        self._open[opened.id] = _Page(opened=opened, since=since)

    def close(self, opened: OpenTurn) -> bool:
        """Remove a turn; `False` if it was closed before."""
        if not self.holds(opened):
            return False
        del self._open[opened.id]
        self._closed[opened.id] = self._clock.monotonic()
        if len(self._closed) > MOST_CLOSED:
            self._closed.popitem(last=False)
        return True

    def overdue(self) -> list[OpenTurn]:
        """Return the turns that were not closed in time, and forget the ids of turns closed as long ago."""
        limit = self._clock.monotonic() - self._idle_seconds
        while self._closed and next(iter(self._closed.values())) <= limit:
            self._closed.popitem(last=False)
        idle = []
        for page in self._open.values():  # the longest unused first; held turns may be anywhere
            if page.since == inf:
                continue
            if page.since > limit:
                break
            idle.append(page.opened)
        return idle
