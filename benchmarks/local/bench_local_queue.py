"""Measures the queue of turns: how long a committed turn takes to be accepted, and how fast many are.

A turn has a prompt of 200 characters and an answer of 800. `put` is what `after_prompt` waits for: redaction, the
statements of the prompt, and one durable row. It alternates with the floor, a bare INSERT of the same row into the same
table of another database, committed with the same settings (WAL, synchronous FULL), so both share the disk and the load
of the machine. Sustained writes put one turn after the other, from one thread and from four.

    python benchmarks/local/bench_local_queue.py
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import apsw

from beaver_hostspecs.testing import RecordingReport
from beaver_memory.capture.records import Utterance
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.records import Owner, QueuedSession
from beaver_memory.runtime.factory import open_engine
from beaver_memory.runtime.operations import Operations
from beaver_memory.runtime.profile import Profile, RuntimeServices, SqliteLocation
from beaver_memory.runtime.turn_content import TurnContent
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.store.sqlite.queries import sqlite_queries
from beaver_memory.store.turn_queue import QueuedTurn, values_of
from beaver_toolkit.redaction.redactor import Redactor
from beaver_toolkit.sqlite.connections import make_durable

TURNS = 1_500
WARM = 100
MOST_MS = 1.0
LEAST_SHARE = 0.5
MEMORY = Path("/dev/shm")  # noqa: S108 - the system's folder in memory
PLACE = QueuedSession(owner=Owner(user="u"), session="s")
PROMPT = "We moved the billing service to the new cluster on Monday, and Anna keeps the keys of the old one. " * 2
ANSWER = "The plan has four steps, and the second one needs the list of services that still read the old table. " * 8


def said(number: int) -> list[Utterance]:
    """Return the messages of a turn."""
    turn = f"t{number}"
    return [
        Utterance(text=f"{number}: {PROMPT}", turn=turn),
        Utterance(text=ANSWER, voice="assistant", turn=turn, is_context=True),
    ]


def opened(folder: Path) -> Operations:
    """Open a memory in a folder."""
    profile = Profile(embedding=EmbeddingSettings(provider="none"))
    location = SqliteLocation(state_folder=folder, database_path=folder / "memory.db")
    services = RuntimeServices(report=RecordingReport())
    made = open_engine(profile, location, services)
    return Operations(made.engine, made.embedder, profile, location, services)


def floor(folder: Path) -> Callable[[int], None]:
    """Return a bare INSERT into the table of a store of its own."""
    folder.mkdir()
    SqliteStore.open(folder / "memory.db").close()
    connection, statement = apsw.Connection(str(folder / "memory.db")), sqlite_queries("turn_queue")["put"]
    make_durable(connection, secure_delete=True)
    connection.execute("INSERT INTO tenants (number, name) VALUES (1, '')")
    connection.execute("INSERT INTO owners (tenant, number, user) VALUES (1, 1, 'u')")
    redactor, now = Redactor(), datetime.now(UTC)
    rows = []
    for number in range(TURNS + WARM):
        content = TurnContent.of_turn(said(number), (), lambda _: False, redactor)
        turn = QueuedTurn(place=PLACE, turn=f"t{number}", content=content.text, queued_at=now)
        rows.append({"tenant": 1, "owner": 1} | values_of(turn))

    def insert(number: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(statement, rows[number])
        connection.execute("COMMIT")

    return insert


def timed(call: Callable[[int], object], number: int) -> float:
    """Return the milliseconds of a call."""
    began = time.perf_counter()
    call(number)
    return (time.perf_counter() - began) * 1_000


def measure(folder: Path, where: str) -> None:
    """Measure in a folder, and print the figures."""
    operations, insert = opened(folder), floor(folder / "floor")

    def put(number: int) -> None:
        operations.turns.put(PLACE, f"t{number}", said(number))

    ours, theirs, worked = [], [], []
    for number in range(TURNS + WARM):
        pair = (put, insert) if number % 2 else (insert, put)
        at_work = time.thread_time()
        times = {call: timed(call, number) for call in pair}
        worked.append((time.thread_time() - at_work) * 1_000)
        if number >= WARM:
            ours.append(times[put])
            theirs.append(times[insert])
    for name, values in (("put", ours), ("bare INSERT", theirs)):
        cuts = statistics.quantiles(values, n=20)
        sys.stdout.write(f"{where}: {name}: p50 {statistics.median(values):.3f} ms, p95 {cuts[18]:.3f} ms\n")
    cuts = statistics.quantiles(worked[WARM:], n=20)
    sys.stdout.write(f"{where}: processor time of both: p50 {statistics.median(worked):.3f}, p95 {cuts[18]:.3f} ms\n")
    share = sum(theirs) / sum(ours)
    sys.stdout.write(f"{where}: sustained, one thread: {1_000 * TURNS / sum(ours):,.0f} turns/s, {share:.0%} of bare\n")
    with ThreadPoolExecutor(4) as threads:
        began = time.perf_counter()
        for _ in threads.map(put, range(10_000, 10_000 + TURNS)):
            pass
        rate = TURNS / (time.perf_counter() - began)
    sys.stdout.write(f"{where}: sustained, four threads: {rate:,.0f} turns/s, {rate * sum(theirs) / TURNS / 1e3:.0%}\n")
    is_met = statistics.quantiles(ours, n=20)[18] <= MOST_MS and share >= LEAST_SHARE
    word = "met" if is_met else "missed"
    sys.stdout.write(f"{where}: {word}: at most {MOST_MS} ms p95, at least {LEAST_SHARE:.0%}\n")
    operations.close()


def main() -> None:
    """Measure on the disk, and without one."""
    for where, root in (("disk", None), ("memory", MEMORY)):
        if root is None or root.is_dir():
            with tempfile.TemporaryDirectory(dir=root) as folder:
                measure(Path(folder), where)


if __name__ == "__main__":
    main()
