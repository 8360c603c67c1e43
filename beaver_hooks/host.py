"""The host: loads plugins, runs turns, keeps audit, receipts and health."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self, TypedDict, Unpack

import attrs

from beaver_hooks.audit.events import AuditSink
from beaver_hooks.audit.trail import Trail
from beaver_hooks.config import Config, Summary, load_config
from beaver_hooks.engine import Engine, Options
from beaver_hooks.record.health import Health
from beaver_hooks.registry.modes import Preset, preset
from beaver_hooks.turns.checking import checked
from beaver_hooks.turns.ids import is_ours, new_turn_id
from beaver_hooks.turns.open_turn import OpenTurn
from beaver_hostspecs import (
    Actors,
    Answer,
    AuditUnavailable,
    Clock,
    Command,
    DropReason,
    ForkedHost,
    HostNotOpen,
    HostRef,
    Message,
    PluginInfo,
    Scope,
    Services,
    SystemClock,
    Tool,
    ToolRegistry,
    Trust,
    Turn,
    TurnClosed,
    WrongLoop,
)

STATE_FOLDER = Path(".beaver")
NOTHING: Mapping[str, Any] = MappingProxyType({})


class TurnFields(TypedDict, total=False):
    """What a host may say about a turn beyond its prompt and its session; see `Turn`."""

    id: str
    when: datetime
    conversation: str
    user: str | None
    history: Iterable[Message]
    scope: Scope
    actors: Actors
    refs: Iterable[HostRef]
    registry: ToolRegistry | None
    budget: int | None
    trust: Trust | str


class Host:
    """Runs turns over plugins. Enter it with `async with`, in the event loop that will use it.

    `Host(...)` registers what it is given. `Host.from_config()` loads every installed plugin as the configuration
    file says.

    Args:
        plugins: plugin objects to register, by name.
        entry_points: names of installed plugins to load.
        fail_closed: names of plugins whose failure in `before_prompt` stops the turn.
        config: settings; the defaults if `None`.
        state_folder: where state is kept, `.beaver` in the working directory by default.
        services: what the host lends to plugins.
        sinks: further places for audit events.
        clock: where time comes from.
        boundary: returns the random boundary around a turn's references.
        environment: where secrets given as `{"env": NAME}` are looked up.
    """

    def __init__(
        self,
        plugins: Mapping[str, object] = NOTHING,
        *,
        entry_points: Collection[str] = (),
        fail_closed: Collection[str] = (),
        config: Config | None = None,
        state_folder: Path | str | None = None,
        services: Services | None = None,
        sinks: Iterable[AuditSink] = (),
        clock: Clock | None = None,
        boundary: Callable[[], str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        names = frozenset(entry_points)
        self._options = Options(
            config=config or Config(),
            discover=names,
            preset=Preset(required=names, fail_closed=names & frozenset(fail_closed)),
            mode=None,
            plugins=plugins,
            fail_closed=fail_closed,
            state_folder=Path(state_folder or STATE_FOLDER),
            services=services or Services(),
            environment=os.environ if environment is None else environment,
            sinks=tuple(sinks),
            clock=clock or SystemClock(),
            boundary=boundary or _random_boundary,
        )
        self._engine: Engine | None = None
        self._opening = False
        self._process = os.getpid()

    @classmethod
    def from_config(
        cls,
        path: Path | str | None = None,
        *,
        confirm: Callable[[Summary], bool] | None = None,
        plugins: Mapping[str, object] = NOTHING,
        services: Services | None = None,
        sinks: Iterable[AuditSink] = (),
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """Return a host for the configuration file: `path`, else `BEAVER_CONFIG`, else `.beaver/config.json`.

        Every installed plugin is loaded, as far as the memory mode and `plugins.disabled` let it be.

        Args:
            path: the file, which is trusted because it is named.
            confirm: asks a person about a file that was merely found.
            plugins: further plugin objects to register, by name.
            services: what the host lends to plugins.
            sinks: further places for audit events.
            environment: the process's environment unless given.

        Raises:
            ConfigurationError: a setting is wrong, or nobody has confirmed the file.
        """
        loaded = load_config(None if path is None else Path(path), environment=environment, confirm=confirm)
        config = loaded.config
        host = cls(
            plugins,
            config=config,
            state_folder=loaded.state_folder,
            services=services,
            sinks=sinks,
            environment=environment,
        )
        host._options = attrs.evolve(
            host._options,
            discover=None,
            preset=preset(config.mode, explicit=config.explicit),
            mode=config.mode,
        )
        return host

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    # --- The host's own life ------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Load and start the plugins. Raises what keeps a required plugin from loading, and leaves nothing open."""
        if self._engine is not None or self._opening:
            self._check_process()
            raise HostNotOpen("this host is open already; one host is opened once at a time")
        self._process = os.getpid()
        self._opening = True
        try:
            engine = Engine(self._options)
            await engine.open()
            self._engine = engine
        finally:
            self._opening = False

    async def close(self) -> None:
        """Drop open turns, drain the background within the largest declared deadline, stop the plugins."""
        engine = self._running()
        self._engine = None
        await engine.close()

    async def drain(self, seconds: float | None = None) -> int:
        """Wait until the background work is done, at most `seconds`; return how many calls are left."""
        return await self._running().turns.backlog.drain(seconds)

    # --- Plugins ------------------------------------------------------------------------------------------------

    async def register(self, name: str, plugin: object, *, fail_closed: bool = False) -> None:
        """Register, configure and start a plugin; turns that are open already do not see it.

        Raises:
            PluginRefused: it breaks the contract; the sentence says how.
            PluginFailed: its `start` failed.
        """
        await self._running().register(name, plugin, fail_closed=fail_closed)

    async def unregister(self, name: str, *, drain: bool = False) -> None:
        """Take a plugin out: no further hook of it is called, its queued work is discarded, then it is stopped.

        Args:
            name: the plugin.
            drain: run its queued work first, within its largest deadline.

        Raises:
            UnknownPlugin: no plugin of that name is registered; the message lists those that are.
        """
        await self._running().unregister(name, drain=drain)

    def plugin(self, name: str) -> object:
        """Return a registered plugin object, or raise `UnknownPlugin`."""
        return self._running().registry.member(name).plugin

    @property
    def plugins(self) -> dict[str, PluginInfo]:
        """The registered plugins, in order, with what they say about themselves."""
        return {member.name: member.info for member in self._running().registry.members()}

    @property
    def tools(self) -> dict[str, tuple[Tool, ...]]:
        """The tools that each plugin offers to the model."""
        return {member.name: member.tools for member in self._running().registry.members()}

    @property
    def commands(self) -> dict[str, tuple[Command, ...]]:
        """The commands that each plugin offers to the user."""
        return {member.name: member.commands for member in self._running().registry.members()}

    # --- Turns --------------------------------------------------------------------------------------------------

    async def open_turn(
        self, prompt: str, *, session: str, supersedes: str | None = None, **fields: Unpack[TurnFields]
    ) -> OpenTurn:
        """Open a turn: every plugin is asked for its contribution, side by side, each behind its own deadline.

        Args:
            prompt: what the user said.
            session: the id of the running session.
            supersedes: the id of an earlier turn that this one replaces; it is dropped if it is still open.
            **fields: what else the host knows about the turn.

        Raises:
            InvalidTurn: a field does not fit.
            TurnAlreadyOpen: a turn with that id is open.
            TurnClosed: a turn with that id was closed.
            Exception: whatever a fail-closed plugin raised, unchanged.
            PluginFailed: a fail-closed plugin timed out or answered the wrong type.
        """
        engine = self._running()
        fields.setdefault("id", new_turn_id())
        fields.setdefault("when", self._options.clock.now())
        was_injected = partial(engine.turns.injected.was_injected, session)
        turn = checked(Turn, prompt=prompt, session=session, was_injected=was_injected, **fields)
        return await engine.turns.open(turn, supersedes=supersedes)

    @asynccontextmanager
    async def turn(
        self, prompt: str, *, session: str, supersedes: str | None = None, **fields: Unpack[TurnFields]
    ) -> AsyncIterator[OpenTurn]:
        """Open a turn that cannot be forgotten: it is dropped on any exception, and if nobody has committed it."""
        opened = await self.open_turn(prompt, session=session, supersedes=supersedes, **fields)
        turns = self._running().turns
        try:
            yield opened
        except (asyncio.CancelledError, GeneratorExit):
            turns.drop_now(opened, DropReason.CANCELLED)
            raise
        except BaseException:
            turns.drop_now(opened, DropReason.FAILED)
            raise
        else:
            turns.drop_now(opened, DropReason.ABANDONED)

    def find_turn(self, turn_id: str) -> OpenTurn:
        """Return an open turn, or raise `TurnClosed` or `UnknownTurn`."""
        return self._running().turns.book.find(turn_id)

    async def commit(self, turn_id: str, answer: str | Answer) -> bool:
        """Close a turn by its id with its answer; `False` if it was closed before."""
        try:
            opened = self.find_turn(turn_id)
        except TurnClosed:
            return False
        return await opened.commit(answer)

    async def drop(self, turn_id: str, reason: DropReason | str = DropReason.FAILED) -> bool:
        """Close a turn by its id without an answer; `False` if it was closed before."""
        try:
            opened = self.find_turn(turn_id)
        except TurnClosed:
            return False
        return await opened.drop(reason)

    # --- What is written down -----------------------------------------------------------------------------------

    def health(self) -> dict[str, Health]:
        """Return the health of every plugin that this host has heard of, and its own under the name `host`."""
        return self._running().recorder.health.all()

    async def receipt(self, turn_id: str) -> Mapping[str, Any] | None:
        """Return the kept receipt of a closed turn, of an earlier process too, or `None`.

        Raises:
            AuditUnavailable: there is no audit trail, or it cannot be read.
        """
        trail = self.trail
        await asyncio.to_thread(trail.flush)
        return await asyncio.to_thread(trail.receipt, turn_id if is_ours(turn_id) else trail.identify(turn_id))

    @property
    def trail(self) -> Trail:
        """The audit trail: `tail`, `verify`, `flush`. Raises `AuditUnavailable` where it could not be opened."""
        trail = self._running().record.trail
        if trail is None:
            raise AuditUnavailable("the audit trail could not be opened; the host's health and log say why")
        return trail

    def _running(self) -> Engine:
        """Return the engine, or say what is wrong with how the host is used."""
        engine = self._engine
        if engine is None:
            raise HostNotOpen("this host is not open; enter it with `async with host:` or `await host.open()`")
        self._check_process()
        if engine.loop is not _running_loop():
            raise WrongLoop(
                "a host belongs to the event loop that opened it; without a loop of your own, use beaver_hooks.SyncHost"
            )
        return engine

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise ForkedHost("this host was opened before a fork and cannot be used in the child; open a new one there")


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _random_boundary() -> str:
    return secrets.token_hex(8)
