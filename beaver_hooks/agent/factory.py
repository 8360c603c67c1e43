"""Builds an agent from its configuration: host, sessions, tools, skills, provider."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

import attrs

from beaver_hooks.agent.messages import Provider
from beaver_hooks.agent.providers import provider_of
from beaver_hooks.agent.sessions.database import refuse_listed
from beaver_hooks.agent.sessions.events import SessionEvents
from beaver_hooks.agent.sessions.store import SessionStore
from beaver_hooks.agent.shield import uninterrupted
from beaver_hooks.agent.skills import SkillLibrary
from beaver_hooks.audit.events import AuditSink
from beaver_hooks.config import LoadedConfig, Summary, load_config
from beaver_hooks.config.model import AgentSettings
from beaver_hooks.file_trust import StateFiles
from beaver_hooks.host import Host
from beaver_hooks.log import make_log
from beaver_hooks.receipts.health import Health
from beaver_hooks.tools import ToolBox, session_search_tool
from beaver_hostspecs import AuditUnavailable, Clock, SystemClock, Trust, UnknownPlugin

SKILLS = "skills"
"""The default folder of skills, in the state folder."""

NOTHING: Mapping[str, Any] = MappingProxyType({})


@attrs.define(kw_only=True, eq=False)
class EngineLoadResult:
    """The open parts of an agent. Close it, or use it with `async with`.

    Attributes:
        loaded: the configuration, and its source.
        host: the host, with its plugins started.
        sessions: the stored conversations.
        events: stores the host's audit events in them.
        tools: the tools on offer.
        skills: the skills that can be activated.
        provider: the language model.
        clock: the source of time.
    """

    loaded: LoadedConfig
    host: Host
    sessions: SessionStore
    events: SessionEvents
    tools: ToolBox
    skills: SkillLibrary
    provider: Provider
    clock: Clock
    _closing: AsyncExitStack = attrs.field(repr=False)

    @property
    def settings(self) -> AgentSettings:
        """The section `agent` of the configuration."""
        return self.loaded.config.agent

    @property
    def status(self) -> dict[str, Health]:
        """The status of each plugin, including disabled ones and those that could not be loaded."""
        return self.host.health()

    @property
    def notices(self) -> dict[str, tuple[str, ...]]:
        """The notices of plugins for the user, by plugin."""
        return self.host.notices()

    def trust(self, given: Trust | str | None = None) -> Trust:
        """Return the trust in a run: that of `agent.trust`, or the given one if it is less."""
        configured = Trust(self.settings.trust)
        if given is None or Trust(given).reaches(configured):
            return configured
        return Trust(given)

    def plugin(self, name: str) -> object | None:
        """Return a plugin that is in service, or `None`."""
        try:
            return self.host.plugin(name)
        except UnknownPlugin:
            return None

    @property
    def memory_gateway_service(self) -> Any | None:
        """The `service` of the plugin `gateway`, or `None` if the plugin is not in service."""
        return getattr(self.plugin("gateway"), "service", None)

    async def close(self) -> None:
        """Drain and close the host, store its last events, close the rest. Closing again does nothing."""
        await self._closing.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


@attrs.frozen(kw_only=True)
class EngineLoader:
    """Loads an agent. To change the memory mode or another setting, change the file and load again.

    Attributes:
        config: the configuration file, which is trusted because it is named; an already loaded configuration; or
            `None` for `BEAVER_CONFIG`, else `.beaver/config.json`, else the defaults.
        confirm: asks the user about a file that was merely found.
        plugins: further plugin objects to register, by name.
        sinks: further sinks for audit events.
        clock: the source of time.
        environment: by default the process's environment.
    """

    config: Path | LoadedConfig | None = attrs.field(default=None, kw_only=False)
    confirm: Callable[[Summary], bool] | None = None
    plugins: Mapping[str, object] = NOTHING
    sinks: Iterable[AuditSink] = ()
    clock: Clock | None = None
    environment: Mapping[str, str] | None = None

    async def load(self) -> EngineLoadResult:
        """Open all parts, in the running event loop; on failure close them again.

        Raises:
            ConfigurationError: a setting is wrong; names its path, never its value.
            ConfigurationNotTrusted: the file was merely found, and the user has not confirmed it.
            PluginMissing: a plugin that the mode needs is missing; gives the way to install it.
            StorageError: the sessions cannot be read or written.
        """
        loaded = self._configuration()
        clock = self.clock or SystemClock()
        async with AsyncExitStack() as stack:
            # A thread cannot be cancelled: if it opens the store all the same, the store is closed with the rest.
            files = StateFiles(loaded.state_folder, os.environ if self.environment is None else self.environment)
            store = await uninterrupted(_open_store(stack, loaded, clock, files))
            provider = provider_of(loaded, self.environment)
            stack.push_async_callback(provider.close)
            events = SessionEvents(store)
            stack.push_async_callback(_flush, events)
            host = await stack.enter_async_context(self._host(loaded, events))
            with contextlib.suppress(AuditUnavailable):
                # The health of the host says why there is none.
                store.audit_damage(host.trail)
            settings = loaded.config.agent
            search = session_search_tool(store, lambda session, user: host.is_memory_off(session=session, user=user))
            tools = ToolBox(host, [search], output_characters=settings.tool_output_characters)
            return EngineLoadResult(
                loaded=loaded,
                host=host,
                sessions=store,
                events=events,
                tools=tools,
                skills=library_of(loaded, files),
                provider=provider,
                clock=clock,
                closing=stack.pop_all(),
            )

    def _configuration(self) -> LoadedConfig:
        if isinstance(self.config, LoadedConfig):
            return self.config
        return load_config(self.config, environment=self.environment, confirm=self.confirm)

    def _host(self, loaded: LoadedConfig, events: SessionEvents) -> Host:
        return Host(
            self.plugins,
            entry_points=None,
            config=loaded.config,
            state_folder=loaded.state_folder,
            person_folder=loaded.person_folder,
            sinks=[events, *self.sinks],
            clock=self.clock,
            environment=self.environment,
        )


def skill_folders(loaded: LoadedConfig) -> tuple[Path, ...]:
    """Return the folders of skills: the configured ones, relative to the file's folder, then the default one."""
    base = loaded.path.parent if loaded.path is not None else Path()
    own = loaded.state_folder / SKILLS
    given = tuple(base / folder for folder in loaded.config.agent.skill_folders)
    return (*given, own) if own.is_dir() and own not in given else given


