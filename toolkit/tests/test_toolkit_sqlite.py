"""A SQLite file: durable, migrated once, never replaced, and with a category for every error."""

import contextlib
import errno
import stat
import threading
from functools import partial

import apsw
import pytest

from beaver_toolkit.locks import LocksMissing
from beaver_toolkit.queries import Queries
from beaver_toolkit.sqlite import connections
from beaver_toolkit.sqlite.connection_set import MOST_READERS, ConnectionSet
from beaver_toolkit.sqlite.connections import Immediate, connect, integrity_problems, make_durable
from beaver_toolkit.sqlite.database import Database
from beaver_toolkit.sqlite.errors import DatabaseError, category_of, translated
from beaver_toolkit.sqlite.files import make
from beaver_toolkit.sqlite.lease import Lease
from beaver_toolkit.sqlite.lease_lock import is_leased
from beaver_toolkit.sqlite.migrations import migrate, version_of

FIRST = "CREATE TABLE notes (text TEXT NOT NULL) STRICT"
SECOND = "ALTER TABLE notes ADD COLUMN author TEXT"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "notes.db"


@pytest.fixture
def database(path):
    with contextlib.closing(Database.open(path, [FIRST])) as opened:
        yield opened


def category(call):
    """Return the category of the error that a call raises."""
    with pytest.raises(DatabaseError) as caught:
        call()
    return caught.value.category


def add(database, text="kept"):
    with database.transaction() as connection:
        connection.execute("INSERT INTO notes (text) VALUES (?)", (text,))


def texts(path, scripts=(FIRST,)):
    with contextlib.closing(Database.read(path, scripts)) as opened:
        return [text for (text,) in opened.connection.execute("SELECT text FROM notes")]


def test_a_database_is_durable_and_private(database, path):
    """A database is private, has a write-ahead log, syncs every commit, and other connections read its rows."""
    add(database)
    pragmas = [database.connection.pragma(name) for name in ("journal_mode", "synchronous", "secure_delete")]

    assert (["wal", 2, 0], 0o600) == (pragmas, stat.S_IMODE(path.stat().st_mode))
    assert (["kept"], []) == (texts(path), integrity_problems(database.connection))


def test_a_new_database_is_one_that_was_migrated(path):
    """A database that is made at once equals one that was brought from an empty file to the same version."""
    earlier = path.with_name("earlier.db")
    earlier.touch()

    assert _description(earlier) == _description(path)


def _description(path):
    with contextlib.closing(Database.open(path, [FIRST, SECOND])) as opened:
        pragmas = (
            "user_version",
            "application_id",
            "journal_mode",
            "page_size",
            "encoding",
            "auto_vacuum",
            "page_count",
        )
        schema = opened.connection.execute("SELECT * FROM sqlite_schema").fetchall()
        return schema, [opened.connection.pragma(name) for name in pragmas]


def test_a_log_that_its_database_left(database, path):
    """A new database takes up no rows of a log that is left of another one."""
    add(database)
    log = path.with_name("notes.db-wal").read_bytes()
    database.close()
    path.unlink()
    path.with_name("notes.db-wal").write_bytes(log)
    Database.open(path, [FIRST]).close()

    assert [] == texts(path)


def test_a_block_that_fails_writes_nothing(database, path):
    """A transaction that fails is rolled back."""

    def fail():
        with database.transaction() as connection:
            connection.execute("INSERT INTO notes (text) VALUES ('lost')")
            connection.execute("SELECT nonsense")

    assert ("broken", []) == (category(fail), texts(path))


def test_a_transaction_that_sqlite_rolled_back():
    """A block that fails leaves no transaction open, whether SQLite has rolled it back already or not."""
    opened = apsw.Connection(":memory:")
    for statement in ("SELECT nonsense", "ROLLBACK"):
        with pytest.raises(apsw.SQLError), Immediate(opened):
            opened.execute(statement)

    assert not opened.in_transaction


