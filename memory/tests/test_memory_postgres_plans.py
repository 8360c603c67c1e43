"""The statements of the store in PostgreSQL: each plan touches one partition, and none of them an index of neighbours."""

import contextlib
import json
import re
import struct
from importlib.resources import files

import attrs
import postgres_server
import psycopg
import pytest

from beaver_hostspecs import Secret
from beaver_memory.patterns import Pattern
from beaver_memory.records import CaptureSpend, Owner, QueuedSession, SessionSummary
from beaver_memory.store.candidate_store import Wanted
from beaver_memory.store.postgres import PostgresStore
from beaver_memory.store.queries import queries_of
from beaver_memory.store.turn_queue import QueuedTurn
from beaver_memory.testing.store_cases.kit import NOW, looking, new
from beaver_memory.views import ALL_PROJECTS, Reach

OWNER = Owner(tenant="acme", user="ann")
PACKED = struct.pack("<HII2Q2B", 1, 2, 2, 1, 2, 1, 1)
"""The terms 1 and 2 in one passage."""

WANTED = Wanted(terms=(1, 2), model="m", vector=b"12", width=5)
PARTITIONED = (
    *("owners", "observations", "texts", "embeddings", "embedded", "history", "session_summaries"),
    *("capture_days", "captured_turns", "waiting_turns", "forgotten_texts"),
)
LEAF = re.compile(rf"({'|'.join(PARTITIONED)})_[0-9]+")
WHOLE = ("integrity", "rebuild_terms", "connector", "tenants")
"""The files whose statements serve many tenants, or which tests of their own explain."""

RESTORED = {"upsert.raise_ids", "upsert.raise_counter", "upsert.raise_counts", "upsert.drop_memories"}
ELSEWHERE = {"inserts.copy_rows", "owners.owners_of_tenant"} | RESTORED
"""COPY has no plan, `check` alone reads all owners of a tenant, and the tests of migration restore memories."""

NO_DATA = re.compile(
    r"(?i)^(begin|commit|lock|copy|create)\b|pg_advisory|set_config|schema_version|pg_namespace|pg_class"
)


class Recorder:
    """Stands in for a connection of the store, and keeps each statement with its values."""

    def __init__(self, connection, seen):
        self.connection, self.seen = connection, seen

    def __getattr__(self, name):
        return getattr(self.connection, name)

    def execute(self, statement, values=None, **options):
        self.seen.append((statement, values))
        return self.connection.execute(statement, values, **options)

    @contextlib.contextmanager
    def cursor(self):
        with self.connection.cursor() as cursor:
            yield RecordingCursor(cursor, self.seen)


class RecordingCursor:
    """Stands in for a cursor, likewise."""

    def __init__(self, cursor, seen):
        self.cursor, self.seen = cursor, seen

    def __getattr__(self, name):
        return getattr(self.cursor, name)

    def executemany(self, statement, values):
        self.seen += [(statement, each) for each in values[:1]]
        self.cursor.executemany(statement, values)


def recording(lend, seen):
    """Return a way to lend connections that keeps their statements."""

    @contextlib.contextmanager
    def lent():
        with lend() as connection:
            yield Recorder(connection, seen)

    return lent


@pytest.fixture
def store():
    url = postgres_server.shared()
    postgres_server.emptied(url)
    with contextlib.closing(PostgresStore.open(Secret(url), schema=postgres_server.SCHEMA)) as opened:
        yield opened


@pytest.fixture
def statements(store, monkeypatch):
    """The statements that all calls for one tenant make, with their values."""
    seen = []
    for pool in (store._connector._pool, store._connector._repeating):
        monkeypatch.setattr(pool, "lend", recording(pool.lend, seen))
    use(store)
    return seen


def use(store):
    """Call each method that serves one tenant, on memories of one owner."""
    view = looking(owners=(OWNER,))
    full = looking(
        owners=(OWNER,), types=("fact",), tags=("t",), people=("ann",), file="a", scopes=("global",), project="p",
        session="s", agent="a", sources=("user",), after=NOW, before=NOW, as_of=NOW,
    )  # fmt: skip
    items = [new(f"m{number}", owner=OWNER, tags=("t",), session="s") for number in range(3)]
    ids = store.add([attrs.evolve(item, terms=PACKED) for item in items], now=NOW)
    for mention in (True, False):
        store.remember([new("m1", owner=OWNER), new("m9", owner=OWNER)], now=NOW, mention=mention)
    store.knows([new("m1", owner=OWNER)], now=NOW)
    store.put_vectors(OWNER, "m", [(id_, b"12") for id_ in ids])
    store.vectors_of(ids, "m", tenant=OWNER.tenant)
    store.damaged_among(ids, view)
    store.candidates(OWNER, view, WANTED)
    store.change(ids[0], view, event="UPDATE", now=NOW, tags=("x",), terms=b"x", length=1)
    store.change(ids[0], view, event="UPDATE", now=NOW, title="other", terms=b"y", length=1)
    for filters in (view, full):
        store.get(ids, filters)
        store.recalled(ids, filters, "m")
        store.matching([Pattern(text="m1")], filters, limit=3, terms=(1, 2))
        store.recent(filters, limit=3)
        store.timeline(ids[1], filters, before=1, after=1)
        store.matching([Pattern(text="m1"), Pattern(text="m", is_prefix=True)], filters, limit=3)
        store.matching([Pattern(text="m1")], filters, limit=3, terms=(1, 2))
        store.recalled(ids, filters, "m")
        store.people(filters, query="", limit=3)
    store.history(ids[0], view)
    store.touch(ids, tenant="acme", now=NOW)
    store.summarise(OWNER, SessionSummary(session="s", created_at=NOW))
    store.summaries(OWNER, limit=3)
    store.drop_summaries(OWNER, ["s"])
    store.footprint(ids, tenant="acme")
    store.drop_evidence(OWNER, ["t"], now=NOW)
    use_capture(store)
    use_queue(store.queue)
    store.versions([OWNER], "m")
    store.last_version(OWNER)
    store.changed(OWNER, 0, limit=3)
    store.count(OWNER)
    store.ids(OWNER, ("global",))
    for project in (ALL_PROJECTS, "p"):
        store.unembedded(OWNER, "m", project, limit=3)
        store.pending(OWNER, "m", project)
    store.vectors(OWNER, "m", 0, limit=3)
    store.candidates(OWNER, view, WANTED)
    store.candidates(OWNER, full, WANTED)
    store.candidates(OWNER, looking(owners=(OWNER,), tags=("t",)), WANTED)
    store.forget(ids[:2], view, now=NOW)
    other = Owner(tenant="acme", user="other")
    store.forget(store.add([new("m", owner=other)], now=NOW), looking(owners=(other,)), now=NOW)
    store.drop_owner(other)


