"""The background queue: bounded, in order per session and plugin, side by side otherwise."""

import asyncio
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from contextvars import Context
from typing import Any, Protocol

import attrs

from beaver_hooks.plugins.registry import Implementation, Member
from beaver_hooks.receipts.receipt_builder import ReceiptBuilder


@attrs.frozen(kw_only=True, eq=False)
class Job:
    """One hook call that no turn waits for.

    Attributes:
        probe: whether it only tests whether a suspended hook answers; a probe delays no other call.
    """

    implementation: Implementation
    builder: ReceiptBuilder
    arguments: Mapping[str, Any]
    context: Context
    probe: bool = False


class JobRunner(Protocol):
    """Runs jobs."""

    async def run(self, job: Job) -> None:
        """Run one job; raises only for an interrupt."""

    def ended(self, job: Job, *, run: bool) -> None:
        """Take note that an accepted job was run, or was lost."""


LaneKey = tuple[str | None, Member]
"""Session (`None` for probes) and plugin: the member and not its name, as an earlier plugin may have had that name."""


@attrs.define(kw_only=True, eq=False)
class _Lane:
    """The jobs of one session and plugin; the first one is running."""

    jobs: deque[Job] = attrs.field(factory=deque)
    worker: "asyncio.Task[None] | None" = attrs.field(default=None, init=False)


class Backlog:
    """Runs jobs in the background.

    Args:
        loop: the loop to run them on.
        limit: how many jobs of one plugin may be queued or running; further jobs are refused.
        runner: runs the jobs.
    """

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        limit: int,
        runner: JobRunner,
    ) -> None:
        self._loop = loop
        self._limit = limit
        self._runner = runner
        self._lanes: dict[LaneKey, _Lane] = {}
        self._count = 0
        self._waiting: Counter[Member] = Counter()
        self._new: list[tuple[LaneKey, _Lane]] = []
        self._empty = asyncio.Event()
        self._empty.set()

    def __len__(self) -> int:
        return self._count

    def put(self, job: Job) -> bool:
        """Queue a job; `False` if the plugin's queue is full."""
        member = job.implementation.member
        if self._waiting[member] >= self._limit:
            return False
        self._waiting[member] += 1
        self._count += 1
        self._empty.clear()
        key = (None if job.probe else job.builder.turn.session, member)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane()
            if not self._new:
                # The caller of the turn does not wait while the workers are made.
                self._loop.call_soon(self._start_workers)
            self._new.append((key, lane))
        lane.jobs.append(job)
        return True

    async def drain(self, seconds: float | None = None) -> int:
        """Wait until every queued job has run, at most `seconds`; return how many jobs are left."""
        try:
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        except TimeoutError:
            pass
        return self._count

    async def drain_plugin(self, plugin: Member, seconds: float) -> None:
        """Wait until one plugin's jobs have run, at most `seconds`."""
        await self._wait([lane for (_, each), lane in self._lanes.items() if each is plugin], seconds)

    async def drain_session(self, session: str, plugin: Member, seconds: float) -> bool:
        """Wait until one plugin's jobs of one session have run, at most `seconds`; return whether they have."""
        await self._wait([lane for key, lane in self._lanes.items() if key == (session, plugin)], seconds)
        return (session, plugin) not in self._lanes

    async def _wait(self, lanes: Iterable[_Lane], seconds: float) -> None:
        self._start_workers()
        if workers := [lane.worker for lane in lanes if lane.worker]:
            await asyncio.wait(workers, timeout=seconds)

    def discard(self, plugin: Member | None = None) -> int:
        """Drop the jobs of one plugin, or all jobs, running ones too; return how many were lost, without probes."""
        lost = 0
        for key in [key for key in self._lanes if plugin in (None, key[1])]:
            lane = self._lanes.pop(key)
            if lane.worker is not None:
                lane.worker.cancel()
            lost += self._lose(lane)
        return lost

    def _start_workers(self) -> None:
        new, self._new = self._new, []
        for key, lane in new:
            if lane.jobs:  # not discarded meanwhile
                lane.worker = self._loop.create_task(self._work(key, lane))

    async def _work(self, key: LaneKey, lane: _Lane) -> None:
        try:
            while lane.jobs:
                await self._runner.run(lane.jobs[0])
                self._done(lane.jobs.popleft(), run=True)
        except asyncio.CancelledError:
            self._lose(lane)  # discarded, and empty already, or the loop itself ends
            raise
        except BaseException:
            # A KeyboardInterrupt stops the loop, perhaps only for now: the other jobs must still run.
            self._done(lane.jobs.popleft(), run=False)
            lane.worker = self._loop.create_task(self._work(key, lane))
            raise
        finally:
            if not lane.jobs and self._lanes.get(key) is lane:
                del self._lanes[key]

    def _lose(self, lane: _Lane) -> int:
        lost = sum(not job.probe for job in lane.jobs)
        while lane.jobs:
            self._done(lane.jobs.popleft(), run=False)
        return lost

    def _done(self, job: Job, *, run: bool) -> None:
        self._count -= 1
        member = job.implementation.member
        self._waiting[member] -= 1
        if not self._waiting[member]:
            del self._waiting[member]
        self._runner.ended(job, run=run)
        if not self._count:
            self._empty.set()
