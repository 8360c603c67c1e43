"""The trail reports each failure once, keeps its events meanwhile, and writes them when the database works again."""

import contextlib
import errno
import os
import threading
from datetime import UTC, datetime
from functools import partial

import apsw
import pytest

from beaver_hooks.audit import trail as trails
from beaver_hooks.audit import writer
from beaver_hooks.audit.batch import Batch
from beaver_hooks.audit.database import Database
from beaver_hooks.audit.events import AuditEvent
from beaver_hooks.audit.key import KEY_FILE
from beaver_hooks.audit.reader import TrailReader
from beaver_hooks.audit.trail import Trail
from beaver_hooks.state_folder import make_state_folder
from beaver_hostspecs import AuditUnavailable
from beaver_toolkit.sqlite import connections, database, files

WHEN = datetime(2026, 1, 2, tzinfo=UTC)
EVENT = AuditEvent(name="turn_opened", at=WHEN)


class Host:
    """Opens a trail, and waits for changes of its writing."""

    def __init__(self, folder):
        self.folder = folder
        self.trail = Trail.open(folder)

    def heard(self):
        """Wait for the next change of writing; return the category of the failure, or `None` for its end."""
        return self.trail.next_change(timeout=20).failure


class Limits(dict):
    """Pragmas that the open connections and every new one get."""

    def __init__(self, connect):
        self._connect = connect
        self._opened = []

    def connect(self, path, **options):
        opened = self._connect(path, **options)
        for name, value in self.items():
            opened.pragma(name, value)
        self._opened.append(opened)
        return opened

    def __setitem__(self, name, value):
        super().__setitem__(name, value)
        for opened in self._opened:
            with contextlib.suppress(apsw.ConnectionClosedError):
                opened.pragma(name, value)


@pytest.fixture
def limit(monkeypatch):
    """Pragmas that connections get."""
    limits = Limits(database.connect)
    monkeypatch.setattr(database, "connect", limits.connect)
    return limits


@pytest.fixture
def host(tmp_path, limit):
    host = Host(tmp_path / "state")
    yield host
    host.trail.close()


def unavailable(call):
    """Return the sentence that `call` raises."""
    with pytest.raises(AuditUnavailable) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize(
    ("pragma", "category", "sentence"),
    [
        ("max_page_count", "disk_full", "cannot grow: the disk is full; make room"),
        ("query_only", "read_only", "is read-only; check who owns it and its folder"),
    ],
)
def test_a_database_that_cannot_be_written(host, limit, pragma, category, sentence):
    """The host hears of the failure and of its end once each, a flush is refused, and the trail loses nothing."""
    limit[pragma] = 1
    for _ in range(300):
        host.trail.append(EVENT)
    host.trail.put_receipt("t", WHEN, {"kept": 1})
    host.trail.put_health("p", {"state": "ok"})
    refused = [unavailable(host.trail.flush) for _ in range(3)]
    limit.clear()
    host.trail.append(EVENT)
    host.trail.flush()

    assert refused == [f"The audit trail {host.folder / 'host.db'} {sentence}."] * 3
    assert [host.heard(), host.heard(), host.trail.next_change()] == [category, None, None]
    assert (host.trail.verify().checked, host.trail.receipts(), host.trail.health(), host.trail.close()) == (
        301,
        {"t": {"kept": 1}},
        {"p": {"state": "ok"}},
        0,
    )


def test_it_is_tried_again_without_being_asked(host, limit):
    """The trail recovers without a flush."""
    limit["query_only"] = 1
    host.trail.append(EVENT)
    failing = host.heard()
    limit.clear()

    assert [failing, host.heard(), len(host.trail.tail())] == ["read_only", None, 1]


