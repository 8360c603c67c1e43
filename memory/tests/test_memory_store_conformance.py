"""The SQLite store does what every store must do."""

import pytest

from beaver_memory.store import conformance
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.testing.stores import STORE_CASES


@pytest.mark.parametrize("case", STORE_CASES, ids=lambda case: case.name)
def test_the_sqlite_store_conforms(case, tmp_path):
    """Each case of the suite holds, and leaves a store that is whole."""
    case.run(lambda: SqliteStore.open(tmp_path / "memory.db"))

    store = SqliteStore.open(tmp_path / "memory.db")
    problems = store.check()
    store.close()
    assert [] == problems


def test_the_first_name_of_the_suite():
    """Authors of stores find the same suite under its first name."""
    assert STORE_CASES is conformance.STORE_CASES
