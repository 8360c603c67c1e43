"""The rules for every store of memories, as a suite that any implementation runs without a test framework.

Give each case a function that opens a store over the same, at first empty, data each time it is called:

    for case in STORE_CASES:
        case.run(open_store)

A case raises `Disagreement` if the store breaks its rule. With pytest, parametrise over `STORE_CASES`.
"""

from beaver_memory.store.cases import (
    analysers,
    changes,
    filtering,
    forgetting,
    indexing,
    memories,
    remembering,
    texts,
)
from beaver_memory.store.cases.kit import Disagreement, OpenStore, StoreCase, case_of

STORE_CASES: tuple[StoreCase, ...] = tuple(
    case_of(check)
    for check in (
        *memories.CASES,
        *remembering.CASES,
        *filtering.CASES,
        *changes.CASES,
        *forgetting.CASES,
        *indexing.CASES,
        *analysers.CASES,
        *texts.CASES,
    )
)

__all__ = ["STORE_CASES", "Disagreement", "OpenStore", "StoreCase"]
