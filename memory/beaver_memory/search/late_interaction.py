"""Late interaction: compares each token of a query with the tokens of memories (MaxSim). Pure.

A memory has the tokens of each of its first passages: the mean of three that follow one another is one vector, in int8.
Those of a memory are packed into bytes: the version of this form, the number of passages, for each passage the number
of its vectors, then all vectors. A passage fits as well as, on average, the best of its vectors fits each token of the
query; less if it has many vectors, of which one fits anything. That takes the place of the passage's cosine, so every
formula can use it.
"""

import struct
from collections.abc import Mapping, Sequence

import attrs
import numpy as np
import simsimd

from beaver_memory.search.candidates import Candidates
from beaver_memory.search.formulas import Ranked

MODEL = "/tokens"
"""Added to the name of a model, it names the vectors of its tokens in a store."""

COMPARED = 50
"""Memories whose tokens are compared, the first ones of a ranking."""

PASSAGES = 8
"""Passages of a memory that have tokens, from its beginning: about 7,000 characters."""

POOLED = 3
"""Tokens whose mean is one vector."""

MOST = 128
"""Vectors of a passage; more tokens are pooled, if it has too many."""

USUAL = 24
"""Vectors from which on a passage counts as long: about 55 words."""

MALUS = 0.02
"""What a long passage loses of a cosine for each doubling of its vectors."""

MOST_OF_QUERY = 64
"""Vectors of a query; the tokens of a longer one are pooled."""

WEIGHT = 1.0
"""How far tokens take the place of the cosine, 0 to 1."""

SHARE = "tokens"
"""The signal in the shares of a score: what comparing tokens has changed."""

_VERSION = 1
_HEAD = struct.Struct("<BB")
_COUNT = struct.Struct("<B")
_LARGEST = 127


def query_tokens(tokens: np.ndarray) -> np.ndarray:
    """Return the vectors of a query's tokens in bytes."""
    return _in_bytes(_pooled(tokens, 1, MOST_OF_QUERY))


def packed(passages: Sequence[np.ndarray]) -> bytes:
    """Return the tokens of a memory's first passages, each an array with one row for each token."""
    rows = [_in_bytes(_pooled(each, POOLED, MOST)) for each in passages[:PASSAGES]]
    counts = b"".join(_COUNT.pack(len(each)) for each in rows)
    return _HEAD.pack(_VERSION, len(rows)) + counts + b"".join(each.tobytes() for each in rows)


def unpacked(data: bytes, dimensions: int) -> list[np.ndarray]:
    """Return the vectors of each passage that `packed` has packed; none if the bytes are of another form."""
    if len(data) < _HEAD.size or data[0] != _VERSION:
        return []
    begin = _HEAD.size + data[1]
    counts = [*data[_HEAD.size : begin]]
    if len(counts) != data[1] or len(data) - begin != dimensions * sum(counts):
        return []
    rows = np.frombuffer(data, "i1", offset=begin).reshape(-1, dimensions)
    return np.split(rows, np.cumsum(counts)[:-1]) if counts else []


def first_memories(found: Candidates, ranked: Ranked) -> list[int]:
    """Return the memories whose tokens are compared, best first."""
    ids = found.columns["ids"][np.argsort(-ranked.scores, kind="stable")].tolist()
    return list(dict.fromkeys(ids))[:COMPARED]


def closer(
    found: Candidates, query: np.ndarray, tokens: Mapping[int, bytes], weight: float = WEIGHT
) -> Candidates | None:
    """Return the candidates with cosines by their tokens; `None` if fewer than two have tokens.

    The others keep their cosine. The mean of those that are replaced stays the same, so that neither group gains.

    Args:
        found: the candidates.
        query: the vectors of the query's tokens; see `query_tokens`.
        tokens: what `packed` has returned, by memory.
        weight: how far they take the place of the cosine, 0 to 1.
    """
    if found.cosine is None:
        return None
    places, rows = _rows(found, tokens, query.shape[1])
    if len(places) < 2:  # noqa: PLR2004 - one cannot be compared with another
        return None
    fits = _fits(query, rows)
    cosine = found.cosine.astype("f8")
    replaced = cosine[places]
    cosine[places] += weight * ((fits - fits.mean()) - (replaced - replaced.mean()))
    return attrs.evolve(found, cosine=cosine)


def told(before: Ranked, after: Ranked) -> Ranked:
    """Return the later scores, with the shares of the earlier ones and what has changed as one more share."""
    return Ranked(scores=after.scores, shares={**before.shares, SHARE: after.scores - before.scores})


def _rows(found: Candidates, tokens: Mapping[int, bytes], dimensions: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the places of candidates that have a vector and tokens, and the vectors of their tokens."""
    known = {id_: unpacked(data, dimensions) for id_, data in tokens.items()}
    places, rows = [], []
    columns = (found.columns["ids"].tolist(), found.columns["passages"].tolist(), found.embedded.tolist())
    for place, (id_, passage, embedded) in enumerate(zip(*columns, strict=True)):
        passages = known.get(id_, ())
        if embedded and passage < len(passages) and len(passages[passage]):
            places.append(place)
            rows.append(passages[passage])
    return np.array(places, "i8"), rows


def _fits(query: np.ndarray, rows: Sequence[np.ndarray]) -> np.ndarray:
    """Return for each passage how near its nearest vectors are to the query's tokens, on average, less the malus."""
    cosines = 1 - np.asarray(simsimd.cdist(query, np.concatenate(rows), metric="cos"))
    counts = np.array([len(each) for each in rows])
    best = np.maximum.reduceat(cosines, np.cumsum(counts) - counts, axis=1).mean(axis=0)
    fits: np.ndarray = best - MALUS * np.log2(np.maximum(counts / USUAL, 1))
    return fits


def _pooled(tokens: np.ndarray, least: int, most: int) -> np.ndarray:
    """Return the means of tokens that follow one another: of at least `least` each, and at most `most` means."""
    size = max(least, -(-len(tokens) // most))
    starts = np.arange(0, len(tokens), size)
    # The direction alone counts, so that the sum does for the mean.
    sums: np.ndarray = np.add.reduceat(tokens, starts, axis=0)
    return sums


def _in_bytes(rows: np.ndarray) -> np.ndarray:
    """Return rows in int8, each in steps of its own: cosines do not depend on the length."""
    largest = np.maximum(np.abs(rows).max(axis=1, keepdims=True), np.finfo("f4").tiny)
    found: np.ndarray = np.rint(rows * (_LARGEST / largest)).astype("i1")
    return found
