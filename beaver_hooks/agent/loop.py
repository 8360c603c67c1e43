"""Runs prompts: opens the turn, asks the model, runs tools, stores the exchange, commits."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal

import attrs
from attrs import field

from beaver_hooks.agent.context import ContextBuilder, checked_prompt
from beaver_hooks.agent.errors import AnswerNotStored, ProviderError, StorageError, UnknownSession
from beaver_hooks.agent.factory import EngineLoadResult
from beaver_hooks.agent.messages import ChatMessage, Completion, OnDelta, Usage
from beaver_hooks.agent.sessions.records import Resumed
from beaver_hooks.agent.sessions.texts import checked_id
from beaver_hooks.agent.shield import uninterrupted
from beaver_hooks.agent.skills import ActiveSkill
from beaver_hooks.text import presentable
from beaver_hooks.tools import OnTool, ToolOutcome
from beaver_hooks.turns.fields import new_turn_id
from beaver_hooks.turns.open_turn import OpenTurn
from beaver_hostspecs import Answer, AuditUnavailable, Message, Scope, Trust

TOOL_LIMIT = (
    "I stopped here: this prompt has used all its {rounds} rounds of tool calls. What the tools answered is not kept in"
    " this conversation, so ask again for less at a time, or raise agent.maxToolRounds."
)
CUT = frozenset({"length", "content_filter"})
"""The reasons of a provider to end an incomplete answer."""


PARAGRAPH = "\n\n"

Status = Literal["completed", "truncated", "tool_limit"]


@attrs.define(kw_only=True)
class _Progress:
    """The progress of a run.

    Attributes:
        messages: the provider's next input.
        usage: the tokens of all rounds, or `None` while the provider counts none.
    """

    messages: list[ChatMessage]
    outcomes: list[ToolOutcome] = attrs.field(factory=list)
    usage: Usage | None = None

    def heard(self, completion: Completion) -> None:
        """Add the model's answer."""
        if completion.usage is not None:
            self.usage = completion.usage + (self.usage or Usage())
        if completion.tool_calls:
            self.messages.append(ChatMessage(role="assistant", text=completion.text, tool_calls=completion.tool_calls))

    def ran(self, outcomes: Iterable[ToolOutcome]) -> None:
        """Add the outcomes of its tool calls."""
        for outcome in outcomes:
            self.outcomes.append(outcome)
            self.messages.append(ChatMessage(role="tool", text=outcome.text, tool_call_id=outcome.call.id))


@attrs.frozen(kw_only=True)
class _Listener:
    """The callbacks of a running run: for pieces of the answer, and for tool calls."""

    on_delta: OnDelta | None
    on_tool: OnTool | None

    def ran(self, outcome: ToolOutcome) -> None:
        """Report the outcome of a tool call."""
        if self.on_tool is not None:
            self.on_tool(outcome)


@attrs.frozen(kw_only=True)
class ToolCallSummary:
    """One tool call of a run, without its content."""

    id: str
    name: str
    outcome: Literal["success", "error"]
    duration: timedelta = timedelta()

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        milliseconds = round(self.duration.total_seconds() * 1000, 3)
        return {"id": self.id, "name": self.name, "outcome": self.outcome, "milliseconds": milliseconds}


def summarise_calls(outcomes: Iterable[ToolOutcome]) -> tuple[ToolCallSummary, ...]:
    """Return the summaries of tool calls, in order."""
    return tuple(
        ToolCallSummary(
            id=each.call.id,
            name=each.call.name,
            outcome="success" if each.error is None else "error",
            duration=each.duration,
        )
        for each in outcomes
    )


