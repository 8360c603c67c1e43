"""The store in PostgreSQL and a server that fails: each fault has its reason and its remedy, and the next call works."""

import contextlib
import os
import signal
import socket
import sys

import postgres_server
import psycopg
import pytest

from beaver_hostspecs import Secret
from beaver_memory.errors import REMEDIES, StoreError
from beaver_memory.records import Owner, SessionSummary
from beaver_memory.store.damaged_entries import RESTORE, damaged_memory
from beaver_memory.store.postgres import PostgresStore
from beaver_memory.store.postgres.connector import Connector, read_scripts
from beaver_memory.testing.store_cases.kit import NOW, looking, new

PASSWORD = "hunter2-hunter2"


@pytest.fixture(scope="module")
def server():
    """A server of its own, which tests may kill."""
    if postgres_server.programs() is None:
        pytest.skip("the programs of PostgreSQL are not installed")
    with postgres_server.running(postgres_server.cluster(postgres_server.folder())) as running:
        yield running


@pytest.fixture
def store(server):
    with contextlib.closing(PostgresStore.open(Secret(server.url))) as opened:
        yield opened


@contextlib.contextmanager
def admin(server):
    """A connection that may do everything."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        yield connection


def failure(call):
    """Return the category and the text of the error of a call."""
    with pytest.raises(StoreError) as caught:
        call()
    return caught.value.category, str(caught.value)


def test_a_database_that_cannot_be_used(server):
    """Each reason has its category and its remedy; no error shows a user or a password."""
    with admin(server) as connection:
        connection.execute("DROP ROLE IF EXISTS weak")
        connection.execute("CREATE ROLE weak LOGIN")
    folder = server.data.parent
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    addresses = {
        "refused": f"postgresql://ann:{PASSWORD}@127.0.0.1:{port}/memories",
        "no_database": f"postgresql://postgres:{PASSWORD}@/missing?host={folder}",
        "password": f"postgresql://ann:{PASSWORD}@/postgres?host={folder}",
        "wrong_address": f"postgresql://ann:{PASSWORD}@127.0.0.1/x?nonsense=1",
        "no_rights": f"postgresql://weak:{PASSWORD}@/postgres?host={folder}",
    }
    for category, url in addresses.items():
        found, text = failure(lambda url=url: PostgresStore.open(Secret(url), schema="of_another"))
        assert (category, True, False) == (found, REMEDIES[category] in text, PASSWORD in text or "ann:" in text)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:x@{}@127.0.0.1/memories",
        "postgresql://ann:x/{}@127.0.0.1/memories",
        "postgresql://ann:1/{}@127.0.0.1/memories",
        "postgresql://ann:{}/x@127.0.0.1/memories",
        "postgresql://ann:{}?x@127.0.0.1/memories",
        "postgresql://ann:1@2/{}@127.0.0.1/memories",
        "postgresql://ann:{}/memories",
        "postgresql://ann:{}",
        "postgresql:// ann:1/{}@127.0.0.1/memories",
        "dbname=postgresql://ann:{}@127.0.0.1/memories",
        "dbname='password={}'",
    ],
)
def test_a_password_that_is_not_quoted(url):
    """An address of which libpq would take a part of the password for a place is refused before any connection."""
    found, text = failure(lambda: PostgresStore.open(Secret(url.format(PASSWORD))))
    assert ("wrong_address", True, False) == (found, REMEDIES["wrong_address"] in text, PASSWORD in text)


@pytest.mark.campaign
def test_a_wrong_password(server):
    """A refused password is an error at once, which does not show the password; the right one works."""
    with admin(server) as connection:
        connection.execute("DROP ROLE IF EXISTS tester")
        connection.execute("CREATE ROLE tester LOGIN PASSWORD 'right'")
    rules = server.data / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"local all tester scram-sha-256\n{before}")
    with admin(server) as connection:
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("GRANT CREATE ON DATABASE postgres TO tester")
    try:
        url = "postgresql://tester:{}@/postgres?host={}"
        found, text = failure(lambda: PostgresStore.open(Secret(url.format(PASSWORD, server.data.parent)), schema="t"))
        assert ("password", False) == (found, PASSWORD in text)
        PostgresStore.open(Secret(url.format("right", server.data.parent)), schema="t").close()
    finally:
        rules.write_text(before)
        with admin(server) as connection:
            connection.execute("DROP SCHEMA IF EXISTS t CASCADE")
            connection.execute("REVOKE CREATE ON DATABASE postgres FROM tester")


@pytest.mark.campaign
def test_a_server_that_was_restarted(server, store):
    """Connections to a server that has restarted are replaced before a call uses them, for reading and writing."""
    (first,) = store.add([new("before")], now=NOW)
    server.stop()
    server.start()
    assert ["before"] == [memory.title for memory in store.get([first], looking())]
    server.stop()
    server.start()
    assert store.add([new("after")], now=NOW)[0] > first


def test_a_server_that_is_down(server, store):
    """While the server is down each call says so; as soon as it is back, the next call works."""
    (id_,) = store.add([new("kept")], now=NOW)
    server.stop()
    for call in (lambda: store.get([id_], looking()), lambda: store.add([new("lost")], now=NOW)):
        assert "refused" == failure(call)[0]
    server.start()
    assert ["kept"] == [memory.title for memory in store.get([id_], looking())]


def test_a_connection_that_is_cut(server, store):
    """A question whose connection an administrator ends fails with its reason, and the next call works."""
    (id_,) = store.add([new("kept")], now=NOW)
    with pytest.raises(StoreError) as caught, store._connector.reading() as lent:
        lent.execute("SELECT pg_terminate_backend(pg_backend_pid())").fetchall()
    assert "cut_off" == caught.value.category
    assert ["kept"] == [memory.title for memory in store.get([id_], looking())]


def test_a_commit_without_an_answer(server, store):
    """The error of a write whose commit is not answered says that its outcome is unknown, and the next call works."""
    with admin(server) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS faults")
        connection.execute(
            "CREATE OR REPLACE FUNCTION faults.die() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1); RETURN NULL; END $$"
        )
        connection.execute(
            "CREATE CONSTRAINT TRIGGER die AFTER INSERT ON beaver_memory.texts DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION faults.die()"
        )
        found, text = failure(lambda: store.add([new("unsure")], now=NOW))
        connection.execute("DROP TRIGGER die ON beaver_memory.texts")
    assert ("unsure", True) == (found, "look whether it was stored" in text)
    assert store.add([new("sure")], now=NOW)
    assert [] == store.check(None)


def test_a_write_that_fails_half_way(server, store):
    """A write that the database refuses leaves nothing of itself, in either table."""
    store.add([new("kept")], now=NOW)
    before = store.stats(None)
    with admin(server) as connection:
        connection.execute("ALTER TABLE beaver_memory.texts ADD CONSTRAINT refused CHECK (title <> 'refused')")
        found = [failure(lambda count=count: store.add([new("refused")] * count, now=NOW))[0] for count in (1, 50)]
        connection.execute("ALTER TABLE beaver_memory.texts DROP CONSTRAINT refused")
    assert (["broken", "broken"], before["memories"]) == (found, store.stats(None)["memories"])
    assert [] == store.check(None)


@pytest.mark.campaign
def test_no_connection_left(server):
    """A server without room for another connection has its reason."""
    with admin(server) as connection:
        connection.execute("DROP ROLE IF EXISTS few")
        connection.execute("CREATE ROLE few LOGIN SUPERUSER CONNECTION LIMIT 1")
        connection.execute("ALTER ROLE few NOSUPERUSER")
        connection.execute("GRANT ALL ON DATABASE postgres TO few")
    url = f"postgresql://few@/postgres?host={server.data.parent}"
    with contextlib.closing(PostgresStore.open(Secret(url), schema="few")):
        assert "busy" == failure(lambda: PostgresStore.open(Secret(url), schema="few"))[0]


def test_a_standby(server):
    """A server that accepts no writes says that another one is the primary."""
    url = f"postgresql://postgres@/postgres?host={server.data.parent}&options=-cdefault_transaction_read_only%3Don"
    PostgresStore.open(Secret(server.url)).close()
    with contextlib.closing(PostgresStore.open(Secret(url))) as opened:
        assert "standby" == failure(lambda: opened.add([new("x")], now=NOW))[0]
        assert opened.count(Owner()) >= 0


def test_a_newer_and_a_broken_schema(server):
    """Tables of a newer version are refused; a migration that fails leaves no table behind."""
    PostgresStore.open(Secret(server.url), schema="newer").close()
    with admin(server) as connection:
        connection.execute("INSERT INTO newer.schema_version (version) VALUES (99)")
    assert "newer" == failure(lambda: PostgresStore.open(Secret(server.url), schema="newer"))[0]
    broken = Connector(Secret(server.url), "broken", scripts=("CREATE TABLE one (a int)", "CREATE TABLE one (a int)"))
    assert "not_migrated" == failure(broken.open)[0]
    with admin(server) as connection:
        assert (None,) == connection.execute("SELECT to_regclass('broken.one')").fetchone()
        connection.execute("DROP SCHEMA newer CASCADE")


@pytest.mark.campaign
def test_another_store_in_its_place(server):
    """A database that was replaced by another store while it was in use is refused, and not written to."""
    with contextlib.closing(PostgresStore.open(Secret(server.url), schema="first")) as store:
        with admin(server) as connection:
            connection.execute("UPDATE first.store_facts SET value = 'other' WHERE name = 'identity'")
        server.stop()
        server.start()
        assert "replaced_database" == failure(lambda: store.add([new("x")], now=NOW))[0]


def test_damaged_rows(server):
    """A row that was changed behind the store is not shown, the check names it, and a reader of all stores forgets it."""
    columns = {"texts": ("title", "narrative", "facts", "summary", "keywords"), "observations": ("tags", "speaker")}
    with contextlib.closing(PostgresStore.open(Secret(server.url), schema="damage")) as store:
        good, *bad = store.add([new(f"m{number}") for number in range(8)], now=NOW)
        with admin(server) as connection:
            names = [(table, name) for table, each in columns.items() for name in each]
            for id_, (table, name) in zip(bad, names, strict=True):
                connection.execute(f"UPDATE damage.{table} SET {name} = {name} || '!' WHERE id = %s", [id_])  # noqa: S608
        assert [good] == [memory.id for memory in store.recent(looking(), limit=9)]
        assert [good] == [memory.id for memory in store.get([good, *bad], looking())]
        assert [damaged_memory(id_, "") for id_ in bad] == store.check(None)
        assert bad == store.damaged_among([good, *bad, 99], looking())
        assert [] == store.forget(bad, looking(stores=("private",)), now=NOW)
        assert bad == store.forget(bad, looking(), now=NOW)
        assert ([], 1) == (store.check(None), store.count(Owner()))


def test_closed_and_forked(server, store):
    """A closed store and a store of another process are refused, with the remedy."""
    other = PostgresStore.open(Secret(server.url))
    other.close()
    assert "closed" == failure(lambda: other.count(Owner()))[0]
    other._connector._pid = -1
    assert "forked" == failure(lambda: other.count(Owner()))[0]


def test_without_the_driver(server, monkeypatch):
    """Without psycopg the error names the extra that installs it."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    found, text = failure(lambda: PostgresStore.open(Secret("")))
    assert ("no_driver", True) == (found, "beaver-memory[postgres]" in text)


