"""Flipped bits in people, summaries of sessions and counts: nothing is silently wrong, nothing silently missing."""

import asyncio
import contextlib
import random
import shutil
from datetime import timedelta

import apsw
import attrs
import pytest
from selection import campaign

from beaver_hostspecs.testing import FrozenClock, RecordingReport
from beaver_memory import MemoryRuntime
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.errors import InvalidRequest, StoreError
from beaver_memory.records import Owner, SessionSummary
from beaver_memory.runtime import requests
from beaver_memory.runtime.profile import Profile, RuntimeServices, SqliteLocation
from beaver_memory.store.damaged_entries import RESTORE
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.store.sqlite.examination import Examination, examine
from beaver_memory.testing.store_cases.kit import NOW, looking, new

COUNT = 12
LATER = NOW + timedelta(days=1)
WORDS = ("Zacharias", "zacharias", "request", "outcome", "decision", "item", "Session", "Agent")
"""Words in the rows of people and summaries; the first two are in labels and in memories, too."""

OWNER = Owner()


def summary(number):
    """Return a summary of a session with a value of its own in every column."""
    return SessionSummary(
        agent=f"Agent{number:02}", session=f"Session{number:02}", request=f"request{number:02}",
        outcome=f"outcome{number:02}", decisions=(f"decision{number:02}",), open_items=(f"item{number:02}",),
        observation_count=1000 + number, created_at=NOW - timedelta(minutes=number),
    )  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A closed database, and the people and the summaries in it."""
    folder = tmp_path_factory.mktemp("sums")
    with contextlib.closing(SqliteStore.open(folder / "memory.db")) as store:
        names = [f"Zacharias {number:02}" for number in range(COUNT)]
        store.add([new(f"the price is {name}", at=-5, related_people=(name, "Ann")) for name in names], now=NOW)
        for number in range(COUNT):
            store.summarise(OWNER, summary(number))
    return folder / "memory.db", asyncio.run(shown(folder))[:2]


async def shown(folder):
    """Return the people and the summaries that a runtime shows, its troubles, and the problems that it names."""
    services = RuntimeServices(report=RecordingReport(), clock=FrozenClock(LATER))
    profile = Profile(embedding=EmbeddingSettings(provider="none"))
    async with await MemoryRuntime.open(profile, SqliteLocation(state_folder=folder), services) as runtime:
        people = await runtime.people(requests.PeopleRequest(visible=looking(now=LATER), limit=99))
        sessions = await runtime.sessions(requests.SessionsRequest(owner=OWNER, limit=99))
        troubles = services.troubles.now
        found = await runtime.inspect(requests.InspectionRequest(owners=(), figures=False, check=True))
    return (
        {each.name: each for each in people.people},
        {each.session: each for each in sessions.sessions},
        troubles,
        found,
    )


def damaged(path, folder, chance):
    """Write a copy of a database with one bit flipped in a word of a row; return what a runtime shows of it."""
    content = bytearray(path.read_bytes())
    word = chance.choice(WORDS).encode()
    places = [at for at in range(len(content)) if content.startswith(word, at)]
    content[chance.choice(places) + chance.randrange(len(word) + 2)] ^= 1 << chance.randrange(8)
    # Nothing of the earlier copy stays beside it: not its mark of damage, and not its count of commits.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "memory.db").write_bytes(content)
    with contextlib.suppress(StoreError):
        return asyncio.run(shown(folder))
    return None


def wrong(truth, found):
    """Return the people and summaries that are shown and are not true; a damaged memory may lower the count of a person."""
    (people, summaries), (old_people, old_summaries) = found[:2], truth
    return [
        *(each for name, each in summaries.items() if old_summaries.get(name) != each),
        *(
            each
            for name, each in people.items()
            if name not in old_people or attrs.evolve(old_people[name], mention_count=each.mention_count) != each
        ),
    ]


@pytest.mark.parametrize(("seed", "count"), [(1, 25), *campaign((2, 400))])
def test_flipped_bits(whole, tmp_path, seed, count):
    """Bits flipped in people, summaries and labels show nothing wrong, and the check reports each missing row.

    Health reports it too, but for an index of labels that is out of order: only the check sees that.
    """
    path, truth = whole
    chance, results = random.Random(seed), []
    for _ in range(count):
        found = damaged(path, tmp_path / "copy", chance)
        if found is not None:
            less = any(old != now for old, now in zip(truth, found, strict=False))
            results.append((wrong(truth, found), less, found[2], found[3].problems))
    assert len(results) > 0.9 * count
    assert [] == [each for each in results if each[0]]
    missing = [each for each in results if each[1]]
    assert [] == [each for each in missing if not each[3]]
    unnoticed = [each[3] for each in missing if each[2] != ("damaged_rows",)]
    assert [] == [each for each in unnoticed if "PRIMARY KEY order" not in each[0]]
    assert len(unnoticed) <= 0.01 * count


@pytest.mark.parametrize(
    ("statement", "first", "problem"),
    [
        (
            "DELETE FROM observations WHERE id = 3",
            {},
            "1 of 12 memories of the user without a name vanished: restore the database from a backup.",
        ),
        ("DELETE FROM people WHERE folded = 'ann'", {"Ann": COUNT}, f"1 people have wrong counts: {RESTORE}."),
    ],
)
def test_a_vanished_row_is_named(whole, tmp_path, statement, first, problem):
    """The check names a memory and a person that vanished; people are counted in the memories all the same."""
    shutil.copy(whole[0], tmp_path / "memory.db")
    with contextlib.closing(apsw.Connection(str(tmp_path / "memory.db"))) as connection:
        connection.execute(statement)
    people, _, _, found = asyncio.run(shown(tmp_path))
    assert problem == found.problems[0]
    assert first == {name: people[name].mention_count for name in first}


def test_the_first_people_are_those_of_whole_memories(tmp_path):
    """Damaged memories do not put a person before another one who is mentioned more often."""
    path, told = tmp_path / "memory.db", []
    with contextlib.closing(SqliteStore.open(path)) as store:
        store.add([new(f"{name} {n}", related_people=(name,)) for name in ("Ann", "Bob") for n in range(3)], now=NOW)
        store.add([new("once more", related_people=("Ann",))], now=NOW)
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.execute("UPDATE observations SET title = 'x' WHERE id IN (1, 2)")
    with contextlib.closing(SqliteStore.open(path, damaged=told.append)) as store:
        first = [(each.name, each.mention_count) for each in store.people(looking(now=LATER), query="", limit=1)]

    assert ([("Bob", 3)], [1, 2]) == (first, told)


DAMAGE = {
    "memory": "UPDATE observations SET title = 'another' WHERE id = 2",
    "embedding": "UPDATE observation_embeddings SET data = x'ff' WHERE memory = 3",
    "history": "UPDATE observation_history SET event = 'NONE' WHERE memory = 4",
    "person": "UPDATE people SET name = 'Anm' WHERE folded = 'ann'",
    "summary": "UPDATE session_summaries SET outcome = 'another' WHERE agent = 'Agent03'",
}


def test_damaged_rows_of_each_kind(whole, tmp_path):
    """A reader of all stores gets the readable columns of each kind of row, page by page; a lesser reader is refused."""
    shutil.copy(whole[0], tmp_path / "memory.db")
    with contextlib.closing(SqliteStore.open(tmp_path / "memory.db")) as store:
        store.put_vectors(OWNER, "m", [(3, b"vector"), (5, b"vector")])
        store.change(4, looking(), event="PIN", now=NOW, pinned=True)
    with contextlib.closing(apsw.Connection(str(tmp_path / "memory.db"))) as connection:
        connection.execute("; ".join(DAMAGE.values()))

    async def rows(**asked):
        services = RuntimeServices(report=RecordingReport(), clock=FrozenClock(LATER))
        profile = Profile(embedding=EmbeddingSettings(provider="none"))
        async with await MemoryRuntime.open(profile, SqliteLocation(state_folder=tmp_path), services) as runtime:
            first = await runtime.damaged(requests.DamagedRequest(**asked, limit=3))
            rest = await runtime.damaged(requests.DamagedRequest(**asked, limit=3, after=3))
            return first, rest

    first, rest = asyncio.run(rows(visible=looking(), every_owner=True))
    found = [*first.rows, *rest.rows]
    assert (True, False) == (first.has_more, rest.has_more)
    assert [("memory", 2), ("embedding", 3), ("history", 4), ("person", "'ann'"), ("summary", "'Session03'")] == [
        (each.kind, each.id) for each in found
    ]
    assert ["another", {"base64": "/w=="}, "NONE", "Anm", "another"] == [
        each.columns[name] for each, name in zip(found, ("title", "data", "event", "name", "outcome"), strict=True)
    ]
    assert (first, rest) == asyncio.run(rows(visible=looking()))
    with pytest.raises(InvalidRequest, match="all stores"):
        asyncio.run(rows(visible=looking(stores=("shared",))))


def test_an_examination_without_a_store(whole, tmp_path):
    """A database is examined as it is: the whole, or the newest memories."""
    path = tmp_path / "memory.db"
    shutil.copy(whole[0], path)
    intact = examine(path), examine(path, most_bytes=0, newest=5)
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.execute("UPDATE observations SET title = 'another' WHERE id IN (2, 10)")
    damaged = examine(path), examine(path, most_bytes=0, newest=5)
    (tmp_path / "other.db").touch()

    assert (Examination(memories=12, examined=12), Examination(memories=12, examined=5)) == intact
    assert [[2, 10], [10]] == [
        [int(each.split()[1]) for each in found.problems if "checksum" in each] for found in damaged
    ]
    for name, category in (("other.db", "not_ours"), ("none.db", "missing")):
        with pytest.raises(StoreError) as caught:
            examine(tmp_path / name)
        assert category == caught.value.category
