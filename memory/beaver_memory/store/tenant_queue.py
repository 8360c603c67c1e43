"""Shows the waiting turns of one tenant of a shared store; see `TurnQueue` for what each method does."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

import attrs

from beaver_memory.records import Owner, QueuedSession
from beaver_memory.store.shared import SharedStore
from beaver_memory.store.turn_queue import QueuedTurn

T = TypeVar("T")


class Ask(Protocol):
    """Asks the shared store."""

    def __call__(self, work: Callable[[SharedStore], T], /) -> T:
        """Return the result of `work` on the shared store."""


class TenantTurnQueue:
    """The queue of one tenant.

    Args:
        ask: asks the shared store.
        name: of the tenant.
        inner: returns the owner in the shared store.
        outer: returns an owner of the shared store as callers name it.
    """

    def __init__(
        self, ask: Ask, name: str, *, inner: Callable[[Owner], Owner], outer: Callable[[Owner], Owner]
    ) -> None:
        self._ask, self._name = ask, name
        self._inner_owner, self._outer_owner = inner, outer

    def put(self, turn: QueuedTurn) -> bool:
        """Add a turn; return whether it was not there."""
        (inner,) = self._inner([turn])
        return self._ask(lambda store: store.queue.put(inner))

    def sessions(self, now: datetime, *, limit: int, before: datetime | None = None) -> list[QueuedSession]:
        """Return sessions whose turns are due, the oldest first."""
        found = self._ask(lambda store: store.queue.sessions_of(self._name, now, limit=limit, before=before))
        return [attrs.evolve(each, owner=self._outer_owner(each.owner)) for each in found]

    def claim(self, place: QueuedSession, now: datetime, *, limit: int) -> list[QueuedTurn]:
        """Claim the turns of a session that were never claimed or are due, in order."""
        inner = self._place(place)
        return self._outer(self._ask(lambda store: store.queue.claim(inner, now, limit=limit)))

    def finish(self, turns: Sequence[QueuedTurn]) -> None:
        """Record claimed turns as captured, and remove them, in one transaction."""
        inner = self._inner(turns)
        self._ask(lambda store: store.queue.finish(inner))

    def postpone(self, turns: Sequence[QueuedTurn], until: datetime | None, error: str) -> None:
        """End the claims of turns; they are due at a moment, or parked."""
        inner = self._inner(turns)
        self._ask(lambda store: store.queue.postpone(inner, until, error))

    def owners(self) -> list[Owner]:
        """Return the owners of waiting turns."""
        found = self._ask(lambda store: store.queue.owners_of(self._name))
        return [self._outer_owner(each) for each in found]

    def waiting(self, owner: Owner, *, limit: int) -> list[QueuedTurn]:
        """Return the turns of an owner, in order."""
        inner = self._inner_owner(owner)
        return self._outer(self._ask(lambda store: store.queue.waiting(inner, limit=limit)))

    def retry(self, owner: Owner, now: datetime, key: str = "") -> int:
        """Make the parked turns of an owner due; return their number."""
        inner = self._inner_owner(owner)
        return self._ask(lambda store: store.queue.retry(inner, now, key))

    def drop(self, owner: Owner, key: str) -> bool:
        """Erase a turn; return whether it was there."""
        inner = self._inner_owner(owner)
        return self._ask(lambda store: store.queue.drop(inner, key))

    def erase(self, owner: Owner, session: str | None = None) -> int:
        """Erase the turns of an owner; return their number."""
        inner = self._inner_owner(owner)
        return self._ask(lambda store: store.queue.erase(inner, session))

    def _place(self, place: QueuedSession) -> QueuedSession:
        return attrs.evolve(place, owner=self._inner_owner(place.owner))

    def _inner(self, turns: Sequence[QueuedTurn]) -> list[QueuedTurn]:
        return [attrs.evolve(each, place=self._place(each.place)) for each in turns]

    def _outer(self, turns: Sequence[QueuedTurn]) -> list[QueuedTurn]:
        return [
            attrs.evolve(each, place=attrs.evolve(each.place, owner=self._outer_owner(each.place.owner)))
            for each in turns
        ]
