"""The rules for every store of memories, as a suite that any implementation runs without a test framework.

Give each case a function that opens a store over the same, at first empty, data each time it is called:

    for case in STORE_CASES:
        case.run(open_store)

A case raises `Disagreement` if the store breaks its rule. With pytest, parametrise over `STORE_CASES`.
"""

from beaver_memory.testing.store_cases import (
    analysers,
    changes,
    filters,
    forget,
    index,
    memories,
    supersession,
    tenants,
    texts,
    turn_queue,
    uids,
    upsert,
)
from beaver_memory.testing.store_cases.kit import Disagreement, OpenStore, StoreCase, case_of

STORE_CASES: tuple[StoreCase, ...] = tuple(
    case_of(check)
    for check in (
        *memories.CASES,
        *upsert.CASES,
        *uids.CASES,
        *filters.CASES,
        *changes.CASES,
        *supersession.CASES,
        *forget.CASES,
        *index.CASES,
        *tenants.CASES,
        *analysers.CASES,
        *texts.CASES,
        *turn_queue.CASES,
    )
)

__all__ = ["STORE_CASES", "Disagreement", "OpenStore", "StoreCase"]
