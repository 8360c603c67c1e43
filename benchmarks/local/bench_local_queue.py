"""Measures durable writes: how long a committed turn takes to be accepted, and how fast memories are added.

A turn has a prompt of 200 characters and an answer of 800. `put` is what `after_prompt` waits for: redaction, the
statements of the prompt, and one durable row. It alternates with the floor, a bare INSERT of the same row into the same
table of another database, committed with the same settings (WAL, synchronous FULL), so both share the disk and the load
of the machine.

Batches have 100 memories, with 28 words, two tags and a person each, added in one transaction and taken by the word
index in a second one. The floor inserts the same rows, read from our database before, into each table of another
database with the same indexes, and fills the same FTS5 table, with bare apsw and the same settings and transactions.

The processor time is that of the calling thread, the figure that other programs change least.

    python benchmarks/local/bench_local_queue.py
"""

import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import apsw

from beaver_hostspecs.testing import RecordingReport
from beaver_memory.capture.records import Utterance
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.filters import Filters
from beaver_memory.patterns import Pattern
from beaver_memory.records import NewMemory, Owner, QueuedSession
from beaver_memory.runtime.factory import open_engine
from beaver_memory.runtime.operations import Operations
from beaver_memory.runtime.profile import Profile, RuntimeServices, SqliteLocation
from beaver_memory.runtime.turn_captures import TurnContent
from beaver_memory.store.queries import queries_of
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.store.turn_queue import QueuedTurn, values_of
from beaver_memory.views import View
from beaver_toolkit.redaction.redactor import Redactor
from beaver_toolkit.sqlite.connections import make_durable

TURNS = 1_500
WARM = 100
MOST_MS = 1.0
LEAST_SHARE = 0.5
BATCHES, BATCH = 60, 100
WARM_BATCHES = 5
TABLES = ("observations", "observation_labels", "unembedded")
MEMORY = Path("/dev/shm")  # noqa: S108 - the system's folder in memory
USER = Owner(user="u")
PLACE = QueuedSession(owner=USER, session="s")
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


def bare(folder: Path) -> apsw.Connection:
    """Return a bare connection to a store of its own, with one owner."""
    folder.mkdir()
    SqliteStore.open(folder / "memory.db").close()
    connection = apsw.Connection(str(folder / "memory.db"))
    make_durable(connection, secure_delete=True)
    connection.execute("INSERT INTO tenants (number, name) VALUES (1, '')")
    connection.execute("INSERT INTO owners (tenant, number, kind, user) VALUES (1, 1, 'user', 'u')")
    return connection


def bare_turns(folder: Path) -> Callable[[int], None]:
    """Return what inserts the row of a turn, prepared before."""
    connection, statement = bare(folder), queries_of("sqlite", "turn_queue")["put"]
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


class BareBatches:
    """Inserts the rows of batches that another database holds."""

    def __init__(self, source: Path, folder: Path) -> None:
        self._source, self._connection = apsw.Connection(str(source)), bare(folder)
        self._sql = queries_of("sqlite", "word_index")
        self._rows: dict[str, list[tuple[object, ...]]] = {}

    def read(self, number: int) -> None:
        """Read the rows of a batch, with all their columns."""
        for table in TABLES:
            name = "id" if table == "observations" else "memory"
            query = f"SELECT * FROM {table} WHERE {name} BETWEEN ? AND ?"  # noqa: S608 - names of tables
            self._rows[table] = self._source.execute(query, _ids(number)).fetchall()

    def insert(self, number: int) -> None:
        """Insert the rows that were read, and put them into the word index."""
        self._connection.execute("BEGIN IMMEDIATE")
        for table, rows in self._rows.items():
            if rows:
                values = ",".join("?" * len(rows[0]))
                self._connection.executemany(f"INSERT INTO {table} VALUES ({values})", rows)  # noqa: S608 - as above
        self._connection.execute("COMMIT")
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute(self._sql["set_last_indexed"], (_ids(number)[1],))
        self._connection.execute(self._sql["add_rows"], _ids(number))
        self._connection.execute("COMMIT")


