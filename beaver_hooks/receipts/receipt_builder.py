"""The notes on a running turn, from which its `Receipt` is made."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cached_property
from typing import TypeVar

import attrs

from beaver_hooks.receipts.facts import Cleaner, Identify, private_words
from beaver_hooks.receipts.receipts import Clip, Decision, Failure, Outcome, PluginReceipt, Receipt, TurnState
from beaver_hostspecs import DropReason, Turn

T = TypeVar("T")

MOST_CANDIDATES = 100
"""Candidates kept per plugin and turn."""

MOST_ENTRIES = 200
"""Decisions, outcomes and the like kept per plugin and turn, so that no plugin fills the memory."""


@attrs.define(kw_only=True, eq=False)
class PluginReceiptBuilder:
    """One plugin's part of a running turn. Appending to its lists is safe from several threads."""

    candidates: list[tuple[str, float | None]] = attrs.field(factory=list)
    considered: int = 0
    injected: tuple[str | None, ...] = ()
    blocks: int = 0
    tokens: int = 0
    entries: list[Decision | Outcome | Clip | Failure] = attrs.field(factory=list)
    degraded: list[str] = attrs.field(factory=list)
    seconds: dict[str, float] = attrs.field(factory=dict)

    def enter(self, entry: Decision | Outcome | Clip | Failure) -> None:
        """Add an entry, up to `MOST_ENTRIES`."""
        if len(self.entries) < MOST_ENTRIES:
            self.entries.append(entry)

    def consider(self, scored: Iterable[tuple[str, float | None]]) -> None:
        """Add candidates: count all of them, and keep the first `MOST_CANDIDATES`."""
        for identifier, score in scored:
            self.considered += 1
            if len(self.candidates) < MOST_CANDIDATES:
                self.candidates.append((identifier, score))

    def note(self, category: str) -> None:
        """Add a category that the plugin reported with `degraded`, once."""
        if category not in self.degraded and len(self.degraded) < MOST_ENTRIES:
            self.degraded.append(category)

    def spend(self, hook: str, seconds: float) -> None:
        """Add the time that a call of `hook` took."""
        self.seconds[hook] = self.seconds.get(hook, 0.0) + seconds

    def facts(self, hook: str) -> dict[str, object]:
        """Return the reports of a call that has no receipt as flat facts, without empty ones."""
        entries = tuple(self.entries)
        facts: dict[str, object] = {
            "milliseconds": round(self.seconds.get(hook, 0.0) * 1000, 3),
            "outcomes": [f"{each.plane}:{each.kind}" for each in _only(Outcome, entries)],
            "decisions": [f"{each.gate}:{each.verdict}" for each in _only(Decision, entries)],
            "clipped": [each.what for each in _only(Clip, entries)],
            "considered": self.considered,
        }
        return {name: fact for name, fact in facts.items() if fact not in ([], 0)}

    def receipt(self, clean: Callable[[str], str] = str) -> PluginReceipt:
        """Return the plugin's part of the receipt so far; the plugin's own ids pass through `clean`."""
        entries = tuple(self.entries)
        return PluginReceipt(
            candidates=tuple((clean(each), score) for each, score in list(self.candidates)),
            considered=self.considered,
            injected=tuple(each and clean(each) for each in self.injected),
            blocks=self.blocks,
            tokens=self.tokens,
            decisions=_only(Decision, entries),
            outcomes=_only(Outcome, entries),
            clipped=_only(Clip, entries),
            failures=_only(Failure, entries),
            degraded=tuple(self.degraded),
            milliseconds={hook: round(seconds * 1000, 3) for hook, seconds in {**self.seconds}.items()},
        )


def _only(kind: type[T], entries: tuple[object, ...]) -> tuple[T, ...]:
    return tuple([each for each in entries if isinstance(each, kind)]) if entries else ()


@attrs.define(kw_only=True, eq=False)
class ReceiptBuilder:
    """The builder of the receipt of one running turn.

    Attributes:
        turn: the turn; its prompt and ids leave this record only as keyed hashes.
        recorded: the turn's id in the form that may be recorded.
        session: the keyed hash of the session.
        open_calls: background calls that are queued or running.
    """

    turn: Turn
    recorded: str
    session: str
    opened: datetime
    closed: datetime | None = None
    reason: DropReason | None = None
    open_calls: int = 0
    lost: int = 0
    plugins: dict[str, PluginReceiptBuilder] = attrs.field(factory=lambda: defaultdict(PluginReceiptBuilder))

    @cached_property
    def private(self) -> frozenset[str]:
        """The letters of the prompt and of the ids that could identify a person, with a turn id of the caller."""
        return private_words(self.turn, self.recorded)

    @property
    def state(self) -> TurnState:
        """The state of the turn now."""
        if self.closed is None:
            return "open"
        if self.open_calls:
            return "pending"
        return "dropped" if self.reason else "committed"

    def receipt(self, identify: Identify) -> Receipt:
        """Return the receipt so far."""
        clean = Cleaner(identify, self.private)
        plugins = {name: part.receipt(clean.code) for name, part in list(self.plugins.items())}
        return Receipt(
            turn=self.recorded,
            session=self.session,
            prompt=identify(self.turn.prompt),
            prompt_characters=len(self.turn.prompt),
            opened=self.opened,
            closed=self.closed,
            state=self.state,
            reason=self.reason,
            tokens=sum(each.tokens for each in plugins.values()),
            lost=self.lost,
            plugins=plugins,
        )
