"""The host of a resident, as far as it can be opened: memory is on, or off for a reason."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs

from beaver_hooks.coding_agents.claude_code.events import ClaudeCodeTurns
from beaver_hooks.coding_agents.claude_code.payload import MOST_SAID, Output, cut
from beaver_hooks.host import Host
from beaver_hooks.log import make_log
from beaver_hostspecs import BeaverError
from beaver_hostspecs.naming import type_name

RETRY = 10.0
"""Seconds after which a prompt is reason enough to try again; the start of a session always is."""

OPENING = ("SessionStart", "UserPromptSubmit")
"""The events that open a host: without one of them there is no turn that the others could be about."""


def abilities(host: Host) -> dict[str, dict[str, Any]]:
    """Return what each plugin does by itself, as far as its hooks show: who does not take the answer learns nothing."""
    tools = host.tools
    return {
        name: {
            "recalls": bool(_taken(host.plugin(name), "before_prompt")),
            "learns": "answer" in _taken(host.plugin(name), "after_prompt"),
            "tools": [each.name for each in tools.get(name, ())],
        }
        for name in host.plugins
    }


def _taken(plugin: object, hook: str) -> tuple[str, ...]:
    """Return what a plugin takes of what a hook is called with; nothing where it has no such hook."""
    run = getattr(plugin, hook, None)
    return () if run is None else tuple(inspect.signature(run).parameters)


@attrs.define(eq=False)
class Memory:
    """Opens a host when it is first needed, and passes events on.

    A host that cannot be opened costs nobody a turn: events are answered with nothing, the person at the terminal is
    told at the start of the session, and it is tried again.

    Args:
        open_turns: opens a host, and returns what runs its turns.
        stamp: changes with the configuration: a session that starts then has a host that is opened again.
    """

    _open_turns: Callable[[], Awaitable[ClaudeCodeTurns]]
    _stamp: Callable[[], object]
    _opened_at: object = attrs.field(default=None, init=False)
    _turns: ClaudeCodeTurns | None = attrs.field(default=None, init=False)
    _opening: "asyncio.Task[None] | None" = attrs.field(default=None, init=False)
    _failed: float = attrs.field(default=float("-inf"), init=False)
    _why: str | None = attrs.field(default=None, init=False)

    async def handle(self, event: object) -> Output:
        """Do what an event means; return what Claude Code is to be told."""
        name = event.get("hook_event_name") if isinstance(event, Mapping) else None
        if name == "SessionStart" and self._turns is not None and self._turns.resting:
            await self._close_if_changed(self._turns)
        if self._turns is None and name in OPENING:
            await self._open(name)
        if self._turns is not None:
            return await self._turns.handle(event)
        if name == "SessionStart" and self._why is not None:
            return {"systemMessage": f"Beaver Hooks: memory is off: {cut(self._why, MOST_SAID)}"}
        return {}

    def unheard(self, event: object) -> None:
        """Take note that the answer to an event has reached nobody."""
        if self._turns is not None:
            self._turns.unheard(event)

    @property
    def resting(self) -> bool:
        """Whether nobody is waiting for anything."""
        return self._opening is None and (self._turns is None or self._turns.resting)

    def status(self) -> dict[str, Any]:
        """Return how it is, without content."""
        turns = self._turns
        return {
            "memory": "on" if turns else "off",
            "failed": turns is None and self._why is not None,
            "why": None if turns else self._why or "no session has started yet",
            "sessions": turns.sessions if turns else 0,
            "open_turns": turns.open_turns if turns else 0,
            "health": {name: str(each) for name, each in turns.host.health().items()} if turns else {},
            "plugins": abilities(turns.host) if turns else {},
        }

    async def close(self) -> None:
        """Commit what waits, and close the host."""
        if self._opening is not None:
            await self._opening
        if self._turns is not None:
            await self._close(self._turns)

    async def _close(self, turns: ClaudeCodeTurns) -> None:
        self._turns = None
        try:
            await turns.settle()
        finally:
            await turns.host.close()

    async def _close_if_changed(self, turns: ClaudeCodeTurns) -> None:
        if self._stamp() == self._opened_at:
            return
        try:
            await self._close(turns)
        except Exception as error:  # noqa: BLE001 - logged; another one is opened
            make_log().warning("claude_code_close_failed", error=type_name(error))

    async def _open(self, name: object) -> None:
        """Open the host, unless that failed just now; whoever comes meanwhile waits for the same attempt."""
        if self._opening is None:
            if name != "SessionStart" and time.monotonic() < self._failed + RETRY:
                return
            self._opening = asyncio.create_task(self._try())
        await asyncio.shield(self._opening)

    async def _try(self) -> None:
        try:
            # Taken before: what changes while the host is being opened is seen at the next session.
            stamp = self._stamp()
            self._turns, self._opened_at, self._why = await self._open_turns(), stamp, None
        except Exception as error:  # noqa: BLE001 - logged, and said to whoever starts a session
            self._failed = time.monotonic()
            self._why = str(error) if isinstance(error, BeaverError) else f"it failed with {type_name(error)}"
            make_log().warning("claude_code_memory_off", why=self._why)
        finally:
            self._opening = None
