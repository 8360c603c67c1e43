"""The command group `beaver gateway`."""

import secrets
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import click

from beaver_hooks_gateway.client import GatewayClient
from beaver_hooks_gateway.plugin import Gateway
from beaver_hooks_gateway.settings import PATH, GatewaySettings
from beaver_hooks_gateway.shared_breaker import SharedBreaker, make_breaker
from beaver_hooks_gateway.wire import RecalledMemory, reference
from beaver_hostspecs import Clock, ConfigurationError, Shell, SystemClock, scrub
from beaver_hostspecs.rendering import render_references
from beaver_toolkit.breaker import is_open

SESSION = "beaver-gateway"
"""The session that the command line searches; it never holds a turn."""

TOKENS = 2000
"""The tokens that a host reserves for the message."""


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


async def ping(settings: GatewaySettings, state_folder: Path) -> str:
    """Search once, and close the breaker; return a line that says that the gateway accepts the credentials.

    Raises:
        GatewayError: the gateway does not accept them; the text says why and names a remedy.
        ConfigurationError: a required setting is missing.
    """
    started = time.perf_counter()
    await _search(settings, "ping", session=SESSION, top_k=1)
    spent = (time.perf_counter() - started) * 1000
    breaker = make_breaker(settings, state_folder, SystemClock())
    await breaker.load()
    await breaker.answered()
    return f"{settings.base_url} answers and accepts the credentials of {settings.user_id} ({spent:.0f} ms)."


async def search(settings: GatewaySettings, query: str, *, session: str = SESSION) -> str:
    """Return the message that a turn of the host's session with this prompt would get.

    Raises:
        GatewayError: the search failed.
        ConfigurationError: a required setting is missing.
    """
    found = await _search(settings, query, session=session, top_k=settings.top_k)
    references = [reference(result, str(settings.user_id)) for result in found.results]
    rendered = render_references("gateway", references, boundary=secrets.token_hex(8), budget=TOKENS)
    if rendered is None:
        return f"Nothing would be injected ({found.total} results)."
    return scrub(rendered.text)


async def status(settings: GatewaySettings, state_folder: Path, *, clock: Clock | None = None) -> str:
    """Return the settings and the state of the breaker. Touches no network."""
    lines = [
        f"address: {settings.base_url or 'none'}",
        f"user: {settings.user_id or 'none'}",
        f"key: {'set' if settings.user_key else 'none'}",
        f"app and project: {settings.app_id}, {settings.project_id}",
        f"scope: {', '.join(settings.scope)}",
        f"recall: {'on' if settings.recall else 'off'}",
        f"persist: {'on' if settings.persist else 'off'}",
        f"breaker: {await _shown(make_breaker(settings, state_folder, clock or SystemClock()))}",
    ]
    return scrub("\n".join(lines))


async def _search(settings: GatewaySettings, query: str, *, session: str, top_k: int) -> RecalledMemory:
    if settings.missing:
        raise ConfigurationError(f"{PATH}.{settings.missing[0]}", "is missing")
    client = GatewayClient(settings)
    try:
        return await client.search(session=session, query=query, seconds=settings.timeout_seconds, top_k=top_k)
    finally:
        await client.close()


async def _shown(breaker: SharedBreaker) -> str:
    if breaker.policy is None:
        return "off"
    await breaker.load()
    state, now = breaker.state, breaker.now()
    if state.until is None:
        return f"closed ({state.failures} failures in a row)" if state.failures else "closed"
    left = f"in {state.until - now:.0f} seconds" if is_open(state, breaker.policy, now=now) else "at once"
    return f"open ({state.reason}), the next search is tried {left}"


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
