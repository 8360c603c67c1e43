"""Formulas: every one ranks any candidates, with numbers, the same each time; shares add up to the score."""

from datetime import UTC, datetime

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_memory.embedding.calibration import Scale
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.records import Memory
from beaver_memory.search.candidates import Candidates
from beaver_memory.search.formulas import FORMULAS, Ranked, Weights
from beaver_memory.search.intent import Intent
from beaver_memory.search.select import Choice, best_of, hits
from beaver_memory.search.traits import ASKS, FIRST, NUMBER, RULE, SIZE, TIME
from beaver_memory.views import View

NOW = datetime(2026, 3, 1, tzinfo=UTC)
FILTERS = Filters(view=View(now=NOW))


@st.composite
def found(draw):
    """Return candidates of any kind, also all alike."""
    size = draw(st.integers(0, 30))

    def column(values, kind):
        if draw(st.booleans()):
            return np.full(size, draw(values), kind)
        return np.array(draw(st.lists(values, min_size=size, max_size=size)), kind)

    places = st.integers(-1, size - 1) if size else st.just(-1)
    shares = st.floats(0, 1)
    return Candidates(
        columns={
            "ids": np.arange(1, size + 1),
            "passages": np.zeros(size, "u2"),
            "sessions": column(st.integers(0, 3), "u8"),
            "speakers": column(st.integers(0, 3), "u8"),
            "traits": column(st.integers(0, 2**16 - 1), "u2"),
            "created": column(st.floats(0, 2e9), "f8"),
            "updated": column(st.floats(0, 4e9), "f8"),
            "mentions": column(st.integers(1, 2**32 - 1), "u4"),
            "importance": column(shares, "f4"),
            "confidence": column(shares, "f4"),
            "pinned": column(st.integers(0, 1), "u1"),
        },
        lexical=column(st.floats(0, 100), "f8"),
        cosine=draw(st.none() | st.just(column(st.floats(-1, 1), "f8"))),
        embedded=column(st.booleans(), bool),
        earlier=column(places, "i8"),
        later=column(places, "i8"),
    )


@given(found(), st.sampled_from(sorted(FORMULAS)), st.lists(st.integers(0, 3), max_size=3))
def test_any_candidates(candidates, name, names):
    """Scores are numbers, the same each time, and the sums of their shares; from 0 to a little above 1."""
    intent = Intent(names=np.array(names, "u8"), asker=3, when=bool(names), how_many=len(names) > 1)
    ranked = FORMULAS[name](candidates, intent, NOW.timestamp(), Weights())
    again = FORMULAS[name](candidates, intent, NOW.timestamp(), Weights())
    assert ranked.scores.tolist() == again.scores.tolist()
    assert candidates.size == len(ranked.scores)
    assert np.isfinite(ranked.scores).all()
    assert ranked.scores.tolist() == pytest.approx(np.sum(list(ranked.shares.values()), axis=0).tolist())
    assert (ranked.scores >= 0).all()
    assert (ranked.scores <= 1.2).all()


def three(**given_columns):
    """Return three candidates: the first is found by words, the second by both, the third by its vector."""
    columns = {
        "sessions": np.zeros(3, "u8"),
        "speakers": np.zeros(3, "u8"),
        "traits": np.zeros(3, "u2"),
        "updated": np.full(3, NOW.timestamp()),
        "mentions": np.ones(3, "u4"),
        "importance": np.full(3, 0.5, "f4"),
        "confidence": np.ones(3, "f4"),
        "pinned": np.zeros(3, "u1"),
    }
    none = np.full(3, -1)
    return Candidates(
        columns=columns | given_columns,
        lexical=np.array([4.0, 3.0, 0.0]),
        cosine=np.array([0.0, 0.3, 0.4]),
        embedded=np.ones(3, bool),
        earlier=none,
        later=none,
    )


def scored(name, candidates, weights=None, names=()):
    """Return the scores of candidates."""
    intent = Intent(names=np.array(names, "u8"))
    return FORMULAS[name](candidates, intent, NOW.timestamp(), weights or Weights()).scores.tolist()


@pytest.mark.shows("002-004")
def test_the_formula_of_seed_002():
    """It is .45 words + .25 vectors + .15 recency + .15 mentions, the best words counting most."""
    days = np.array([0, 1, 4])
    updated, mentions = NOW.timestamp() - 86_400.0 * days, np.array([1, 9, 99], "u4")
    expected = [
        0.45 * 1.0 + 0.25 * 0.0 + 0.15 * 1.0 + 0.15 * 0.30103,
        0.45 * 0.75 + 0.25 * 0.75 + 0.15 * 0.5 + 0.15 * 1.0,
        0.45 * 0.0 + 0.25 * 1.0 + 0.15 * 0.2 + 0.15 * 1.0,
    ]
    assert expected == pytest.approx(scored("seed-002", three(updated=updated, mentions=mentions)), abs=1e-5)


