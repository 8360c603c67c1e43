"""Candidates: neither one long memory nor hidden memories take the places of others in a search."""

import contextlib
import tempfile
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from letters import Letters

from beaver_hostspecs.testing import FrozenClock
from beaver_memory.engine import MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.records import NewMemory, Owner
from beaver_memory.search import lexical, neighbours
from beaver_memory.search import vectors as vectors_of
from beaver_memory.views import View

WHEN = datetime(2026, 3, 1, tzinfo=UTC)
SEEN = Filters(view=View(now=datetime(2036, 1, 1, tzinfo=UTC)))


def notes(count, **fields):
    """Return short memories about a garden."""
    return [NewMemory(title=f"the garden of house h{each} is dry", created_at=WHEN, **fields) for each in range(count)]


def found(engine, text, limit=10, filters=SEEN):
    """Return ids and scores of the hits, by id."""
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
        long = engine.add(NewMemory(title="garden handbook", narrative="A garden. " * 20_000, created_at=WHEN))
        engine.embed()
        assert [*short, *long] == [id_ for id_, _ in found(engine, "garden")]


def test_as_many_are_found_as_are_wanted(tmp_path):
    """A search with a large limit returns all of many memories that fit."""
    with MemoryEngine.open(tmp_path) as engine:
        ids = engine.add(notes(500))
        assert ids == [id_ for id_, _ in found(engine, "garden", 1_000)]


ANN, BEN = Owner(user="ann"), Owner(user="ben")
SOCIAL = Filters(view=View(owners=(ANN, BEN), stores=("social",), now=SEEN.view.now))
WORDS = ("tea", "bike", "garden", "rain", "moon")

said = st.lists(
    st.tuples(
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=6),
        st.sampled_from(["social", "private", "private"]),
        st.sampled_from(["", "s", "t"]),
        st.sampled_from([ANN, ANN, BEN]),
        st.sampled_from(["keep", "keep", "search", "change", "forget"]),
    ),
    min_size=1,
    max_size=25,
)


def told(memories, embedder):
    """Return what searches of the social store tell, where those memories were written one after the other."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        engine = stack.enter_context(MemoryEngine.open(folder, embedder=embedder, clock=FrozenClock()))
        for memory, then in memories:
            ids = engine.add(memory)
            engine.embed()
            everything = Filters(view=View(owners=(memory.owner,), now=SEEN.view.now))
            if then == "search":
                engine.search(Query(text="tea", filters=everything))
            elif then == "change":
                engine.change(ids[0], everything, event="UPDATE", title=f"{memory.title} moon")
            elif then == "forget":
                engine.forget(ids, everything)
        engine.embed()
        asked = (Query(text=text, filters=SOCIAL, explain=True) for text in ("tea", "garden moon bike", "rain divorce"))
        answers = [engine.search(query) for query in asked]
        return [
            ([(hit.memory.title, hit.memory.created_at, hit.score, hit.shares) for hit in answer.hits], answer.total)
            for answer in answers
        ]


@settings(max_examples=settings.default.max_examples // 4)
@given(said, st.sampled_from([None, Letters()]), st.booleans())
def test_what_may_not_be_seen_changes_no_score(memories, embedder, small):
    """Hidden memories change no score of a search in the social store, to the last digit."""
    made = [
        (NewMemory(title=" ".join(words), store=store, session=session, owner=owner, created_at=at), then)
        for (words, store, session, owner, then), at in zip(
            memories, (WHEN + timedelta(hours=hours) for hours in range(99)), strict=False
        )
    ]
    alone = [(memory, then) for memory, then in made if memory.store == "social"]
    with contextlib.ExitStack() as stack:
        if small:
            for room, name in ((lexical, "EXHAUSTIVE"), (neighbours, "STEPS"), (neighbours, "MANY")):
                stack.enter_context(patch.object(room, name, 1))
        assert told(alone, embedder) == told(made, embedder)


def test_a_secret_is_not_between_two_that_may_be_seen():
    """Private memories between social ones change no score of a search in the social store."""
    texts = ["the garden of Ann", "her divorce is long and sad", "it needs rain", "and some divorce lawyers"]
    stores = ["social", "private", "social", "private"]
    made = [
        (NewMemory(title=text, store=store, session="s", owner=ANN, created_at=WHEN), "keep")
        for text, store in zip(texts, stores, strict=True)
    ]
    assert told(made[::2], None) == told(made, None)
