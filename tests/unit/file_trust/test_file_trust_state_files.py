"""Which contents of files are believed, and which records of them stand outside every project."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from beaver_hooks.file_trust import StateFiles
from beaver_hooks.file_trust.state_files import FileRecords, digest
from beaver_hostspecs import BelieveAll, ConfigurationError, FileTrust
from beaver_hostspecs.testing import RecordedFiles

ONE, TWO, THREE = b"one", b"two", b"three"


@pytest.fixture
def environment(tmp_path):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {"XDG_STATE_HOME": str(tmp_path / "xdg"), "GIT_CONFIG_GLOBAL": os.devnull}


@pytest.fixture
def folder(tmp_path, environment):
    """A state folder in a repository."""
    folder = tmp_path / "project" / ".beaver"
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=folder.parent, env=environment, check=True)
    return folder


@pytest.fixture
def path(folder, environment):
    """A file that git lists."""
    path = folder / "MEMORY.md"
    path.write_bytes(ONE)
    subprocess.run(["git", "add", "-f", path], cwd=folder, env=environment, check=True)
    return path


@pytest.fixture
def files(folder, environment):
    return StateFiles(folder, environment)


@pytest.fixture
def record(tmp_path):
    return tmp_path / "xdg" / "beaver-hooks" / "trusted-files.json"


def believed(files, path):
    return [files.believes(path, each) for each in (ONE, TWO, THREE, b"")]


def test_a_file_that_git_lists(files, path):
    """A file that git lists is believed only with a recorded content; an empty one is always believed."""
    before = believed(files, path)
    files.records.put(path, TWO)

    assert [[False, False, False, True], [False, True, False, True]] == [before, believed(files, path)]


def test_a_file_that_git_does_not_list(files, folder, record):
    """A file that git does not list is believed with any content, and nothing is recorded."""
    path = folder / "USER.md"
    path.write_bytes(ONE)
    files.record(path, TWO)

    assert ([True] * 4, False, False) == (believed(files, path), files.doubts(path), record.parent.exists())


def test_a_write_of_ours(files, path):
    """Before and after the rename the new content is believed, wherever a process is killed; older ones are not."""
    files.records.put(path, ONE)
    files.record(path, TWO)
    killed_before = believed(files, path)
    path.write_bytes(TWO)
    files.record(path, THREE)

    assert [[True, True, False, True], [False, True, True, True]] == [killed_before, believed(files, path)]


def test_a_write_over_what_was_not_confirmed(files, path):
    """A write over an unconfirmed content does not make that content believed."""
    files.record(path, TWO)

    assert [False, True, False, True] == believed(files, path)


def test_what_waits(files, path, folder):
    """Unbelieved files that git lists wait with their content; links, databases and confirmed files do not."""
    (folder / "sessions.db").write_bytes(ONE)
    (folder / "link").symlink_to(path)
    subprocess.run(["git", "add", "-f", "."], cwd=folder, check=True)
    waiting = files.unbelieved(folder)
    files.records.put(path, ONE)

    assert ({path: ONE}, {}) == (waiting, files.unbelieved(folder))
    assert (True, False) == (files.is_listed(folder / "sessions.db"), files.is_listed(folder / "none"))


def test_what_waits_without_git(folder, path, environment, tmp_path):
    """Without git, the files that the caller asked about wait, also those outside of the state folder."""
    files = StateFiles(folder, environment | {"PATH": str(tmp_path)})
    other = folder.parent / "notes" / "USER.md"
    other.parent.mkdir()
    other.write_bytes(TWO)
    nothing_yet = files.unbelieved(folder, other.parent)
    files.believes(path, ONE)
    files.believes(other, TWO)

    assert ({}, {path: ONE, other: TWO}) == (nothing_yet, files.unbelieved(folder, other.parent))


def test_a_record_that_cannot_be_read(files, path, record, caplog):
    """With an unreadable record no content is believed, the log says so, and a write is refused."""
    record.parent.mkdir(parents=True)
    record.write_text("{")
    caplog.set_level("WARNING")

    assert [False, False, False, True] == believed(files, path)
    assert "file_trust_unusable" in caplog.text
    with pytest.raises(ConfigurationError, match="cannot be read"):
        files.record(path, TWO)


def test_a_copy_that_cannot_be_written(files, path, record):
    """A content whose copy cannot be written is not recorded."""
    record.parent.mkdir(parents=True)
    (record.parent / "files").write_text("")

    with pytest.raises(ConfigurationError, match="cannot be written"):
        files.record(path, TWO)


def test_the_record(environment, tmp_path, record):
    """The record is private, holds hashes by real path, and keeps a copy of the last content."""
    records, path = FileRecords(environment), tmp_path / "a"
    records.meet(path)
    met = records.met(tmp_path), records.hashes(path), records.last(path)
    records.put(path, ONE, beside=[digest(TWO)])
    records.meet(path)
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (record, *(record.parent / "files").iterdir())]
    put = records.hashes(path), records.last(path)
    records.forget(path)

    assert ((path,), frozenset(), b"") == met
    assert ({digest(ONE), digest(TWO)}, ONE, [0o600, 0o600]) == (*put, modes)
    assert (frozenset(), b"", ()) == (records.hashes(path), records.last(path), records.met(Path("/")))


@pytest.mark.parametrize("make", [BelieveAll, RecordedFiles])
def test_without_a_host(tmp_path, make):
    """Without a host a plugin believes everything; the stand-in of the testing kit believes recorded contents."""
    trust: FileTrust = make()
    path = tmp_path / "a"
    before = trust.believes(path, ONE)
    trust.record(path, ONE)
    path.write_bytes(ONE)
    trust.record(path, TWO)
    after = [trust.believes(path, each) for each in (ONE, TWO, THREE, b"")]

    everything = make is BelieveAll
    assert everything is not trust.doubts(path)
    assert (everything, [True, True, everything, True]) == (before, after)


def test_a_name_that_no_file_can_have(files, folder):
    """A file name that the system refuses counts as a file without content."""
    files.records.meet(folder / ("x" * 300))

    assert {} == files.unbelieved(folder)
