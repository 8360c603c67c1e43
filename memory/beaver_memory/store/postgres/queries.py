"""The named SQL of the store: `sql/<module>.sql` holds the statements of a module."""

from pathlib import Path

from beaver_toolkit.queries import Queries

FOLDER = Path(__file__).with_name("sql")


def postgres_queries(module: str) -> Queries:
    """Return the statements of a module."""
    return Queries(FOLDER / f"{module}.sql")
