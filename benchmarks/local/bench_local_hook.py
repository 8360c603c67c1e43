"""Measures the cost of the local memory's hook beyond the engine's search, by words alone.

The engine's side is `search` with the query that recall makes, called in the thread of the loop. The hook's side is
`before_prompt` of the plugin, with gate, thread, references, prompt index and report. Both get the same prompts and
alternate in one process; their order alternates too. The output has the medians by the clock and by the processor time
of all threads, and the differences of the medians.

- new: each prompt has a session of its own, so that recent memories are read each time, and finds memories that no
  turn was given before, so that their statements are parsed.
- topic: one session changes its topic with each prompt, so that each prompt searches; it finds those memories again.
- reuse: one session stays on its topic, so that no prompt searches.

Each case runs twice: with enough memories of the last days to fill the prompt index, and with few of them, so that
memories relevant to the prompt fill the rest. Before them the very first turn of the process is measured, which loads
the vocabularies and the index, and writes none.
"""

import asyncio
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs

from beaver_hooks_local.plugin import Local
from beaver_hooks_local.recall.recaller import LEAST
from beaver_hooks_local.settings import LocalSettings
from beaver_hooks_local.visibility import Visibility
from beaver_hostspecs import Setup, Turn
from beaver_hostspecs.testing import RecordingReport, make_turn
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.engine import MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.records import NewMemory, Owner
from beaver_memory.views import Reach

SIZE = int(os.environ.get("BEAVER_BENCH_SIZE", "10000"))
TURNS = int(os.environ.get("BEAVER_BENCH_TURNS", "400"))
WARM = 40
RECENT = (40, 20)
TARGET_MS = 0.25
PAUSE = 0.002
"""Seconds between calls, in which upkeep stores which memories were recalled."""

VOCABULARY = 8_000
USER = "u"
HITS = 14
"""The number of hits that recall requests by default: eight, and six spare ones for those in the conversation."""


@attrs.define
class Side:
    """Milliseconds of the clock and of the processor, by call."""

    wall: list[float] = attrs.Factory(list)
    processor: list[float] = attrs.Factory(list)

    async def call(self, what: Callable[[], Awaitable[object]]) -> None:
        """Measure a call."""
        at_work, began = time.process_time(), time.perf_counter()
        await what()
        self.wall.append((time.perf_counter() - began) * 1e3)
        self.processor.append((time.process_time() - at_work) * 1e3)
        await asyncio.sleep(PAUSE)

    @property
    def medians(self) -> tuple[float, float]:
        """Return both medians, without the first calls."""
        return statistics.median(self.wall[WARM:]), statistics.median(self.processor[WARM:])


class Texts:
    """Texts with words by Zipf's law."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        made = random.Random(7)
        self._words = [
            "".join(made.choices("abcdefghijklmnopqrstuvwxyz", k=made.randint(4, 9))) for _ in range(VOCABULARY)
        ]
        self._weights = [1 / (number + 40) for number in range(VOCABULARY)]

    def make(self, count: int, length: int) -> list[str]:
        """Return texts of a number of words."""
        return [" ".join(self._random.choices(self._words, self._weights, k=length)) for _ in range(count)]


def fill(engine: MemoryEngine, recent: int) -> None:
    """Add the memories, a number of them from the last days."""
    now = datetime.now(UTC)
    engine.add(
        NewMemory(
            title=text,
            owner=Owner(user=USER),
            session=f"s{number // 20}",
            created_at=now - timedelta(hours=1 if number >= SIZE - recent else 24 * 30, seconds=number),
        )
        for number, text in enumerate(Texts(recent).make(SIZE, 25))
    )


async def compare(plugin: Local, prompts: list[str], session: Callable[[int], str]) -> tuple[Side, Side]:
    """Return the times of engine and hook for the prompts."""
    engine, hook = Side(), Side()
    for number, prompt in enumerate(prompts):
        turn = make_turn(prompt=prompt, session=session(number), user=USER, trust="full")

        async def searched(turn: Turn = turn) -> None:
            plugin.memory.operations.engine.search(_query(plugin, turn))

        async def hooked(turn: Turn = turn) -> None:
            await plugin.before_prompt(turn, RecordingReport())

        sides = [(engine, searched), (hook, hooked)]
        for side, what in sides if number % 2 else reversed(sides):
            await side.call(what)
    return engine, hook


async def _asked(plugin: Local, prompt: str) -> object:
    turn = make_turn(prompt=prompt, session="begun", user=USER, trust="full")
    return await plugin.before_prompt(turn, RecordingReport())


def _query(plugin: Local, turn: Turn) -> Query:
    filters: Filters = Visibility.of_turn(turn, Reach()).filters(plugin.memory.clock.now())
    return Query(text=turn.prompt, filters=filters, limit=HITS, minimum_score=LEAST, explain=True)


def told(what: str, engine: Side | None, hook: Side, target: float | None) -> bool:
    """Print a line; return whether the target is missed."""
    floor = (0.0, 0.0) if engine is None else engine.medians
    wall, processor = (each - below for each, below in zip(hook.medians, floor, strict=True))
    missed = target is not None and processor > target
    verdict = "MISSED" if missed else "met"
    word = "no target" if target is None else f"{verdict} (target {target:g} ms of the processor)"
    print(
        f"{what:<8}{floor[0]:>9.3f}{hook.medians[0]:>9.3f}{wall:>9.3f}   {floor[1]:>9.3f}{hook.medians[1]:>9.3f}"
        f"{processor:>9.3f}   {word}",
        flush=True,
    )
    return missed


async def measured(folder: Path, recent: int) -> int:
    """Measure with a number of memories from the last days; return the number of missed targets."""
    plugin = Local()
    settings = LocalSettings(enabled=True, embedding=EmbeddingSettings(provider="none"))
    plugin.configure(Setup(settings=settings, state_folder=folder, report=RecordingReport()))
    await plugin.start()
    try:
        fill(plugin.memory.operations.engine, recent)
        prompts = Texts(2).make(TURNS + WARM, 7)
        begun = Side()
        await begun.call(lambda: _asked(plugin, "Where do I live?"))
        new = await compare(plugin, prompts, lambda number: f"new-{number}")
        topic = await compare(plugin, prompts, lambda _: "topic")
        reuse = await compare(plugin, [f"{prompts[0]} and" for _ in prompts], lambda _: "reuse")
    finally:
        await plugin.stop()
    first = f"{begun.wall[0]:.1f} ms by the clock, {begun.processor[0]:.1f} of the processor"
    print(f"{recent} memories of the last days; first turn {first}:")
    missed = [told("new", *new, None), told("topic", *topic, TARGET_MS), told("reuse", None, reuse[1], TARGET_MS)]
    return sum(missed)


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; {SIZE:,} memories,")
    print(f"{TURNS} turns each; medians in milliseconds\n")
    print(f"{'':<8}{'clock':^27}   {'processor':^27}\n{'':<8}" + f"{'engine':>9}{'hook':>9}{'more':>9}   " * 2)
    missed = 0
    for recent in RECENT:
        with tempfile.TemporaryDirectory() as folder:
            missed += asyncio.run(measured(Path(folder), recent))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
