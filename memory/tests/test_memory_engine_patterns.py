"""Searches of the engine that the word index of the store answers: for phrases and prefixes, and without an index."""

import contextlib
from datetime import UTC, datetime, timedelta

import pytest

from beaver_memory.engine import MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.layers import Layer, Personal
from beaver_memory.patterns import Pattern, parsed
from beaver_memory.query import Query
from beaver_memory.records import NewMemory, Owner
from beaver_memory.store.joint import PERSONAL_IDS
from beaver_memory.store.personal import PersonalStore
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.testing.store_cases.kit import looking
from beaver_memory.views import View

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ANN = Owner(user="ann")


@pytest.fixture
def traced():
    return []


@pytest.fixture
def engine(tmp_path, traced):
    with MemoryEngine.open(tmp_path, trace=lambda event, **facts: traced.append((event, facts))) as opened:
        yield opened


def add(engine, *titles, **fields):
    """Add memories, each a minute newer than the one before."""
    start = NOW - timedelta(days=1)
    return engine.add(
        [
            NewMemory(**{"title": title, "created_at": start + timedelta(minutes=number), **fields})
            for number, title in enumerate(titles)
        ]
    )


def search(engine, text, limit=9, **filters):
    plain, patterns = parsed(text)
    return engine.search(
        Query(text=plain, patterns=patterns, filters=looking(**{"now": NOW} | filters), limit=limit, explain=True)
    )


def titles(engine, text, **more):
    return [hit.memory.title for hit in search(engine, text, **more).hits]


@pytest.mark.shows("002-002", "002-059")
def test_phrases_and_prefixes(engine):
    """Each hit holds all patterns; among them the plain words rank; of equal ones the newest comes first."""
    add(engine, "The blue whale dives", "A blue whale swims far", "The whale is blue", "Blue whales rest", "blue whale")

    assert ["blue whale", "A blue whale swims far", "The blue whale dives"] == titles(engine, '"blue whale"')
    assert ["The blue whale dives", "blue whale", "A blue whale swims far"] == titles(engine, '"blue whale" diving')
    assert ["A blue whale swims far"] == titles(engine, '"blue whale" sw*')
    assert ["Blue whales rest", "blue whale"] == titles(engine, "whal* resting", limit=2)
    assert [] == titles(engine, '"blue whale" "not there"')


def test_explained(engine):
    """The shares say what a memory was found by, and add up to its score."""
    add(engine, "blue whale configuration", "blue whale configured deep")

    hits = search(engine, '"blue whale" config* deep').hits

    assert [["phrase", "prefix", "lexical"]] * 2 == [[*hit.shares] for hit in hits]
    assert [1.0, 0.75] == pytest.approx([hit.score for hit in hits])
    assert all(abs(sum(hit.shares.values()) - hit.score) < 0.001 for hit in hits)


def test_plain_words_have_no_operators(engine):
    """The text of a query is plain words: quotes and stars in it, as in a prompt, change nothing."""
    add(engine, "The whale is blue", "Configuration files")

    def found(text):
        answer = engine.search(Query(text=text, filters=Filters(view=View(now=NOW))))
        return [(hit.memory.id, hit.score) for hit in answer.hits]

    assert found("blue whale") == found('"blue whale"') != []
    assert found("config") == found("config*") == []


@pytest.mark.parametrize(
    ("text", "which"),
    [
        ('"蓝鲸"', ["蓝鲸很大", "我看见蓝鲸"]),
        ('"蓝鲸很"', ["蓝鲸很大"]),
        ("看*", ["我看见蓝鲸"]),
        ('"고래"', []),
        ("고래*", ["고래는 크다"]),
        ('"🐋"', ["the 🐋 sings"]),
    ],
)
def test_other_scripts(engine, text, which):
    """Phrases of scripts without spaces are found anywhere in a text, and symbols are words."""
    add(engine, "고래는 크다", "我看见蓝鲸", "蓝鲸很大", "the 🐋 sings", "鲸蓝")

    assert which == titles(engine, text)


@pytest.mark.parametrize("text", ['"sea whale"', "whal*", '"鲸"', 'sea "whale"'])
def test_filters_hold(engine, text):
    """Owners, stores and filters hold as for every search, and count for no score."""
    add(engine, *["sea whale 鲸"] * 5, owner=ANN)
    alone = add(engine, "one sea whale 鲸", store="social")
    score = [hit.score for hit in search(engine, text).hits]

    assert (alone, [1.0]) == ([hit.memory.id for hit in search(engine, text).hits], score)
    assert ["one sea whale 鲸"] == titles(engine, text, owners=(ANN, Owner()), stores=("social",))
    assert [] == titles(engine, text, stores=("shared",))
    assert [] == titles(engine, text, owners=())
    assert [] == titles(engine, text, types=("rule",))
    assert [] == titles(engine, text, now=NOW - timedelta(days=9), after=NOW)


