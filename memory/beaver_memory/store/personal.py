"""The database of the person, which all of that person's projects share.

The first use opens the database and the first write makes it, so that reading leaves no file behind. A fault of the
database costs a project the memories in it and nothing else: `told` gets the fault, and the store tries again after a
while.
"""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from beaver_hostspecs import Clock, SystemClock
from beaver_memory.errors import StoreError
from beaver_memory.records import Memory
from beaver_memory.store.protocol import Analysed
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.store.sqlite.connections import LossTold
from beaver_memory.store.sqlite.owners import DamageTold

T = TypeVar("T")

PATIENCE = 2.0
"""Seconds that reading waits for another process that locks the database: a turn must not wait for long."""

REST_SECONDS = 10.0
"""Seconds between attempts to read a database that could not be read."""

Told = Callable[[StoreError | None], object]


class PersonalStore:
    """Holds the database of the person beside that of a project. Thread-safe.

    Args:
        path: the database.
        told: called with the reason why the database cannot be read, and with `None` when it can be read again.
        clock: the source of time.
        damaged: receives the number of damaged rows that were found, each time that one more is.
        lost: receives the number of acknowledged commits that are missing, whenever more are.
    """

    def __init__(
        self,
        path: Path,
        *,
        told: Told = bool,
        clock: Clock | None = None,
        damaged: DamageTold = bool,
        lost: LossTold = bool,
    ) -> None:
        self._path = path
        self._told = told
        self._damaged = damaged
        self._lost = lost
        self._clock = SystemClock() if clock is None else clock
        self._lock = threading.Lock()
        self._store: SqliteStore | None = None
        self._prepare: Callable[[SqliteStore], object] = bool
        self._resting = float("-inf")
        self._closed = False
        self.trouble: StoreError | None = None

    @property
    def path(self) -> Path:
        """The database."""
        return self._path

    def settle(self, analyser: int, analyse: Callable[[Memory], Analysed]) -> None:
        """Bring all terms to one analyser, as soon as the database is open."""
        self._prepare = lambda store: store.settle(analyser, analyse)
        self.attempt(self._prepare)

    def attempt(self, work: Callable[[SqliteStore], T]) -> T | None:
        """Return the result of `work` on the database; `None` if it does not exist or cannot be read."""
        if self._clock.monotonic() < self._resting:
            return None
        try:
            store = self.there()
            found = None if store is None else work(store)
        except StoreError as error:
            self._resting = self._clock.monotonic() + REST_SECONDS
            self._tell(error)
            return None
        self._tell(None)
        return found

    def there(self) -> SqliteStore | None:
        """Return the database, or `None` if it does not exist yet.

        Raises:
            StoreError: the database cannot be used.
        """
        with self._lock:
            return self._open() if self._store is not None or self._exists() else None

    def made(self) -> SqliteStore:
        """Return the database, and make it if it is missing; its folder must exist.

        Raises:
            StoreError: the database cannot be used.
        """
        with self._lock:
            return self._open()

    def close(self) -> None:
        """Close the database. Closing again does nothing."""
        with self._lock:
            self._closed = True
            if self._store is not None:
                self._store.close()

    def _open(self) -> SqliteStore:
        if self._closed and self._store is None:
            raise StoreError(self._path, "closed")
        if self._store is None:
            store = SqliteStore.open(self._path, patience=PATIENCE, damaged=self._damaged, lost=self._lost)
            try:
                self._prepare(store)
            except BaseException:
                store.close()
                raise
            self._store = store
        return self._store

    def _exists(self) -> bool:
        try:
            os.lstat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise StoreError(self._path, "cannot_open") from error
        return True

    def _tell(self, trouble: StoreError | None) -> None:
        with self._lock:
            before, self.trouble = self.trouble, trouble
        if (before and before.category) != (trouble and trouble.category):
            self._told(trouble)
