"""Faults of a store's file: each is an error of our own with a remedy, and no other file is touched."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import apsw
import pytest
from privileges import without_override

from beaver_hostspecs import BeaverError, PluginError
from beaver_memory.errors import REMEDIES, EngineError, PersonalStoreError, StoreError
from beaver_memory.patterns import Pattern
from beaver_memory.records import Owner
from beaver_memory.store.damaged_entries import RESTORE
from beaver_memory.store.joint import JointStore
from beaver_memory.store.personal import PersonalStore
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.store.sqlite.preparation import PACKAGE, make_unless_there_is_a_log
from beaver_memory.testing.store_cases.kit import NOW, looking, new, titles
from beaver_toolkit.sqlite.connection_set import MOST_READERS
from beaver_toolkit.sqlite.migrations import read_migrations


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.db"


@pytest.fixture
def store(path):
    with contextlib.closing(SqliteStore.open(path)) as opened:
        opened.add([new("kept")], now=NOW)
        yield opened


def kept(path):
    """Open a store and return what it holds."""
    with contextlib.closing(SqliteStore.open(path)) as opened:
        assert [] == opened.check(None)
        return titles(opened.recent(looking(), limit=9))


def refusal(path, call):
    """Return the category of the error that a call raises, whose text is the one for it."""
    with pytest.raises(StoreError) as caught:
        call()
    assert f"The memory store {path} {REMEDIES[caught.value.category]}." == str(caught.value)
    return caught.value.category


def questions(store):
    """Return one call of each kind: a question and a write."""
    return (
        lambda: store.recent(looking(), limit=1),
        lambda: store.add([new("more")], now=NOW),
        lambda: store.change(1, looking(), event="PIN", now=NOW, pinned=True),
        lambda: store.check(None),
        lambda: store.stats(None),
    )


def test_the_tree_of_errors():
    """A store's error is one of the local memory's, which are all Beaver's."""
    assert (StoreError, EngineError, PluginError, BeaverError, Exception) == StoreError.__mro__[:5]


def test_files_are_private(store, path):
    """The database, its log, its index and the lock file are readable by their owner only."""
    found = {each.name: oct(each.stat().st_mode & 0o777) for each in path.parent.iterdir()}
    names = ("memory.db", "memory.db-wal", "memory.db-shm", ".memory.db.open.lock", ".memory.db.commits")
    assert dict.fromkeys(names, "0o600") == found


def test_a_folder_that_is_missing(tmp_path):
    """The folder is the caller's to make."""
    path = tmp_path / "none" / "memory.db"
    assert "no_folder" == refusal(path, lambda: SqliteStore.open(path))
    assert [] == list(tmp_path.iterdir())


def test_a_folder_in_its_place(path):
    """A folder of that name is no store, and stays."""
    path.mkdir()
    assert "cannot_open" == refusal(path, lambda: SqliteStore.open(path))
    assert path.is_dir()


@pytest.mark.parametrize("number", range(5))
def test_a_file_that_vanishes(store, path, number):
    """A store whose file is missing raises `missing`, creates no new file, and works again when the file is back."""
    away = path.with_name("away")
    path.rename(away)
    assert "missing" == refusal(path, questions(store)[number])
    assert not path.exists()
    away.rename(path)
    assert ["kept"] == titles(store.recent(looking(), limit=9))


def test_a_file_that_vanishes_during_a_write(store, path):
    """A write is not acknowledged when the file lost its name meanwhile."""
    connector = store._connector

    def write():
        with connector.writing():
            path.rename(path.with_name("away"))

    assert "missing" == refusal(path, write)


@pytest.mark.parametrize("number", range(5))
def test_a_file_that_is_replaced(store, path, number):
    """A store whose file is replaced by another store raises `replaced`, and leaves the other store unchanged."""
    other = path.with_name("other.db")
    with contextlib.closing(SqliteStore.open(other)) as opened:
        opened.add([new("of the other one")], now=NOW)
    other.replace(path)
    assert "replaced" == refusal(path, questions(store)[number])
    store.close()
    assert ["of the other one"] == kept(path)


def test_a_link_in_its_place(store, path):
    """A symbolic link is refused with advice of its own, and stays."""
    link = path.with_name("link.db")
    link.symlink_to(path)

    assert "link" == refusal(link, lambda: SqliteStore.open(link))
    assert link.is_symlink()


