"""The data of one person: exported whole, erased everywhere, and that of no other one touched, in both stores."""

import contextlib
import json
import uuid
from datetime import timedelta

import apsw
import attrs
import postgres_server
import psycopg
import pytest

from beaver_hostspecs import Secret, Subject
from beaver_hostspecs.testing import RecordingReport
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.errors import StoreError
from beaver_memory.filters import Filters
from beaver_memory.records import CaptureSpend, NewMemory, Owner, QueuedSession, SessionSummary
from beaver_memory.runtime import subject as subject_module
from beaver_memory.runtime.factory import open_engine
from beaver_memory.runtime.file_scan import files_below, needles_of, traces_in
from beaver_memory.runtime.profile import PostgresLocation, Profile, RuntimeServices, SqliteLocation
from beaver_memory.runtime.subject import DAMAGED, MARKS, OTHER_PROJECTS, OTHER_USERS, SERVER_ROWS, SubjectMemory
from beaver_memory.store.turn_queue import QueuedTurn
from beaver_memory.testing.store_cases.kit import NOW
from beaver_memory.views import View

PEOPLE = [Subject(user=user, tenant=tenant) for tenant in (None, "acme") for user in ("ann", "bob")]
ANN, *OTHERS = PEOPLE
PROFILE = Profile(embedding=EmbeddingSettings(provider="none"))


def owner_of(subject):
    return Owner(tenant=subject.tenant or "", user=subject.user)


def word_of(subject):
    return f"Quay{subject.user}{subject.tenant or 'own'}"


def memory_at(location):
    services = RuntimeServices(report=RecordingReport())
    return SubjectMemory(profile=PROFILE, location=location, services=services, owner_of=owner_of)


def fill(engine, subject):
    """Store everything that a memory keeps of a person, also in another project and for one session only."""
    owner, word = owner_of(subject), word_of(subject)
    ids = engine.add(
        [
            NewMemory(
                title=f"{word} one",
                owner=owner,
                scope="project",
                project="harbour",
                tags=(word,),
                related_people=(word,),
            ),
            NewMemory(title=f"{word} two", owner=owner, scope="session", session="s", evidence=f"said {word}"),
            NewMemory(title=f"{word} three", owner=owner, scope="global", valid_until=NOW - timedelta(days=1)),
        ]
    )
    seen = Filters(view=View(owners=(owner,), project="harbour", now=NOW), lapsed=True)
    engine.change(ids[0], seen, event="UPDATE", title=f"{word} one again")
    engine.store.summarise(owner, SessionSummary(session="s", request=word, created_at=NOW))
    engine.store.mark_captured(owner, ["turn-1", "turn-2"])
    engine.mark_forgotten(engine.get([ids[0], ids[2]], seen), lambda memory: [memory.title])
    engine.store.spend(owner, NOW.date(), CaptureSpend(memories=1), CaptureSpend(memories=9))
    place = QueuedSession(owner=owner, session="s")
    engine.store.queue.put(QueuedTurn(place=place, turn="turn-3", content=json.dumps({"said": word}), queued_at=NOW))


@contextlib.contextmanager
def sqlite(folder):
    for name in ("project", "person"):
        (folder / name).mkdir()
    yield SqliteLocation(state_folder=folder / "project", person_folder=folder / "person")


@contextlib.contextmanager
def postgres(folder):
    url, schema = postgres_server.shared(), f"beaver_{uuid.uuid4().hex}"
    yield PostgresLocation(url=Secret(url), tenant="t", project="pier", schema=schema, state_folder=folder)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


HELD = {
    "memories": 3, "history": 1, "summaries": 1, "waiting turns": 1, "captured turns": 2, "days of capture": 1,
    "marks of forgotten texts": 2,
}  # fmt: skip
PLACES = {sqlite: {"people": 1, "labels": 2}, postgres: {"texts": 3, "labels": 2}}
NOTES = {sqlite: (OTHER_PROJECTS, OTHER_USERS), postgres: (SERVER_ROWS, OTHER_USERS)}


@pytest.fixture(params=[sqlite, postgres], ids=["sqlite", "postgres"])
def kind(request):
    return request.param


@pytest.fixture
def memory(kind, tmp_path):
    """A memory with the data of two users in each of two tenants."""
    with kind(tmp_path) as location:
        found = memory_at(location)
        engine = open_engine(PROFILE, location, found.services).engine
        with contextlib.closing(engine):
            for each in PEOPLE:
                fill(engine, each)
        yield found


def exported(memory, subject, folder):
    """Return the report of an export, and its files by name."""
    folder.mkdir()
    report = memory.export(subject, folder)
    return report, {each.name: each.read_text() for each in folder.iterdir()}


