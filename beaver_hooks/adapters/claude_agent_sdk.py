"""Memory for agents built on claude-agent-sdk: the hooks of Claude Code, answered in this process.

    async with Host.from_config() as host, claude_agent_memory(host, trust="full") as memory:
        options = ClaudeAgentOptions(hooks=memory.hooks, system_prompt=memory.system_prompt("You are helpful."))
        async with ClaudeSDKClient(options) as client:
            ...

The block of the memory goes around that of the client: an answer is committed at the session's next prompt, and the
last one when the block ends, after the client's last event.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import cast

import attrs
from claude_agent_sdk import HookMatcher
from claude_agent_sdk.types import (
    HookContext,
    HookEvent,
    HookInput,
    HookJSONOutput,
    SystemPromptCustom,
    SystemPromptPreset,
)

from beaver_hooks.coding_agents.claude_code.events import ClaudeCodeTurns
from beaver_hooks.host import Host
from beaver_hostspecs import DropReason, Trust
from beaver_hostspecs.conformance import Card

CARD = Card(
    host="Claude Agent SDK",
    reference_placement="before_user",
    reference_persistence="persisted",
    system_prompt=False,
    sees_errors=False,
    sees_blocks=False,
    offers_tools=False,
    sync=False,
    announces_compaction=True,
    notes={
        "reference_placement": "Some models get them after the user's text.",
        "reference_persistence": "Claude Code keeps what is added to its context, and sends it again; it has a budget.",
        "reference_role": "Some models get them as a `system` message in the middle of the conversation.",
        "system_prompt": "Rules stand there; trusted blocks come with the first prompt.",
        "sees_errors": "No callback reports it; the turn is dropped when the session goes on, or the block ends.",
        "sees_cancellation": "Of the task that is in the block. No callback reports an interrupted client.",
        "sees_blocks": "It has no guardrail for answers.",
        "offers_tools": "Plugins' tools come by MCP: `beaver mcp`.",
        "has_user_id": "The user is named where the block begins.",
        "sync": "The SDK is asynchronous.",
    },
)
"""The capabilities of the SDK."""

EVENTS: tuple[HookEvent, ...] = ("UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop", "PreCompact")
"""The events with callbacks in the SDK, which has none for the start and the end of a session."""


@attrs.define(eq=False)
class AgentMemory:
    """The values for `ClaudeAgentOptions`.

    The rules of the plugins reach the model by `system_prompt`, or, without it, with the first prompt.
    """

    _turns: ClaudeCodeTurns

    @property
    def hooks(self) -> dict[HookEvent, list[HookMatcher]]:
        """The value for `hooks`; a host that has hooks of its own puts these beside them, event by event."""
        return {name: [HookMatcher(hooks=[self._called])] for name in EVENTS}

    def system_prompt(self, base: str | None = None) -> SystemPromptCustom | SystemPromptPreset:
        """Return the value for `system_prompt`: `base` and the rules, the same bytes for the same plugins.

        A resumed session gets the current value: without `snapshot` it would keep the rules of its start.

        Args:
            base: your own prompt; `None` for that of Claude Code, to which the rules are appended.
        """
        self._turns.rules_elsewhere = True
        rules = self._turns.rules()
        if base is not None:
            prompt = "\n\n".join(each for each in (base, rules) if each)
            return SystemPromptCustom(type="custom", prompt=prompt, snapshot=False)
        return SystemPromptPreset(type="preset", preset="claude_code", append=rules, snapshot=False)

    async def _called(self, event: HookInput, _: str | None, __: HookContext) -> HookJSONOutput:
        return cast("HookJSONOutput", await self._turns.handle(event))


@contextlib.asynccontextmanager
async def claude_agent_memory(
    host: Host, *, trust: Trust | str = Trust.PUBLIC, user: str | None = None, budget: int = 2000
) -> AsyncIterator[AgentMemory]:
    """Connect an agent with an open host. At the end of the block the last answers are committed.

    A turn without an answer is dropped then: as cancelled or failed if the block ends so.

    Args:
        host: the host, open in this event loop.
        trust: the trust in the user who prompts.
        user: the id of the user.
        budget: how many tokens memory may add per prompt; Claude Code keeps them in the conversation.
    """
    turns = ClaudeCodeTurns(host=host, trust=Trust(trust), user=user, budget=budget)
    try:
        yield AgentMemory(turns)
    except (asyncio.CancelledError, GeneratorExit):
        await turns.settle(DropReason.CANCELLED)
        raise
    except BaseException:
        await turns.settle(DropReason.FAILED)
        raise
    else:
        await turns.settle()
