"""Lends connections for reading: a few for all threads, each to one thread at a time."""

import contextlib
import threading
from collections.abc import Callable, Iterator

import apsw

MOST_READERS = 8


class ReaderPool:
    """Connections for reading, opened when none is idle. A caller waits while all of them are lent.

    Args:
        connect: opens a connection.
    """

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        self._places = threading.BoundedSemaphore(MOST_READERS)
        self._lock = threading.Lock()
        self._idle: list[apsw.Connection] = []
        self._generation = 0

    @contextlib.contextmanager
    def lend(self, ready: Callable[[], None]) -> Iterator[apsw.Connection]:
        """Lend a connection that sees one moment of the database for a block.

        Args:
            ready: called before a connection is taken; raises if none may be.
        """
        with self._places:
            ready()
            generation, connection = self._generation, self._take()
            try:
                connection.execute("BEGIN")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                connection.close()
                raise
            self._give_back(generation, connection)

    def drop(self) -> None:
        """Close all connections; those that are lent, when they are given back."""
        with self._lock:
            self._generation += 1
            gone, self._idle = self._idle, []
        for connection in gone:
            connection.close()

    def _take(self) -> apsw.Connection:
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        return self._connect()

    def _give_back(self, generation: int, connection: apsw.Connection) -> None:
        with self._lock:
            if generation == self._generation:
                self._idle.append(connection)
                return
        connection.close()