def test_an_older_copy_of_itself(store, path):
    """A copy of the same store that is put back is refused once, and then read, owners and all."""
    copy = path.with_name("copy.db")
    store._connector.empty_log()
    copy.write_bytes(path.read_bytes())
    store.add([new("later", owner=Owner(user="later"))], now=NOW)
    copy.replace(path)
    assert "exchanged" == refusal(path, lambda: store.recent(looking(), limit=9))
    assert ["kept"] == titles(store.recent(looking(owners=(Owner(), Owner(user="later"))), limit=9))
    store.add([new("again", owner=Owner(user="again"))], now=NOW)
    assert [Owner(), Owner(user="again")] == store.owners(None)


def garbage(path, content):
    path.write_bytes(content)
    category = refusal(path, lambda: SqliteStore.open(path))
    assert content == path.read_bytes()
    return category


def test_a_file_that_is_something_else(path, tmp_path):
    """Garbage, an empty file and another program's database are refused and left as they are."""
    assert "corrupt" == garbage(path, os.urandom(10_000))
    assert "corrupt" == garbage(path, b"# Memory\n" * 1000)
    assert "emptied" == garbage(path, b"")
    foreign = tmp_path / "foreign.db"
    with contextlib.closing(apsw.Connection(str(foreign))) as other:
        other.execute("CREATE TABLE notes (a); INSERT INTO notes VALUES (1)")
    assert "not_ours" == garbage(path, foreign.read_bytes())
    assert ["foreign.db", "memory.db"] == sorted(each.name for each in tmp_path.iterdir())


def what_is_wrong(path):
    """Return what a check finds, or why there can be none."""
    try:
        with contextlib.closing(SqliteStore.open(path)) as opened:
            return opened.check(None)
    except StoreError as error:
        return [error.category] if error.category in {"corrupt", "io_error"} else []


