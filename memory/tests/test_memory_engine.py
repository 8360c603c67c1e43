"""The engine: an added memory is found, for any query and whatever the embedder does."""

import os
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from letters import Letters, Traces

from beaver_memory.embedding.errors import failure
from beaver_memory.engine import MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.records import NewMemory, Owner
from beaver_memory.search.formulas import FORMULAS
from beaver_memory.views import ALL_PROJECTS, View

QUERIES = int(os.environ.get("BEAVER_LOCAL_QUERIES", settings.default.max_examples))
WHEN = datetime(2026, 3, 1, tzinfo=UTC)
OWNER = Owner()
SEEN = Filters(view=View(now=datetime(2036, 1, 1, tzinfo=UTC)))


@pytest.fixture
def engine(tmp_path):
    with MemoryEngine.open(tmp_path) as opened:
        yield opened


def titles(engine, text, **asked):
    """Return what a search finds."""
    return [hit.memory.title for hit in engine.search(Query(text=text, **{"filters": SEEN, **asked})).hits]


def said(*texts, **fields):
    """Return memories."""
    return [NewMemory(title=text, **{"created_at": WHEN, **fields}) for text in texts]


@pytest.mark.parametrize("ahead", [timedelta(microseconds=1), timedelta(hours=1), timedelta(days=400)])
def test_what_was_said_later_than_now_is_found(tmp_path, ahead):
    """A memory dated later than now is found at once, also from an index file."""
    before = Filters(view=View(now=WHEN - ahead))
    with MemoryEngine.open(tmp_path) as engine:
        engine.add(said("The canary sings at noon."))
        found = titles(engine, "canary", filters=before), titles(engine, "", filters=before)
    with MemoryEngine.open(tmp_path) as engine:
        again = titles(engine, "canary", filters=before)

    assert (["The canary sings at noon."],) * 3 == (*found, again)


@pytest.mark.parametrize("score", [float("nan"), -0.1, 1.1, "1"])
def test_a_least_score_that_is_none(score):
    """A query refuses a least score that is no number from 0 to 1."""
    with pytest.raises((ValueError, TypeError)):
        Query(filters=SEEN, minimum_score=score)


def test_what_is_not_true_yet(engine):
    """`now` hides a memory before its `valid_from`, and `as_of` also hides memories that were said later."""
    engine.add(said("The canary sings.", valid_from=WHEN + timedelta(hours=1)) + said("A canary flew in."))
    moments = [WHEN + timedelta(hours=hours) for hours in (-1, 0, 1)]

    assert [1, 1, 2] == [len(titles(engine, "canary", filters=Filters(view=View(now=each)))) for each in moments]
    assert [0, 1, 2] == [
        len(titles(engine, "canary", filters=Filters(view=View(now=WHEN), as_of=each))) for each in moments
    ]


FINDABLE = {
    "Ann's address is 42 Elm Street": ("42", "elm", "Ann", "address 42", "ANN'S"),
    "call parseHttpHeader() in src/net_utils.py": (
        "parseHttpHeader",
        "net_utils",
        "header",
        "utils",
        "parsehttpheader",
    ),
    "北京的天气很好": ("天气", "北京", "好", "北京天气"),
    "今日はとても暑い": ("暑", "今日"),
    "서울에서 만나요": ("서울", "만나"),
    "Use Go or C on x86": ("Go", "C", "x86"),
    "party \U0001f389 tonight": ("\U0001f389", "\U0001f389\U0001f389", "party\U0001f389"),
    "café crème brûlée": ("cafe", "CRÈME", "bru\u0302lée"),
    "version 3.14.15 of the build": ("3.14.15", "14"),
    "Straße in Zürich": ("strasse", "zurich", "ZÜRICH"),
    "ticket ABC-1234 is open": ("ABC-1234", "1234"),
    "nul\0inside and \ud800 surrogate": ("inside", "surrogate", "nul\0"),
}


