"""Every store does what a store must do."""

import contextlib

import pytest
from memory_stores import NAMES, STORES

from beaver_memory.store import conformance
from beaver_memory.testing.store_cases import changes, filters, forget, index, memories, tenants, upsert
from beaver_memory.testing.stores import STORE_CASES

SHOWS = {
    upsert.another_memory: pytest.mark.shows("002-007", "003-117"),
    changes.changed_with_history: pytest.mark.shows("002-008", "002-048", "002-074"),
    index.embeddings_by_model: pytest.mark.shows("002-047", "003-084"),
    memories.every_field_comes_back: [
        pytest.mark.shows(
            "002-001", "002-045", "003-040", "003-080", "003-081", "003-083", "003-085", "003-086", "003-087"
        ),
        pytest.mark.shows("003-091", "003-117", "004-008"),
    ],
    filters.filters_alone_and_in_pairs: pytest.mark.shows(
        "002-065", "003-075", "003-076", "003-078", "003-079", "003-082", "003-090", "003-116"
    ),
    forget.forgotten_everywhere: pytest.mark.shows("003-118"),
    forget.ids_are_never_used_again: pytest.mark.shows("003-073"),
    memories.known_people: pytest.mark.shows("002-050"),
    upsert.one_more_mention: pytest.mark.shows("002-007", "003-117"),
    filters.owners_are_apart: pytest.mark.shows("003-074", "003-077", "003-109"),
    memories.summaries_of_sessions: pytest.mark.shows("002-010", "002-049", "002-054", "002-056", "002-057"),
    tenants.the_same_id_in_two_tenants: pytest.mark.shows("003-074"),
    memories.touched: pytest.mark.shows("003-089"),
    memories.what_is_not_given: pytest.mark.shows("003-088"),
}


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name, marks=SHOWS.get(case.run, ())) for case in STORE_CASES]
)
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
