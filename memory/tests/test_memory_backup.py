"""Backups of databases of memories: one moment of each, restored as it was, merged by uids and words."""

import contextlib
import itertools
import shutil
import threading
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from beaver_hostspecs import BackupReport, RestoreReport, RestoreRequest, Secret
from beaver_hostspecs.testing import FrozenClock
from beaver_memory.errors import StoreError
from beaver_memory.records import Owner, SessionSummary
from beaver_memory.runtime.backup import ON_SERVER, MemoryBackup
from beaver_memory.runtime.profile import InMemoryLocation, PostgresLocation, SqliteLocation
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.testing.store_cases.kit import NOW, looking, new

FEW = settings().max_examples // 4
"""Each example opens several databases."""

TITLES = st.sampled_from(["ash", "birch", "cedar", "dogwood"])
STEPS = st.lists(st.tuples(st.sampled_from(["add", "forget", "pin"]), TITLES), max_size=8)


def backup_of(folder: Path) -> MemoryBackup:
    folder.mkdir(parents=True, exist_ok=True)
    return MemoryBackup(location=SqliteLocation(state_folder=folder), clock=FrozenClock())


def written(folder: Path, to: Path) -> Path:
    """Write a backup of the memory in a folder, and return its folder."""
    to.mkdir()
    backup_of(folder).write(to)
    return to


def opened(folder: Path):
    return contextlib.closing(SqliteStore.open(folder / "memory.db"))


class World:
    """A store beside a dictionary that says what it holds: title and state by id."""

    def __init__(self, folder: Path, moments, model=None):
        self.folder, self._moments, self.model = folder, moments, dict(model or {})
        folder.mkdir(exist_ok=True)

    def do(self, steps) -> "World":
        with opened(self.folder) as store:
            for verb, title in steps:
                now = NOW + timedelta(seconds=next(self._moments))
                mine = [id_ for id_, (each, state) in self.model.items() if each == title and state != "gone"]
                if verb == "add" and not mine:
                    (kept,) = store.remember([new(title)], now=now, mention=False)
                    self.model[kept.id] = (title, f"new {now}")
                elif verb == "forget" and mine:
                    store.forget(mine, looking(now=now), now=now)
                    self.model |= dict.fromkeys(mine, (title, "gone"))
                elif verb == "pin" and mine:
                    store.change(mine[0], looking(now=now), event="PIN", now=now, pinned=True)
                    # A pin of a pinned memory changes nothing.
                    self.model[mine[0]] = (title, "pinned")
        return self

    @property
    def live(self) -> list[str]:
        return sorted(title for title, state in self.model.values() if state != "gone")

    def shown(self) -> dict[int, tuple[str, bool]]:
        """Return what the store shows: title and pin by id."""
        with opened(self.folder) as store:
            problems = store.check(None)
            found = {each.id: (each.title, each.pinned) for each in store.recent(looking(), limit=100)}
        assert [] == problems
        return found

    def merge(self, backup: Path, **options) -> RestoreReport:
        """Merge a copy of a backup, because a merge may change it."""
        given = shutil.copytree(backup, backup.with_name(f"{backup.name}-{next(self._moments)}"))
        return backup_of(self.folder).restore(RestoreRequest(folder=given, merge=True, **options))


@settings(max_examples=FEW)
@example([("add", "ash"), ("pin", "ash")], [("pin", "ash")])
@given(STEPS, STEPS)
def test_a_merge_into_the_same_store_changes_nothing(before, after):
    """Every memory of the backup is known by its uid: those forgotten or changed since are named, and stay so."""
    with TemporaryDirectory() as name:
        world = World(Path(name) / "state", itertools.count()).do(before)
        then = dict(world.model)
        backup = written(world.folder, Path(name) / "backup")
        shown = world.do(after).shown()
        report = world.merge(backup)

        now, live = world.model, {id_ for id_, (_, state) in then.items() if state != "gone"}
        forgotten = [f"Memory {id_} was forgotten since, and stays forgotten." for id_ in live if now[id_][1] == "gone"]
        changed = [
            f"Memory {id_} was changed since, and stays as it is."
            for id_ in live
            if now[id_][1] != "gone" and now[id_] != then[id_]
        ]
        assert shown == world.shown()
        assert sorted(forgotten + changed) == sorted(report.conflicts)
        assert {"memories": len(live) - len(forgotten) - len(changed)} == report.present
        assert {"memories": 0, "summaries": 0} == report.added