@pytest.mark.shows("002-003", "002-059", "002-062", "003-007", "003-093")
def test_findable_things_are_found(engine):
    """Names, numbers, identifiers, scripts without spaces, symbols and short words are found by their parts."""
    engine.add(said(*FINDABLE))
    stored = [text.replace("\0", "\ufffd").replace("\ud800", "\ufffd") for text in FINDABLE]
    missed = [
        (title, text)
        for title, texts in zip(stored, FINDABLE.values(), strict=True)
        for text in texts
        if title != next(iter(titles(engine, text)), None)
    ]
    assert [] == missed


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    with MemoryEngine.open(tmp_path_factory.mktemp("filled"), embedder=Letters()) as opened:
        opened.add(said(*FINDABLE))
        opened.add([NewMemory(title="long " * 400 + "needle " + "hay " * 900, created_at=WHEN)])
        opened.embed(limit=6)
        yield opened


pieces = st.one_of(
    st.text(max_size=40),
    st.text(alphabet=st.characters(categories=["Cs", "Cc", "Cf", "Co", "So", "Mn", "Lo"]), max_size=20),
    st.sampled_from(
        [
            "NEAR(",
            '"',
            "*",
            "-",
            "AND",
            "OR NOT",
            "^",
            "{}",
            ":",
            "title:",
            "'; DROP TABLE x;--",
            "\0",
            "the",
            "who is it",
        ]
    ),
    st.sampled_from(["needle", "\U0001f389", "天", "x86", "\ud800", "\udc00", "ABC-1234", "parseHttpHeader"]),
)


@settings(max_examples=QUERIES, suppress_health_check=list(HealthCheck))
@given(st.lists(pieces, max_size=8).map(" ".join), st.sampled_from(sorted(FORMULAS)), st.integers(1, 20), st.booleans())
def test_any_query(filled, text, formula, limit, explain):
    """Whatever is asked, there is an answer without an error, the same each time, whose shares add up."""
    query = Query(text=text, filters=SEEN, formula=formula, limit=limit, explain=explain)
    answer = filled.search(query)
    assert answer == filled.search(query)
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(np.isfinite(scores))
    for hit in answer.hits if explain and hit_shares(answer) else ():
        assert hit.score == pytest.approx(sum(hit.shares.values()), abs=1e-4)


def hit_shares(answer):
    """Whether it was ranked at all: the newest have no shares."""
    return any(hit.shares for hit in answer.hits)


