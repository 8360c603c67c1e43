"""Reports of a plugin: facts without content for the audit trail, the receipt and the plugin's health."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Protocol

import attrs
from attrs import field
from attrs.validators import instance_of

Fact = str | int | float | bool | None
"""The types of a fact; a list or tuple of them too."""


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
    """It was sent, and it is unknown whether it arrived."""
    FAILED = "failed"


@attrs.frozen(kw_only=True)
class Personal:
    """A fact that could identify a person, for example a user id: sinks keep a keyed hash and its length."""

    value: str = field(validator=instance_of(str), repr=False)


class Report(Protocol):
    """One hook call's account of itself. Safe to call from any thread, and after the call's deadline.

    Facts hold no content: no prompt, no memory, no credential. A text is a code: at most 64 ASCII letters, digits and
    `_ . : / + -`. Of any other text, and of a known secret or personal value, the host keeps a keyed hash. No method
    raises because the audit trail cannot be written; wrong arguments raise, and are the plugin's own failure.
    """

    def remaining(self) -> float:
        """Return the seconds until this call's deadline; 0.0 once it has passed, `inf` where there is none."""

    def event(self, name: str, /, **facts: object) -> None:
        """Append an audit event: a `snake_case` name and flat facts (`Fact`, `Personal` or lists of facts)."""

    def candidates(self, scored: Iterable[tuple[str, float | None]], /) -> None:
        """Report the candidates for recall: ids with their scores, best first, injected or not."""

    def decision(self, gate: str, verdict: str, reason: str, /) -> None:
        """Report the decision of a gate (`recall`, `write`, `privacy`, `budget`, `breaker` ...) and its reason."""

    def outcome(self, plane: str, kind: OutcomeKind | str, /, **facts: object) -> None:
        """Report how one write ended: its plane of memory, and one of the named kinds.

        `failed` and `unknown` degrade the plugin's health until the same plane reports a write that arrived.
        """

    def clipped(self, what: str, shown: int, total: int, /) -> None:
        """Report a cut: its subject, the shown amount and the total."""

    def notice(self, text: str, /) -> None:
        """Show the user at the terminal a sentence that reports no fault and names what the user can do.

        It holds no content of memory. A command line shows each sentence once per state folder; other hosts log it.
        """

    def degraded(self, category: str, /) -> None:
        """Report that the plugin works only in part until it calls `recovered`."""

    def recovered(self) -> None:
        """Report that the plugin works again."""
