"""The address of a PostgreSQL database, of which errors show the part without secrets."""

from typing import Any

from beaver_hostspecs import Secret
from beaver_memory.errors import StoreError
from beaver_memory.store.postgres.driver import NOT_SHOWN, driver
from beaver_toolkit.postgres_urls import is_misread

_USUAL = {
    "connect_timeout": 5,
    "application_name": "beaver_memory",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""A connection whose other end is gone is noticed within half a minute. The address may say otherwise."""

_OF_ADDRESSES = ("://", "=")
"""libpq reads a name of a database that holds one of them as an address of its own."""


class Address:
    """The address of a database.

    Args:
        connect_seconds: how long a connection may take to be made; as the address says unless given.
        url: `postgresql://user:password@host:port/database?options`, or the keywords of libpq.

    Raises:
        StoreError: psycopg is not installed, it cannot read the address, or libpq would take a part of the password
            for the host, the port or the database.
    """

    def __init__(self, url: Secret, connect_seconds: int | None = None) -> None:
        self._url = url
        from_url = _parsed(url)
        self.place = _place(from_url)
        given = {} if connect_seconds is None else {"connect_timeout": connect_seconds}
        self.parameters: dict[str, Any] = _USUAL | from_url | given

    def __repr__(self) -> str:
        return f"Address({self.place})"


def _parsed(url: Secret) -> dict[str, Any]:
    try:
        found: dict[str, Any] = driver().conninfo.conninfo_to_dict(url.reveal())
    except driver().Error:
        # The message of libpq may repeat a part of the address.
        raise StoreError(NOT_SHOWN, "wrong_address") from None
    if is_misread(url.reveal()) or any(sign in str(found.get("dbname", "")) for sign in _OF_ADDRESSES):
        raise StoreError(NOT_SHOWN, "wrong_address")
    return found


def _place(parameters: dict[str, Any]) -> str:
    """Return host, port and database in a form that may be shown."""
    host = parameters.get("host") or parameters.get("hostaddr") or "localhost"
    port = parameters.get("port") or "5432"
    name = parameters.get("dbname") or parameters.get("user") or "postgres"
    return f"postgresql://{host}:{port}/{name}"
