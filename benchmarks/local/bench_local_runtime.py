"""Compares a recall through `MemoryRuntime`, and by name through its dispatcher, with the engine's own search.

Engine: `search`, blocking, in a thread of the same workers, because no event loop may call it directly. Runtime:
`recall`. Dispatch: the same by name, with plain data in and out. All get the same queries, by words alone, and they
alternate in one process; their order rotates. The ratios are of the medians.

Then the longest gap of the event loop while 10,000 wrong memories are decoded, beside the gap while another thread
computes anything: two threads of Python share one lock, and a loaded machine lengthens both.
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
from beaver_memory.dispatch.dispatcher import Dispatcher
from beaver_memory.dispatch.envelopes import RequestEnvelope, Source
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.records import Owner
from beaver_memory.runtime.operations import FITS
from beaver_memory.runtime.profile import Profile, RuntimeServices, SqliteLocation
from beaver_memory.runtime.requests import RecallRequest
from beaver_memory.runtime.table import Caller
from beaver_memory.views import View
from beaver_toolkit.workers import Workers

QUERIES = int(os.environ.get("BEAVER_BENCH_TURNS", "400"))
WARM = 40
TARGET = 1.05
WRONG = 10_000
COUNTED = 1_000_000


async def timed(call: Callable[[], Awaitable[object]]) -> float:
    """Return the milliseconds of a call."""
    began = time.perf_counter()
    await call()
    return (time.perf_counter() - began) * 1e3


async def compare(runtime: MemoryRuntime, visible: Filters) -> list[float]:
    """Return the median milliseconds of the engine, of the runtime, and of the dispatcher."""
    engine, workers, dispatcher = runtime.operations.engine, Workers("bench"), Dispatcher(runtime)
    times: tuple[list[float], ...] = ([], [], [])
    for number, text in enumerate(Texts(2).make(QUERIES, 6)):
        query = Query(text=text, filters=visible, minimum_score=FITS)
        calls: list[tuple[list[float], Callable[[], Awaitable[object]]]] = [
            (times[0], partial(workers.run, partial(engine.search, query))),
            (times[1], partial(runtime.recall, RecallRequest(query=text, visible=visible))),
            (times[2], partial(dispatcher.dispatch, named("recall", {"query": text}, visible))),
        ]
        first = number % len(calls)
        for found, call in calls[first:] + calls[:first]:
            found.append(await timed(call))
    workers.shut()
    return [statistics.median(each[WARM:]) for each in times]


def named(operation: str, body: dict[str, object], visible: Filters) -> RequestEnvelope:
    """Return a request by name of the owner."""
    source = Source(caller=Caller.OWNER, visible=visible, own=visible, owner=visible.view.owner)
    return RequestEnvelope(operation=operation, request=body, source=source)


async def gaps(runtime: MemoryRuntime, visible: Filters) -> tuple[float, float]:
    """Return the longest gap of the loop in ms, while a thread counts and while wrong memories are decoded."""
    wrong = named("write", {"memories": [{"title": 5, "tags": [1, 2], "scope": "?"}] * WRONG}, visible)
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(9):
        found[0].append(await longest_gap(asyncio.to_thread(sum, (1 for _ in range(COUNTED)))))
        found[1].append(await longest_gap(Dispatcher(runtime).dispatch(wrong)))
    return statistics.median(found[0]), statistics.median(found[1])


async def longest_gap(work: Awaitable[object]) -> float:
    """Return the longest time in milliseconds for which the loop did not run a task that is always ready."""
    task, longest, last = asyncio.ensure_future(work), 0.0, time.perf_counter()
    while not task.done():
        await asyncio.sleep(0)
        longest, last = max(longest, time.perf_counter() - last), time.perf_counter()
    return longest * 1e3


async def main() -> int:
    """Print the ratios and the gaps; return 1 if the target is missed."""
    with tempfile.TemporaryDirectory() as folder:
        runtime = await MemoryRuntime.open(
            Profile(embedding=EmbeddingSettings(provider="none")),
            SqliteLocation(state_folder=Path(folder)),
            RuntimeServices(report=RecordingReport()),
        )
        await runtime.run(lambda operations: fill(operations.engine, 0))
        visible = Filters(view=View(owners=(Owner(user=USER),), now=datetime.now(UTC)))
        engine, recall, dispatched = await compare(runtime, visible)
        counting, decoding = await gaps(runtime, visible)
        await runtime.close()
    ratio = recall / engine
    print(f"engine {engine:.3f} ms  runtime {recall:.3f} ms  ratio {ratio:.3f}  target {TARGET:g}"
          f"  {'MISSED' if ratio > TARGET else 'met'}")  # fmt: skip
    print(f"dispatch {dispatched:.3f} ms  ratio {dispatched / engine:.3f}")
    print(f"longest gap of the loop, median of 9: {counting:.1f} ms while another thread counts,"
          f" {decoding:.1f} ms while {WRONG:,} wrong memories are decoded")  # fmt: skip
    return int(ratio > TARGET)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
