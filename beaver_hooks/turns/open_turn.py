"""The handle of one open turn, which the caller holds between a prompt and its answer."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from math import inf
from typing import TYPE_CHECKING, Unpack

import attrs

from beaver_hooks.loop_affinity import LoopAffinity
from beaver_hooks.plugins.registry import Member
from beaver_hooks.receipts.receipt_builder import ReceiptBuilder
from beaver_hooks.receipts.receipts import Receipt
from beaver_hooks.turns.context import PluginHint, Recall, ReferenceMessage
from beaver_hooks.turns.fields import ToolFields, checked
from beaver_hostspecs import (
    Answer,
    Clock,
    DropReason,
    InvalidTurn,
    Message,
    Turn,
    TurnAlreadyOpen,
    TurnClosed,
    UnknownTurn,
)

if TYPE_CHECKING:
    from beaver_hooks.turns.lifecycle import Turns


MOST_CLOSED = 10_000
"""The remembered ids of closed turns, so that closing one again is recognised and changes nothing."""


@attrs.define(kw_only=True, eq=False)
class OpenTurn:
    """A turn between its prompt and its answer.

    Attributes:
        turn: the turn, as every plugin sees it.
        recall: the context that memory adds to it.
        builder: the builder of its receipt.
        members: the plugins that were registered when it was opened.

    Use it in the process and on the event loop of its host. Elsewhere, and after the host is closed, `tool_result`,
    `commit` and `drop` raise the same errors as the host.
    """

    turn: Turn
    recall: Recall = attrs.field(factory=Recall)
    builder: ReceiptBuilder = attrs.field(repr=False)
    members: tuple[Member, ...] = attrs.field(repr=False)
    _turns: "Turns" = attrs.field(repr=False)
    _affinity: LoopAffinity = attrs.field(repr=False)

    @property
    def id(self) -> str:
        """The turn's id."""
        return self.turn.id

    @property
    def prompt(self) -> str:
        """The user's prompt."""
        return self.turn.prompt

    @property
    def references(self) -> tuple[ReferenceMessage, ...]:
        """One ephemeral message per plugin that recalled something: send them before the history."""
        return self.recall.references

    @property
    def hints(self) -> tuple[PluginHint, ...]:
        """Experience with the host's own tools."""
        return self.recall.hints

    @property
    def receipt(self) -> Receipt:
        """The turn's current receipt."""
        return self._turns.receipt_of(self.builder)

    def system_prompt(self, base: str = "") -> str:
        """Return the system prompt: `base`, the plugins' rules, the trusted blocks."""
        if not isinstance(base, str):
            raise InvalidTurn("the base of a system prompt must be a str")
        return self.recall.system_prompt(base)

    async def tool_result(self, **fields: Unpack[ToolFields]) -> bool:
        """Tell the plugins about a tool call; returns at once, unless `host.background` is false.

        The outcome defaults to `error` if an `error` is given.

        Args:
            **fields: `tool` and `call_id`, and the other fields of `ToolResult`.

        Returns:
            Whether the turn was still open; a late result reaches no plugin.
        """
        self._affinity.check()
        said = {
            **fields,
            "arguments": fields.get("arguments") or {},
            "outcome": fields.get("outcome") or ("success" if fields.get("error") is None else "error"),
        }
        return await self._turns.tool_result(self, said)

    async def commit(
        self, answer: str | Answer, *, messages: Iterable[Message] = (), stored: bool | None = None
    ) -> bool:
        """Close the turn with its final answer; the plugins learn in the background.

        Call it when the user has the answer. It returns at once, unless `host.background` is false. `messages` and
        `stored` belong to an answer that is given as text.

        Returns:
            Whether this call closed the turn; a turn is closed once, and closing it again changes nothing.

        Raises:
            InvalidTurn: a field does not fit, or `messages` or `stored` are given beside an `Answer`.
        """
        self._affinity.check()
        return await self._turns.commit(self, answer, messages=messages, stored=stored)

    async def drop(self, reason: DropReason | str = DropReason.FAILED) -> bool:
        """Close the turn without an answer; returns at once, unless `host.background` is false.

        Returns:
            Whether this call closed the turn.
        """
        self._affinity.check()
        return await self._turns.drop(self, reason)

    def drop_at_once(self, reason: DropReason | str) -> bool:
        """Close the turn as `drop` does, but never wait, for callers that cannot."""
        self._affinity.check()
        return self._turns.drop_now(self, checked(DropReason, reason))


@attrs.frozen(kw_only=True)
class _Page:
    opened: OpenTurn
    since: float


class OpenTurns:
    """Open turns by id, and the ids of closed turns for as long as a turn may idle.

    Args:
        clock: the source of the time.
        idle_seconds: how long a turn may idle, and how long its id is remembered after it is closed.
    """

    def __init__(self, *, clock: Clock, idle_seconds: float) -> None:
        self._clock = clock
        self._idle_seconds = idle_seconds
        self._open: dict[str, _Page] = {}
        self._closed: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[OpenTurn]:
        return iter([page.opened for page in self._open.values()])

    def enter(self, opened: OpenTurn) -> None:
        """Enter a turn; its id must be new."""
        if opened.id in self._open:
            raise TurnAlreadyOpen("a turn with this id is open; commit or drop it first, or give each turn its own id")
        if opened.id in self._closed:
            raise TurnClosed("a turn with this id was closed; give each turn its own id")
        self._put(opened, self._clock.monotonic())

    def get(self, turn_id: str) -> OpenTurn | None:
        """Return an open turn, or `None`."""
        page = self._open.get(turn_id)
        return page.opened if page else None

    def holds(self, opened: OpenTurn) -> bool:
        """Whether this very turn is open."""
        return self.get(opened.id) is opened

    def find(self, turn_id: str) -> OpenTurn:
        """Return an open turn, or raise `TurnClosed` or `UnknownTurn`."""
        if (opened := self.get(turn_id)) is not None:
            return opened
        if turn_id in self._closed:
            raise TurnClosed("this turn was committed or dropped before")
        raise UnknownTurn("no turn with this id is open in this host")

    def touch(self, opened: OpenTurn) -> None:
        """Start the idle time of a turn anew, unless the turn is held."""
        page = self._open.get(opened.id)
        if page is not None and page.opened is opened and page.since != inf:
            self._put(opened, self._clock.monotonic())

    def hold(self, opened: OpenTurn) -> None:
        """Hold a turn that a `with` block will close, so that it never idles."""
        if self.holds(opened):
            self._put(opened, inf)

    def _put(self, opened: OpenTurn, since: float) -> None:
        # Removed first, so that the pages stay in the order of their last use.
        self._open.pop(opened.id, None)
        self._open[opened.id] = _Page(opened=opened, since=since)

    def close(self, opened: OpenTurn) -> bool:
        """Remove a turn; `False` if it was closed before."""
        if not self.holds(opened):
            return False
        del self._open[opened.id]
        self._closed[opened.id] = self._clock.monotonic()
        if len(self._closed) > MOST_CLOSED:
            self._closed.popitem(last=False)
        return True

    def overdue(self) -> list[OpenTurn]:
        """Return the turns that were not closed in time, and forget the ids of turns closed as long ago."""
        limit = self._clock.monotonic() - self._idle_seconds
        while self._closed and next(iter(self._closed.values())) <= limit:
            self._closed.popitem(last=False)
        idle = []
        for page in self._open.values():  # the longest unused first; held turns may be anywhere
            if page.since == inf:
                continue
            if page.since > limit:
                break
            idle.append(page.opened)
        return idle