@pytest.mark.shows("003-030", "003-095", "003-096")
def test_the_formula_of_seed_003():
    """It is .55 vectors + .35 words + .10 recency; without vectors words count for both."""
    updated = NOW.timestamp() - 86_400.0 * np.array([0, 1, 3])
    expected = [0.35 + 0.10, 0.55 * 0.75 + 0.35 * 0.75 + 0.05, 0.55 + 0.025]
    assert expected == pytest.approx(scored("seed-003", three(updated=updated)))
    words = attrs.evolve(three(updated=updated), cosine=None)
    assert [0.90 + 0.10, 0.90 * 0.75 + 0.05, 0.025] == pytest.approx(scored("seed-003", words))


@pytest.mark.shows("002-061")
@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_found_by_both(name):
    """A memory that words and vectors both found comes before a memory that one of them found."""
    scores = scored(name, three(), Weights(lexical=0.5, semantic=0.5))
    assert 1 == int(np.argmax(scores))


@pytest.mark.shows("002-004")
def test_what_vectors_count():
    """Vectors weigh as the model's scale says unless weights are given; a memory without one counts by words."""
    vectors = attrs.evolve(three(), lexical=np.array([4.0, 0.0, 0.0]))
    intent, now = Intent(), NOW.timestamp()

    def shares(weights, share):
        ranked = FORMULAS["context"](vectors, intent, now, weights, Scale(share=share))
        return (ranked.shares["semantic"][2] / ranked.shares["lexical"][0]).item()

    assert [0.25, 4.0] == pytest.approx([shares(Weights(), share) for share in (0.2, 0.8)])
    assert 1.0 == pytest.approx(shares(Weights(lexical=3.0, semantic=3.0), 0.2))
    without = attrs.evolve(three(), embedded=np.array([False, True, True]))
    ranked = FORMULAS["context"](without, intent, now, Weights(), Scale(share=0.5))
    assert [1.0, 0.375] == pytest.approx((ranked.shares["lexical"] / ranked.shares["lexical"].max()).tolist()[:2])


def test_found_by_vectors_alone():
    """Vectors count for both channels where no word is found, and words do where there are no vectors."""
    by_vectors = attrs.evolve(three(), lexical=np.zeros(3))
    by_words = attrs.evolve(three(), cosine=None)

    assert [2, 0] == [int(np.argmax(scored("context", each))) for each in (by_vectors, by_words)]
    assert max(scored("context", by_vectors)) == pytest.approx(max(scored("context", by_words)))


@pytest.mark.shows("002-004", "003-095")
def test_boosts_are_bounded():
    """Mentions, importance, a pin and the newer time decide between equal memories, and never outweigh the words."""
    equal = attrs.evolve(three(), lexical=np.array([4.0, 4.0, 1.0]), cosine=None)
    newer = ("updated", 0.0, NOW.timestamp())
    for name, low, high in (("mentions", 1, 2**32 - 1), ("importance", 0.0, 1.0), ("pinned", 0, 1), newer):
        column = np.array([low, high, high])
        first, second, third = scored("context", attrs.evolve(equal, columns=equal.columns | {name: column}))
        assert second > first > third


def test_what_counts_against_a_memory():
    """Low importance and confidence lower a score, and never below 0."""
    columns = {"importance": np.array([1.0, 0.0, 0.0], "f4"), "confidence": np.array([1.0, 0.0, 0.0], "f4")}
    numbers = {"ids": np.array([1, 2, 3]), "passages": np.zeros(3, "u2")}
    found_now = attrs.evolve(
        three(**columns, **numbers, updated=np.zeros(3)), lexical=np.array([4.0, 0.5, 0.0]), cosine=None
    )
    ranked = FORMULAS["context"](found_now, Intent(), NOW.timestamp(), Weights())
    first, second, third = ranked.scores.tolist()
    assert (True, 0.0) == (first > second > third, round(third, 9))
    assert ranked.scores.tolist() == pytest.approx(np.sum(list(ranked.shares.values()), axis=0).tolist())
    assert [1, 2, 3] == [each.id for each in best_of(found_now, ranked, Query(filters=FILTERS))]


def test_who_has_said_it():
    """A memory whose speaker the query names comes before an equal one of another speaker."""
    speakers = np.array([7, 8, 9], "u8")
    equal = attrs.evolve(three(speakers=speakers), lexical=np.array([4.0, 4.0, 4.0]), cosine=None)
    assert [1, 2] == [int(np.argmax(scored("context", equal, names=[name, 5]))) for name in (8, 9)]


