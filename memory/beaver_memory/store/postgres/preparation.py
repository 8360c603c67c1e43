"""Makes the tables of a store, and brings them to the schema of this version: forward only, in one transaction."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from beaver_memory.errors import StoreError
from beaver_memory.store.postgres.driver import driver
from beaver_memory.store.postgres.queries import postgres_queries

PACKAGE = "beaver_memory.store.postgres"
_SQL = postgres_queries("preparation")


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