def test_large_writes(server, store):
    """Texts and embeddings that do not fit into the buffers of a socket are written, alone and many at once."""
    owner = Owner(user="large")
    ids = store.add([new("x", narrative="y " * 400_000, owner=owner)], now=NOW)
    ids += store.add([new(f"m{number}", owner=owner) for number in range(1_500)], now=NOW)
    data = bytes(768)
    store.put_vectors(owner, "m", [(id_, data) for id_ in ids])
    assert [data] * len(ids) == [row.data for row in store.vectors(owner, "m", 0, limit=2_000)]


def test_owners_of_several_tenants(store):
    """A question for the versions of owners of several tenants is refused."""
    with pytest.raises(ValueError, match="one tenant"):
        store.versions([Owner(tenant="a"), Owner(tenant="b")])


def test_one_backend_killed(server, store):
    """After `kill -9` of one process of the server, all acknowledged memories are there, and calls work again."""
    ids = store.add([new(f"m{number}") for number in range(3)], now=NOW)
    with admin(server) as connection, contextlib.suppress(psycopg.OperationalError):
        os.kill(connection.info.backend_pid, signal.SIGKILL)
        connection.execute("SELECT 1")
    found = []
    while not found:
        with contextlib.suppress(StoreError):
            found = store.get(ids, looking())
    assert ids == [memory.id for memory in found]