def test_the_data_of_one_person_is_exported_and_erased(memory, kind, tmp_path):
    """An export and an erasure take all data of one user in one tenant, and leave that of three others as it is."""
    held = memory.count(ANN)
    before = [exported(memory, each, tmp_path / f"before-{number}") for number, each in enumerate(PEOPLE)]
    erased = memory.erase(ANN)
    after = [exported(memory, each, tmp_path / f"after-{number}") for number, each in enumerate(PEOPLE)]

    report, files = before[0]
    everything = "".join(files.values())
    assert {"memories": 3, "summaries": 1, "waiting turns": 1} == dict(report.places)
    assert [] == [each for each in OTHERS if word_of(each) in everything]
    titles = {json.loads(line)["title"] for line in files["memories.jsonl"].splitlines()}
    assert {f"{word_of(ANN)} {each}" for each in ("one again", "two", "three")} == titles
    assert f'"old": {{"title": "{word_of(ANN)} one"}}' in files["memories.jsonl"]
    assert HELD | PLACES[kind] == dict(held.places)
    assert HELD | PLACES[kind] == {place: erased.places[place] for place in held.places}
    assert ({}, (*NOTES[kind], MARKS)) == (dict(erased.left), erased.unreached)
    assert {} == dict(memory.count(ANN).places)
    assert ["", "", ""] == [*after[0][1].values()]
    assert before[1:] == after[1:]
    seen = traces_in(files_below([tmp_path / "project", tmp_path / "person"]), needles_of(word_of(ANN)))
    assert [] == list(seen)


def damage(location):
    """Change the text of one memory of the user without its checksum."""
    change = f"UPDATE {{}} SET title = 'other' WHERE title = '{word_of(ANN)} one again'"  # noqa: S608 - names of this module
    if isinstance(location, PostgresLocation):
        with psycopg.connect(location.url.reveal(), autocommit=True) as connection:
            return connection.execute(change.format(f"{location.schema}.texts")).rowcount
    with contextlib.closing(apsw.Connection(str(location.database))) as connection:
        connection.execute(change.format("observations"))
        return connection.changes()


def test_a_damaged_memory_is_not_exported_and_is_erased(memory, tmp_path):
    """The report of an export counts a memory that fails its checksum as left, and names the remedy; it is erased."""
    damaged = damage(memory.location)
    report, files = exported(memory, ANN, tmp_path / "out")
    erased = memory.erase(ANN)

    assert (1, 2) == (damaged, len(files["memories.jsonl"].splitlines()))
    assert ({"damaged memories": 1}, DAMAGED) == (dict(report.left), report.unreached[0])
    assert ({}, {}, 3) == (dict(erased.left), dict(memory.count(ANN).places), erased.places["memories"])


@pytest.mark.parametrize("kind", [sqlite], indirect=True)
def test_data_that_another_process_writes_meanwhile_is_erased_too(memory, monkeypatch):
    """A memory that comes between two steps of an erasure is erased in the next round, or named as left."""
    late = [2]
    true_erase = subject_module.MemoryEngine.erase_owner

    def erase_owner(engine, owner):
        true_erase(engine, owner)
        if late[0]:
            late[0] -= 1
            engine.add(NewMemory(title="late", owner=owner))

    monkeypatch.setattr(subject_module.MemoryEngine, "erase_owner", erase_owner)
    overtaken = memory.erase(ANN)
    late[0] = 9
    left = memory.erase(ANN)

    assert ({}, {"memories": 1}) == (dict(overtaken.left), dict(left.left))


@pytest.mark.parametrize("kind", [sqlite], indirect=True)
def test_an_unreadable_memory_is_an_error(memory):
    """If SQLite cannot read a memory, the error says so after all others were erased."""
    engine = open_engine(PROFILE, memory.location, memory.services).engine
    with contextlib.closing(engine):
        engine.add(
            NewMemory(title="long", scope="project", narrative=f"{'a' * 9000}END{'z' * 9000}", owner=owner_of(ANN))
        )
    path = memory.location.database
    content = bytearray(path.read_bytes())
    content[content.index(b"END" + b"z" * 50) // 4096 * 4096] ^= 0x80
    path.write_bytes(content)
    with pytest.raises(StoreError, match="is damaged"):
        memory.erase(ANN)

    assert {"memories": 1} == dict(memory.count(ANN).places)


@pytest.mark.parametrize("kind", [sqlite], indirect=True)
def test_an_unreadable_database_of_the_person_is_left(memory):
    """If the database of the person cannot be read, the project's part is erased, and the report names the other one."""
    path = memory.location.person_folder / "memory.db"
    path.write_bytes(b"no database" * 100)
    counted, erased = memory.count(ANN), memory.erase(ANN)

    assert [{"unread databases": 1}] * 2 == [dict(counted.left), dict(erased.left)]
    assert (2, 2) == (counted.places["memories"], erased.places["memories"])
    assert str(path) in erased.unreached[0]


@pytest.mark.parametrize("kind", [sqlite], indirect=True)
def test_an_unreadable_database_of_the_project_is_an_error(memory):
    """If the database of the project cannot be read, the error names it."""
    memory.location.database.write_bytes(b"no database" * 100)

    with pytest.raises(StoreError, match="project"):
        memory.erase(ANN)


def test_a_memory_that_was_never_used_stays_unmade(tmp_path):
    """In empty folders an export and an erasure find no data, and make no file."""
    with sqlite(tmp_path) as location:
        memory = memory_at(location)
        reports = [memory.count(ANN), memory.export(ANN, tmp_path / "out"), memory.erase(ANN)]
        given = attrs.evolve(location, database_path=tmp_path / "given.db")
        reports.append(memory_at(given).count(ANN))

    assert [{}] * 4 == [dict(each.places) for each in reports]
    assert ["person", "project"] == sorted(each.name for each in tmp_path.iterdir())
