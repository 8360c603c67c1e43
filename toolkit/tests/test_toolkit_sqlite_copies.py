"""Copies of databases: one moment while others write, put back only where nothing is in the way."""

import stat

import apsw
import pytest

from beaver_toolkit.sqlite.copies import check_free, copy_moment, put_in_place
from beaver_toolkit.sqlite.database import Database
from beaver_toolkit.sqlite.errors import DatabaseError

SCRIPTS = ("CREATE TABLE numbers (number INTEGER)",)


def numbers(path) -> list[int]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    found = [number for (number,) in connection.execute("SELECT number FROM numbers ORDER BY number")]
    connection.close()
    return found


@pytest.fixture
def database(tmp_path):
    """A database with a log that holds the newest rows, open for writing."""
    opened = Database.open(tmp_path / "a.db", SCRIPTS)
    with opened.transaction() as connection:
        connection.executemany("INSERT INTO numbers VALUES (?)", [(1,), (2,)])
    yield opened
    opened.close()


@pytest.fixture
def copy(database, tmp_path):
    copy_moment(database.connection, tmp_path / "copy.db")
    return tmp_path / "copy.db"


def test_a_copy_has_the_rows_of_the_log(database, copy, tmp_path):
    """Rows that are in the log only are in the copy, which is one private file without a log."""
    with database.transaction() as connection:
        connection.execute("INSERT INTO numbers VALUES (3)")

    assert ([1, 2], [1, 2, 3]) == (numbers(copy), numbers(tmp_path / "a.db"))
    assert 0o600 == stat.S_IMODE(copy.stat().st_mode)
    assert ["copy.db"] == [each.name for each in tmp_path.glob("copy.db*")]


def test_a_copy_never_replaces_a_file(database, copy):
    """The path of a copy must be free."""
    with pytest.raises(DatabaseError):
        copy_moment(database.connection, copy)
    assert [1, 2] == numbers(copy)


def test_a_damaged_database_leaves_no_copy(tmp_path):
    """A file that SQLite cannot read gives its category, and nothing is left."""
    (tmp_path / "a.db").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    connection = apsw.Connection(str(tmp_path / "a.db"))

    with pytest.raises(DatabaseError) as caught:
        copy_moment(connection, tmp_path / "copy.db")
    connection.close()
    assert ("corrupt", ["a.db"]) == (caught.value.category, [each.name for each in tmp_path.iterdir()])


def test_a_copy_is_put_in_place(copy, tmp_path):
    """It gets its name whole and private, and other processes open it as they open any database."""
    put_in_place(copy, tmp_path / "b.db")
    opened = Database.open(tmp_path / "b.db", SCRIPTS)
    opened.close()

    assert [1, 2] == numbers(tmp_path / "b.db")
    assert 0o600 == stat.S_IMODE((tmp_path / "b.db").stat().st_mode)
    assert [] == [each.name for each in tmp_path.iterdir() if each.name.startswith(".b.db")]


@pytest.mark.parametrize("name", ["b.db", "b.db-wal", "b.db-shm", "b.db-journal"])
def test_a_file_in_the_way_is_kept(copy, tmp_path, name):
    """Neither a database nor a log without one is replaced or joined with the copy."""
    (tmp_path / name).write_text("mine")
    for act in (lambda: check_free(tmp_path / "b.db"), lambda: put_in_place(copy, tmp_path / "b.db")):
        with pytest.raises(DatabaseError) as caught:
            act()
        assert "exists" == caught.value.category

    assert [("mine", name)] == [(each.read_text(), each.name) for each in tmp_path.glob("b.db*")]


def test_a_database_that_a_process_has_lost_is_in_use(database, copy, tmp_path):
    """A process that has the removed files open would go on with them, so nothing takes their name before it ends."""
    for ending in ("", "-wal", "-shm"):
        (tmp_path / f"a.db{ending}").unlink()
    for act in (lambda: check_free(tmp_path / "a.db"), lambda: put_in_place(copy, tmp_path / "a.db")):
        with pytest.raises(DatabaseError) as caught:
            act()
        assert "in_use" == caught.value.category
    database.close()
    put_in_place(copy, tmp_path / "a.db")

    assert [1, 2] == numbers(tmp_path / "a.db")


def test_a_stale_lock_file_is_not_in_the_way(copy, tmp_path):
    """The lock file of a process that was killed leaves the path free; checking makes no file."""
    lock = tmp_path / ".b.db.open.lock"
    check_free(tmp_path / "b.db")
    assert not lock.exists()
    lock.write_text("1 2 3")
    check_free(tmp_path / "b.db")
    put_in_place(copy, tmp_path / "b.db")

    assert ([1, 2], False) == (numbers(tmp_path / "b.db"), lock.exists())


def test_a_folder_that_is_missing_is_said(copy, tmp_path):
    """A path whose folder does not exist cannot be written."""
    with pytest.raises(DatabaseError) as caught:
        put_in_place(copy, tmp_path / "missing" / "b.db")
    assert "io_error" == caught.value.category
