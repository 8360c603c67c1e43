"""Measures the cost of the local memory: the time of searching, adding and opening, and the memory, at several sizes.

The memories have about 200 characters of words by Zipf's law, without words that are in every text, and have sessions,
speakers, types and times. The vectors are random, in clusters, and are written directly into the store. The benchmark
measures a new process after a reindex, and also a search after writes by other processes. The times include embedding
the queries with e5-small. Without that model they exclude it, and the table says so. Loading the model has a line of
its own, because `beaver` does it once per process. The table has the clock time and the processor time, which differ
on a machine with other load. The time of the model alone for a question is a reference, because its code never
changes.

    BEAVER_BENCH_SIZES=10000,100000 python benchmarks/local/bench_local_speed.py
"""

import math
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import apsw
import attrs
import numpy as np
from kit_engine import bare_e5_small

from beaver_memory.embedding.protocol import Embedder, Identity
from beaver_memory.engine import INDEXES, MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.query import Answer, Query
from beaver_memory.records import NewMemory, Owner
from beaver_memory.views import View

DIMENSIONS = 384
VOCABULARY = 60_000
QUERIES = 400
ROUNDS = 3
BATCH = 5_000
START = datetime(2025, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 6, 1, tzinfo=UTC)
KEYWORD_MS = {10_000: 0.5, 100_000: 2.5, 1_000_000: 20.0}
HYBRID_MS = {10_000: 5.0, 100_000: 8.0, 1_000_000: 20.0}
RESIDENT_MB = {1_000_000: 600.0}
TIMES_MODEL = {10_000: 1.6, 100_000: 1.9, 1_000_000: 3.5}
"""The 95th percentile of a hybrid search, as a multiple of the model alone for a question."""

OPEN_MS = {100_000: 50.0}
ADD_MS = 1.0
BULK = 40_000.0
SCOPED = 1.3
QUESTIONS = (
    "What did Ann say about the garden last summer?",
    "When is the next release of the parser due?",
    "Which database did we choose for the billing service, and why?",
    "How does Ben like his coffee?",
    "Where did we leave the keys of the old office?",
)
"""The queries to embed. They have real words, because a tokenizer cuts random letters into far more pieces."""

TYPES = ("fact", "discovery", "decision", "preference", "task")
SPEAKERS = ("Ann", "Ben", "Cleo", "Dan", "Eve", "Finn")


