"""The named SQL of the stores: `sql/<dialect>/<module>.sql` holds the statements of a module."""

from pathlib import Path

from beaver_toolkit.sqlite.queries import Queries

FOLDER = Path(__file__).with_name("sql")


def sqlite_queries(module: str) -> Queries:
    """Return the statements of a module in SQLite's dialect."""
    return Queries(FOLDER / "sqlite" / f"{module}.sql")
