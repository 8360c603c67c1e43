"""The user's commands to memory: `/memory` in a conversation, `beaver memory` outside of one.

    /memory                     the state and overview of every plugin, and whether memory is on for this session
    /memory off | on            switch memory off and on for this session
    /memory PLUGIN              the commands of a plugin
    /memory PLUGIN COMMAND ...  one of them
    /memory COMMAND ...         the same, if only one plugin in service has a command of that name

A session stays off until it is switched on again, in later processes too; while it is off, `/memory on` is the only
command of memory. A plugin's part of the overview is the answer of its command `overview` without words, if it has one.
"""

from collections.abc import Collection, Sequence

import attrs

from beaver_hooks.agent.factory import EngineLoadResult
from beaver_hooks.config.paths import did_you_mean
from beaver_hooks.receipts.recorder import HOST
from beaver_hooks.turns.admission import OFF as OFF_HERE
from beaver_hostspecs import CommandContext, NotAllowed, NotOffered, PluginError, PluginFailed, Trust
from beaver_hostspecs.naming import type_name

OFF, ON = "off", "on"
EVERYWHERE = "`beaver memory on` switches it on again; add --user ID if the user has an id."
OVERVIEW = "overview"
"""The command whose answer a plugin shows in the overview of all."""


@attrs.frozen
class MemoryCommands:
    """The commands, over a loaded engine.

    Attributes:
        called: the user's text before the words of a command.
    """

    _engine: EngineLoadResult
    called: str = "/memory"

    async def run(self, words: Sequence[str], context: CommandContext) -> str:
        """Run a command; return the text to show.

        Raises:
            NotOffered: the command does not exist; lists those that do.
            NotAllowed: memory is off, or the trust of the caller is not enough.
            SessionError: the session is not this caller's.
            AuditUnavailable: memory cannot be switched.
            PluginFailed: a plugin's command raised; names the plugin and the command.
        """
        if not words:
            return await self.overview(context)
        if len(words) == 1 and words[0] in (OFF, ON):
            return await self.switch(context, on=words[0] == ON)
        if self._is_off(context):
            raise NotAllowed(OFF_HERE)
        is_plugin = words[0] in self._engine.status and words[0] != HOST
        plugin, *rest = words if is_plugin else (self._offering(words, context), *words)
        if not rest:
            return self.listing(plugin, context)
        self._ensure_in_service(plugin, context)
        return await self._run_command(plugin, rest, context)

    async def _run_command(self, plugin: str, words: Sequence[str], context: CommandContext) -> str:
        try:
            return await self._engine.host.run_command(plugin, words[0], words[1:], context)
        except (NotOffered, NotAllowed):
            raise
        except PluginError as error:
            raise PluginFailed(f"`{plugin} {words[0]}`: {error}", plugin=plugin) from error
        except Exception as error:
            known = "`beaver audit tail` shows the failure"
            text = f"`{plugin} {words[0]}` failed unexpectedly ({type_name(error)}); {known}"
            raise PluginFailed(text, plugin=plugin) from error

    async def overview(self, context: CommandContext) -> str:
        """Return the state and overview of every plugin, and whether memory is on for the session."""
        status = {name: health for name, health in self._engine.status.items() if name != HOST}
        width = max(map(len, status), default=0)
        lines: list[str] = []
        for name, health in status.items():
            notices = [f"  {text}" for text in self._engine.notices.get(name, ())]
            lines += [f"{name:{width}}  {health}", *notices, *await self._shown(name, context)]
        if context.session is not None or self._is_off(context):
            lines.append(self._state(context))
        return "\n".join([*(lines or ["No memory plugin is installed."]), self._known(context)])

    async def _shown(self, plugin: str, context: CommandContext) -> list[str]:
        """Return the lines of a plugin's overview; if it fails, a line about the failure."""
        if all(each.name != OVERVIEW for each in self._engine.host.offered_commands(context).get(plugin, ())):
            return []
        try:
            text = await self._engine.host.run_command(plugin, OVERVIEW, (), context)
        except Exception as error:  # noqa: BLE001 - the host has audited it
            text = f"Its overview cannot be shown ({type(error).__name__}); `beaver doctor` shows the details."
        return [f"  {line}".rstrip() for line in text.splitlines()]

    def _offering(self, words: Sequence[str], context: CommandContext) -> str:
        """Return the one plugin that offers a caller the command at the beginning of the words.

        Raises:
            NotOffered: no plugin offers it, or several do.
        """
        command, offered = words[0], self._engine.host.offered_commands(context)
        found = [name for name, commands in offered.items() if any(each.name == command for each in commands)]
        if len(found) > 1:
            ways = " or ".join(f"`{' '.join((self.called, name, *words))}`" for name in found)
            raise NotOffered(f"several plugins have a command `{command}`; write {ways}")
        if not found:
            names = [*offered, *(each.name for commands in offered.values() for each in commands), OFF, ON]
            meant = did_you_mean(command, names)
            raise NotOffered(f"there is no plugin or command `{command}`{meant}. {self._known(context)}")
        return found[0]

    async def switch(self, context: CommandContext, *, on: bool) -> str:
        """Switch memory on or off in a session, or in all sessions of a user; return an explanation."""
        users = {context.user}
        if context.session is not None:
            await self._engine.sessions.check(context.session, context.user, context.trust)
            if context.trust is Trust.FULL:
                # The owner at the terminal continues a session of any user without naming the user.
                users |= {None, await self._engine.sessions.owner(context.session)}
        for user in users:
            await self._engine.host.switch_memory(on=on, session=context.session, user=user)
        return self._state(context)

    def _is_off(self, context: CommandContext) -> bool:
        return self._engine.host.is_memory_off(session=context.session, user=context.user)

    def _state(self, context: CommandContext) -> str:
        """Return whether memory is on for a session, or for all sessions of a user."""
        host, session, user = self._engine.host, context.session, context.user
        where = "all sessions of this user" if session is None else "this session"
        if host.is_memory_off(user=user) and session is not None:
            return f"Memory is off for all sessions of this user. {EVERYWHERE}"
        if host.is_memory_off(session=session, user=user):
            resumes = EVERYWHERE if session is None else "`/memory on` switches it on again."
            return f"Memory is off for {where}: nothing is recalled, kept or shown, and no memory tool runs. {resumes}"
        return f"Memory is on for {where}."

    def listing(self, plugin: str, context: CommandContext, besides: Collection[str] = ()) -> str:
        """Return the commands of a plugin that a caller may use, except those in `besides`.

        Raises:
            NotOffered: it is not in service; gives the reason.
        """
        self._ensure_in_service(plugin, context)
        offered = self._engine.host.offered_commands(context)[plugin]
        commands = [each for each in offered if each.name not in besides]
        if not commands:
            return "" if besides else f"`{plugin}` has no commands. It is {self._engine.status[plugin]}."
        width = max(len(each.name) for each in commands)
        return "\n".join(f"{plugin} {each.name:{width}}  {each.summary}" for each in commands)

    def _ensure_in_service(self, plugin: str, context: CommandContext) -> None:
        if plugin not in self._engine.host.commands:
            known = self._known(context)
            raise NotOffered(f"`{plugin}` cannot be used: it is {self._engine.status[plugin]}. {known}")

    def _known(self, context: CommandContext) -> str:
        with_commands = [name for name, commands in self._engine.host.offered_commands(context).items() if commands]
        plugins = f"; plugins with commands: {', '.join(with_commands)}" if with_commands else ""
        return f"Commands: {OFF}, {ON}{plugins}."
