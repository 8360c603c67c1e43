"""Small files are written whole or not at all, privately, and by one process at a time."""

import errno
import fcntl
import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_toolkit import files
from beaver_toolkit.files import NotRegular, create_once, open_regular, replace, replaced, sweep, sync
from beaver_toolkit.locks import LocksMissing


def fail_with(number):
    def fail(*_, **__):
        raise OSError(number, os.strerror(number))

    return fail


def names(folder):
    return sorted(each.name for each in folder.iterdir())


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("links", [True, False])
def test_create_once_keeps_what_is_there(tmp_path, monkeypatch, links):
    """The first content stays, on a file system with hard links and on one without."""
    if not links:
        monkeypatch.setattr(os, "link", fail_with(errno.EPERM))

    assert [create_once(tmp_path / "f", b"one"), create_once(tmp_path / "f", b"two")] == [True, False]
    assert ((tmp_path / "f").read_bytes(), mode(tmp_path / "f")) == (b"one", 0o600)
    assert set(names(tmp_path)) <= {"f", ".f.lock"}


def test_create_once_follows_no_link(tmp_path):
    """A dangling symbolic link counts as there, and nothing is made where it leads."""
    (tmp_path / "f").symlink_to(tmp_path / "planted")

    assert create_once(tmp_path / "f", b"one") is False
    assert names(tmp_path) == ["f"]


def test_without_links_and_locks_nothing_is_made(tmp_path, monkeypatch):
    """On a file system with neither hard links nor locks, nothing is made."""
    monkeypatch.setattr(os, "link", fail_with(errno.EPERM))
    monkeypatch.setattr("fcntl.flock", fail_with(errno.ENOSYS))

    with pytest.raises(LocksMissing) as caught:
        create_once(tmp_path / "f", b"one")

    assert (caught.value.errno, caught.value.strerror) == (errno.ENOLCK, "this file system has no file locks")
    assert {*names(tmp_path)} <= {".f.lock"}


@given(contents=st.lists(st.binary(max_size=50), min_size=1, max_size=4))
def test_the_last_content_replaces_the_others(contents):
    """After each writing the file is private and holds that content and no other; nothing lies beside it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f"
        for content in contents:
            replace(path, content)
            assert (path.read_bytes(), mode(path), names(path.parent)) == (content, 0o600, ["f"])


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failed_replacement_changes_nothing(tmp_path, monkeypatch, call):
    """A failed replacement keeps the old file and leaves no temporary file."""
    replace(tmp_path / "f", b"one")
    monkeypatch.setattr(Path if call == "replace" else os, call, fail_with(errno.ENOSPC))

    with pytest.raises(OSError, match="No space left"):
        replace(tmp_path / "f", b"two")

    assert ((tmp_path / "f").read_bytes(), names(tmp_path)) == (b"one", ["f"])


def test_content_and_name_are_synced(tmp_path, monkeypatch):
    """The content is durable before it gets its name, and then the name is."""
    done, fsync, rename = [], os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda each: (done.append(stat.S_ISDIR(os.fstat(each).st_mode)), fsync(each)))
    monkeypatch.setattr(Path, "replace", lambda *both: (done.append("renamed"), rename(*both)))

    replace(tmp_path / "f", b"one")
    create_once(tmp_path / "g", b"one")

    assert done == [False, "renamed", True, False, True]


def test_stray_files_are_swept(tmp_path):
    """Sweeping removes old temporary files of the file; fresh ones go only on request, those of other files never."""
    old, fresh, other = (tmp_path / name for name in (".f.1.tmp", ".f.2.tmp", ".g.1.tmp"))
    for each in (old, fresh, other):
        each.write_text("")
    os.utime(old, (0, 0))
    os.utime(other, (0, 0))

    sweep(tmp_path / "f")
    assert names(tmp_path) == [fresh.name, other.name]
    sweep(tmp_path / "f", older_than=0)
    assert names(tmp_path) == [other.name]


def test_a_folder_that_cannot_be_opened_is_not_synced(monkeypatch):
    """Syncing a folder that the system cannot open raises nothing."""
    monkeypatch.setattr(os, "open", fail_with(errno.EACCES))

    sync(Path("anywhere"))


def test_replaced_yields_the_old_file(tmp_path):
    """The replaced file can be read inside the block, and is gone after it; the first time there is none."""
    path, seen = tmp_path / "f", []
    for content in (b"one", b"two", b"three"):
        with replaced(path, content) as old:
            seen.append(old and (old.read_bytes(), path.read_bytes()))

    assert seen == [None, (b"one", b"two"), (b"two", b"three")]
    assert (path.read_bytes(), mode(path), names(tmp_path)) == (b"three", 0o600, ["f"])


def test_replaced_on_a_system_without_exchange(tmp_path, monkeypatch):
    """Without an exchange of names, a plain rename replaces the file, and the old content is `None`."""
    monkeypatch.setattr("ctypes.CDLL", lambda _: object())
    files._renameat2.cache_clear()
    path = tmp_path / "f"
    replace(path, b"one")
    try:
        with replaced(path, b"two") as old:
            assert (None, b"two") == (old, path.read_bytes())
    finally:
        files._renameat2.cache_clear()


def test_a_regular_file_is_opened(tmp_path):
    """A file is read, a pipe is refused without waiting for its writer, and so is a folder."""
    (tmp_path / "file").write_bytes(b"one")
    os.mkfifo(tmp_path / "pipe")

    with open_regular(tmp_path / "file") as file:
        assert b"one" == file.read()
    for other in (tmp_path / "pipe", tmp_path):
        with pytest.raises(NotRegular, match="it is not a regular file"):
            open_regular(other)


def test_a_link_is_followed_if_wanted(tmp_path):
    """A symbolic link leads to its file, unless the caller follows none."""
    (tmp_path / "file").write_bytes(b"one")
    (tmp_path / "link").symlink_to(tmp_path / "file")

    with open_regular(tmp_path / "link") as file:
        assert b"one" == file.read()
    with pytest.raises(OSError, match="symbolic links"):
        open_regular(tmp_path / "link", follow_links=False)


@pytest.mark.parametrize("knows_the_call", [True, False])
def test_full_syncs_on_macos(tmp_path, monkeypatch, knows_the_call):
    """On a drive with a cache that `fsync` leaves alone, file and folder are synced fully, if the system can."""
    called = []

    def recorded(name, fails=False):
        def record(*given):
            called.append((name, *given[1:]))
            if fails:
                raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

        return record

    monkeypatch.setattr(files, "HAS_DRIVE_CACHE", True)
    monkeypatch.setattr(fcntl, "fcntl", recorded("fcntl", fails=not knows_the_call))
    monkeypatch.setattr(os, "fsync", recorded("fsync"))
    replace(tmp_path / "f", b"content")

    assert [("fcntl", 51), *([] if knows_the_call else [("fsync",)])] * 2 == called
