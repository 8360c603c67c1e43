"""The handle of one open turn, which the caller holds between a prompt and its answer."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Unpack

import attrs

from beaver_hooks.loop_affinity import LoopAffinity
from beaver_hooks.plugins.registry import Member
from beaver_hooks.receipts.receipt_builder import ReceiptBuilder
from beaver_hooks.receipts.receipts import Receipt
from beaver_hooks.turns.context import PluginHint, Recall, ReferenceMessage
from beaver_hooks.turns.fields import ToolFields, checked
from beaver_hostspecs import Answer, DropReason, InvalidTurn, Message, Turn

if TYPE_CHECKING:
    from beaver_hooks.turns.lifecycle import Turns


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
