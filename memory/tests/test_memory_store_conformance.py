"""The SQLite store does what every store must do."""

import pytest

from beaver_memory.store.conformance import STORE_CASES
from beaver_memory.store.sqlite import SqliteStore


@pytest.mark.parametrize("case", STORE_CASES, ids=lambda case: case.name)
def test_the_sqlite_store_conforms(case, tmp_path):
    """Each case of the suite holds, and leaves a store that is whole."""
    case.run(lambda: SqliteStore.open(tmp_path / "memory.db"))

    store = SqliteStore.open(tmp_path / "memory.db")
    problems = store.check()
    store.close()
    assert [] == problems
