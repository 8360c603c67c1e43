"""The runtime of an open host: its parts, built anew at each opening, so that two hosts share nothing."""

import asyncio
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, TypeVar

import attrs

from beaver_hooks.log import make_log
from beaver_hooks.loop_affinity import LoopAffinity
from beaver_hooks.options import Options
from beaver_hooks.plugins.entry_points import installed
from beaver_hooks.plugins.hook_calls import Calls, HookDeadlines
from beaver_hooks.plugins.loader import Loader
from beaver_hooks.plugins.modes import Plan, make_plan, preset_for
from beaver_hooks.plugins.registry import Member, Registry
from beaver_hooks.plugins.suspensions import Suspensions
from beaver_hooks.plugins.watchdog import Watchdog
from beaver_hooks.receipts.factory import open_recorder
from beaver_hooks.turns.admission import Admission
from beaver_hooks.turns.background import QUEUE, BackgroundCalls
from beaver_hooks.turns.compactions import Compactions
from beaver_hooks.turns.echo_filter import InjectedMemory
from beaver_hooks.turns.lifecycle import Turns
from beaver_hooks.turns.open_turns import OpenTurns
from beaver_hooks.turns.results import RecallCheck
from beaver_hooks.turns.switch import FILE, MemorySwitch
from beaver_hooks.turns.tools import Offers, StandaloneTools
from beaver_hostspecs import DropReason

if TYPE_CHECKING:
    from beaver_hooks.small_model import HttpSmallModel

T = TypeVar("T")

GRACE = 0.05
"""Seconds that closing waits beyond the largest deadline, so that a hanging call is recorded as a timeout."""

SWEEP_EVERY = 60.0
"""Seconds between two sweeps for turns that were not closed."""

MOMENT = 0.05
"""Seconds that cancelled calls have to end when the host closes, before they are counted as still running."""


