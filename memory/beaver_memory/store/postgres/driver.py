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

_BY_STATE = {
    "08": "cut_off",
    "22": "broken",
    "23": "broken",
    "25006": "standby",
    "28": "password",
    "3D": "no_database",
    "3F": "broken",
    "40": "locked",
    "42501": "no_rights",
    "42": "broken",
    "53100": "server_full",
    "53300": "busy",
    "53": "server_full",
    "55P03": "locked",
    "57014": "too_slow",
    "57P03": "starting",
    "57P04": "no_database",
    "57P05": "cut_off",
    "57": "cut_off",
    "58030": "server_full",
    "58": "server_failed",
    "XX001": "damaged",
    "XX002": "damaged",
    "XX": "server_failed",
}
"""By the whole SQLSTATE, or by its class."""

_BY_WORDS = (
    ("too many", "busy"),
    ("the database system", "starting"),
    ("password", "password"),
    ("authentication failed", "password"),
    ("no pg_hba.conf entry", "password"),
    ("role ", "password"),
    ("database ", "no_database"),
    ("remaining connection slots", "busy"),
    ("certificate", "tls"),
    ("SSL", "tls"),
)
"""By the message of libpq about a connection that was not made: it passes on no SQLSTATE."""


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


def category_of(error: Exception) -> str:
    """Return the category of an error of psycopg."""
    state = getattr(error, "sqlstate", None)
    if state:
        return _BY_STATE.get(state) or _BY_STATE.get(state[:2], "server_failed")
    return "cut_off" if isinstance(error, driver().OperationalError | driver().InterfaceError) else "broken"


def category_of_refusal(error: Exception) -> str:
    """Return the category of an error that occurred while a connection was made."""
    if getattr(error, "sqlstate", None):
        return category_of(error)
    text = str(error)
    if "FATAL" in text or "SSL" in text or "certificate" in text or "password" in text:
        return next((category for words, category in _BY_WORDS if words in text), "refused")
    return "wrong_address" if "invalid" in text else "refused"