def test_reading_needs_a_database(path):
    """Reading creates no file, and refuses a database that a newer version wrote."""
    assert ("missing", False) == (category(lambda: Database.read(path, [FIRST])), path.exists())
    Database.open(path, [FIRST, SECOND]).close()
    assert ["newer", "newer"] == [
        category(lambda: Database.read(path, [FIRST])),
        category(lambda: Database.open(path, [FIRST])),
    ]


def test_a_reader_does_not_write(database, path):
    """A connection for reading refuses to write."""
    with contextlib.closing(Database.read(path, [FIRST])) as reader:
        assert "read_only" == category(lambda: add(reader))


def test_changing_the_journal_waits(monkeypatch):
    """A change of the journal mode that finds the file busy is tried again, and gives up in time."""
    found = [apsw.BusyError("busy"), None, None]

    class Busy:
        def pragma(self, *_):
            answer = found.pop(0)
            if answer:
                raise answer

    make_durable(Busy())
    monkeypatch.setattr(connections, "BUSY_SECONDS", 0.0)
    found.extend([apsw.BusyError("busy")] * 100)

    with pytest.raises(apsw.BusyError):
        make_durable(Busy())


# --- Migrations -----------------------------------------------------------------------------------------------------


def test_each_migration_is_applied_once():
    """A database gets the scripts that it lacks, in order, and keeps its version."""
    connection = apsw.Connection(":memory:")
    versions = []
    for scripts in ([FIRST], [FIRST, SECOND], [FIRST, SECOND]):
        migrate(connection, scripts)
        versions.append(version_of(connection))
    connection.execute("INSERT INTO notes VALUES ('a', 'b')")

    kept = [version for (version,) in connection.execute("SELECT version FROM schema_version")]
    assert ([1, 2, 2], [1, 2]) == (versions, kept)


def test_many_threads_migrate_at_once(path):
    """When many threads open a database at once, each script is applied once."""
    errors = []

    def work():
        try:
            Database.open(path, [FIRST, SECOND]).close()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ([], []) == (errors, texts(path, [FIRST, SECOND]))


# --- Files ----------------------------------------------------------------------------------------------------------


def test_a_new_file_is_whole_or_absent(path):
    """A file whose filling fails does not appear, and an existing one is kept."""

    def fail(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        make(path, fail)
    assert [] == [*path.parent.iterdir()]
    for text in ("first", "second"):
        make(path, partial(_filled, text=text))

    assert (["notes.db"], ["first"]) == ([each.name for each in path.parent.iterdir()], texts(path))


def _filled(connection, text):
    connection.execute(FIRST)
    connection.execute("INSERT INTO notes VALUES (?)", (text,))


# --- Readers --------------------------------------------------------------------------------------------------------


@pytest.fixture
def reading(path):
    """Make a set of connections for reading, and a list of those that it opens."""
    opened = []

    def open_one():
        opened.append(connect(path))
        return opened[-1]

    Database.open(path, [FIRST]).close()
    first, lease = Lease.open(path, lambda: connect(path), seconds=1)
    first.close()
    return ConnectionSet(lease, open_one), opened


def is_closed(connection):
    """Return whether a connection was closed."""
    try:
        connection.execute("SELECT 1")
    except apsw.ConnectionClosedError:
        return True
    return False


def test_readers_are_lent_and_kept(reading):
    """A returned reader is lent again, a lent one is not."""
    pool, opened = reading
    with pool.reading() as first:
        pass
    with pool.reading() as again, pool.reading() as second:
        assert [first, second] == [again, second] == opened
    assert ([False, False], True) == ([is_closed(each) for each in opened], MOST_READERS > 2)


def test_connections_that_are_retired(reading, path):
    """Idle readers are closed at once, a lent one on its return, which ends the lease; no more are lent."""
    pool, opened = reading
    with pool.reading() as lent:
        with pool.reading():
            pass
        pool.retire("")
        with pool.reading() as late:
            found = late, lent.execute("SELECT count(*) FROM notes").get, [is_closed(each) for each in opened]
        held = is_leased(path)
    assert (None, 0, [False, True], True) == (*found, held)
    assert ([True, True], False) == ([is_closed(each) for each in opened], is_leased(path))


def test_a_reader_that_failed_is_not_used_again(reading):
    """A connection whose block raised is closed, and another one is lent."""
    pool, opened = reading
    with pytest.raises(ZeroDivisionError), pool.reading():
        raise ZeroDivisionError
    with pool.reading() as second:
        assert [second] == opened[1:]
    assert [True, False] == [is_closed(each) for each in opened]


# --- Errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (apsw.CorruptError("x"), "corrupt"),
        (apsw.MisuseError("x"), "failed"),
        (apsw.FullError("x"), "disk_full"),
        (LocksMissing(), "no_locks"),
        (PermissionError("x"), "cannot_open"),
        (OSError("x"), "io_error"),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "x"), "corrupt"),
    ],
)
def test_every_error_has_a_category(error, expected):
    """Every error of SQLite or the system has a category; the others are `failed`."""

    def fail():
        with translated():
            raise error

    assert expected == category(fail)


