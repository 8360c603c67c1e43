"""A large owner in PostgreSQL is answered at once, from candidates, while its index is built beside."""

import contextlib
import itertools
import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs
import numpy as np
import postgres_server
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from letters import Letters
from selection import campaign

from beaver_hostspecs import Secret
from beaver_memory.engine import MemoryEngine
from beaver_memory.errors import StoreError
from beaver_memory.filters import Filters
from beaver_memory.patterns import parsed
from beaver_memory.query import Query
from beaver_memory.records import NewMemory, Owner
from beaver_memory.search import owner_index
from beaver_memory.search.candidates import SearchSource, gather
from beaver_memory.search.sample import sample_of
from beaver_memory.search.terms import Analyser
from beaver_memory.store.candidate_store import CandidateRows
from beaver_memory.store.in_memory import Database, InMemoryStore
from beaver_memory.store.postgres import PostgresStore
from beaver_memory.store.protocol import IndexRow
from beaver_memory.testing.store_cases.kit import looking
from beaver_memory.views import View

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=400)
WORDS = ("tea", "bike", "boat", "rain", "moon", "harbour", "lantern", "garden", "Ann", "Ben", "meets", "sails")
SENTENCE = st.lists(st.sampled_from(WORDS), min_size=1, max_size=7).map(" ".join)
MINUTE = timedelta(minutes=1)
NUMBERS = itertools.count()


class Watched(PostgresStore):
    """A store that counts the searches which it answers itself, and can hold up the build of an index."""

    def __init__(self, connector):
        super().__init__(connector)
        self.answered = self.asked = 0
        self.building, self.gate = threading.Event(), threading.Event()
        self.gate.set()

    def candidates(self, owner, filters, wanted):
        self.answered += 1
        return super().candidates(owner, filters, wanted)

    def versions(self, owners, model=None):
        self.asked += 1
        return super().versions(owners, model)

    def changed(self, owner, after, *, limit):
        self.building.set()
        self.gate.wait()
        return super().changed(owner, after, limit=limit)


class Endless(Watched):
    """A store whose owners have more and more changes."""

    def changed(self, owner, after, *, limit):
        self.building.set()
        return [IndexRow(id=1, version=after + 1)]


@pytest.fixture(scope="module")
def database():
    """The address and the schema of an empty store, which the tests of this module share: each has its own tenant."""
    url, schema = postgres_server.shared(), f"beaver_large_{os.getpid()}"
    postgres_server.emptied(url, schema)
    return url, schema


@pytest.fixture
def owner(request):
    """An owner of this test."""
    return Owner(tenant=request.node.name, user="u")


def opened(database, store=Watched, small=0, **options):
    url, schema = database
    return MemoryEngine(store.open(Secret(url), schema=schema), embedder=Letters(), small=small, **options)


def fill(engine, owner, texts, **fields):
    """Add and embed memories, one a minute, and return their ids."""
    ids = engine.add(
        [
            NewMemory(**{"title": text, "owner": owner, "created_at": NOW + place * MINUTE} | fields)
            for place, text in enumerate(texts)
        ]
    )
    while engine.embed(owners=[owner]):
        pass
    return ids


def asked(engine, text, owner, **filters):
    """Return the hits of a search: id, passage and score, without the digits that depend on the order of sums."""
    seen = looking(**{"owners": (owner,), "now": LATER} | filters)
    found = engine.search(Query(text=text, filters=seen)).hits
    return [(hit.memory.id, hit.passage, round(hit.score, 9)) for hit in found]


def texts(count, seed=1):
    """Return texts of some words."""
    drawn = np.random.default_rng(seed).integers(0, len(WORDS), (count, 5))
    return [" ".join(WORDS[place] for place in row) for row in drawn.tolist()]


def wait_for_index(engine, owner):
    """Search until the index answers."""
    before = -1
    while engine.store.answered > before:
        before = engine.store.answered
        for thread in threading.enumerate():
            if thread.name == "beaver-memory-index":
                thread.join(0.01)
        asked(engine, "tea", owner)


def compare(database, owner, questions, **filters):
    """Compare the first answers of engines without an index to those of an index."""
    with contextlib.closing(opened(database, small=10_000)) as warm:
        expected = [asked(warm, text, owner, **filters) for text in questions]
        assert warm.store.answered == 0
    actual = []
    for text in questions:
        with contextlib.closing(opened(database)) as cold:
            actual.append(asked(cold, text, owner, **filters))
            assert cold.store.answered == 1
    assert expected == actual


