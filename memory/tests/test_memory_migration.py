"""Moving a whole memory into a tenant of a server: ids, versions, history, embeddings, and what an interruption leaves."""

import contextlib
import os
from datetime import timedelta

import pytest
from memory_stores import STORES
from selection import campaign

from beaver_hostspecs import Secret
from beaver_hostspecs.testing import FrozenClock
from beaver_memory.engine import MemoryEngine
from beaver_memory.errors import InvalidRequest
from beaver_memory.layers import Personal
from beaver_memory.query import Query
from beaver_memory.records import NewMemory, Owner, SessionSummary
from beaver_memory.runtime import migration
from beaver_memory.runtime.migration import Migration, MigrationReport
from beaver_memory.runtime.migration_rows import PERSONAL_VERSIONS
from beaver_memory.runtime.profile import PostgresLocation, SqliteLocation
from beaver_memory.store.joint import PERSONAL_IDS
from beaver_memory.store.personal import PersonalStore
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.testing.store_cases.kit import NOW, looking
from beaver_memory.views import ALL_PROJECTS

ANN, BOB = Owner(user="ann"), Owner(tenant="team", user="bob")
LATE = looking(owners=(ANN,), now=NOW.replace(year=2126), lapsed=True)
THERE = {ANN: Owner(tenant="acme", user="ann"), BOB: Owner(tenant="acme/team", user="bob")}
THEIRS = LATE.within(owners=(THERE[ANN],), owner=THERE[ANN])
ZOE = Owner(tenant="acme", user="zoe")


def moved(source, target, folder, progress, now):
    """Return the migration of a store into the tenant `acme`."""
    here = SqliteLocation(state_folder=folder)
    url = Secret("postgresql://localhost/beaver")
    there = PostgresLocation(url=url, tenant="acme", project="billing", state_folder=folder)
    return Migration(source, target, here, there, now=now, progress=progress)


class Interrupted(Exception):
    """The process ends here."""


class Place:
    """A memory in files, and a tenant to move it to."""

    def __init__(self, folder, open_shared):
        self.clock = FrozenClock(NOW)
        self.engine = MemoryEngine(SqliteStore.open(folder / "memory.db"), clock=self.clock)
        self.open_shared, self.folder = open_shared, folder
        self.target = open_shared()
        self.engine.prepare(self.target)

    def migrate(self, progress=lambda *_: None, *, dry=False):
        return moved(self.engine.store, self.target, self.folder, progress, NOW.replace(year=2126)).run(dry=dry)

    def filled(self, count=12):
        """Add memories of two owners with everything that a memory can have; return the ids of the first."""
        fields = {"tags": ("t",), "related_people": ("Ann",), "scope": "project", "facts": ("f",)}
        ids = self.engine.add([NewMemory(title=f"memory {n}", owner=ANN, **fields) for n in range(count)])
        self.engine.add(NewMemory(title="of bob", owner=BOB))
        self.engine.supersede(NewMemory(title="for all", owner=ANN, scope="global"), ids[8:9], LATE, at=NOW)
        self.clock.advance(60)
        self.engine.change(ids[0], LATE, event="PIN", pinned=True)
        self.engine.change(ids[1], LATE, event="UPDATE", title="changed", expires_at=NOW + timedelta(days=1))
        self.engine.forget(ids[2:4], LATE)
        store = self.engine.store
        for owner in (ANN, BOB):
            texts = store.unembedded(owner, "m", ALL_PROJECTS, limit=99)
            store.put_vectors(owner, "m", [(id_, bytes([id_ % 256, 0]) * 4) for id_, _ in texts[1:]])
        store.touch(ids[4:6], tenant="", now=NOW + timedelta(days=2))
        store.summarise(ANN, SessionSummary(session="s", request="r", decisions=("d",), created_at=NOW))
        return ids


@pytest.fixture(params=["in_memory", "postgres"])
def place(request, tmp_path):
    with STORES[request.param]() as open_shared:
        place = Place(tmp_path, open_shared)
        yield place
        place.engine.close()
        place.target.close()


WHOLE = MigrationReport(owners=2, memories=12, forgotten=2, embeddings={"m": 10}, summaries=1, copied=14)


