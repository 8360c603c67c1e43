"""The receipt, the content-free account of one turn: its recalled, injected and stored memories, with the reasons."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import attrs

from beaver_hostspecs import DropReason

TurnState = Literal["open", "pending", "committed", "dropped"]


@attrs.frozen(kw_only=True)
class Decision:
    """A gate's decision, with its reason."""

    gate: str
    verdict: str
    reason: str


@attrs.frozen(kw_only=True)
class Outcome:
    """The result of one write."""

    plane: str
    kind: str
    facts: Mapping[str, object] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Clip:
    """A text or list that was cut."""

    what: str
    shown: int
    total: int


@attrs.frozen(kw_only=True)
class Failure:
    """A hook call that failed.

    Attributes:
        error: the type of the error, or `None` without one.
        at: the place that raised it, as `module:line`.
    """

    hook: str
    category: str
    error: str | None = None
    at: str | None = None


@attrs.frozen(kw_only=True)
class PluginReceipt:
    """One plugin's part of a turn.

    Attributes:
        candidates: the ids that it considered, with scores; at most `MOST_CANDIDATES` of them.
        considered: the number of ids that it considered in all.
        injected: the ids of the references that reached the model.
        blocks: the number of its blocks in the system prompt.
        tokens: the estimated tokens that it added to the context.
        milliseconds: time spent per hook.
        degraded: the categories that it reported in this turn.
    """

    candidates: tuple[tuple[str, float | None], ...] = ()
    considered: int = 0
    injected: tuple[str | None, ...] = ()
    blocks: int = 0
    tokens: int = 0
    decisions: tuple[Decision, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    clipped: tuple[Clip, ...] = ()
    failures: tuple[Failure, ...] = ()
    degraded: tuple[str, ...] = ()
    milliseconds: Mapping[str, float] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Receipt:
    """One turn's account.

    Attributes:
        turn: the id of the turn in its recorded form.
        session: the keyed hash of the session.
        prompt: the keyed hash of the prompt.
        prompt_characters: the prompt's length.
        state: `open`; then `pending` until the background work is done; then `committed` or `dropped`.
        reason: why it was dropped.
        tokens: the estimated tokens that memory added to the context.
        lost: the number of background calls that never ran: refused, discarded, or left when the host closed.
    """

    turn: str
    session: str
    prompt: str
    prompt_characters: int
    opened: datetime
    closed: datetime | None = None
    state: TurnState = "open"
    reason: DropReason | None = None
    tokens: int = 0
    lost: int = 0
    plugins: Mapping[str, PluginReceipt] = attrs.field(factory=dict)


def to_json(receipt: Receipt) -> dict[str, object]:
    """Return the receipt as plain data; empty parts of a plugin are left out.

    Does not use `attrs.asdict`, for speed: most parts are empty, and the function runs once or twice per turn.
    """
    plain = {field.name: _plain(getattr(receipt, field.name)) for field in attrs.fields(Receipt)}
    return plain | {"plugins": {name: _part(each) for name, each in receipt.plugins.items()}}


def _part(part: PluginReceipt) -> dict[str, object]:
    values = ((field.name, getattr(part, field.name)) for field in attrs.fields(PluginReceipt))
    return {name: _plain(value) for name, value in values if value}


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return attrs.asdict(value) if attrs.has(type(value)) else value  # type: ignore[arg-type]
