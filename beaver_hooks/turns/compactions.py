"""Announces compactions: a host is about to shorten the context of a session.

For each plugin, side by side: its queued calls of the session run first, so that it has every committed turn; then
`before_compaction` is called, within its deadline. No failure of a plugin is an error of the host: the report names the
plugins that confirmed, and why others did not. The reports of a plugin in the call become one audit event.
"""

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypedDict

import attrs

from beaver_hooks.plugins.hook_calls import Calls, Category, HookDeadlines
from beaver_hooks.plugins.registry import Implementation, Member, Registry
from beaver_hooks.receipts.receipt_builder import ReceiptBuilder
from beaver_hooks.receipts.recorder import Recorder
from beaver_hooks.turns.admission import Admission
from beaver_hooks.turns.background import BackgroundCalls
from beaver_hooks.turns.lifecycle import Turns
from beaver_hooks.turns.results import ResultCheck
from beaver_hostspecs import Clock, Compaction, CompactionReason, Scope, Trust

HOOK = "before_compaction"
EVENT = "compaction_prepared"

Missing = Category | Literal["behind", "missed", "reported", "unregistered"]
"""Why a plugin has not confirmed.

`behind`: its queued calls of the session did not end in time, so it was not called. `missed`: an earlier call of the
session failed or was lost, so a turn never reached it. `reported`: it reported a write that failed, or its trouble.
"""


class CompactionFields(TypedDict, total=False):
    """The fields of a compaction besides its session; see `Compaction`."""

    conversation: str
    user: str | None
    scope: Scope
    trust: Trust | str
    why: CompactionReason | str


@attrs.frozen(kw_only=True)
class CompactionReport:
    """What the plugins said to a compaction.

    Attributes:
        confirmed: the plugins of which all that they keep of the session is durable.
        unconfirmed: the plugins that did not confirm, each with the category of its failure.
        memory_off: whether memory is off for the session, so that no plugin was asked.
    """

    confirmed: tuple[str, ...] = ()
    unconfirmed: Mapping[str, str] = MappingProxyType({})
    memory_off: bool = False

    @property
    def complete(self) -> bool:
        """Whether every plugin that was asked has confirmed."""
        return not self.unconfirmed


@attrs.frozen(kw_only=True)
class Compactions:
    """Announces compactions to the plugins that are in service."""

    registry: Registry
    recorder: Recorder
    calls: Calls
    admission: Admission
    background: BackgroundCalls
    turns: Turns
    deadlines: HookDeadlines
    clock: Clock

    async def announce(self, compaction: Compaction) -> CompactionReport:
        """Return the report once every plugin has answered, or its time is over."""
        builder = self._builder(compaction)
        if self.admission.is_off(compaction):
            self.recorder.event(EVENT, {"memory_off": True}, builder=builder)
            return CompactionReport(memory_off=True)
        implementations = {each.member: each for each in self.registry.implementations(HOOK)}
        members = [each for each in self.registry.members() if each.name not in self.turns.arriving]
        waits = [self._wait_for(each, implementations.get(each), compaction, builder) for each in members]
        missing = dict(zip(members, await asyncio.gather(*waits), strict=True))
        builder.closed = self.clock.now()  # Later reports become audit events of their own.
        for member, why in missing.items():
            if why is not None or member in implementations:
                self._write_down(member, why, builder)
        return CompactionReport(
            confirmed=tuple(each.name for each, why in missing.items() if why is None and each in implementations),
            unconfirmed=MappingProxyType({each.name: why for each, why in missing.items() if why is not None}),
        )

    async def _wait_for(
        self, member: Member, implementation: Implementation | None, compaction: Compaction, builder: ReceiptBuilder
    ) -> Missing | None:
        """Bring one plugin up to date, and call its hook; return why it has not confirmed, or `None`."""
        seconds = self.deadlines.longest_background([member])
        is_even = await self.background.backlog.drain_session(compaction.session, member, seconds)
        if not self.registry.holds(member):
            return "unregistered"
        if not is_even:
            if implementation is not None:
                self.recorder.failed(member.name, hook=HOOK, category="behind", builder=builder)
            return "behind"
        missed = self.background.forgive(compaction.session, member)
        why = None if implementation is None else await self._call(implementation, compaction, builder)
        return why or ("missed" if missed else None)

    async def _call(
        self, implementation: Implementation, compaction: Compaction, builder: ReceiptBuilder
    ) -> Missing | None:
        call = self.calls.begin_hook(implementation, {"compaction": compaction}, builder=builder)
        (result,) = await self.calls.settle([call])
        category = ResultCheck(self.recorder).background(result, builder)
        return category or ("reported" if call.report.troubled else None)

    def _builder(self, compaction: Compaction) -> ReceiptBuilder:
        """Return a builder that takes the plugins' reports; no receipt is made of it."""
        fields = {name: getattr(compaction, name) for name in ("when", "conversation", "user", "scope", "trust")}
        turn = self.turns.new_turn("", compaction.session, fields)  # type: ignore[arg-type]  # fields of both records
        return self.turns.unentered(turn).builder

    def _write_down(self, member: Member, why: Missing | None, builder: ReceiptBuilder) -> None:
        facts = {"confirmed": why is None, "why": why, **builder.plugins[member.name].facts(HOOK)}
        self.recorder.event(EVENT, facts, builder=builder, plugin=member.name, hook=HOOK, loudly=why is not None)
