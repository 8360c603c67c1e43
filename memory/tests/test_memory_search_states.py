"""An index that follows its store is the index that would be made of it from nothing, however its blocks are cut."""

import contextlib
import hashlib
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from selection import campaign

from beaver_memory.filters import Filters
from beaver_memory.records import NewMemory, Owner
from beaver_memory.search import masks, neighbours, owner_index, snapshot
from beaver_memory.search.block_builder import build
from beaver_memory.search.candidates import CARRIED, SearchSource, gather
from beaver_memory.search.owner_index import OwnerIndex
from beaver_memory.search.snapshot import Model
from beaver_memory.search.terms import Analyser, passages
from beaver_memory.store.protocol import IndexRow
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.testing.store_cases.kit import looking
from beaver_memory.views import ALL_PROJECTS, View
from beaver_memory.writer import Writer

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MODEL = Model(key="m", dimensions=16)
WORDS = ("tea", "bike", "boat", "rain", "moon", "Ann", "Ben")
SEEN = Filters(view=View(now=NOW + timedelta(days=1)))


WIDE = 5
"""Few enough for long memories to take the places of others."""


def source(index):
    return SearchSource(state=index.current(), filters=SEEN)


def vector(text):
    """Return a vector that depends on a text."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")
    found = np.random.default_rng(seed).normal(size=MODEL.dimensions)
    return (found / np.linalg.norm(found)).astype("<f2")


class Kept:
    """A store in a folder of its own, and what changes it."""

    def __init__(self, folder):
        self.store = SqliteStore.open(Path(folder) / "memory.db")
        self.writer = Writer(self.store, Analyser())
        self.ids = []

    def add(self, texts, **fields):
        self.ids += self.writer.add([NewMemory(title=text, **fields) for text in texts], now=NOW)

    def change(self, place, **fields):
        if self.ids:
            self.writer.change(self.ids[place % len(self.ids)], SEEN, event="UPDATE", now=NOW, fields=fields)

    def forget(self, place):
        if self.ids:
            self.store.forget([self.ids.pop(place % len(self.ids))], SEEN, now=NOW)

    def embed(self, count=9):
        rows = [
            (id_, b"".join(vector(each).tobytes() for each in passages(text)))
            for id_, text in self.store.unembedded(Owner(), MODEL.key, ALL_PROJECTS, limit=count)
        ]
        self.store.put_vectors(Owner(), MODEL.key, rows)


@contextlib.contextmanager
def kept():
    """Make a store for a block."""
    with tempfile.TemporaryDirectory() as folder:
        found = Kept(folder)
        with contextlib.closing(found.store):
            yield found


def answers(state, filters=SEEN):
    """Return all that searches find in a state, as plain values."""
    found = []
    for text, asked in (
        ("tea", None),
        ("bike rain Ann", vector("tea")),
        ("moon", vector("boat boat")),
        ("", vector("x")),
    ):
        query = None if asked is None else asked.astype("f4")
        each = gather([SearchSource(state=state, filters=filters)], Analyser().query(text), query, wide=WIDE)
        cosine = None if each.cosine is None else np.round(each.cosine, 6).tolist()
        signals = (each.lexical.tolist(), cosine, each.embedded.tolist(), each.earlier.tolist(), each.later.tolist())
        found.append(({name: each.columns[name].tolist() for name in CARRIED}, signals))
    return found


said = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
session = st.sampled_from(["", "s", "t"])
when = st.integers(0, 4).map(lambda hours: NOW - timedelta(hours=hours))
steps = st.one_of(
    st.tuples(st.just("add"), st.lists(said, min_size=1, max_size=5), session, when),
    st.tuples(
        st.just("add"), st.lists(said.map(lambda text: f"{text}. " * 500), min_size=1, max_size=2), session, when
    ),
    st.tuples(st.just("change"), st.integers(0, 99), said),
    st.tuples(st.just("pin"), st.integers(0, 99)),
    st.tuples(st.just("tag"), st.integers(0, 99), said),
    st.tuples(st.just("forget"), st.integers(0, 99)),
    st.tuples(st.just("embed")),
    st.tuples(st.just("catch up")),
    st.tuples(st.just("tidy")),
)


def do(found, index, step):
    """Do one step."""
    match step:
        case ("add", texts, session, when):
            found.add(texts, session=session, created_at=when)
        case ("change", place, text):
            found.change(place, title=text)
        case ("pin", place):
            found.change(place, pinned=True)
        case ("tag", place, text):
            found.change(place, tags=(text,))
        case ("forget", place):
            found.forget(place)
        case ("embed",):
            found.embed()
        case ("catch up",):
            index.current()
        case ("tidy",):
            index.tidy()


ONE_SESSION = [
    step
    for hour in range(4)
    for step in (("add", ["tea bike", "rain Ann", "moon tea"], "s", NOW - timedelta(hours=hour)), ("catch up",))
]
"""A session in several blocks, with more memories than are put in order at once."""


@pytest.mark.parametrize("many", [2, *campaign(99)])
@example(done=[*ONE_SESSION, ("forget", 1)], tail=1, page=20_000)
@given(done=st.lists(steps, max_size=25), tail=st.sampled_from([1, 3, 64]), page=st.sampled_from([2, 7, 20_000]))
def test_following_is_beginning_anew(done, tail, page, many):
    """After any changes an index that was there all the time finds exactly what a new one finds."""
    with (
        patch.object(snapshot, "TAIL", tail),
        patch.object(neighbours, "MANY", many),
        patch.object(owner_index, "PAGE", page),
        patch.object(owner_index, "VECTOR_PAGE", page),
        kept() as found,
    ):
        index = OwnerIndex(found.store, Owner(), MODEL)
        for step in done:
            do(found, index, step)
        fresh = OwnerIndex(found.store, Owner(), MODEL).current()
        assert answers(fresh) == answers(index.current())
        index.tidy()
        assert answers(fresh) == answers(index.current())
        assert found.store.count(Owner()) == index.state.memories == fresh.memories
        assert [part.live for part in index.state.parts] == [
            snapshot.part_of(part.block, part.stale).live for part in index.state.parts
        ]


def blocks(*sizes):
    """Return a state with blocks of so many memories."""
    terms, length = Analyser().pack(["one"])
    rows = [IndexRow(id=number + 1, version=1, terms=terms, length=length) for number in range(sum(sizes))]
    ends = np.cumsum(sizes).tolist()
    built = (build(rows[end - size : end]) for size, end in zip(sizes, ends, strict=True))
    return snapshot.IndexState(parts=tuple(map(snapshot.part_of, built)))


@pytest.mark.parametrize(
    ("sizes", "most", "count"),
    [
        ((), np.inf, 0),
        ((9,), np.inf, 0),
        ((100, 20, 4), np.inf, 0),
        ((90, 20, 6), np.inf, 3),
        ((500, 20, 6), np.inf, 2),
        ((40, 40, 40, 3), np.inf, 4),
        ((40, 40, 40, 3), 90, 3),
        ((40, 40, 40, 3), 42, 0),
    ],
)
def test_what_is_merged(sizes, most, count):
    """Each block is several times larger than all behind it, also where the last one is small: else they are merged."""
    assert count == snapshot.mergeable(blocks(*sizes), most)


def test_an_older_store_is_noticed():
    """An index that is newer than its store is rebuilt, and a trace says so."""
    told = []
    with kept() as found:
        found.add(["tea"])
        index = OwnerIndex(found.store, Owner(), None, lambda event, **facts: told.append((event, facts)))
        index.current()
        found.add(["bike"])
        later = index.current()
        found.forget(1)
        index._state = snapshot.attrs.evolve(later, version=later.version + 100)
        assert [1] == gather([source(index)], Analyser().query("tea bike"), None).columns["ids"].tolist()
    assert [("index_rebuilt", {"why": "older_store"})] == told


def test_changes_while_blocks_are_merged(monkeypatch):
    """An index keeps every addition, removal and vector that arrives while it merges blocks."""
    with kept() as found:
        index = OwnerIndex(found.store, Owner(), MODEL)
        monkeypatch.setattr(snapshot, "TAIL", 1)
        monkeypatch.setattr(owner_index, "INLINE", 0)
        for number in range(4):
            found.add([f"{WORDS[number]} tea", f"bike {WORDS[number]}"], session="s")
            index.current()
        merge, hurried = snapshot.joined, []

        def joined(*arguments):
            done = merge(*arguments)
            if not hurried:
                hurried.append(True)
                found.forget(1)
                found.embed(4)
                found.add(["moon tea"], session="s")
                index.current()
            return done

        monkeypatch.setattr(snapshot, "joined", joined)
        index.tidy()
        assert (1, 8) == (len(hurried), index.state.memories)
        assert answers(OwnerIndex(found.store, Owner(), MODEL).current()) == answers(index.current())


FIELDS = {
    "store": st.sampled_from(["private", "shared", "social"]),
    "type": st.sampled_from(["fact", "task", "ty\ud800pe"]),
    "scope": st.sampled_from(["session", "project", "global"]),
    "project": st.sampled_from(["", "p", "q"]),
    "session": st.sampled_from(["", "s", "t"]),
    "agent": st.sampled_from(["", "a", "b\0"]),
    "tags": st.lists(st.sampled_from(["x", "y", "z\ud800"]), max_size=2),
    "related_people": st.lists(st.sampled_from(["Ann", "ANN", "STRAßE"]), max_size=2),
    "related_files": st.lists(st.sampled_from(["/a/b.py", "a/c", "a/c/d.py", "/", "a//e"]), max_size=2),
    "source": st.sampled_from(["user", "agent"]),
    "created_at": st.integers(-3, 3).map(lambda hours: NOW + timedelta(hours=hours)),
    "expires_at": st.integers(-3, 3).map(lambda hours: NOW + timedelta(hours=hours)),
    "valid_from": st.integers(-3, 3).map(lambda hours: NOW + timedelta(hours=hours)),
    "valid_until": st.integers(-3, 3).map(lambda hours: NOW + timedelta(hours=hours, microseconds=1)),
}
moments = st.integers(-3, 3).map(lambda hours: NOW + timedelta(hours=hours))
CONDITIONS = {
    "stores": st.lists(st.sampled_from(["private", "shared", "social"]), max_size=3),
    "types": st.lists(st.sampled_from(["fact", "task", "ty\ud800pe"]), max_size=2),
    "tags": st.lists(st.sampled_from(["x", "y", "z\ud800"]), max_size=2),
    "people": st.lists(st.sampled_from(["ann", "Strasse", "nobody"]), max_size=2),
    "file": st.sampled_from(["", "/", "a", "a/c", "a/c/", "/a", "a//e"]),
    "scopes": st.lists(st.sampled_from(["session", "project", "global"]), max_size=2),
    "project": st.sampled_from([None, "p", ALL_PROJECTS]),
    "session": st.sampled_from(["", "s"]),
    "agent": st.sampled_from(["", "a", "b\0"]),
    "sources": st.lists(st.sampled_from(["user", "agent"]), max_size=2),
    "after": moments,
    "before": moments,
    "as_of": moments,
    "lapsed": st.booleans(),
}


def some(choices):
    """Return a few of many fields: with all of them nothing would be seen."""
    names = st.lists(st.sampled_from(sorted(choices)), max_size=3, unique=True)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({name: choices[name] for name in chosen}))


filters = st.tuples(some(CONDITIONS), moments).map(lambda found: {**found[0], "now": found[1]})


@pytest.mark.shows("002-065", "002-066", "003-078", "003-079", "003-090")
@given(st.lists(some(FIELDS), min_size=6, max_size=12), st.lists(filters, min_size=6, max_size=12))
def test_filters_are_the_store_s(given_fields, asked):
    """Whatever the filters, an index lets through exactly the memories that the store shows."""
    with kept() as found:
        for fields in given_fields:
            found.add(["tea"], **fields)
        (part,) = OwnerIndex(found.store, Owner()).current().parts
        for fields in asked:
            which = looking(**fields)
            mask = masks.allowed(part.block, which, part.stale)
            ids = part.block.columns["ids"] if mask is None else part.block.columns["ids"][mask]
            assert sorted(memory.id for memory in found.store.recent(which, limit=99)) == ids.tolist(), which


def test_a_memory_that_is_pinned_keeps_its_vector():
    """A pinned memory keeps its vector, and a memory with a new text loses it."""
    with kept() as found:
        found.add(["tea", "bike"])
        found.embed()
        index = OwnerIndex(found.store, Owner(), MODEL)
        index.current()
        found.change(0, pinned=True)
        found.change(1, title="boat")
        found_now = gather([source(index)], [], vector("tea").astype("f4"))
        assert ([1], [pytest.approx(1, abs=0.01)]) == (found_now.columns["ids"].tolist(), found_now.cosine.tolist())


def test_a_memory_that_gets_other_labels_keeps_its_vector():
    """A tag is a term as well: with another one a memory is found by the vector of its text as before."""
    with kept() as found:
        found.add(["tea", "bike"])
        found.embed()
        index = OwnerIndex(found.store, Owner(), MODEL)
        index.current()
        found.change(0, tags=("green",))
        found_now = gather([source(index)], [], vector("tea").astype("f4"))
        assert (1, pytest.approx(1, abs=0.01), [True, True]) == (
            found_now.columns["ids"][found_now.cosine.argmax()], found_now.cosine.max(), found_now.embedded.tolist()
        )  # fmt: skip


def test_what_is_added_and_embedded_while_vectors_are_read(monkeypatch):
    """What others add and embed between two questions of an index is found by its vector the next time."""
    with kept() as found:
        found.add(["tea"])
        found.embed()
        index, read = OwnerIndex(found.store, Owner(), MODEL), found.store.vectors

        def meanwhile(*given, **limit):
            monkeypatch.setattr(found.store, "vectors", read)
            found.add(["bike"])
            found.embed()
            return read(*given, **limit)

        monkeypatch.setattr(found.store, "vectors", meanwhile)
        index.current()
        assert answers(OwnerIndex(found.store, Owner(), MODEL).current()) == answers(index.current())
        assert 2 == sum(part.vectors.present.sum() for part in index.state.parts)