KINDS = {
    "all": {},
    "stores": {"stores": ("private",)},
    "project": {"project": "p"},
    "tags": {"tags": ("t",)},
    "session": {"session": "s1"},
    "before": {"before": NOW + 90 * MINUTE},
    "lapsed": {"lapsed": True},
}


def varied_memory(owner, number, text):
    """Return a memory whose fields depend on its number."""
    return NewMemory(
        title=f"{text}. " * (60 if number % 40 == 3 else 1),
        owner=owner,
        session=f"s{number // 10}",
        speaker=WORDS[8 + number % 2],
        pinned=number % 50 == 0,
        project="pq"[number % 2],
        tags=("t",) if number % 3 == 0 else (),
        store=("private", "shared")[number % 5 == 0],
        created_at=NOW + number * MINUTE,
        expires_at=NOW + MINUTE if number % 7 == 0 else None,
    )


@pytest.fixture(scope="module")
def varied(database):
    """An owner with memories of all sorts."""
    owner = Owner(tenant="varied", user="u")
    memories = [varied_memory(owner, number, text) for number, text in enumerate(texts(150))]
    with contextlib.closing(opened(database, PostgresStore)) as engine:
        engine.add([*memories, NewMemory(title="tea for another one", owner=Owner(tenant="varied", user="v"))])
        while engine.embed():
            pass
    return owner


@pytest.mark.parametrize("kind", ["all", "lapsed", *campaign("stores", "project", "tags", "session", "before")])
def test_answers_without_an_index_are_those_of_the_index(database, varied, kind):
    """While all memories with a word are candidates, hits, passages and scores are the same, whatever the filters."""
    compare(database, varied, ["tea in the harbour", "Ann sails", "moon", "nothing of this", "zzz"], **KINDS[kind])


MEMORY = st.fixed_dictionaries(
    {
        "title": st.one_of(SENTENCE, SENTENCE.map(lambda text: f"{text}. " * 150)),
        "session": st.sampled_from(["", "s", "t"]),
        "expires_at": st.sampled_from([None, None, NOW]),
        "created_at": st.integers(0, 4).map(lambda hours: NOW - timedelta(hours=hours)),
    }
)


@settings(max_examples=12, deadline=None)
@given(memories=st.lists(MEMORY, min_size=1, max_size=12), question=SENTENCE)
def test_any_memories_have_the_answers_of_the_index(database, memories, question):
    """The answers are the same for memories with passages, sessions and ends."""
    owner = Owner(tenant=f"any {next(NUMBERS)}", user="u")
    with contextlib.closing(opened(database, PostgresStore)) as engine:
        engine.add([NewMemory(owner=owner, **fields) for fields in memories])
        while engine.embed(owners=[owner]):
            pass
    compare(database, owner, [question])


def test_small_owners_are_indexed_at_once(database, owner):
    """An owner with as many memories as the threshold never needs candidates; one more, and it does."""
    with contextlib.closing(opened(database, small=20)) as engine:
        fill(engine, owner, texts(20))
        asked(engine, "tea", owner)
        assert engine.store.answered == 0
    with contextlib.closing(opened(database, small=20)) as engine:
        fill(engine, owner, ["tea and one more"])
        asked(engine, "tea", owner)
        assert engine.store.answered == 1


def test_the_index_takes_over(database, owner):
    """Searches are answered without the index until it is built, and then by the index alone."""
    told = []
    with contextlib.closing(opened(database, trace=lambda event, **facts: told.append((event, facts)))) as engine:
        fill(engine, owner, texts(60))
        cold = asked(engine, "tea boat", owner)
        wait_for_index(engine, owner)
        answered = engine.store.answered
        assert cold == asked(engine, "tea boat", owner)
        assert answered == engine.store.answered
    assert told == [("index_built", {"memories": 60})]


