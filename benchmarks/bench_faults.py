"""Measures how long the host waits for a faulty plugin beyond its deadline: every fault at every coroutine hook.

The plugin has 0.2 s per hook. The benchmark measures the host's wait: `open_turn` for `before_prompt`, draining for the
background hooks, registering and unregistering for `start` and `stop`. A fault that does not hang takes less than its
deadline, and its overrun is zero. The output has the largest overrun of several rounds. The fault `block` is left out,
because code that does not yield cannot be interrupted in one process; the host names its plugin instead.
"""

import asyncio
import logging
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable

from beaver_hooks import Host
from beaver_hostspecs import Deadlines, PluginFailed, PluginInfo, hookimpl
from beaver_hostspecs.testing import COROUTINE_HOOKS, Fault, FaultPlugin

ROUNDS = 3
DEADLINE = 0.2
TARGET = 0.1
FAULTS = tuple(fault for fault in Fault if fault is not Fault.BLOCK)

Deed = Callable[[Host, FaultPlugin], Awaitable[None]]


class Bystander:
    """A second plugin that answers at once."""

    @hookimpl
    async def before_prompt(self, turn: object) -> None:
        """Recall nothing."""


async def register(host: Host, plugin: FaultPlugin) -> None:
    """Register a plugin that may fail to start."""
    try:
        await host.register("faulty", plugin)
    except PluginFailed:
        return


async def unregister(host: Host, _: FaultPlugin) -> None:
    """Unregister the plugin."""
    await host.unregister("faulty")


async def open_turn(host: Host, _: FaultPlugin) -> None:
    """Open a turn."""
    await host.open_turn("What did we decide?", session="bench")


async def run_background(host: Host, plugin: FaultPlugin) -> None:
    """Run one background hook to its end."""
    turn = await host.open_turn("What did we decide?", session="bench")
    if plugin.hook == "on_tool_result":
        await turn.tool_result(tool="search", call_id="1", output="nothing")
    elif plugin.hook == "after_prompt":
        await turn.commit("We decided to wait.")
    else:
        await turn.drop("failed")
    assert await host.drain() == 0


DEEDS: dict[str, Deed] = {"start": register, "before_prompt": open_turn, "stop": unregister}


async def overrun(fault: Fault, hook: str, folder: str) -> float:
    """Return the seconds beyond the deadline for which the host waits."""
    info = PluginInfo(version="0", contract="1.0", deadlines=Deadlines(**dict.fromkeys(COROUTINE_HOOKS, DEADLINE)))
    plugin = FaultPlugin(fault, hook, info=info)
    async with Host({"bystander": Bystander()}, state_folder=folder) as host:
        try:
            if hook != "start":
                await register(host, plugin)
            started = time.perf_counter()
            await DEEDS.get(hook, run_background)(host, plugin)
            spent = time.perf_counter() - started
        finally:
            await plugin.release()
    return max(0.0, spent - DEADLINE)


async def largest(fault: Fault, hook: str) -> float:
    """Return the largest overrun of several rounds."""
    with tempfile.TemporaryDirectory() as folder:
        return max([await overrun(fault, hook, f"{folder}/state") for _ in range(ROUNDS)])


async def main() -> int:
    """Measure, print, and return the exit code."""
    logging.getLogger("beaver_hooks").addHandler(logging.NullHandler())
    print(
        f"overrun in ms beyond a deadline of {DEADLINE * 1000:.0f} ms, largest of {ROUNDS}, {sys.version.split()[0]}:"
    )
    print(f"{'':18}" + "".join(f"{hook:>16}" for hook in COROUTINE_HOOKS))
    worst = 0.0
    for fault in FAULTS:
        row = [await largest(fault, hook) for hook in COROUTINE_HOOKS]
        worst = max(worst, *row)
        print(f"{fault:18}" + "".join(f"{seconds * 1000:16.1f}" for seconds in row))
    met = worst <= TARGET
    print(f"largest: {worst * 1000:.1f} ms; target: at most {TARGET * 1000:.0f} ms: {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