def test_everything_is_copied(place):
    """Ids, versions, history, embeddings and summaries are the same afterwards; a project's memories get its name."""
    ids = place.filled()
    assert WHOLE == place.migrate()

    source, target = place.engine.store, place.target
    for owner in (ANN, BOB):
        for each in (source, target):
            assert [] == each.check(None)
        ours, theirs = source.changed(owner, 0, limit=99), target.changed(THERE[owner], 0, limit=99)
        assert [(row.id, row.uid, row.version, row.gone, row.terms, row.doubted_by) for row in ours] == [
            (row.id, row.uid, row.version, row.gone, row.terms, row.doubted_by) for row in theirs
        ]
        assert source.vectors(owner, "m", 0, limit=99) == target.vectors(THERE[owner], "m", 0, limit=99)
        assert source.summaries(owner, limit=9) == target.summaries(THERE[owner], limit=9)
        assert source.count(owner) == target.count(THERE[owner])
    assert [source.history(id_, LATE) for id_ in ids] == [target.history(id_, THEIRS) for id_ in ids]
    named = {memory.title: memory.project for memory in target.recent(THEIRS, limit=99)}
    assert ("billing", "") == (named["changed"], named["for all"])
    assert [memory.last_accessed_at for memory in source.get(ids, LATE)] == [
        memory.last_accessed_at for memory in target.get(ids, THEIRS)
    ]


def test_the_copy_goes_on(place):
    """New memories of the tenant have ids and versions above all copied ones, and are found beside them."""
    place.filled()
    place.migrate()
    last, version = place.engine.store.ids(ANN)[-1], place.engine.store.last_version(ANN)
    owner = THERE[ANN]
    with MemoryEngine(place.target) as engine:
        (id_,) = engine.add([NewMemory(title="a new deployment", owner=owner)])
        found = engine.search(Query(text="deployments changed", filters=looking(owners=(owner,), now=NOW)))
        assert id_ > last
        assert engine.versions([owner])[0] > version
        assert {"a new deployment", "changed"} <= {hit.memory.title for hit in found.hits}


def test_a_dry_run(place):
    """A dry run counts what would be copied, and copies nothing."""
    place.filled()
    assert WHOLE == place.migrate(dry=True)
    assert [] == place.target.owners(None)


def test_a_second_run(place):
    """A second run copies what has changed since, a recall included, and nothing else."""
    ids = place.filled()
    place.migrate()
    assert 0 == place.migrate().copied
    place.engine.change(ids[5], LATE, event="UPDATE", title="changed again")
    place.engine.forget(ids[6:7], LATE)
    place.engine.add([NewMemory(title="later", owner=ANN)])
    place.engine.store.touch(ids[7:8], tenant="", now=NOW + timedelta(days=3))
    report = place.migrate()
    assert (3, ()) == (report.copied, report.differences)
    assert (
        place.engine.store.get(ids[7:8], LATE)[0].last_accessed_at
        == place.target.get(ids[7:8], THEIRS)[0].last_accessed_at
    )
    assert [] == place.target.check(None)


def test_ids_of_the_forgotten(place):
    """An id that a forgotten memory had is not used again, even if its owner has no other memory."""
    place.filled()
    (gone,) = place.engine.add([NewMemory(title="gone", owner=Owner(user="zoe"))])
    place.engine.forget([gone], looking(owners=(Owner(user="zoe"),), now=NOW.replace(year=2126)))
    assert () == place.migrate().differences
    with MemoryEngine(place.target) as engine:
        (id_,) = engine.add([NewMemory(title="new", owner=ZOE)])
    assert id_ > gone


@pytest.mark.parametrize("steps", [1, 2, 4, 6])
def test_an_interrupted_run(place, monkeypatch, steps):
    """A run that ends after any step is continued by the next one, with the same result."""
    monkeypatch.setattr(migration, "PAGE", 3)
    place.filled()
    seen = []

    def progress(*step):
        seen.append(step)
        if len(seen) == steps:
            raise Interrupted

    with pytest.raises(Interrupted):
        place.migrate(progress)
    report = place.migrate()
    assert ((), WHOLE.memories) == (report.differences, report.memories)
    assert report.copied < WHOLE.copied
    assert [] == place.target.check(None)


@pytest.mark.parametrize("steps", [2, *campaign(*range(1, 8))])
def test_a_killed_run(tmp_path, steps):
    """A process that is killed between two steps leaves a tenant that is whole, and the next run completes it."""
    with STORES["postgres"]() as open_shared:
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                migration.PAGE = 3
                place, seen = Place(tmp_path, open_shared), []
                place.filled()
                place.migrate(lambda *_: (seen.append(1), len(seen) == steps and os.kill(os.getpid(), 9)))
            os._exit(0)
        assert 9 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) * -1
        place = Place(tmp_path, open_shared)
        assert [] == place.target.check(None)
        assert () == place.migrate().differences
        assert [] == place.target.check(None)
        place.engine.close()
        place.target.close()