# --- Queries --------------------------------------------------------------------------------------------------------


def test_named_queries(tmp_path):
    """Each query is found by its name, and an unknown name is an error."""
    path = tmp_path / "queries.sql"
    path.write_text(
        "-- What the file is for.\n\n-- name: add\nINSERT INTO notes\nVALUES (?);\n\n-- name: all_1\nSELECT 1\n"
    )
    queries = Queries(path)

    assert (("add", "all_1"), "INSERT INTO notes\nVALUES (?);", "SELECT 1") == (
        queries.names(),
        queries["add"],
        queries["all_1"],
    )
    with pytest.raises(KeyError):
        queries["gone"]


@pytest.mark.parametrize(
    "text", ["-- name: a\nSELECT 1\n-- name: a\nSELECT 2\n", "-- name: a\n\n-- name: b\nSELECT 1\n"]
)
def test_a_file_of_queries_that_is_wrong(tmp_path, text):
    """A name that is given twice, or that has no query, is an error that names the file."""
    path = tmp_path / "queries.sql"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"queries\.sql gives a name twice, or a name without a query"):
        Queries(path)["a"]


@pytest.mark.parametrize("has_cache", [True, False])
def test_full_syncs_on_macos(path, monkeypatch, has_cache):
    """On a drive with a cache that `fsync` leaves alone, each connection asks for full syncs."""
    monkeypatch.setattr(connections, "HAS_DRIVE_CACHE", has_cache)
    Database.open(path, [FIRST]).close()
    with contextlib.closing(connect(path)) as connection:
        pragmas = [connection.pragma(name) for name in ("fullfsync", "checkpoint_fullfsync")]

    assert [int(has_cache)] * 2 == pragmas


@pytest.mark.parametrize(
    ("error", "expected"),
    [(apsw.CantOpenError, "read_only"), (apsw.ReadOnlyError, "read_only"), (apsw.FullError, "disk_full")],
)
def test_a_database_that_can_only_be_read(database, path, monkeypatch, error, expected):
    """A database that cannot be opened for writing is read all the same, and refuses to write."""
    add(database)
    database.close()

    def fail(*_, **__):
        raise error("no")

    with monkeypatch.context() as patch:
        patch.setattr("beaver_toolkit.sqlite.database.connect", fail)
        with contextlib.closing(Database.open_or_view(path, [FIRST])) as viewed:
            found = viewed.connection.execute("SELECT text FROM notes").get
            refused = category(lambda: add(viewed))
        read, older = texts(path), category(lambda: Database.open_or_view(path, [FIRST, SECOND]))

    assert ("kept", expected, expected, ["kept"]) == (found, viewed.unwritable, refused, read)
    assert older in {"cannot_open", "read_only", "disk_full"}


def test_a_full_disk_by_any_error():
    """An index of the log that cannot grow, a quota and a limit of the file size count as a full disk."""
    cannot_grow = apsw.IOError("disk I/O error")
    cannot_grow.extendedresult = apsw.SQLITE_IOERR_SHMSIZE

    assert ["disk_full", "disk_full", "io_error"] == [
        category_of(each) for each in (cannot_grow, OSError(errno.EDQUOT, "quota"), apsw.IOError("x"))
    ]
