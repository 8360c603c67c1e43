"""Late interaction: the first memories of a search are ranked again by the tokens of their texts."""

import contextlib
from datetime import UTC, datetime

import apsw
import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hostspecs.testing import FrozenClock, RecordingReport
from beaver_memory.embedding.breaker import Breaker
from beaver_memory.embedding.errors import EmbeddingUnusable, failure
from beaver_memory.embedding.protocol import Identity, TokenEmbedding, with_tokens
from beaver_memory.embedding.query_cache import CachedQueries
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.embedding.vector_checks import CheckedEmbedder
from beaver_memory.engine import MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.records import NewMemory, Owner
from beaver_memory.runtime.factory import open_engine
from beaver_memory.runtime.profile import InMemoryLocation, Profile, RuntimeServices
from beaver_memory.search import late_interaction
from beaver_memory.search.formulas import FORMULAS
from beaver_memory.views import View

SEEN = Filters(view=View(now=datetime(2036, 1, 1, tzinfo=UTC)))
WORDS = ["auto", "buy", "cat", "day", "eat", "far", "give", "home"]
SAME = {"car": "auto", "bought": "buy", "purchase": "buy"}
"""Words that mean the same share no letters, so that only vectors find them."""

LONG = "purchase auto day day eat eat far far give give home home"
SHORT = "auto auto auto auto"
ASKED = "car bought"
IDENTITY = Identity(provider="test", model="meanings", dimensions=len(WORDS))


class Meanings:
    """An encoder: one dimension for each meaning of a word; the vector of a text is the mean of its tokens."""

    def __init__(self):
        self.runs = []

    def encode(self, texts, purpose):
        return np.stack([vector for vector, _ in self.encode_tokens(texts, purpose, skip=0)])

    def encode_tokens(self, texts, purpose, *, skip):
        self.runs += texts
        found = []
        for text in texts:
            rows = np.full((len(text[skip:].split()), len(WORDS)), 0.01)
            for place, word in enumerate(text[skip:].split()):
                rows[place, WORDS.index(SAME.get(word, word))] = 1
            found.append((rows.mean(axis=0), rows))
        return found

    def close(self):
        """Keep nothing."""


class Plain:
    """An encoder without tokens."""

    def __init__(self):
        self.inner = Meanings()

    def encode(self, texts, purpose):
        return self.inner.encode(texts, purpose)

    def close(self):
        """Keep nothing."""


def embedder(encoder=None):
    """Return an embedder as a memory uses it."""
    return CachedQueries(CheckedEmbedder(Meanings() if encoder is None else encoder, IDENTITY))


def opened(folder, made=None, **options):
    options.setdefault("reranker", "tokens")
    return MemoryEngine.open(folder, embedder=made or embedder(), **options)


def add(engine, *texts):
    """Add memories, and embed them."""
    ids = engine.add([NewMemory(title=text) for text in texts])
    engine.embed()
    return ids


def asked(engine, text=ASKED, **more):
    return engine.search(Query(text=text, filters=SEEN, explain=True, **more))


def titles(answer):
    return [hit.memory.title for hit in answer.hits]


def test_each_token_of_a_query_finds_its_best(tmp_path):
    """By its mean the short memory is nearer, by its tokens the one that has both words; the share says so."""
    with opened(tmp_path, reranker="none") as engine:
        add(engine, LONG, SHORT)
        before = asked(engine)
    with opened(tmp_path) as engine:
        engine.embed()
        after = asked(engine)

    assert ([SHORT, LONG], [LONG, SHORT]) == (titles(before), titles(after))
    assert ({"tokens"}, None) == ({*after.hits[0].shares} - {*before.hits[0].shares}, after.not_reranked)
    assert after.hits[0].shares["tokens"] > 0 > after.hits[1].shares["tokens"]
    for hit in after.hits:
        assert hit.score == pytest.approx(sum(hit.shares.values()), abs=1e-5)


@pytest.mark.parametrize("formula", FORMULAS)
def test_every_formula_can_use_tokens(tmp_path, formula):
    """Tokens take the place of the cosine, whatever the formula makes of it."""
    with opened(tmp_path) as engine:
        add(engine, LONG, SHORT)

        assert LONG == titles(asked(engine, formula=formula))[0]


