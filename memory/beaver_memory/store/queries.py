"""The named SQL of the stores: `STORE/sql/MODULE.sql` holds the statements of a module."""

from pathlib import Path

from beaver_toolkit.queries import Queries


def queries_of(store: str, module: str) -> Queries:
    """Return the statements of a module of a store, `sqlite` or `postgres`."""
    return Queries(Path(__file__).parent / store / "sql" / f"{module}.sql")
