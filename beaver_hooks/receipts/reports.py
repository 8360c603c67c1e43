"""The host's side of `Report`: the reports of a plugin in one hook call."""

from collections.abc import Callable, Iterable, Mapping
from math import inf, isfinite

import attrs

from beaver_hooks.receipts.facts import Cleaner
from beaver_hooks.receipts.receipt_builder import ReceiptBuilder
from beaver_hooks.receipts.receipts import Clip, Decision, Outcome
from beaver_hooks.receipts.recorder import TRUST, Recorder
from beaver_hostspecs import OutcomeKind

MOST_EVENTS = 100
"""Audit events that one call may cause; one more event then reports the limit. Health still changes."""

TROUBLE = frozenset({OutcomeKind.FAILED, OutcomeKind.UNKNOWN})
ARRIVED = frozenset({OutcomeKind.STORED, OutcomeKind.DUPLICATE, OutcomeKind.UPDATED, OutcomeKind.SUPERSEDED})
REPORTED = "reported"
"""The source of the faults that a plugin reports with `degraded`."""


@attrs.define(kw_only=True, eq=False)
class HostReport:
    """One call's report, which goes to the recorder at once.

    Attributes:
        plugin: the plugin that reports.
        hook: the hook that runs, or the other place that the report comes from.
        recorder: takes the reports.
        builder: the builder of the turn's receipt, or `None` outside turns.
        deadline: the time by which the call must end, on the clock that `now` reads.
        now: a clock that never runs backwards.
        troubled: whether the call reported a fault; then its normal end is no success.
    """

    plugin: str
    hook: str
    recorder: Recorder
    builder: ReceiptBuilder | None = None
    deadline: float = inf
    now: Callable[[], float] | None = None
    troubled: bool = False
    _events: int = 0

    def remaining(self) -> float:
        """Return the seconds until the deadline."""
        return inf if self.now is None else max(0.0, self.deadline - self.now())

    def event(self, name: str, /, **facts: object) -> None:
        """Append an audit event."""
        if self._may_speak():
            self._say(str(name), facts)

    def candidates(self, scored: Iterable[tuple[str, float | None]], /) -> None:
        """Record the candidates that the plugin considered."""
        pairs = [(str(identifier), _score(score)) for identifier, score in scored]
        if self._is_late():
            self._say_late("candidates", {"considered": len(pairs)})
        elif self.builder is not None:
            self.builder.plugins[self.plugin].consider(pairs)

    def decision(self, gate: str, verdict: str, reason: str, /) -> None:
        """Record a gate's decision."""
        if gate == TRUST and self.builder is not None:
            self.recorder.trust_left_out(self.plugin, self.builder.turn.trust)
        self._enter(Decision(gate=self._code(gate), verdict=self._code(verdict), reason=self._code(reason)))

    def outcome(self, plane: str, kind: OutcomeKind | str, /, **facts: object) -> None:
        """Record the result of a write, and change the plugin's health by it."""
        kind = OutcomeKind(kind)
        plane = self._code(plane)
        self._enter(Outcome(plane=plane, kind=kind.value, facts=self._cleaner.facts(facts)))
        if kind in TROUBLE:
            self._trouble(source=plane, category=f"{plane}_{kind.value}")
        elif kind in ARRIVED:
            self._well(source=plane)

    def clipped(self, what: str, shown: int, total: int, /) -> None:
        """Record that a text or list was cut."""
        self._enter(Clip(what=self._code(what), shown=int(shown), total=int(total)))

    def notice(self, text: str, /) -> None:
        """Keep a notice for the person at the terminal."""
        self.recorder.notice(self.plugin, str(text))

    def degraded(self, category: str, /) -> None:
        """Degrade the plugin's health until `recovered`."""
        category = self._code(category)
        if self._is_late():
            self._say_late("degraded", {"category": category})
        elif self.builder is not None:
            self.builder.plugins[self.plugin].note(category)
        self._trouble(source=REPORTED, category=category)

    def recovered(self) -> None:
        """Undo `degraded`."""
        self._well(source=REPORTED)

    def _may_speak(self) -> bool:
        """Return whether another audit event is allowed; record once that the limit is reached."""
        self._events += 1
        if self._events == MOST_EVENTS + 1:
            self._say("report_flooded", {"limit": MOST_EVENTS})
        return self._events <= MOST_EVENTS

    def _trouble(self, *, source: str, category: str) -> None:
        self.troubled = True
        if self.recorder.health.failed(self.plugin, source=source, category=category) and self._may_speak():
            self._say_loudly("plugin_degraded", {"source": source, "category": category})

    def _well(self, *, source: str) -> None:
        if self.recorder.health.succeeded(self.plugin, source=source) and self._may_speak():
            self._say_loudly("plugin_recovered", {"source": source})

    def _is_late(self) -> bool:
        """Whether the receipt was closed; later reports become events, so that the receipt and its copy agree."""
        return self.builder is not None and self.builder.state not in ("open", "pending")

    def _say_late(self, what: str, facts: Mapping[str, object]) -> None:
        if self._may_speak():
            self._say("late_report", {**facts, "said": what})

    @property
    def _cleaner(self) -> Cleaner:
        return self.recorder.cleaner(self.builder)

    def _say(self, name: str, facts: Mapping[str, object]) -> None:
        self.recorder.event(name, facts, builder=self.builder, plugin=self.plugin, hook=self.hook)

    def _say_loudly(self, name: str, facts: Mapping[str, object]) -> None:
        self.recorder.event(name, facts, builder=self.builder, plugin=self.plugin, loudly=True)

    def _enter(self, entry: Decision | Outcome | Clip) -> None:
        if self._is_late():
            parts = {name: part for name, part in attrs.asdict(entry).items() if name != "facts"}
            self._say_late(type(entry).__name__.lower(), parts)
        elif self.builder is not None:
            self.builder.plugins[self.plugin].enter(entry)

    def _code(self, text: str) -> str:
        return self._cleaner.code(str(text))


def _score(score: float | None) -> float | None:
    """Return the score, or `None` for a number that JSON lacks (NaN, infinity)."""
    number = None if score is None else float(score)
    return number if number is not None and isfinite(number) else None