def test_a_memory_without_tokens_keeps_its_place(tmp_path):
    """Without stored tokens the answer is that of the normal ranking; a memory without them keeps its share."""
    with opened(tmp_path, reranker="none") as engine:
        add(engine, LONG, SHORT)
        before = asked(engine)
    with opened(tmp_path) as engine:
        found = asked(engine)
        engine.embed(limit=1)
        one = asked(engine)

    assert before.hits == found.hits == one.hits


def test_tokens_without_an_embedding_are_not_compared(tmp_path):
    """The tokens of a memory whose embedding is not stored yet change no score; the scale is that of a known model."""
    known = attrs.evolve(IDENTITY, provider="onnx", model="e5-small")
    with opened(tmp_path, CheckedEmbedder(Meanings(), known)) as engine:
        ids = add(engine, "auto buy buy", "auto buy eat", "auto far buy")
        (new,) = engine.add([NewMemory(title="bought home")])
        before = asked(engine)
        tokens = engine.store.vectors_of(ids, known.key + "/tokens", tenant="")
        engine.store.put_vectors(Owner(), known.key + "/tokens", [(new, tokens[ids[0]])])

        assert (4, before) == (len(before.hits), asked(engine))


def test_tokens_come_from_one_run_of_the_model(tmp_path):
    """A new memory is embedded once for both; an older one gets its tokens later; `pending` counts it until then."""
    first, second = Meanings(), Meanings()
    with opened(tmp_path, embedder(first), reranker="none") as engine:
        add(engine, "auto")
    with opened(tmp_path, embedder(second)) as engine:
        engine.add([NewMemory(title="cat")])
        steps = [(engine.pending(), engine.embed(limit=1)) for _ in range(3)]
        asked(engine, "eat")
        asked(engine, "eat")

    assert (["auto"], ["cat", "auto", "eat"]) == (first.runs, second.runs)
    assert [(2, 1), (1, 1), (0, 0)] == steps


def test_an_embedder_without_tokens(tmp_path):
    """An embedder without tokens ranks as ever, and the answer says why; without the option it says nothing."""
    answers = []
    for reranker in ("tokens", "none"):
        with opened(tmp_path / reranker, embedder(Plain()), reranker=reranker) as engine:
            add(engine, LONG, SHORT)
            answers.append(asked(engine))
            assert 0 == engine.pending()
    with MemoryEngine.open(tmp_path / "no", reranker="tokens") as engine:
        add(engine, "auto")
        words = asked(engine, "auto").not_reranked, engine.pending()

    assert ["no_token_vectors", None] == [each.not_reranked for each in answers]
    assert ([SHORT, LONG], ("no_token_vectors", 0)) == (titles(answers[0]), words)
    with pytest.raises(NotImplementedError):
        CheckedEmbedder(Plain(), IDENTITY).embed_query_tokens("a")