def test_what_is_refused_is_counted(host, limit, monkeypatch):
    """While it fails, only so much is kept; the count of the rest becomes an event."""
    monkeypatch.setattr(writer, "MOST_WAITING", 10)
    limit["query_only"] = 1
    host.trail.append(EVENT)
    unavailable(host.trail.flush)
    for _ in range(25):
        host.trail.append(EVENT)
    limit.clear()
    host.trail.flush()

    gap = host.trail.tail(1)[0]
    assert (gap.name, gap.facts, len(host.trail.tail()), host.trail.close()) == (
        "audit_gap",
        {"lost": 16},
        11,
        16,
    )


def test_what_cannot_be_written_before_closing_is_lost_and_counted(host, limit):
    """Closing tries to write once more, and then returns the number of lost records."""
    limit["query_only"] = 1
    for _ in range(7):
        host.trail.append(EVENT)
    host.trail.put_receipt("t", WHEN, {})

    assert host.trail.close() == 8


def test_closing_does_not_wait_for_ever(host):
    """A body that never comes costs the time limit."""
    gate = threading.Event()
    host.trail.put_receipt("t", WHEN, lambda: {"late": gate.wait(20)})

    assert host.trail.close(timeout=0.1) == 1
    gate.set()


def test_another_process_that_holds_the_lock(host, monkeypatch):
    """A lock that is held too long is a failure like any other, and passes."""
    monkeypatch.setattr(connections, "BUSY_SECONDS", 0.05)
    other = apsw.Connection(str(host.folder / "host.db"))
    other.execute("BEGIN IMMEDIATE")
    host.trail.append(EVENT)
    sentence = unavailable(host.trail.flush)
    other.execute("ROLLBACK")
    other.close()
    host.trail.flush()

    assert sentence.endswith("is locked by another process; end the one that holds it.")
    assert [host.heard(), host.heard(), host.trail.verify().checked] == ["locked", None, 1]


@pytest.mark.parametrize("also", [[], ["host.db-wal", "host.db-shm"]])
def test_a_deleted_database_is_noticed(host, also):
    """A flush after the database was deleted is refused, and the new database starts with `audit_restarted`."""
    host.trail.append(EVENT)
    host.trail.flush()
    for name in ["host.db", *also]:
        (host.folder / name).unlink()
    host.trail.append(EVENT)
    sentence = unavailable(host.trail.flush)
    host.trail.flush()

    assert sentence.endswith("does not exist; a host creates it when it opens.")
    assert [host.heard(), host.heard()] == ["missing", None]
    assert [each.name for each in host.trail.tail()] == ["audit_restarted", "turn_opened"]
    assert host.trail.verify().ok


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (os.urandom(8192), "is damaged or not a database"),
        (b"SQLite format 3\0" + b"\xff" * 4080, "is damaged or not a database"),
    ],
)
def test_a_damaged_database_is_never_replaced(tmp_path, content, sentence):
    """A damaged database is refused with a remedy, and stays the same bytes."""
    folder = tmp_path / "state"
    Trail.open(folder).close()
    (folder / "host.db").write_bytes(content)

    for call in (
        lambda: Trail.open(folder),
        TrailReader(folder).tail,
        TrailReader(folder).health,
    ):
        assert sentence in unavailable(call)
    assert (folder / "host.db").read_bytes() == content


def change(folder, *statements):
    opened = apsw.Connection(str(folder / "host.db"))
    for statement in statements:
        opened.execute(statement)
    opened.close()


@pytest.mark.parametrize(
    ("statements", "sentence"),
    [
        (
            ["INSERT INTO schema_version VALUES (99, 0)"],
            "was written by a newer version of Beaver Hooks; update this one",
        ),
        (
            ["DROP TABLE audit", "CREATE TABLE other (x)"],
            "is a database, but not an audit trail; move it away",
        ),
    ],
)
def test_a_database_that_is_not_ours_to_use(host, statements, sentence):
    """A database with a newer schema, or another program's, is refused."""
    host.trail.close()
    change(host.folder, *statements)
    (host.folder / KEY_FILE).unlink()

    expected = f"The audit trail {host.folder / 'host.db'} {sentence}."
    assert unavailable(lambda: Trail.open(host.folder)) == expected
    assert unavailable(host.trail.tail) == expected


