"""Reads the records of an audit trail with their numbers, which `audit verify` prints."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from beaver_hooks.audit.chain import ChainedEvent
from beaver_hooks.audit.database import Database
from beaver_hooks.audit.reader import unavailable
from beaver_toolkit.sqlite.errors import DatabaseError

STEP = 200


def newest(folder: Path, number: int, fits: Callable[[ChainedEvent], bool] | None) -> tuple[int, list[ChainedEvent]]:
    """Return the number of the last record, and the newest records that fit, oldest first.

    Raises:
        AuditUnavailable: the trail cannot be read.
    """
    with _reading(folder) as database:
        last = database.head().seq
        # With a filter, one pass in constant memory: matching records may be anywhere.
        some = database.tail(number) if fits is None else deque(filter(fits, database.records()), maxlen=number)
        found = [*some]
    # Other processes append meanwhile; a record must not be shown twice.
    return max([last, *(each.seq for each in found[-1:])]), found


def after(folder: Path, last: int) -> list[ChainedEvent]:
    """Return the records after number `last`; all of them if the trail was begun anew since.

    Raises:
        AuditUnavailable: the trail cannot be read.
    """
    with _reading(folder) as database:
        newest_now = database.head().seq
        if newest_now == last:
            return []
        known = last if newest_now > last else 0
        limit = STEP
        while True:
            found = database.tail(limit)
            if len(found) < limit or found[0].seq <= known + 1:
                return [each for each in found if each.seq > known]
            limit *= 4


@contextmanager
def _reading(folder: Path) -> Iterator[Database]:
    try:
        with closing(Database.read(folder)) as database:
            yield database
    except DatabaseError as error:
        raise unavailable(folder, error.category) from error
