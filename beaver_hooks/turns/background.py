"""Runs the hooks that a turn does not wait for, and records how each call ended.

A call is queued by `put`, run by `run` when its turn comes, and ends with `ended`, which keeps the receipt once no call
of its turn is left.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Mapping
from contextvars import Context
from typing import Any, Protocol

import attrs

from beaver_hooks.plugins.hook_calls import Calls
from beaver_hooks.plugins.registry import Implementation, Member, Registry
from beaver_hooks.receipts.receipt_builder import ReceiptBuilder
from beaver_hooks.receipts.recorder import Recorder
from beaver_hooks.turns.results import RecallCheck

LEARNING = ("on_tool_result", "after_prompt")
"""The hooks by which a plugin learns what a session said."""

MOST_MISSED = 10_000
"""The sessions of which is kept that a plugin missed a call."""

QUEUE = "queue"
"""The source of a plugin's fault while its background queue is full."""


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


class BackgroundCalls:
    """Runs the hook calls beside and after turns.

    Args:
        limit: how many calls of one plugin may wait; a plugin that hangs fills its own queue only.
    """

    def __init__(
        self, *, limit: int, registry: Registry, recorder: Recorder, calls: Calls, recall_check: RecallCheck
    ) -> None:  # fmt: skip
        self.backlog = Backlog(loop=asyncio.get_running_loop(), limit=limit, runner=self)
        self._limit = limit
        self._registry = registry
        self._recorder = recorder
        self._calls = calls
        self._recall_check = recall_check
        self._refused: dict[Member, int] = {}
        self._waiting: dict[ReceiptBuilder, asyncio.Event] = {}
        self._missed: OrderedDict[tuple[str, Member], None] = OrderedDict()

    def put(self, job: Job) -> None:
        """Queue a call; where the plugin's queue is full, refuse it and report that once."""
        member = job.implementation.member
        if self.backlog.put(job):
            job.builder.open_calls += 1
            if self._refused:
                self.report_refused(member)
            return
        job.builder.lost += 1
        self._miss(job)
        self._refused[member] = self._refused.get(member, 0) + 1
        if self._refused[member] == 1:
            self._report_full(job)

    def probe(self, job: Job) -> None:
        """Queue a call that only tries whether a suspended hook answers; drop it where the queue is full."""
        job.builder.open_calls += self.backlog.put(job)

    async def wait(self, builder: ReceiptBuilder) -> None:
        """Wait until no background call of a turn is left."""
        if builder.open_calls:
            await self._waiting.setdefault(builder, asyncio.Event()).wait()

    def forgive(self, session: str, member: Member) -> bool:
        """Return whether a plugin missed a call of a session, by a failure or a full queue; forget that it did."""
        missed = (session, member) in self._missed
        self._missed.pop((session, member), None)
        return missed

    def report_refused(self, *members: Member) -> None:
        """Report how many calls the full queue of a plugin has refused, now that it takes calls again."""
        for member in members:
            if count := self._refused.pop(member, 0):
                facts = {"count": count, "why": "queue_full"}
                self._recorder.event("background_lost", facts, plugin=member.name, loudly=True)
                self._recorder.succeeded(member.name, source=QUEUE)

    def report_all_refused(self) -> None:
        """Report what every full queue has refused, when the host closes."""
        self.report_refused(*self._refused)

    async def run(self, job: Job) -> None:
        """Run a call whose turn it is; called by the backlog."""
        implementation = job.implementation
        try:
            call = self._calls.begin_hook(implementation, job.arguments, builder=job.builder, context=job.context)
            (result,) = await self._calls.settle([call])
            if not job.probe:
                if self._recall_check.background(result, job.builder) is not None:
                    self._miss(job)
            elif self._registry.holds(implementation.member):
                self._recall_check.recall(result, job.builder, probe=True)
        except (KeyboardInterrupt, Exception) as error:
            interrupted = isinstance(error, KeyboardInterrupt)
            category = "interrupted" if interrupted else "raised"
            name, hook = implementation.member.name, implementation.hook
            self._recorder.failed(name, hook=hook, category=category, builder=job.builder, error=error)
            self._miss(job)
            if interrupted:
                raise

    def ended(self, job: Job, *, run: bool) -> None:
        """Count a call that has run, or was lost; called by the backlog."""
        builder = job.builder
        builder.open_calls -= 1
        builder.lost += not run
        if builder.open_calls:
            return
        if builder.closed is not None:
            self._recorder.keep(builder)
        if (event := self._waiting.pop(builder, None)) is not None:
            event.set()

    def _miss(self, job: Job) -> None:
        if job.implementation.hook in LEARNING:
            self._missed[job.builder.turn.session, job.implementation.member] = None
            if len(self._missed) > MOST_MISSED:
                self._missed.popitem(last=False)

    def _report_full(self, job: Job) -> None:
        name, hook = job.implementation.member.name, job.implementation.hook
        self._recorder.health.failed(name, source=QUEUE, category="queue_full")
        facts = {"limit": self._limit}
        self._recorder.event("background_full", facts, builder=job.builder, plugin=name, hook=hook, loudly=True)
