"""The write gate: only statements that are worth a memory of their own, and none that memory gave or forgot."""

import attrs

from beaver_memory.capture.gates.verdict import Occasion, Verdict
from beaver_memory.capture.records import Candidate
from beaver_memory.capture.sentences import with_sentences
from beaver_memory.capture.unmeant import unmeant
from beaver_memory.repeats import Statement

NEAR = 0.9
"""The share of the words of a known statement that a near duplicate has."""


@attrs.frozen(kw_only=True)
class WriteGate:
    """Refuses recalled references, and of other statements those that are not worth a memory.

    Text that its speaker does not mean is not worth one, nor are uncertain statements, near duplicates and forgotten
    words. The user may ask for any of them in so many words.

    Attributes:
        least_confidence: of a candidate that is stored or queued.
    """

    least_confidence: float = 0.3

    def __call__(self, candidate: Candidate, occasion: Occasion) -> Verdict | None:
        """Return the objection to a candidate, or `None`."""
        if occasion.was_injected(candidate.text):
            return Verdict(gate="write", reason="recalled_reference")
        reason = None if candidate.explicit else self._reason(candidate, occasion)
        return Verdict(gate="write", reason=reason) if reason else None

    def _reason(self, candidate: Candidate, occasion: Occasion) -> str | None:
        if candidate.kind != "fix" and (reason := unmeant(candidate.text, occasion.message(candidate))):
            return reason
        if candidate.confidence < self.least_confidence:
            return "low_confidence"
        if _was_forgotten(candidate.text, occasion):
            return "forgotten_before"
        is_known = any(_near(candidate.text, known) for known in occasion.known)
        return "near_duplicate" if is_known else None


def _was_forgotten(text: str, occasion: Occasion) -> bool:
    """Return whether a text or one of its sentences was forgotten; a sentence such as "Thanks a lot." says nothing."""
    said = (each for each in with_sentences(text) if each == text or content_words(each, vocabulary_of(each)))
    return any(map(occasion.was_forgotten, said))


def _near(text: str, known: str) -> bool:
    """Return whether a text says a little less than another one; the same words are a mention and no duplicate."""
    one, other = Statement.of(text), Statement.of(known)
    return one != other and one.is_in(other, share=NEAR)
