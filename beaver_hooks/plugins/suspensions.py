"""Suspends the `before_prompt` of plugins that keep failing, so that they do not cost their deadline in every turn.

The suspension is part of each plugin's health, so that it survives the process. A suspended hook costs only a probe now
and then: a call in the background beside a turn, whose answer is used only to see that the hook answers.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial

import attrs

from beaver_hooks.plugins.hook_calls import Call, Category, HookDeadlines
from beaver_hooks.plugins.registry import Member
from beaver_hooks.receipts.receipt_builder import ReceiptBuilder
from beaver_hooks.receipts.receipts import Decision
from beaver_hooks.receipts.recorder import Recorder
from beaver_hooks.receipts.suspension import (
    GATE,
    HOOK,
    Suspension,
    after_answer,
    after_block,
    after_failed_probe,
    after_failure,
    claimed,
    is_due,
    lifted,
)
from beaver_hostspecs import Clock

Change = Callable[[Suspension, datetime], Suspension]


@attrs.frozen(kw_only=True)
class HookAdmission:
    """Whether a turn calls `before_prompt` of a plugin.

    Attributes:
        left_out: the decision to leave the hook out, or `None` if the turn calls it.
        probe: whether this turn probes the hook in the background.
    """

    left_out: Decision | None = None
    probe: bool = False


ADMITTED = HookAdmission()


class Suspensions:
    """Admits plugins to turns by the results of their calls. Fail-closed plugins are never suspended.

    Args:
        recorder: keeps the health, and records its changes.
        clock: the source of the time.
        deadlines: how long each hook may take.
        blocked_after: the seconds that the event loop may be late for a deadline before other code can be the cause.
    """

    def __init__(self, *, recorder: Recorder, clock: Clock, deadlines: HookDeadlines, blocked_after: float) -> None:
        self._recorder = recorder
        self._clock = clock
        self._deadlines = deadlines
        self._blocked_after = blocked_after
        self._failed: dict[str, float] = {}

    def admit(self, member: Member) -> HookAdmission:
        """Decide whether a turn that is being opened calls the plugin's `before_prompt`."""
        known = self._recorder.health.suspension(member.name)
        if member.fail_closed or not known.active:
            return ADMITTED
        if not is_due(known, self._clock.now()):
            return HookAdmission(left_out=_left_out(f"{known}: {known.why}"))
        claim = partial(claimed, deadline=self._deadlines.seconds(member, HOOK))
        known, now = self._recorder.health.suspend(member.name, claim)
        if not now.active:
            return ADMITTED  # another host has lifted the suspension
        if now == known:
            return HookAdmission(left_out=_left_out(f"{known}: {known.why}"))
        return HookAdmission(left_out=_left_out(f"{HOOK} is suspended and tried again beside this turn"), probe=True)

    def answered(self, call: Call, builder: ReceiptBuilder, *, probe: bool = False) -> None:
        """Take note that a call was answered in time."""
        member = call.implementation.member
        known = self._recorder.health.suspension(member.name)
        if call.hook == HOOK and not call.overran and (known.active if probe else known.failures):
            self._move(member, lifted if probe else after_answer, builder, why="answered")

    def failed(self, call: Call, category: Category, builder: ReceiptBuilder, *, probe: bool = False) -> None:
        """Take note that a call failed. Turns that fail side by side count once: they are not in a row."""
        member = call.implementation.member
        if call.hook != HOOK or member.fail_closed or call.overran or self._is_excused(call, category):
            return
        if not probe and call.started < self._failed.get(member.name, call.started):
            return
        self._failed[member.name] = call.deadline if call.ended is None else call.ended
        change = after_failed_probe if probe else after_failure
        self._move(member, partial(change, category=category, version=member.info.version), builder)

    def blocked(self, calls: Iterable[Call]) -> None:
        """Suspend the hook of a plugin that blocks the event loop too long; called in the watchdog's thread."""
        for call in calls:
            member = call.implementation.member
            if call.hook == HOOK and not member.fail_closed:
                self._move(member, partial(after_block, version=member.info.version), call.report.builder)
                return  # all of these calls are of the same plugin

    def review(self, member: Member, *, implemented: bool) -> None:
        """Lift a suspension of an earlier process if the plugin has changed since."""
        known = self._recorder.health.suspension(member.name)
        if not implemented:
            self.lift(member, why="hook_gone")
            if self._recorder.health.is_at_fault(member.name, HOOK):
                self._recorder.succeeded(member.name, source=HOOK)
        elif member.fail_closed:
            self.lift(member, why="fail_closed")
        elif known.version not in (None, member.info.version):
            self.lift(member, why="new_version")

    def lift(self, member: Member, *, why: str) -> None:
        """Lift a plugin's suspension and forget its failures."""
        known = self._recorder.health.suspension(member.name)
        if known.failures or known.active:
            self._move(member, lifted, None, why=why)

    def _is_excused(self, call: Call, category: Category) -> bool:
        """Whether a timeout has another cause: the process stood still, or other code blocked the event loop."""
        if category != "timeout" or call.late <= self._blocked_after:
            return False
        return call.stood_still or (call.held_up and not call.blocked)

    def _move(self, member: Member, change: Change, builder: ReceiptBuilder | None, *, why: str | None = None) -> None:
        known, now = self._recorder.health.suspend(member.name, change)
        tell = partial(self._recorder.event, builder=builder, plugin=member.name, hook=HOOK, loudly=True)
        if now.until is not None and now != known:
            tell("plugin_suspended", {
                "category": now.category, "failures": now.failures, "seconds": now.seconds,
                "until": now.until.isoformat(timespec="seconds"),
            })  # fmt: skip
        elif known.active and not now.active:
            tell("plugin_resumed", {"why": why})


def _left_out(reason: str) -> Decision:
    return Decision(gate=GATE, verdict="left_out", reason=reason)
