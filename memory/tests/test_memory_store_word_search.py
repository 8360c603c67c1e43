"""The search for phrases and prefixes in the store, and the ways that questions take through the file."""

import contextlib
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from beaver_memory.patterns import Pattern, parsed
from beaver_memory.records import Owner
from beaver_memory.store.queries import queries_of
from beaver_memory.store.sqlite import SqliteStore, reads, upsert, word_index
from beaver_memory.store.sqlite.owners import TenantOwners
from beaver_memory.store.sqlite.sql_filters import conditions
from beaver_memory.testing.store_cases.filters import FILTERS
from beaver_memory.testing.store_cases.kit import NOW, looking, new


@pytest.fixture
def store(tmp_path):
    with contextlib.closing(SqliteStore.open(tmp_path / "memory.db")) as opened:
        yield opened


def found(store, *texts, limit=9, **filters):
    return store.matching([Pattern(text=text) for text in texts], looking(**filters), limit=limit)


@pytest.mark.shows("002-002", "003-083")
def test_words_of_every_field(store):
    """Title, narrative, facts, tags, keywords and people are found, by stems and without accents."""
    fields = {
        "narrative": "running",
        "facts": ("first\nsecond", r"C:\new"),
        "tags": ("tagged",),
        "keywords": ("keyword",),
        "related_people": ("Zoë",),
        "summary": "unseen",
    }
    (id_,) = store.add([new("Cafés", **fields)], now=NOW)
    for word in ("cafe", "runs", "second", "new", "C", "tag", "keywords", "zoe", "ZOË", "first second"):
        assert [id_] == found(store, word)
    for word in ("unseen", "nsecond", "zo", "second first"):
        assert [] == found(store, word)


@pytest.mark.shows("003-116")
def test_newest_first(store):
    """All patterns must match; the newest come first; the limit holds."""
    ids = store.add([new(f"common number{number}", at=-number) for number in range(20)], now=NOW)
    assert ids[:5] == found(store, "common", limit=5)
    assert [ids[7]] == found(store, "common", "number7")
    assert ([], [], []) == (found(store, "common", limit=0), found(store), found(store, "number7", "number8"))


@pytest.mark.shows("002-002", "002-046")
def test_the_index_follows(store):
    """A changed memory is found by its new words only, and a forgotten one by none."""
    first, second = store.add([new("alpha", tags=("beta",)), new("alpha")], now=NOW)
    assert [first, second] == sorted(found(store, "alpha"))
    store.change(first, looking(), event="UPDATE", now=NOW, title="gamma", terms=b"g", length=1)
    store.change(first, looking(), event="UPDATE", now=NOW, tags=("delta",))
    assert ([second], [first], [], [first]) == tuple(found(store, word) for word in ("alpha", "gamma", "beta", "delta"))
    store.forget([first], looking(), now=NOW)
    assert ([], []) == (found(store, "gamma"), found(store, "delta"))
    assert [] == store.check(None)


def test_the_index_catches_up_in_parts(store, monkeypatch):
    """A word index that lags finds added, changed and forgotten memories correctly, and passes the check."""
    monkeypatch.setattr(word_index, "AT_ONCE", 2)
    first, second, third = store.add([new("alpha one"), new("alpha two"), new("alpha three")], now=NOW)
    store.change(first, looking(), event="UPDATE", now=NOW, title="beta", terms=b"b", length=1)
    store.forget([second], looking(), now=NOW)
    assert [] == store.check(None)
    assert ([third], [first]) == (found(store, "alpha"), found(store, "beta"))
    fourth, fifth = store.add([new("alpha four"), new("alpha five")], now=NOW)
    store.change(third, looking(), event="UPDATE", now=NOW, title="gamma", terms=b"g", length=1)
    store.forget([first, fourth], looking(), now=NOW)
    assert [] == store.check(None)
    assert ([fifth], [], [third]) == tuple(found(store, word) for word in ("alpha", "beta", "gamma"))
    assert [] == store.check(None)


@pytest.mark.parametrize(
    ("word", "shortest"),
    [("happiness", 1), ("generalization", 1), ("configuration", 1), ("running", 1), ("keyboard", 1), ("added", 1)],
)
def test_prefixes_beyond_the_stem(store, word, shortest):
    """A word is found by each of its beginnings, also where the index holds only a shorter stem of it."""
    (id_,) = store.add([new(f"the {word}")], now=NOW)
    ends = range(shortest, len(word) + 1)
    hits = [store.matching([Pattern(text=word[:end], is_prefix=True)], looking(), limit=9) for end in ends]
    assert [[id_]] * len(hits) == hits


