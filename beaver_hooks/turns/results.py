"""Judges the results of hook calls: an answer, `None`, or a failure, which is recorded."""

from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from typing import cast

import attrs

from beaver_hooks.plugins.hook_calls import Category, Result
from beaver_hooks.plugins.registry import Member
from beaver_hooks.plugins.suspensions import Suspensions
from beaver_hooks.receipts.receipt_builder import ReceiptBuilder
from beaver_hooks.receipts.receipts import Clip, Decision
from beaver_hooks.receipts.recorder import EVENT_LOOP, Recorder
from beaver_hooks.turns.context import MOST_ITEMS, Answers, Share, is_too_large
from beaver_hostspecs import Contribution, Hint, PluginFailed, Reference
from beaver_hostspecs.naming import type_name

PLAIN = frozenset({str, int, float, bool, datetime, tuple, type(None)})
"""The exact types of the fields of references and hints, so that reading a field runs no code of the plugin."""


class ResultCheck:
    """Records the results of calls."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def background(self, result: Result, builder: ReceiptBuilder) -> Category | None:
        """Judge a call of a hook that returns `None`; return how it failed, or `None`."""
        category = result.category or (None if result.value is None else "wrong_type")
        self.judge(result, category, builder)
        return category

    def judge(self, result: Result, category: Category | None, builder: ReceiptBuilder) -> None:
        """Record how a call ended, and how long it took."""
        call = result.call
        ended = call.deadline if call.ended is None else call.ended
        builder.plugins[call.plugin].spend(call.hook, ended - call.started)
        if category is not None:
            self._recorder.failed(call.plugin, hook=call.hook, category=category, builder=builder, error=result.error)
        elif not (call.report.troubled or call.blocked):
            self._recorder.succeeded(call.plugin, source=call.hook, builder=builder)
            if self._recorder.health.is_at_fault(call.plugin, EVENT_LOOP):
                self._recorder.succeeded(call.plugin, source=EVENT_LOOP, builder=builder)


class RecallCheck(ResultCheck):
    """Turns results of `before_prompt` into answers and failures, and suspends plugins that fail again and again."""

    def __init__(self, recorder: Recorder, suspensions: Suspensions) -> None:
        super().__init__(recorder)
        self._suspensions = suspensions

    def answers(self, results: Iterable[Result], builder: ReceiptBuilder) -> Answers:
        """Return the contribution of each plugin; judge all results, then raise a fail-closed plugin's failure."""
        answers: list[tuple[str, Contribution]] = []
        fatal: BaseException | None = None
        for result in results:
            category = self.recall(result, builder)
            if category is not None and result.call.implementation.member.fail_closed:
                fatal = fatal or _fatal(result.call.plugin, category, result.error)
            elif category is None and result.value is not None:
                answers.append((result.call.plugin, cast("Contribution", result.value)))
        if fatal is not None:
            raise fatal
        return answers

    def recall(self, result: Result, builder: ReceiptBuilder, *, probe: bool = False) -> Category | None:
        """Judge one call, which may be the `probe` of a suspended plugin; return how it failed, or `None`."""
        category = result.category or _misfit(result.value)
        if category is None:
            # Before `judge`, as the success of a suspended hook clears no fault.
            self._suspensions.answered(result.call, builder, probe=probe)
        self.judge(result, category, builder)
        if category is not None:
            self._suspensions.failed(result.call, category, builder, probe=probe)
        return category

    def unrenderable(self, member: Member, builder: ReceiptBuilder, error: BaseException) -> None:
        """Record that a contribution has the right types but cannot be rendered; raise for a fail-closed plugin.

        Raises:
            PluginFailed: the plugin is fail-closed.
        """
        self._recorder.failed(member.name, hook="before_prompt", category="wrong_type", builder=builder, error=error)
        if member.fail_closed:
            raise _plugin_failed(member.name, "wrong_type", error)

    @staticmethod
    def write_down(plugin: str, share: Share, builder: ReceiptBuilder) -> None:
        """Record a plugin's share of the context."""
        part = builder.plugins[plugin]
        part.blocks, part.tokens, part.injected = share.blocks, share.tokens, share.injected
        total = share.rendered.total if share.rendered else share.offered
        if len(share.injected) < total:
            part.enter(Clip(what="references", shown=len(share.injected), total=total))
        if share.rendered is not None and share.rendered.cut:
            part.enter(Decision(gate="budget", verdict="cut", reason="a reference is longer than what is left"))


def _misfit(value: object) -> Category | None:
    if value is None:
        return None
    if type(value) is not Contribution or not _is_whole(value):  # a subclass could run the plugin's code
        return "wrong_type"
    return "too_large" if is_too_large(value) else None


def _is_whole(contribution: Contribution) -> bool:
    """Whether every part has exactly the type of the contract, so that reading it runs no code of the plugin."""
    for name, kind in (("blocks", str), ("references", Reference), ("hints", Hint)):
        part = getattr(contribution, name, None)
        if type(part) is not tuple:
            return False
        fields = [] if kind is str else [each.name for each in attrs.fields(cast("type[attrs.AttrsInstance]", kind))]
        for item in islice(part, MOST_ITEMS):  # a part with more items is refused as too large
            if type(item) is not kind or not all(type(getattr(item, each, item)) in PLAIN for each in fields):
                return False
    return True


def _fatal(plugin: str, category: Category, error: BaseException | None) -> BaseException:
    """Return the error that `open_turn` raises: the plugin's own one unchanged, or a `PluginFailed`."""
    if error is not None and issubclass(type(error), Exception):
        return error
    return _plugin_failed(plugin, category, error)


def _plugin_failed(plugin: str, category: Category, error: BaseException | None) -> PluginFailed:
    kind = "" if error is None else f" ({type_name(error)})"
    return PluginFailed(
        f"plugin `{plugin}` failed in before_prompt: {category}{kind}; it is fail-closed, so the turn was dropped",
        plugin=plugin,
    )
