"""A file has one holder at a time, among threads and processes."""

import errno
import os
import stat
import subprocess
import sys
import threading

import pytest

from beaver_toolkit.locks import LocksMissing, LockTimeout, locked


def holds(path):
    """Return whether the lock of `path` is held."""
    try:
        with locked(path, seconds=0):
            return False
    except LockTimeout:
        return True


def test_a_lock_is_exclusive(tmp_path):
    """No second holder gets the lock until the block ends, also by an error; the lock file is private and stays."""
    path, held = tmp_path / "f.lock", []

    def work():
        with locked(path):
            held.append(holds(path))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()

    assert ([True], False, 0o600) == (held, holds(path), stat.S_IMODE(path.stat().st_mode))


def test_a_waiting_thread_gets_the_lock(tmp_path):
    """A second thread waits for the first one."""
    path, order = tmp_path / "f.lock", []

    def work():
        with locked(path):
            order.append("second")

    with locked(path):
        second = threading.Thread(target=work)
        second.start()
        order.append("first")
    second.join(30)

    assert ["first", "second"] == order


def test_another_process_keeps_it(tmp_path):
    """Waiting for a lock of another process ends with `LockTimeout`, and killing that process frees the lock."""
    path = tmp_path / "f.lock"
    script = (
        "import sys, pathlib\nfrom beaver_toolkit.locks import locked\n"
        "with locked(pathlib.Path(sys.argv[1])):\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", script, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with other:
        other.stdout.readline()
        with pytest.raises(LockTimeout) as caught, locked(path, seconds=0.05):
            pytest.fail("it was held twice")
        other.kill()

    assert (f"another process holds {path}", False) == (str(caught.value), holds(path))


def test_what_the_file_holds_stays(tmp_path):
    """The content of a lock file is kept; a holder may write there."""
    path = tmp_path / "f.lock"
    path.write_text("before")
    with locked(path, on_acquired=lambda descriptor: os.pwrite(descriptor, b"B", 0)):
        pass

    assert "Before" == path.read_text()


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    """On a file system without locks `LocksMissing` is raised, and the block does not begin."""

    def missing(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", missing)
    with pytest.raises(LocksMissing) as caught, locked(tmp_path / "f.lock"):
        pytest.fail("it was entered")

    assert (errno.ENOLCK, "this file system has no file locks") == (caught.value.errno, caught.value.strerror)


def test_no_folder_is_made(tmp_path):
    """A lock file in a folder that is missing is an error, and the folder stays missing."""
    with pytest.raises(FileNotFoundError), locked(tmp_path / "gone" / "f.lock"):
        pytest.fail("it was entered")

    assert not (tmp_path / "gone").exists()


def test_a_link_is_refused(tmp_path):
    """A symbolic link in the place of the lock file is not followed."""
    (tmp_path / "f.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"), locked(tmp_path / "f.lock"):
        pytest.fail("it was entered")

    assert not (tmp_path / "elsewhere").exists()
