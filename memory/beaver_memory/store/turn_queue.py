"""The queue of turns that wait to be captured: one row for each committed turn, in the database of the memories.

A turn is captured at least once, and takes effect once: tenant, owner and its key name it, which is made from session,
turn and content. A captured turn is recorded in the transaction that removes its row, and a turn that is recorded has
no further effect.

A worker claims the turns of a session. A claim counts as an attempt and ends after `LEASE`, so another worker takes
over what a killed one had claimed. The end of a claim names its attempt, and changes nothing if another worker has
claimed the turn since. After `MOST_ATTEMPTS` a turn is parked: it stays until the user retries it or drops it.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from operator import itemgetter
from typing import Any, Protocol

import attrs
from attrs import field

from beaver_memory.records import Owner, QueuedSession
from beaver_memory.texts import EARLIEST, cleaned, micros, moment, moment_or_none
from beaver_memory.views import Project, Reach

IDLE = timedelta(seconds=60)
"""After this silence the turns of a session are captured, however few."""

LEASE = timedelta(minutes=5)
"""How long a claim lasts; longer than any capture."""

LONGEST_PAUSE = timedelta(hours=1)
"""The longest pause between two attempts."""

MOST_ATTEMPTS = 5
INTERRUPTED = "interrupted"
"""The error of a turn whose workers all ended without a word."""


@attrs.frozen(kw_only=True)
class QueuedTurn:
    """A committed turn that waits to be captured.

    Attributes:
        place: its session.
        turn: its id.
        content: its messages and what belongs to them, as JSON.
        queued_at: when it was committed.
        attempts: how often it was claimed.
        due_at: when it may be claimed again; `None` for a parked turn.
        error: the category of its last failure.
        key: names it; made from place, turn and content.
    """

    place: QueuedSession
    turn: str = field(converter=cleaned)
    content: str = field(converter=cleaned, repr=False)
    queued_at: datetime
    attempts: int = 0
    due_at: datetime | None = None
    error: str = ""
    key: str = field()

    @key.default
    def _key(self) -> str:
        return key_of(self.place, self.turn, self.content)

    @property
    def is_parked(self) -> bool:
        """Whether it waits for the user."""
        return self.due_at is None

    @property
    def is_whole(self) -> bool:
        """Whether the content is the one that was queued."""
        return self.key == key_of(self.place, self.turn, self.content)


class TurnQueue(Protocol):
    """Keeps turns until they are captured. Thread-safe; a write returns only when it is durable."""

    def put(self, turn: QueuedTurn) -> bool:
        """Add a turn, due after `IDLE`; return whether it was not there."""

    def sessions(
        self, now: datetime, reach: Reach, *, limit: int, before: datetime | None = None
    ) -> list[QueuedSession]:
        """Return sessions whose turns are due, the oldest first of each tenant.

        Args:
            now: the time.
            reach: their tenant and their project.
            limit: the most sessions.
            before: sessions whose turns were all queued before this moment are due as soon as one was never claimed.
        """

    def claim(self, place: QueuedSession, now: datetime, *, limit: int) -> list[QueuedTurn]:
        """Claim the turns of a session that were never claimed or are due, in order, at most `limit`.

        Turns that were claimed `MOST_ATTEMPTS` times are parked instead.
        """

    def finish(self, turns: Sequence[QueuedTurn]) -> None:
        """Record claimed turns as captured, and remove them, in one transaction."""

    def postpone(self, turns: Sequence[QueuedTurn], until: datetime | None, error: str) -> None:
        """End the claims of turns that could not be captured; they are due at a moment, or parked with `None`."""

    def owners(self, tenant: str | None) -> list[Owner]:
        """Return the owners of waiting turns, of a tenant or of all."""

    def waiting(self, owner: Owner, project: Project, *, limit: int) -> list[QueuedTurn]:
        """Return the turns of an owner in a project, in order."""

    def retry(self, owner: Owner, project: Project, now: datetime, key: str = "") -> int:
        """Make the parked turns of an owner in a project due, all or the one with a key; return their number."""

    def drop(self, owner: Owner, key: str) -> bool:
        """Erase a turn; return whether it was there."""

    def erase(self, owner: Owner, project: Project, session: str | None = None) -> int:
        """Erase the turns of an owner in a project, all or those of a session; return their number."""


def key_of(place: QueuedSession, turn: str, content: str) -> str:
    """Return the key of a turn among those of its owner: the same for the same session, turn and content."""
    parts = (place.session, place.project, place.agent, place.store.value, turn, content)
    hashed = sha256()
    for part in parts:
        data = cleaned(part).encode()
        hashed.update(f"{len(data)}:".encode() + data)
    return hashed.hexdigest()[:32]


def place_values(place: QueuedSession) -> dict[str, Any]:
    """Return the columns of a session by name."""
    return {"session": place.session, "project": place.project, "agent": place.agent, "store": place.store.value}


def values_of(turn: QueuedTurn) -> dict[str, Any]:
    """Return the columns of a new row by name."""
    return place_values(turn.place) | {
        "key": turn.key,
        "turn": turn.turn,
        "content": turn.content,
        "queued_at": micros(turn.queued_at),
        "due_at": micros(turn.queued_at + IDLE),
    }


def due_values(now: datetime, before: datetime | None) -> dict[str, Any]:
    """Return the moments at which sessions are due by name."""
    return claim_values(now) | {"before": EARLIEST if before is None else micros(before)}


def claim_values(now: datetime) -> dict[str, Any]:
    """Return the moments of a claim by name."""
    return {
        "now": micros(now),
        "until": micros(now + LEASE),
        "latest": micros(now + LONGEST_PAUSE),
        "most": MOST_ATTEMPTS,
    }


def turn_of(owner: Owner, row: Sequence[Any]) -> QueuedTurn:
    """Return a row as a turn."""
    key, turn, session, project, agent, store, content, queued_at, attempts, due_at, error, _ = row
    return QueuedTurn(
        place=QueuedSession(owner=owner, session=session, project=project, agent=agent, store=store),
        turn=turn,
        content=content,
        queued_at=moment(queued_at),
        attempts=attempts,
        due_at=moment_or_none(due_at),
        error=error,
        key=key,
    )


def in_order(owner: Owner, rows: Iterable[Sequence[Any]]) -> list[QueuedTurn]:
    """Return claimed rows as turns, in the order in which they were queued."""
    return [turn_of(owner, row) for row in sorted(rows, key=itemgetter(-1))]
