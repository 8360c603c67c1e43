"""What an adapter adds to a turn of its framework, against what that turn costs without us, in one run.

For each framework the same turn (one tool call, a scripted model that costs nothing) runs with and without us; three
trivial plugins, audit on. Overhead is the difference, and is compared with the framework's own turn. `bare` is the same
turn of our host without any framework: open, one tool result, commit. All three alternate, each turn in a session of
its own; the medians are compared. Background work is drained outside the clock.
"""

import asyncio
import gc
import logging
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Awaitable, Callable
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


async def measure(make: Callable[[], HostHarness]) -> tuple[float, float, float]:
    """Return the median seconds of a turn with us, without us, and of the host alone."""
    ours, plain = make(), make()
    with tempfile.TemporaryDirectory() as folder:
        async with Host({name: Trivial() for name in "abc"}, state_folder=folder) as host:
            await ours.open({name: Trivial() for name in "abc"})
            await plain.open_plain()
            try:
                sides: dict[str, Callable[[list[str]], Awaitable[float]]] = {
                    "ours": lambda sessions: framework_turns(ours, sessions),
                    "plain": lambda sessions: framework_turns(plain, sessions),
                    "own": lambda sessions: own_turns(host, sessions),
                }
                found = await alternate(sides)
            finally:
                await ours.close()
                await plain.close()
    return found["ours"], found["plain"], found["own"]


async def alternate(sides: dict[str, Callable[[list[str]], Awaitable[float]]]) -> dict[str, float]:
    """Return the median of each side, all of them taking turns."""
    samples: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(WARM + ROUNDS):
        gc.collect()
        for name, run in sides.items():
            seconds = await run([f"{name}-{number}-{turn}" for turn in range(TURNS)])
            if number >= WARM:
                samples[name].append(seconds)
    return {name: statistics.median(values) for name, values in samples.items()}


def main() -> int:
    """Measure, print, and return the exit code."""
    from adapters.harnesses import IN_LOOP

    warnings.simplefilter("ignore")  # of the frameworks, about themselves
    logging.disable(logging.WARNING)
    print(f"{ROUNDS} rounds of {TURNS} turns, Python {sys.version.split()[0]}, medians per turn in microseconds:")
    print(f"  {'framework':18} {'without':>9} {'with':>9} {'overhead':>9} {'ratio':>7} {'bare':>7} {'of bare':>8}")
    worst = 0.0
    for make in IN_LOOP:
        ours, plain, own = (each * 1e6 for each in asyncio.run(measure(make)))
        over = ours - plain
        worst = max(worst, over / plain)
        line = f"{plain:9.0f} {ours:9.0f} {over:9.0f} {over / plain:6.2f}x {own:7.0f} {over / own:7.1f}x"
        print(f"  {make.card.host:18} {line}")
    print(f"target: overhead at most {TARGET} x the framework's own turn: {'met' if worst <= TARGET else 'MISSED'}")
    return 0 if worst <= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
