"""A user's conversation: prompts, and lines that begin with a slash. No terminal, no printing."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType

import attrs

from beaver_hooks.agent.commands import OFF, ON, MemoryCommands
from beaver_hooks.agent.factory import EngineLoadResult
from beaver_hooks.agent.loop import AgentLoop, AgentRunResult
from beaver_hooks.agent.messages import OnDelta
from beaver_hooks.agent.providers import MissingKeyProvider
from beaver_hooks.agent.sessions.texts import new_session_id
from beaver_hooks.config.paths import did_you_mean
from beaver_hooks.tools import OnTool
from beaver_hostspecs import CommandContext, Message, NotOffered, Trust

HELP = {
    "help": "this list",
    "memory": "the state of each memory; also `/memory off`, `/memory on`, `/memory [PLUGIN] COMMAND ...`",
    "skill": "the skills; `/skill NAME` activates one, `/skill off NAME` deactivates it",
    "session": "the id of this session, to continue it later",
    "new": "start a new session",
    "exit": "end the chat (as Ctrl-D does)",
}

Run = Callable[[list[str]], Awaitable[str]]
"""Runs a command with its words; returns the text to show."""

NO_COMMANDS: Mapping[str, tuple[str, Run]] = MappingProxyType({})


class Ended(Exception):
    """The user wants to end the conversation."""


@attrs.define(kw_only=True)
class Conversation:
    """One user's conversation with the agent.

    Attributes:
        engine: the loaded agent.
        session: the id of the current session.
        user: the user, if known.
        trust: the trust in the user.
        no_memory: whether this session, and each new one, starts with memory off.
        skills: the skills that the user has activated.
        last: the result of the newest prompt.
        further: commands that the terminal adds: by name, the line in /help and the function of each.
    """

    engine: EngineLoadResult
    session: str = attrs.field(factory=new_session_id)
    user: str | None = None
    trust: Trust = Trust.FULL
    no_memory: bool = False
    skills: list[str] = attrs.field(factory=list)
    last: AgentRunResult | None = None
    further: Mapping[str, tuple[str, Run]] = NO_COMMANDS

    async def start(self) -> str:
        """Switch memory off if `no_memory` is set; return the text to show."""
        return await MemoryCommands(self.engine).switch(self._context, on=False) if self.no_memory else ""

    @property
    def complaint(self) -> str:
        """The reason why no prompt can be answered, if it is known before the first one; else empty."""
        provider = self.engine.provider
        return provider.complaint if isinstance(provider, MissingKeyProvider) else ""

    async def say(self, prompt: str, on_delta: OnDelta | None = None, on_tool: OnTool | None = None) -> AgentRunResult:
        """Return the agent's answer; see `AgentLoop.run`."""
        self.last = await AgentLoop(self.engine).run(
            prompt, self.session, self.user, trust=self.trust, skills=self.skills, on_delta=on_delta, on_tool=on_tool
        )
        return self.last

    async def command(self, line: str) -> str:
        """Run a line that begins with a slash; return the text to show.

        Raises:
            Ended: the user wants to end the conversation.
            NotOffered: the command does not exist.
            BeaverError: the command failed.
        """
        name, *words = line.removeprefix("/").split() or ["help"]
        commands: dict[str, Run] = {
            "help": self._help,
            "memory": self._memory,
            "skill": self._skill,
            "session": self._session,
            "new": self._new,
            "exit": self._exit,
            "quit": self._exit,
            **{each: run for each, (_, run) in self.further.items()},
        }
        if name not in commands:
            meant = did_you_mean(name, commands).replace("`", "`/", 1) or "; /help lists them"
            raise NotOffered(f"there is no command /{name}{meant}. To send this line to the agent, start it with //")
        return await commands[name](words)

    async def troubles(self) -> dict[str, str]:
        """Return the trouble of each degraded memory in service, by the plugin's name."""
        return {name: str(health) for name, health in self.engine.status.items() if health.state == "degraded"}

    async def history(self, limit: int = 400) -> tuple[Message, ...]:
        """Return the earlier messages of this session, oldest first."""
        await self.engine.sessions.check(self.session, self.user, self.trust)
        return (await self.engine.sessions.resume(self.session, limit=limit)).history

    async def completions(self, line: str) -> list[str]:
        """Return the completions of the last word of a line that begins with a slash."""
        *before, begun = line.split(" ")
        if not line.startswith("/"):
            return []
        return sorted({each for each in self._next(before) if each.startswith(begun)})

    def _next(self, before: list[str]) -> Iterable[str]:
        """Return the words that may follow others."""
        offered = self.engine.host.offered_commands(self._context)
        names = {plugin: [each.name for each in commands] for plugin, commands in offered.items() if commands}
        match before:
            case []:
                return [f"/{name}" for name in self._about]
            case ["/memory"]:
                return [OFF, ON, *names, *(name for each in names.values() for name in each)]
            case ["/memory", plugin]:
                return names.get(plugin, [])
            case ["/skill"]:
                return [OFF, *(skill.name for skill in self.engine.skills.list().skills)]
            case ["/skill", "off"]:
                return self.skills
        return []

    @property
    def _about(self) -> dict[str, str]:
        """The help line of each command, in the order of /help."""
        further = {name: text for name, (text, _) in self.further.items()}
        return {name: text for name, text in HELP.items() if name != "exit"} | further | {"exit": HELP["exit"]}

    async def _help(self, _words: list[str]) -> str:
        return "\n".join(f"/{name:8} {text}" for name, text in self._about.items())

    async def _memory(self, words: list[str]) -> str:
        return await MemoryCommands(self.engine).run(words, self._context)

    @property
    def _context(self) -> CommandContext:
        return CommandContext(session=self.session, user=self.user, trust=self.trust)

    async def _skill(self, words: list[str]) -> str:
        if not words:
            return self._skills()
        if words[0] == "off" and words[1:]:
            return self._without(words[1:])
        self.engine.skills.activate(words)
        self.skills += [name for name in words if name not in self.skills]
        return self._active()

    def _without(self, names: list[str]) -> str:
        for name in names:
            if name not in self.skills:
                always = name in self.engine.settings.skills
                why = "is active because `agent.skills` in the configuration names it" if always else "is not active"
                raise NotOffered(f"the skill `{name[:64]}` {why}. {self._active()}")
        self.skills = [name for name in self.skills if name not in names]
        return self._active()

    async def _session(self, _words: list[str]) -> str:
        return f"{self.session}\nContinue it later: beaver chat --session {self.session}"

    async def _new(self, words: list[str]) -> str:
        if words:
            raise NotOffered("/new takes no words; the new session gets its own id")
        self.session = new_session_id()
        return "\n".join(filter(None, (f"A new session: {self.session}", await self.start())))

    async def _exit(self, _words: list[str]) -> str:
        raise Ended

    def _skills(self) -> str:
        found = self.engine.skills.list()
        lines = [f"{skill.name:20} {skill.description}".rstrip() for skill in found.skills]
        return "\n".join([*(lines or ["There are no skills."]), *found.problems, self._active()])

    def _active(self) -> str:
        names = [*self.engine.settings.skills, *self.skills]
        return f"Active: {', '.join(dict.fromkeys(names)) or 'none'}"