class HostRuntime:
    """The parts of an open host, on the event loop in which they were made."""

    def __init__(self, options: Options, affinity: LoopAffinity) -> None:
        settings = options.settings
        self.affinity = affinity
        self.loop = asyncio.get_running_loop()
        self.registry = Registry()
        self._options = options
        self._preset = preset_for(options)
        self._log = make_log()
        self.recorder = open_recorder(options, self._log)
        self.deadlines = HookDeadlines(settings)
        self.calls = Calls(self.loop, self.recorder, self.deadlines)
        self.admission = Admission(
            switch=MemorySwitch(options.state_folder.absolute() / FILE, self.recorder),
            recorder=self.recorder,
            blocked_after=settings.blocked_after_seconds,
        )
        self.suspensions = Suspensions(
            recorder=self.recorder,
            clock=options.clock,
            deadlines=self.deadlines,
            blocked_after=settings.blocked_after_seconds,
        )
        self.recall_check = RecallCheck(self.recorder, self.suspensions)
        self.background = BackgroundCalls(
            limit=settings.queue_limit,
            registry=self.registry,
            recorder=self.recorder,
            calls=self.calls,
            recall_check=self.recall_check,
        )
        self.turns = self._make_turns(affinity)
        self.offers = Offers(
            registry=self.registry,
            recorder=self.recorder,
            calls=self.calls,
            admission=self.admission,
            deadlines=self.deadlines,
        )
        self.standalone_tools = StandaloneTools(
            turns=self.turns, offers=self.offers, recorder=self.recorder, clock=options.clock
        )
        self.compactions = Compactions(
            registry=self.registry,
            recorder=self.recorder,
            calls=self.calls,
            admission=self.admission,
            background=self.background,
            turns=self.turns,
            deadlines=self.deadlines,
            clock=options.clock,
        )
        self._small_model = self._make_small_model()
        self.loader = Loader(registry=self.registry, recorder=self.recorder, calls=self.calls, options=self._lent())
        self._watchdog = self._make_watchdog()
        self._sweeper: asyncio.TimerHandle | None = None

    async def open(self) -> None:
        """Load and start the plugins; if that fails, close everything and raise."""
        try:
            self.admission.switch.review()
            self._watchdog.start()
            self._sweep()
            await self._load()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Drop the open turns, drain the background, stop the plugins, store the health, close the trail."""
        self.turns.closing = True
        for opened in self.turns.open_turns:
            self.turns.drop_now(opened, DropReason.ABANDONED)
        try:
            await self.background.backlog.drain(self.drain_seconds() + GRACE)
        finally:
            self.background.report_all_refused()
            if lost := self.background.backlog.discard():
                self.recorder.event("background_lost", {"count": lost, "why": "closing"}, loudly=True)
            await self._finish()

    async def register(self, name: str, plugin: object, *, fail_closed: bool) -> None:
        """Bring a plugin into service; turns see it once it has started."""
        self.registry.check_name(name)
        self.turns.arriving.append(name)
        try:
            stops_turns = fail_closed or name in self._preset.fail_closed
            member = await self.loader.bring_in(name, plugin, fail_closed=stops_turns)
            self._review(member)
            self.suspensions.lift(member, why="registered")
        finally:
            self.turns.arriving.remove(name)

    async def unregister(self, name: str, *, drain: bool) -> None:
        """Take a plugin out of service: effective at once for every open turn."""
        member = self.registry.remove(name)
        try:
            self._cancel_recall(member)
            if drain:
                await self.background.backlog.drain_plugin(member, self.drain_seconds(member) + GRACE)
        finally:
            # The plugin is unregistered even if the caller is cancelled while it waits.
            lost = self.background.backlog.discard(member)
            self.recorder.event("plugin_unregistered", {"lost": lost}, plugin=name, loudly=lost > 0)
            await self.loader.stop(member)

    def drain_seconds(self, *members: Member) -> float:
        """Return the longest deadline of the members' background hooks; of all members if none is given."""
        return self.deadlines.longest_background(members or self.registry.members())

    def _review(self, member: Member) -> None:
        self.suspensions.review(member, implemented=self.registry.of(member, "before_prompt") is not None)

    def _cancel_recall(self, member: Member) -> None:
        for call in [each for each in self.calls.running.values() if each.hook == "before_prompt"]:
            if call.implementation.member is member:
                self.calls.abandon(call)

    async def _load(self) -> None:
        options = self._options
        points = installed() if options.entry_points is None or options.entry_points else {}
        chosen = {name: point for name, point in points.items() if name in (options.entry_points or points)}
        plan = make_plan(
            installed=chosen, preset=self._preset, disabled=options.config.plugins.disabled, mode=options.mode
        )
        for name in set(options.config.plugins.disabled) - set(points) - set(options.plugins):
            self._log.warning("disabled_plugin_unknown", plugin=name)
        await self.loader.load(plan, points)
        for name, plugin in options.plugins.items():
            await self.loader.bring_in(name, plugin, fail_closed=name in self._preset.fail_closed)
        for name in options.fail_closed:
            self.registry.member(name)
        self._review_members()
        self._check_sections(chosen, plan)

    def _review_members(self) -> None:
        for member in self.registry.members():
            self._review(member)
            # An earlier process may have ended with a full queue; the queue of this one is empty.
            if self.recorder.health.is_at_fault(member.name, QUEUE):
                self.recorder.succeeded(member.name, source=QUEUE)

    def _check_sections(self, points: Collection[str], plan: Plan) -> None:
        members = self.registry.members()
        claimed = {
            each.info.settings_path or f"plugins.{each.name}": each.name for each in members if each.info.settings
        }
        there = {each.name for each in members}
        self._options.config.check_sections(
            claimed=claimed,
            ignored={*plan.disabled, *plan.preset.blocked, *(set(points) - there)},
            installed={*points, *there},
        )

    async def _finish(self) -> None:
        try:
            await self.loader.stop_all()
            if self._small_model is not None:
                await self._small_model.close()
        finally:
            await self._write_down()

    async def _write_down(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._watchdog.stop()
        await self._let_go()
        if self.calls.abandoned:
            facts = {"running": len(self.calls.abandoned), "in_all": self.calls.abandoned_count}
            self.recorder.event("calls_abandoned", facts, loudly=True)
        self.recorder.health.keep_all()
        if self.recorder.trail is not None:
            lost = await _aside(self.recorder.trail.close)
            if lost:
                # The trail is closed, so only the log can report it.
                self._log.error("audit_lost", count=lost)

    async def _let_go(self) -> None:
        """Give cancelled calls `MOMENT` to end, so that only hanging ones are counted."""
        await asyncio.sleep(0)  # the background's workers abandon their calls
        if self.calls.running:
            await asyncio.wait(self.calls.running, timeout=MOMENT)

    def _make_small_model(self) -> "HttpSmallModel | None":
        """Return the configured small model, unless the program gives one of its own."""
        settings = self._options.settings.small_model
        if settings is None or self._options.services.small_model is not None:
            return None
        from beaver_hooks.small_model import HttpSmallModel  # noqa: PLC0415 - it imports httpx

        return HttpSmallModel(settings, tell=self.recorder.event)

    def _lent(self) -> Options:
        """Return the options with the services that plugins are given."""
        if self._small_model is None:
            return self._options
        services = attrs.evolve(self._options.services, small_model=self._small_model)
        return attrs.evolve(self._options, services=services)

    def _make_turns(self, affinity: LoopAffinity) -> Turns:
        clock, idle_seconds = self._options.clock, self._options.settings.idle_turn_seconds
        return Turns(
            registry=self.registry,
            recorder=self.recorder,
            calls=self.calls,
            suspensions=self.suspensions,
            recall_check=self.recall_check,
            background=self.background,
            open_turns=OpenTurns(clock=clock, idle_seconds=idle_seconds),
            injected=InjectedMemory(clock=clock, idle_seconds=idle_seconds),
            admission=self.admission,
            options=self._options,
            affinity=affinity,
        )

    def _make_watchdog(self) -> Watchdog:
        return Watchdog(
            loop=self.loop,
            calls=self.calls,
            blocked_after=self._options.settings.blocked_after_seconds,
            registry=self.registry,
            recorder=self.recorder,
            suspensions=self.suspensions,
            log=self._log,
        )

    def _sweep(self) -> None:
        self.turns.sweep()
        self.turns.injected.sweep()
        self.recorder.check_trail()
        self._sweeper = self.loop.call_later(SWEEP_EVERY, self._sweep)


async def _aside(function: Callable[[], T]) -> T:
    """Run a blocking function off the loop, or on the loop while the interpreter shuts down and no thread can start."""
    try:
        running = asyncio.get_running_loop().run_in_executor(None, function)
    except RuntimeError:
        return function()
    return await running