class Words:
    """Texts with words by Zipf's law."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
        made = np.random.default_rng(7)
        lengths = made.integers(4, 10, VOCABULARY)
        self._words = ["".join(letters[made.integers(0, 26, length)]) for length in lengths]
        weights = 1 / (np.arange(VOCABULARY) + 40.0)
        self._sums = np.cumsum(weights / weights.sum())

    def texts(self, count: int, length: int) -> list[str]:
        """Return texts of a number of words."""
        drawn = np.searchsorted(self._sums, self._random.random((count, length)))
        words = self._words
        return [" ".join([words[min(place, VOCABULARY - 1)] for place in row]) for row in drawn.tolist()]


class Vectors:
    """An embedder that returns random vectors in clusters, in almost no time."""

    identity = Identity(provider="bench", model="clusters", dimensions=DIMENSIONS)

    def __init__(self, seed: int = 3, real: Embedder | None = None) -> None:
        self._real = real
        self._random = np.random.default_rng(seed)
        self._centres = np.random.default_rng(5).normal(size=(400, DIMENSIONS)).astype("f4")

    def embed_query(self, text: str) -> np.ndarray:
        """Return a vector near one of the clusters; if the real model is installed, run it first."""
        if self._real is not None:
            self._real.embed_query(QUESTIONS[len(text) % len(QUESTIONS)])
        vector: np.ndarray = self.embed_passages([""])[0]
        return vector

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        """Return vectors near clusters."""
        which = self._random.integers(0, len(self._centres), len(texts))
        found = self._centres[which] + 0.9 * self._random.normal(size=(len(texts), DIMENSIONS)).astype("f4")
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        return found.astype("f4")

    def close(self) -> None:
        """Do nothing."""


@attrs.define
class Table:
    """Prints the figures, and counts the missed targets."""

    missed: int = 0

    def row(self, what: str, value: float, unit: str, most: float | None = None, least: float | None = None) -> None:
        """Print a line."""
        word = ""
        if most is not None or least is not None:
            missed = (most is not None and value > most) or (least is not None and value < least)
            self.missed += missed
            target = f"<= {most:g}" if most is not None else f">= {least:g}"
            word = f"{'MISSED' if missed else 'met'} (target {target})"
        print(f"{what:<58} {value:>12,.3f} {unit:<7} {word}", flush=True)


def memories(count: int, seed: int, owner: Owner) -> Iterator[list[NewMemory]]:
    """Return memories in batches."""
    words = Words(seed)
    for first in range(0, count, BATCH):
        texts = words.texts(min(BATCH, count - first), 27)
        yield [
            NewMemory(
                title=text,
                owner=owner,
                session=f"s{(first + place) // 20}",
                speaker=SPEAKERS[(first + place) % len(SPEAKERS)],
                type=TYPES[(first + place) % len(TYPES)],
                created_at=START + timedelta(seconds=15 * (first + place)),
            )
            for place, text in enumerate(texts)
        ]


def fill(engine: MemoryEngine, count: int, seed: int, owner: Owner) -> float:
    """Add memories; return the rows per second through `engine.add`."""
    spent = 0.0
    vectors = Vectors(seed)
    key = vectors.identity.key
    for batch in memories(count, seed, owner):
        began = time.perf_counter()
        ids = engine.add(batch)
        spent += time.perf_counter() - began
        data = vectors.embed_passages([""] * len(batch)).astype("<f2")
        engine.store.put_vectors(owner, key, [(id_, row.tobytes()) for id_, row in zip(ids, data, strict=True)])
    return count / spent


@attrs.frozen
class Spread:
    """Milliseconds as medians over rounds: the median, the 95th percentile, and that percentile of processor time."""

    middle: float
    high: float
    processor: float


def spread_of(call: Callable[[int], object], count: int, rounds: int = ROUNDS) -> Spread:
    """Return the times of a call."""
    found = []
    for _ in range(rounds):
        samples, processor = [], []
        for number in range(count):
            began, at_work = time.perf_counter(), time.thread_time()
            call(number)
            samples.append((time.perf_counter() - began) * 1e3)
            processor.append((time.thread_time() - at_work) * 1e3)
        found.append((statistics.median(samples), np.percentile(samples, 95), np.percentile(processor, 95)))
    return Spread(*(float(statistics.median(each)) for each in zip(*found, strict=True)))


def searches(owner: Owner, seed: int) -> Callable[[MemoryEngine, int], Answer]:
    """Return a search in an engine, by number."""
    queries = Words(seed).texts(QUERIES, 5)
    filters = Filters(view=View(owners=(owner,), now=NOW))

    def search(engine: MemoryEngine, number: int) -> Answer:
        return engine.search(Query(text=queries[number % QUERIES], filters=filters, limit=10))

    return search


def resident_mb() -> tuple[float, float]:
    """Return the megabytes that the process holds now: all of them, and those that are not pages of files."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, float("nan")
    found = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(found["VmRSS"].split()[0]) / 1024, int(found["RssAnon"].split()[0]) / 1024


def opened(folder: Path, *, vectors: bool) -> None:
    """Measure opening, the first search, searching and memory in a new process. Prints `name value` lines."""
    search = searches(Owner(user="u"), 11)
    began = time.perf_counter()
    real = loaded() if vectors else None
    print("loading", (time.perf_counter() - began) * 1e3 if real else float("nan"))
    print("model", embedding_of(real) if real else float("nan"))
    began = time.perf_counter()
    engine = MemoryEngine.open(folder, embedder=Vectors(real=real) if vectors else None)
    assert search(engine, 0).hits
    print("open", (time.perf_counter() - began) * 1e3)
    for number in range(20):
        search(engine, number)
    found = spread_of(partial(search, engine), QUERIES)
    print("p50", found.middle)
    print("p95", found.high)
    print("processor", found.processor)
    print("ratio", times_model(partial(search, engine), real) if real else float("nan"))
    print("resident", resident_mb()[0])
    print("anonymous", resident_mb()[1])
    engine.close()


def in_new_process(folder: Path, *, vectors: bool) -> dict[str, float]:
    """Return the figures that `opened` prints in a process of its own."""
    arguments = [sys.executable, __file__, "opened", str(folder), "1" if vectors else ""]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True)
    return {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}


def loaded() -> Embedder | None:
    """Return the real model, after its first query, if it is installed."""
    real = bare_e5_small()
    if real is not None:
        real.embed_query("warm")
    return real


def embedding_of(real: Embedder) -> float:
    """Return the milliseconds of a model for a question."""
    return spread_of(lambda number: real.embed_query(QUESTIONS[number % len(QUESTIONS)]), 50).middle


def times_model(search: Callable[[int], object], real: Embedder) -> float:
    """Return the 95th percentile of a search as a multiple of the model's median, both in processor time, in turns."""
    ratios = []
    for number in range(ROUNDS):
        alone, whole = [], []
        for place in range(QUERIES):
            began = time.thread_time()
            real.embed_query(QUESTIONS[(place + number) % len(QUESTIONS)])
            between = time.thread_time()
            search(place)
            alone.append(between - began)
            whole.append(time.thread_time() - between)
        ratios.append(float(np.percentile(whole, 95)) / statistics.median(alone))
    return statistics.median(ratios)


