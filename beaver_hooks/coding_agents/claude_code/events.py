"""Translation of Claude Code's hook events into turns of a host, and of recalled texts into Claude Code's answers.

The module does no I/O: it takes the objects that Claude Code writes, and returns the objects that it reads. Three rules
follow from the behaviour of Claude Code:

1. `Stop` may come more than once for one prompt, whenever another hook makes the model go on. So the last answer waits
   and is committed at the session's next event, `PreCompact` among them, or when the caller calls `settle`.
2. Claude Code sends no event for an answer that failed or that the user interrupted. A turn without an answer at the
   session's next event is dropped: as `cancelled` if a tool call was interrupted, else as `abandoned`.
3. Texts in the context stay in the conversation. So rules and blocks are added once per session and again when they
   change, and references have a budget. A text that is too long is cut, with a note, and the cut is audited.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping

import attrs

from beaver_hooks.coding_agents.claude_code.payload import (
    MOST_SAID,
    Event,
    Output,
    context,
    cut,
    length,
    text_of,
    tool_fields,
    unstored,
    why,
)
from beaver_hooks.host import Host
from beaver_hooks.log import make_log
from beaver_hooks.turns.context import Block
from beaver_hooks.turns.fields import TurnFields
from beaver_hooks.turns.open_turn import OpenTurn
from beaver_hostspecs import (
    Answer,
    Clock,
    CompactionReason,
    DropReason,
    HostError,
    Message,
    Trust,
    TurnAlreadyOpen,
    TurnClosed,
    TurnError,
)
from beaver_hostspecs.clock import SystemClock
from beaver_hostspecs.naming import type_name
from beaver_hostspecs.turns import named_or_none

MOST_SESSIONS = 256
MOST_CHARACTERS = 10_000
"""Claude Code puts a longer text into a file, and shows the model its beginning: half of a fenced message."""

MOST_RULES = MOST_CHARACTERS // 2
"""The most characters of rules; the rest is room for blocks."""

BY_MCP = (
    "The tools that memory names come from an MCP server, which may not be connected. If you do not have them, you"
    " cannot change memory: tell the user so, and do not promise to remember."
)
EMPTY = "The memory shown at the start of this session no longer applies: memory is empty now."

STALE = 15 * 60.0
"""Seconds after which an answer is committed though its session sends no more events."""


@attrs.define(kw_only=True, eq=False)
class _Session:
    """The state of one conversation."""

    id: str
    lock: asyncio.Lock = attrs.field(factory=asyncio.Lock)
    opened: OpenTurn | None = None
    prompt_id: str | None = None
    answer: Answer | None = None
    answered: float = 0.0
    interrupted: bool = False
    told: set[str] = attrs.field(factory=set)
    rules: str = ""
    blocks: tuple[Block, ...] = ()
    unconfirmed: Mapping[str, str] = attrs.field(factory=dict)

    def forget(self) -> None:
        """Add rules and blocks again: they are not in the context any more, or never were."""
        self.rules, self.blocks = "", ()


@attrs.define(kw_only=True, eq=False)
class ClaudeCodeTurns:
    """Runs the turns of Claude Code's sessions on an open host.

    Attributes:
        host: the host, open.
        trust: the trust in the user who types.
        user: the host's id of the user.
        budget: how many tokens memory may add per prompt.
        rules_elsewhere: whether the caller puts the plugins' rules into the system prompt itself.
    """

    host: Host
    trust: Trust = attrs.field(default=Trust.FULL, converter=Trust)
    user: str | None = attrs.field(default=None, validator=named_or_none)
    budget: int = 2000
    rules_elsewhere: bool = False
    _clock: Clock = attrs.field(factory=SystemClock)
    _sessions: OrderedDict[str, _Session] = attrs.field(factory=OrderedDict, init=False)

    async def handle(self, event: object) -> Output:
        """Handle an event; return the answer for Claude Code, `{}` for an empty one.

        Raises only cancellation: an unknown event is ignored, and an error is logged. A fail-closed plugin that fails
        blocks the prompt, with a sentence that says so.
        """
        try:
            output = await self._handle(event)
            await self._settle_stale()
        except Exception as error:  # noqa: BLE001 - logged; an error of memory does not stop the user
            make_log().warning("claude_code_event_failed", error=type_name(error))
            return {}
        return output

    async def settle(self, reason: DropReason = DropReason.ABANDONED) -> None:
        """Commit the answers that wait, and drop the turns without an answer, after the last event.

        Args:
            reason: the drop reason, as far as the caller knows it.
        """
        for session in list(self._sessions.values()):
            await self._settle(session, reason)

    def unheard(self, event: object) -> None:
        """Note that the answer to an event did not reach Claude Code, so that its texts are added again."""
        session = self._sessions.get(text_of(event, "session_id") or "") if isinstance(event, Mapping) else None
        if session is not None:
            session.forget()

    def rules(self, session: str | None = None) -> str:
        """Return the rules of the plugins that are registered; none while memory is off."""
        if self.host.is_memory_off(session=session, user=self.user):
            return ""
        return "\n\n".join(rule for info in self.host.plugins.values() for rule in info.rules)

    @property
    def sessions(self) -> int:
        """The number of known conversations."""
        return len(self._sessions)

    @property
    def open_turns(self) -> int:
        """The number of open turns, including those whose answer waits."""
        return sum(each.opened is not None for each in self._sessions.values())

    @property
    def resting(self) -> bool:
        """Whether no turn lacks an answer, and no event is being handled."""
        waiting = (each.opened is None or each.answer is not None for each in self._sessions.values())
        return all(waiting) and not any(each.lock.locked() for each in self._sessions.values())

    async def _handle(self, event: object) -> Output:
        if not isinstance(event, Mapping):
            return {}
        name, session_id = text_of(event, "hook_event_name"), text_of(event, "session_id")
        # A subagent's texts are no prompts of the user and no answers to them; its tool calls belong to the turn.
        subagent = event.get("agent_id") is not None and name not in ("PostToolUse", "PostToolUseFailure")
        if session_id is None or subagent:
            return {}
        run = self._handlers().get(name)
        if run is None:
            return {}
        session = await self._session(session_id)
        async with session.lock:
            return await run(session, event)

    def _handlers(self) -> Mapping[str | None, Callable[[_Session, Event], Awaitable[Output]]]:
        return {
            "SessionStart": self._start,
            "UserPromptSubmit": self._prompt,
            "PostToolUse": self._tool,
            "PostToolUseFailure": self._tool,
            "Stop": self._stop,
            "PreCompact": self._compact,
            "SessionEnd": self._end,
        }

    # --- The events ---------------------------------------------------------------------------------------------

    async def _start(self, session: _Session, event: Event) -> Output:
        source = event.get("source")
        if source != "compact":  # that may be in the middle of a turn
            await self._settle(session)
        if source in ("startup", "clear", "compact"):
            session.forget()
        output = context("SessionStart", self._new_rules(session, self.rules(session.id)))
        degraded = [f"{name}: {each}" for name, each in self.host.health().items() if each.state == "degraded"]
        if degraded and source in ("startup", "resume"):
            # For the user; the model does not see it.
            said = cut("; ".join(degraded), MOST_SAID)
            output["systemMessage"] = f"Beaver Hooks: {said}. `beaver doctor` shows the details."
        if source == "compact" and session.unconfirmed:
            output["systemMessage"] = unstored(session.unconfirmed)
            session.unconfirmed = {}
        return output

    async def _prompt(self, session: _Session, event: Event) -> Output:
        prompt, prompt_id = event.get("prompt"), text_of(event, "prompt_id")
        if not isinstance(prompt, str):
            return {}
        if session.opened is not None and prompt_id is not None and prompt_id == session.prompt_id:
            return {}  # a second event for the same prompt: the hooks are installed twice
        await self._settle(session)
        fields = TurnFields(trust=self.trust, user=self.user, budget=self.budget)
        if prompt_id is not None:
            fields["id"] = prompt_id
        try:
            opened = await self.host.open_turn(prompt, session=session.id, **fields)
        except (TurnAlreadyOpen, TurnClosed):
            return {}
        except (TurnError, HostError):
            raise
        except Exception as error:  # noqa: BLE001 - the host audited it, and the user sees it
            return {"decision": "block", "reason": why(error)}
        session.opened, session.prompt_id = opened, prompt_id
        return context("UserPromptSubmit", *self._recalled(session, opened))

    async def _tool(self, session: _Session, event: Event) -> Output:
        opened, fields = self._of(session, event), tool_fields(event)
        if opened is not None and fields is not None and fields["call_id"] not in session.told:
            session.told.add(fields["call_id"])  # two events per call if the hooks are installed twice
            session.interrupted |= event.get("is_interrupt") is True
            await opened.tool_result(**fields)
        return {}

    async def _stop(self, session: _Session, event: Event) -> Output:
        opened, said = self._of(session, event), text_of(event, "last_assistant_message")
        if opened is not None and said is not None:
            now = self._clock.now()
            asked = Message(role="user", text=opened.prompt, when=opened.turn.when)
            messages = (asked, Message(role="assistant", text=said, when=now))
            session.answer, session.answered = Answer(text=said, when=now, messages=messages), self._clock.monotonic()
        return {}

    async def _compact(self, session: _Session, event: Event) -> Output:
        if session.answer is not None:
            await self._settle(session)
        why = CompactionReason.REQUESTED if event.get("trigger") == "manual" else CompactionReason.AUTOMATIC
        report = await self.host.before_compaction(session=session.id, user=self.user, trust=self.trust, why=why)
        session.unconfirmed = report.unconfirmed
        return {}  # Claude Code takes what this hook prints as instructions for its summary

    async def _end(self, session: _Session, _: Event) -> Output:
        await self._settle(session)
        self._sessions.pop(session.id, None)
        return {}

    # --- Turns --------------------------------------------------------------------------------------------------

    def _of(self, session: _Session, event: Event) -> OpenTurn | None:
        """Return the open turn of an event: of the same prompt, if Claude Code names the prompt."""
        return session.opened if text_of(event, "prompt_id") == session.prompt_id else None

    async def _settle(self, session: _Session, reason: DropReason = DropReason.ABANDONED) -> None:
        opened, answer, interrupted = session.opened, session.answer, session.interrupted
        session.opened = session.answer = session.prompt_id = None
        session.interrupted = False
        session.told.clear()
        if opened is None:
            return
        if answer is not None:
            await opened.commit(answer)
        else:
            await opened.drop(DropReason.CANCELLED if interrupted else reason)

    async def _settle_stale(self) -> None:
        limit = self._clock.monotonic() - STALE
        for session in list(self._sessions.values()):
            if session.answer is not None and session.answered <= limit and not session.lock.locked():
                await self._settle(session)

    async def _session(self, session_id: str) -> _Session:
        session = self._sessions.setdefault(session_id, _Session(id=session_id))
        self._sessions.move_to_end(session_id)
        if len(self._sessions) > MOST_SESSIONS:
            # A session that is handling an event is no candidate, and this one is the last.
            oldest = next(each for each in self._sessions.values() if not each.lock.locked())
            del self._sessions[oldest.id]
            await self._settle(oldest)
        return session

    # --- Texts for the context ----------------------------------------------------------------------------------

    def _recalled(self, session: _Session, opened: OpenTurn) -> list[str]:
        """Return the texts to add to a prompt: changed rules and blocks, and the references."""
        recall = opened.recall
        rules = self._new_rules(session, "\n\n".join(each.text for each in recall.rules))
        room = MOST_CHARACTERS - length(f"{rules}\n\n" if rules else "")
        said = [each for each in (rules, self._new_blocks(session, recall.blocks, room)) if each]
        for each in recall.references:
            if length("\n\n".join([*said, each.text])) <= MOST_CHARACTERS:
                said.append(each.text)
            else:
                self.host.record("references_left_out", plugin=each.plugin, characters=len(each.text))
        return said

    def _new_rules(self, session: _Session, rules: str) -> str:
        if self.rules_elsewhere or rules == session.rules:
            return ""
        session.rules = rules
        # The same bytes each time: the host does not know whether the MCP server is connected.
        return self._fitting("rules", f"{rules}\n\n{BY_MCP}" if any(self.host.tools.values()) else rules, MOST_RULES)

    def _new_blocks(self, session: _Session, blocks: tuple[Block, ...], room: int) -> str:
        if blocks == session.blocks:
            return ""
        if not blocks and any(self._fails(each.plugin) for each in session.blocks):
            return ""  # its earlier blocks may still hold
        session.blocks = blocks
        return self._fitting("blocks", "\n\n".join(each.text for each in blocks) or EMPTY, room)

    def _fails(self, plugin: str) -> bool:
        health = self.host.health().get(plugin)
        return health is not None and health.state == "degraded"

    def _fitting(self, what: str, text: str, room: int) -> str:
        """Return a text, cut to the room."""
        if length(text) > room:
            self.host.record("context_cut", loudly=True, what=what, characters=length(text), room=room)
        return cut(text, room)
