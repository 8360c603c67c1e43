"""Every store does what a store must do."""

import contextlib

import pytest
from memory_stores import NAMES, STORES

from beaver_memory.store import conformance
from beaver_memory.testing.stores import STORE_CASES


@pytest.mark.parametrize("case", STORE_CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("name", NAMES)
def test_the_store_conforms(name, case):
    """Each case of the suite holds for each store, and leaves a store that is whole."""
    with STORES[name]() as open_store:
        case.run(open_store)

        with contextlib.closing(open_store()) as store:
            assert [] == store.check(None)


def test_the_first_name_of_the_suite():
    """Authors of stores find the same suite under its first name."""
    assert STORE_CASES is conformance.STORE_CASES
