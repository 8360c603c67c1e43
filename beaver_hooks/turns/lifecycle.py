"""The life of every turn: opened once, then committed once or dropped once."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from contextvars import copy_context
from functools import lru_cache, partial
from typing import Any, cast

import attrs

from beaver_hooks.loop_affinity import LoopAffinity
from beaver_hooks.options import Options
from beaver_hooks.plugins.hook_calls import Calls
from beaver_hooks.plugins.registry import Implementation, Registry
from beaver_hooks.plugins.suspensions import Suspensions
from beaver_hooks.receipts.receipt_builder import ReceiptBuilder
from beaver_hooks.receipts.receipts import Decision, Receipt
from beaver_hooks.receipts.recorder import TRUST, Recorder
from beaver_hooks.turns.admission import Admission
from beaver_hooks.turns.background import BackgroundCalls, Job
from beaver_hooks.turns.context import Answers, Block, Recall, UnrenderableError, compose
from beaver_hooks.turns.echo_filter import InjectedMemory
from beaver_hooks.turns.fields import TurnFields, checked, is_ours, new_turn_id
from beaver_hooks.turns.open_turn import OpenTurn, OpenTurns
from beaver_hooks.turns.results import RecallCheck
from beaver_hostspecs import Answer, DropReason, HostNotOpen, InvalidTurn, Message, ToolResult, Turn, TurnClosed
from beaver_hostspecs.rendering import check_boundary

SESSIONS = 1000
"""How many sessions' hashes are cached."""

OFF = Decision(gate="memory", verdict="off", reason="memory is off for this session")


