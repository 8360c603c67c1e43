"""The connections that are opened together to a database, for all threads, and the lease of its files.

A connection belongs to the thread that borrowed it until the thread gives it back. A set that goes out of use closes
the idle ones at once and a lent one on its return; the last one ends the lease.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import apsw

from beaver_toolkit.sqlite.connections import close_unchanged
from beaver_toolkit.sqlite.lease import Lease

MOST_READERS = 8


class ConnectionSet:
    """One connection that writes, one that checkpoints, and a few for reading, each lent to one thread at a time.

    Args:
        lease: of the files.
        connect: opens a connection for reading; returns `None` if the files lost their names.
        writer: the connection that writes; `None` where nothing can be written.
        unwritable: why nothing can be written, as a category.

    Attributes:
        cleaner: the connection that checkpoints; `None` where nothing can be written.
        logged_pages: how many pages the log had after the last commit.
    """

    def __init__(
        self,
        lease: Lease,
        connect: Callable[[], apsw.Connection | None],
        *,
        writer: apsw.Connection | None = None,
        unwritable: str = "",
    ) -> None:
        self.lease, self.writer, self.unwritable = lease, writer, unwritable
        self.cleaner: apsw.Connection | None = None
        self.logged_pages = 0
        if writer is not None:
            writer.set_wal_hook(self._logged)
        self._connect = connect
        # A queue in C: taking a place of a semaphore takes four times as long.
        self._places: SimpleQueue[int] = SimpleQueue()
        for number in range(MOST_READERS):
            self._places.put(number)
        self._lock = threading.Lock()
        self._idle: list[apsw.Connection] = []
        self._is_retired = False
        self._fault = ""
        # The borrowers, and one more until the set is retired.
        self._holders = 1

    @contextlib.contextmanager
    def reading(self) -> Iterator[apsw.Connection | None]:
        """Lend a connection that sees one moment of the database for a block; wait while all of them are lent.

        It is `None` where no connection can be lent any more.
        """
        place = self._places.get()
        try:
            connection = self._borrow()
            if connection is None:
                yield None
                return
            is_sound = False
            try:
                connection.execute("BEGIN")
                yield connection
                # Nothing was written. A commit would raise the error of a damaged page again that the block met.
                connection.execute("ROLLBACK")
                is_sound = True
            finally:
                self._give_back(connection, is_sound=is_sound)
        finally:
            self._places.put(place)

    def fault(self) -> str:
        """Return why the files must not be used, as a category: they lost their names, or were overwritten."""
        fault = self.lease.fault()
        if fault or self.cleaner is None:
            return fault
        return "overwritten" if self.lease.is_overwritten(self.cleaner) else ""

    def clean(self, mode: int) -> None:
        """Checkpoint the log into the database; if others read it, the next write tries again."""
        if self.cleaner is not None:
            with contextlib.suppress(apsw.BusyError):
                self.lease.checkpoint(self.cleaner, mode)
                self.logged_pages = 0

    def retire(self, fault: str) -> str:
        """Lend no connection any more, and close each, a lent one on its return; return what a fault has cost.

        Args:
            fault: why the files must not be used any more, as a category, or an empty text.
        """
        mover = self.cleaner or self.writer
        if mover is not None and fault:
            fault = self.lease.rescue(mover, fault)
        if self.writer is not None:
            close_unchanged(self.writer)
        with self._lock:
            self._is_retired, self._fault = True, fault
            idle, self._idle = self._idle, []
        for connection in idle:
            close_unchanged(connection)
        self._release()
        return fault

    def _borrow(self) -> apsw.Connection | None:
        with self._lock:
            if self._is_retired:
                return None
            self._holders += 1
            if self._idle:
                return self._idle.pop()
        connection = None
        try:
            connection = self._connect()
        finally:
            if connection is None:
                self._release()
        return connection

    def _give_back(self, connection: apsw.Connection, *, is_sound: bool) -> None:
        with self._lock:
            is_kept = is_sound and not self._is_retired
            if is_kept:
                self._idle.append(connection)
        if not is_kept:
            close_unchanged(connection)
        self._release()

    def _release(self) -> None:
        with self._lock:
            self._holders -= 1
            is_last = not self._holders
        if is_last:
            self._end()

    def _end(self) -> None:
        """Close the last connection, and release the lease.

        The cleaner is the last: it checkpoints the log into the database, unless the interpreter closes it at its own
        end, where the error would be lost.
        """
        if self.cleaner is not None and self._fault:
            close_unchanged(self.cleaner)
        elif self.cleaner is not None:
            with contextlib.suppress(apsw.Error):
                self.cleaner.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
                self.cleaner.close()
        self.lease.end()

    def _logged(self, _: apsw.Connection, __: str, pages: int) -> int:
        self.logged_pages = pages
        return apsw.SQLITE_OK
