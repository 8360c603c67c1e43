"""Measures the cost that an adapter adds to a turn of its framework, compared with the turn without the host.

For each framework the same turn (one tool call, a scripted model that takes almost no time) runs without a host, with
a `Host` in the same event loop, and with a `SyncHost`. The host has three trivial plugins, and audit is on. Overhead
is the difference, as a multiple of the framework's own turn. `bare` is the same turn of the host without a framework:
open, one tool result, commit. All of them alternate, each turn in a session of its own; the medians are compared.
Background work is not timed.

`BEAVER_ADAPTER_ROUNDS` sets the number of rounds. The figures are then printed and not compared with the target: a
short run on a busy machine only shows that the benchmark works.
"""

import asyncio
import gc
import logging
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "benchmarks")]

from bench_turn import Trivial  # noqa: E402 - found by the path above

from beaver_hooks import Host  # noqa: E402
from beaver_hostspecs.conformance import ECHO, Ask, CallTool, HostHarness, Say  # noqa: E402

ROUNDS = 31
TURNS = 10
WARM = 5
TARGET = 2.0
PROMPT, ANSWER = "What did we decide about the database?", "We decided to keep it."

Make = Callable[[], HostHarness]


def ask(session: str) -> Ask:
    """Return a prompt with one tool call in it."""
    return Ask(prompt=PROMPT, session=session, steps=(CallTool(tool=ECHO, arguments={"text": "x"}), Say(text=ANSWER)))


async def framework_turns(harness: HostHarness, sessions: list[str]) -> float:
    """Return the seconds of one turn of the framework."""
    spent = 0.0
    for session in sessions:
        started = time.perf_counter()
        await harness.run(ask(session))
        spent += time.perf_counter() - started
        harness.calls.clear()  # type: ignore[attr-defined]
        if getattr(harness, "host", None) is not None:
            await harness.settle()
    return spent / len(sessions)


async def own_turns(host: Host, sessions: list[str]) -> float:
    """Return the seconds of one turn of the host alone."""
    spent = 0.0
    for session in sessions:
        started = time.perf_counter()
        turn = await host.open_turn(PROMPT, session=session, user="user-1")
        turn.system_prompt("base")
        await turn.tool_result(tool=ECHO, call_id="call-1", arguments={"text": "x"}, output="x")
        await turn.commit(ANSWER)
        spent += time.perf_counter() - started
        await host.drain()
    return spent / len(sessions)


async def measure(in_loop: Make, in_thread: Make, rounds: int) -> dict[str, float]:
    """Return the median seconds of a turn with a `Host`, with a `SyncHost`, without a host, and of the host alone."""
    harnesses = {"plain": in_loop(), "host": in_loop(), "sync": in_thread()}
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            own = await stack.enter_async_context(Host(plugins(), state_folder=folder))
            for name, harness in harnesses.items():
                stack.push_async_callback(harness.close)
                await (harness.open_plain() if name == "plain" else harness.open(plugins()))
            sides: dict[str, Callable[[list[str]], Awaitable[float]]] = {
                name: lambda sessions, harness=harness: framework_turns(harness, sessions)
                for name, harness in harnesses.items()
            }
            return await alternate({**sides, "own": lambda sessions: own_turns(own, sessions)}, rounds)


def plugins() -> dict[str, object]:
    """Return three trivial plugins."""
    return {name: Trivial() for name in "abc"}


async def alternate(sides: dict[str, Callable[[list[str]], Awaitable[float]]], rounds: int) -> dict[str, float]:
    """Return the median of each side; the sides alternate."""
    samples: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(WARM + rounds):
        gc.collect()
        for name, run in sides.items():
            seconds = await run([f"{name}-{number}-{turn}" for turn in range(TURNS)])
            if number >= WARM:
                samples[name].append(seconds)
    return {name: statistics.median(values) for name, values in samples.items()}


def main() -> int:
    """Measure, print, and return the exit code."""
    from adapters.harnesses import IN_LOOP, IN_THREAD

    warnings.simplefilter("ignore")  # of the frameworks about their own code
    logging.disable(logging.WARNING)
    short = os.environ.get("BEAVER_ADAPTER_ROUNDS")
    rounds = int(short) if short else ROUNDS
    print(f"{rounds} rounds of {TURNS} turns, Python {sys.version.split()[0]}, medians per turn in microseconds:")
    print(f"  {'framework':18} {'without':>8} {'Host':>8} {'overhead':>9} {'SyncHost':>9} {'overhead':>9} {'bare':>7}")
    worst = {"host": 0.0, "sync": 0.0}
    for in_loop, in_thread in zip(IN_LOOP, IN_THREAD, strict=True):
        found = asyncio.run(measure(in_loop, in_thread, rounds))
        over = {name: found[name] / found["plain"] - 1 for name in worst}
        worst = {name: max(worst[name], over[name]) for name in worst}
        plain, host, sync, own = (found[name] * 1e6 for name in ("plain", "host", "sync", "own"))
        line = f"{plain:8.0f} {host:8.0f} {over['host']:8.2f}x {sync:9.0f} {over['sync']:8.2f}x {own:7.0f}"
        print(f"  {in_loop.card.host:18} {line}")
    if short:
        print("a short run: nothing is judged")
        return 0
    print(f"target: overhead at most {TARGET} x the framework's own turn")
    for name, label in (("host", "Host"), ("sync", "SyncHost")):
        print(f"  {label:18} {worst[name]:.2f}x at worst, {'met' if worst[name] <= TARGET else 'MISSED'}")
    return 0 if max(worst.values()) <= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
