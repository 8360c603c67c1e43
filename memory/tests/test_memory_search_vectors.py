"""Vectors: scanning all of them is exact, looking at the signs first nearly so."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_memory.search import vectors as vectors_of
from beaver_memory.search.block_builder import build
from beaver_memory.search.terms import Analyser
from beaver_memory.store.protocol import IndexRow

TERMS, LENGTH = Analyser().pack(["one"])


def block_of(count):
    """Return a block of that many memories."""
    return build([IndexRow(id=number + 1, version=1, terms=TERMS, length=LENGTH) for number in range(count)])


def clustered(count, dimensions, seed, centres=60):
    """Return vectors of length 1 in clusters."""
    random = np.random.default_rng(seed)
    middle = np.random.default_rng(99).normal(size=(centres, dimensions))
    found = middle[random.integers(0, centres, count)] + 0.6 * random.normal(size=(count, dimensions))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype("f4")


def filled(rows):
    """Return a block and the vectors of it."""
    block = block_of(len(rows))
    vectors = vectors_of.empty(block.size, rows.shape[1])
    vectors_of.place(vectors, block, block.columns["ids"], [row.astype("<f2").tobytes() for row in rows])
    return block, vectors


@given(st.integers(1, 120), st.sampled_from([3, 8, 65, 384]), st.integers(0, 99), st.integers(1, 20), st.data())
def test_a_scan_is_exact(count, dimensions, seed, limit, data):
    """The nearest are those that numpy finds, of the same rounded vectors, whichever may be seen."""
    rows = clustered(count, dimensions, seed)
    _, vectors = filled(rows)
    query = clustered(1, dimensions, seed + 1)[0]
    mask = data.draw(st.none() | st.lists(st.booleans(), min_size=count, max_size=count))
    allowed = None if mask is None else np.array(mask, bool)
    stored, wanted = vectors.data.astype("f8"), vectors_of.in_steps(query).astype("f8")
    exact = stored @ wanted / (127 * np.sqrt(dimensions) / 6) ** 2
    seen = np.arange(count) if allowed is None else allowed.nonzero()[0]
    found = vectors_of.search(vectors, query, allowed=allowed, limit=limit)
    expected = sorted(seen.tolist(), key=lambda unit: (-exact[unit].round(9), -unit))[:limit]
    assert expected == found.units.tolist()
    assert exact[expected].tolist() == pytest.approx(found.scores.tolist(), abs=1e-9)
    assert found.scores.tolist() == vectors_of.score(vectors, query, found.units).tolist()
    if found.every is not None:
        assert exact.tolist() == pytest.approx(found.every.tolist(), abs=1e-9)


def test_nothing_may_be_seen():
    """Where nothing may be seen nothing is near."""
    rows = clustered(5, 8, 1)
    _, vectors = filled(rows)
    assert [] == vectors_of.search(vectors, rows[0], allowed=np.zeros(5, bool), limit=3).units.tolist()


def test_rounding_keeps_the_order():
    """Of the ten nearest by all digits nearly all are found by rounded vectors."""
    rows, queries = clustered(3_000, 384, 1), clustered(40, 384, 2)
    _, vectors = filled(rows)
    assert recall(rows, vectors, queries) >= 0.95


def recall(rows, vectors, queries):
    """Return the share of the ten nearest that is found."""
    found = 0
    for query in queries:
        units = vectors_of.search(vectors, query, allowed=None, limit=10).units
        found += len({*units.tolist()} & {*np.argpartition(-(rows @ query), 10)[:10].tolist()})
    return found / (10 * len(queries))


def test_signs_first(monkeypatch):
    """In two stages at least 95 of 100 of the nearest are found, in clustered data."""
    monkeypatch.setattr(vectors_of, "LARGE", 1_000)
    monkeypatch.setattr(vectors_of, "STEP", 4_096)
    monkeypatch.setattr(vectors_of, "RESCORED", 400)
    rows = clustered(20_000, 384, 3, centres=400)
    block = block_of(len(rows))
    vectors = vectors_of.empty(block.size, 384)
    vectors.data[:], vectors.signs[:], vectors.present[:] = vectors_of.in_steps(rows), vectors_of.signs_of(rows), True
    assert recall(rows, vectors, clustered(40, 384, 4, centres=400)) >= 0.95
    seen = np.zeros(len(rows), bool)
    seen[7] = True
    assert [7] == vectors_of.search(vectors, rows[0], allowed=seen, limit=5).units.tolist()


def test_vectors_that_do_not_fit_are_left_out():
    """A vector of another number of passages, of no finite values or of odd bytes is not taken."""
    block = block_of(3)
    vectors = vectors_of.empty(3, 4)
    good = np.ones(4, "<f2") / 2
    bad = np.array([np.nan, 1, 1, 1], "<f2")
    vectors_of.place(vectors, block, np.array([1, 2, 3]), [good.tobytes() * 2, bad.tobytes(), good.tobytes()[:-1]])
    assert [False] * 3 == vectors.present.tolist()
    vectors_of.place(vectors, block, np.array([2]), [good.tobytes()])
    assert [False, True, False] == vectors.present.tolist()
    assert ([1], [0.0, pytest.approx(1.0, abs=0.02), 0.0]) == (
        vectors_of.search(vectors, good.astype("f4"), allowed=None, limit=3).units.tolist(),
        vectors_of.score(vectors, good.astype("f4"), np.arange(3)).tolist(),
    )
