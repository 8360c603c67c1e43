"""What a statement does to an earlier one, the decision about a new memory, and how its write ended."""

from collections.abc import Sequence
from typing import Literal, Protocol, get_args

import attrs
from attrs import field
from attrs.validators import in_

from beaver_memory.records import Memory, NewMemory

Verdict = Literal["UPDATE", "DELETE", "NONE"]

Event = Literal["ADD", "UPDATE", "DELETE", "NONE"]
EVENTS: tuple[Event, ...] = get_args(Event)

Outcome = Literal["stored", "duplicate", "updated", "superseded"]


@attrs.frozen(kw_only=True)
class Finding:
    """What a later statement does to an earlier one, and why."""

    verdict: Verdict
    reason: str


@attrs.frozen(kw_only=True)
class Decision:
    """What becomes of a new memory.

    Attributes:
        event: `ADD` stores it; `UPDATE` puts its text in place of a candidate's; `DELETE` stores it and ends the time
            in which candidates were true; `NONE` counts it as one more mention of a candidate.
        places: the numbers of those candidates; none for `ADD`, one for `UPDATE` and `NONE`.
        reason: why, in a word that holds no content.
    """

    event: Event = field(default="ADD", validator=in_(EVENTS))
    places: tuple[int, ...] = ()
    reason: str = ""


class Judge(Protocol):
    """Decides about new memories."""

    def decide(self, new: NewMemory, candidates: Sequence[Memory]) -> Decision:
        """Return the decision about a memory, given memories that are similar to it, the most similar first."""


@attrs.frozen(kw_only=True)
class Reconciled:
    """How the write of a memory ended.

    Attributes:
        id: the memory that now says it: the new one, or the one that said it already.
        outcome: how the write ended.
        superseded: the memories that held until now.
        mentions: how often the memory was said.
        reason: why, in a word that holds no content.
    """

    id: int
    outcome: Outcome
    superseded: tuple[int, ...] = ()
    mentions: int = 1
    reason: str = ""