@settings(max_examples=FEW)
@example([("add", "ash")], [("add", "birch"), ("forget", "birch")])
@given(STEPS, STEPS)
def test_a_merge_into_another_store_adds_what_it_lacks(ours, theirs):
    """By their words, missing memories come and the others stay; a dry run says so before, and a second merge adds none."""
    with TemporaryDirectory() as name:
        moments = itertools.count()
        source, world = World(Path(name) / "source", moments).do(ours), World(Path(name) / "state", moments).do(theirs)
        backup, before = written(source.folder, Path(name) / "backup"), world.shown()
        dry = world.merge(backup, dry_run=True)
        unchanged = world.shown()
        report, shown = world.merge(backup), world.shown()
        again = world.merge(backup)

        assert before == unchanged
        assert sorted({*source.live, *world.live}) == sorted(title for title, _ in shown.values())
        assert before.items() <= shown.items()
        assert dry == report
        assert {"memories": len(shown) - len(before), "summaries": 0} == report.added
        assert {"memories": 0, "summaries": 0} == again.added
        assert shown == world.shown()


@settings(max_examples=FEW)
@example([], [("add", "ash")], [("add", "birch")])
@example([], [("add", "ash")], [("add", "ash"), ("forget", "ash")])
@given(STEPS, STEPS, STEPS)
def test_a_merge_of_a_newer_backup_into_a_restored_older_one(before, after, since):
    """Ids that both sides gave to different memories since are not mistaken for one memory."""
    with TemporaryDirectory() as name:
        moments = itertools.count()
        source = World(Path(name) / "source", moments).do(before)
        older, base = written(source.folder, Path(name) / "older"), dict(source.model)
        newer = written(source.do(after).folder, Path(name) / "newer")
        world = World(Path(name) / "state", moments, base)
        backup_of(world.folder).restore(RestoreRequest(folder=older))
        shown = world.do(since).shown()
        world.merge(newer)

        added = {title for id_, (title, state) in source.model.items() if state != "gone" and id_ not in base}
        assert shown.items() <= world.shown().items()
        assert sorted({*world.live, *added}) == sorted(title for title, _ in world.shown().values())


def test_a_merge_keeps_uids(tmp_path):
    """An added memory keeps its uid, by which a later merge knows it changed or forgotten."""
    source = World(tmp_path / "source", itertools.count()).do([("add", "ash"), ("add", "birch")])
    world = World(tmp_path / "state", itertools.count(99)).do([("add", "cedar")])
    backup = written(source.folder, tmp_path / "backup")
    world.merge(backup)
    with opened(source.folder) as theirs, opened(world.folder) as store:
        uids = {each.title: each.uid for each in theirs.recent(looking(), limit=9)}
        found = {each.title: each for each in store.recent(looking(), limit=9)}
        text = {"title": "elder", "terms": b"elder", "length": 1}
        store.change(found["ash"].id, looking(), event="UPDATE", now=NOW, **text)
        store.forget([found["birch"].id], looking(), now=NOW)
    report = world.merge(backup)

    assert uids == {title: found[title].uid for title in ("ash", "birch")}
    assert {1: ("cedar", False), found["ash"].id: ("elder", False)} == world.shown()
    assert ({"memories": 1}, 0) == (report.present, report.added["memories"])
    assert (f"Memory {found['birch'].id} was forgotten since, and stays forgotten.",) == report.conflicts


def test_a_restored_store_is_the_same_file(tmp_path):
    """Ids, versions, histories, embeddings and the name of the store come back, and the next id is a new one."""
    world = World(tmp_path / "state", itertools.count()).do([("add", "ash"), ("add", "birch"), ("forget", "birch")])
    with opened(world.folder) as store:
        store.put_vectors(new("x").memory.owner, "m", [(1, b"vector")])
        identity = store.identity
    backup = written(world.folder, tmp_path / "backup")
    report = backup_of(tmp_path / "new").restore(RestoreRequest(folder=backup))

    assert {"memories": 1, "forgotten memories": 1, "embeddings": 1} == report.added
    with opened(world.folder) as old, opened(tmp_path / "new") as restored:
        owner = new("x").memory.owner
        assert identity == restored.identity
        assert old.changed(owner, 0, limit=9) == restored.changed(owner, 0, limit=9)
        assert old.history(1, looking()) == restored.history(1, looking())
        assert old.vectors(owner, "m", 0, limit=9) == restored.vectors(owner, "m", 0, limit=9)
        assert [3] == restored.add([new("cedar")], now=NOW)