def test_an_owner_changes_while_its_index_is_built(database, owner):
    """New memories are found and forgotten ones are not, during the build and after it."""
    with contextlib.closing(opened(database)) as engine:
        ids = fill(engine, owner, [*texts(60), "a lighthouse of its own"])
        engine.store.gate.clear()
        assert asked(engine, "lighthouse", owner)[0][0] == ids[-1]
        assert engine.store.building.wait(60)

        engine.forget([ids[-1]], Filters(view=View(owners=(owner,), now=LATER)))
        (new,) = fill(engine, owner, ["an observatory"])
        during = asked(engine, "lighthouse", owner), asked(engine, "observatory", owner)
        assert engine.store.answered == 3
        engine.store.gate.set()
        wait_for_index(engine, owner)

        answered = engine.store.answered
        assert during == (asked(engine, "lighthouse", owner), asked(engine, "observatory", owner))
        assert (during[1][0][0], answered) == (new, engine.store.answered)
        assert ids[-1] not in [id_ for id_, *_ in during[0]]


def test_closing_ends_a_build(database, owner):
    """Closing ends the build of an index after its page: without it, this one would never end."""
    engine = opened(database, Endless)
    fill(engine, owner, texts(10))
    asked(engine, "tea", owner)
    assert engine.store.building.wait(60)
    (thread,) = [each for each in threading.enumerate() if each.name == "beaver-memory-index"]

    engine.close()
    assert not thread.is_alive()


def test_many_pages_are_read_while_searches_go_on(database, owner, monkeypatch):
    """An index that is built of many pages has the answers of one that is built at once."""
    monkeypatch.setattr(owner_index, "PAGE", 7)
    monkeypatch.setattr(owner_index, "VECTOR_PAGE", 5)
    with contextlib.closing(opened(database)) as engine:
        fill(engine, owner, texts(60))
        cold = asked(engine, "tea boat", owner)
        wait_for_index(engine, owner)
        assert cold == asked(engine, "tea boat", owner)


def test_a_failed_build_is_tried_again(database, owner):
    """While no index can be built, the store goes on answering; the build is tried again after some searches."""
    told = []
    with contextlib.closing(opened(database, trace=lambda event, **facts: told.append((event, facts)))) as engine:
        fill(engine, owner, texts(20))
        changed, failing = engine.store.changed, [MemoryError, StoreError("here", "cut_off")]

        def failing_first(*args, **options):
            if failing:
                raise failing.pop(0)
            return changed(*args, **options)

        engine.store.changed = failing_first
        hits = {str(asked(engine, "tea", owner))}
        while ("index_built", {"memories": 20}) not in told:
            hits.add(str(asked(engine, "tea", owner)))
    assert told[:2] == [("index_not_built", {"why": "out_of_memory"}), ("index_not_built", {"why": "cut_off"})]
    assert len(hits) == 1


@pytest.mark.campaign
def test_a_server_restarts_between_searches(tmp_path_factory):
    """The first search after a restart is answered without an index, and so is one after a search that failed."""
    template = postgres_server.cluster(Path(os.environ[postgres_server.FOLDER]))
    with postgres_server.running(template) as server:
        owner = Owner(user="u")
        with contextlib.closing(opened((server.url, "restarted"))) as engine:
            ids = fill(engine, owner, texts(20))
            engine.store.gate.clear()
            before = asked(engine, "tea", owner)
            server.stop()
            with pytest.raises(StoreError):
                asked(engine, "tea", owner)
            server.start()
            assert before == asked(engine, "tea", owner)
            assert engine.store.answered == 2
            engine.store.gate.set()
            wait_for_index(engine, owner)
            assert before == asked(engine, "tea", owner)
            assert len(engine.get(ids, Filters(view=View(owners=(owner,), now=LATER)))) == 20


def test_another_process_is_noticed_in_one_exchange(database, owner):
    """A search with an index reads memories and versions at once, and searches again if another process has written."""
    seen = Filters(view=View(owners=(owner,), now=LATER))
    with (
        contextlib.closing(opened(database, small=10_000)) as reader,
        contextlib.closing(opened(database, PostgresStore)) as writer,
    ):
        fill(writer, owner, texts(30))
        first = asked(reader, "lighthouse", owner)
        before = reader.store.asked
        assert (first, reader.store.asked) == (asked(reader, "lighthouse", owner), before)

        (new,) = writer.add([NewMemory(title="a lighthouse", owner=owner)])
        assert asked(reader, "lighthouse", owner)[0][0] == new
        by_words = asked(reader, "lighthouse", owner)
        while writer.embed(owners=[owner]):
            pass
        assert by_words != asked(reader, "lighthouse", owner)
        writer.change(new, seen, event="UPDATE", title="an observatory")
        assert asked(reader, "observatory", owner)[0][0] == new
        writer.forget([new], seen)
        assert new not in [id_ for id_, *_ in asked(reader, "observatory", owner)]
        assert reader.store.answered == 0


