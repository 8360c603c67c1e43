"""`beaver memory`: the state of each memory, and the commands of the plugins."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from beaver_hooks.agent.commands import MemoryCommands
from beaver_hooks.agent.errors import UnknownSession
from beaver_hooks.cli import terminal
from beaver_hooks.cli.app import COMMANDS, CONFIG, beaver, plugin_group
from beaver_hooks.cli.common import common, configured, in_loop, opened
from beaver_hooks.cli.options import IDENTIFIER
from beaver_hooks.cli.state import has_sessions, nothing_yet, session_named
from beaver_hooks.cli.subject import SUBJECT, erase_command, export_command
from beaver_hooks.cli.terminal import show
from beaver_hooks.config import Config, LoadedConfig, load_config
from beaver_hooks.plugins.entry_points import installed
from beaver_hooks.plugins.modes import preset
from beaver_hostspecs import CommandContext, ConfigurationError, PluginFailed, Trust

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

FREE = {"ignore_unknown_options": True}
"""An unknown option among the words of a plugin's command belongs to the plugin."""

SHARED = "export"
"""The built-in command for the data of one person, and a command of plugins for their memories."""

LONGEST = 100
"""The most characters of a command's summary."""

REST = "--"
"""All words after it belong to the plugin, even those that look like options."""