def test_a_file_that_was_cut(store, path):
    """A file that lost its end is never read wrongly: opened, asked or checked, it says that it is damaged."""
    store.add([new(f"number {number}", narrative="text " * 100) for number in range(200)], now=NOW)
    store.close()
    os.truncate(path, path.stat().st_size // 2)
    assert what_is_wrong(path)
    assert path.exists()


def test_a_file_that_is_cut_while_it_is_open(store, path):
    """An open store whose file becomes nothing says that it is damaged, and makes nothing of it."""
    store._connector.empty_log()
    os.truncate(path, 0)
    with pytest.raises(StoreError) as caught:
        store.recent(looking(), limit=1)
    assert caught.value.category in {"corrupt", "emptied", "broken", "io_error"}
    with pytest.raises(StoreError):
        store.add([new("more")], now=NOW)
    store.close()
    assert "emptied" == refusal(path, lambda: SqliteStore.open(path))


def test_a_page_that_is_damaged(store, path):
    """A page of garbage in the middle is found by the check."""
    store.add([new(f"number {number}", narrative="text " * 100) for number in range(200)], now=NOW)
    store.close()
    pages = path.stat().st_size // 4096
    with path.open("r+b") as file:
        for page in range(pages // 2, pages // 2 + 3):
            file.seek(page * 4096)
            file.write(os.urandom(4096))
    assert what_is_wrong(path)


def test_a_row_that_is_no_memory(store):
    """A row that another program has written is not shown, and the check names it."""
    store.add([new("other")], now=NOW)
    for change in (
        "UPDATE observations SET facts = '[1' WHERE id = 1",
        "UPDATE observations SET facts = '[]', store = 'attic' WHERE id = 1",
    ):
        with store._connector.writing() as connection:
            connection.execute(change)
        assert ["other"] == titles(store.recent(looking(), limit=1))
        assert store.check(None)[0].startswith("Memory 1 fails its checksum and is not shown")


def test_a_table_that_is_gone(store, path):
    """A query of a missing table raises `broken`."""
    with store._connector.writing() as connection:
        connection.execute("DROP TABLE session_summaries")
    assert "broken" == refusal(path, lambda: store.summaries(Owner(), limit=1))
    assert ["kept"] == titles(store.recent(looking(), limit=9))


def test_a_check_that_finds_something(store):
    """What does not fit together is found: counts, versions, labels, embeddings, words."""
    store.put_vectors(Owner(), "m", [(1, b"v")])
    store.add([new("more", tags=("t",), related_people=("Ann",))], now=NOW)
    assert store.matching([Pattern(text="more")], looking(), limit=1)
    with store._connector.writing() as connection:
        connection.execute("UPDATE owners SET live = 7")
        connection.execute("UPDATE observations SET version = 99, title = 'another'")
        connection.execute("UPDATE observation_labels SET created_at = 1 WHERE label = 'tag:t'")
        connection.execute("UPDATE observation_embeddings SET owner = 9")
        connection.execute("DELETE FROM unembedded")
        connection.execute("UPDATE people SET mention_count = 5")
        connection.execute("UPDATE indexed_words SET last = 99")
    found = store.check(None)
    assert [1, 2] == [int(each.split()[1]) for each in found[:2] if "fails its checksum" in each]
    assert [
        "5 of 7 memories of the user without a name vanished: restore the database from a backup.",
        f"2 memories have versions that do not exist yet: {RESTORE}.",
        f"1 versions are used twice: {RESTORE}.",
        f"1 embeddings do not belong to their memories: {RESTORE}.",
        f"1 labels do not belong to their memories: {RESTORE}.",
        f"1 memories are neither embedded nor waiting to be embedded, or are both: {RESTORE}.",
        f"1 word indexes are ahead of the memories: {RESTORE}.",
        f"1 people have wrong counts: {RESTORE}.",
        f"The word index does not match the memories: {RESTORE}.",
    ] == found[2:]
    with store._connector.alone() as connection:
        connection.pragma("foreign_keys", 0)
        connection.execute("DELETE FROM owners")
    assert f"3 rows refer to rows that do not exist: {RESTORE}." == store.check(None)[0]


def test_a_newer_store(store, path):
    """A store of a later version is refused and left as it is."""
    with store._connector.writing() as connection:
        connection.execute("INSERT INTO schema_version VALUES (99, 0)")
    store.close()
    before = path.read_bytes()
    assert "newer" == refusal(path, lambda: SqliteStore.open(path))
    assert before == path.read_bytes()


@pytest.fixture
def unprivileged():
    """Give a folder in which nothing is allowed by being root."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder, without_override


def test_a_file_that_may_not_be_read(unprivileged):
    """A store that may not be read says so."""
    folder, nobody = unprivileged
    path = folder / "memory.db"
    SqliteStore.open(path).close()
    path.chmod(0o000)
    with nobody():
        assert "cannot_open" == refusal(path, lambda: SqliteStore.open(path))


@pytest.mark.parametrize("file_mode", [0o444, 0o600])
@pytest.mark.parametrize("folder_mode", [0o555, 0o755])
def test_a_store_that_may_only_be_read(unprivileged, file_mode, folder_mode):
    """A store whose file or folder may not be written is read, checked, and refuses to write."""
    folder, nobody = unprivileged
    path = folder / "memory.db"
    with contextlib.closing(SqliteStore.open(path)) as store:
        store.add([new("kept whale")], now=NOW)
    path.chmod(file_mode)
    folder.chmod(folder_mode)
    with nobody(), contextlib.closing(SqliteStore.open(path)) as store:
        found = titles(store.recent(looking(), limit=9)), store.matching([Pattern(text="whale")], looking(), limit=9)
        assert (["kept whale"], []) == (found[0], store.check(None))
        if (file_mode, folder_mode) != (0o600, 0o755):
            assert ["read_only"] * 2 == [refusal(path, lambda: store.add([new("x")], now=NOW)) for _ in range(2)]
    folder.chmod(0o755)
    path.chmod(0o600)
    assert ["kept whale"] == kept(path)


def test_a_log_that_may_only_be_read(unprivileged):
    """The log that a killed process left is read where nothing may be written."""
    folder, nobody = unprivileged
    path = folder / "memory.db"
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    folder.chmod(0o555)
    with nobody(), contextlib.closing(SqliteStore.open(path)) as store:
        assert ["in the log"] == titles(store.recent(looking(), limit=9))


def test_a_store_that_becomes_writable(unprivileged):
    """A store that could only be read is written again by the first write after the folder allows it."""
    folder, nobody = unprivileged
    path = folder / "memory.db"
    SqliteStore.open(path).close()
    folder.chmod(0o555)
    with nobody():
        store = SqliteStore.open(path)
        assert [] == store.recent(looking(), limit=9)
    folder.chmod(0o755)
    with contextlib.closing(store):
        store.add([new("written")], now=NOW)
        assert ["written"] == titles(store.recent(looking(), limit=9))


def test_a_store_that_another_process_writes_meanwhile(unprivileged):
    """A store that was opened for reading alone sees what another process has written since."""
    folder, nobody = unprivileged
    path = folder / "memory.db"
    SqliteStore.open(path).close()
    folder.chmod(0o555)
    with nobody():
        store = SqliteStore.open(path)
        assert [] == store.recent(looking(), limit=9)
    folder.chmod(0o755)
    with contextlib.closing(store), contextlib.closing(SqliteStore.open(path)) as other:
        other.add([new("of the other")], now=NOW)
        assert ["of the other"] == titles(store.recent(looking(), limit=9))


def test_a_folder_that_may_not_be_written(unprivileged):
    """Where no file can be made, none is, and the error says where."""
    folder, nobody = unprivileged
    folder.chmod(0o555)
    path = folder / "memory.db"
    with nobody():
        assert "cannot_open" == refusal(path, lambda: SqliteStore.open(path))
    assert [] == list(folder.iterdir())


@pytest.mark.parametrize("made_before", [False, True])
def test_a_home_directory_that_may_only_be_read(unprivileged, tmp_path, made_before):
    """The project's memories go on beside a database of the person that can be neither made nor written."""
    folder, nobody = unprivileged
    path = folder / "memory.db"
    if made_before:
        with contextlib.closing(SqliteStore.open(path)) as store:
            store.add([new("of the person")], now=NOW)
        path.chmod(0o444)
    folder.chmod(0o555)
    personal = PersonalStore(path)
    with nobody(), contextlib.closing(JointStore(SqliteStore.open(tmp_path / "project.db"), personal)) as store:
        store.add([new("of the project", scope="project")], now=NOW)
        with pytest.raises(PersonalStoreError, match="nothing was stored"):
            store.add([new("refused"), new("with it", scope="project")], now=NOW)
        expected = [*(["of the person"] if made_before else []), "of the project"]
        assert expected == titles(store.recent(looking(), limit=9))
    assert personal.trouble is None


def test_a_disk_that_is_full(store, path):
    """A write to a full disk fails as a whole, and the existing memories stay readable."""
    with store._connector.alone() as connection:
        pages = connection.pragma("page_count")
        connection.pragma("max_page_count", pages + 5)
    many = [new(f"number {number}", narrative=os.urandom(500).hex()) for number in range(50)]
    assert "disk_full" == refusal(path, lambda: store.add(many, now=NOW))
    assert ["kept"] == titles(store.recent(looking(), limit=9))
    assert [] == store.check(None)
    with store._connector.alone() as connection:
        connection.pragma("max_page_count", 2**30)
    assert 50 == len(store.add(many, now=NOW))
    assert [] == store.check(None)


def test_a_store_that_is_locked(store, path):
    """A write that waits too long for another writer fails with `locked`, and reads go on."""
    with contextlib.closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        with store._connector.alone() as connection:
            connection.set_busy_timeout(1)
        assert "locked" == refusal(path, lambda: store.add([new("more")], now=NOW))
        assert ["kept"] == titles(store.recent(looking(), limit=9))
        other.execute("ROLLBACK")
    assert 1 == len(store.add([new("more")], now=NOW))


def test_a_store_that_is_closed(store, path):
    """After closing, every call says so; closing again does nothing."""
    store.close()
    store.close()
    for question in questions(store):
        assert "closed" == refusal(path, question)


def test_a_store_in_a_child_after_a_fork(store, path):
    """A child process may not use its parent's store, nor disturb it by closing it."""
    child = os.fork()
    if child == 0:
        failed = 1
        with contextlib.suppress(BaseException):
            categories = [refusal(path, question) for question in questions(store)]
            store.close()
            failed = categories != ["forked"] * 5
        os._exit(int(failed))
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ["kept"] == titles(store.recent(looking(), limit=9))


KILLED = """
import os, signal, sys
from pathlib import Path
from beaver_memory.testing.store_cases.kit import NOW, new
from beaver_memory.store.sqlite import SqliteStore

store = SqliteStore.open(Path(sys.argv[1]))
store.add([new("in the log")], now=NOW)
os.kill(os.getpid(), signal.SIGKILL)
"""


NO_ROOM = """
import resource, sys
from pathlib import Path
from beaver_memory.testing.store_cases.kit import NOW, new
from beaver_memory.store.sqlite import SqliteStore

path = Path(sys.argv[1])
store = SqliteStore.open(path)
limits = path.stat().st_size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
store.add([new("in the log", narrative="long " * 10_000)], now=NOW)
if sys.argv[2:]:
    store.close()
"""


@pytest.mark.parametrize("end", [[], ["close"]])
def test_a_process_ends_where_there_is_no_room(path, end):
    """A log that the database has no room for stays, with nothing printed, whether the store is closed or not."""
    SqliteStore.open(path).close()
    result = subprocess.run(
        [sys.executable, "-c", NO_ROOM, str(path), *end], check=False, capture_output=True, text=True
    )

    assert (0, "", "") == (result.returncode, result.stdout, result.stderr)
    assert path.with_name("memory.db-wal").stat().st_size > 0
    assert ["in the log"] == kept(path)


FULL = """
import os, resource, sys
from pathlib import Path
from beaver_memory.errors import StoreError
from beaver_memory.testing.store_cases.kit import NOW, looking, new
from beaver_memory.store.sqlite import SqliteStore

store = SqliteStore.open(Path(sys.argv[1]))
store.add([new(f"number {number}", narrative=os.urandom(400).hex()) for number in range(200)], now=NOW)
store._connector.empty_log()
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), hard))
try:
    store.forget(range(198, 201), looking(), now=NOW)
except StoreError as error:
    print(error.category, len(store.recent(looking(), limit=1000)), store.check(None), sep=";")
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
store.close()
"""


@pytest.mark.parametrize(
    ("room", "said", "left"), [(4_096, "disk_full;200;[]", 200), (200_000, "not_erased;197;[]", 197)]
)
def test_forgetting_where_there_is_no_room(path, room, said, left):
    """Forgetting on a full disk says that it is full, and whether the memories are forgotten; no text stays later."""
    ran = subprocess.run(
        [sys.executable, "-c", FULL, str(path), str(room)], check=False, capture_output=True, text=True
    )

    assert (0, said, "") == (ran.returncode, ran.stdout.strip(), ran.stderr)
    with contextlib.closing(SqliteStore.open(path)) as store:
        assert left == len(store.recent(looking(), limit=1000))


def test_a_log_without_its_database(path):
    """A log that a killed process left is taken up; alone, it is refused: it is no part of a new store."""
    result = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert -signal.SIGKILL == result.returncode
    content = path.read_bytes()
    path.unlink()
    assert "left_log" == refusal(path, lambda: SqliteStore.open(path))
    left = [".memory.db.commits", ".memory.db.open.lock", "memory.db-shm", "memory.db-wal"]
    assert left == sorted(each.name for each in path.parent.iterdir())
    path.write_bytes(content)
    assert ["in the log"] == kept(path)


def test_drafts_of_killed_processes(path):
    """What a process left that was killed while it made the store is swept; a fresh draft is not."""
    old, fresh = path.with_name(".memory.db.1.tmp"), path.with_name(".memory.db.2.tmp-wal")
    for draft in (old, fresh):
        draft.write_bytes(b"x")
    os.utime(old, (0, 0))
    SqliteStore.open(path).close()
    assert [".memory.db.2.tmp-wal", "memory.db"] == sorted(each.name for each in path.parent.iterdir())


def test_a_file_system_without_hard_links(path, monkeypatch):
    """Where files cannot be linked the store is made all the same, and an existing one is left alone."""

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    with contextlib.closing(SqliteStore.open(path)) as opened:
        opened.add([new("kept")], now=NOW)
    make_unless_there_is_a_log(path, read_migrations(PACKAGE))
    assert ["kept"] == kept(path)


def test_readers_are_bounded_and_closed(store):
    """However many threads read, a few connections serve them; closing closes those too."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4 * MOST_READERS) as threads:
        found = list(threads.map(lambda _: titles(store.recent(looking(), limit=1)), range(500)))
    assert [["kept"]] * 500 == found
    idle = store._connector._connections._idle
    assert 1 <= len(idle) <= MOST_READERS
    reader = idle[0]
    store.close()
    with pytest.raises(apsw.ConnectionClosedError):
        reader.execute("SELECT 1")


def test_a_fault_of_connections_that_are_out_of_use(store):
    """Connections that were opened after a fault stay in use when an earlier reader meets a fault, too."""
    connector, stack = store._connector, contextlib.ExitStack()
    earlier = stack.enter_context(connector.reading())
    with pytest.raises(StoreError), connector.reading() as other:
        other.execute("SELECT nonsense")
    found = titles(store.recent(looking(), limit=1))
    current = connector._connections
    with pytest.raises(StoreError), stack:
        earlier.execute("SELECT nonsense")
    assert (["kept"], True) == (found, current is connector._connections)


def test_closing_while_somebody_reads(store, path):
    """A question that is under way is answered; its connection is closed afterwards."""
    with store._connector.reading() as reader:
        store.close()
        assert 1 == reader.execute("SELECT count(*) FROM observations").get
    with pytest.raises(apsw.ConnectionClosedError):
        reader.execute("SELECT 1")
    assert "closed" == refusal(path, lambda: store.recent(looking(), limit=1))
