"""Checks that 10,000 opened and abandoned turns do not leak: compares the memory after 2,000 turns and after all.

Every turn has a session of its own. Its references are rendered and passed to `was_injected` (so that fingerprints
exist), and it gets one tool result. A frozen clock moves ten seconds per turn, so that the turns of one hour are open
at any time. The host reaches all of its limits by turn 2,000, so it must hold the same number of objects at turn
10,000.
"""

import asyncio
import gc
import sys
import tempfile
import tracemalloc
from collections import Counter

from beaver_hooks import Host, OpenTurn
from beaver_hooks.plugins.hook_calls import Call
from beaver_hooks.receipts.receipt_builder import ReceiptBuilder
from beaver_hooks.turns.backlog import Job
from beaver_hostspecs import Contribution, Reference, Turn, hookimpl
from beaver_hostspecs.testing import FrozenClock

EARLY = 2_000
TURNS = 10_000
BETWEEN = 10.0
KINDS = (OpenTurn, ReceiptBuilder, Turn, Call, Job)
TOLERANCE_KIB = 64.0
"""KiB that may differ between two measurements without a leak: caches of the interpreter, and sizes of dicts."""


class Generous:
    """Contributes to every turn, and stores nothing."""

    @hookimpl
    async def before_prompt(self, turn: Turn) -> Contribution:
        """Recall a text that differs in every turn."""
        turn.was_injected("The map of Ulm hangs in the hall, between the two windows of the north wall.")
        text = f"In turn {turn.id} the map of Ulm hung in the hall, between the two windows of the north wall."
        return Contribution(blocks=("Be brief.",), references=(Reference(text=text, id="r1"),))

    @hookimpl
    async def on_tool_result(self, turn: Turn, result: object) -> None:
        """Learn nothing."""

    @hookimpl
    async def on_turn_dropped(self, turn: Turn, reason: object) -> None:
        """Forget nothing."""


async def abandon(host: Host, clock: FrozenClock, first: int, last: int) -> None:
    """Open turns and close none of them."""
    for number in range(first, last):
        turn = await host.open_turn("Where is the map?", session=f"session-{number}")
        assert turn.references
        turn.turn.was_injected(turn.references[0].text)
        await turn.tool_result(tool="search", call_id="1", output="a note")
        clock.advance(BETWEEN)
        if number % 100 == 0:
            await host.drain()
            await asyncio.to_thread(host.trail.flush)
    await host.drain()
    await asyncio.to_thread(host.trail.flush)


def held(host: Host) -> dict[str, int]:
    """Return the number of objects of each type."""
    engine = host._running()  # noqa: SLF001 - the benchmark counts internal objects
    gc.collect()
    kinds = Counter(type(each) for each in gc.get_objects())
    return {
        "open turns": len(engine.turns.open_turns),
        "sessions with fingerprints": len(engine.turns.injected),
        "queued calls": len(engine.background.backlog),
        "running calls": len(engine.calls.running),
        "abandoned calls": len(engine.calls.abandoned),
        "tasks": len(asyncio.all_tasks()),
        **{f"{kind.__name__} objects": kinds[kind] for kind in KINDS},
        "objects of any type": sum(kinds.values()),
    }


async def look(host: Host) -> tuple[dict[str, int], float]:
    """Return the counts of `held`, and the KiB that Python has allocated."""
    counts = held(host)
    return counts, tracemalloc.get_traced_memory()[0] / 1024


async def main() -> int:
    """Measure, print, and return the exit code."""
    clock = FrozenClock()
    with tempfile.TemporaryDirectory() as folder:
        async with Host({"generous": Generous()}, state_folder=f"{folder}/state", clock=clock) as host:
            await abandon(host, clock, 0, 200)
            tracemalloc.start()
            await abandon(host, clock, 200, EARLY)
            early, early_kib = await look(host)
            await abandon(host, clock, EARLY, TURNS)
            late, late_kib = await look(host)
            tracemalloc.stop()
            assert host.health()["generous"].state == "ok"
    print(f"{TURNS} opened and abandoned turns, {sys.version.split()[0]}:")
    print(f"{'':28}{f'after {EARLY}':>14}{f'after {TURNS}':>14}")
    for name, count in early.items():
        print(f"  {name:26}{count:14}{late[name]:14}")
    print(f"  {'KiB since turn 200':26}{early_kib:14.1f}{late_kib:14.1f}")
    # The counts of all objects vary slightly with the caches of the interpreter; those of `KINDS` must not vary.
    loose = "objects of any type"
    grown = [name for name, count in late.items() if name != loose and count > early[name]]
    met = not grown and late_kib - early_kib <= TOLERANCE_KIB
    print(f"target: no growth (memory within {TOLERANCE_KIB:.0f} KiB): {'met' if met else 'MISSED'} {', '.join(grown)}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
