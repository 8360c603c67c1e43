"""The command group `beaver gateway`."""

from collections.abc import Awaitable, Callable

import click

from beaver_hooks_gateway.cli_output import SESSION, ping, search, status
from beaver_hooks_gateway.plugin import Gateway
from beaver_hostspecs import Shell


def _named(_: click.Context, __: click.Parameter, value: str) -> str:
    if not value.strip():
        raise click.BadParameter("a session id must not be blank; leave the option out")
    return value


@click.group(name="gateway")
def group() -> None:
    """Commands of the Memory Gateway. Another configuration: beaver --config FILE gateway ..."""


@group.command("ping")
@click.pass_obj
def ping_command(shell: Shell) -> None:
    """Check that the gateway answers and accepts the credentials."""
    _show(shell, lambda plugin: ping(plugin.settings, plugin.folder))


@group.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--session",
    metavar="ID",
    default=SESSION,
    callback=_named,
    help="The session to search in, for the scope current_chat.",
)
@click.pass_obj
def search_command(shell: Shell, words: tuple[str, ...], session: str) -> None:
    """Print what a turn with this prompt would recall. Nothing is added to the gateway."""
    _show(shell, lambda plugin: search(plugin.settings, " ".join(words), session=session))


@group.command("status")
@click.pass_obj
def status_command(shell: Shell) -> None:
    """Print the settings, and whether calls are paused after failures. Sends no request."""
    _show(shell, lambda plugin: status(plugin.settings, plugin.folder))


def _show(shell: Shell, ask: Callable[[Gateway], Awaitable[str]]) -> None:
    click.echo(shell.call(ask))
