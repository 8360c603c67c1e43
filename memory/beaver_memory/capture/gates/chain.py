"""All gates one after the other: each candidate ends admitted, queued or refused."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import attrs
from attrs import field

from beaver_hostspecs import holds_secret
from beaver_memory.capture.features import content_words
from beaver_memory.capture.gates.budget import BudgetGate, by_certainty
from beaver_memory.capture.gates.verdict import Gate, Occasion, Verdict
from beaver_memory.capture.records import BINDING, Candidate
from beaver_memory.capture.sentences import holds_private, with_sentences
from beaver_memory.capture.unmeant import unmeant
from beaver_memory.capture.vocabulary import vocabulary_of
from beaver_memory.repeats import Statement

LEAST_CONFIDENCE, LEAST_SURE = 0.3, 0.4
"""The confidence below which a statement is refused, and that below which it waits for approval."""

NEAR = 0.9
"""The share of the words of a known statement that a near duplicate has."""

OFF = Verdict(gate="switch", reason="off")


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


@attrs.frozen(kw_only=True)
class PrivacyGate:
    """Refuses what comes from a listed path, tag or project, and private or secret text.

    Attributes:
        paths: patterns of paths, for example `*/clients/*`; a folder stands for all that is in it.
        tags: labels, for example `health`.
        projects: patterns of projects.
    """

    paths: tuple[str, ...] = field(default=(), converter=_texts)
    tags: tuple[str, ...] = field(default=(), converter=_texts)
    projects: tuple[str, ...] = field(default=(), converter=_texts)

    def __call__(self, candidate: Candidate, occasion: Occasion) -> Verdict | None:
        """Return the objection to a candidate, or `None`."""
        checks = (
            ("secret", any(map(holds_secret, (candidate.text, *candidate.keywords)))),
            ("private_span", holds_private(candidate.text)),
            ("denied_project", any(fnmatchcase(occasion.project, each) for each in self.projects)),
            ("denied_tag", not {*map(str.casefold, self.tags)}.isdisjoint(map(str.casefold, occasion.tags))),
            ("denied_path", any(_within(path, each) for path in occasion.paths for each in self.paths)),
        )
        reason = next((name for name, holds in checks if holds), None)
        return None if reason is None else Verdict(gate="privacy", reason=reason)


def _within(path: str, pattern: str) -> bool:
    return fnmatchcase(path, pattern) or path.startswith(pattern.rstrip("/") + "/")


def approval(candidate: Candidate, _: Occasion) -> Verdict | None:
    """Queue text of external origin that would steer the agent, instructions to the agent, and uncertain statements.

    What proposes is never what approves: neither the agent nor a model can accept what this gate queues.
    """
    if candidate.external and (candidate.kind in BINDING or candidate.steers_agent):
        reason = "external_origin"
    elif candidate.explicit:
        return None
    elif candidate.steers_agent:
        reason = "rule_about_the_agent"
    elif candidate.confidence < LEAST_SURE:
        reason = "low_confidence"
    else:
        return None
    return Verdict(gate="approval", action="queue", reason=reason)


def write(candidate: Candidate, occasion: Occasion) -> Verdict | None:
    """Refuse recalled references, and of other statements those that are not worth a memory.

    Text that its speaker does not mean is not worth one, nor are uncertain statements, near duplicates and forgotten
    words. The user may ask for any of them in so many words.
    """
    if occasion.was_injected(candidate.text):
        return Verdict(gate="write", reason="recalled_reference")
    reason = None if candidate.explicit else _unworthy(candidate, occasion)
    return Verdict(gate="write", reason=reason) if reason else None


def _unworthy(candidate: Candidate, occasion: Occasion) -> str | None:
    if candidate.kind != "fix" and (reason := unmeant(candidate.text, occasion.message(candidate))):
        return reason
    if candidate.confidence < LEAST_CONFIDENCE:
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


@attrs.frozen(kw_only=True)
class Judged:
    """A candidate and the objection to it; without one it is admitted."""

    candidate: Candidate
    verdict: Verdict | None = None

    @property
    def admitted(self) -> bool:
        """Whether it may be stored now."""
        return self.verdict is None

    @property
    def queued(self) -> bool:
        """Whether a person decides about it."""
        return self.verdict is not None and self.verdict.action == "queue"


class Gates:
    """The gates of capture.

    Args:
        budget: the budget gate.
        privacy: the privacy gate.
        enabled: the switch.
    """

    def __init__(self, budget: BudgetGate, *, privacy: PrivacyGate | None = None, enabled: bool = True) -> None:
        self.budget, self.enabled = budget, enabled
        self._policies: Sequence[Gate] = (privacy or PrivacyGate(), write, approval)

    def judged(self, candidates: Iterable[Candidate], occasion: Occasion) -> list[Judged]:
        """Return the fate of each candidate; the budget serves the most certain ones first."""
        found, kept = list[Judged](), 0
        for candidate in by_certainty(tuple(candidates)):
            verdict = self._objection(candidate, occasion, kept)
            found.append(Judged(candidate=candidate, verdict=verdict))
            kept += verdict is None or verdict.action == "queue"
        return found

    def _objection(self, candidate: Candidate, occasion: Occasion, kept: int) -> Verdict | None:
        if not self.enabled:
            return OFF
        objections = [each for policy in self._policies if (each := policy(candidate, occasion)) is not None]
        refusal = next((each for each in objections if each.action == "refuse"), None)
        return refusal or self.budget.verdict(occasion, kept) or next(iter(objections), None)
