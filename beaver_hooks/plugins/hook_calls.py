"""Runs hook implementations so that none of them harms the host or another plugin.

Each call is a task of its own. An exception of a plugin stays in its task, `SystemExit` included, which would otherwise
end the event loop; only `KeyboardInterrupt` leaves it. A call that exceeds its deadline is cancelled, abandoned and
counted; the host does not wait for it to end.
"""

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Mapping
from contextvars import Context
from typing import Any, Literal

import attrs

from beaver_hooks.config.model import HostSettings
from beaver_hooks.plugins.registry import Implementation, Member
from beaver_hooks.receipts.receipt_builder import ReceiptBuilder
from beaver_hooks.receipts.recorder import Recorder
from beaver_hooks.receipts.reports import HostReport

Category = Literal["raised", "timeout", "wrong_type", "cancelled", "too_large"]

BACKGROUND = ("on_tool_result", "after_prompt", "on_turn_dropped")
"""The hooks that run in the background."""


@attrs.define(kw_only=True, eq=False)
class Call:
    """One running hook implementation.

    Attributes:
        deadline: the time by which it must end, in the event loop's time.
        stopped: whether the host cancelled it.
        blocked: whether it was seen blocking the event loop.
        overran: whether it was seen blocking the event loop for longer than its whole deadline.
        held_up: whether other code was seen blocking the event loop while it ran.
        stood_still: whether the watchdog came late while it ran: the whole process stood still.
        late: by how many seconds the event loop missed its deadline.
    """

    implementation: Implementation
    report: HostReport
    task: "asyncio.Task[object]"
    started: float
    deadline: float
    ended: float | None = None
    stopped: bool = False
    blocked: bool = False
    overran: bool = False
    held_up: bool = False
    stood_still: bool = False
    late: float = 0.0

    @property
    def plugin(self) -> str:
        """The plugin's name."""
        return self.implementation.member.name

    @property
    def allowed(self) -> float:
        """The seconds that it may take in all."""
        return self.deadline - self.started

    @property
    def hook(self) -> str:
        """The hook's name."""
        return self.implementation.hook


@attrs.frozen(kw_only=True, eq=False)
class Result:
    """The result of a call: a value, or the category of its failure with the error, if any."""

    call: Call
    value: object = None
    category: Category | None = None
    error: BaseException | None = None


@attrs.frozen(eq=False)
class _Escaped:
    """An exception of a plugin, returned from its task as a value."""

    error: BaseException


@attrs.frozen
class HookDeadlines:
    """The deadlines that the plugins declare, within the settings of the host.

    Attributes:
        settings: those of the host, with the default and the longest deadline.
    """

    settings: HostSettings

    def seconds(self, member: Member, hook: str) -> float:
        """Return the deadline of a plugin's hook."""
        declared: float | None = getattr(member.info.deadlines, hook)
        return min(self.settings.deadline_cap_seconds, declared or self.settings.default_deadline_seconds)

    @property
    def offer_seconds(self) -> float:
        """The deadline of a tool or a command."""
        return min(self.settings.deadline_cap_seconds, self.settings.default_deadline_seconds)

    def longest_background(self, members: Iterable[Member]) -> float:
        """Return the longest deadline of the members' background hooks; 0 without members."""
        return max((self.seconds(member, hook) for member in members for hook in BACKGROUND), default=0.0)


class Calls:
    """The hook calls that are running now, and those that were abandoned and have not ended yet.

    Args:
        loop: the loop to run them on.
        recorder: keeps what the hooks report.
        deadlines: how long each hook may take.

    Attributes:
        look_due: when the watchdog's next look is late, by the monotonic clock.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, recorder: Recorder, deadlines: HookDeadlines) -> None:
        self.running: dict[asyncio.Task[object], Call] = {}
        self.abandoned: set[asyncio.Task[object]] = set()
        self.abandoned_count = 0
        self.look_due = math.inf
        self._loop = loop
        self._recorder = recorder
        self._deadlines = deadlines

    def begin_hook(
        self,
        implementation: Implementation,
        arguments: Mapping[str, Any],
        *,
        builder: ReceiptBuilder | None = None,
        context: Context | None = None,
    ) -> Call:
        """Start a hook of a plugin, within the deadline of that hook; its reports go to the turn of `builder`."""
        member, hook = implementation.member, implementation.hook
        report = HostReport(plugin=member.name, hook=hook, recorder=self._recorder, builder=builder)
        seconds = self._deadlines.seconds(member, hook)
        return self.begin(implementation, arguments, report, seconds=seconds, context=context)

    def begin(
        self,
        implementation: Implementation,
        arguments: Mapping[str, Any],
        report: HostReport,
        *,
        seconds: float,
        context: Context | None = None,
    ) -> Call:
        """Start a call in a task of its own."""
        wanted = {name: arguments[name] if name != "report" else report for name in implementation.arguments}
        now = self._loop.time()
        report.deadline, report.now = now + seconds, self._loop.time
        task = self._loop.create_task(_contain(implementation.function, wanted), context=context)
        call = Call(implementation=implementation, report=report, task=task, started=now, deadline=now + seconds)
        self.running[task] = call
        task.add_done_callback(self._ended)
        return call

    async def settle(self, calls: Iterable[Call]) -> list[Result]:
        """Wait for every call until its deadline, abandon overdue calls, and return all results in order.

        If the waiting itself is cancelled, it abandons all calls and passes the cancellation on at once.
        """
        calls = tuple(calls)
        try:
            await self._wait(calls)
        except BaseException:
            for call in calls:
                self.abandon(call)
            raise
        return [self._result(call) for call in calls]

    def abandon(self, call: Call) -> None:
        """Cancel a call and never wait for it; a call that has ended or was abandoned before is left alone."""
        if call.stopped or call.task.done():
            return
        call.stopped = True
        call.task.cancel()
        self.abandoned.add(call.task)
        self.abandoned_count += 1

    async def _wait(self, calls: tuple[Call, ...]) -> None:
        pending = {call.task for call in calls}
        for deadline in sorted({call.deadline for call in calls}):
            if not pending:
                return
            _, pending = await asyncio.wait(pending, timeout=max(0.0, deadline - self._loop.time()))
            late = self._loop.time() - deadline
            if pending:
                # If the loop was blocked, the calls that had no chance to run get one more pass of it.
                await asyncio.sleep(0)
            for call in calls:
                if call.task in pending and call.deadline <= deadline:
                    call.late = late
                    # A process that stood still may continue here before the watchdog's next look.
                    call.stood_still |= time.monotonic() > self.look_due
                    self.abandon(call)
                    pending.discard(call.task)

    def _result(self, call: Call) -> Result:
        if call.stopped:
            return Result(call=call, category="timeout")
        if call.task.cancelled():
            return Result(call=call, category="cancelled")
        value = call.task.result()
        if type(value) is _Escaped:  # not isinstance: it may run code of the plugin's value
            return Result(call=call, category="raised", error=value.error)
        return Result(call=call, value=value)

    def _ended(self, task: "asyncio.Task[object]") -> None:
        call = self.running.pop(task)
        call.ended = self._loop.time()
        self.abandoned.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not complain about an abandoned task


async def _contain(function: Callable[..., Any], arguments: Mapping[str, Any]) -> object:
    try:
        return await function(**arguments)
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise
    except BaseException as error:  # noqa: BLE001 - this is the wall between a plugin and the host
        return _Escaped(error)
