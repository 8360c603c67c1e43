"""Measures the cost of a whole turn for the caller, compared with a floor in the same run.

The floor runs the same three trivial coroutines under `asyncio.gather` inside one `asyncio.timeout`, once per hook
(before the prompt, one tool result, after the prompt). The other side opens a turn, reports one tool result and
commits, with three plugins and audit on. The caller waits only for the calls that it awaits. The benchmark also
measures the background work, as `drained`.

The audit trail is flushed between the samples, outside the measured time, and must hold every turn at the end. Both
sides alternate in one process for many rounds; the medians are compared.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable

from beaver_hooks import Host
from beaver_hostspecs import hookimpl

ROUNDS = 41
TURNS = 200
TARGET = 2.5


class Trivial:
    """Answers every turn hook with nothing."""

    @hookimpl
    async def before_prompt(self, turn: object) -> None:
        """Recall nothing."""

    @hookimpl
    async def on_tool_result(self, turn: object, result: object) -> None:
        """Learn nothing."""

    @hookimpl
    async def after_prompt(self, turn: object, answer: object) -> None:
        """Keep nothing."""


async def floor(plugins: list[Trivial]) -> float:
    """Return the seconds of the bare calls of one turn."""
    started = time.perf_counter()
    for _ in range(TURNS):
        async with asyncio.timeout(5):
            await asyncio.gather(*[plugin.before_prompt(None) for plugin in plugins])
        async with asyncio.timeout(5):
            await asyncio.gather(*[plugin.on_tool_result(None, None) for plugin in plugins])
        async with asyncio.timeout(5):
            await asyncio.gather(*[plugin.after_prompt(None, None) for plugin in plugins])
    return (time.perf_counter() - started) / TURNS


async def caller(host: Host) -> float:
    """Return the seconds that a caller waits in one turn, without the background work."""
    spent = 0.0
    for _ in range(TURNS):
        started = time.perf_counter()
        turn = await host.open_turn("What did we decide about the database?", session="bench")
        await turn.tool_result(tool="search", call_id="1", output="nothing")
        await turn.commit("We decided to keep it.")
        spent += time.perf_counter() - started
        await host.drain()
    return spent / TURNS


async def drained(host: Host) -> float:
    """Return the seconds of one turn, including its background work."""
    started = time.perf_counter()
    for _ in range(TURNS):
        turn = await host.open_turn("What did we decide about the database?", session="bench")
        await turn.tool_result(tool="search", call_id="1", output="nothing")
        await turn.commit("We decided to keep it.")
        await host.drain()
    return (time.perf_counter() - started) / TURNS


async def main() -> int:
    """Measure, print, and return the exit code."""
    plugins = [Trivial(), Trivial(), Trivial()]
    with tempfile.TemporaryDirectory() as folder:
        async with Host(dict(zip("abc", plugins, strict=True)), state_folder=f"{folder}/state") as host:
            sides: dict[str, Callable[[], Awaitable[float]]] = {
                "floor": lambda: floor(plugins),
                "caller": lambda: caller(host),
                "drained": lambda: drained(host),
            }
            for measure in sides.values():  # warm up
                await measure()
            samples: dict[str, list[float]] = {name: [] for name in sides}
            for _ in range(ROUNDS):
                for name, measure in sides.items():
                    samples[name].append(await measure())
                    # Thousands of turns per second are faster than the disk; each side waits for its own backlog.
                    await asyncio.to_thread(host.trail.flush)
            written = len(host.trail.tail(ROUNDS * TURNS * 4))
            assert written == (ROUNDS + 1) * TURNS * 2, f"the audit trail lost turns: {written}"
            assert host.health()["a"].state == "ok"
    medians = {name: statistics.median(values) * 1e6 for name, values in samples.items()}
    ratio = medians["caller"] / medians["floor"]
    print(f"{ROUNDS} rounds of {TURNS} turns, Python {sys.version.split()[0]}, medians per turn:")
    for name, microseconds in medians.items():
        print(f"  {name:8} {microseconds:8.1f} us   {microseconds / medians['floor']:5.2f} x floor")
    print(f"target: caller at most {TARGET} x floor: {'met' if ratio <= TARGET else 'MISSED'}")
    return 0 if ratio <= TARGET else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
