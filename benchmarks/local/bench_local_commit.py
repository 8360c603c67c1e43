"""Measures what capture costs the user: the commit of a turn with capture on, against the same host without it.

Three hosts with the same 2,000 memories get the same turns in one process: two without capture, and one with it. The
two without show the noise of the machine: on a quiet one their ratio is 1. The hosts take blocks of turns in an order
that changes, so what a capture disturbs are the turns of its own host. A commit returns once the turn is in the queue
of the background, and capture works after that. The output has p50 and p95 of the commit: as it passes, and as
processor time of the thread that commits, which other programs do not disturb.

1. `read`: the user reads the answer before the next turn, so capture has ended by then. The target is of this part.
2. `at once`: the next turn begins before capture has ended, as on a server with many sessions. Threads of one process
   share the interpreter's lock, so a commit may wait for a step of a capture.

The time that passes is judged only if the two hosts without capture agree within the target.

    python benchmarks/local/bench_local_commit.py
"""

import asyncio
import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import attrs
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
BLOCK = 20
"""Turns that a host takes before the next host."""

WARM = 3
"""Turns at the begin of a block that do not count."""
TARGET = 1.1
SIDES = ("off", "off again", "on")
CITIES = ("Lisbon", "Oslo", "Porto", "Bergen", "Turin", "Graz", "Lyon")


@attrs.frozen
class Commit:
    """The milliseconds of one commit: as they pass, and of the processor."""

    wall: float
    processor: float


def statement(number: int) -> str:
    """Return a statement that is worth remembering."""
    return (
        f"My colleague number {number} moved to {CITIES[number % len(CITIES)]} in {2000 + number % 26} with two kids."
    )


async def filled(plugin: Local) -> None:
    """Store the same memories on each side, so that each recalls them."""
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


async def turn(host: Host, number: int) -> Commit:
    """Run a turn; return what its commit took."""
    opened = await host.open_turn(statement(number), session=f"s{number // 20}", user="ann", trust="full")
    processor, began = time.thread_time(), time.perf_counter()
    await opened.commit("I see.")
    ended, after = time.perf_counter(), time.thread_time()
    return Commit((ended - began) * 1e3, (after - processor) * 1e3)


async def round_of(hosts: Sequence[Host], begin: int, *, read: bool) -> list[list[Commit]]:
    """Return the commits of each host in a round of turns."""
    found: list[list[Commit]] = [[] for _ in hosts]
    for block in range(TURNS // BLOCK):
        for step in range(len(hosts)):
            side = (block + step) % len(hosts)
            for place in range(WARM + BLOCK):
                commit = await turn(hosts[side], begin + block * (WARM + BLOCK) + place)
                if read:
                    await hosts[side].drain()
                if place >= WARM:
                    found[side].append(commit)
            await hosts[side].drain()
    return found


def p95(values: Sequence[float]) -> float:
    """Return the 95th percentile."""
    return statistics.quantiles(values, n=20)[-1]


def ratios(rounds: Sequence[Sequence[Sequence[Commit]]], kind: str) -> tuple[float, float]:
    """Return the medians over the rounds of two ratios of p95: off again to off, and on to both of them together."""
    noise, cost = [], []
    for each in rounds:
        first, again, on = ([getattr(commit, kind) for commit in side] for side in each)
        noise.append(p95(again) / p95(first))
        cost.append(p95(on) / p95([*first, *again]))
    return statistics.median(noise), statistics.median(cost)


def told(title: str, rounds: Sequence[Sequence[Sequence[Commit]]]) -> bool:
    """Print the figures of a part; return whether they meet the target."""
    print(f"\n{title}\n{'':<12}{'p50':>10}{'p95':>10}{'cpu p50':>10}{'cpu p95':>10}")
    for side, name in enumerate(SIDES):
        commits = [commit for each in rounds for commit in each[side]]
        columns = [[getattr(commit, kind) for commit in commits] for kind in ("wall", "processor")]
        print(f"{name:<12}" + "".join(f"{f(column):>10.3f}" for column in columns for f in (statistics.median, p95)))
    met = True
    for kind in ("wall", "processor"):
        noise, cost = ratios(rounds, kind)
        quiet = 1 / TARGET <= noise <= TARGET
        verdict = "met" if cost <= TARGET else "MISSED" if quiet else "not shown, the machine is too noisy"
        met = met and verdict != "MISSED"
        print(
            f"{kind}: ratio of p95, off again to off {noise:.2f}, on to off {cost:.2f} (target <= {TARGET}: {verdict})"
        )
    return met


async def measured() -> int:
    """Measure, print, and return 1 if the target is missed."""
    with tempfile.TemporaryDirectory() as name:
        async with AsyncExitStack() as stack:
            hosts = []
            for side in SIDES:
                plugin = make_plugin()
                host = host_of(Path(name) / side.replace(" ", "-"), plugin, capture=side == "on")
                hosts.append(await stack.enter_async_context(host))
                await filled(plugin)
            gc.freeze()  # The objects of three hosts in one process would make each collection longer.
            number = iter(range(1, 2 * ROUNDS + 1))
            parts = [
                [await round_of(hosts, next(number) * 10_000, read=read) for _ in range(ROUNDS)]
                for read in (True, False)
            ]
    met = told("read: capture has ended before the next turn; milliseconds", parts[0])
    told("at once: the next turn begins during capture; milliseconds (for information)", parts[1])
    return int(not met)


def main() -> int:
    """Run the measurement."""
    print(machine("apsw", "beaver-hooks-local"), f"{ROUNDS} rounds of {TURNS} turns")
    return asyncio.run(measured())


if __name__ == "__main__":
    sys.exit(main())