@pytest.mark.shows("002-046")
def test_forgotten_and_changed(engine):
    """A phrase of a forgotten memory, or of an earlier text, is not found."""
    first, second = add(engine, "a blue whale", "one blue whale")
    engine.forget([first], Filters(view=View(now=NOW)))
    engine.change(second, Filters(view=View(now=NOW)), event="UPDATE", title="one red whale")

    assert ([], ["one red whale"]) == (titles(engine, '"blue whale"'), titles(engine, '"red whale"'))


@pytest.mark.parametrize(
    "text", ['"' * 10_000, "*" * 10_000, "a*" * 5_000, "x" * 9_999 + "*", '"a" ' * 2_500, '"x y ' * 2_500]
)
def test_long_queries(engine, text):
    """A query of 10,000 characters is answered."""
    add(engine, "a blue whale")

    assert search(engine, text).without_index is None


@pytest.fixture
def joint(tmp_path):
    store = SqliteStore.open(tmp_path / "memory.db")
    personal = Personal(store=PersonalStore(tmp_path / "person.db"))
    with contextlib.closing(MemoryEngine(store, personal=personal)) as opened:
        yield opened


def test_both_databases_answer(joint):
    """The database of the project and that of the person answer in one list, in which a project sees global ones."""
    (ours,), (theirs,) = (
        add(joint, "our blue whale", scope="project"),
        add(joint, "my blue whale swims", scope="global"),
    )

    assert PERSONAL_IDS + 1 == theirs
    assert [theirs, ours] == [hit.memory.id for hit in search(joint, '"blue whale" swim').hits]
    assert [ours] == [hit.memory.id for hit in search(joint, '"blue whale"', scopes=("project",)).hits]


@pytest.mark.shows("002-059", "003-093")
def test_without_an_index(engine, traced, monkeypatch):
    """Where no index can be built, the words of the store answer: a memory with more of the words comes first."""
    add(engine, "a blue whale", "blue sky", "grey whale in the blue sea", "other", owner=ANN)
    add(engine, "blue whale of another user")
    monkeypatch.setattr(Layer, "sources", lambda *_, **__: (_ for _ in ()).throw(MemoryError))

    answer = search(engine, "Where do blue whales swim?", owners=(ANN,))

    assert ["grey whale in the blue sea", "a blue whale", "blue sky"] == [hit.memory.title for hit in answer.hits]
    assert ("out_of_memory", None) == (answer.without_index, answer.keyword_only)
    assert ("index_not_built", {"why": "out_of_memory"}) in traced


def test_patterns_of_a_query():
    """A query takes patterns beside its words."""
    query = Query(text="x", patterns=(Pattern(text="a b"),), filters=Filters(view=View(now=NOW)))
    assert "phrase" == query.patterns[0].kind


@pytest.mark.parametrize(
    ("prefix", "word"),
    [
        ("key", "keyboard"), ("add", "added"), ("day", "daytime"), ("any", "anybody"), ("closi", "closing"),
        ("raisi", "raising"), ("configura", "configuration"), ("tie", "tied"), ("nationali", "nationalised"),
    ],
)  # fmt: skip
def test_a_prefix_finds_words_whose_stem_differs(tmp_path, prefix, word):
    """A prefix finds every word that begins with it, whatever the index makes of the stems of both."""
    with MemoryEngine.open(tmp_path) as engine:
        engine.add([NewMemory(title=f"The {word} here"), NewMemory(title="Something else")])
        query = Query(
            patterns=(Pattern(text=prefix, is_prefix=True),), filters=Filters(view=View(now=datetime.now(UTC)))
        )

        assert [f"The {word} here"] == [hit.memory.title for hit in engine.search(query).hits]


def test_a_phrase_is_found_behind_many_other_forms(tmp_path):
    """An old memory with the phrase is found although thousands of newer ones hold other forms of its words."""
    with MemoryEngine.open(tmp_path) as engine:
        engine.add([NewMemory(title="the blue whale sings")])
        engine.add([NewMemory(title=f"blue whales number {number}") for number in range(2_100)])
        query = Query(patterns=(Pattern(text="blue whale"),), filters=Filters(view=View(now=datetime.now(UTC))))

        assert ["the blue whale sings"] == [hit.memory.title for hit in engine.search(query).hits]