def test_filters_hold_in_the_search(store):
    """What may not be seen is not found, and takes no place from what may."""
    hidden = [new("word word word 鲸鱼", owner=Owner(user="x")) for _ in range(10)]
    (*_, seen, social) = store.add([*hidden, new("word 鲸鱼"), new("word 鲸鱼", store="social", tags=("t",))], now=NOW)
    for word in ("word", "鲸鱼"):
        assert {seen, social} == {*found(store, word, limit=2)}
        assert [social] == found(store, word, stores=("social",))
        assert [social] == found(store, word, tags=("t",))
        assert [] == found(store, word, owners=())
        assert [] == found(store, word, stores=())


OPERATORS = (
    "NEAR",
    "AND",
    "OR",
    "NOT",
    '"',
    "'",
    "*",
    "-",
    "^",
    "(",
    ")",
    "{",
    "}",
    ":",
    "+",
    "title:",
    "\0",
    "\ud800",
)
TEXTS = st.lists(
    st.one_of(
        st.text(),
        st.sampled_from([*OPERATORS, "鲸鱼", "🐋", "e\u0301"]),
        st.lists(st.sampled_from(OPERATORS)).map("".join),
    )
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=TEXTS, is_prefix=st.booleans())
def test_no_pattern_is_an_error(store, texts, is_prefix):
    """Whatever a search holds, nothing raises."""
    if not store.count(Owner()):
        store.add([new("NEAR title OR and not é 鲸鱼")], now=NOW)
    patterns = [*parsed(" ".join(texts))[1], *(Pattern(text=text, is_prefix=is_prefix) for text in texts)]
    assert store.matching(patterns, looking(), limit=5) is not None


def test_a_word_of_a_megabyte_and_a_thousand_words(store):
    """Very long and very many patterns cost little and raise nothing."""
    (id_,) = store.add([new("word")], now=NOW)
    assert [] == found(store, "x" * 1_000_000)
    assert [] == found(store, '"' * 1_000_000)
    assert [] == found(store, "鲸 " * 10_000)
    assert [id_] == found(store, *["word"] * 1000)


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    items = [new(f"m{number}", owner=Owner(user=f"u{number % 9}"), tags=("a",)) for number in range(900)]
    with contextlib.closing(SqliteStore.open(tmp_path_factory.mktemp("plan") / "memory.db")) as store:
        store.add(items, now=NOW)

        def explained(sql, params):
            with store._connector.reading() as connection:
                rows = connection.execute(f"EXPLAIN QUERY PLAN {sql}", params).fetchall()
            return [row[3] for row in rows]

        yield explained


def is_fast(steps):
    """Return whether a plan looks at no whole table and sorts nothing."""
    whole = [step for step in steps if step.startswith("SCAN") and "json_each" not in step and "VIRTUAL" not in step]
    return not whole and not any("TEMP B-TREE" in step for step in steps)


@pytest.mark.parametrize("fields", [fields for fields in FILTERS if fields != {"stores": ()}], ids=str)
@pytest.mark.parametrize("bound", [None, ("<", 5, 5), (">", 5, 5)], ids=str)
def test_recent_and_timeline_follow_an_index(plan, fields, bound):
    """Whatever the filters, the newest memories and the neighbours in time are read in order, without sorting."""
    which = conditions(looking(**({"now": NOW + timedelta(hours=1)} | fields)))
    for sql, params in reads._walks(TenantOwners(1, {3: Owner()}), which, bound):
        steps = plan(sql.replace("{columns}", "o.title"), (*params, 5))
        assert is_fast(steps), steps
        begin = (
            "l USING PRIMARY KEY (tenant=? AND owner=? AND label=?"
            if which.ways
            else "observations_by_time (tenant=? AND owner=?"
        )
        assert begin in steps[0]
        if bound:
            assert "created_at" in steps[0]


def test_the_other_questions_follow_an_index(plan):
    """Memories by id, changes, the last version and the same memory are found by an index."""
    among = queries_of("sqlite", "reads")["memories_by_id"].format(
        columns="o.title", owners="?", conditions=conditions(looking()).sql
    )
    by_id = "SEARCH o USING INDEX observations_by_id (tenant=? AND id=?)"
    assert by_id in plan(among, ("[1]", 1, 3, *conditions(looking()).params))
    versions = queries_of("sqlite", "versions")
    same = queries_of("sqlite", "upsert")["same_memory"], upsert._key(new("m3").memory, (1, 3), NOW)
    for sql, params in (
        (versions["changed_memories"].format(columns="o.id"), (1, 3, 5, 5)),
        (versions["last_version"], (1, 3)),
        same,
    ):
        assert is_fast(plan(sql, params)), sql
