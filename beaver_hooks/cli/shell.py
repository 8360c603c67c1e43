"""The shell of a plugin's command group: gives it the plugin in service."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs

from beaver_hooks.agent.errors import UnknownSession
from beaver_hooks.agent.factory import EngineLoadResult
from beaver_hooks.cli.common import configured, in_loop, opened
from beaver_hooks.cli.state import has_sessions, nothing_yet, session_named, sessions_in
from beaver_hooks.config import LoadedConfig
from beaver_hooks.config.paths import printable
from beaver_hooks.state_folder import plugin_folder
from beaver_hostspecs import NotAllowed, PluginUnavailable, StoredSession, UnknownPlugin

T = TypeVar("T")


@attrs.frozen
class PluginShell:
    """The shell of the plugin `name`; see `beaver_hostspecs.Shell`."""

    name: str

    def call(self, function: Callable[[Any], Awaitable[T]]) -> T:
        """Return the result of `await function(plugin)`, in a host that is open meanwhile."""
        return in_loop(self._call(configured(None), function))

    def folder(self) -> Path:
        """Return the plugin's own state folder, even if it is not in service."""
        return plugin_folder(configured(None).state_folder, self.name)

    def person_folder(self) -> Path:
        """Return the plugin's own folder for files that belong to the person."""
        return plugin_folder(configured(None).person_folder, self.name)

    def session(self, beginning: str) -> StoredSession:
        """Return the stored session whose id has this beginning."""
        loaded = configured(None)
        if not has_sessions(loaded.state_folder):
            raise UnknownSession(nothing_yet(loaded.state_folder))
        return in_loop(_stored(loaded, beginning))

    def quoting_sessions(self, texts: Sequence[str], *, user: str | None = None) -> int:
        """Return how many stored sessions, of one user or of all, have a message with all words of one of the texts."""
        folder = configured(None).state_folder
        return in_loop(_quoting(folder, texts, user)) if has_sessions(folder) else 0

    async def _call(self, loaded: LoadedConfig, function: Callable[[Any], Awaitable[T]]) -> T:
        async with opened(loaded) as engine:
            return await function(in_service(engine, self.name))


async def _stored(loaded: LoadedConfig, beginning: str) -> StoredSession:
    async with opened(loaded, notices=False) as engine:
        found = await engine.sessions.show(await session_named(engine.sessions, beginning))
        id_, user = found.info.id, found.info.user
        if engine.host.is_memory_off(session=id_, user=user):
            raise NotAllowed(f"memory is off in the session `{printable(id_)}`; `beaver memory on` switches it on")
        return StoredSession(id=id_, user=user, trust=await engine.sessions.trust(id_), messages=found.messages)


async def _quoting(folder: Path, texts: Sequence[str], user: str | None) -> int:
    async with sessions_in(folder) as store:
        return await store.quoting(texts, user_id=user)


def in_service(engine: EngineLoadResult, name: str) -> object:
    """Return a plugin that is in service.

    Raises:
        PluginUnavailable: it could not be loaded; gives the reason.
        UnknownPlugin: it is turned off, or not installed.
    """
    plugin = engine.plugin(name)
    if plugin is not None:
        return plugin
    health = engine.status.get(name)
    why = f"is {health}" if health is not None else "is not installed"
    kind = PluginUnavailable if health is not None and health.state == "unavailable" else UnknownPlugin
    raise kind(f"the plugin `{name}` {why}; `beaver plugins` shows the state of every plugin", plugin=name)