@pytest.mark.campaign
def test_damaged_people_and_summaries(server):
    """People are counted in memories that have their checksums; a damaged summary is not shown, and the check names both."""
    owner = Owner(user="ann")
    with contextlib.closing(PostgresStore.open(Secret(server.url), schema="sums")) as store:
        store.add([new(name, owner=owner, related_people=("Ann", name)) for name in ("Bob", "Cid")], now=NOW)
        for session in ("one", "two"):
            store.summarise(owner, SessionSummary(session=session, outcome=session, created_at=NOW))
        with admin(server) as connection:
            connection.execute("UPDATE sums.observations SET related_people = replace(related_people, 'Cid', 'Cie')")
            connection.execute("UPDATE sums.session_summaries SET outcome = 'twp' WHERE session = 'two'")
            connection.execute("UPDATE sums.owners SET live = 3")
        people = store.people(looking(owners=(owner,)), query="", limit=9)
        assert [("Ann", 1), ("Bob", 1)] == [(each.name, each.mention_count) for each in people]
        assert ["one"] == [each.outcome for each in store.summaries(owner, limit=9)]
        assert [
            "1 of 3 memories of user 'ann' vanished: restore the database from a backup.",
            damaged_memory(2, ""),
            f"The summary of session 'two' fails its checksum and is not shown: {RESTORE}.",
        ] == store.check(None)
        memory, summary = store.damaged(owner)
        assert ("memory", 2, "checksum", '["Ann","Cie"]') == (
            memory.kind, memory.id, memory.reason, memory.columns["related_people"],
        )  # fmt: skip
        assert ("summary", "'two'", "twp") == (summary.kind, summary.id, summary.columns["outcome"])
        assert [] == store.damaged(Owner(user="bob"))


@pytest.mark.campaign
def test_a_migration(server):
    """A store of an older schema is brought forward with what it holds, and then refused by the older version."""
    scripts = (*read_scripts(), "ALTER TABLE observations ADD COLUMN mood text")
    with contextlib.closing(PostgresStore.open(Secret(server.url), schema="older")) as store:
        store.add([new("kept")], now=NOW)
    connector = Connector(Secret(server.url), "older", scripts=scripts)
    connector.open()
    with contextlib.closing(PostgresStore(connector)) as store:
        store.add([new("after")], now=NOW)
        found = [each.title for each in store.recent(looking(), limit=9)]
    with admin(server) as connection:
        versions = connection.execute("SELECT version FROM older.schema_version ORDER BY version").fetchall()
    assert (["after", "kept"], [(1,), (2,)]) == (found, versions)
    assert "newer" == failure(lambda: PostgresStore.open(Secret(server.url), schema="older"))[0]