def test_a_tenant_with_other_memories(place):
    """A tenant that holds other memories is refused, and stays as it is."""
    place.filled()
    with MemoryEngine(place.open_shared()) as other:
        (id_,) = other.add([NewMemory(title="theirs", owner=ZOE)])
    with pytest.raises(InvalidRequest) as caught:
        place.migrate()
    assert "holds memories that are not of this store, or have changed there since (1)" in str(caught.value)
    assert (1, [ZOE]) == (id_, place.target.owners(None))


def titles_of(store):
    return [memory.title for memory in store.get(store.ids(THERE[ANN]), THEIRS)]


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_tenant_with_memories_under_the_same_ids(place, forgotten):
    """Memories of the tenant are not replaced by others that have their ids, as those of every store begin alike."""
    ids = place.engine.add([NewMemory(title="ours", owner=ANN)])
    if forgotten:
        place.engine.forget(ids, LATE)
    clock = FrozenClock(NOW - timedelta(seconds=1))
    with MemoryEngine(place.open_shared(), clock=clock) as other:
        assert ids == other.add([NewMemory(title="theirs", owner=THERE[ANN])])
    for dry in (True, False):
        with pytest.raises(InvalidRequest, match="memories that are not of this store"):
            place.migrate(dry=dry)
    assert ["theirs"] == titles_of(place.target)


@pytest.mark.parametrize("change", ["forget", "change"])
def test_a_copy_that_has_changed_there(place, change):
    """A memory that was forgotten or changed in the tenant does not come back by a later copy."""
    ids = place.engine.add([NewMemory(title="first", owner=ANN), NewMemory(title="second", owner=ANN)])
    place.migrate()
    if change == "forget":
        place.target.forget(ids[:1], THEIRS, now=NOW)
    else:
        place.target.change(ids[0], THEIRS, event="PIN", now=NOW, pinned=True)
    before = titles_of(place.target)
    with pytest.raises(InvalidRequest, match="have changed there since"):
        place.migrate()
    assert before == titles_of(place.target)


def test_a_damaged_copy(place):
    """A copy that differs from its memory is found by the comparison, and copied again."""
    ids = place.filled()
    place.migrate()
    inner = place.target
    own = looking(owners=(Owner(tenant="acme", user="ann"),), lapsed=True, now=NOW)
    copies = inner.get(ids[:1], own)
    row = next(row for row in inner.changed(Owner(tenant="acme", user="ann"), 0, limit=99) if row.id == ids[0])
    wrong = migration.MemoryCopy(row=row, memory=copies[0], added_at=NOW - timedelta(days=1))
    inner.restore(Owner(tenant="acme", user="ann"), [wrong])
    assert [] != [id_ for id_ in ids[:1] if len(place.target.history(id_, THEIRS)) == 1]
    report = place.migrate()
    assert ((), 2) == (report.differences, len(place.target.history(ids[0], THEIRS)))


def test_the_memories_of_the_person(tmp_path):
    """Of a project and its person, both are copied: the person's memories keep the ids that the project shows."""
    personal = PersonalStore(tmp_path / "person.db")
    with STORES["in_memory"]() as open_shared:
        engine = MemoryEngine(SqliteStore.open(tmp_path / "memory.db"), personal=Personal(store=personal))
        (mine,) = engine.add([NewMemory(title="of the project", owner=ANN, scope="project")])
        (ended,) = engine.add([NewMemory(title="of the person before", owner=ANN, scope="global")])
        new = NewMemory(title="of the person", owner=ANN, scope="global")
        persons = engine.supersede(new, [ended], LATE, at=NOW - timedelta(days=1)).id
        personal.made().add(
            [engine._writer.analysed(NewMemory(title="elsewhere", owner=ANN, scope="project"))], now=NOW
        )
        target = open_shared()
        engine.prepare(target)
        report = moved(engine.store, target, tmp_path, lambda *_: None, NOW).run()
        seen = looking(owners=(THERE[ANN],), now=NOW.replace(year=2126))
        assert ((), 3) == (report.differences, report.memories)
        assert {mine: "of the project", persons: "of the person"} == {
            memory.id: memory.title for memory in target.recent(seen, limit=9)
        }
        assert [persons] == [memory.superseded_by for memory in target.get([ended], THEIRS)]
        assert persons == PERSONAL_IDS + 2
        assert target.last_version(THERE[ANN]) > PERSONAL_VERSIONS
        engine.close()
        target.close()