@pytest.mark.parametrize("unit", ["a", "needle ", "the ", "\0", "\ud800", '"', "天", "\U0001f389", "NEAR( ", "x_Y1"])
def test_a_query_of_a_megabyte(filled, unit):
    """A query of a megabyte is answered like any other."""
    answer = filled.search(Query(text=unit * (1_000_000 // len(unit)), filters=SEEN))
    assert answer.hits


@pytest.mark.shows("002-060")
def test_without_words_the_newest_come(engine):
    """A query without content words returns the newest memories, up to its limit."""
    engine.add([*said("old"), NewMemory(title="new", created_at=WHEN + timedelta(days=1))])
    assert [["new", "old"]] * 3 == [titles(engine, text) for text in ("", "the who is it", "?!")]
    assert ["new"] == titles(engine, "", limit=1)


def test_without_words_nothing_scores_enough(engine):
    """The newest memories score nothing, so a query without words and with a least score returns none."""
    engine.add([NewMemory(title="tea"), NewMemory(title="bike")])
    assert (["bike", "tea"], []) == (titles(engine, "who are you?"), titles(engine, "who are you?", minimum_score=0.1))


def test_many_that_say_the_same(engine):
    """Many memories with the same text do not displace other memories from the hits."""
    engine.add([NewMemory(title="The backup of the server in the cellar of the office was fine today.")] * 60)
    engine.add([NewMemory(title="The backup is looked at by Ann."), NewMemory(title="A server is noisy.")])
    found = titles(engine, "backup server cellar office", limit=5)
    assert ["The backup of the server in the cellar of the office was fine today.", "The backup is looked at by Ann.",
            "A server is noisy."] == [found[0], *sorted(found[1:], reverse=True)]  # fmt: skip


def test_the_best_passage_of_a_long_text(engine):
    """A query for one passage finds its long memory, and the hit names the passage."""
    engine.add(said("alpha. " + "filler words here. " * 200 + "The needle is under the bed. " + "more words. " * 100))
    (hit,) = engine.search(Query(text="needle bed", filters=SEEN)).hits
    assert hit.passage > 0


def test_neighbours_come_along(engine):
    """The neighbour of a hit in its session is found too, though each memory was added in a write of its own."""
    for text in ("Where is the key?", "Under the red stone", "Good night"):
        engine.add(said(text, session="s"))
    engine.add(said("Something else"))
    assert ["Where is the key?", "Under the red stone"] == titles(engine, "key")


@pytest.mark.shows("003-109")
def test_owners_are_apart(engine):
    """Nothing of another owner is found; several owners are searched together."""
    ann, ben = Owner(user="ann"), Owner(user="ben")
    engine.add([*said("tea of Ann", owner=ann), *said("tea of Ben", owner=ben)])
    found = [
        titles(engine, "tea", filters=Filters(view=View(owners=owners, now=SEEN.view.now)))
        for owners in ((ann,), (ben,), (ann, ben), ())
    ]
    assert [["tea of Ann"], ["tea of Ben"], ["tea of Ben", "tea of Ann"], []] == found


def test_a_change_is_found_at_once(engine):
    """A changed memory is found by its new text only, and a forgotten one by none."""
    (id_,) = engine.add(said("green tea"))
    assert ["green tea"] == titles(engine, "tea")
    engine.change(id_, SEEN, event="UPDATE", title="black coffee", tags=("drink",))
    assert ([], ["black coffee"], ["black coffee"]) == tuple(
        titles(engine, text) for text in ("tea", "coffee", "drink")
    )
    assert None is engine.change(99, SEEN, event="UPDATE", title="x")
    assert engine.change(id_, SEEN, event="PIN", pinned=True).pinned
    assert ["ADD", "UPDATE", "PIN"] == [each.event for each in engine.history(id_, SEEN)]
    assert [id_] == engine.forget([id_], SEEN)
    assert ([], [], []) == (titles(engine, "coffee"), engine.get([id_], SEEN), engine.timeline(id_, SEEN))


def down(_):
    raise failure("test", "unavailable", "The test is down", "Wait.")


def slow(_):
    raise failure("test", "timeout", "The test is slow", "Wait.")


@pytest.mark.shows("002-063", "002-121", "003-111")
@pytest.mark.parametrize(
    ("fault", "category"),
    [
        (down, "unavailable"),
        (slow, "timeout"),
        (lambda rows: rows[:, :-1], "wrong_dimension"),
        (lambda rows: rows * np.nan, "not_finite"),
        (lambda rows: rows * np.inf, "not_finite"),
    ],
)
def test_an_embedder_that_fails(tmp_path, fault, category):
    """Without a vector the words alone are searched; the answer says why, and so does the trace, without the text."""
    embedder, traces = Letters(), Traces()
    with MemoryEngine.open(tmp_path, embedder=embedder, trace=traces) as engine:
        engine.add(said("green tea", "red bike"))
        engine.embed()
        embedder.fault = fault
        answer = engine.search(Query(text="tea", filters=SEEN))
        assert (["green tea"], category) == ([hit.memory.title for hit in answer.hits], answer.keyword_only)
        engine.add(said("blue boat"))
        with pytest.raises(Exception) as caught:
            engine.embed()
        assert category == caught.value.category
        embedder.fault = None
        assert 1 == engine.embed()
        assert None is engine.search(Query(text="tea", filters=SEEN)).keyword_only
    assert [("embedding_failed", {"provider": "test", "category": category, "length": 3})] == traces


@pytest.mark.shows("002-004", "002-005", "002-061", "003-030", "003-094", "003-128")
def test_vectors_find_what_words_do_not(tmp_path):
    """A query finds a memory by its vector that shares no word with it, beside one by its words that has no vector."""
    with MemoryEngine.open(tmp_path, embedder=Letters()) as engine:
        engine.add(said("zzz qqq", "aaa bbb"))
        assert 2 == engine.embed()
        assert "zzz qqq" == titles(engine, "qzqz")[0]
        engine.add(said("red bike"))
        assert {"zzz qqq", "red bike"} <= {*titles(engine, "qzqz bike")}


def test_a_language_that_the_model_does_not_know(tmp_path):
    """A Chinese query is not embedded by e5-small, which knows no Chinese, and is found by its words."""

    def fault(_):
        raise AssertionError("a Chinese query is embedded")

    traces = Traces()
    with MemoryEngine.open(tmp_path, embedder=Letters("e5-small", "onnx", fault), trace=traces) as engine:
        engine.add([NewMemory(title="我的猫叫咪咪。"), NewMemory(title="今天下雨了。")])
        answer = engine.search(Query(text="猫叫什么名字\uff1f", filters=SEEN))

    assert (None, "我的猫叫咪咪。") == (answer.keyword_only, answer.hits[0].memory.title)
    assert [] == [event for event, _ in traces if event == "embedding_failed"]


def test_a_text_that_changes_while_it_is_embedded(tmp_path):
    """A vector of a text that changed during embedding is dropped, and the memory is embedded again."""
    embedder = Letters()
    with MemoryEngine.open(tmp_path, embedder=embedder) as engine, MemoryEngine.open(tmp_path) as other:
        (id_,) = engine.add(said("green tea"))

        def meddle(rows):
            embedder.fault = None
            other.change(id_, SEEN, event="UPDATE", title="black coffee")
            return rows

        embedder.fault = meddle
        engine.embed(limit=1)
        key = embedder.identity.key
        assert (1, [(id_, "black coffee")]) == (
            engine.store.pending(OWNER, key, ALL_PROJECTS),
            engine.store.unembedded(OWNER, key, ALL_PROJECTS, limit=9),
        )
        engine.embed()
        (row,) = engine.store.vectors(OWNER, key, 0, limit=9)
        assert embedder.embed_passages(["black coffee"]).astype("<f2").tobytes() == row.data


def test_another_model_takes_over_when_it_is_ready(tmp_path):
    """The old embedder answers until the new one has embedded as much; then the new one does."""
    with MemoryEngine.open(tmp_path, embedder=Letters("old")) as engine:
        engine.add(said(*(f"word{number} {chr(97 + number) * 4}" for number in range(8))))
        engine.embed(limit=99)
    old, new, traces = Letters("old"), Letters("new"), Traces()
    asked = []
    for name, each in (("old", old), ("new", new)):
        each.fault = lambda rows, name=name: asked.append((name, len(rows))) or rows
    with MemoryEngine.open(tmp_path, embedder=new, previous=old, trace=traces) as engine:
        found = titles(engine, "aaab")
        engine.embed(limit=5)
        assert found == titles(engine, "aaab")
        assert [("old", 1), ("new", 5), ("old", 1)] == asked
        assert [] == traces
        engine.embed(limit=5)
        assert [("model_switched", {"provider": "test", "dimensions": 26})] == traces
        assert found == titles(engine, "aaab")
        assert [("new", 3), ("new", 1)] == asked[3:]
    assert (1, 1) == (old.closed, new.closed)


def test_terms_are_those_that_a_search_finds_by(engine):
    """A query has the terms of its words: other forms of a word share its term, and a stop-word has none."""
    assert engine.terms("it rains") == engine.terms("the raining")
    assert 2 == len(engine.terms("tea rains, rain"))
    assert frozenset() == engine.terms("it is")