def measure(table: Table, folder: Path, size: int) -> None:
    """Measure one size."""
    owner = Owner(user="u")
    search = searches(owner, 11)
    with MemoryEngine.open(folder) as engine:
        table.row(f"{size:,}: bulk add through the engine", fill(engine, size, 1, owner), "rows/s", least=BULK)
        single(table, engine, size, owner)
    shutil.rmtree(folder / INDEXES)
    with MemoryEngine.open(folder) as engine:
        began = time.perf_counter()
        search(engine, 0)
        table.row(f"{size:,}: words: first search without index files", (time.perf_counter() - began) * 1e3, "ms")
    with MemoryEngine.open(folder, embedder=Vectors()) as engine:
        began = time.perf_counter()
        engine.reindex()
        table.row(f"{size:,}: reindex, with vectors", time.perf_counter() - began, "s")
    with MemoryEngine.open(folder) as engine:
        engine.reindex()
    for vectors in (False, True):
        report(table, size, in_new_process(folder, vectors=vectors), vectors=vectors)


def single(table: Table, engine: MemoryEngine, size: int, owner: Owner) -> None:
    """Measure single durable adds, each followed by a search, in which the index adds the new memory."""
    one = iter([memory for batch in memories(2 * ROUNDS * 200, 2, owner) for memory in batch])
    search = searches(owner, 11)
    search(engine, 0)
    adding = spread_of(lambda _: engine.add(next(one)), 200)
    table.row(f"{size:,}: single durable add p50", adding.middle, "ms")
    table.row(f"{size:,}: single durable add p95", adding.high, "ms", most=ADD_MS)
    taking_up = spread_of(lambda number: (engine.add(next(one)), search(engine, number)), 200)
    table.row(f"{size:,}: single durable add and a search, p95", taking_up.high, "ms")
    beside = spread_of(partial(search, engine), 200)
    table.row(f"{size:,}: words: search p95 beside fresh writes", beside.high, "ms")


def report(table: Table, size: int, found: dict[str, float], *, vectors: bool) -> None:
    """Print the figures of a new process."""
    has_model = math.isfinite(found["loading"])
    what = f"{size:,}: words" if not vectors else f"{size:,}: hybrid" + ("" if has_model else ", embedding left out")
    if has_model:
        table.row(f"{what}: loading the model", found["loading"], "ms")
        table.row(f"{what}: the model alone, p50", found["model"], "ms")
    targets = KEYWORD_MS if not vectors else HYBRID_MS if has_model else {}
    table.row(f"{what}: open and first search", found["open"], "ms", most=OPEN_MS.get(size))
    table.row(f"{what}: search p50", found["p50"], "ms")
    table.row(f"{what}: search p95", found["p95"], "ms", most=targets.get(size))
    table.row(f"{what}: search p95, processor time", found["processor"], "ms")
    if has_model:
        most = TIMES_MODEL.get(size)
        table.row(f"{what}: search p95, times the model alone (processor)", found["ratio"], "x", most=most)
    table.row(f"{what}: resident", found["resident"], "MB", most=RESIDENT_MB.get(size))
    table.row(f"{what}: of that no pages of files", found["anonymous"], "MB")


def scoped(table: Table, folder: Path, size: int) -> None:
    """Compare one user's search in a store of many users with the same search in a store of that user only."""
    users = max(10, size // 1_000)
    whose = [Owner(user=f"u{number}") for number in range(users)]
    with MemoryEngine.open(folder / "many") as many, MemoryEngine.open(folder / "alone") as alone:
        for number, owner in enumerate(whose):
            for batch in memories(size // users, 100 + number, owner):
                many.add(batch)
        for batch in memories(size // users, 100, whose[0]):
            alone.add(batch)
        ratios = []
        for _ in range(ROUNDS):
            search = searches(whose[0], 11)
            beside = [spread_of(partial(search, each), QUERIES, 1).processor for each in (alone, many)]
            ratios.append(beside[1] / beside[0])
        what = f"{size:,}: scoped, one of {users:,} users, p95 ratio (processor)"
        table.row(what, statistics.median(ratios), "x", most=SCOPED)


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    sizes = [int(each) for each in os.environ.get("BEAVER_BENCH_SIZES", "10000,100000,1000000").split(",")]
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, numpy {np.__version__},")
    print(f"SQLite {apsw.sqlite_lib_version()}; {QUERIES} queries of 5 words in {ROUNDS} rounds, limit 10")
    bare_e5_small()
    table = Table()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        for size in sizes:
            measure(table, Path(folder) / str(size), size)
            shutil.rmtree(Path(folder) / str(size))
        scoped(table, Path(folder), max(sizes))
    return int(table.missed > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["opened"]:
        opened(Path(sys.argv[2]), vectors=bool(sys.argv[3]))
        sys.exit(0)
    sys.exit(main())