def test_a_missing_key_is_not_replaced(host):
    """Records without their key are refused: a new key would make all of them look forged."""
    host.trail.append(EVENT)
    host.trail.close()
    (host.folder / KEY_FILE).unlink()

    expected = (
        f"The audit trail {host.folder / 'host.db'} has records, but its key {host.folder / KEY_FILE} is missing."
        " Restore the key from a backup, or move host.db (with its -wal and -shm files) away to start anew."
    )
    assert unavailable(lambda: Trail.open(host.folder)) == expected
    assert unavailable(host.trail.verify) == expected
    assert not (host.folder / KEY_FILE).exists()


def test_a_key_that_appears_meanwhile_is_used(host, monkeypatch):
    """Another process may make the key, and its first record, while we look."""
    host.trail.append(EVENT)
    host.trail.close()
    answers = iter([None])
    read_key = trails.read_key
    monkeypatch.setattr(trails, "read_key", lambda folder: next(answers, read_key(folder)))

    again = Trail.open(host.folder)

    assert (again.identify("x"), again.close()) == (host.trail.identify("x"), 0)


def test_a_missing_trail_cannot_be_read(tmp_path):
    """A reader makes nothing."""
    expected = f"The audit trail {tmp_path / 'host.db'} does not exist; a host creates it when it opens."

    assert unavailable(TrailReader(tmp_path).health) == expected
    assert [*tmp_path.iterdir()] == []


def test_a_file_that_sqlite_opens_for_reading_only(tmp_path, monkeypatch):
    """A file that may only be read is refused when it is opened, not with the first event."""
    Trail.open(tmp_path).close()
    opening = apsw.Connection

    def read_only(path, **_):
        return opening(path, flags=apsw.SQLITE_OPEN_READONLY)

    monkeypatch.setattr(apsw, "Connection", read_only)

    assert "is read-only" in unavailable(lambda: Trail.open(tmp_path))


def test_a_folder_that_takes_no_database(tmp_path, monkeypatch):
    """An error of the file system is a sentence, too."""

    def fail(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files, "create_once", fail)

    assert "cannot be opened; check who owns it and its folder" in unavailable(lambda: Trail.open(tmp_path))


def test_a_writer_that_dies_is_heard(host, monkeypatch):
    """When the writing thread dies, the host hears it, and every flush is refused instead of waiting."""

    def fail(*_):
        raise RuntimeError("bug")

    monkeypatch.setattr(Batch, "evaluate", fail)
    host.trail.append(EVENT)
    sentence = unavailable(host.trail.flush)

    assert host.heard() == "writer_died"
    assert sentence.endswith("failed: writer_died.")
    assert unavailable(host.trail.flush).endswith("is closed.")
    host.trail.append(EVENT)
    assert host.trail.close() == 2


def test_a_disk_without_links_and_locks_is_refused(tmp_path, monkeypatch):
    """On a disk with neither links nor locks, opening a trail is refused with a sentence."""

    def fail(*_):
        raise OSError(errno.EPERM, "no links")

    def fail_without_locks(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    folder = tmp_path / "state"
    make_state_folder(folder)
    monkeypatch.setattr(os, "link", fail)
    monkeypatch.setattr("fcntl.flock", fail_without_locks)

    sentence = unavailable(partial(Trail.open, folder))
    assert sentence == (
        f"The audit trail {folder / 'host.db'} is on a disk that has neither hard links nor file locks;"
        " use another disk."
    )


def test_a_commit_is_durable(host, monkeypatch):
    """The connection that writes is in WAL mode and syncs every commit: `synchronous` is FULL."""
    found, add_records = [], Database.add_records

    def look(self, rows):
        found.extend(self._connection.pragma(name) for name in ("synchronous", "journal_mode"))
        add_records(self, rows)

    monkeypatch.setattr(Database, "add_records", look)
    host.trail.append(EVENT)
    host.trail.flush()

    assert found == [2, "wal"]


def test_text_that_is_no_text(host):
    """A receipt that another program overwrote with bytes is a damaged trail to its reader, not a decoding error."""
    host.trail.put_receipt("turn-1", EVENT.at, {"state": "committed"})
    host.trail.flush()
    with contextlib.closing(apsw.Connection(str(host.folder / "host.db"))) as raw:
        raw.execute("UPDATE receipts SET body = CAST(x'ff' AS TEXT)")

    assert "is damaged" in unavailable(partial(host.trail.receipt, "turn-1"))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["fifo", "folder"])
