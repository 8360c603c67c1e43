"""Imports psycopg when the first store is opened, and prepares its connections."""

import logging
from collections.abc import Generator
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from beaver_memory.errors import StoreError

if TYPE_CHECKING:
    import psycopg

NOT_SHOWN = "PostgreSQL"
"""The place of a store whose address is not known."""


def driver() -> ModuleType:
    """Return psycopg.

    Raises:
        StoreError: it is not installed.
    """
    try:
        import psycopg  # noqa: PLC0415 - most users have no PostgreSQL, and the driver is an extra
    except ImportError as error:
        raise StoreError(NOT_SHOWN, "no_driver") from error
    return psycopg


class HalfVector:
    """The values of a `halfvec` in the form in which the server sends and receives them."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


def connect(parameters: dict[str, Any]) -> Any:
    """Return a connection without a transaction.

    It sends integers of one size, so that a statement is prepared once, and vectors as they are.
    """
    from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper  # noqa: PLC0415 - see `driver`

    connection = _connection_class().connect(**parameters, autocommit=True)
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_dumper(int, Int8BinaryDumper)
    connection.adapters.register_dumper(HalfVector, _vector_dumper())
    return connection


@cache
def _vector_dumper() -> Any:
    from psycopg.adapt import Dumper  # noqa: PLC0415 - see `driver`
    from psycopg.pq import Format  # noqa: PLC0415

    class VectorDumper(Dumper):
        format = Format.BINARY

        def dump(self, obj: HalfVector) -> bytes:
            return obj.data

    return VectorDumper


@cache
def _connection_class() -> type["psycopg.Connection[Any]"]:
    import psycopg  # noqa: PLC0415 - see `driver`
    from psycopg.waiting import Ready, Wait  # noqa: PLC0415

    # psycopg logs a lost connection beside the error that it raises; without a handler it would write to the terminal.
    logging.getLogger("psycopg").addHandler(logging.NullHandler())

    class Connection(psycopg.Connection[Any]):
        """Sends all of a pipeline before it waits for the answer.

        psycopg 3.3 waits for ever if the last statement of a pipeline does not fit into the buffers of the socket.
        """

        def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
            return super().wait(self._sending(gen), *args, **options)

        def _sending(self, gen: Any) -> Generator[Any, Any, Any]:
            try:
                state = next(gen)
                while True:
                    ready = yield Wait.RW if state == Wait.R and self.pgconn.flush() else state
                    if state == Wait.R and ready == Ready.W:
                        continue
                    state = gen.send(Ready.R if state == Wait.R and ready else ready)
            except StopIteration as ended:
                return ended.value

    return Connection
