"""What a user asks of memory: `/memory` in a conversation, `beaver memory` outside of one.

    /memory                     how every plugin is, and whether memory is on for this session
    /memory off | on            stop and resume recall and capture of the fail-open plugins for this session
    /memory PLUGIN              the commands of a plugin
    /memory PLUGIN COMMAND ...  one of them

A session stays off until it is turned on again, in later processes too.
"""

from collections.abc import Sequence

import attrs

from beaver_hooks.agent.loading import EngineLoadResult
from beaver_hooks.config.suggestions import did_you_mean
from beaver_hooks.record.recorder import HOST
from beaver_hostspecs import CommandContext, NotOffered

OFF, ON = "off", "on"


@attrs.frozen
class MemoryCommands:
    """The commands, over what is loaded."""

    _engine: EngineLoadResult

    async def run(self, words: Sequence[str], context: CommandContext) -> str:
        """Run a command; return the text to show.

        Raises:
            NotOffered: there is no such command; says which there are.
            StorageError: the session cannot be read or written.
            Exception: whatever a plugin's command raised.
        """
        if not words:
            return await self.overview(context.session)
        if len(words) == 1 and words[0] in (OFF, ON):
            return await self.switch(context, paused=words[0] == OFF)
        plugin, *rest = words
        offered = self._engine.host.commands
        if plugin not in offered:
            if (health := self._engine.status.get(plugin)) is not None and plugin != HOST:
                raise NotOffered(f"`{plugin}` is not in service: it is {health}. {self._known()}")
            meant = did_you_mean(plugin, [*offered, OFF, ON]).rstrip("?")
            raise NotOffered(f"there is no `{plugin}` here{meant}. {self._known()}")
        if not rest:
            return self._commands(plugin)
        return await self._engine.host.run_command(plugin, rest[0], rest[1:], context)

    async def overview(self, session: str | None = None) -> str:
        """Return how every plugin is, and whether memory is on for a session."""
        status = {name: health for name, health in self._engine.status.items() if name != HOST}
        width = max(map(len, status), default=0)
        lines = [f"{name:{width}}  {health}" for name, health in status.items()]
        if session is not None:
            lines.append(await self._switched(session))
        return "\n".join([*(lines or ["No memory plugin is installed."]), self._known()])

    async def switch(self, context: CommandContext, *, paused: bool) -> str:
        """Turn memory off for a session, or on again; return what that means."""
        if context.session is None:
            raise NotOffered("memory is turned off and on for a session; name one")
        # It may be turned off before the first word is said.
        await self._engine.sessions.ensure(context.session, context.user)
        await self._engine.sessions.pause(context.session, paused=paused)
        return await self._switched(context.session)

    async def _switched(self, session: str) -> str:
        paused = (await self._engine.sessions.resume(session, limit=0)).paused
        kept = self._engine.host.fail_closed
        concerned = ", ".join(name for name in self._engine.host.plugins if name not in kept) or "no plugin"
        always = f" Still on: {', '.join(sorted(kept))}." if kept else ""
        if paused:
            return f"Off for this session, neither recalling nor keeping: {concerned}.{always} `/memory on` resumes."
        return "Memory is on for this session."

    def _commands(self, plugin: str) -> str:
        commands = self._engine.host.commands[plugin]
        if not commands:
            return f"`{plugin}` has no commands. It is {self._engine.status[plugin]}."
        width = max(len(each.name) for each in commands)
        return "\n".join(f"{plugin} {each.name:{width}}  {each.summary}" for each in commands)

    def _known(self) -> str:
        with_commands = [name for name, commands in self._engine.host.commands.items() if commands]
        plugins = f", and for their commands: {', '.join(with_commands)}" if with_commands else ""
        return f"Commands: {OFF}, {ON}{plugins}."
