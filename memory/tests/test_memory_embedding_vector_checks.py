"""The rules that every vector keeps whatever its provider, and the cache of query vectors."""

import json
import subprocess
import sys
import threading
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from beaver_hostspecs import BeaverError
from beaver_memory.embedding.errors import (
    EmbedderMissing,
    EmbedderRefused,
    EmbedderUnavailable,
    EmbeddingError,
    EmbeddingUnusable,
    failure,
)
from beaver_memory.embedding.protocol import Identity
from beaver_memory.embedding.query_cache import CachedQueries
from beaver_memory.embedding.vector_checks import LONGEST, NOTHING, CheckedEmbedder, cleaned, normalised

IDENTITY = Identity(provider="p", model="m", dimensions=3, query_prefix="q: ", passage_prefix="d: ")


class Encoder:
    """Records the texts that it is asked for, and returns the given answers."""

    def __init__(self, answer=None):
        self.asked = []
        self.answer = answer
        self.closed = 0

    def encode(self, texts, purpose):
        self.asked.append((*texts, purpose))
        if isinstance(self.answer, Exception):
            raise self.answer
        return np.array([[len(text), 2, 1] for text in texts]) if self.answer is None else self.answer

    def close(self):
        self.closed += 1


def test_identities_have_keys():
    """A key is short, names provider, model and dimensions, and differs with everything else."""
    key = IDENTITY.key
    assert "p-m-3-" == key[:-12]
    others = [
        Identity(provider="p", model="m", dimensions=3, query_prefix="q: "),
        Identity(provider="p", model="m", dimensions=3, passage_prefix="d: "),
        Identity(provider="p", model="m", dimensions=3, query_prefix="q: ", passage_prefix="d: ", normalised=False),
        Identity(provider="p", model="m", dimensions=4, query_prefix="q: ", passage_prefix="d: "),
        Identity(provider="o", model="m", dimensions=3, query_prefix="q: ", passage_prefix="d: "),
        Identity(provider="p", model="../m", dimensions=3, query_prefix="q: ", passage_prefix="d: "),
        Identity(provider="p", model="..%m", dimensions=3, query_prefix="q: ", passage_prefix="d: "),
    ]
    assert len(others) + 1 == len({key, *(each.key for each in others)})
    assert "p-.._m-3-" == others[5].key[:9]


def test_a_key_is_the_same_in_every_process():
    """Another process finds the index that this one made."""
    code = (
        "from beaver_memory.embedding.protocol import Identity;"
        "print(Identity(provider='p', model='m', dimensions=3, query_prefix='q: ', passage_prefix='d: ').key)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert IDENTITY.key == run.stdout.strip()


@pytest.mark.parametrize("dimensions", [0, 8193])
def test_dimensions_are_bounded(dimensions):
    """No identity has no dimensions, or too many."""
    with pytest.raises(ValueError):
        Identity(provider="p", model="m", dimensions=dimensions)


def test_errors_are_one_tree():
    """Each category has its class, all below one of the host's errors, with a sentence and a remedy."""
    kinds = {
        EmbedderUnavailable: ("unavailable", "timeout"),
        EmbedderRefused: ("refused",),
        EmbeddingUnusable: ("wrong_dimension", "not_finite", "malformed"),
        EmbedderMissing: ("missing_model", "missing_package", "missing_key"),
    }
    for kind, categories in kinds.items():
        for category in categories:
            error = failure("p", category, "It broke", "Mend it.", status=500)
            assert (kind, True, True) == (
                type(error), isinstance(error, EmbeddingError), isinstance(error, BeaverError),
            )  # fmt: skip
            assert ("It broke. Mend it.", "p", category, 500) == (
                str(error), error.provider, error.category, error.status,
            )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("", NOTHING),
        (" \n\t", NOTHING),
        ("half \ud800 and \udfff", "half \ufffd and \ufffd"),
        ("x" * (LONGEST + 1), "x" * LONGEST),
        ("nul \0", "nul \0"),
    ],
)
def test_texts_are_made_fit(text, expected):
    """What no provider takes is put right before it is sent."""
    assert expected == cleaned(text)


@given(st.text(st.characters(), max_size=50))
def test_any_text_can_be_sent(text):
    """Every text becomes one that is not blank and can be written as UTF-8."""
    ready = cleaned(text)
    assert ready.strip()
    assert ready == ready.encode().decode()


@given(st.lists(st.lists(st.floats(-1e308, 1e308), min_size=3, max_size=3), min_size=1, max_size=4))
def test_every_vector_leaves_with_the_length_one(rows):
    """Tiny and gigantic values alike give unit vectors, and zero gives an error."""
    array = np.array(rows)
    if not array.any(axis=1).all():
        with pytest.raises(EmbeddingUnusable):
            normalised(array, provider="p", count=len(rows), dimensions=3)
        return
    found = normalised(array, provider="p", count=len(rows), dimensions=3)
    assert np.float32 == found.dtype
    np.testing.assert_allclose(np.ones(len(rows)), np.linalg.norm(found.astype(np.float64), axis=1), atol=1e-6)


