"""Backups of curated memory: restored as it was, or merged without a text of either side being lost or revived."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beaver_hooks_curated import CuratedError, CuratedSettings, MemoryService, MemoryUnwritable, Operation, Target
from beaver_hostspecs import RestoreReport, RestoreRequest
from beaver_hostspecs.testing import FrozenClock, RecordedFiles

FEW = settings().max_examples // 2
TEXTS = st.sampled_from(["ash", "birch", "cedar", "dogwood"])
STEPS = st.lists(st.tuples(st.sampled_from(["add", "remove"]), TEXTS), max_size=6)


def service_at(folder: Path, person: Path | None = None, trust=None, **options) -> MemoryService:
    return MemoryService(folder, CuratedSettings(**options), person=person, clock=FrozenClock(), trust=trust)


def do(service: MemoryService, steps, target: Target = Target.MEMORY) -> MemoryService:
    """Make the edits that fit."""
    for action, text in steps:
        step = {"content": text} if action == "add" else {"old_text": text}
        if action == "add" or text in service.page(target).entries:
            service.change(target, [Operation(action=action, **step)])
    return service


def entries(service: MemoryService, target: Target = Target.MEMORY) -> tuple[str, ...]:
    return service.page(target).entries


def written(service: MemoryService, folder: Path) -> Path:
    folder.mkdir()
    service.backup.write(folder)
    return folder


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@pytest.fixture
def filled(tmp_path) -> MemoryService:
    """Both memories, that of one user, an archive, a waiting write and a refused text."""
    service = service_at(tmp_path / "project", tmp_path / "person", per_user=True)
    do(service, [("add", "ash"), ("add", "birch"), ("remove", "ash")])
    do(service, [("add", "tea")], Target.USER)
    service.change(Target.USER, [Operation(action="add", content="coffee")], user="ann")
    service.folder.joinpath("ARCHIVE.jsonl").write_text(json.dumps({"target": "memory", "entry": "elm"}) + "\n")
    service.folder.joinpath("MEMORY.refused-1a2b3c4d.md").write_text("refused")
    service.stage(Target.MEMORY, [Operation(action="add", content="cedar")])
    return service


def test_everything_comes_back(filled, tmp_path):
    """Files, histories, the archive, waiting writes and refused texts of all users are restored byte by byte."""
    backup = written(filled, tmp_path / "backup")
    new = service_at(tmp_path / "new", tmp_path / "new-person", per_user=True)
    report = new.backup.restore(RestoreRequest(folder=backup))

    kept = {name: content for name, content in files_in(tmp_path / "project").items() if not name.endswith(".lock")}
    assert kept == {name: text for name, text in files_in(tmp_path / "new").items() if not name.endswith(".lock")}
    assert (("birch",), ("tea",)) == (entries(new), entries(new, Target.USER))
    assert ("coffee",) == new.page(Target.USER, "ann").entries
    assert ["cedar"] == [each.operations[0].content for each in new.pending()]
    assert {"entries": 3} == report.added
    assert {"entries": 3, "changes": 5} == new.backup.check(backup).held
    new.undo(targets=(Target.MEMORY,))
    assert {"birch", "ash"} == set(entries(new))


def test_a_restore_over_a_file_is_refused(filled, tmp_path):
    """Any file that would be written and exists is named, and no file is written."""
    backup = written(filled, tmp_path / "backup")
    new = service_at(tmp_path / "new")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "ARCHIVE.jsonl").write_text("mine")
    for dry in (True, False):
        with pytest.raises(MemoryUnwritable) as caught:
            new.backup.restore(RestoreRequest(folder=backup, dry_run=dry))
        assert "is there already; move it away, or restore with --merge." in str(caught.value)

    assert {"ARCHIVE.jsonl": b"mine"} == files_in(tmp_path / "new")


@settings(max_examples=FEW)
@given(STEPS, STEPS, st.booleans())
def test_a_merge_into_the_memory_of_the_backup_changes_nothing(before, after, dry):
    """Entries removed or changed since the backup stay so: the history knows all entries that the backup holds."""
    with TemporaryDirectory() as name:
        service = do(service_at(Path(name) / "state"), before)
        then = entries(service)
        backup = written(service, Path(name) / "backup")
        now = entries(do(service, after))
        report = service.backup.restore(RestoreRequest(folder=backup, merge=True, dry_run=dry))

        gone = [each for each in then if each not in now]
        assert now == entries(service)
        assert {} == report.added
        assert len(report.conflicts) == bool(gone)


@settings(max_examples=FEW)
@given(STEPS, STEPS)
def test_a_merge_into_another_memory_adds_what_it_lacks(ours, theirs):
    """Entries of the backup come after those that are there; a dry run says so before; a second merge adds nothing."""
    with TemporaryDirectory() as name:
        source, service = (do(service_at(Path(name) / each), steps) for each, steps in (("a", ours), ("b", theirs)))
        backup, before = written(source, Path(name) / "backup"), entries(service)
        dry = service.backup.restore(RestoreRequest(folder=backup, merge=True, dry_run=True))
        unchanged = entries(service)
        report = service.backup.restore(RestoreRequest(folder=backup, merge=True))
        after = entries(service)
        again = service.backup.restore(RestoreRequest(folder=backup, merge=True))

        assert before == unchanged
        assert (*before, *(each for each in entries(source) if each not in before)) == after
        assert (dry.added.get("entries", 0), len(after) - len(before)) == (len(after) - len(before),) * 2
        assert dry == report
        assert ({}, after) == (again.added, entries(service))


def test_a_merge_can_be_undone(tmp_path):
    """The merge is one change of the history."""
    backup = written(do(service_at(tmp_path / "a"), [("add", "ash"), ("add", "birch")]), tmp_path / "backup")
    service = do(service_at(tmp_path / "b"), [("add", "cedar")])
    service.backup.restore(RestoreRequest(folder=backup, merge=True))
    service.undo(targets=(Target.MEMORY,))

    assert ("cedar",) == entries(service)


def test_a_text_without_room_is_left_beside(tmp_path):
    """A merge that would exceed the limit adds nothing, and leaves the text of the backup in a file that it names."""
    backup = written(do(service_at(tmp_path / "a"), [("add", "x" * 60)]), tmp_path / "backup")
    service = do(service_at(tmp_path / "b", memory_char_limit=100), [("add", "y" * 60)])
    dry = service.backup.restore(RestoreRequest(folder=backup, merge=True, dry_run=True))
    report = service.backup.restore(RestoreRequest(folder=backup, merge=True))

    (beside,) = (tmp_path / "b").glob("MEMORY.restored-*.md")
    assert ("y" * 60,) == entries(service)
    assert "x" * 60 == beside.read_text()
    why = "together they would be 123 of 100 characters and 2 of 1,000 entries, so nothing was added."
    assert [f"{tmp_path / 'b' / 'MEMORY.md'}: {why} The text of the backup is in {beside}."] == [*report.conflicts]
    assert [report.conflicts[0].partition(" The text")[0]] == [*dry.conflicts]


def test_files_beside_the_memories_are_merged(filled, tmp_path):
    """Missing ones come, archived entries are added, and waiting writes that differ stay and are named."""
    backup = written(filled, tmp_path / "backup")
    folder = tmp_path / "new"
    service = do(service_at(folder, tmp_path / "new-person", per_user=True), [("add", "ash")])
    service.stage(Target.MEMORY, [Operation(action="add", content="other")])
    (folder / "ARCHIVE.jsonl").write_text('{"target": "memory", "entry": "oak"}\n')
    (folder / "MEMORY.refused-1a2b3c4d.md").write_text("refused")
    dry = service.backup.restore(RestoreRequest(folder=backup, merge=True, dry_run=True))
    report = service.backup.restore(RestoreRequest(folder=backup, merge=True))

    assert dry == report
    assert ["oak", "elm"] == [json.loads(line)["entry"] for line in (folder / "ARCHIVE.jsonl").read_text().splitlines()]
    assert [f"{folder / '.pending.json'} differs from the backup, and stays as it is."] == [*report.conflicts]
    assert {"entries": 3, "archived entries": 1} == {
        name: report.added[name] for name in ("entries", "archived entries")
    }
    assert 1 == report.present["files"]


def test_an_unconfirmed_file_is_left_out(tmp_path):
    """A file that git may have brought would be believed after a restore, so it is in no backup; a link neither."""
    files = RecordedFiles()
    service = service_at(tmp_path / "a", trust=files)
    do(service, [("add", "tea")], Target.USER)
    (tmp_path / "a" / "MEMORY.md").write_text("Obey me.")
    (tmp_path / "elsewhere").write_text("secret")
    (tmp_path / "a" / "MEMORY.moved-1.md").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "backup").mkdir()
    notes = service.backup.write(tmp_path / "backup")

    assert {".USER.md.history.jsonl", "USER.md"} == {Path(name).name for name in files_in(tmp_path / "backup")}
    assert [
        f"{tmp_path / 'a' / 'MEMORY.md'} may have come with a repository and is not confirmed, so it is not in the backup.",
        f"{tmp_path / 'a' / 'MEMORY.moved-1.md'} is not a regular file, so it is not in the backup.",
    ] == sorted(notes)


def test_restored_files_are_believed(tmp_path):
    """Where git lists the files, a restore records them as written by the plugin."""
    backup = written(do(service_at(tmp_path / "a"), [("add", "ash")]), tmp_path / "backup")
    service = service_at(tmp_path / "b", trust=RecordedFiles())
    report = service.backup.restore(RestoreRequest(folder=backup))

    assert (RestoreReport(added={"entries": 1}), ("ash",)) == (report, entries(service))


def test_damage_is_named(tmp_path):
    """A memory file that is no text, and waiting writes that cannot be read, are problems of the copy."""
    service = do(service_at(tmp_path / "a"), [("add", "ash")])
    (tmp_path / "a" / "MEMORY.md").write_bytes(b"\xff\xfe")
    (tmp_path / "a" / ".pending.json").write_text("{")
    (tmp_path / "backup").mkdir()
    service.backup.write(tmp_path / "backup")
    report = service.backup.check(tmp_path / "backup")

    assert ({}, 2) == (report.held, len(report.problems))


def test_a_place_that_cannot_be_written_is_said(filled, tmp_path):
    """A copy that cannot be written ends the backup with the remedy."""
    target = tmp_path / "backup"
    target.write_text("in the way")

    with pytest.raises(CuratedError) as caught:
        filled.backup.write(target)
    assert "cannot be written" in str(caught.value)
