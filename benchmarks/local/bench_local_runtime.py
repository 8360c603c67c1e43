"""Compares a recall through `MemoryRuntime` with the engine's own search, by words alone.

Engine: `search`, blocking, in a thread of the same workers, because no event loop may call it directly. Runtime:
`recall`. Both get the same queries and alternate in one process; the order alternates too. The ratio is of the medians.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from bench_local_hook import USER, Texts, fill

from beaver_hostspecs.testing import RecordingReport
from beaver_memory import MemoryRuntime
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.records import Owner
from beaver_memory.runtime.operations import FITS
from beaver_memory.runtime.profile import Profile, RuntimeServices, SqliteLocation
from beaver_memory.runtime.requests import RecallRequest
from beaver_toolkit.workers import Workers

QUERIES = int(os.environ.get("BEAVER_BENCH_TURNS", "400"))
WARM = 40
TARGET = 1.05


async def timed(call: Callable[[], Awaitable[object]]) -> float:
    """Return the milliseconds of a call."""
    began = time.perf_counter()
    await call()
    return (time.perf_counter() - began) * 1e3


async def compare(runtime: MemoryRuntime, visible: Filters) -> tuple[float, float]:
    """Return the median milliseconds of the engine and of the runtime."""
    engine, workers = runtime.operations.engine, Workers("bench")
    times: tuple[list[float], list[float]] = ([], [])
    for number, text in enumerate(Texts(2).make(QUERIES, 6)):
        query = Query(text=text, filters=visible, minimum_score=FITS)
        request = RecallRequest(query=text, visible=visible)
        calls = [
            (times[0], partial(workers.run, partial(engine.search, query))),
            (times[1], partial(runtime.recall, request)),
        ]
        for found, call in calls if number % 2 else reversed(calls):
            found.append(await timed(call))
    workers.shut()
    return statistics.median(times[0][WARM:]), statistics.median(times[1][WARM:])


async def main() -> int:
    """Print the ratio; return 1 if the target is missed."""
    with tempfile.TemporaryDirectory() as folder:
        runtime = await MemoryRuntime.open(
            Profile(embedding=EmbeddingSettings(provider="none")),
            SqliteLocation(state_folder=Path(folder)),
            RuntimeServices(report=RecordingReport()),
        )
        await runtime.run(lambda operations: fill(operations.engine, 0))
        engine, recall = await compare(runtime, Filters(owners=(Owner(user=USER),), now=datetime.now(UTC)))
        await runtime.close()
    ratio = recall / engine
    print(f"engine {engine:.3f} ms  runtime {recall:.3f} ms  ratio {ratio:.3f}  target {TARGET:g}"
          f"  {'MISSED' if ratio > TARGET else 'met'}")  # fmt: skip
    return int(ratio > TARGET)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
