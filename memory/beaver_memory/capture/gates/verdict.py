"""What a gate sees, and what it answers."""

from collections.abc import Callable
from datetime import datetime
from typing import Literal

import attrs
from attrs import field

from beaver_memory.capture.records import Candidate
from beaver_memory.records import Owner


def _never(_: str) -> bool:
    return False


@attrs.frozen(kw_only=True)
class Occasion:
    """The turn in which a candidate was found.

    Attributes:
        owner: whose memory it would become.
        project: the project of the turn.
        paths: the files that the turn is about.
        tags: labels of the turn.
        when: the time of the turn.
        was_injected: whether a text consists of recalled references.
        was_forgotten: whether the owner has forgotten the words of a text.
        messages: the messages of the turn, by the places that candidates name.
        known: texts that memory holds already and that are near to the candidates.
    """

    owner: Owner = field(factory=Owner)
    project: str = ""
    paths: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    when: datetime
    was_injected: Callable[[str], bool] = field(default=_never, repr=False)
    was_forgotten: Callable[[str], bool] = field(default=_never, repr=False)
    messages: tuple[str, ...] = field(default=(), repr=False)
    known: tuple[str, ...] = field(default=(), repr=False)

    def message(self, candidate: Candidate) -> str:
        """Return the message that a candidate rests on, or its own text."""
        return next(iter(self.messages[candidate.place :]), candidate.text)


@attrs.frozen(kw_only=True)
class Verdict:
    """The objection of a gate.

    Attributes:
        gate: its name: `write`, `privacy`, `budget`, `approval` or `switch`.
        action: `refuse`, or `queue` for a person to decide.
        reason: in one word, without content.
    """

    gate: Literal["write", "privacy", "budget", "approval", "switch"]
    action: Literal["refuse", "queue"] = "refuse"
    reason: str


Gate = Callable[[Candidate, Occasion], Verdict | None]
"""Returns an objection, or `None`."""