def test_owners_without_memories_are_asked_for(database, owner):
    """An owner who has nothing yet is found as soon as there is something, beside one who has an index."""
    other = attrs.evolve(owner, user="v")
    with contextlib.closing(opened(database, small=10_000)) as engine:
        assert asked(engine, "tea", owner) == []
        ids = fill(engine, owner, ["tea"])
        both = {"owners": (owner, other)}
        assert ids == [id_ for id_, *_ in asked(engine, "tea", owner, **both)]
        ids += fill(engine, other, ["tea for two"])
        assert {*ids} == {id_ for id_, *_ in asked(engine, "tea", owner, **both)}
        assert {*ids} == {id_ for id_, *_ in asked(engine, "tea", owner, **both)}


SPELLED = (
    "It doesn't matter",
    "a blue whale",
    "blue_whaleSong of tea",
    "Gärten",
    "the boat's rope",
    "haven't",
    "GardenGate",
)


@pytest.mark.parametrize(
    "text", ['"blue whale"', '"doesn"', '"garten"', '"boat"', '"haven"', "gard*", '"whale" tea', "zz*"]
)
def test_phrases_are_found_by_their_words(database, text):
    """A phrase that the index of words finds has the memories that a comparison with every text finds."""
    owner, (rest, patterns) = Owner(tenant=f"phrases {text}", user="u"), parsed(text)
    query = Query(text=rest, patterns=patterns, filters=Filters(view=View(owners=(owner,), now=LATER)))
    answers = []
    for store in (InMemoryStore(Database()), PostgresStore.open(Secret(database[0]), schema=database[1])):
        with contextlib.closing(MemoryEngine(store)) as engine:
            engine.add([NewMemory(title=title, owner=owner) for title in SPELLED])
            answers.append([hit.memory.title for hit in engine.search(query).hits])
    assert answers[0] == answers[1]


@pytest.mark.campaign
def test_forgotten_memories_are_never_answered(database, owner):
    """While one thread forgets and adds, no search shows a memory whose forgetting had returned before it began."""
    gone, errors, done = set(), [], threading.Event()
    seen = Filters(view=View(owners=(owner,), now=LATER))

    def search():
        while not done.is_set():
            with contextlib.closing(opened(database)) as cold:
                for text in ("tea", "boat rain", "moon"):
                    before = set(gone)
                    found = {id_ for id_, *_ in asked(cold, text, owner)}
                    errors.extend(before & found)

    with contextlib.closing(opened(database)) as engine:
        ids = fill(engine, owner, texts(80))
        threads = [threading.Thread(target=search) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(60):
            gone.update(engine.forget([ids.pop(0)], seen))
            ids += fill(engine, owner, texts(1, seed=number))
        done.set()
        for thread in threads:
            thread.join()
    assert (errors, len(gone)) == ([], 60)


def test_several_owners_are_ranked_together(database, owner):
    """Owners with and without an index are ranked by figures of both together."""
    other = attrs.evolve(owner, user="v")
    with contextlib.closing(opened(database, small=10_000)) as warm:
        fill(warm, owner, texts(30))
        fill(warm, other, texts(8, seed=2))
        expected = asked(warm, "tea boat", owner, owners=(owner, other))
    for small, answered in ((0, 2), (20, 1)):
        with contextlib.closing(opened(database, small=small)) as cold:
            assert expected == asked(cold, "tea boat", owner, owners=(owner, other))
            assert cold.store.answered == answered


def test_candidates_of_a_session_are_no_neighbours_by_themselves():
    """Candidates are linked only where the store says that they follow one another: others may lie between."""
    (tea,), (terms, length) = Analyser().query("tea"), Analyser().pack(["tea"])
    rows = tuple(
        IndexRow(id=id_, version=id_, terms=terms, length=length, session="s", created=id_) for id_ in (1, 5, 6)
    )
    found = CandidateRows(rows=rows, neighbours=frozenset({(5, 6)}), memories=9, length=9, frequencies={tea: 3})
    filters = Filters(view=View(owners=(Owner(),), now=NOW))
    gathered = gather([SearchSource(state=sample_of(found, None), filters=filters)], [tea], None)
    assert ([1, 5, 6], [-1, -1, 1], [-1, 2, -1]) == (
        gathered.columns["ids"].tolist(),
        gathered.earlier.tolist(),
        gathered.later.tolist(),
    )