@attrs.frozen(kw_only=True)
class AgentRunResult:
    """The result of one prompt.

    Attributes:
        text: the user's answer.
        status: `completed`; `truncated` if the provider cut the answer; or `tool_limit` if the model called tools
            more often than it may. All three are normal ends.
        session_id: the given or new session.
        turn_id: the turn.
        tool_calls: the tool calls of the run, in order.
        usage: the tokens of all rounds as the provider counts them, or `None` if it does not count.
        receipt_id: the id of the turn's receipt, or `None` if none is stored.
    """

    text: str = field(repr=False)
    status: Status = "completed"
    session_id: str
    turn_id: str
    tool_calls: tuple[ToolCallSummary, ...] = ()
    usage: Usage | None = None
    receipt_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain data, with the keys that `beaver run --json` documents."""
        usage = self.usage
        return {
            "text": self.text,
            "status": self.status,
            "sessionId": self.session_id,
            "turnId": self.turn_id,
            "toolCalls": [each.to_json() for each in self.tool_calls],
            "usage": usage and {"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens},
            "receiptId": self.receipt_id,
        }


@attrs.frozen(kw_only=True)
class _Final:
    """The end of a run."""

    text: str
    status: Status


class AgentLoop:
    """Runs prompts on the agent that an `EngineLoader` loaded. Sessions run in parallel; runs of one session queue."""

    def __init__(self, engine: EngineLoadResult) -> None:
        self._engine = engine
        self._clock = engine.clock
        self._busy: dict[str, tuple[asyncio.Lock, int]] = {}

    async def run(
        self,
        prompt: str,
        session_id: str | None = None,
        user_id: str | None = None,
        *,
        scope: Scope | None = None,
        trust: Trust | str | None = None,
        skills: Iterable[str] = (),
        on_delta: OnDelta | None = None,
        on_tool: OnTool | None = None,
    ) -> AgentRunResult:
        """Return the agent's answer. By then the exchange is stored and the turn committed, but plugins learn later.

        Args:
            prompt: the user's prompt. NUL and lone surrogates in it become U+FFFD, everywhere.
            session_id: the session to continue, or a new one of that id; used unchanged. A new id if `None`.
            user_id: the user. A session stays its first user's.
            scope: the scope of the run.
            trust: the trust in the user: `agent.trust` unless this is less.
            skills: names of skills to activate, beside those of the configuration.
            on_delta: called with the answer's text piece by piece, while it arrives.
            on_tool: called with the outcome of each tool call, before the model gets it.

        Raises:
            InvalidTurn: the prompt is blank.
            SessionError: an id is invalid, or the session is not this caller's.
            SkillError: a skill does not exist.
            ProviderError: the model did not answer. The turn was dropped and is not in the session.
            AnswerNotStored: the model answered, and the answer could not be stored. The turn was dropped.
            StorageError: the session cannot be read.
            Exception: the error of a fail-closed plugin.
        """
        prompt, level = checked_prompt(prompt), self._engine.trust(trust)
        listener = _Listener(on_delta=on_delta, on_tool=on_tool)
        async with self._alone(session_id):
            active = await self._activated(skills)
            session = await self._begun(session_id, user_id, level)
            async with self._turn(prompt, session, user=user_id, scope=scope or Scope(), trust=level) as turn:
                return await self._answer(turn, session, active, listener)

    async def _begun(self, session: str | None, user: str | None, trust: Trust) -> Resumed:
        limit = self._engine.settings.history_messages
        return await self._engine.sessions.begin(session, user, limit=limit, trust=trust)

    def _turn(
        self, prompt: str, session: Resumed, *, user: str | None, scope: Scope, trust: Trust
    ) -> AbstractAsyncContextManager[OpenTurn]:
        """Return a turn of the session to enter; its first audit events are part of the session too."""
        turn_id = new_turn_id()
        self._engine.events.register(turn_id, session.id)
        return self._engine.host.turn(
            prompt, session=session.id, id=turn_id, user=user, history=session.history, scope=scope, trust=trust
        )

    async def _answer(
        self, turn: OpenTurn, session: Resumed, active: Iterable[ActiveSkill], listener: _Listener
    ) -> AgentRunResult:
        messages = ContextBuilder.build_messages(
            system_prompt=turn.system_prompt(self._engine.settings.system_prompt),
            skills=active,
            references=turn.references,
            history=session.history,
            prompt=turn.prompt,
            merge=self._engine.loaded.config.provider.merge_messages,
        )
        progress = _Progress(messages=list(messages))
        final = await self._converse(turn, progress, listener)
        await uninterrupted(self._keep(turn, final.text))
        return AgentRunResult(
            text=final.text,
            status=final.status,
            session_id=session.id,
            turn_id=turn.id,
            tool_calls=summarise_calls(progress.outcomes),
            usage=progress.usage,
            receipt_id=self._receipt_id(turn),
        )

    async def _converse(self, turn: OpenTurn, progress: _Progress, listener: _Listener) -> _Final:
        """Ask the model and run its tools, until it has answered or asked too often."""
        rounds = left = self._engine.settings.max_tool_rounds
        ask = partial(self._ask, progress, self._engine.tools.schemas(turn), listener.on_delta)
        completion = await ask()
        while completion.tool_calls and left:
            outcomes = await self._engine.tools.run_all(completion.tool_calls, turn)
            progress.ran(outcomes)
            for outcome in outcomes:
                listener.ran(outcome)
                await turn.tool_result(**outcome.fields)
            completion, left = await ask(), left - 1
        if not completion.tool_calls:
            cut = completion.finish_reason in CUT
            return _Final(text=_said(completion), status="truncated" if cut else "completed")
        text = TOOL_LIMIT.format(rounds=rounds)
        if listener.on_delta is not None:
            listener.on_delta(text)
        return _Final(text=text, status="tool_limit")

    async def _ask(
        self, progress: _Progress, tools: Sequence[Mapping[str, Any]], on_delta: OnDelta | None
    ) -> Completion:
        completion = await self._engine.provider.complete(progress.messages, tools=tools, on_delta=on_delta)
        completion = _identified(completion, len(progress.outcomes))
        progress.heard(completion)
        if on_delta is not None and completion.text and completion.tool_calls:
            # The model's text after its tools is another paragraph.
            on_delta(PARAGRAPH)
        return completion

    async def _keep(self, turn: OpenTurn, text: str) -> None:
        """Store the exchange in one transaction, then commit the turn."""
        now = self._clock.now()
        messages = _exchange(turn, text, now)
        try:
            await self._engine.sessions.append_exchange(turn.turn.session, messages)
        # A session may be deleted while its turn goes on.
        except (StorageError, UnknownSession) as error:
            raise AnswerNotStored(
                f"The answer could not be stored, so the turn was dropped. {error}", text=text
            ) from error
        await turn.commit(Answer(text=text, when=now, messages=messages, stored=True))

    async def _activated(self, names: Iterable[str]) -> tuple[ActiveSkill, ...]:
        wanted = (*self._engine.settings.skills, *names)
        return await asyncio.to_thread(self._engine.skills.activate, wanted) if wanted else ()

    def _receipt_id(self, turn: OpenTurn) -> str | None:
        try:
            return turn.id if self._engine.host.trail else None
        except AuditUnavailable:
            return None

    @asynccontextmanager
    async def _alone(self, session: str | None) -> AsyncIterator[None]:
        """Wait until no other run of the session is active. A new session has no other run."""
        if session is None:
            yield
            return
        lock, waiting = self._busy.get(checked_id(session), (asyncio.Lock(), 0))
        self._busy[session] = (lock, waiting + 1)
        try:
            async with lock:
                yield
        finally:
            lock, waiting = self._busy.pop(session)
            if waiting > 1:
                self._busy[session] = (lock, waiting - 1)


def _identified(completion: Completion, before: int) -> Completion:
    """Give an id to the calls that have none: some servers leave it out, and each tool message must name its call."""
    calls = [
        call if call.id else attrs.evolve(call, id=f"call-{number}")
        for number, call in enumerate(completion.tool_calls, before + 1)
    ]
    return attrs.evolve(completion, tool_calls=tuple(calls))


def _said(completion: Completion) -> str:
    if completion.text.strip():
        return presentable(completion.text)
    reason = completion.finish_reason or "no reason given"
    raise ProviderError(f"The model answered nothing ({reason}). Ask again, or ask for less.", category="empty")


def _exchange(turn: OpenTurn, text: str, now: datetime) -> tuple[Message, ...]:
    # The clock may be set back during the turn.
    said = Message(role="user", text=turn.prompt, when=turn.turn.when, id=turn.id)
    return (said, Message(role="assistant", text=text, when=max(now, turn.turn.when)))