@pytest.mark.shows("002-108")
@pytest.mark.parametrize(
    ("answer", "category"),
    [
        (np.array([1.0, 2.0, 3.0]), "wrong_dimension"),
        (np.array([[1.0, 2.0]]), "wrong_dimension"),
        (np.array([[1.0, 2.0, 3.0]] * 2), "wrong_dimension"),
        (np.array([[1.0, np.nan, 3.0]]), "not_finite"),
        (np.array([[1.0, -np.inf, 3.0]]), "not_finite"),
        (np.array([[0.0, 0.0, 0.0]]), "not_finite"),
        (failure("p", "timeout", "It took too long", "Wait.", status=504), "timeout"),
    ],
)
def test_what_is_no_embedding_is_an_error(answer, category):
    """A wrong shape, a value that is no number and a failing provider come out as errors, and are traced."""
    told = []
    embedder = CheckedEmbedder(Encoder(answer), IDENTITY, trace=lambda event, **facts: told.append((event, facts)))
    with pytest.raises(EmbeddingError) as caught:
        embedder.embed_query("secret plan")
    assert category == caught.value.category
    facts = {
        "provider": "p", "model": "m", "purpose": "query", "count": 1, "characters": 14, "category": category,
        "status": caught.value.status,
    }  # fmt: skip
    assert [("embedding_failed", facts)] == told
    assert "secret" not in str(caught.value)


@pytest.mark.shows("002-109", "002-120")
def test_texts_are_prefixed_and_counted():
    """Queries and passages get their own prefixes; the trace holds lengths and no text."""
    told, encoder, clock = [], Encoder(), iter([1.0, 1.5, 2.0, 2.25])
    embedder = CheckedEmbedder(
        encoder, IDENTITY, trace=lambda event, **facts: told.append((event, facts)), seconds=lambda: next(clock)
    )
    query, passages = embedder.embed_query("who"), embedder.embed_passages(["me", ""])
    assert ((3,), (2, 3)) == (query.shape, passages.shape)
    assert [("q: who", "query"), ("d: me", "d: .", "passage")] == encoder.asked
    same = {"provider": "p", "model": "m", "dimensions": 3}
    assert [
        ("embedded", same | {"purpose": "query", "count": 1, "characters": 6, "milliseconds": 500.0}),
        ("embedded", same | {"purpose": "passage", "count": 2, "characters": 9, "milliseconds": 250.0}),
    ] == told
    assert "who" not in json.dumps(told)


def test_no_passages_need_no_provider():
    """Nothing gives nothing, of the right width, and one text is no list."""
    encoder = Encoder()
    embedder = CheckedEmbedder(encoder, IDENTITY)
    assert ((0, 3), []) == (embedder.embed_passages([]).shape, encoder.asked)
    with pytest.raises(TypeError):
        embedder.embed_passages("abc")


class Counting:
    """An embedder that counts, and fails when told to."""

    identity = IDENTITY

    def __init__(self):
        self.queries = []
        self.failing = False
        self.closed = False

    def embed_query(self, text):
        self.queries.append(text)
        if self.failing:
            raise failure("p", "unavailable", "It is down", "Wait.")
        return np.array([len(text), 1, 2], dtype=np.float32)

    def embed_passages(self, texts):
        return np.array([[len(text), 1, 2] for text in texts], dtype=np.float32)

    def close(self):
        self.closed = True


class Cache(RuleBasedStateMachine):
    """The cache against a model of it that is plain."""

    def __init__(self):
        super().__init__()
        self.inner = Counting()
        self.cache = CachedQueries(self.inner, most=3)
        self.model = OrderedDict()
        self.expected = []

    @rule(text=st.sampled_from("abcdef"))
    def ask(self, text):
        if text in self.model:
            self.model.move_to_end(text)
        else:
            self.expected.append(text)
            self.model[text] = True
            while len(self.model) > 3:
                self.model.popitem(last=False)
        assert [1.0, 1.0, 2.0] == self.cache.embed_query(text).tolist()

    @precondition(lambda self: self.model)
    @rule()
    def fail(self):
        self.inner.failing = True
        self.expected.append("down")
        with pytest.raises(EmbedderUnavailable):
            self.cache.embed_query("down")
        self.inner.failing = False

    @invariant()
    def provider_was_asked_only_for_what_was_not_remembered(self):
        assert self.expected == self.inner.queries


TestCache = Cache.TestCase


def test_a_remembered_vector_cannot_be_written_to():
    """A cached vector is read-only, and the cache does not keep the text of the query."""
    cache = CachedQueries(Counting())
    vector = cache.embed_query("a secret plan")
    with pytest.raises(ValueError):
        vector[0] = 7
    assert vector is cache.embed_query("a secret plan")
    assert "secret" not in repr([vars(each) for each in (cache, cache._vectors, cache._tokens)])
    assert [12.0, 1.0, 2.0] == cache.embed_query("half \ud800 of it").tolist()


def test_the_cache_passes_on_what_is_not_a_query():
    """Identity, passages and closing are the embedder's own."""
    inner = Counting()
    cache = CachedQueries(inner)
    assert (IDENTITY, [[2.0, 1.0, 2.0]]) == (cache.identity, cache.embed_passages(["ab"]).tolist())
    cache.embed_query("a")
    cache.close()
    assert inner.closed
    cache.embed_query("a")
    assert ["a", "a"] == inner.queries


def test_a_cache_remembers_something():
    """A cache for no queries is refused."""
    with pytest.raises(ValueError):
        CachedQueries(Counting(), most=0)


def test_threads_share_a_cache():
    """Many threads at once get the right vectors, and the cache keeps its bound."""
    cache, wrong = CachedQueries(Counting(), most=5), []

    def ask(seed):
        for step in range(200):
            length = 1 + (seed * step) % 9
            if cache.embed_query("x" * length)[0] != length:
                wrong.append(length)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ([], 5) == (wrong, len(cache._vectors))
