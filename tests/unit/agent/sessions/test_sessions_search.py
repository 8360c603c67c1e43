"""Search finds visible messages, and nothing in a query can break it."""

import random
import tempfile
from pathlib import Path

import pytest
from case_files import rows
from hypothesis import given
from hypothesis import strategies as st
from selection import campaign

from beaver_hooks.agent.sessions import query as queries
from beaver_hooks.agent.sessions.database import SessionDatabase
from beaver_hooks.agent.sessions.query import SNIPPET, SearchScope, search, snippet
from beaver_hooks.agent.sessions.store import SessionStore
from beaver_hooks.agent.sessions.sums import DamagedMessages
from beaver_hostspecs import Message

DATA = Path(__file__).with_name("data")
HOSTILE = [
    '"', "'", "*", "-", "NEAR", "AND", "OR", "NOT", "(", ")", "{", "}", ":", "^", "+", "\0", "\ud800", "scope",
    "s1", " ", "a", "数",
]  # fmt: skip


@pytest.fixture
async def store(tmp_path):
    store = SessionStore.open(tmp_path / "state")
    yield store
    await store.close()


async def say(store, session, *texts, user=None):
    await store.ensure(session, user)
    for text in texts:
        await store.append_exchange(session, [Message(role="user", text=text)])


async def found(store, query, **where):
    return [hit.snippet for hit in await store.search(query, **where)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [*rows(DATA / "found.jsonl", "query", "expected"), ("\0\ud800", [])],
)
async def test_what_is_found(store, query, expected):
    """Signs, pairs of signs, one letter, other forms of a word and symbols are found; syntax is only words."""
    await say(
        store, "a", "我们的数据库设计", "We use Go, not R", "한국어를 배워요", "the cafe deploys daily", "🦫 builds"
    )

    assert expected == await found(store, query)


async def test_the_best_comes_first(store):
    """More of the terms, and rarer ones, are better; of equal messages the newer one; the limit cuts the rest."""
    await say(store, "a", "alpha beta", "alpha", "alpha beta gamma", "beta", "alpha", *["delta"] * 9)
    hits = await store.search("alpha beta gamma")

    assert ["alpha beta gamma", "alpha beta", "beta", "alpha", "alpha"] == [hit.snippet for hit in hits]
    assert sorted(hits, key=lambda hit: (hit.score, hit.when), reverse=True) == [*hits]
    assert hits[:2] == await store.search("alpha beta gamma", 2)
    assert () == await store.search("alpha", 0) == await store.search("alpha", -1)


async def test_where_to_search(store):
    """A search can be kept to a session or to a user, and away from a session, of which it need not know."""
    await say(store, "a", "word one", user="me")
    await say(store, "b", "word two", user="me")
    await say(store, "c", "word three", user="you")
    await say(store, "d", "word four")

    assert ["word two"] == await found(store, "word", session_id="b")
    assert ["word two", "word one"] == await found(store, "word", user_id="me")
    assert ["word two"] == await found(store, "word", user_id="me", exclude_session="a")
    assert [] == await found(store, "word", user_id="you", session_id="a")
    assert [] == await found(store, "word", user_id="nobody")
    assert 4 == len(await found(store, "word", exclude_session="unknown"))


async def test_common_words_are_bounded(store, monkeypatch):
    """If every term is common, messages with all terms come first, then the newest messages with any term."""
    monkeypatch.setattr(queries, "BUDGET", 3)
    await say(store, "a", "alpha beta", *["alpha"] * 4, *["beta"] * 3, "rare alpha")

    rare = await store.search("alpha rare")

    assert ["alpha beta", "beta", "beta", "rare alpha"] == await found(store, "alpha beta")
    assert ["alpha beta"] == await found(store, "alpha beta", limit=1)
    assert ["rare alpha", "alpha", "alpha"] == [hit.snippet for hit in rare]
    assert sorted((hit.score for hit in rare), reverse=True) == [hit.score for hit in rare]


async def test_a_query_of_a_megabyte(store):
    """A huge query searches for its beginning."""
    await say(store, "a", "needle")

    assert ["needle"] == await found(store, "needle " + "x " * 500_000)
    assert [] == await found(store, "x" * 1_000_000)


@pytest.mark.parametrize(
    ("text", "wanted", "expected"),
    [
        ("short", ["short"], "short"),
        ("x " * 200, ["none"], ("x " * (SNIPPET // 2)).strip() + "…"),
        ("x " * 200 + "Needle\n\there", ["needle"], "…" + "x " * 20 + "Needle here"),
        ("for " * 100 + "R 数", ["r"], "…" + "for " * 10 + "R 数"),
        ("no terms", [], "no terms"),
    ],
)
def test_snippets(text, wanted, expected):
    """A snippet shows the first term that matches, else the beginning of the text, and marks omitted text."""
    assert expected == snippet(text, wanted)


@pytest.fixture(scope="module")
def connection():
    with tempfile.TemporaryDirectory() as folder:
        database = SessionDatabase(Path(folder))
        yield database.connection()
        database.close()


@given(st.one_of(st.text(st.characters()), st.lists(st.sampled_from(HOSTILE)).map("".join)))
def test_no_query_is_an_error(connection, query):
    """No query makes SQLite raise a syntax error."""
    assert [] == search(connection, query, 10, SearchScope(within=("s1",), without=("s2",)), DamagedMessages())


@pytest.mark.parametrize("queries", [100, *campaign(1000)])
async def test_hostile_queries_over_hostile_messages(store, queries):
    """Mixtures of operators, quotes, NUL and lone surrogates: stored, searched, and never an error."""
    chance = random.Random(1)
    texts = ["".join(chance.choices(HOSTILE, k=chance.randint(0, 20))) for _ in range(50)]
    await say(store, "a", *texts)
    hits = [await store.search("".join(chance.choices(HOSTILE, k=chance.randint(0, 12)))) for _ in range(queries)]

    assert all(len(each) <= 10 for each in hits)
    assert sum(map(len, hits)) > queries
    assert () == await store.integrity()
