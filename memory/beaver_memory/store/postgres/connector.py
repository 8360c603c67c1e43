"""Opens the database, lends its connections, and turns its faults into store errors.

The database is opened when it is first used. A failure costs the caller one error, and is reported once; the next call
tries again. After a failure that took long, calls fail at once for a while, so that no turn waits for a server that
does not answer.

A statement that is alone has a transaction of its own. `moment` lends a connection that sees one moment of the
database; `writing` commits at the end of its block. After a fault the connection is closed and the next call makes a
new one.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

from beaver_hostspecs import Clock, Secret, SystemClock
from beaver_memory.errors import DamagedRow, StoreError
from beaver_memory.store.postgres.driver import NOT_SHOWN, category_of, category_of_refusal, connect, driver
from beaver_memory.store.postgres.pool import MOST, ConnectionPool
from beaver_memory.store.queries import queries_of
from beaver_toolkit.postgres_urls import is_misread

_SQL = queries_of("postgres", "connector")

_ENDING = frozenset({"cut_off", "starting", "refused"})
"""Categories of faults after which no connection is of use."""

_FOR_VALUES = "force_custom_plan"
_ONCE = "force_generic_plan"
"""When a connection plans a statement."""

SLOW_SECONDS = 0.5
"""A failure that took longer is not tried again at once."""

REST_SECONDS = 10.0
"""How long calls fail at once after a slow failure."""

Told = Callable[[StoreError | None], object]

_UNSURE = frozenset({"cut_off", "server_failed"})
"""Categories of faults that leave open whether a commit was carried out."""

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

PACKAGE = "beaver_memory.store.postgres"


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


class Connector:
    """Holds the connections of one store, for all threads of one process.

    Args:
        url: the address of the database.
        schema: the schema of the tables.
        most: how many connections there may be; half of them are for statements that are planned once.
        scripts: the migrations, oldest first; the store's own unless given.
        connect_seconds: how long a connection may take to be made; as the address says unless given.
        told: called with the reason why the database cannot be used, and with `None` when it can be used again.
        clock: the source of time.
    """

    def __init__(
        self,
        url: Secret,
        schema: str,
        most: int = MOST,
        scripts: Sequence[str] | None = None,
        *,
        connect_seconds: int | None = None,
        told: Told = bool,
        clock: Clock | None = None,
    ) -> None:
        self._address = Address(url, connect_seconds)
        self._schema = schema
        self._scripts = read_scripts() if scripts is None else tuple(scripts)
        self._pid = os.getpid()
        half, place = most // 2, self._address.place
        self._pool = ConnectionPool(partial(self._connect, _FOR_VALUES), place, most - half)
        self._repeating = ConnectionPool(partial(self._connect, _ONCE), place, half) if half else self._pool
        self._path = self._name = ""
        self._told, self._clock = told, SystemClock() if clock is None else clock
        self._lock = threading.RLock()
        self._first: Callable[[], object] = bool
        self._opened = self._closed = False
        self._resting: tuple[float, StoreError | None] = 0.0, None
        self._trouble: str | None = None

    @property
    def place(self) -> str:
        """Host, port and name of the database."""
        return self._address.place

    @property
    def identity(self) -> str:
        """The random name of the store in the database.

        Raises:
            StoreError: the database cannot be used.
        """
        if not self._name:
            self.open()
        return self._name

    def open(self, first: Callable[[], object] | None = None) -> None:
        """Make the tables if they are missing, and bring them up to date.

        Args:
            first: prepares the database before its first use, now or as soon as it can be used.

        Raises:
            StoreError: the database cannot be used.
        """
        if first is not None:
            self._first, self._opened = first, False
        with self._serving():
            pass

    @contextlib.contextmanager
    def reading(self) -> Iterator[Any]:
        """Lend a connection for single statements.

        Raises:
            StoreError: the database cannot be read.
        """
        with self._serving(), self._pool.lend() as connection:
            yield connection

    @contextlib.contextmanager
    def repeating(self) -> Iterator[Any]:
        """Lend a connection for single statements that it plans once, for any values.

        Raises:
            StoreError: the database cannot be read.
        """
        with self._serving(), self._repeating.lend() as connection:
            yield connection

    @contextlib.contextmanager
    def moment(self) -> Iterator[Any]:
        """Lend a connection that sees one moment of the database for a block.

        Raises:
            StoreError: the database cannot be read.
        """
        with self.reading() as connection:
            connection.execute(_SQL["begin_moment"])
            yield connection
            connection.execute(_SQL["commit"])

    @contextlib.contextmanager
    def settling(self) -> Iterator[Any]:
        """Lend a connection for a block, as `writing` does, without the lock that writers of terms share."""
        with self._committing(pipelined=False) as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self, *, pipelined: bool = True) -> Iterator[Any]:
        """Lend a connection for a block; commit at its end, durably, or undo all of it.

        Args:
            pipelined: the statements of the block go to the server together, until a result is fetched; without it,
                COPY is possible.

        Raises:
            StoreError: nothing of the block was written; with the category `unsure`, that is not known.
        """
        with self._committing(pipelined=pipelined) as connection:
            connection.execute(_SQL["share_terms"])
            yield connection

    def close(self) -> None:
        """Close all connections; a lent connection is closed when it is given back."""
        if os.getpid() == self._pid:
            self._closed = True
            self._drop()

    @contextlib.contextmanager
    def _committing(self, *, pipelined: bool) -> Iterator[Any]:
        with (
            self._serving(),
            self._pool.lend() as connection,
            connection.pipeline() if pipelined else contextlib.nullcontext() as pipeline,
        ):
            connection.execute(_SQL["begin"])
            yield connection
            self._commit(connection, pipeline)

    def _commit(self, connection: Any, pipeline: Any) -> None:
        try:
            connection.execute(_SQL["commit"])
            if pipeline is not None:
                pipeline.sync()
        except driver().Error as error:
            category = category_of(error)
            raise StoreError(self.place, "unsure" if category in _UNSURE else category) from error

    def _drop(self) -> None:
        for pool in (self._pool, self._repeating):
            pool.drop()

    def _connect(self, planning: str) -> Any:
        try:
            connection = connect(self._address.parameters)
        except driver().Error as error:
            raise StoreError(self.place, category_of_refusal(error)) from None
        try:
            self._prepare(connection, planning)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: Any, planning: str) -> None:
        if not self._path:
            self._path = prepare(connection, self.place, self._schema, self._scripts)
        connection.execute(_SQL["settings"], {"path": self._path, "planning": planning})
        if self._name and self._identity(connection) != self._name:
            raise StoreError(self.place, "replaced_database")

    def _identity(self, connection: Any) -> str:
        return str(connection.execute(_SQL["identity"]).fetchone()[0])

    def _verify(self) -> None:
        if os.getpid() != self._pid:
            raise StoreError(self.place, "forked")
        if self._closed:
            raise StoreError(self.place, "closed")

    @contextlib.contextmanager
    def _serving(self) -> Iterator[None]:
        """Open the database before its first use; report the first failure of a kind and the first success after it."""
        self._verify()
        try:
            self._ensure_open()
            with self._timed(), self._faults():
                yield
        except StoreError as error:
            self._tell(error)
            raise
        self._tell(None)

    def _ensure_open(self) -> None:
        # Under the lock: of many threads, one waits for a server that does not answer.
        with self._lock:
            until, failure = self._resting
            if failure is not None and self._clock.monotonic() < until:
                raise StoreError(failure.place, failure.category) from failure
            if self._opened:
                return
            self._opened = True  # for the calls of `first`
            try:
                with self._timed(), self._faults():
                    with self._pool.lend() as connection:
                        self._name = self._identity(connection)
                    self._first()
            except BaseException:
                self._opened = False
                raise

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        """Let later calls fail at once if this block fails slowly."""
        begun = self._clock.monotonic()
        try:
            yield
        except StoreError as error:
            now = self._clock.monotonic()
            if now - begun > SLOW_SECONDS:
                self._resting = now + REST_SECONDS, error
            raise

    def _tell(self, error: StoreError | None) -> None:
        category = None if error is None else error.category
        with self._lock:
            before, self._trouble = self._trouble, category
        if before != category:
            self._told(error)

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            self._afterwards(error.category)
            raise
        except DamagedRow as error:
            raise StoreError(self.place, "damaged") from error
        except driver().Error as error:
            category = category_of(error)
            self._afterwards(category)
            raise StoreError(self.place, category) from error

    def _afterwards(self, category: str) -> None:
        if category in _ENDING:
            self._drop()


def read_scripts() -> tuple[str, ...]:
    """Return the migrations, oldest first; the version of a store is the number of those that were applied to it."""
    scripts = (each for each in (files(PACKAGE) / "migrations").iterdir() if each.name.endswith(".sql"))
    return tuple(script.read_text("utf-8") for script in sorted(scripts, key=lambda each: each.name))


def prepare(connection: Any, place: str, schema: str, scripts: Sequence[str]) -> str:
    """Bring a store up to date, and return the search path for its connections.

    Args:
        connection: a connection in autocommit mode.
        place: the database, for errors.
        schema: the schema of the tables.
        scripts: the migrations, oldest first.

    Raises:
        StoreError: the database lacks pgvector, or was written by a newer version, or a migration failed.
    """
    version = _version(connection, schema)
    if version < len(scripts):
        with connection.transaction():
            # Read again under the lock: another process may have been faster.
            connection.execute(_SQL["lock_migrations"])
            _migrate(connection, place, schema, scripts)
        version = _version(connection, schema)
    if version > len(scripts):
        raise StoreError(place, "newer")
    return _path(connection, schema)


def _migrate(connection: Any, place: str, schema: str, scripts: Sequence[str]) -> None:
    _ensure_vectors(connection, place)
    done = _version(connection, schema)
    name = driver().sql.Identifier(schema)
    if connection.execute(_SQL["has_schema"], {"schema": schema}).fetchone() is None:
        connection.execute(driver().sql.SQL(_SQL["make_schema"]).format(schema=name))
    connection.execute(_SQL["set_path"], {"path": _path(connection, schema)})
    try:
        if done == 0:
            connection.execute(_SQL["make_history"])
        for number, script in enumerate(scripts[done:], done + 1):
            connection.execute(script)
            connection.execute(_SQL["add_version"], {"version": number})
    except (driver().ProgrammingError, driver().IntegrityError, driver().DataError) as error:
        raise StoreError(place, "not_migrated") from error


def _ensure_vectors(connection: Any, place: str) -> None:
    """Add the extension for vectors to the database if it lacks it."""
    if connection.execute(_SQL["vector_schema"]).fetchone() is None:
        try:
            connection.execute(_SQL["add_vectors"])
        except (driver().NotSupportedError, driver().ProgrammingError, driver().OperationalError) as error:
            raise StoreError(place, "no_vectors") from error


def _version(connection: Any, schema: str) -> int:
    if connection.execute(_SQL["has_versions"], {"schema": schema}).fetchone() is None:
        return 0
    query = driver().sql.SQL(_SQL["version"]).format(schema=driver().sql.Identifier(schema))
    return int(connection.execute(query).fetchone()[0])


def _path(connection: Any, schema: str) -> str:
    """Return the schemas of the tables and of the extension."""
    found = connection.execute(_SQL["vector_schema"]).fetchone()
    names = dict.fromkeys((schema, *(found or ())))
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)
