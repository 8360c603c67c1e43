"""The root of the command line: the table of commands and their modules."""

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import click

from beaver_hooks import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "init": "Write a configuration and the state folder.",
    "chat": "Talk to the agent.",
    "run": "Answer one prompt.",
    "sessions": "List, search, export and delete stored conversations.",
    "memory": "Show the state of each memory, switch memory off and on, run plugins' commands.",
    "hooks": "Give another agent memory through the hooks in its settings.",
    "plugins": "List the installed plugins and their states.",
    "config": "Read and edit the configuration.",
    "why": "Explain a turn: the recalled, injected and kept memories, with the reasons.",
    "audit": "Verify and read the audit trail.",
    "trust": "Review and confirm a configuration that was found.",
    "check": "Check the configuration and the environment.",
    "doctor": "Examine the stored state: databases, files and their permissions.",
    "backup": "Copy memories, conversations and the audit trail into one verified file.",
    "restore": "Bring a backup back, into an empty state folder or beside the present state.",
    "mcp": "Serve memory to clients of the Model Context Protocol.",
    "completion": "Print the script with which a shell completes `beaver`.",
}
"""The commands in the order of the help, each with its help line. The module of each has its name."""

GROUP = "beaver_hooks.cli"
"""The entry-point group of the command groups that plugins add."""

CONFIG = "beaver.config"
"""The key in a context's `meta` of the configuration that was named before the command."""

EXIT_CODES = """
\b
Exit codes:
  0    done
  1    a problem was found, stdout cannot be written, or an unexpected error
  2    the command line is wrong, or names something that does not exist
  3    the configuration is wrong or is not confirmed
  4    the model did not answer
  5    sessions, state or audit trail cannot be read or written
  6    a required plugin, or the plugin of the command, failed
  129  ended by SIGHUP
  130  interrupted
  143  ended by SIGTERM
"""


class Root(click.Group):
    """Commands that are imported when they are called, including those of plugins."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature is click's
        """Return the names: the built-in commands, then those of the plugins."""
        return [*COMMANDS, *(name for name in sorted(set(_announced())) if name not in COMMANDS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - see above
        """Return a command, or `None`."""
        if cmd_name in COMMANDS:
            return cast("click.Command", import_module(f"beaver_hooks.cli.{cmd_name}").command)
        return plugin_group(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or raise an error with the probable name."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            from difflib import get_close_matches  # noqa: PLC0415 - needed only after a typo

            close = get_close_matches(args[0], self.list_commands(ctx), n=1)
            meant = f" Did you mean '{close[0]}'?" if close else " `beaver --help` lists the commands."
            ctx.fail(f"No such command '{args[0]}'.{meant}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> None:
        """Run the command. The return value of a plugin's command is no exit code, so it is dropped."""
        super().invoke(ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Complete the names of commands without importing any of them, and the options."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - needed only for completion

        names = [CompletionItem(name, help=COMMANDS.get(name)) for name in self.list_commands(ctx)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(each for each in names if each.value.startswith(incomplete)), *options]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        if added := self.list_commands(ctx)[len(COMMANDS) :]:
            with formatter.section("Commands of plugins"):
                formatter.write_dl([(name, f"Commands of the plugin `{name}`.") for name in added])


def plugin_group(name: str) -> click.Command | None:
    """Return the command group that a plugin adds under its name, or `None`; import only this group.

    Raises:
        PluginFailed: it cannot be imported, or is no command.
    """
    for found, point in _points():
        if found == name:
            from beaver_hooks.cli.shell import PluginShell  # noqa: PLC0415 - needed only for a plugin's command

            group = _loaded(name, point)
            group.context_settings = {**group.context_settings, "obj": PluginShell(name)}
            return group
    return None


def _loaded(name: str, point: Any) -> click.Command:
    from beaver_hostspecs import PluginFailed  # noqa: PLC0415 - see above

    why, cause = "they are not a click command", None
    try:
        found = point.load()
    except Exception as error:  # noqa: BLE001 - any error of the plugin is raised below
        found, why, cause = None, type(error).__name__, error
    if isinstance(found, click.Command):
        return found
    text = f"the commands of the plugin `{name}` cannot be loaded ({why}); update or remove its distribution"
    raise PluginFailed(text, plugin=name) from cause


def _announced() -> Iterator[str]:
    return (name for name, _ in _points())


def _points() -> Iterator[tuple[str, Any]]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow, and most commands are built in

    return ((point.name, point) for point in entry_points(group=GROUP))


@click.group(
    cls=Root, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80}
)
@click.version_option(__version__, prog_name="beaver", message="%(prog)s %(version)s")
@click.option("--config", metavar="FILE", help="The configuration file; naming it here confirms it.")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
@click.pass_context
def beaver(ctx: click.Context, config: str | None) -> None:
    """Run an agent whose memory is plugins, and look after what it keeps.

    Without a configuration it needs no network and no key. `beaver init` writes one; BEAVER_CONFIG names one.
    BEAVER_LOG_LEVEL (debug, info, warning, error) says how much is logged to stderr.
    """
    ctx.meta[CONFIG] = config
