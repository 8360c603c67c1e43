"""The host of a resident: memory is on, or off for a reason."""

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
"""Seconds after which a prompt makes `ResidentMemory` try again; the start of a session always does."""

OPENING = ("SessionStart", "UserPromptSubmit")
"""The events that open a host: all other events belong to a turn that one of these began."""


def abilities(host: Host) -> dict[str, dict[str, Any]]:
    """Return the abilities that each plugin's hooks show: a plugin that does not take the answer learns nothing."""
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
    """Return the parameters that a plugin's hook takes; none if the plugin lacks the hook."""
    run = getattr(plugin, hook, None)
    return () if run is None else tuple(inspect.signature(run).parameters)


@attrs.define(eq=False)
class ResidentMemory:
    """Opens a host at the first need, and passes events on.

    A host that cannot be opened does not stop the user's turn: events get an empty answer, the user sees the reason at
    the start of the session, and a later event tries again.

    Args:
        open_turns: opens a host, and returns its `ClaudeCodeTurns`.
        stamp: returns a value that changes with the configuration; the next session then opens the host again.
    """

    _open_turns: Callable[[], Awaitable[ClaudeCodeTurns]]
    _stamp: Callable[[], object]
    _opened_at: object = attrs.field(default=None, init=False)
    _turns: ClaudeCodeTurns | None = attrs.field(default=None, init=False)
    _opening: "asyncio.Task[None] | None" = attrs.field(default=None, init=False)
    _failed: float = attrs.field(default=float("-inf"), init=False)
    _why: str | None = attrs.field(default=None, init=False)

    async def handle(self, event: object) -> Output:
        """Handle an event; return the answer for Claude Code."""
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
        """Note that the answer to an event did not reach Claude Code."""
        if self._turns is not None:
            self._turns.unheard(event)

    @property
    def resting(self) -> bool:
        """Whether no event waits for an answer."""
        return self._opening is None and (self._turns is None or self._turns.resting)

    def status(self) -> dict[str, Any]:
        """Return the status, without content."""
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
        """Commit the answers that wait, and close the host."""
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
        """Open the host, unless that failed just now; concurrent callers wait for the same attempt."""
        if self._opening is None:
            if name != "SessionStart" and time.monotonic() < self._failed + RETRY:
                return
            self._opening = asyncio.create_task(self._try())
        await asyncio.shield(self._opening)

    async def _try(self) -> None:
        try:
            # Taken before: the next session sees a change that happens while the host opens.
            stamp = self._stamp()
            self._turns, self._opened_at, self._why = await self._open_turns(), stamp, None
        except Exception as error:  # noqa: BLE001 - logged, and shown to the user at the start of a session
            self._failed = time.monotonic()
            self._why = str(error) if isinstance(error, BeaverError) else f"it failed with {type_name(error)}"
            make_log().warning("claude_code_memory_off", why=self._why)
        finally:
            self._opening = None
