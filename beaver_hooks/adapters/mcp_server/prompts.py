"""The commands of the plugins as prompts, which a user picks in a menu of the client."""

import secrets

import mcp_types as types
from mcp import MCPError

from beaver_hooks.adapters.mcp_server.identity import Identity
from beaver_hooks.adapters.mcp_server.texts import clean
from beaver_hooks.config.suggestions import did_you_mean
from beaver_hooks.host import Host
from beaver_hooks.tools.box import NAME
from beaver_hooks.tools.result_text import describe_error, one_line
from beaver_hostspecs import Command, Reference
from beaver_hostspecs.rendering import render_references

WORDS = "words"
"""The one argument of every prompt."""

LONGEST = 10_000
"""The most characters of words that a command takes."""


class Prompts:
    """Lists the commands as prompts `memory_PLUGIN_COMMAND`; getting one runs the command.

    A command whose name makes an invalid or taken prompt name is left out, with one loud log entry.
    """

    def __init__(self, host: Host, identity: Identity) -> None:
        self._host = host
        self._identity = identity
        self._refused: set[tuple[str, str, str]] = set()

    def listed(self, session: str) -> types.ListPromptsResult:
        """Return every command that the client may use now."""
        prompts = [
            types.Prompt(name=name, description=clean(f"{plugin}: {command.summary}"), arguments=[_words()])
            for name, (plugin, command) in self._offered(session).items()
        ]
        return types.ListPromptsResult(prompts=prompts, ttl_ms=0, cache_scope="private")

    async def get(self, name: str, words: str, session: str) -> types.GetPromptResult:
        """Run a command; return its text as a fenced user message: a memory may show texts of strangers.

        Raises:
            MCPError: this client has no such prompt, the words are too long, or the command failed.
        """
        offered = self._offered(session)
        if name not in offered:
            known = one_line(", ".join(offered)) or "none"
            meant = did_you_mean(name, offered)
            raise MCPError(types.INVALID_PARAMS, f"there is no such prompt{meant}; the prompts are: {known}")
        if len(words) > LONGEST:
            raise MCPError(types.INVALID_PARAMS, f"`{WORDS}` has at most {LONGEST} characters")
        plugin, command = offered[name]
        try:
            said = await self._host.run_command(plugin, command.name, words.split(), self._identity.context(session))
        except Exception as error:  # noqa: BLE001 - the host has recorded it
            raise MCPError(types.INTERNAL_ERROR, clean(describe_error(error))) from None
        return _message(plugin, command, said)

    def _offered(self, session: str) -> dict[str, tuple[str, Command]]:
        offered: dict[str, tuple[str, Command]] = {}
        refused: set[tuple[str, str, str]] = set()
        for plugin, commands in self._host.offered_commands(self._identity.context(session)).items():
            for command in commands:
                name = f"memory_{plugin}_{command.name}"
                if NAME.fullmatch(command.name) is None:
                    refused.add((plugin, command.name, "unusable_name"))
                elif name in offered:
                    refused.add((plugin, command.name, "name_taken"))
                else:
                    offered[name] = (plugin, command)
        for plugin, command_name, why in sorted(refused - self._refused):
            self._host.record("prompt_refused", plugin=plugin, loudly=True, command=command_name, why=why)
        self._refused = refused
        return offered


def _words() -> types.PromptArgument:
    return types.PromptArgument(
        name=WORDS, description="The arguments of the command, separated by spaces.", required=False
    )


def _message(plugin: str, command: Command, said: str) -> types.GetPromptResult:
    item = Reference(kind="command", id=command.name, text=clean(said))
    rendered = render_references(plugin, [item], boundary=secrets.token_hex(8))
    text = (
        f"The command `{command.name}` of the plugin `{plugin}` printed nothing." if rendered is None else rendered.text
    )
    content = types.TextContent(type="text", text=clean(text))
    return types.GetPromptResult(
        description=clean(command.summary), messages=[types.PromptMessage(role="user", content=content)]
    )
