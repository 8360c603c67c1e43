"""Measures what capture costs the user: the commit of a turn with capture on, against the same host without it.

Two hosts with the same 2,000 memories get the same turns; their order alternates. A commit returns once the turn is in
the queue of the background, and capture works after that. Each turn waits for the background work of the one before.
The output has p50 and p95 of each side, the ratio of the p95 in each round, and the median of the ratios; beside it the
time of the capture itself, which no user waits for.

    python benchmarks/local/bench_local_commit.py
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from kit_score import machine

from beaver_hooks import Host
from beaver_hooks.config import Config
from beaver_hooks.config.model import HostSettings, Memory
from beaver_hooks_local import Local, make_plugin
from beaver_memory.records import NewMemory, Owner
from beaver_memory.runtime.requests import WriteRequest

TURNS = int(os.environ.get("BEAVER_BENCH_TURNS", "300"))
ROUNDS = 5
SIZE = 2_000
WARM = 20
TARGET = 1.1
CITIES = ("Lisbon", "Oslo", "Porto", "Bergen", "Turin", "Graz", "Lyon")


def statement(number: int) -> str:
    """Return a statement that is worth remembering."""
    return (
        f"My colleague number {number} moved to {CITIES[number % len(CITIES)]} in {2000 + number % 26} with two kids."
    )


async def filled(plugin: Local) -> None:
    """Store the same memories on both sides, so that both recall them."""
    memories = [NewMemory(title=statement(-number), owner=Owner(user="ann")) for number in range(1, SIZE + 1)]
    await plugin.serve(lambda memory: memory.operations.write(WriteRequest(memories=memories)), wrote=True)


def host_of(folder: Path, plugin: Local, *, capture: bool) -> Host:
    """Return a host with the local memory alone."""
    section = {
        "enabled": True,
        "embedding": {"provider": "none"},
        "capture": {"enabled": capture, "perDay": 10_000, "minTurnMessages": 2},
    }
    config = Config(host=HostSettings(), memory=Memory(sections={"local": section}))
    return Host({"local": plugin}, config=config, state_folder=folder)


async def turn(host: Host, number: int) -> tuple[float, float]:
    """Run a turn; return the milliseconds of its commit, and those of its background work."""
    prompt = (
        f"My colleague number {number} moved to {CITIES[number % len(CITIES)]} in {2000 + number % 26} with two kids."
    )
    opened = await host.open_turn(prompt, session=f"s{number // 20}", user="ann", trust="full")
    began = time.perf_counter()
    await opened.commit("I see.")
    committed = time.perf_counter()
    await host.drain()
    return (committed - began) * 1e3, (time.perf_counter() - committed) * 1e3


def p95(values: Sequence[float]) -> float:
    """Return the 95th percentile."""
    return statistics.quantiles(values, n=20)[-1]


async def measured() -> int:
    """Measure, print, and return 1 if the target is missed."""
    ratios = []
    print(f"{'round':<8}{'off p50':>10}{'off p95':>10}{'on p50':>10}{'on p95':>10}{'ratio':>8}{'capture p50':>13}")
    with tempfile.TemporaryDirectory() as name:
        async with AsyncExitStack() as stack:
            hosts = []
            for each in (False, True):
                plugin = make_plugin()
                hosts.append(await stack.enter_async_context(host_of(Path(name) / str(each), plugin, capture=each)))
                await filled(plugin)
            number = 0
            for nth in range(ROUNDS):
                sides: tuple[list[float], list[float]] = ([], [])
                later: list[float] = []
                for place in range(TURNS + WARM):
                    number += 1
                    for side in (0, 1) if place % 2 else (1, 0):
                        spent, after = await turn(hosts[side], number)
                        if place >= WARM:
                            sides[side].append(spent)
                            if side:
                                later.append(after)
                ratios.append(p95(sides[1]) / p95(sides[0]))
                cells = [f(side) for side in sides for f in (statistics.median, p95)]
                shown = "".join(f"{value:>10.3f}" for value in cells)
                print(f"{nth + 1:<8}{shown}{ratios[-1]:>8.2f}{statistics.median(later):>13.2f}", flush=True)
    found = statistics.median(ratios)
    print(f"median of the ratios of p95: {found:.2f} ({'met' if found <= TARGET else 'MISSED'}, target <= {TARGET})")
    return int(found > TARGET)


def main() -> int:
    """Run the measurement."""
    print(machine("apsw", "beaver-hooks-local"), f"{ROUNDS} rounds of {TURNS} turns; milliseconds")
    return asyncio.run(measured())


if __name__ == "__main__":
    sys.exit(main())