class Slow(Meanings):
    """An encoder that takes a second of a clock for each text."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock

    def encode_tokens(self, texts, purpose, *, skip):
        self.clock.advance(1)
        return super().encode_tokens(texts, purpose, skip=skip)


@pytest.mark.parametrize(("seconds", "first", "why"), [(3.0, LONG, None), (1.5, SHORT, "deadline"), (None, LONG, None)])
def test_late_in_its_time_a_search_is_not_ranked_again(tmp_path, seconds, first, why):
    """Half of the time of the caller is kept for what follows the ranking."""
    clock = FrozenClock()
    with opened(tmp_path, embedder(Slow(clock)), clock=clock) as engine:
        add(engine, LONG, SHORT)
        answer = asked(engine, seconds=seconds)

    assert (first, why) == (titles(answer)[0], answer.not_reranked)


def test_an_embedder_that_fails(tmp_path):
    """If the query cannot be embedded, words find memories, and the failure is the one reason."""

    class Failing(Meanings):
        def encode_tokens(self, texts, purpose, *, skip):
            raise failure("test", "unavailable", "It is away", "Wait.")

    with opened(tmp_path) as engine:
        add(engine, LONG, SHORT)
    with opened(tmp_path, embedder(Failing())) as engine:
        answer = asked(engine, "purchase")

    assert ("unavailable", None, [LONG]) == (answer.keyword_only, answer.not_reranked, titles(answer))


@pytest.mark.parametrize("harm", [lambda rows: rows[:, :3], lambda rows: rows * np.nan, lambda rows: rows[:0]])
def test_tokens_that_cannot_be_used(tmp_path, harm):
    """Tokens of another form are refused before they are stored, from an embedder of another author too."""

    class Harmful:
        has_tokens, identity = True, IDENTITY

        def embed_passage_tokens(self, texts):
            found = CheckedEmbedder(Meanings(), IDENTITY).embed_passage_tokens(texts)
            return [attrs.evolve(each, tokens=harm(each.tokens)) for each in found]

        def close(self):
            """Keep nothing."""

    with opened(tmp_path, Harmful()) as engine:
        (id_,) = engine.add([NewMemory(title="cat")])
        with pytest.raises(EmbeddingUnusable):
            engine.embed()

        assert {} == stored(engine, id_)


def stored(engine, *ids):
    return engine.store.vectors_of(ids, IDENTITY.key + "/tokens", tenant="")


def test_what_is_forgotten_or_changed_has_no_tokens(tmp_path):
    """Forgetting erases the tokens with the embedding; another text waits for others."""
    with opened(tmp_path) as engine:
        ids = add(engine, "cat eat", "home far")
        before = sorted(stored(engine, *ids))
        engine.forget(ids[:1], SEEN)
        engine.change(ids[1], SEEN, event="UPDATE", title="home home")
        waiting = engine.pending(), stored(engine, *ids)
        footprint = engine.store.footprint(ids[:1], tenant="")
        engine.embed()

        assert (ids, (1, {})) == (before, waiting)
        assert (0, [ids[1]]) == (sum(footprint.values()), [*stored(engine, *ids)])
        assert [] == engine.store.check(None)


def test_damaged_tokens_are_not_compared(tmp_path):
    """Tokens that fail their checksum are left out of the ranking, and the check names them."""
    with opened(tmp_path) as engine:
        ids = add(engine, LONG, SHORT)
        with contextlib.closing(apsw.Connection(str(tmp_path / "memory.db"))) as connection:
            connection.execute(
                "UPDATE observation_embeddings SET data = x'0101030405'"
                " WHERE memory = ? AND model = (SELECT id FROM models WHERE name LIKE '%/tokens')",
                (ids[0],),
            )

        assert ([ids[1]], [SHORT, LONG]) == ([*stored(engine, *ids)], titles(asked(engine)))
        assert 1 == len(engine.store.check(None))


def test_a_long_memory_has_tokens_of_its_beginning(tmp_path):
    """A memory has at most 8 passages of tokens, each of at most 128 vectors; its embedding is whole."""
    text = "Auto buy cat day eat far give home. ".lower() * 300
    with opened(tmp_path, embedder(Meanings_of_sentences())) as engine:
        (id_,) = engine.add([NewMemory(title="long", narrative=text)])
        engine.embed()
        tokens = late_interaction.unpacked(stored(engine, id_)[id_], len(WORDS))
        vectors = engine.store.vectors_of([id_], IDENTITY.key, tenant="")[id_]

    assert late_interaction.PASSAGES == len(tokens) < len(vectors) // (2 * len(WORDS))
    assert all(0 < len(each) <= late_interaction.MOST for each in tokens)


def Meanings_of_sentences():  # noqa: N802 - a kind of encoder
    """Return an encoder that leaves out the other words and the full stops."""

    class Sentences(Meanings):
        def encode_tokens(self, texts, purpose, *, skip):
            known = [[word for word in text.replace(".", "").split() if word in WORDS] for text in texts]
            return super().encode_tokens([" ".join(each) for each in known], purpose, skip=skip)

    return Sentences()


ROWS = st.lists(st.integers(1, 500), min_size=1, max_size=10)


@given(ROWS, st.integers(1, 8))
def test_packed_tokens_are_unpacked(sizes, dimensions):
    """Each passage has a third of its tokens as vectors, within both limits, in the direction of their sums."""
    generator = np.random.default_rng(sum(sizes))
    passages = [generator.normal(size=(size, dimensions)).astype("f4") for size in sizes]
    found = late_interaction.unpacked(late_interaction.packed(passages), dimensions)

    each = [max(3, -(-size // 128)) for size in sizes]
    assert [-(-size // pooled) for size, pooled in zip(sizes, each, strict=True)][:8] == [len(rows) for rows in found]
    last = passages[0][: each[0]].sum(axis=0)
    np.testing.assert_allclose(last / np.abs(last).max(), found[0][0] / 127, atol=0.005)


@given(st.binary(max_size=64), st.integers(1, 8))
def test_other_bytes_have_no_tokens(data, dimensions):
    """Bytes of any form are read without an error, as whole rows or as none."""
    found = late_interaction.unpacked(data, dimensions)

    assert all(rows.shape[1] == dimensions for rows in found)
    assert [] == late_interaction.unpacked(b"\x02" + late_interaction.packed([np.ones((3, 2))])[1:], 2)
    assert [] == late_interaction.unpacked(late_interaction.packed([np.ones((3, 2))])[:-1], 2)


def test_a_long_query_is_pooled():
    """A query has at most 64 vectors; of a longer one several tokens that follow one another are one."""
    sizes = [len(late_interaction.query_tokens(np.ones((size, 4)))) for size in (1, 64, 65, 128, 129)]

    assert [1, 64, 33, 64, 43] == sizes


def test_layers_pass_tokens_on():
    """The cache and the breaker have tokens if the inner embedder has; a cached query is read-only and made once."""
    encoder = Meanings()
    cache = CachedQueries(CheckedEmbedder(encoder, IDENTITY))
    breaker = Breaker(cache, FrozenClock())
    found, again = breaker.embed_query_tokens("cat eat"), breaker.embed_query_tokens("cat eat")

    assert ([True, True, False], ["cat eat"]) == (
        [each.has_tokens for each in (cache, breaker, CachedQueries(CheckedEmbedder(Plain(), IDENTITY)))],
        encoder.runs,
    )
    assert found is again
    assert (False, False) == (found.vector.flags.writeable, found.tokens.flags.writeable)
    np.testing.assert_array_equal(found.vector, cache.embed_query("cat eat"))
    (passage,) = breaker.embed_passage_tokens(["cat eat"])
    np.testing.assert_array_equal(found.tokens, passage.tokens)
    assert ((2, 8), []) == (passage.tokens.shape, breaker.embed_passage_tokens([]))
    assert (None, breaker) == (with_tokens(None), with_tokens(breaker))
    assert isinstance(passage, TokenEmbedding)
    cache.close()


@pytest.mark.parametrize("reranker", ["tokens", "none"])
def test_a_memory_that_cannot_rank_by_tokens_says_so(reranker):
    """With the option and without an embedder of tokens, opening reports an event and a trouble, which stays."""
    report = RecordingReport()
    services = RuntimeServices(report=report)
    profile = Profile(reranker=reranker, embedding=EmbeddingSettings(provider="none"))
    found = open_engine(profile, InMemoryLocation(), services)
    found.engine.add([NewMemory(title="cat", owner=Owner())])
    why = asked(found.engine, "cat").not_reranked
    found.engine.close()

    facts = {"reranker": "tokens", "provider": "none", "category": "no_token_vectors"}
    wanted = ([("memory_reranker_unavailable", facts)], ("reranker_no_token_vectors",), "no_token_vectors")
    assert (wanted if reranker == "tokens" else ([], (), None)) == (report.events, services.troubles.now, why)


def test_a_long_passage_fits_less(tmp_path):
    """A memory with the words of the query among many others comes after a short one, though it is as near."""
    short = "purchase auto give home far"
    with opened(tmp_path) as engine:
        add(engine, "purchase auto " + "give home far " * 40, short)
        answer = asked(engine, "car bought far home")

    assert short == titles(answer)[0]
