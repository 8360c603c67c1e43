"""Imports psycopg when the first store is opened, and prepares its connections."""

from types import ModuleType
from typing import Any

from beaver_memory.errors import StoreError

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


def adapt(connection: Any) -> None:
    """Let a connection send integers of one size, so that a statement is prepared once, and vectors as they are."""
    from psycopg.adapt import Dumper  # noqa: PLC0415 - see `driver`
    from psycopg.pq import Format  # noqa: PLC0415
    from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper  # noqa: PLC0415

    class VectorDumper(Dumper):
        format = Format.BINARY

        def dump(self, obj: HalfVector) -> bytes:
            return obj.data

    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_dumper(int, Int8BinaryDumper)
    connection.adapters.register_dumper(HalfVector, VectorDumper)
