"""The end of a plugin: no task, thread, file or socket of it is left."""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from beaver_hostspecs.conformance.cases import Case
from beaver_hostspecs.conformance.plugins.deadlines import PROMPT, REST, TURN_HOOKS, interrupt
from beaver_hostspecs.conformance.plugins.driver import QUESTION, Driven, contained, demand, made, need, teach
from beaver_hostspecs.conformance.plugins.harness import PluginHarness
from beaver_hostspecs.conformance.plugins.turns import RESULTS

DESCRIPTORS = ("/proc/self/fd", "/dev/fd")
OF_THE_LOOP = "asyncio_"
"""Threads of this name belong to the event loop, which shares them."""

_LOOK_AGAIN = 0.02


async def _after_turns(harness: PluginHarness) -> None:
    await harness.open()
    async with _nothing_left(), made(harness) as driven:
        await driven.start()
        await teach(harness, driven, "Ardea")
        await driven.run(QUESTION, results=RESULTS[:2])
        await driven.ask(QUESTION)
        await driven.stop()


async def _at_once(harness: PluginHarness) -> None:
    await harness.open()
    async with _nothing_left(), made(harness) as driven:
        await driven.start()
        await driven.stop()


async def _interrupted(harness: PluginHarness) -> None:
    await harness.open()
    async with _nothing_left():
        for hook in TURN_HOOKS:
            async with made(harness) as driven:
                await driven.start()
                await _stop_within(driven, hook)


async def _half_started(harness: PluginHarness) -> None:
    await harness.open()
    async with _nothing_left():
        for point in (1, 2, 3):
            async with made(harness) as driven:
                if (starting := driven.coroutine("start")) is not None:
                    await interrupt(starting, point, "`start`", seconds=driven.deadline("start"))
                await driven.stop()


async def _again(harness: PluginHarness) -> None:
    await harness.open()
    async with _nothing_left(), made(harness) as driven:
        await driven.start()
        await driven.run(QUESTION)
        await driven.stop()
        need(harness, "restarts")
        await driven.start()
        await driven.run(QUESTION)
        await driven.stop()


async def _stop_within(driven: Driven, hook: str) -> None:
    """Stop the plugin while a hook waits; the hook may end in any way, but must end."""
    running = driven.coroutine(hook, turn=driven.turn_of(QUESTION), report=driven.report(), **REST)
    task = None if running is None else asyncio.ensure_future(contained(running, hook))
    await asyncio.sleep(0)
    await driven.stop()
    if task is not None:
        task.cancel()
        await asyncio.wait([task], timeout=PROMPT)
        demand(task.done(), f"`{hook}` is not over {PROMPT:g} seconds after it was cancelled and the plugin stopped")
        if not task.cancelled():
            task.exception()  # Retrieved, or asyncio would log it.


@asynccontextmanager
async def _nothing_left() -> AsyncIterator[None]:
    """Demand that tasks, threads, open files and sockets are as they were, after a moment at most."""
    before = _there()
    yield
    loop = asyncio.get_running_loop()
    latest = loop.time() + PROMPT
    while left := _there() - before:
        demand(loop.time() < latest, f"the plugin left behind: {', '.join(sorted(left))}")
        await asyncio.sleep(_LOOK_AGAIN)


def _there() -> set[str]:
    gc.collect()
    tasks = {f"task {each.get_name()} of {_name(each.get_coro())}" for each in asyncio.all_tasks()}
    threads = {
        f"thread {each.name} ({each.ident})" for each in threading.enumerate() if not each.name.startswith(OF_THE_LOOP)
    }
    return tasks | threads | _descriptors()


def _name(coroutine: object) -> str:
    return str(getattr(coroutine, "__qualname__", coroutine))


def _descriptors() -> set[str]:
    """Return the open files and sockets, where the system lists them."""
    folder = next((each for each in map(Path, DESCRIPTORS) if each.is_dir()), None)
    if folder is None:
        return set()
    return {f"{each.name} {target}" for each in folder.iterdir() if (target := _target(each))}


def _target(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""  # The folder's own descriptor is gone by now.


CASES: tuple[Case[PluginHarness], ...] = (
    Case(name="stops cleanly", shows="After turns it leaves no task, thread, file or socket behind.", run=_after_turns),
    Case(name="stops at once", shows="Nor does it when no turn came.", run=_at_once),
    Case(name="stops while a hook runs", shows="Nor does it when a hook of it still waits.", run=_interrupted),
    Case(name="stops half started", shows="Nor does it when its start was cancelled.", run=_half_started),
    Case(
        name="starts again",
        shows="Stopped and started once more, it works.",
        flags=("restarts",),
        run=_again,
    ),
)