def test_a_backup_is_a_moment_between_two_writes(tmp_path):
    """While threads write without a pause, each copy holds both memories of each transaction, and the first ones."""
    path = tmp_path / "state" / "memory.db"
    path.parent.mkdir()
    ended = threading.Event()

    def write(name: str) -> None:
        with contextlib.closing(SqliteStore.open(path)) as store:
            for number in itertools.count():
                store.add([new(f"{name} {number} {half}") for half in "ab"], now=NOW)
                if ended.is_set():
                    return

    writers = [threading.Thread(target=write, args=(name,)) for name in "xy"]
    with contextlib.closing(SqliteStore.open(path)):
        for each in writers:
            each.start()
        copies = [written(path.parent, tmp_path / str(number)) for number in range(5)]
        ended.set()
        for each in writers:
            each.join()

    for copy in copies:
        with contextlib.closing(SqliteStore.open(copy / "project" / "memory.db")) as store:
            assert [] == store.check(None)
            titles = {each.title for each in store.recent(looking(), limit=10**6)}
        for name in "xy":
            count = sum(title.startswith(name) for title in titles) // 2
            assert {f"{name} {number} {half}" for number in range(count) for half in "ab"} <= titles
        assert len(titles) % 2 == 0


@pytest.mark.parametrize(
    ("location", "notes"),
    [
        (PostgresLocation(url=Secret("postgresql://u@h/d"), tenant="t", state_folder=Path("s")), (ON_SERVER,)),
        (InMemoryLocation(), ()),
    ],
)
def test_a_memory_without_files_has_nothing_to_copy(tmp_path, location, notes):
    """Memories on a server are left to the tool of the server, which the report names."""
    backup = MemoryBackup(location=location)

    assert (notes, []) == (backup.write(tmp_path), list(tmp_path.iterdir()))
    assert BackupReport() == backup.check(tmp_path)
    assert RestoreReport(notes=notes) == backup.restore(RestoreRequest(folder=tmp_path))


@pytest.mark.parametrize(("content", "category"), [(b"no database, but a long text " * 9, "corrupt"), (b"", "emptied")])
def test_a_file_that_is_no_store_is_named(tmp_path, content, category):
    """The error is about the database of the user and not about its copy."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "memory.db").write_bytes(content)
    with pytest.raises(StoreError) as caught:
        written(tmp_path / "state", tmp_path / "backup")

    assert (category, tmp_path / "state" / "memory.db") == (caught.value.category, caught.value.place)


def test_a_database_of_a_newer_version_is_refused(tmp_path):
    """Neither a copy nor a restore of it is attempted."""
    World(tmp_path / "state", itertools.count()).do([("add", "ash")])
    backup = written(tmp_path / "state", tmp_path / "backup")
    for path in (tmp_path / "state" / "memory.db", backup / "project" / "memory.db"):
        with contextlib.closing(apsw.Connection(str(path))) as connection:
            connection.execute("INSERT INTO schema_version VALUES (99, 0)")

    with pytest.raises(StoreError) as copied:
        written(tmp_path / "state", tmp_path / "second")
    with pytest.raises(StoreError) as restored:
        backup_of(tmp_path / "new").restore(RestoreRequest(folder=backup))
    assert ["newer", "newer"] == [each.value.category for each in (copied, restored)]
    assert not (tmp_path / "new" / "memory.db").exists()


def test_summaries_of_sessions_are_merged(tmp_path):
    """A summary that is missing comes; one of the same session stays as it is."""
    ours = [SessionSummary(session=name, outcome="ours", created_at=NOW) for name in "ab"]
    theirs = SessionSummary(session="a", outcome="theirs", created_at=NOW)
    for name, summaries in (("source", ours), ("state", [theirs])):
        World(tmp_path / name, itertools.count()).do([("add", "ash")])
        with opened(tmp_path / name) as store:
            for each in summaries:
                store.summarise(Owner(), each)
    backup = written(tmp_path / "source", tmp_path / "backup")
    report = backup_of(tmp_path / "state").restore(RestoreRequest(folder=backup, merge=True))

    assert {"memories": 0, "summaries": 1} == report.added
    with opened(tmp_path / "state") as store:
        assert {"a": "theirs", "b": "ours"} == {
            each.session: each.outcome for each in store.summaries(Owner(), limit=9)
        }