class Times:
    """Milliseconds of calls by name: by the clock, and of the processor."""

    def __init__(self) -> None:
        self._all = defaultdict[str, list[tuple[float, float]]](list)

    def measure(self, name: str, call: Callable[[int], object], number: int) -> None:
        """Call, and keep the times."""
        began, worked = time.perf_counter(), time.thread_time()
        call(number)
        worked, clock = time.thread_time() - worked, time.perf_counter() - began
        self._all[name].append((clock * 1_000, worked * 1_000))

    def forget(self) -> None:
        """Leave out the calls so far."""
        self._all.clear()

    def of(self, name: str, kind: str, part: int) -> float:
        """Return a percentile of the `clock` or of the `processor`."""
        values = [each[kind == "processor"] for each in self._all[name]]
        return statistics.quantiles(values, n=100)[part - 1]


def accepted(folder: Path, where: str) -> bool:
    """Measure how turns are accepted, and print the figures; return whether the target is met."""
    operations, insert, times = opened(folder), bare_turns(folder / "turns"), Times()
    calls = {"put": lambda number: operations.turns.put(PLACE, f"t{number}", said(number)), "bare INSERT": insert}
    for number in range(TURNS + WARM):
        for name in sorted(calls, reverse=number % 2 == 0):
            times.measure(name, calls[name], number)
        if number == WARM:
            times.forget()
    operations.close()
    for name in calls:
        told(where, name, times, "ms a turn", 1)
    return times.of("put", "clock", 95) <= MOST_MS


def batched(folder: Path, where: str) -> bool:
    """Measure batches of memories, and print the figures; return whether the target is met."""
    operations, chance, times = opened(folder), random.Random(18), Times()
    floor, seen = (
        BareBatches(folder / "memory.db", folder / "batches"),
        Filters(view=View(owners=(USER,), now=datetime.now(UTC))),
    )
    batches = [[memory(number * BATCH + each, chance) for each in range(BATCH)] for number in range(BATCHES)]

    def add(number: int) -> None:
        operations.engine.add(batches[number])
        # A question by words brings the word index up to date.
        operations.engine.store.matching([Pattern(text="nothing")], seen, limit=1)

    for number in range(BATCHES):
        times.measure("add", add, number)
        floor.read(number)
        times.measure("bare INSERTs", floor.insert, number)
        if number == WARM_BATCHES:
            times.forget()
    operations.close()
    for name in ("add", "bare INSERTs"):
        told(where, name, times, "us a memory", 1_000 / BATCH)
    shares = {kind: times.of("bare INSERTs", kind, 50) / times.of("add", kind, 50) for kind in ("clock", "processor")}
    sys.stdout.write(f"{where}: share of bare: {shares['clock']:.0%}, of processor time {shares['processor']:.0%}\n")
    return shares["clock"] >= LEAST_SHARE


def memory(number: int, chance: random.Random) -> NewMemory:
    """Return a memory like those of a capture."""
    text = " ".join(chance.choices((PROMPT + ANSWER).split(), k=28))
    return NewMemory(
        title=f"{number} {text}.",
        owner=USER,
        session="s",
        tags=("ops", f"t{number % 7}"),
        related_people=("Anna",),
        source="auto_capture",
        origin=f"turn-{number}",
        evidence=text,
    )


def told(where: str, name: str, times: Times, unit: str, factor: float) -> None:
    """Print the times of one name."""
    found = [times.of(name, kind, part) * factor for kind in ("clock", "processor") for part in (50, 95)]
    sys.stdout.write(
        f"{where}: {name}: p50 {found[0]:.3f}, p95 {found[1]:.3f} {unit};"
        f" processor p50 {found[2]:.3f}, p95 {found[3]:.3f}\n"
    )


def _ids(number: int) -> tuple[int, int]:
    return number * BATCH + 1, (number + 1) * BATCH


def main() -> None:
    """Measure on the disk, and without one."""
    for where, root in (("disk", None), ("memory", MEMORY)):
        if root is None or root.is_dir():
            for part, most in ((accepted, f"at most {MOST_MS} ms p95"), (batched, f"at least {LEAST_SHARE:.0%}")):
                with tempfile.TemporaryDirectory(dir=root) as folder:
                    word = "met" if part(Path(folder), where) else "missed"
                    sys.stdout.write(f"{where}: {word}: {most}\n")


if __name__ == "__main__":
    main()
