"""Lends connections for reading: a few for all threads, each to one thread at a time."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import apsw

MOST_READERS = 8


class ReaderPool:
    """Connections for reading, opened when none is idle. A caller waits while all of them are lent.

    Args:
        connect: opens a connection.
    """

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        # A queue in C: taking a place of a semaphore takes four times as long.
        self._places: SimpleQueue[int] = SimpleQueue()
        for number in range(MOST_READERS):
            self._places.put(number)
        self._lock = threading.Lock()
        self._idle: list[apsw.Connection] = []
        self._lent = _Lent()

    @contextlib.contextmanager
    def lend(self, ready: Callable[[], None]) -> Iterator[apsw.Connection]:
        """Lend a connection that sees one moment of the database for a block.

        Args:
            ready: called before a connection is taken; raises if none may be.
        """
        place = self._places.get()
        try:
            ready()
            lent = self._counted()
            try:
                connection = self._take()
                try:
                    connection.execute("BEGIN")
                    yield connection
                    # Nothing was written. A commit would raise the error of a damaged page again that the block met.
                    connection.execute("ROLLBACK")
                except BaseException:
                    connection.close()
                    raise
                self._give_back(lent, connection)
            finally:
                self._discount(lent)
        finally:
            self._places.put(place)

    def drop(self, then: Callable[[], None]) -> None:
        """Close all connections; those that are lent, when they are given back.

        Args:
            then: called after the last of them is closed, by the thread that closes it.
        """
        with self._lock:
            gone, self._idle = self._idle, []
            lent, self._lent = self._lent, _Lent()
            lent.then = then
            is_last = lent.count == 0
        for connection in gone:
            connection.close()
        if is_last:
            then()

    def _counted(self) -> "_Lent":
        with self._lock:
            lent = self._lent
            lent.count += 1
        return lent

    def _discount(self, lent: "_Lent") -> None:
        with self._lock:
            lent.count -= 1
            then = lent.then if lent.count == 0 else None
        if then is not None:
            then()

    def _take(self) -> apsw.Connection:
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        return self._connect()

    def _give_back(self, lent: "_Lent", connection: apsw.Connection) -> None:
        with self._lock:
            if lent is self._lent:
                self._idle.append(connection)
                return
        connection.close()


class _Lent:
    """The connections lent between two drops: how many are out, and what follows when the last one is closed."""

    def __init__(self) -> None:
        self.count = 0
        self.then: Callable[[], None] | None = None