def use_capture(store):
    """Call each method about the capture of one owner's memories."""
    store.spend(OWNER, NOW.date(), CaptureSpend(calls=1), CaptureSpend(calls=1))
    store.spent(OWNER, NOW.date())
    store.mark_captured(OWNER, ["t"])
    store.captured(OWNER, ["t"])
    store.mark_forgotten(OWNER, ["gone"])
    store.forgotten(OWNER, ["gone"])
    store.holdings(OWNER)
    store.drop_capture_records(OWNER)


def use_queue(queue):
    """Call each method of the queue of turns, on turns of one owner."""
    place = QueuedSession(owner=OWNER, session="s")
    for name in ("t1", "t2"):
        queue.put(QueuedTurn(place=place, turn=name, content="{}", queued_at=NOW))
    queue.sessions(NOW, Reach("acme", "p"), limit=3, before=NOW)
    first, second = queue.claim(place, NOW, limit=3)
    queue.finish([first])
    queue.postpone([second], None, "locked")
    queue.owners("acme")
    queue.waiting(OWNER, ALL_PROJECTS, limit=3)
    queue.retry(OWNER, ALL_PROJECTS, NOW)
    queue.drop(OWNER, second.key)
    queue.erase(OWNER, ALL_PROJECTS)


def explained(connection, statement, values):
    """Return the names of tables and indexes in the plan of a statement."""
    (plan,) = connection.execute(f"EXPLAIN (FORMAT JSON) {statement}", values).fetchone()
    text = json.dumps(plan)
    return {*re.findall(r'"Relation Name": "(\w+)"', text)}, {*re.findall(r'"Index Name": "(\w+)"', text)}


def test_each_plan_touches_one_partition(store, statements):
    """No statement for a tenant reads or locks a second partition of a table."""
    touched = []
    with store._connector._pool.lend() as connection:
        real = connection.connection
        for statement, values in statements:
            if NO_DATA.search(statement):
                continue
            tables, _ = explained(real, statement, values)
            leaves = [match[1] for name in tables if (match := LEAF.fullmatch(name))]
            touched.append((len(leaves), len({*leaves}), statement))
    assert len(touched) > 60
    assert [] == [statement for number, distinct, statement in touched if number != distinct]
    assert {"observations", "texts", "owners"} <= {
        name for _, _, statement in touched for name in PARTITIONED if name in statement
    }


def test_each_statement_is_explained(statements):
    """Each named statement is one of those, unless it serves the whole store or is a part of others."""
    made = {statement for statement, _ in statements}
    missing = []
    for path in sorted(files("beaver_memory.store.postgres").joinpath("sql").glob("*.sql")):
        queries = queries_of("postgres", path.stem)
        for name in queries.names() if path.stem not in WHOLE else ():
            parts = re.split(r"\{[a-z]+\}", queries[name])
            wanted = re.compile(".*".join(map(re.escape, parts)), re.DOTALL)
            if "whole store" not in queries[name] and not any(map(wanted.search, made)):
                missing.append(f"{path.stem}.{name}")
    assert {*missing} == ELSEWHERE


def test_no_index_of_neighbours(store):
    """No index answers a search for neighbours: with a filter by owner it would leave out rows without a word."""
    with psycopg.connect(postgres_server.shared()) as connection:
        rows = connection.execute("SELECT indexdef FROM pg_indexes WHERE schemaname = %s", [postgres_server.SCHEMA])
        assert {"btree", "gin"} == {re.search(r"USING (\w+)", text)[1] for (text,) in rows}


def test_a_tenant_costs_rows_only(store):
    """Many tenants add no table, no index and no lock."""

    def figures():
        with psycopg.connect(postgres_server.shared()) as connection:
            (objects,) = connection.execute("SELECT count(*) FROM pg_class").fetchone()
            return objects

    store.add([new("first", owner=Owner(tenant="t"))], now=NOW)
    before = figures()
    store.add([new("x", owner=Owner(tenant=f"t{number}")) for number in range(200)], now=NOW)
    assert (before, 201) == (figures(), len(store.owners(None)))
    with store._connector.moment() as connection:
        from beaver_memory.store.postgres import reads
        from beaver_memory.store.postgres.sql_filters import seen

        reads.recent(connection, seen(connection, store._owners, looking(owners=(Owner(tenant="t7"),))), 3)
        held = connection.execute("SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()").fetchone()
    assert held[0] < 30
