"""Candidates: what a search looks at does not let one memory, or what may not be seen, stand for others."""

from datetime import UTC, datetime

import numpy as np
import pytest

from beaver_hooks_local.embedding.protocol import Identity
from beaver_hooks_local.engine import MemoryEngine
from beaver_hooks_local.filters import Filters
from beaver_hooks_local.index import lexical
from beaver_hooks_local.index import vectors as vectors_of
from beaver_hooks_local.query import Query
from beaver_hooks_local.records import NewMemory

WHEN = datetime(2026, 3, 1, tzinfo=UTC)
SEEN = Filters(now=datetime(2036, 1, 1, tzinfo=UTC))


class Letters:
    """An embedder: one dimension for each letter."""

    identity = Identity(provider="test", model="letters", dimensions=26)

    def embed_query(self, text):
        return self.embed_passages([text])[0]

    def embed_passages(self, texts):
        rows = np.array([[text.lower().count(chr(97 + place)) + 0.01 for place in range(26)] for text in texts], "f4")
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def close(self):
        """Nothing is open."""


def notes(count, **fields):
    """Return short memories about a garden."""
    return [NewMemory(title=f"the garden of house h{each} is dry", created_at=WHEN, **fields) for each in range(count)]


def found(engine, text, limit=10, filters=SEEN):
    """Return ids and scores of what a search finds, by id."""
    hits = engine.search(Query(text=text, filters=filters, limit=limit)).hits
    return sorted((hit.memory.id, hit.score) for hit in hits)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("embedder", [None, Letters()])
def test_a_long_memory_leaves_room_for_others(tmp_path, monkeypatch, embedder, large):
    """However many passages of one memory fit better, short memories that fit are found beside it."""
    if large:
        monkeypatch.setattr(lexical, "EXHAUSTIVE", 0)
        monkeypatch.setattr(vectors_of, "LARGE", 0)
    with MemoryEngine.open(tmp_path, embedder=embedder) as engine:
        short = engine.add(notes(9))
        long = engine.add(NewMemory(title="garden handbook", narrative="A garden. " * 50_000, created_at=WHEN))
        engine.embed()
        assert [*short, *long] == [id_ for id_, _ in found(engine, "garden")]


def test_as_many_are_found_as_are_wanted(tmp_path):
    """Where many memories fit, a large limit is kept."""
    with MemoryEngine.open(tmp_path) as engine:
        ids = engine.add(notes(500))
        assert ids == [id_ for id_, _ in found(engine, "garden", 1_000)]
