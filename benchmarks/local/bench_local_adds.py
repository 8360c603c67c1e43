"""Measures adding memories, many at once and one at a time, compared with writing as many bytes to the disk.

The memories are those of `bench_local_speed.py`. In bulk, the benchmark adds 20,000 memories in batches of 1,000,
several times, each time to a new store; the best clock time and the best processor time count. Single adds alternate
with the floor: a bare INSERT of a row of the same size into a table without an index, committed with the same settings
(WAL, synchronous FULL). Both share the disk and the load of the machine, so the difference is the cost of the engine.
If the system has a memory-backed folder, a second run there excludes the disk.

    python benchmarks/local/bench_local_adds.py
"""

import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import bench_local_speed as speed
import numpy as np

from beaver_memory.engine import MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.records import NewMemory, Owner
from beaver_memory.views import View

ROWS = 20_000
AT_ONCE = 1_000
BULK_ROUNDS = 5
SINGLE = 1_500
BEFORE = 10_000
OWNER = Owner(user="u")
LEAST = 40_000.0
MOST_MS = 1.0
MOST_RATIO = 1.5
DISK = "disk"
MEMORY = Path("/dev/shm")  # noqa: S108 - the system's folder in memory


def some(count: int, seed: int) -> list[NewMemory]:
    """Return memories of about 200 characters."""
    return [memory for batch in speed.memories(count, seed, OWNER) for memory in batch]


def bulk(table: speed.Table, folder: Path) -> None:
    """Measure adding many at once."""
    made = some(ROWS, 1)
    clock, processor = [], []
    for number in range(BULK_ROUNDS):
        with MemoryEngine.open(folder / str(number)) as engine:
            began, at_work = time.perf_counter(), time.process_time()
            for first in range(0, ROWS, AT_ONCE):
                engine.add(made[first : first + AT_ONCE])
            clock.append(time.perf_counter() - began)
            processor.append(time.process_time() - at_work)
            found = engine.search(
                Query(text=made[-1].title, filters=Filters(view=View(owners=(OWNER,), now=speed.NOW)))
            )
            assert found.hits[0].memory.title == made[-1].title
    table.row(f"bulk, {AT_ONCE:,} at once: best of {BULK_ROUNDS}", ROWS / min(clock), "rows/s")
    table.row("the same, of processor time", ROWS / min(processor), "rows/s", least=LEAST)


@contextmanager
def floor(path: Path) -> Iterator[Callable[[bytes], None]]:
    """Yield a function that stores bytes durably with as little work as possible."""
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "WAL")
    connection.pragma("synchronous", "FULL")
    connection.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, data BLOB)")

    def store(data: bytes) -> None:
        connection.execute("INSERT INTO things (data) VALUES (?)", (data,))

    yield store
    connection.close()


def single(table: speed.Table, folder: Path, where: str) -> None:
    """Measure adding one at a time."""
    made = some(BEFORE + SINGLE, 2)
    size = row_bytes(folder, made[:200])
    with MemoryEngine.open(folder / "single") as engine, floor(folder / "floor.db") as store:
        engine.add(made[:BEFORE])
        ours, bare, processor = [], [], []
        for number, memory in enumerate(made[BEFORE:]):
            # The floor runs twice before every second add, because the speed of some disks alternates with each write.
            bare.extend(timed(lambda: store(os.urandom(size))) for _ in range(number % 2 * 2))
            at_work = time.thread_time()
            ours.append(timed(lambda given=memory: engine.add(given)))  # type: ignore[misc]
            processor.append((time.thread_time() - at_work) * 1e3)
    report(table, where, ours, bare)
    table.row(f"{where}: single add, processor time, p50", float(np.median(processor)), "ms")


def report(table: speed.Table, where: str, ours: list[float], bare: list[float]) -> None:
    """Print the comparison of the adds with the floor. A target that the floor itself misses does not count."""
    middle, high = (np.percentile([ours, bare], rank, axis=1).tolist() for rank in (50, 95))
    table.row(f"{where}: floor, p50", middle[1], "ms")
    table.row(f"{where}: floor, p95", high[1], "ms")
    table.row(f"{where}: single add, p50", middle[0], "ms")
    table.row(f"{where}: single add, p95", high[0], "ms", most=MOST_MS if high[1] <= MOST_MS else None)
    on_disk = where == DISK
    table.row(f"{where}: single add / floor, p50", middle[0] / middle[1], "x", most=MOST_RATIO if on_disk else None)
    table.row(f"{where}: single add / floor, p95", high[0] / high[1], "x")


def row_bytes(folder: Path, made: list[NewMemory]) -> int:
    """Return the number of bytes of a memory's row, without its index entries."""
    with MemoryEngine.open(folder / "sizes") as engine:
        engine.add(made)
    connection = apsw.Connection(str(folder / "sizes" / "memory.db"))
    total = connection.execute("SELECT sum(length(title) + length(terms) + length(hash) + 120) FROM observations").get
    connection.close()
    return int(total) // len(made)


def timed(call: Callable[[], object]) -> float:
    """Return the milliseconds of a call by the clock."""
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e3


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, ", end="")
    print(f"SQLite {apsw.sqlite_lib_version()}")
    table = speed.Table()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        bulk(table, Path(folder))
        single(table, Path(folder), DISK)
    if MEMORY.is_dir():
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            single(table, Path(folder), "memory")
    return int(table.missed > 0)


if __name__ == "__main__":
    sys.exit(main())
