"""Measures how many deadlines a hanging plugin, and a plugin that blocks the event loop, cost in 50 turns.

One plugin awaits forever in `before_prompt`. The other one calls `time.sleep` for more than twice its deadline, in the
ratio of 12 s to 5 s. Turns follow each other at once, or a minute apart by the host's clock. The benchmark measures
`open_turn`, because the user waits for it before the request to the model. The output also has the time of the
background work, which includes the probes of a suspended plugin: no turn waits for a probe that hangs, but a probe that
blocks stops every turn of the process.

Each plugin is compared with the same plugin without suspension, which is registered again before each turn (this is not
measured), and with the floor, a host without plugins.
"""

import asyncio
import logging
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import attrs

from beaver_hooks import Host
from beaver_hooks.config import Config
from beaver_hooks.config.model import HostSettings
from beaver_hostspecs import Deadlines, PluginInfo, hookimpl

TURNS = 50
DEADLINE = 0.1
BLOCKS_FOR = 0.24
BLOCKED_AFTER = 0.05
MOST_HANGING = 4
PACES = (0.0, 60.0)
"""Seconds between two turns, by the host's clock."""


class Clock:
    """The machine's clock, which the benchmark can advance."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def now(self) -> datetime:
        """Return the time of day."""
        return datetime.now(UTC) + timedelta(seconds=self.ahead)

    def monotonic(self) -> float:
        """Return the monotonic seconds."""
        return time.monotonic() + self.ahead


class Hanging:
    """Awaits forever."""

    @hookimpl
    def describe(self) -> PluginInfo:
        """Declare the deadline of the recall."""
        return PluginInfo(version="1", contract="1.0", deadlines=Deadlines(before_prompt=DEADLINE))

    @hookimpl
    async def before_prompt(self) -> None:
        """Never return."""
        await asyncio.Event().wait()


class Blocking(Hanging):
    """Holds the thread."""

    @hookimpl
    async def before_prompt(self) -> None:
        """Recall nothing, after the deadline."""
        time.sleep(BLOCKS_FOR)  # noqa: ASYNC251 - the fault that is measured


@attrs.frozen
class Waited:
    """Seconds before the answers, and in the background."""

    opening: float
    background: float


async def run(kind: Callable[[], object] | None, folder: str, *, pace: float, anew: bool) -> Waited:
    """Return the seconds that 50 turns wait."""
    clock, plugins = Clock(), {} if kind is None else {"faulty": kind()}
    config = Config(host=HostSettings(blocked_after_seconds=BLOCKED_AFTER))
    opening = background = 0.0
    async with Host(plugins, config=config, state_folder=folder, clock=clock) as host:
        for number in range(TURNS):
            if anew and number:
                await host.unregister("faulty")
                await host.register("faulty", kind())
            clock.ahead += pace
            started = time.perf_counter()
            turn = await host.open_turn("What did we decide?", session="bench")
            opened = time.perf_counter()
            await turn.commit("To wait.")
            await host.drain()
            opening += opened - started
            background += time.perf_counter() - opened
    return Waited(opening, background)


async def measure(kind: Callable[[], object] | None, *, pace: float = 0.0, anew: bool = False) -> Waited:
    """Return the seconds that 50 turns wait, in a state folder of their own."""
    with tempfile.TemporaryDirectory() as folder:
        return await run(kind, f"{folder}/state", pace=pace, anew=anew)


async def main() -> int:
    """Measure, print, and return the exit code."""
    logging.getLogger("beaver_hooks").addHandler(logging.NullHandler())
    floor = await measure(None)
    print(f"{TURNS} turns, deadline {DEADLINE * 1000:.0f} ms, {sys.version.split()[0]}: deadlines waited in all")
    print(f"{'':30}{'before the answer':>20}{'in the background':>20}")
    most = 0.0
    for kind in (Hanging, Blocking):
        for name, pace, anew in [
            ("never suspended", 0.0, True),
            *((f"{pace:.0f} s apart", pace, False) for pace in PACES),
        ]:
            waited = await measure(kind, pace=pace, anew=anew)
            opening = (waited.opening - floor.opening) / DEADLINE
            background = (waited.background - floor.background) / DEADLINE
            print(f"{kind.__name__ + ', ' + name:30}{opening:20.1f}{background:20.1f}")
            most = max(most, opening) if kind is Hanging and not anew else most
    print(f"{'no plugin':30}{floor.opening / DEADLINE:20.1f}{floor.background / DEADLINE:20.1f}")
    met = most <= MOST_HANGING
    print(f"hanging: {most:.1f} deadlines; target: at most {MOST_HANGING}: {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