def test_a_key_that_is_no_file(tmp_path, make):
    """A pipe or a folder in the key's place is refused at once with a sentence, without waiting for it."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    make(folder / KEY_FILE)

    assert "is not a regular file" in unavailable(lambda: Trail.open(folder))


def test_a_database_that_is_a_link(tmp_path):
    """A link in the database's place is refused, and its target stays unchanged."""
    folder, victim = tmp_path / "state", tmp_path / "victim.db"
    folder.mkdir(mode=0o700)
    victim.write_bytes(b"")
    (folder / "host.db").symlink_to(victim)

    assert "is a symbolic link; put the file itself" in unavailable(lambda: Trail.open(folder))
    assert victim.read_bytes() == b""


@pytest.mark.parametrize("gone", [["host.db"], ["host.db", "audit.key"]])
def test_a_trail_that_was_deleted_between_two_hosts(tmp_path, gone):
    """A database that is gone while its key is there is recorded as the first event; without both, a trail begins."""
    for name in ([], gone):
        for each in name:
            (tmp_path / each).unlink()
        trail = Trail.open(tmp_path)
        trail.append(EVENT)
        trail.close()
    reader = TrailReader(tmp_path)

    expected = ["audit_restarted", "turn_opened"] if gone == ["host.db"] else ["turn_opened"]
    assert expected == [each.name for each in reader.tail()]
    assert (True, len(expected) - 1) == (reader.verify().ok, reader.verify().restarts)


def test_the_next_trail_reports_what_the_last_one_lost(tmp_path, limit):
    """What could not be written before closing, for example on a full disk, is an event of the next trail, once."""
    first = Trail.open(tmp_path)
    limit["max_page_count"] = 1
    for _ in range(300):
        first.append(EVENT)
    lost = first.close()
    limit.clear()
    notes = [each.name for each in tmp_path.glob("audit-lost-*")]
    for _ in range(2):
        Trail.open(tmp_path).close()
    reader = TrailReader(tmp_path)

    assert (300, 1, []) == (lost, len(notes), [*tmp_path.glob("audit-lost-*")])
    assert [("audit_gap", {"lost": 300, "reason": "closed"})] == [
        (each.name, dict(each.facts)) for each in reader.tail()
    ]
    assert 300 == reader.verify().lost


def test_missing_commits_are_recorded(tmp_path):
    """A trail that lost acknowledged commits, as an older copy of its database did, records how many."""
    trail = Trail.open(tmp_path)
    trail.append(EVENT)
    trail.close()
    older = (tmp_path / "host.db").read_bytes()
    for _ in range(2):
        trail = Trail.open(tmp_path)
        trail.append(EVENT)
        trail.close()
    (tmp_path / "host.db").write_bytes(older)
    Trail.open(tmp_path).close()

    facts = {"database": "host.db", "commits": 2}
    assert ("commits_missing", facts) == [(each.name, dict(each.facts)) for each in TrailReader(tmp_path).tail()][-1]


def test_a_loss_that_was_reported_is_reported_once(tmp_path, limit, monkeypatch):
    """Events that were refused and then reported by an event leave no note."""
    monkeypatch.setattr(writer, "MOST_WAITING", 10)
    trail = Trail.open(tmp_path)
    limit["query_only"] = 1
    trail.append(EVENT)
    unavailable(trail.flush)
    for _ in range(25):
        trail.append(EVENT)
    limit.clear()
    trail.flush()

    assert (16, []) == (trail.close(), [*tmp_path.glob("audit-lost-*")])