def library_of(loaded: LoadedConfig, files: StateFiles) -> SkillLibrary:
    """Return the skills. Those in the state folder need trust; the user named the other folders."""
    inside = loaded.state_folder, Path(os.path.realpath(loaded.state_folder))

    def believes(path: Path, content: bytes) -> bool:
        return not any(map(path.is_relative_to, inside)) or files.believes(path, content)

    return SkillLibrary(skill_folders(loaded), believes=believes)


async def _open_store(stack: AsyncExitStack, loaded: LoadedConfig, clock: Clock, files: StateFiles) -> SessionStore:
    store = await asyncio.to_thread(_store, loaded, clock, files)
    stack.push_async_callback(store.close)
    return store


def _store(loaded: LoadedConfig, clock: Clock, files: StateFiles) -> SessionStore:
    refuse_listed(loaded.state_folder, files)
    return SessionStore.open(loaded.state_folder, clock=clock, store_secrets=loaded.config.agent.store_secrets)


async def _flush(events: SessionEvents) -> None:
    """Store the host's last events. The audit trail has them too, so a failure is only logged."""
    try:
        await events.flush()
    except Exception as error:  # noqa: BLE001 - the other parts must be closed after any error
        make_log().error("session_events_lost", error=type(error).__name__)
    if events.lost:
        make_log().warning("session_events_lost", count=events.lost)
