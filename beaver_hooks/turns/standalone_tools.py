"""Runs a plugin's tool outside of any turn, for hosts that only pull and never see the conversation.

The tool gets a turn with an empty prompt, which is never opened: it is not in the `TurnBook`, no hook is called for it,
it is never committed or dropped, and it has no receipt. The tool's reports and its result become one audit event.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import attrs

from beaver_hooks.receipts.receipt_builder import ReceiptBuilder
from beaver_hooks.receipts.recorder import Recorder
from beaver_hooks.turns.lifecycle import Turns
from beaver_hooks.turns.tools import Offers
from beaver_hostspecs import Clock, Turn, freeze

EVENT = "tool_used"


@attrs.frozen(kw_only=True)
class StandaloneTools:
    """The tools of the plugins that are in service."""

    turns: Turns
    offers: Offers
    recorder: Recorder
    clock: Clock

    async def use(self, turn: Turn, name: str, arguments: Mapping[str, Any]) -> object:
        """Run a tool and return its result; raises the errors of `Offers.run_tool`."""
        opened = self.turns.unentered(turn)
        builder = opened.builder
        given = freeze(arguments)
        owner = next((each for each in opened.members if any(tool.name == name for tool in each.tools)), None)
        ended = "failed"
        try:
            value = await self.offers.run_tool(opened, name, given)
            ended = "returned"
        except asyncio.CancelledError:
            ended = "cancelled"
            raise
        finally:
            # Later reports become audit events of their own.
            builder.closed = self.clock.now()
            if owner is not None:
                self._write_down(builder, owner.name, name, ended)
        return value

    def _write_down(self, builder: ReceiptBuilder, plugin: str, tool: str, ended: str) -> None:
        hook = f"tool:{tool}"
        facts = {"tool": tool, "ended": ended, **builder.plugins[plugin].facts(hook)}
        self.recorder.event(EVENT, facts, builder=builder, plugin=plugin, hook=hook)
