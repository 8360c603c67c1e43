"""Compares this checkout with another one: searches, reads by id and durable adds, in one interleaved run.

Each checkout runs in a process of its own, with the same interpreter and libraries, over its own store of the same
10,000 memories. Both take turns: one measures a few calls, then the other one the same calls, so that the load of the
machine falls on both. A ratio is that of this checkout to the other one: of p50 and p95, by the clock over all calls,
and for the best time of each call by the clock and by the processor, which leaves out most of the load. The processor
time is that of the calling thread.

The target is for words, with vectors (random ones: the model is left out) and for adds: a p95 of at most 1.05 times the
other checkout's in processor time, the figure that other programs change least.

Args: the other checkout: a folder, or a commit of this repository (default: the one before rows had checksums, keys
began with tenants, and open files had leases). Without the history of the repository nothing is compared, and the
benchmark says so.
"""

import contextlib
import importlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

BEFORE = "18592b9"
PARTS = ("hostspecs", "toolkit", "memory")
HERE = Path(__file__).resolve().parents[2]
MEMORIES = 10_000
CALLS = 20
"""Calls of a checkout until it is the other one's turn."""

BLOCKS = 10
"""Different blocks of calls."""

ROUNDS = 15
"""How often each block is measured."""

OPERATIONS = ("words", "vectors", "ten by id", "add")
TARGET = 1.05
TARGETED = frozenset({"words", "vectors", "add"})

Call = Callable[[int], object]


class Checkout:
    """A process that measures the code of one checkout."""

    def __init__(self, root: Path, folder: Path) -> None:
        paths = os.pathsep.join(str(root / part) for part in PARTS)
        self._process = subprocess.Popen(
            [sys.executable, __file__, "worker", str(root), str(folder)],
            env={**os.environ, "PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def measure(self, operation: str, block: int) -> np.ndarray:
        """Return the seconds of the calls of a block, by the clock and of the processor."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(operation, block, file=self._process.stdin, flush=True)
        return np.array(json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@contextlib.contextmanager
def checkout(which: str, folder: Path) -> Iterator[Path | None]:
    """Yield the root of another checkout; `None` if the repository does not have the commit."""
    if Path(which).is_dir():
        yield Path(which).resolve()
        return
    found = subprocess.run(["git", "-C", HERE, "archive", which, *PARTS], capture_output=True, check=False)  # noqa: S607
    if found.returncode:
        yield None
        return
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")
    yield folder


def work(root: Path, folder: Path) -> None:
    """Answer each line `operation block` on the standard input with the seconds of the calls."""
    memory = importlib.import_module("beaver_memory")
    assert Path(str(memory.__file__)).is_relative_to(root), f"{memory.__file__} is not of {root}"
    calls = prepared(folder)
    for line in sys.stdin:
        operation, block = line.rsplit(" ", 1)
        print(json.dumps(measured(calls[operation], int(block) * CALLS)), flush=True)


def measured(call: Call, first: int) -> tuple[list[float], list[float]]:
    """Return the seconds of calls by the clock, and those of the processor."""
    clock, processor = [], []
    for number in range(first, first + CALLS):
        began, at_work = time.perf_counter(), time.thread_time()
        call(number)
        clock.append(time.perf_counter() - began)
        processor.append(time.thread_time() - at_work)
    return clock, processor


def prepared(folder: Path) -> dict[str, Call]:
    """Return the operations to measure, over stores that are filled and warm."""
    import bench_local_speed as speed

    from beaver_memory.engine import MemoryEngine
    from beaver_memory.filters import Filters
    from beaver_memory.query import Query
    from beaver_memory.records import Owner
    from beaver_memory.views import View

    owner = Owner(user="u")
    filters = Filters(view=View(owners=(owner,), now=speed.NOW))
    queries = speed.Words(11).texts(BLOCKS * CALLS, 5)
    plain = MemoryEngine.open(folder / "plain")
    with_vectors = MemoryEngine.open(folder / "vectors", embedder=speed.Vectors())
    for engine in (plain, with_vectors):
        speed.fill(engine, MEMORIES, 1, owner)
        engine.reindex()
    added = MemoryEngine.open(folder / "adds")
    made = [each for batch in speed.memories(BLOCKS * CALLS, 2, owner) for each in batch]
    ids = np.random.default_rng(1).integers(1, MEMORIES + 1, (BLOCKS * CALLS, 10)).tolist()
    calls: dict[str, Call] = {
        "words": lambda number: plain.search(Query(text=queries[number], filters=filters, limit=10)),
        "vectors": lambda number: with_vectors.search(Query(text=queries[number], filters=filters, limit=10)),
        "ten by id": lambda number: plain.get(ids[number], filters),
        "add": lambda number: added.add(made[number]),
    }
    for call in calls.values():
        call(0)
    # A store that adds is a store that is searched.
    added.search(Query(text=queries[0], filters=filters))
    return calls


def compared(operation: str, ours: list[np.ndarray], theirs: list[np.ndarray]) -> bool:
    """Print the ratios of an operation; return whether its target is missed."""
    # Of each side: by round, clock or processor, and call.
    sides = [np.stack(each) for each in (ours, theirs)]
    kinds = ([side[:, 0] for side in sides], *([side[:, kind].min(axis=0) for side in sides] for kind in (0, 1)))
    ratios = [float(np.percentile(kind[0], at) / np.percentile(kind[1], at)) for kind in kinds for at in (50, 95)]
    middle = " / ".join(f"{np.percentile(side, 50) * 1e3:.3f}" for side in kinds[-1])
    missed = operation in TARGETED and ratios[-1] > TARGET
    word = "" if operation not in TARGETED else "MISSED" if missed else "met"
    print(f"{operation:<10} {' '.join(f'{each:>9.3f}' for each in ratios)}   {middle:<15} {word}", flush=True)
    return missed


def main(which: str) -> int:
    """Compare, print, and return 1 if a target is missed."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name, checkout(which, Path(name) / "other") as other:
        if other is None:
            print(f"skipped: this checkout has no history with the commit {which}")
            return 0
        folders = [Path(name) / side for side in ("here", "there")]
        processes = [Checkout(root, folder) for root, folder in zip((HERE, other), folders, strict=True)]
        try:
            return report(processes)
        finally:
            for process in processes:
                process.close()


def report(processes: list[Checkout]) -> int:
    """Measure and print each operation."""
    print(f"{MEMORIES:,} memories, {BLOCKS * CALLS} calls in {ROUNDS} rounds; ratios of this checkout to the other one")
    print(f"{'':<10} {'clock':>19} {'best by clock':>19} {'best by processor':>19}   ms, the best by")
    print(f"{'':<10} {' '.join(['      p50       p95'] * 3)}   processor, p50")
    missed = 0
    for operation in OPERATIONS:
        found: list[list[Any]] = [[], []]
        for number in range(ROUNDS):
            blocks: list[list[np.ndarray]] = [[], []]
            for block in range(BLOCKS):
                # Each side begins as often as the other one.
                for side in (0, 1) if (number + block) % 2 else (1, 0):
                    blocks[side].append(processes[side].measure(operation, block))
            for side in (0, 1):
                found[side].append(np.concatenate(blocks[side], axis=1))
        missed += compared(operation, *found)
    return int(missed > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        work(Path(sys.argv[2]), Path(sys.argv[3]))
        sys.exit(0)
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else BEFORE))
