"""A database whose files are removed or replaced while it is open: refused, rescued, opened again."""

import contextlib
import errno
import fcntl
import os
import shutil

import pytest
from notes_database import SCRIPTS, add, beside, opened, refusal

from beaver_toolkit.sqlite import lease
from beaver_toolkit.sqlite.connections import connect
from beaver_toolkit.sqlite.database import Database


@pytest.fixture
def path(tmp_path):
    return tmp_path / "notes.db"


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch):
    monkeypatch.setattr(lease, "DOUBT_SECONDS", 0.05)
    monkeypatch.setattr(lease, "RESCUE_SECONDS", 0.05)


def texts(path):
    with opened(path) as database:
        return [text for (text,) in database.connection.execute("SELECT text FROM notes ORDER BY rowid")]


def removed(file, _):
    file.unlink()


def replaced(file, copy):
    shutil.copyfile(copy, beside(file, ".new"))
    beside(file, ".new").replace(file)


@pytest.mark.parametrize("ending", ["-wal", "-shm"])
@pytest.mark.parametrize("way", [removed, replaced])
def test_a_log_that_lost_its_name(path, ending, way):
    """The next write is refused, what the log held is kept, and the database opens again."""
    with opened(path) as database:
        add(database, "first")
        shutil.copyfile(beside(path, ending), beside(path, ".copy"))
        add(database, "second")
        way(beside(path, ending), beside(path, ".copy"))

        assert "log_removed" == refusal(lambda: add(database, "refused"))
    assert ["first", "second"] == texts(path)


def test_a_log_that_lost_its_name_before_closing(path):
    """Closing keeps what the log held, and does not remove the file that took its place."""
    with opened(path) as database:
        add(database, "kept")
        replaced(beside(path, "-wal"), path)

    assert ["kept"] == texts(path)
    assert beside(path, "-wal.replaced").exists()


def test_a_log_that_lost_its_name_during_a_write(path):
    """A write is not acknowledged whose log was removed before the commit returned."""
    with opened(path) as database:

        def write():
            with database.transaction() as connection:
                connection.execute("INSERT INTO notes VALUES ('perhaps')")
                beside(path, "-wal").unlink()

        assert "log_removed" == refusal(write)


def swapped_folder(path):
    """Put a copy of the folder in its place."""
    shutil.copytree(path.parent, path.parent.with_name("copy"))
    path.parent.rename(path.parent.with_name("away"))
    path.parent.with_name("copy").rename(path.parent)


@pytest.mark.parametrize(
    ("swap", "refused"),
    [
        (lambda path: beside(path, "-wal").unlink(), "log_removed"),
        (lambda path: replaced(beside(path, "-shm"), path), "log_removed"),
        (swapped_folder, "exchanged"),
    ],
)
def test_a_folder_that_has_not_changed_for_long(path, swap, refused):
    """Files of a folder that is not looked through any more are noticed when it changes."""
    path = path.parent / "state" / path.name
    path.parent.mkdir()
    with opened(path) as database:
        os.utime(path.parent, (1, 1))
        add(database, "first")
        add(database, "second")
        swap(path)

        assert refused == refusal(lambda: add(database, "refused"))


def test_a_folder_whose_time_has_not_moved(path):
    """A change that gives the folder the same time as the change before it is noticed."""
    with opened(path) as database:
        add(database, "first")
        before = path.parent.stat().st_mtime_ns
        beside(path, "-wal").unlink()
        os.utime(path.parent, ns=(before, before))

        assert "log_removed" == refusal(lambda: add(database, "refused"))


def test_reading_after_a_file_lost_its_name(path):
    """`verify` refuses a connection before it reads a file that no other process sees."""
    with opened(path) as database:
        add(database, "kept")
        database.verify()
        beside(path, "-shm").unlink()

        assert "log_removed" == refusal(database.verify)


def test_another_process_is_kept_out_until_the_last_one_has_noticed(path):
    """While a connection has files that lost their names, no other one opens the database."""
    with opened(path) as database:
        add(database, "first")
        beside(path, "-wal").unlink()
        beside(path, "-shm").unlink()

        assert ["in_use", "in_use"] == [refusal(lambda: texts(path)), refusal(lambda: Database.read(path, SCRIPTS))]
        assert "log_removed" == refusal(database.verify)
        assert ["first"] == texts(path)


def test_a_log_that_cannot_be_saved(path):
    """If a reader keeps the log from being moved into the database, the error says that rows may be lost."""
    with opened(path) as database:
        add(database, "first")
        with contextlib.closing(connect(path)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM notes").fetchall()
            add(database, "second")
            beside(path, "-wal").unlink()

            assert "log_lost" == refusal(database.verify)


def test_the_log_of_a_lost_database(path):
    """The log of a database that was replaced does not become part of the next one of that name."""
    with opened(path):
        pass
    copy = shutil.copyfile(path, beside(path, ".copy"))
    with opened(path) as database:
        add(database, "lost")
        replaced(path, copy)

        assert "exchanged" == refusal(database.verify)
    assert [] == texts(path)


@pytest.mark.parametrize("fault", [PermissionError(), OSError(errno.EROFS, "read-only")])
def test_a_folder_without_a_lock_file(path, monkeypatch, fault):
    """Without a lock file the database works, and lost files are still noticed."""
    whole = os.open

    def refuse(name, *rest, **options):
        if str(name).endswith(".open.lock"):
            raise fault
        return whole(name, *rest, **options)

    monkeypatch.setattr(os, "open", refuse)
    _check_without_lock(path)


def test_a_file_system_without_locks(path, monkeypatch):
    """Where the file system has no locks the database works, and lost files are still noticed."""

    def refuse(*_):
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", refuse)
    _check_without_lock(path)


def _check_without_lock(path):
    with opened(path) as database:
        add(database, "kept")
        beside(path, "-wal").unlink()

        assert "log_removed" == refusal(database.verify)
    assert ["kept"] == texts(path)


def test_a_disk_without_room_for_the_record(path, monkeypatch):
    """A record that cannot be written keeps no other process out."""

    def refuse(*_):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "pwrite", refuse)
    with opened(path) as database:
        add(database, "kept")
        assert ["kept"] == texts(path)


def test_a_child_after_a_fork(path):
    """A forked child that lives on does not keep the lease of its parent."""
    database = Database.open(path, SCRIPTS)
    add(database, "kept")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    beside(path, "-wal").unlink()
    category = refusal(database.verify)
    try:
        assert ("log_removed", ["kept"]) == (category, texts(path))
    finally:
        os.close(writing)
        os.close(reading)
        os.waitpid(child, 0)


def test_the_lock_file_goes_with_the_last_connection(path):
    """The lock file is private, and only the database remains when the last connection is closed."""
    lock = path.with_name(".notes.db.open.lock")
    with opened(path), opened(path):
        assert 0o600 == lock.stat().st_mode & 0o777

    assert ["notes.db"] == [each.name for each in path.parent.iterdir()]


@pytest.mark.parametrize("record", [b"!", b" !", b"17 !", b"!" * 300, b"\xff\x00!"])
def test_a_damaged_record(path, record):
    """A record that a killed process or a full disk left incomplete keeps no process from its rows."""
    with opened(path) as database:
        add(database, "kept")
    path.with_name(f".{path.name}.open.lock").write_bytes(record)

    assert texts(path) == ["kept"]
