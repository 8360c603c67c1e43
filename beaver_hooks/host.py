"""The host: loads plugins, runs turns, keeps audit, receipts and health."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self, Unpack

from beaver_hooks.arguments import as_context, as_mapping, as_name, as_path, as_seconds, as_text, as_texts, make_options
from beaver_hooks.audit.events import AuditSink
from beaver_hooks.audit.trail import Trail
from beaver_hooks.config import Config, Summary, load_config
from beaver_hooks.loop_affinity import LoopAffinity, not_open
from beaver_hooks.receipts.health import Health
from beaver_hooks.runtime import HostRuntime
from beaver_hooks.turns.compactions import CompactionFields, CompactionReport
from beaver_hooks.turns.fields import ToolFields, TurnFields, checked, checked_id, is_ours
from beaver_hooks.turns.open_turn import OpenTurn
from beaver_hostspecs import (
    Answer,
    Caller,
    Clock,
    Command,
    CommandContext,
    Compaction,
    DropReason,
    HostNotOpen,
    PluginInfo,
    Services,
    Tool,
    TurnClosed,
)

NOTHING: Mapping[str, Any] = MappingProxyType({})


class Host:
    """Runs turns over plugins. Enter it with `async with`, in the event loop that will use it.

    `Host(...)` registers the given plugins. `Host.from_config()` loads every installed plugin that the configuration
    file allows.

    Args:
        plugins: plugin objects to register, by name.
        entry_points: names of installed plugins, each of which must load; `None` for every installed plugin, as far as
            the memory mode and `plugins.disabled` of the configuration allow it.
        fail_closed: names of plugins whose failure in `before_prompt` stops the turn.
        config: settings; the defaults if `None`.
        state_folder: the folder of the state; by default the nearest `.beaver` at or above the working directory, else
            the one in the home directory.
        person_folder: the folder of the plugins' data that belong to the person and not to the project; by default
            `.beaver` in the home directory, or `state_folder` if only that is given.
        services: the services that the host lends to plugins.
        sinks: further destinations of audit events.
        clock: the source of the time.
        boundary: returns the random boundary around a turn's references.
        environment: the variables in which secrets given as `{"env": NAME}` are looked up.

    Raises:
        HostMisused: an argument cannot work.
    """

    def __init__(
        self,
        plugins: Mapping[str, object] = NOTHING,
        *,
        entry_points: Collection[str] | None = (),
        fail_closed: Collection[str] = (),
        config: Config | None = None,
        state_folder: Path | str | None = None,
        person_folder: Path | str | None = None,
        services: Services | None = None,
        sinks: Iterable[AuditSink] = (),
        clock: Clock | None = None,
        boundary: Callable[[], str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._options = make_options(
            plugins=plugins, entry_points=entry_points, fail_closed=fail_closed, config=config,
            state_folder=state_folder, person_folder=person_folder, services=services, sinks=sinks, clock=clock,
            boundary=boundary, environment=environment,
        )  # fmt: skip
        self._runtime: HostRuntime | None = None
        self._affinity: LoopAffinity | None = None

    @classmethod
    def from_config(
        cls,
        path: Path | str | None = None,
        *,
        confirm: Callable[[Summary], bool] | None = None,
        plugins: Mapping[str, object] = NOTHING,
        services: Services | None = None,
        sinks: Iterable[AuditSink] = (),
        clock: Clock | None = None,
        boundary: Callable[[], str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """Return a host for the configuration file: `path`, else `BEAVER_CONFIG`, else `.beaver/config.json`.

        Every installed plugin is loaded, as far as the memory mode and `plugins.disabled` allow it.

        Args:
            path: the file, which is trusted because it is named.
            confirm: asks a person about a file that was found and not named.
            plugins: further plugin objects to register, by name; this and the rest as for `Host`.
            services: the services that the host lends to plugins.
            sinks: further destinations of audit events.
            clock: the source of the time.
            boundary: returns the random boundary.
            environment: the process's environment unless given.

        Raises:
            HostMisused: an argument cannot work.
            ConfigurationError: a setting is wrong, or the user has not confirmed the file.
        """
        found = None if path is None else as_path("path", path)
        environment = None if environment is None else as_mapping("environment", environment)
        loaded = load_config(found, environment=environment, confirm=confirm)
        return cls(
            plugins, entry_points=None, config=loaded.config, state_folder=loaded.state_folder,
            person_folder=loaded.person_folder, services=services, sinks=sinks, clock=clock, boundary=boundary,
            environment=environment,
        )  # fmt: skip

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    # --- The host's own life ------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Load and start the plugins; if a required plugin cannot be loaded, close everything and raise."""
        if self._affinity is not None:
            self._affinity.check_process()
            raise HostNotOpen("this host is open already; close it before you open it again")
        self._affinity = LoopAffinity()
        try:
            runtime = HostRuntime(self._options, self._affinity)
            await runtime.open()
        except BaseException:
            self._affinity = None
            raise
        self._runtime = runtime

    async def close(self) -> None:
        """Drop open turns, drain the background within the largest declared deadline, stop the plugins."""
        runtime = self._running()
        runtime.affinity.leave()
        self._runtime = None
        try:
            await runtime.close()
        finally:
            self._affinity = None

    async def drain(self, seconds: float | None = None) -> int:
        """Wait until the background work is done, at most `seconds`; return how many calls are left."""
        runtime = self._running()
        return await runtime.background.backlog.drain(None if seconds is None else as_seconds("seconds", seconds))

    # --- Plugins ------------------------------------------------------------------------------------------------

    async def register(self, name: str, plugin: object, *, fail_closed: bool = False) -> None:
        """Register, configure and start a plugin; turns that are open already do not see it.

        Raises:
            PluginRefused: it breaks the contract; the message says how.
            PluginFailed: its `start` failed.
        """
        await self._running().register(name, plugin, fail_closed=fail_closed)

    async def unregister(self, name: str, *, drain: bool = False) -> None:
        """Take a plugin out: no further hook of it is called, its queued work is discarded, then it is stopped.

        Args:
            name: the plugin.
            drain: run its queued work first, within its largest deadline.

        Raises:
            UnknownPlugin: no plugin of that name is registered; the message lists the registered plugins.
        """
        await self._running().unregister(name, drain=drain)

    def plugin(self, name: str) -> object:
        """Return a registered plugin object, or raise `UnknownPlugin`."""
        return self._running().registry.member(name).plugin

    @property
    def plugins(self) -> dict[str, PluginInfo]:
        """The registered plugins, in order, with their descriptions."""
        return {member.name: member.info for member in self._running().registry.members()}

    @property
    def fail_closed(self) -> frozenset[str]:
        """The registered plugins whose failure in `before_prompt` stops the turn."""
        return frozenset(member.name for member in self._running().registry.members() if member.fail_closed)

    @property
    def tools(self) -> dict[str, tuple[Tool, ...]]:
        """The tools that each plugin offers to the model."""
        return {member.name: member.tools for member in self._running().registry.members()}

    @property
    def commands(self) -> dict[str, tuple[Command, ...]]:
        """The commands that each plugin offers to the user."""
        return {member.name: member.commands for member in self._running().registry.members()}

    def offered_tools(self, caller: Caller) -> dict[str, tuple[Tool, ...]]:
        """Return the tools that a caller may use, by plugin; none while memory is off."""
        return self._running().offers.tools(caller)

    def offered_commands(self, caller: Caller) -> dict[str, tuple[Command, ...]]:
        """Return the commands that a caller may use, by plugin; none while memory is off."""
        return self._running().offers.commands(caller)

    async def switch_memory(self, *, on: bool, session: str | None = None, user: str | None = None) -> None:
        """Switch memory on or off in a session of a user, or in all sessions of the user.

        Memory stays off, in every process that shares the state folder, until it is switched on again. Meanwhile no
        plugin takes part in turns, and no tool and no command of a plugin runs.

        Args:
            on: whether to switch it on.
            session: the session, or `None` for all sessions of the user.
            user: the user, or `None` for turns without a user.

        Raises:
            InvalidTurn: the session or the user is blank.
            AuditUnavailable: the switch cannot be written.
        """
        who = checked(CommandContext, session=session, user=user)
        await self._running().admission.switch_memory(who.session, who.user, on=bool(on))

    def is_memory_off(self, *, session: str | None = None, user: str | None = None) -> bool:
        """Whether memory is off in a session of a user; without a session, whether it is off in all of them."""
        return self._running().admission.is_off(checked(CommandContext, session=session, user=user))

    async def run_tool(self, turn_id: str, name: str, arguments: Mapping[str, Any]) -> object:
        """Run a plugin's tool for the model, within an open turn; return its result.

        Only plugins that were registered when the turn was opened, and still are, take part. The tool has the default
        deadline; an overdue tool is cancelled and abandoned.

        Raises:
            NotOffered: no plugin of that turn offers such a tool; the message lists the tools of the turn.
            NotAllowed: the turn's trust is too low for it, or memory is off.
            TurnClosed: the turn is closed.
            Exception: the tool's own error, unchanged, after it was audited.
            PluginFailed: the tool exceeded its deadline, or ended itself.
        """
        given = as_mapping("arguments", arguments)
        return await self._running().offers.run_tool(self.find_turn(turn_id), as_text("name", name), given)

    async def use_tool(
        self, name: str, arguments: Mapping[str, Any], *, session: str, **fields: Unpack[TurnFields]
    ) -> object:
        """Run a plugin's tool outside of any turn, for a host that only pulls; return its result.

        The tool gets a turn with an empty prompt that is never opened: no hook of any plugin is called, the turn is not
        committed or dropped, and it has no receipt. The audit event `tool_used` holds the tool's reports. The deadline
        is that of `run_tool`.

        Args:
            name: the tool.
            arguments: the tool's arguments; check them against `tool.parameters` before.
            session: the id of the session of the call.
            **fields: further fields of the turn, as for `open_turn`.

        Raises:
            InvalidTurn: a field does not fit.
            NotOffered: no plugin offers such a tool; the message lists the offered tools.
            NotAllowed: the given trust is too low for it, or memory is off.
            Exception: the tool's own error, unchanged, after it was audited.
            PluginFailed: the tool exceeded its deadline, or ended itself.
        """
        given, wanted, runtime = as_mapping("arguments", arguments), as_text("name", name), self._running()
        return await runtime.standalone_tools.use(runtime.turns.new_turn("", session, fields), wanted, given)

    async def run_command(self, plugin: str, command: str, words: Iterable[str], context: CommandContext) -> str:
        """Run a plugin's command for the user; return the text to show.

        Raises:
            UnknownPlugin: no plugin of that name is registered; the message lists the registered plugins.
            NotOffered: the plugin offers no such command; the message lists its commands.
            NotAllowed: the context's trust is too low for it, or memory is off.
            Exception: the command's own error, unchanged, after it was audited.
            PluginFailed: the command exceeded its deadline or returned no text.
        """
        given = as_texts("words", words)
        return await self._running().offers.run_command(plugin, as_text("command", command), given, as_context(context))

    # --- Turns --------------------------------------------------------------------------------------------------

    async def open_turn(
        self, prompt: str, *, session: str, supersedes: str | None = None, **fields: Unpack[TurnFields]
    ) -> OpenTurn:
        """Open a turn: ask every plugin for its contribution, side by side, each within its own deadline.

        While memory is off for the user and session, no plugin takes part; the receipt says so.

        Args:
            prompt: the user's prompt.
            session: the id of the running session.
            supersedes: the id of an earlier turn that this one replaces; it is dropped if it is still open.
            **fields: further fields of the turn; see `Turn`.

        Raises:
            InvalidTurn: a field does not fit.
            TurnAlreadyOpen: a turn with that id is open.
            TurnClosed: a turn with that id was closed.
            Exception: the error of a fail-closed plugin, unchanged.
            PluginFailed: a fail-closed plugin timed out or returned the wrong type.
        """
        runtime = self._running()
        turn = runtime.turns.new_turn(prompt, session, fields)
        return await runtime.turns.open(turn, supersedes=None if supersedes is None else checked_id(supersedes))

    @asynccontextmanager
    async def turn(
        self, prompt: str, *, session: str, supersedes: str | None = None, **fields: Unpack[TurnFields]
    ) -> AsyncIterator[OpenTurn]:
        """Open a turn for a `with` block: it is dropped on any exception, and if the block did not commit it."""
        opened = await self.open_turn(prompt, session=session, supersedes=supersedes, **fields)
        async with self._running().turns.hold(opened):
            yield opened

    def find_turn(self, turn_id: str) -> OpenTurn:
        """Return an open turn, or raise `TurnClosed` or `UnknownTurn`."""
        return self._running().turns.open_turns.find(checked_id(turn_id))

    async def tool_result(self, turn_id: str, **fields: Unpack[ToolFields]) -> bool:
        """Tell the plugins about a tool call of a turn by its id; `False` if the turn was closed before."""
        opened = self._unless_closed(turn_id)
        return opened is not None and await opened.tool_result(**fields)

    async def commit(self, turn_id: str, answer: str | Answer) -> bool:
        """Close a turn by its id with its answer; `False` if it was closed before."""
        opened = self._unless_closed(turn_id)
        return opened is not None and await opened.commit(answer)

    async def drop(self, turn_id: str, reason: DropReason | str = DropReason.FAILED) -> bool:
        """Close a turn by its id without an answer; `False` if it was closed before."""
        opened = self._unless_closed(turn_id)
        return opened is not None and await opened.drop(reason)

    async def before_compaction(self, *, session: str, **fields: Unpack[CompactionFields]) -> CompactionReport:
        """Announce that the context of a session is about to be shortened; call it before that, and wait for it.

        Committed turns of the session reach the plugins first. Then every plugin with this hook stores what it still
        holds of the session, side by side, each within its own deadline. A turn that is open stays open.

        Args:
            session: the id of the running session.
            **fields: further fields; see `Compaction`. Give the `user`, `scope` and `trust` of the session's turns.

        Returns:
            Which plugins confirmed that all that they keep of the session is durable. No failure of a plugin is an
            error, of a fail-closed one neither; while memory is off, no plugin is asked.

        Raises:
            InvalidTurn: a field does not fit.
        """
        runtime = self._running()
        given: dict[str, Any] = {"when": runtime.compactions.clock.now(), **fields}
        return await runtime.compactions.announce(checked(Compaction, session=session, **given))

    def _unless_closed(self, turn_id: str) -> OpenTurn | None:
        try:
            return self.find_turn(turn_id)
        except TurnClosed:
            return None

    # --- Health, receipts and the audit trail -------------------------------------------------------------------

    def health(self) -> dict[str, Health]:
        """Return the health of every plugin that this host knows, and its own under the name `host`."""
        return self._running().recorder.healths()

    def notices(self) -> dict[str, tuple[str, ...]]:
        """Return the plugins' notices for the person who runs this host, by plugin; a notice is no fault."""
        return dict(self._running().recorder.notices)

    async def receipt(self, turn_id: str) -> Mapping[str, Any] | None:
        """Return the stored receipt of a closed turn, also of an earlier process, or `None`.

        Raises:
            AuditUnavailable: there is no audit trail, or it cannot be read.
        """
        trail = self._running().recorder.readable_trail()
        recorded = turn_id if is_ours(checked_id(turn_id)) else trail.identify(turn_id)
        await asyncio.to_thread(trail.flush)
        return await asyncio.to_thread(trail.receipt, recorded)

    @property
    def trail(self) -> Trail:
        """The audit trail: `tail`, `verify`, `flush`, for any thread.

        Raises:
            AuditUnavailable: it could not be opened.
        """
        return self._opened().recorder.readable_trail()

    def record(self, event: str, *, plugin: str | None = None, loudly: bool = False, **facts: object) -> None:
        """Append an audit event of the application: a `snake_case` name and flat, content-free facts.

        Args:
            event: the name.
            plugin: the plugin that it is about.
            loudly: log it as a warning, and not at debug level.
            **facts: the facts of the event.
        """
        name = None if plugin is None else as_name("plugin", plugin)
        self._running().recorder.event(as_name("event", event), facts, plugin=name, loudly=bool(loudly))

    def _running(self) -> HostRuntime:
        """Return the runtime, or raise if the host may not be used here."""
        runtime = self._opened()
        runtime.affinity.check()
        return runtime

    def _opened(self) -> HostRuntime:
        """Return the runtime for methods that any thread may call."""
        if self._runtime is None:
            raise not_open()
        self._runtime.affinity.check_open()
        return self._runtime
