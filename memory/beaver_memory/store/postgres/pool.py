"""Lends connections to PostgreSQL: a few for all threads, each to one thread at a time.

A connection is made in the thread that needs it, so a server that refuses is an error at once, with its reason. An idle
connection whose server has ended is dropped before it is lent.
"""

import contextlib
import select
import threading
from collections.abc import Callable, Iterator
from typing import Any

from beaver_memory.errors import StoreError

MOST = 8
"""Connections of one store."""

PATIENCE = 30.0
"""Seconds that a thread waits while all connections are lent."""


class ConnectionPool:
    """Connections, made when none is idle.

    Args:
        connect: makes a connection.
        place: the database, for errors.
        most: how many connections there may be.
    """

    def __init__(self, connect: Callable[[], Any], place: str, most: int = MOST) -> None:
        self._connect = connect
        self._place = place
        self._places = threading.BoundedSemaphore(most)
        self._lock = threading.Lock()
        self._idle: list[Any] = []
        self._generation = 0

    @contextlib.contextmanager
    def lend(self) -> Iterator[Any]:
        """Lend a connection for a block; it is closed if the block fails.

        Raises:
            StoreError: all connections are lent for too long.
        """
        if not self._places.acquire(timeout=PATIENCE):
            raise StoreError(self._place, "busy")
        try:
            generation, connection = self._generation, self._take()
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
            self._give_back(generation, connection)
        finally:
            self._places.release()

    def drop(self) -> None:
        """Close all connections; those that are lent, when they are given back."""
        with self._lock:
            self._generation += 1
            gone, self._idle = self._idle, []
        for connection in gone:
            connection.close()

    def _take(self) -> Any:
        while True:
            with self._lock:
                if not self._idle:
                    break
                connection = self._idle.pop()
            if not _has_ended(connection):
                return connection
            connection.close()
        return self._connect()

    def _give_back(self, generation: int, connection: Any) -> None:
        with self._lock:
            if generation == self._generation and not connection.closed:
                self._idle.append(connection)
                return
        connection.close()


def _has_ended(connection: Any) -> bool:
    """Return whether the server has ended an idle connection: it has something to say, and was not asked."""
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)
    return bool(poll.poll(0))
