"""A database of an older schema is copied and brought to that of this version, whole or not at all."""

import contextlib
import signal
import subprocess
import sys

import apsw
import pytest
from selection import campaign
from store_rows import rows_of

from beaver_memory.errors import StoreError
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.store.sqlite.connections import Connector
from beaver_memory.store.sqlite.preparation import PACKAGE
from beaver_memory.testing.store_cases.kit import NOW, looking, new, titles
from beaver_toolkit.sqlite.files import back_up
from beaver_toolkit.sqlite.migrations import read_migrations

SCRIPTS = read_migrations(PACKAGE)
SECOND = "ALTER TABLE observations ADD COLUMN mood TEXT"
COPY = f"memory.db.v{len(SCRIPTS)}.bak"


@pytest.fixture
def path(tmp_path):
    """A database of the newest schema, with one memory."""
    with contextlib.closing(SqliteStore.open(tmp_path / "memory.db")) as store:
        store.add([new("kept")], now=NOW)
    return tmp_path / "memory.db"


def opened_with(path, *more):
    """Open a store for which there are more migrations."""
    connector = Connector(path, (*SCRIPTS, *more))
    connector.open()
    return SqliteStore(connector)


def kept(path):
    """Open a store and return what it holds."""
    with contextlib.closing(SqliteStore.open(path)) as opened:
        assert [] == opened.check(None)
        return titles(opened.recent(looking(), limit=9))


def refused(call):
    """Return the category of the error that a call raises."""
    with pytest.raises(StoreError) as caught:
        call()
    return caught.value.category


def test_the_first_version(path):
    """A new database has the first schema, as version 1."""
    assert [(1,)] == rows_of(path, "SELECT version FROM schema_version")


def test_a_migration(path):
    """An older store is copied, privately, and then brought forward; both hold what it held."""
    with contextlib.closing(opened_with(path, SECOND)) as opened:
        opened.add([new("after")], now=NOW)
        assert ["after", "kept"] == titles(opened.recent(looking(), limit=9))
    copy = path.with_name(COPY)
    assert {"memory.db", COPY} == {each.name for each in path.parent.glob("[!.]*")}
    assert "0o600" == oct(copy.stat().st_mode & 0o777)
    assert "newer" == refused(lambda: SqliteStore.open(path))
    assert ["kept"] == kept(copy)


def test_forgetting_deletes_the_copy(path):
    """The copy from before a migration goes with the first memory that is forgotten."""
    with contextlib.closing(opened_with(path, SECOND)) as opened:
        assert path.with_name(COPY).exists()
        opened.forget([1], looking(), now=NOW)
    assert not path.with_name(COPY).exists()


def test_a_migration_by_another_process(path):
    """A copy is not replaced after another process has migrated the store."""
    with contextlib.closing(opened_with(path, SECOND)) as opened:
        opened.add([new("after")], now=NOW)
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        copy = back_up(connection, path, len(SCRIPTS))
    assert ["kept"] == kept(copy)
    assert {"memory.db", COPY} == {each.name for each in path.parent.glob("[!.]*")}


def test_a_migration_that_fails(path):
    """A script that fails is undone as a whole; the store is as it was, and so is its copy."""
    assert "not_migrated" == refused(
        lambda: opened_with(path, SECOND, "CREATE TABLE x (a); SELECT nonsense FROM nowhere")
    )
    assert [["kept"]] * 2 == [kept(path), kept(path.with_name(COPY))]


KILLED = """
import os, signal, sys
from pathlib import Path
import apsw
from beaver_memory.store.sqlite.connections import Connector
from beaver_memory.store.sqlite.preparation import PACKAGE
from beaver_toolkit.sqlite.migrations import read_migrations

def mood(row):
    if row == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return "calm" * 100

apsw.connection_hooks.append(lambda connection: connection.create_scalar_function("mood", mood))
second = "ALTER TABLE observations ADD COLUMN mood TEXT; UPDATE observations SET mood = mood(row)"
Connector(Path(sys.argv[1]), (*read_migrations(PACKAGE), second)).open()
"""


@pytest.mark.parametrize("row", [60, *campaign(1, 2, *range(10, 130, 10))])
def test_it_is_killed(tmp_path, row):
    """Killed at any row of the migration, a database is whole as before."""
    path = tmp_path / "memory.db"
    with contextlib.closing(SqliteStore.open(path)) as store:
        store.add([new(f"m{number}", tags=("t",)) for number in range(120)], now=NOW)
    before = rows_of(path, "SELECT * FROM observations")
    ran = subprocess.run([sys.executable, "-c", KILLED, str(path), str(row)], check=False)

    assert (-signal.SIGKILL, before) == (ran.returncode, rows_of(path, "SELECT * FROM observations"))
    with contextlib.closing(opened_with(path, SECOND)) as opened:
        assert ([], 120) == (opened.check(None), opened.stats(None)["memories"])
