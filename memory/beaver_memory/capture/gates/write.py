"""The write gate: only statements that are worth a memory of their own, and none that memory gave or forgot."""

import attrs

from beaver_memory.capture.features import content_words
from beaver_memory.capture.gates.verdict import Occasion, Verdict
from beaver_memory.capture.records import Candidate
from beaver_memory.capture.unmeant import unmeant
from beaver_memory.capture.vocabulary import vocabulary_of

NEAR = 0.9
"""The share of words in common from which two statements count as the same."""


@attrs.frozen(kw_only=True)
class WriteGate:
    """Refuses unstated and uncertain texts, recalled references, forgotten words and near duplicates.

    The user may ask for a statement again that was forgotten before.

    Attributes:
        least_confidence: of a candidate that is stored or queued.
    """

    least_confidence: float = 0.3

    def __call__(self, candidate: Candidate, occasion: Occasion) -> Verdict | None:
        """Return the objection to a candidate, or `None`."""
        if occasion.was_injected(candidate.text):
            return Verdict(gate="write", reason="recalled_reference")
        reason = "" if candidate.explicit else _unstated(candidate, occasion) or self._doubt(candidate, occasion)
        return Verdict(gate="write", reason=reason) if reason else None

    def _doubt(self, candidate: Candidate, occasion: Occasion) -> str:
        if candidate.confidence < self.least_confidence:
            return "low_confidence"
        if occasion.was_forgotten(candidate.text):
            return "forgotten_before"
        return "near_duplicate" if any(_near(candidate.text, known) for known in occasion.known) else ""


def _unstated(candidate: Candidate, occasion: Occasion) -> str:
    # A fix rests on outcomes of tools, and on no message.
    return "" if candidate.kind == "fix" else unmeant(candidate.text, occasion.message(candidate))


def _near(text: str, known: str) -> bool:
    """Return whether two texts say nearly the same; a different number or name is another statement."""
    ours, theirs = (content_words(each, vocabulary_of(each)) for each in (text, known))
    either = ours | theirs
    if not either or any(map(str.isdigit, "".join(ours ^ theirs))):
        return False
    return ours != theirs and len(ours & theirs) / len(either) >= NEAR