def test_what_the_asked_person_tells():
    """Of two memories of the named speaker, a statement about himself comes first, and only with the named speaker."""
    speakers, traits = np.array([7, 7, 8], "u8"), np.array([0, 20 | FIRST, 20 | FIRST], "u2")
    equal = attrs.evolve(three(speakers=speakers, traits=traits), lexical=np.array([4.0, 4.0, 4.0]), cosine=None)
    best, order = Weights(), np.argsort(scored("context", equal, names=[7]))[::-1].tolist()
    ranked = FORMULAS["context"](equal, Intent(names=np.array([7], "u8")), NOW.timestamp(), best)
    part = 1 / (1 + best.context + best.speech)
    expected = {"speaker": [0.3, 0.3, 0], "first_person": [0, 0.1, 0], "statement": [0, 0.2, 0]}
    assert [1, 0, 2] == order
    assert expected == {name: pytest.approx((ranked.shares[name] / part).tolist(), abs=1e-9) for name in expected}


@pytest.mark.parametrize(
    ("trait", "intent", "expected"),
    [
        (RULE, Intent(asker=7), {"rule": [0.2, 0.0, 0.2]}),
        (TIME, Intent(), {"time": [0.05, 0.05, 0.05]}),
        (TIME, Intent(when=True), {"time": [0.25, 0.25, 0.25]}),
        (NUMBER, Intent(), {}),
        (NUMBER, Intent(how_many=True), {"number": [0.1, 0.1, 0.1]}),
        (3 << SIZE, Intent(), {"size": [-0.15, -0.15, -0.15]}),
        (ASKS, Intent(), {"answer": [0.0, 0.1, 0.0], "before": [0.0, 0.0, 0.1], "neighbour": [0.5, 0.5, 0.5]}),
    ],
)  # fmt: skip
def test_what_traits_count(trait, intent, expected):
    """Traits count by the kind of the question; rules are those of the asker, or of memories without a speaker."""
    columns = {"speakers": np.array([7, 8, 0], "u8"), "traits": np.full(3, trait, "u2")}
    chain = attrs.evolve(
        three(**columns), lexical=np.full(3, 4.0), cosine=None, earlier=np.array([-1, 0, 1]), later=np.array([1, 2, -1])
    )
    if trait == ASKS:
        chain = attrs.evolve(chain, columns=chain.columns | {"traits": np.array([ASKS, 0, 0], "u2")})
    ranked = FORMULAS["context"](chain, intent, NOW.timestamp(), Weights())
    part = 1 / (1 + Weights().context + Weights().speech)
    named = ("rule", "time", "number", "size", "answer", "before", "neighbour")
    got = {name: np.round(ranked.shares[name] / part, 9).tolist() for name in named if name in ranked.shares}
    assert expected == {name: got[name] for name in named if name in expected}
    assert ("number" in expected) == ("number" in got)


def test_traits_need_a_fit():
    """A named speaker's statement that fits nothing scores next to nothing."""
    columns = {"speakers": np.array([8, 8, 7], "u8"), "traits": np.full(3, 20 | FIRST | TIME, "u2")}
    scores = scored("context", attrs.evolve(three(**columns), cosine=None), names=[7])
    assert 0.01 > scores[2]


NO_BOOSTS = Weights(
    speaker=0.0, first_person=0.0, statement=0.0, rule=0.0, time=0.0, when=0.0, number=0.0, size=0.0,
    mentions=0.0, importance=0.0, confidence=0.0, pinned=0.0, recency=0.0,
)  # fmt: skip


@given(found(), st.data())
def test_no_context_outweighs_a_whole_fit(candidates, data):
    """The candidate that fits best by words and by vectors scores highest, whatever stands beside the others."""
    if not candidates.size:
        return
    place = data.draw(st.integers(0, candidates.size - 1))
    lexical = candidates.lexical.copy()
    lexical[place] = 200.0
    candidates = attrs.evolve(candidates, lexical=lexical)
    if candidates.cosine is not None:
        cosine, embedded = candidates.cosine.copy(), candidates.embedded.copy()
        cosine[place], embedded[place] = 1.5, True
        candidates = attrs.evolve(candidates, cosine=cosine, embedded=embedded)
    scores = scored("context", candidates, NO_BOOSTS)
    assert max(scores) == pytest.approx(scores[place])


@given(found(), st.sampled_from(["neighbour", "session"]), st.data())
def test_context_takes_nothing_away(candidates, signal, data):
    """Without its neighbours or its session no memory scores more."""
    if not candidates.size:
        return
    place = data.draw(st.integers(0, candidates.size - 1))
    without = attrs.evolve(candidates, earlier=candidates.earlier.copy(), later=candidates.later.copy())
    if signal == "neighbour":
        without.earlier[place] = without.later[place] = -1
    else:
        sessions = candidates.columns["sessions"].copy()
        sessions[place] = 0
        without = attrs.evolve(without, columns=candidates.columns | {"sessions": sessions})
    before, after = scored("context", candidates, NO_BOOSTS), scored("context", without, NO_BOOSTS)
    assert after[place] <= before[place] + 1e-12


