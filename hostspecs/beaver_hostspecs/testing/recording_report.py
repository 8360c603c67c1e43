"""A report that keeps all of its calls."""

import re
from collections.abc import Iterable, Mapping
from math import inf

from beaver_hostspecs.freezing import freeze
from beaver_hostspecs.reports import OutcomeKind, Personal


class RecordingReport:
    """A `Report` for tests of plugins. As strict about arguments as the contract, and writes nothing.

    Attributes:
        seconds: the answer of `remaining`.
        events: names and facts.
        candidate_lists: the candidates, one tuple per call.
        decisions: gates, verdicts and reasons.
        outcomes: planes, kinds and facts.
        clippings: subject, shown amount and total of each cut.
        notices: sentences for the user.
        degradations: categories.
        recoveries: how often `recovered` was called.
    """

    def __init__(self, remaining: float = inf) -> None:
        self.seconds = remaining
        self.events: list[tuple[str, Mapping[str, object]]] = []
        self.candidate_lists: list[tuple[tuple[str, float | None], ...]] = []
        self.decisions: list[tuple[str, str, str]] = []
        self.outcomes: list[tuple[str, OutcomeKind, Mapping[str, object]]] = []
        self.clippings: list[tuple[str, int, int]] = []
        self.notices: list[str] = []
        self.degradations: list[str] = []
        self.recoveries = 0

    def remaining(self) -> float:
        """Return the attribute `seconds`."""
        return self.seconds

    def event(self, name: str, /, **facts: object) -> None:
        """Keep an event; a name that is not `snake_case`, or a fact that is not flat, raises."""
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise ValueError(f"an event is named in snake_case, not {name!r}")
        self.events.append((name, _checked(facts)))

    def candidates(self, scored: Iterable[tuple[str, float | None]], /) -> None:
        """Keep the candidates."""
        self.candidate_lists.append(tuple((id_, score) for id_, score in scored))

    def decision(self, gate: str, verdict: str, reason: str, /) -> None:
        """Keep the decision of a gate."""
        self.decisions.append((gate, verdict, reason))

    def outcome(self, plane: str, kind: OutcomeKind | str, /, **facts: object) -> None:
        """Keep how a write ended; an unnamed kind raises `ValueError`."""
        self.outcomes.append((plane, OutcomeKind(kind), _checked(facts)))

    def clipped(self, what: str, shown: int, total: int, /) -> None:
        """Keep a cut."""
        self.clippings.append((what, shown, total))

    def notice(self, text: str, /) -> None:
        """Keep a sentence for the user."""
        self.notices.append(text)

    def degraded(self, category: str, /) -> None:
        """Keep the category."""
        self.degradations.append(category)

    def recovered(self) -> None:
        """Count the call."""
        self.recoveries += 1


def _checked(facts: Mapping[str, object]) -> Mapping[str, object]:
    for name, fact in facts.items():
        for item in fact if isinstance(fact, list | tuple) else (fact,):
            if not isinstance(item, str | int | float | bool | Personal | None):
                raise TypeError(f"{name} is no flat fact: {type(item).__name__}")
    frozen: Mapping[str, object] = freeze(facts)
    return frozen
