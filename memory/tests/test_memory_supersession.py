"""A newer memory and the end of the older one are written together: a process that is killed leaves both or neither."""

import json
import subprocess
import sys

import postgres_server
import pytest

KILLED = """
import contextlib, json, os, signal, sys
from pathlib import Path

import apsw
import psycopg

from beaver_hostspecs import Secret
from beaver_memory.engine import MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.reconcile.reconciler import Reconciler
from beaver_memory.records import NewMemory, Owner
from beaver_memory.store.postgres import PostgresStore
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.testing.store_cases.kit import NOW
from beaver_memory.views import View

kind, place, schema = sys.argv[1:]
left = float("inf")

def counted(*_):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return True

def counting(call):
    return lambda *given, **named: counted() and call(*given, **named)

def opened():
    store = SqliteStore.open(Path(place)) if kind == "sqlite" else PostgresStore.open(Secret(place), schema=schema)
    return contextlib.closing(MemoryEngine(store))

def superseded(owner, statements):
    global left
    with opened() as engine:
        left = statements
        Reconciler(engine).remember(NewMemory(title="I moved to Porto.", owner=owner))
    os._exit(0)

apsw.connection_hooks.append(lambda connection: connection.set_exec_trace(counted))
psycopg.Connection.execute = counting(psycopg.Connection.execute)
psycopg.Cursor.executemany = counting(psycopg.Cursor.executemany)
psycopg.Connection.commit = counting(psycopg.Connection.commit)
found, code = [], None
while code != 0:
    owner = Owner(user=str(len(found)))
    with opened() as engine:
        engine.add(NewMemory(title="I live in Lisbon.", owner=owner, created_at=NOW))
    child = os.fork()
    if not child:
        superseded(owner, len(found))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with opened() as engine:
        now = Filters(view=View(owners=(owner,), now=engine._clock.now()))
        here = [(each.title, each.superseded_by) for each in engine.store.recent(now, limit=9)]
        problems = engine.store.check(None)
    found.append([code, here, problems])
print(json.dumps(found))
"""
BEFORE, AFTER = [["I live in Lisbon.", None]], [["I moved to Porto.", None]]


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_kill_9_at_each_statement(tmp_path, kind):
    """Killed before any statement of the write, a process leaves what held before, or what holds after it."""
    place, schema = str(tmp_path / "memory.db"), postgres_server.SCHEMA
    if kind == "postgres":
        place = postgres_server.shared()
        postgres_server.emptied(place)
    command = [sys.executable, "-c", KILLED, kind, place, schema]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    assert [-9] * (len(found) - 1) + [0] == [code for code, _, _ in found]
    assert [] == [problem for _, _, problems in found for problem in problems]
    states = [here for _, here, _ in found]
    done = states.index(AFTER)
    assert [BEFORE] * done + [AFTER] * (len(found) - done) == states
    assert done >= 10