def test_said_in_passing():
    """One sentence that states a fact comes before a long session that talks around it."""
    size = 9
    columns = {
        "sessions": np.array([1] * 8 + [2], "u8"),
        "speakers": np.zeros(size, "u8"),
        "traits": np.zeros(size, "u2"),
        "updated": np.zeros(size),
        "mentions": np.ones(size, "u4"),
        "importance": np.full(size, 0.5, "f4"),
        "confidence": np.ones(size, "f4"),
        "pinned": np.zeros(size, "u1"),
    }
    places = np.arange(size)
    talk = Candidates(
        columns=columns,
        lexical=np.array([5.0] * 8 + [7.0]),
        cosine=None,
        embedded=np.zeros(size, bool),
        earlier=np.where(places < 8, places - 1, -1),
        later=np.where(places < 7, places + 1, -1),
    )
    assert 8 == int(np.argmax(scored("context", talk)))


def memory(id_, title, tokens=1):
    """Return a memory."""
    return Memory(title=title, id=id_, hash=str(id_), updated_at=NOW, created_at=NOW, token_count=tokens)


def chosen(titles, scores, **asked):
    """Return the ids of the shown hits, and the batches of ids that were read."""
    read = []

    def reading(ids):
        read.append(list(ids))
        return [memory(id_, titles[id_], tokens=10) for id_ in ids if id_ in titles]

    choices = [Choice(id=id_, score=score, place=place) for place, (id_, score) in enumerate(scores)]
    shown = hits(
        choices, reading, {"lexical": np.array([score for _, score in scores])}, Query(filters=FILTERS, **asked)
    )
    return [hit.memory.id for hit in shown], read


def test_near_duplicates_are_shown_once():
    """Of near duplicates only the best is shown, and the next memory takes the other's place."""
    titles = {
        1: "tea at five in the garden of Ann",
        2: "tea at five in the garden of Ann!",
        3: "bike",
        4: "boat",
        5: "rain",
    }
    scores = [(1, 0.9), (2, 0.895), (3, 0.5), (4, 0.4), (5, 0.3)]
    assert ([1, 3, 4], [[1, 2, 3, 4]]) == chosen(titles, scores, limit=3)
    # It is read on only if some of the first ones are not shown.
    assert ([1, 3], [[1, 2, 3]]) == chosen(titles, scores, limit=2)
    assert ([1, 3, 4, 5], [[1, 2, 3, 4, 5]]) == chosen(titles, scores, limit=4)


def test_what_cannot_be_read_is_left_out():
    """A hit that was forgotten meanwhile is replaced by the next one."""
    assert ([2, 4], [[1, 2, 3], [4]]) == chosen(
        {2: "tea", 4: "bike"}, [(1, 0.9), (2, 0.8), (3, 0.7), (4, 0.6)], limit=2
    )


def test_what_hits_may_cost():
    """Hits end before the one that would exceed the token limit, and the first hit is always shown."""
    titles = {1: "tea", 2: "bike", 3: "boat"}
    scores = [(1, 0.9), (2, 0.8), (3, 0.7)]
    assert [[1], [1, 2], [1, 2, 3]] == [chosen(titles, scores, limit=3, max_tokens=most)[0] for most in (5, 29, 30)]


@pytest.mark.shows("003-099")
def test_the_best_passage_of_each():
    """Each memory comes once by its best passage, the newest first among equals, and none below the least score."""
    size = 5
    candidates = Candidates(
        columns={"ids": np.array([1, 1, 2, 3, 4]), "passages": np.array([0, 1, 0, 0, 0], "u2")},
        lexical=np.zeros(size), cosine=None, embedded=np.zeros(size, bool), earlier=np.full(size, -1), later=np.full(size, -1),
    )  # fmt: skip
    ranked = Ranked(scores=np.array([0.2, 0.6, 0.5, 0.5, 0.05]), shares={})
    best = best_of(candidates, ranked, Query(filters=FILTERS, minimum_score=0.1))
    assert [(1, 1, 0.6), (3, 0, 0.5), (2, 0, 0.5)] == [(each.id, each.passage, each.score) for each in best]


def test_explanations_add_up():
    """The shares of a hit are those of its place among the candidates."""
    choices = [Choice(id=1, score=0.7, place=1)]
    shares = {"lexical": np.array([0.0, 0.5]), "recency": np.array([0.0, 0.2])}
    (hit,) = hits(choices, lambda _: [memory(1, "tea")], shares, Query(filters=FILTERS, explain=True))
    assert ({"lexical": 0.5, "recency": 0.2}, 0.7) == (hit.shares, hit.score)
    assert {} == attrs.evolve(hits(choices, lambda _: [memory(1, "tea")], shares, Query(filters=FILTERS))[0]).shares
