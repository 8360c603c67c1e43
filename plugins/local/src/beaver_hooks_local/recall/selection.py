"""Selects the hits that a turn is given, and says why each of the others is not given. Pure.

The number of hits follows their scores, as relations only, so that another formula needs no other rule:

1. No hit is given if the best one scores less than the floor: the prompt is about something else.
2. The three best hits are given if they have half of the floor, and the next ones, up to a limit, if they have a share
   of the best score. A question for a list or a count takes a smaller share, and more than two of one session only if
   no other session has any.
3. A hit that adds nothing to a better one, or that the conversation already contains, is passed over.
"""

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime

import attrs
from attrs import field

from beaver_hooks_local.recall.question_kind import ORDINARY, QuestionKind
from beaver_memory.query import Hit
from beaver_memory.reconcile.precedence import outdated
from beaver_memory.records import Memory
from beaver_memory.repeats import Statement

SURE = 3
"""The best hits, which need a share of the floor only, and not of the best score."""

HALF = 0.5
"""That share of the floor."""

LENIENT = 0.95
"""The factor of the share of the best score for a question that asks for many."""

OF_A_SESSION = 2
"""Hits of one session that come before those of other sessions, if a question asks for many."""

GIVEN = "given"
UNRELATED = "unrelated"
WEAK = "weak"
REPEATED = "repeated"
OUTDATED = "outdated"
SAID = "said"
LIMIT = "limit"
NO_ROOM = "no_room"

LEFT_OUT = (UNRELATED, WEAK, REPEATED, OUTDATED, LIMIT, NO_ROOM)

REASONS: Mapping[str, str] = {
    GIVEN: "it is given",
    UNRELATED: "the best memory scores too low: the prompt is about something else",
    WEAK: "its score is far below the best one",
    REPEATED: "a better memory says the same",
    OUTDATED: "a newer memory that is given outdates it",
    SAID: "the conversation already says it",
    LIMIT: "`recall.topK` better ones are given",
    NO_ROOM: "it does not fit into the tokens of the turn",
}
"""The meaning of the reasons why a memory is given or not."""


@attrs.frozen(kw_only=True)
class SelectionPolicy:
    """How many hits are given.

    Attributes:
        most: the most hits.
        share: the share of the best score that a hit needs.
        floor: the lowest score of the best hit.
    """

    most: int = 8
    share: float = 0.65
    floor: float = 0.0


ALWAYS = SelectionPolicy()


@attrs.frozen(kw_only=True)
class Selection:
    """The hits that are given, and the reasons.

    Attributes:
        hits: the given ones, best first.
        reasons: the reason of each hit, by the id of its memory.
    """

    hits: tuple[Hit, ...] = ()
    reasons: Mapping[int, str] = field(factory=dict)

    @property
    def counts(self) -> Counter[str]:
        """How many hits have each reason."""
        return Counter(self.reasons.values())

    def without(self, ids: AbstractSet[int], reason: str) -> "Selection":
        """Return the selection without some of the given hits, and why they are not given."""
        if not ids:
            return self
        hits = tuple(hit for hit in self.hits if hit.memory.id not in ids)
        return Selection(hits=hits, reasons={**self.reasons, **dict.fromkeys(ids, reason)})


def chosen(
    hits: Sequence[Hit],
    policy: SelectionPolicy,
    prompt: str,
    *,
    said: Container[int] = (),
    kind: QuestionKind = ORDINARY,
) -> Selection:
    """Return the hits that a turn with a prompt is given, without those that a newer one of them outdates.

    A question for the past is given those, too.
    """
    selected = select(hits, policy, said=said, kind=kind)
    if kind.past:
        return selected
    return selected.without(outdated(prompt, [hit.memory for hit in selected.hits]), OUTDATED)


def was_true(memory: Memory, now: datetime) -> bool:
    """Return whether a memory holds now or held earlier: one that has expired or does not hold yet is not shown."""
    return (memory.expires_at is None or memory.expires_at > now) and (
        memory.valid_from is None or memory.valid_from <= now
    )


def listed(hits: Sequence[Hit], policy: SelectionPolicy) -> tuple[Hit, ...]:
    """Return the hits that the prompt index may list: those of a related prompt that are not far below the best."""
    if not is_related(hits, policy.floor):
        return ()
    best = max(hit.score for hit in hits)
    return tuple(hit for hit in hits if hit.score >= policy.share * best)


def select(
    hits: Sequence[Hit], policy: SelectionPolicy, *, said: Container[int] = (), kind: QuestionKind = ORDINARY
) -> Selection:
    """Return the hits that a turn is given.

    Args:
        hits: the hits of a search.
        policy: how many are given.
        said: the ids of the memories that the conversation already contains.
        kind: the kind of the question.
    """
    ranked = sorted(hits, key=lambda hit: -hit.score)
    if not ranked or not is_related(ranked, policy.floor):
        return Selection(reasons={hit.memory.id: UNRELATED for hit in ranked})
    reasons: dict[int, str] = {}
    chosen = list(_distinct(list(_strong(ranked, policy, kind, said, reasons)), reasons))
    ordered = _spread(chosen) if kind.many else chosen
    if kind.past:
        ordered = _with_present(ordered, min(SURE, policy.most))
    reasons |= {hit.memory.id: GIVEN for hit in ordered[: policy.most]}
    reasons |= {hit.memory.id: LIMIT for hit in ordered[policy.most :]}
    return Selection(hits=tuple(ordered[: policy.most]), reasons=reasons)


def is_related(hits: Sequence[Hit], floor: float) -> bool:
    """Return whether the best of some hits shows that the prompt is about something that the memory knows."""
    return bool(hits) and max(hit.score for hit in hits) >= floor


def _strong(
    ranked: Sequence[Hit], policy: SelectionPolicy, kind: QuestionKind, said: Container[int], reasons: dict[int, str]
) -> Iterator[Hit]:
    """Yield the hits that score enough and that the conversation does not contain."""
    wanted, place = policy.share * ranked[0].score * (LENIENT if kind.many else 1), 0
    for hit in ranked:
        if hit.memory.id in said:
            reasons[hit.memory.id] = SAID
            continue
        if hit.score < (HALF * policy.floor if place < SURE else wanted):
            reasons[hit.memory.id] = WEAK
            continue
        place += 1
        yield hit


def _distinct(ranked: Sequence[Hit], reasons: dict[int, str]) -> Iterator[Hit]:
    """Yield the hits that no better one repeats."""
    statements: list[Statement] = []
    for hit in ranked:
        statement = Statement.of(hit.memory.text)
        if any(statement.is_in(other) for other in statements):
            reasons[hit.memory.id] = REPEATED
            continue
        statements.append(statement)
        yield hit


def _with_present(ranked: list[Hit], first: int) -> list[Hit]:
    """Return hits with one that holds now among the first ones, if there is any."""
    present = next((place for place, hit in enumerate(ranked) if hit.memory.valid_until is None), 0)
    if present < first:
        return ranked
    return [*ranked[: first - 1], ranked[present], *ranked[first - 1 : present], *ranked[present + 1 :]]


def _spread(ranked: Sequence[Hit]) -> list[Hit]:
    """Return hits with the first ones of each session before the further ones."""
    counts: dict[str, int] = {}
    first: list[Hit] = []
    further: list[Hit] = []
    for hit in ranked:
        session = hit.memory.session
        counts[session] = counts.get(session, 0) + bool(session)
        (first if counts[session] <= OF_A_SESSION else further).append(hit)
    return first + further
