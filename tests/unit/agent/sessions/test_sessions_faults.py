"""Every failure of the session store names a remedy, and no acknowledged exchange is lost."""

import asyncio
import os

import apsw
import pytest

from beaver_hooks.agent.errors import StorageError
from beaver_hooks.agent.sessions.database import DATABASE
from beaver_hooks.agent.sessions.store import SessionStore
from beaver_hostspecs import Message, Trust
from beaver_toolkit.sqlite import connections, database

ASKED = Message(role="user", text="kept")
NEWER = "CREATE TABLE schema_version (version); INSERT INTO schema_version VALUES (99)"


@pytest.fixture
async def store(tmp_path):
    store = SessionStore.open(tmp_path / "state")
    await store.ensure("a")
    await store.append_exchange("a", [ASKED])
    yield store
    await store.close()


async def texts(store):
    return [message.text for message in await store.history("a")]


async def refused(awaitable):
    with pytest.raises(StorageError) as caught:
        await awaitable
    return str(caught.value)


@pytest.mark.parametrize(
    ("pragma", "sentence"),
    [
        ("max_page_count", "cannot grow: the disk is full; make room and try again"),
        ("query_only", "is read-only; check who owns it and its folder"),
    ],
)
async def test_a_database_that_cannot_be_written(store, tmp_path, monkeypatch, pragma, sentence):
    """The store refuses an exchange with the remedy, keeps the earlier ones, and works again by itself."""
    opened = database.connect

    def limited(path, **options):
        made = opened(path, **options)
        made.pragma(pragma, 1)
        return made

    with monkeypatch.context() as patched:
        patched.setattr(database, "connect", limited)
        store._database.close()
        said = await refused(store.append_exchange("a", [ASKED, Message(role="assistant", text="x" * 100_000)]))
    await store.append_exchange("a", [Message(role="user", text="later")])

    assert f"The session store {tmp_path / 'state' / DATABASE} {sentence}." == said
    assert (["kept", "later"], ()) == (await texts(store), await store.integrity())


async def test_a_lock_that_is_held(store, tmp_path, monkeypatch):
    """Another process that keeps the lock too long is named, and writing works when it lets go."""
    monkeypatch.setattr(connections, "BUSY_SECONDS", 0.05)
    store._database.close()
    other = apsw.Connection(str(tmp_path / "state" / DATABASE))
    other.execute("BEGIN IMMEDIATE")
    said = await refused(store.append_exchange("a", [ASKED]))
    other.execute("ROLLBACK")
    await store.append_exchange("a", [ASKED])
    other.close()

    assert said.endswith("is locked by another process; end that process or try again.")
    assert ["kept", "kept"] == await texts(store)


async def test_a_reader_does_not_keep_a_session_from_being_deleted(store, tmp_path, monkeypatch):
    """Deleting a session works while another connection still reads it."""
    monkeypatch.setattr(connections, "BUSY_SECONDS", 0.05)
    store._database.close()
    other = apsw.Connection(str(tmp_path / "state" / DATABASE))
    other.execute("BEGIN")
    seen = other.execute("SELECT count(*) FROM messages").get
    await store.delete("a")
    still = other.execute("SELECT count(*) FROM messages").get
    other.close()

    assert (1, 1, ()) == (seen, still, await store.list())


async def test_a_file_that_vanishes(store, tmp_path):
    """The store refuses an append after its file vanished, and starts anew with the next call."""
    for each in (tmp_path / "state").glob(f"{DATABASE}*"):
        each.unlink()
    said = await refused(store.append_exchange("a", [ASKED]))

    assert said.endswith("disappeared while it was in use; restore it, or try again to start with an empty one.")
    assert () == await store.list()


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (lambda path: path.write_bytes(b"no database at all" * 100), "is damaged; move it"),
        (lambda path: apsw.Connection(str(path)).execute(NEWER), "was written by a newer version"),
        (lambda path: apsw.Connection(str(path)).execute("CREATE TABLE sessions (x)"), "is not a database of sessions"),
    ],
)
def test_files_that_are_refused(tmp_path, harm, sentence):
    """The store refuses a damaged, newer or foreign database, and leaves the file as it is."""
    path = tmp_path / "state" / DATABASE
    path.parent.mkdir(mode=0o700)
    harm(path)
    before = path.read_bytes()
    with pytest.raises(StorageError, match=sentence):
        SessionStore.open(path.parent)

    # Past the header, in which SQLite notes how the file is written.
    assert before[100:] == path.read_bytes()[100:]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_folder_that_is_read_only(tmp_path):
    """Opening a store in a read-only folder is refused with the remedy."""
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match=r"make it writable, or set `host\.stateFolder` to another one"):
        SessionStore.open(tmp_path / "state")
    tmp_path.chmod(0o700)


def test_a_folder_that_is_a_file(tmp_path):
    """The store refuses a state folder that is a file, with the remedy."""
    (tmp_path / "state").touch()
    with pytest.raises(StorageError, match="is not a folder; move it"):
        SessionStore.open(tmp_path / "state")


async def test_a_cancelled_append(store):
    """A cancelled append is stored whole or not at all, and the store goes on."""
    task = asyncio.ensure_future(store.append_exchange("a", [ASKED, Message(role="assistant", text="answer")]))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await texts(store) in (["kept"], ["kept", "kept", "answer"])


async def test_many_at_the_same_time(store):
    """Fifty appends side by side are all kept, each whole."""
    turns = [[Message(role="user", text=f"p{n}"), Message(role="assistant", text=f"a{n}")] for n in range(50)]
    await asyncio.gather(*[store.append_exchange("a", turn) for turn in turns])
    whole = [message.text for message in await store.history("a", 1000)][1:]

    assert {(f"p{n}", f"a{n}") for n in range(50)} == {*zip(whole[::2], whole[1::2], strict=True)}


async def test_a_disk_that_is_read_only(tmp_path, monkeypatch):
    """Sessions on a disk that cannot be written are read, a turn begins without storing its session, and writes fail."""
    store = SessionStore.open(tmp_path / "state")
    await store.ensure("a")
    await store.append_exchange("a", [Message(role="user", text="kept")])
    await store.close()

    def fail(*_, **__):
        raise apsw.CantOpenError("unable to open database file")

    monkeypatch.setattr(database, "connect", fail)
    store = SessionStore.open(tmp_path / "state")
    old, new = await store.begin("a", trust=Trust.FULL), await store.begin("b", trust=Trust.FULL)
    with pytest.raises(StorageError, match="is read-only"):
        await store.append_exchange("a", [Message(role="user", text="lost")])
    listed = [each.id for each in await store.list()]
    await store.close()

    assert (["kept"], (), ["a"]) == ([each.text for each in old.history], new.history, listed)
