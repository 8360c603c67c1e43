"""The index of a sample: the candidates that a store found for one search, ranked as if all memories were indexed."""

import attrs
import numpy as np

from beaver_memory.search.block import NONE, Block
from beaver_memory.search.block_builder import build
from beaver_memory.search.snapshot import IndexState, Model, for_model, part_of, with_vectors
from beaver_memory.store.candidate_store import CandidateRows


def sample_of(found: CandidateRows, model: Model | None) -> IndexState:
    """Return an index of candidates, with the figures of all that the search may see.

    A store counts memories. An index counts their passages, of which the candidates tell how many a memory has.
    """
    block = _truly_linked(build(found.rows), found.neighbours)
    memories, units = len(found.rows), block.size
    spread = units / memories if memories else 1.0
    part = attrs.evolve(
        part_of(block),
        live=round(found.memories * spread),
        length=found.length,
        frequencies={term: count * _passages_with(block, term) for term, count in found.frequencies.items()},
    )
    state = for_model(IndexState(parts=(part,)), model)
    return with_vectors(state, found.vectors) if found.vectors else state


def _passages_with(block: Block, term: int) -> float:
    """Return how many passages with a term a memory with that term has."""
    ids = block.columns["ids"][block.terms.units_of(term)]
    return len(ids) / len(np.unique(ids)) if len(ids) else 1.0


def _truly_linked(block: Block, neighbours: frozenset[tuple[int, int]]) -> Block:
    """Return a block that links only the units of one memory and those of neighbours: others are missing in between."""
    ids = block.columns["ids"]
    earlier, later = block.earlier.copy(), block.later.copy()
    for unit in (earlier != NONE).nonzero()[0].tolist():
        before = int(earlier[unit])
        pair = (int(ids[before]), int(ids[unit]))
        if pair[0] != pair[1] and pair not in neighbours:
            earlier[unit] = later[before] = NONE
    return attrs.evolve(block, earlier=earlier, later=later)