@attrs.define(kw_only=True, eq=False)
class Turns:
    """Runs turns over the registered plugins, on the event loop it was made in.

    Attributes:
        arriving: names of plugins that are registered and have not started yet; no turn sees them.
        closing: whether the host closes; then opening a turn fails.
    """

    open_turns: OpenTurns
    injected: InjectedMemory
    arriving: list[str] = attrs.field(factory=list, init=False)
    closing: bool = attrs.field(default=False, init=False)
    _registry: Registry
    _recorder: Recorder
    _calls: Calls
    _suspensions: Suspensions
    _recall_check: RecallCheck
    _background: BackgroundCalls
    _admission: Admission
    _options: Options
    _affinity: LoopAffinity
    _session_hash: Callable[[str], str] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        # A hash costs more than all other work on a receipt, and sessions have many turns.
        self._session_hash = lru_cache(SESSIONS)(self._recorder.identify)

    def new_turn(self, prompt: str, session: str, fields: TurnFields) -> Turn:
        """Return a turn with the given fields, which is not open yet.

        Raises:
            InvalidTurn: a field does not fit.
        """
        given: dict[str, Any] = {"id": new_turn_id(), "when": self._options.clock.now(), **fields}
        was_injected = partial(self.injected.was_injected, session)
        return cast("Turn", checked(Turn, prompt=prompt, session=session, was_injected=was_injected, **given))

    @asynccontextmanager
    async def hold(self, opened: OpenTurn) -> AsyncIterator[OpenTurn]:
        """Keep a turn open during a `with` block, and drop it afterwards unless the block has closed it."""
        self.open_turns.hold(opened)
        try:
            yield opened
        except (asyncio.CancelledError, GeneratorExit):
            self.drop_now(opened, DropReason.CANCELLED)
            raise
        except BaseException:
            self.drop_now(opened, DropReason.FAILED)
            raise
        else:
            self.drop_now(opened, DropReason.ABANDONED)

    async def open(self, turn: Turn, *, supersedes: str | None = None) -> OpenTurn:
        """Open a turn and ask every plugin for its contribution; none while memory is off."""
        self.sweep()
        if supersedes is not None:
            self._supersede(supersedes)
        opened = self.unentered(turn)
        builder = opened.builder
        self.open_turns.enter(opened)
        try:
            self._leave_out(opened)
            calls = [self._calls.begin_hook(each, {"turn": turn}, builder=builder) for each in self._admitted(opened)]
            results = await self._calls.settle(calls)
            self._ensure_open(opened)
            answers = self._recall_check.answers(
                [each for each in results if self._registry.holds(each.call.implementation.member)], builder
            )
            opened.recall = self._compose(answers, opened)
        except BaseException as error:
            self._close(opened, "on_turn_dropped", reason=_why(error))
            raise
        return opened

    def _ensure_open(self, opened: OpenTurn) -> None:
        if self.closing:
            raise HostNotOpen("the host was closed while the turn was being opened")
        if not self.open_turns.holds(opened):
            raise TurnClosed("the turn was closed while it was being opened")

    async def tool_result(self, opened: OpenTurn, fields: Mapping[str, Any]) -> bool:
        """Tell the plugins about a tool call."""
        result = checked(ToolResult, **fields)
        if not self.open_turns.holds(opened):
            return False
        self.open_turns.touch(opened)
        self._enqueue(opened, "on_tool_result", {"result": result})
        await self._wait_unless_background(opened)
        return True

    async def commit(
        self, opened: OpenTurn, answer: str | Answer, *, messages: Iterable[Message], stored: bool | None
    ) -> bool:
        """Close a turn with its answer."""
        whole = self._answer(opened.turn, answer, checked(tuple, messages), stored=stored)
        closed = self._close(opened, "after_prompt", answer=whole)
        await self._wait_unless_background(opened)
        return closed

    def _answer(
        self, turn: Turn, answer: str | Answer, messages: tuple[Message, ...], *, stored: bool | None
    ) -> Answer:
        """Return the answer of a turn, which is given whole or as a text with its messages."""
        if not isinstance(answer, Answer):
            said = messages or _exchange(turn, answer)
            return cast(
                "Answer", checked(Answer, text=answer, when=self._options.clock.now(), messages=said, stored=stored)
            )
        if messages or stored is not None:
            raise InvalidTurn("an `Answer` has `messages` and `stored` of its own; give them only beside a text")
        return answer

    async def drop(self, opened: OpenTurn, reason: DropReason | str) -> bool:
        """Close a turn without an answer."""
        closed = self._close(opened, "on_turn_dropped", reason=checked(DropReason, reason))
        await self._wait_unless_background(opened)
        return closed

    def drop_now(self, opened: OpenTurn, reason: DropReason) -> bool:
        """Close a turn without an answer and without waiting, for callers that must not wait."""
        return self._close(opened, "on_turn_dropped", reason=reason)

    def sweep(self) -> None:
        """Drop the turns that were not closed in time."""
        for opened in self.open_turns.overdue():
            self.drop_now(opened, DropReason.ABANDONED)

    def receipt_of(self, builder: ReceiptBuilder) -> Receipt:
        """Return a turn's current receipt."""
        return builder.receipt(self._recorder.identify)

    def unentered(self, turn: Turn) -> OpenTurn:
        """Return a handle that is not in the `OpenTurns`: it cannot be found, committed or dropped."""
        builder = ReceiptBuilder(
            turn=turn,
            recorded=turn.id if is_ours(turn.id) else self._recorder.identify(turn.id),
            session=self._session_hash(turn.session),
            opened=self._options.clock.now(),
        )
        members = tuple([each for each in self._registry.members() if each.name not in self.arriving])
        return OpenTurn(turn=turn, turns=self, builder=builder, members=members, affinity=self._affinity)

    def _leave_out(self, opened: OpenTurn) -> None:
        """Record the plugins and tools that are left out of a turn: all plugins while memory is off."""
        turn, parts = opened.turn, opened.builder.plugins
        if self._admission.is_off(turn):
            for each in opened.members:
                parts[each.name].enter(OFF)
            opened.members = ()
        for each in opened.members:
            for tool in self._admission.withheld(each, turn):
                parts[each.name].enter(Decision(gate=TRUST, verdict="not_offered", reason=tool))
                self._recorder.trust_left_out(each.name, turn.trust)

    def _admitted(self, opened: OpenTurn) -> list[Implementation]:
        """Return the recall hooks that the turn waits for; leave out suspended hooks, and probe those that are due."""
        admitted = []
        for each in self._registry.implementations("before_prompt"):
            if each.member not in opened.members:
                continue
            admission = self._suspensions.admit(each.member)
            if admission.left_out is None:
                admitted.append(each)
                continue
            opened.builder.plugins[each.member.name].enter(admission.left_out)
            if admission.probe:
                self._probe(each, opened)
        return admitted

    def _probe(self, implementation: Implementation, opened: OpenTurn) -> None:
        """Call a suspended hook in the background; its reports go to the audit trail, and to no receipt."""
        known = opened.builder
        builder = ReceiptBuilder(turn=opened.turn, recorded=known.recorded, session=known.session, opened=known.opened)
        arguments = {"turn": opened.turn}
        job = Job(
            implementation=implementation, builder=builder, arguments=arguments, context=copy_context(), probe=True
        )
        self._background.probe(job)

    def _supersede(self, turn_id: str) -> None:
        if (opened := self.open_turns.get(turn_id)) is not None:
            self.drop_now(opened, DropReason.ABANDONED)

    def _compose(self, answers: Answers, opened: OpenTurn) -> Recall:
        builder = opened.builder
        members = [each for each in opened.members if self._registry.holds(each)]
        rules = tuple([Block(plugin=each.name, text=rule) for each in members for rule in each.info.rules])
        if not answers:
            return Recall(rules=rules)
        boundary = checked(check_boundary, self._options.boundary())
        while True:
            try:
                recall, shares = compose(
                    answers,
                    rules=rules,
                    boundary=boundary,
                    limit=self._options.settings.reference_tokens,
                    budget=builder.turn.budget,
                )
                break
            except UnrenderableError as error:
                member = next(each for each in members if each.name == error.plugin)
                self._recall_check.unrenderable(member, builder, error.__cause__ or error)
                answers = [pair for pair in answers if pair[0] != error.plugin]
        shown = [share.rendered.texts for share in shares.values() if share.rendered]
        if shown:
            self.injected.remember(builder.turn.session, builder.turn.id, [text for texts in shown for text in texts])
        for plugin, share in shares.items():
            self._recall_check.write_down(plugin, share, builder)
        return recall

    def _close(self, opened: OpenTurn, hook: str, **arguments: Any) -> bool:
        if not self.open_turns.close(opened):
            return False
        builder = opened.builder
        # If the turn is still being opened, the recall of its plugins is no longer needed.
        for call in [each for each in self._calls.running.values() if each.report.builder is builder]:
            if call.hook == "before_prompt":
                self._calls.abandon(call)
        builder.closed = self._options.clock.now()
        builder.reason = arguments.get("reason")
        self._enqueue(opened, hook, arguments)
        name = "turn_dropped" if builder.reason else "turn_committed"
        facts = {"reason": builder.reason and builder.reason.value, "plugins": len(opened.members)}
        self._recorder.event(name, facts, builder=builder)
        self._recorder.keep(builder)
        return True

    def _enqueue(self, opened: OpenTurn, hook: str, arguments: Mapping[str, Any]) -> None:
        """Queue a hook for every plugin registered when the turn was opened and still now.

        While memory is off, only `on_turn_dropped` is queued.
        """
        if hook != "on_turn_dropped" and self._admission.is_off(opened.turn):
            return
        context = copy_context()
        for each in self._registry.implementations(hook):
            if each.member in opened.members:
                job = Job(
                    implementation=each,
                    builder=opened.builder,
                    arguments={"turn": opened.turn, **arguments},
                    context=context.copy(),
                )
                self._background.put(job)

    async def _wait_unless_background(self, opened: OpenTurn) -> None:
        if not self._options.settings.background:
            await self._background.wait(opened.builder)


def _exchange(turn: Turn, answer: str) -> tuple[Message, ...]:
    said = checked(Message, role="user", text=turn.prompt, when=turn.when)
    return (said, checked(Message, role="assistant", text=answer))


def _why(error: BaseException) -> DropReason:
    return DropReason.CANCELLED if isinstance(error, asyncio.CancelledError) else DropReason.FAILED
