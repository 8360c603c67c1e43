"""How a plugin says what it did: content-free facts that end in the audit trail, the receipt and its health."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Protocol

import attrs
from attrs import field
from attrs.validators import instance_of

Fact = str | int | float | bool | None
"""What a fact may be; a list or tuple of these too."""


class OutcomeKind(StrEnum):
    """The named outcomes in which every write ends."""

    STORED = "stored"
    DUPLICATE = "duplicate"
    UPDATED = "updated"
    SUPERSEDED = "superseded"
    GATED = "gated"
    REJECTED = "rejected"
    DEFERRED = "deferred"
    QUEUED = "queued"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"
    """It was sent and nobody can say whether it arrived."""
    FAILED = "failed"


@attrs.frozen(kw_only=True)
class Personal:
    """A fact that could identify a person, an id of theirs for example: sinks keep a keyed hash and its length."""

    value: str = field(validator=instance_of(str), repr=False)


class Report(Protocol):
    """One hook call's account of itself. Safe to call from any thread, and after the call's deadline.

    Facts hold no content: no prompt, no memory, no credential. The host masks what it knows to be secret or
    personal all the same. None of these methods raises because the audit trail cannot be written; wrong arguments
    raise, and are the plugin's own failure.
    """

    def remaining(self) -> float:
        """Return the seconds until this call's deadline; 0.0 once it has passed, `inf` where there is none."""

    def event(self, name: str, /, **facts: object) -> None:
        """Append an audit event: a `snake_case` name and flat facts (`Fact`, `Personal` or lists of facts)."""

    def candidates(self, scored: Iterable[tuple[str, float | None]], /) -> None:
        """Say what was considered for recall: ids with their scores, best first, injected or not."""

    def decision(self, gate: str, verdict: str, reason: str, /) -> None:
        """Say what a gate decided (`recall`, `write`, `privacy`, `budget`, `breaker` ...) and why."""

    def outcome(self, plane: str, kind: OutcomeKind | str, /, **facts: object) -> None:
        """Say how one write ended: which plane of memory it was for, and one of the named kinds.

        `failed` and `unknown` degrade the plugin's health until the same plane reports a write that arrived.
        """

    def clipped(self, what: str, shown: int, total: int, /) -> None:
        """Say that something was cut: what, how much of it is shown and how much there was."""

    def notice(self, text: str, /) -> None:
        """Tell the person at the terminal something that is no fault, in a sentence that says what they can do.

        It holds no content of memory. A command line shows each sentence once per state folder; other hosts log it.
        """

    def degraded(self, category: str, /) -> None:
        """Say that the plugin works only in part from now on; stays so until `recovered`."""

    def recovered(self) -> None:
        """Say that it works again."""
