"""Plugins that do not end, or leave something behind."""

import asyncio
import contextlib
import threading
import time

from conformance.notes import Notes, fails

from beaver_hostspecs import (
    Contribution,
    Deadlines,
    Reference,
    hookimpl,
)


class Swallowing(Notes):
    """Goes on where it is cancelled."""

    async def wait(self):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)


@fails("cancelled in before_prompt")
class SwallowsBefore(Swallowing):
    @hookimpl
    async def before_prompt(self):
        await self.wait()


@fails("cancelled in on_tool_result")
class SwallowsResult(Swallowing):
    @hookimpl
    async def on_tool_result(self):
        await self.wait()


@fails("cancelled in after_prompt")
class SwallowsAfter(Swallowing):
    @hookimpl
    async def after_prompt(self):
        await self.wait()


@fails("cancelled in on_turn_dropped")
class SwallowsDropped(Swallowing):
    @hookimpl
    async def on_turn_dropped(self):
        await self.wait()


@fails("cancelled in before_compaction")
class SwallowsCompaction(Swallowing):
    @hookimpl
    async def before_compaction(self):
        await self.wait()


@fails("cancelled in before_prompt")
class KeepsLock(Notes):
    @hookimpl
    async def before_prompt(self):
        await self.lock.acquire()
        await asyncio.sleep(0)
        self.lock.release()


@fails("cancelled in after_prompt")
class TurnsCancellationIntoError(Notes):
    @hookimpl
    async def after_prompt(self):
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError as error:
            raise RuntimeError("interrupted") from error


@fails("cancelled in after_prompt")
class CleansUpSlowly(Notes):
    @hookimpl
    async def after_prompt(self):
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            await asyncio.sleep(10)
            raise


@fails("keeps its deadlines")
class Slow(Notes):
    deadlines = Deadlines(before_prompt=0.05)

    @hookimpl
    async def before_prompt(self):
        await asyncio.sleep(10)


@fails("keeps its deadlines")
class SlowInTrouble(Slow):
    @hookimpl
    async def before_prompt(self):
        await asyncio.sleep(10 if self.harness.in_trouble else 0)


@fails("keeps its deadlines")
class Blocking(Notes):
    deadlines = Deadlines(before_prompt=10.0)

    @hookimpl
    async def before_prompt(self):
        time.sleep(1.1)  # noqa: ASYNC251 - blocking is what it does wrong


@fails("no time left")
class DividesByTime(Notes):
    def contribution(self, turn, report):
        return Contribution(references=[Reference(text="a note")] * int(1 / report.remaining()))


@fails("stops cleanly")
class LeavesTask(Notes):
    @hookimpl
    async def after_prompt(self):
        self.left = asyncio.create_task(asyncio.Event().wait())
        self.left.add_done_callback(lambda _: None)


@fails("stops cleanly")
class LeavesThread(Notes):
    @hookimpl
    async def after_prompt(self):
        ended = threading.Event()
        self.harness.left.append(ended.set)
        threading.Thread(target=ended.wait, daemon=True, name="notes-left").start()


@fails("stops cleanly")
class LeavesFile(Notes):
    @hookimpl
    async def after_prompt(self):
        self.harness.left.append(self.file.with_suffix(".left").open("wb").close)


@fails("stops at once")
class StopsTurns(Notes):
    @hookimpl
    async def after_prompt(self):
        self.last = True

    @hookimpl
    async def stop(self):
        await super().stop()
        assert self.last


@fails("stops at once")
class LeavesWorker(Notes):
    @hookimpl
    async def stop(self):
        pass


@fails("stops while a hook runs")
class StopsWhenIdle(Notes):
    deadlines = Deadlines(stop=0.05)

    @hookimpl
    async def before_prompt(self):
        async with self.lock:
            await asyncio.sleep(10)

    @hookimpl
    async def stop(self):
        await super().stop()
        await self.lock.acquire()


@fails("stops while a hook runs")
class OutlivesItsStop(Notes):
    @hookimpl
    async def before_prompt(self):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(10)
            raise


@fails("stops half started")
class StopsWhatStarted(Notes):
    @hookimpl
    async def stop(self):
        self.worker.cancel()
        await asyncio.wait([self.worker])


@fails("starts again")
class OneLife(Notes):
    lives = 1

    @hookimpl
    async def start(self):
        self.lives -= 1
        if self.lives < 0:
            raise RuntimeError("it was stopped")