class MemoryGroup(click.Group):
    """Built-in commands, and one group per plugin. A command of only one group needs no plugin's name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; add the plugin's name if the user leaves it out."""
        # Completion must not ask about a configuration, and imports only a named plugin.
        if not ctx.resilient_parsing and (self._is_of_plugin(ctx, args) or not self._is_known(ctx, args[0])):
            args = [*_offering(ctx, args[0]), *args]
        return super().resolve_command(ctx, args)

    def _is_of_plugin(self, ctx: click.Context, args: list[str]) -> bool:
        """Whether words that name no person mean a command of a plugin that has the name of a built-in one."""
        names_person = any(each.split("=")[0] == SUBJECT for each in args)
        return args[0] == SHARED and not names_person and bool(_having(ctx, SHARED))

    def _is_known(self, ctx: click.Context, name: str) -> bool:
        return super().get_command(ctx, name) is not None or name in installed() or name in _groups(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a built-in command, or the group of a plugin of that name, which need not exist."""
        return super().get_command(ctx, cmd_name) or PluginCommands(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the built-in commands, then, with a configuration in effect, those of each plugin's group."""
        super().format_commands(ctx, formatter)
        for plugin in () if ctx.resilient_parsing else _in_service(ctx):
            group = _group(plugin)
            names = group.list_commands(ctx) if group is not None else []
            if group is not None and names:
                with formatter.section(f"Commands of the plugin `{plugin}`"):
                    formatter.write_dl([(name, _help(group, ctx, name)) for name in names])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Complete the built-in commands, the names of plugins, and the options. No plugin is imported."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - needed only for completion

        plugins = (name for name in sorted({*installed(), *_groups(ctx)}) if name.startswith(incomplete))
        return [*super().shell_complete(ctx, incomplete), *map(CompletionItem, plugins)]


def _offering(ctx: click.Context, command: str) -> tuple[str, ...]:
    """Return the one plugin whose group has a command, or an empty tuple.

    Only installed plugins that the configuration does not leave out count: the others are not imported.

    Raises:
        UsageError: several plugins have it; names them.
    """
    found = _having(ctx, command)
    if len(found) > 1:
        ways = " or ".join(f"`beaver memory {name} {command}`" for name in found)
        raise click.UsageError(f"Several plugins have a command `{command}`; write {ways}.", ctx)
    return tuple(found)


def _having(ctx: click.Context, command: str) -> list[str]:
    """Return the installed plugins that the configuration does not leave out, and whose groups have a command."""
    left_out = _left_out(configured(ctx.params.get("config")).config)
    return [name for name in _groups(ctx) if name in installed() and name not in left_out and _has(ctx, name, command)]


def _in_service(ctx: click.Context) -> list[str]:
    """Return the plugins whose groups may be imported, without asking about the configuration."""
    named = ctx.params.get("config") or ctx.meta.get(CONFIG)
    try:
        left_out = _left_out(load_config(None if named is None else Path(named)).config)
    except ConfigurationError:
        return []
    return [name for name in _groups(ctx) if name in installed() and name not in left_out]


def _left_out(config: Config) -> set[str]:
    return {*config.plugins.disabled, *preset(config.mode, explicit=config.explicit).blocked}


def _help(group: click.Group, ctx: click.Context, name: str) -> str:
    command = group.get_command(ctx, name)
    return "" if command is None else command.get_short_help_str(limit=LONGEST)


def _groups(ctx: click.Context) -> list[str]:
    """Return the plugins that have a command group; none is imported."""
    return [name for name in beaver.list_commands(ctx) if name not in COMMANDS]


def _has(ctx: click.Context, plugin: str, command: str) -> bool:
    group = _group(plugin)
    return group is not None and group.get_command(ctx, command) is not None


def _group(plugin: str) -> click.Group | None:
    """Return the command group of a plugin; report and skip one that cannot be imported."""
    try:
        group = plugin_group(plugin)
    except PluginFailed as error:
        show(f"Skipped: {error}.", err=True)
        return None
    return group if isinstance(group, click.Group) else None


class PluginCommands(click.Group):
    """The commands of a plugin: its own command group, if it has one, and its commands in conversations."""

    def __init__(self, plugin: str) -> None:
        # Without options of its own: options belong to the plugin.
        super().__init__(
            plugin,
            invoke_without_command=True,
            callback=self._list,
            help=f"Commands of the plugin `{plugin}`; without a command, they are listed.",
        )
        self._plugin = plugin
        self._group = plugin_group(plugin)
        self.context_settings = dict(self._group.context_settings) if self._group else {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands that are known without loading the plugin: those of its command group."""
        return self._group.list_commands(ctx) if isinstance(self._group, click.Group) else []

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Return the command of the plugin's group, else its command in conversations."""
        found = self._group.get_command(ctx, cmd_name) if isinstance(self._group, click.Group) else None
        return found or _offered(self._plugin, cmd_name)

    def _list(self) -> None:
        context = click.get_current_context()
        if context.invoked_subcommand is None:
            names = self.list_commands(context)
            width = max(map(len, names), default=0)
            for name in names:
                # A cut sentence is hard to understand; a terminal has room for a whole one.
                said = self.get_command(context, name).get_short_help_str(limit=LONGEST).removesuffix(".")
                show(f"{self._plugin} {name:{width}}  {said}")
            if not names:
                _run((self._plugin,), None, None, None)
            elif others := in_loop(_others(configured(None), self._plugin, names)):
                show(others)


@click.group(name="memory", cls=MemoryGroup, invoke_without_command=True)
@common
@click.pass_context
def command(ctx: click.Context, *, config: Path | None) -> None:
    """Show the state of each memory, switch memory off and on, run plugins' commands.

    Without a command it shows how they are: ok, or degraded since when and why. `beaver memory PLUGIN` lists the
    commands of a plugin, and `beaver memory PLUGIN COMMAND ...` runs one, for example `beaver memory curated show`.
    The plugin's name may be left out where only one has such a command of its own.
    """
    ctx.meta[CONFIG] = config or ctx.meta.get(CONFIG)
    if ctx.invoked_subcommand is None:
        _run((), None, None, config)


class Offered(click.Command):
    """A plugin's command in conversations: built-in options, then words of the plugin."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take built-in options from anywhere before `--`; refuse an unknown option before the first word."""
        behind = len(args) - args.index(REST) - 1 if REST in args else 0
        rest = super().parse_args(ctx, args)
        words: tuple[str, ...] = ctx.params.get("words") or ()
        if len(words) > behind and words[0].startswith("-") and words[0] != "-":
            raise click.UsageError(
                f"No such option: {words[0]}. Put the options of the plugin's command after `{REST}`.", ctx
            )
        return rest


def _switch(name: str, text: str) -> None:
    @command.command(name=name, help=text)
    @click.argument("session", metavar="[SESSION]", required=False, type=IDENTIFIER)
    @click.option(
        "--user", metavar="ID", type=IDENTIFIER, help="The user of the sessions; by default sessions without a user."
    )
    @click.option(
        "--exact", is_flag=True, help="SESSION is a complete id, also one that `beaver sessions` does not list."
    )
    @common
    def switch(session: str | None, *, user: str | None, exact: bool, config: Path | None) -> None:
        show(in_loop(_switched(configured(config), name, session, user, exact=exact)))


_switch(
    "off",
    "Switch memory off for SESSION, or for all sessions of a user.\n\n"
    "Nothing is recalled, kept or shown until it is switched on again. This holds for every agent: `beaver`, adapters,"
    " MCP clients, Claude Code. SESSION is the id of a stored session or its beginning; with --exact it is any id.",
)
_switch("on", "Switch memory on again for SESSION, or for all sessions of a user.")


async def _switched(loaded: LoadedConfig, name: str, given: str | None, user: str | None, *, exact: bool) -> str:
    """Switch memory off or on; refuse a session that is not stored, which may be a typo."""
    if given is not None and not exact and not has_sessions(loaded.state_folder):
        raise UnknownSession(nothing_yet(loaded.state_folder))
    async with opened(loaded) as engine:
        if given is not None and not exact:
            given = await session_named(engine.sessions, given)
        context = CommandContext(session=given, user=user, trust=Trust.FULL)
        return await MemoryCommands(engine, "beaver memory").run((name,), context)


command.add_command(export_command)
command.add_command(erase_command)


def _offered(plugin: str, name: str) -> click.Command:
    """Return the click command that runs a plugin's command in conversations."""
    text = (
        f"Run the command `{name}` of the plugin `{plugin}`. `beaver memory {plugin}` lists its commands.\n\n"
        f"These options may stand among the WORDS; after `{REST}` everything is a word."
    )

    @click.command(name=name, cls=Offered, context_settings=FREE, help=text)
    @click.option("--session", metavar="ID", type=IDENTIFIER, help="The session that the command is about.")
    @click.option("--user", metavar="ID", type=IDENTIFIER, help="The user whose memory the command is about.")
    @common
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    def offered(words: tuple[str, ...], session: str | None, user: str | None, config: Path | None) -> None:
        _run((plugin, name, *words), session, user, config)

    return offered


def _run(words: tuple[str, ...], session: str | None, user: str | None, config: Path | None) -> None:
    context = CommandContext(session=session, user=user, trust=Trust.FULL)
    # Only the overview is coloured; a plugin words the output of its commands.
    show(in_loop(_answer(configured(config), words, context)), paint=None if words else terminal.state)


async def _others(loaded: LoadedConfig, plugin: str, known: list[str]) -> str:
    """Return the commands that a plugin offers in conversations, without those of its group."""
    async with opened(loaded) as engine:
        return MemoryCommands(engine, "beaver memory").listing(plugin, CommandContext(trust=Trust.FULL), known)


async def _answer(loaded: LoadedConfig, words: tuple[str, ...], context: CommandContext) -> str:
    async with opened(loaded) as engine:
        return await MemoryCommands(engine, "beaver memory").run(words, context)
