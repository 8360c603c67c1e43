"""What the command line shows of a gateway. Each function returns the text to print, and none of them ever the key."""

import asyncio
import secrets
import time
from pathlib import Path

from beaver_hooks_gateway import breaker
from beaver_hooks_gateway.breaker import Policy
from beaver_hooks_gateway.client import GatewayClient
from beaver_hooks_gateway.gate import Gate, judged
from beaver_hooks_gateway.kept import read
from beaver_hooks_gateway.service import reference
from beaver_hooks_gateway.settings import PATH, GatewaySettings
from beaver_hooks_gateway.wire import Found
from beaver_hostspecs import Clock, ConfigurationError, SystemClock, scrub
from beaver_hostspecs.rendering import render_references

SESSION = "beaver-gateway"
"""The session of what is asked from a command line; nothing is ever added to it."""

TOKENS = 2000


async def ping(settings: GatewaySettings, state_folder: Path) -> str:
    """Return a line that says that the gateway answers and takes the credentials; then it is left alone no longer.

    Raises:
        GatewayError: it does not; the text says why and what to do.
        ConfigurationError: a required setting is missing.
    """
    started = time.perf_counter()
    await _search(settings, "ping", session=SESSION, top_k=1)
    spent = (time.perf_counter() - started) * 1000
    gate = Gate(state_folder, _policy(settings), SystemClock(), whose=judged(settings))
    await gate.load()
    await gate.answered()
    return f"{settings.base_url} answers and accepts the credentials of {settings.user_id} ({spent:.0f} ms)."


async def search(settings: GatewaySettings, query: str, *, session: str = SESSION, tokens: int = TOKENS) -> str:
    """Return the message that a turn with this prompt would get.

    Args:
        settings: of the gateway.
        query: the prompt.
        session: the host's session to search in.
        tokens: the room that a host gives it.

    Raises:
        GatewayError: the search failed.
        ConfigurationError: a required setting is missing.
    """
    found = await _search(settings, query, session=session, top_k=settings.top_k)
    references = [reference(result, str(settings.user_id)) for result in found.results]
    rendered = render_references("gateway", references, boundary=secrets.token_hex(8), budget=tokens)
    if rendered is None:
        return f"Nothing would be injected ({found.total} results)."
    return scrub(rendered.text)


async def status(settings: GatewaySettings, state_folder: Path, *, clock: Clock | None = None) -> str:
    """Return how the gateway is configured, and whether it is being left alone. Asks nobody."""
    lines = [
        f"address: {settings.base_url or 'none'}",
        f"user: {settings.user_id or 'none'}",
        f"key: {'set' if settings.user_key else 'none'}",
        f"app and project: {settings.app_id}, {settings.project_id}",
        f"scope: {', '.join(settings.scope)}",
        f"recall: {'on' if settings.recall else 'off'}",
        f"persist: {'on' if settings.persist else 'off'}",
        f"breaker: {await _breaker(settings, state_folder, clock or SystemClock())}",
    ]
    return scrub("\n".join(lines))


async def _search(settings: GatewaySettings, query: str, *, session: str, top_k: int) -> Found:
    if settings.missing:
        raise ConfigurationError(f"{PATH}.{settings.missing[0]}", "is missing")
    client = GatewayClient(settings)
    try:
        return await client.search(session=session, query=query, seconds=settings.timeout_seconds, top_k=top_k)
    finally:
        await client.close()


def _policy(settings: GatewaySettings) -> Policy | None:
    patience = settings.breaker
    return Policy(failures=patience.failures, seconds=patience.seconds) if patience.enabled else None


async def _breaker(settings: GatewaySettings, state_folder: Path, clock: Clock) -> str:
    policy = _policy(settings)
    if policy is None:
        return "off"
    state = await asyncio.to_thread(read, state_folder, whose=judged(settings))
    now = clock.now().timestamp()
    if breaker.is_open(state, policy, now=now):
        left = (state.until or now) - now
        return f"open ({state.reason}), the next search is tried in {left:.0f} seconds"
    if state.until is not None:
        return f"open ({state.reason}), the next search is tried at once"
    return f"closed ({state.failures} failures in a row)" if state.failures else "closed"
