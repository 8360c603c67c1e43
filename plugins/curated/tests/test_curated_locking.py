"""The lock: one writer, a deadline, and a name."""

import errno
import json
import os

import pytest

from beaver_hooks_curated.errors import MemoryLocked, MemoryUnwritable
from beaver_hooks_curated.folders import LOCK_FILE, locked


def test_one_after_the_other(tmp_path):
    """The lock is free again once its holder is done, and it is private."""
    for _ in range(2):
        with locked(tmp_path, 0.01):
            note = json.loads((tmp_path / LOCK_FILE).read_text())

    assert (os.getpid(), 0o600) == (note["pid"], (tmp_path / LOCK_FILE).stat().st_mode & 0o777)


def test_deadline(tmp_path):
    """Who waits in vain learns who holds it."""
    with locked(tmp_path, 0.01):
        since = json.loads((tmp_path / LOCK_FILE).read_text())["since"]
        with pytest.raises(MemoryLocked) as caught, locked(tmp_path, 0.02):
            pass

    assert str(caught.value) == (
        f"The memory in {tmp_path} is being written by process {os.getpid()} since {since}; it did not finish within "
        "0.02 seconds. Try again, or end that process if it hangs."
    )


@pytest.mark.parametrize("note", ["", "null", "[1]", '{"pid": "x"}', '{"pid": 1, "since": 2}'])
def test_unknown_holder(tmp_path, note):
    """A holder that left no note is another process."""
    with locked(tmp_path, 0.01):
        (tmp_path / LOCK_FILE).write_text(note)
        with pytest.raises(MemoryLocked, match="by another process;"), locked(tmp_path, 0.01):
            pass


def test_link(tmp_path):
    """A lock file that is a link is refused."""
    (tmp_path / LOCK_FILE).symlink_to(tmp_path / "elsewhere")

    with pytest.raises(MemoryUnwritable, match="cannot be written"), locked(tmp_path, 0.01):
        pass


def test_no_locks(tmp_path, monkeypatch):
    """On a file system without file locks, the error says so."""
    monkeypatch.setattr("fcntl.flock", _missing)

    with pytest.raises(MemoryLocked, match="no file locks"), locked(tmp_path, 0.01):
        pass


def test_an_existing_lock_is_tightened(tmp_path):
    """A lock file that others can read becomes private."""
    (tmp_path / LOCK_FILE).touch(mode=0o644)
    with locked(tmp_path, 0.01):
        pass

    assert 0o600 == (tmp_path / LOCK_FILE).stat().st_mode & 0o777


def test_a_lock_of_another_user(tmp_path, monkeypatch):
    """A lock file whose mode is not ours to change is used as it is."""
    (tmp_path / LOCK_FILE).touch(mode=0o666)
    monkeypatch.setattr(os, "fchmod", _forbidden)
    with locked(tmp_path, 0.01):
        note = json.loads((tmp_path / LOCK_FILE).read_text())

    assert os.getpid() == note["pid"]


def _missing(*_):
    raise OSError(errno.ENOSYS, "Function not implemented")


def _forbidden(*_):
    raise PermissionError(1, "Operation not permitted")
