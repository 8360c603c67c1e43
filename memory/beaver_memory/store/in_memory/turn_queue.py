"""The queue of turns in the memory of a process; see `TurnQueue` for what each method does."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime

import attrs

from beaver_memory.records import Owner, QueuedSession
from beaver_memory.store.in_memory.tables import Database, OwnerTable
from beaver_memory.store.turn_queue import IDLE, INTERRUPTED, LEASE, LONGEST_PAUSE, MOST_ATTEMPTS, QueuedTurn
from beaver_memory.texts import cleaned
from beaver_memory.views import Project, Reach, stored


class InMemoryTurnQueue:
    """The queue of one database.

    Args:
        locked: lends the database.
    """

    def __init__(self, locked: Callable[[], AbstractContextManager[Database]]) -> None:
        self._locked = locked

    def put(self, turn: QueuedTurn) -> bool:
        """Add a turn; return whether it was not there."""
        with self._locked() as database:
            rows = database.made(turn.place.owner).waiting
            is_new = turn.key not in rows
            if is_new:
                rows[turn.key] = attrs.evolve(turn, attempts=0, due_at=turn.queued_at + IDLE, error="")
            return is_new

    def sessions(
        self, now: datetime, reach: Reach, *, limit: int, before: datetime | None = None
    ) -> list[QueuedSession]:
        """Return sessions whose turns are due, the oldest first."""
        places: dict[QueuedSession, list[QueuedTurn]] = {}
        with self._locked() as database:
            for table in _tables(database, reach.tenant):
                for each in table.waiting.values():
                    if not each.is_parked and _is_of(each, reach.project):
                        places.setdefault(each.place, []).append(each)
        return [
            place
            for place, turns in places.items()
            if all(_is_due(each, now) for each in turns) or _is_old(turns, before)
        ][: max(limit, 0)]

    def claim(self, place: QueuedSession, now: datetime, *, limit: int) -> list[QueuedTurn]:
        """Claim the turns of a session that were never claimed or are due, in order."""
        with self._locked() as database:
            table = database.table(place.owner)
            rows = {} if table is None else table.waiting
            open_ = [each for each in rows.values() if each.place == place and not each.is_parked]
            due = [each for each in open_ if not each.attempts or _is_due(each, now)]
            for each in due:
                if each.attempts >= MOST_ATTEMPTS:
                    rows[each.key] = attrs.evolve(each, due_at=None, error=INTERRUPTED)
            claimed = [
                attrs.evolve(each, attempts=each.attempts + 1, due_at=now + LEASE)
                for each in due
                if each.attempts < MOST_ATTEMPTS
            ][: max(limit, 0)]
            rows.update((each.key, each) for each in claimed)
            return claimed

    def finish(self, turns: Sequence[QueuedTurn]) -> None:
        """Record claimed turns as captured, and remove them."""
        with self._locked() as database:
            for each in turns:
                table = database.made(each.place.owner)
                if _claimed(table, each):
                    del table.waiting[each.key]
                table.captured_turns.add(each.turn)

    def postpone(self, turns: Sequence[QueuedTurn], until: datetime | None, error: str) -> None:
        """End the claims of turns; they are due at a moment, or parked."""
        with self._locked() as database:
            for each in turns:
                table = database.made(each.place.owner)
                if _claimed(table, each):
                    table.waiting[each.key] = attrs.evolve(each, due_at=until, error=cleaned(error))

    def owners(self, tenant: str | None) -> list[Owner]:
        """Return the owners of waiting turns, of a tenant or of all."""
        with self._locked() as database:
            return [table.owner for table in _tables(database, tenant) if table.waiting]

    def waiting(self, owner: Owner, project: Project, *, limit: int) -> list[QueuedTurn]:
        """Return the turns of an owner in a project, in order."""
        with self._locked() as database:
            table = database.table(owner)
            rows = () if table is None else table.waiting.values()
            return [each for each in rows if _is_of(each, project)][: max(limit, 0)]

    def retry(self, owner: Owner, project: Project, now: datetime, key: str = "") -> int:
        """Make the parked turns of an owner in a project due; return their number."""
        with self._locked() as database:
            rows = database.made(owner).waiting
            mine = (each for each in rows.values() if _is_of(each, project))
            parked = [each for each in mine if each.is_parked and key in {"", each.key}]
            rows.update((each.key, attrs.evolve(each, attempts=0, due_at=now, error="")) for each in parked)
            return len(parked)

    def drop(self, owner: Owner, key: str) -> bool:
        """Erase a turn; return whether it was there."""
        with self._locked() as database:
            return database.made(owner).waiting.pop(key, None) is not None

    def erase(self, owner: Owner, project: Project, session: str | None = None) -> int:
        """Erase the turns of an owner in a project; return their number."""
        with self._locked() as database:
            rows = database.made(owner).waiting
            mine = [(key, each.place.session) for key, each in rows.items() if _is_of(each, project)]
            gone = [key for key, place in mine if session is None or place == cleaned(session)]
            for key in gone:
                del rows[key]
            return len(gone)


def _tables(database: Database, name: str | None) -> Iterator[OwnerTable]:
    return (each for each in database.tables.values() if name is None or each.owner.tenant == cleaned(name))


def _is_of(turn: QueuedTurn, project: Project) -> bool:
    return stored(project) in {None, turn.place.project}


def _is_due(turn: QueuedTurn, now: datetime) -> bool:
    # A lease or a pause that ends later than any that begins now was set by a clock that has gone back since.
    return turn.due_at is not None and not now < turn.due_at <= now + LONGEST_PAUSE


def _is_old(turns: Sequence[QueuedTurn], before: datetime | None) -> bool:
    is_fresh = any(not each.attempts for each in turns)
    return before is not None and is_fresh and all(each.queued_at < before for each in turns)


def _claimed(table: OwnerTable, turn: QueuedTurn) -> bool:
    there = table.waiting.get(turn.key)
    return there is not None and there.attempts == turn.attempts
