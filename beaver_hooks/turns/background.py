"""Runs the hooks that a turn does not wait for, and records how each call ended.

A call is queued by `put`, run by `run` when its turn comes, and ends with `ended`, which keeps the receipt once no call
of its turn is left.
"""

import asyncio
from collections import OrderedDict

from beaver_hooks.plugins.hook_calls import Calls
from beaver_hooks.plugins.registry import Member, Registry
from beaver_hooks.receipts.receipt_builder import ReceiptBuilder
from beaver_hooks.receipts.recorder import Recorder
from beaver_hooks.turns.backlog import Backlog, Job
from beaver_hooks.turns.results import RecallCheck

LEARNING = ("on_tool_result", "after_prompt")
"""The hooks by which a plugin learns what a session said."""

MOST_MISSED = 10_000
"""The sessions of which is kept that a plugin missed a call."""

QUEUE = "queue"
"""The source of a plugin's fault while its background queue is full."""


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
