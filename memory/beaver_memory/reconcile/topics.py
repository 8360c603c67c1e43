"""Decides whether a statement that marks a change is about the same thing as an earlier one. Pure.

No vocabulary has all attributes. So a marked change ends an earlier statement too if both have the same topic and enough
of their other words in common, and each of them gives another value of the same kind.
"""

from beaver_memory.reconcile.claims import Claim
from beaver_memory.reconcile.findings import Finding

MOST_WORDS = 10
"""Words of a statement; a longer one is about more than one thing."""

SHARE, SHARE_OF_PERFECT, SHARE_OF_KIND = 0.34, 0.5, 0.3
"""The least share of the words of the shorter statement that both have in common: if a change is marked, if something
has happened, and if the values are of a kind."""

ALIKE = 2
"""The fewest words that are the same in two statements of one form."""

NUMBER = "number"
"""The kind of numbers."""


def by_topic(earlier: Claim, later: Claim) -> Finding | None:
    """Return that a later statement ends an earlier one, if it changes its topic; else `None`."""
    if later.ends or earlier.ends or apart(earlier, later):
        return None
    if max(len(earlier.content), len(later.content)) > MOST_WORDS:
        return None
    return _marked(earlier, later) if later.changes or later.perfect else _other_amount(earlier, later)


def apart(earlier: Claim, later: Claim) -> bool:
    """Return whether both are about different people or things of a kind."""
    before, after = earlier.contrasts - later.contrasts, later.contrasts - earlier.contrasts
    if before and after:
        return True
    if any(
        each.modifiers.get(topic) in before | after for each in (earlier, later) for topic in _common(earlier, later)
    ):
        return True
    if earlier.subject and later.subject and earlier.subject != later.subject:
        return earlier.subject not in later.content and not (earlier.role and later.role)
    if later.subject and later.subject not in earlier.content:
        return not later.role
    return bool(earlier.subject) and earlier.subject not in later.content and not earlier.role


def _marked(earlier: Claim, later: Claim) -> Finding | None:
    one, other = earlier.strong, later.strong
    common = one & other
    if not (one - other or earlier.role) or not other - one:
        return None
    before, after = _kinds(earlier, later), _kinds(later, earlier)
    if (before or after) and not before & after:
        return None
    share = SHARE if later.changes else SHARE_OF_PERFECT
    if before - {NUMBER}:
        share = SHARE_OF_KIND
    if {earlier.relation, later.relation} == {0, 1} and not before:
        return None
    topics = _common(earlier, later)
    if _of_different_things(earlier, later, topics):
        return None
    if topics and len(common) >= share * min(len(one), len(other)):
        return Finding(verdict="DELETE", reason="same_topic")
    rests = earlier.content - later.content, later.content - earlier.content
    alike = earlier.content & later.content
    if (
        later.changes
        and later.language != "zh"
        and [*map(len, rests)] == [1, 1]
        and len(alike) >= ALIKE <= len(alike | rests[0]) - 1
    ):
        return Finding(verdict="DELETE", reason="same_frame") if earlier.own == later.own or earlier.kin else None
    is_of_kind = all(rest and rest <= each.kinds.keys() for rest, each in zip(rests, (earlier, later), strict=True))
    if later.changes and is_of_kind and before and earlier.content & later.content and earlier.own == later.own:
        return Finding(verdict="DELETE", reason="other_value")
    return None


def _common(earlier: Claim, later: Claim) -> frozenset[str]:
    """Return the topics that both have."""
    return earlier.topics & later.topics - (earlier.several | later.several)


def _of_different_things(earlier: Claim, later: Claim, topics: frozenset[str]) -> bool:
    """Return whether the topics of both have different words before them, which are not their values."""
    named = [topic for topic in topics if topic in earlier.modifiers and topic in later.modifiers]
    if earlier.language == "zh":
        # The end of a value is not what both are about: that comes first.
        first = next((each for each in earlier.sequence if each in topics), "")
        named = [topic for topic in named if topic == first]
    for topic in named:
        one, other = earlier.modifiers[topic], later.modifiers[topic]
        if one in later.strong or other in earlier.strong:
            continue
        if earlier.strong - later.strong - {one} or later.strong - earlier.strong - {other}:
            return True
    return False


def _other_amount(earlier: Claim, later: Claim) -> Finding | None:
    """Both say the same but for a number and for words that are in statements about anything."""
    if later.happened or earlier.happened or not earlier.numbers or not later.numbers or earlier.kinds != later.kinds:
        return None
    rests = earlier.strong - earlier.numbers, later.strong - later.numbers
    if rests[0] != rests[1] or not _common(earlier, later):
        return None
    return Finding(verdict="DELETE", reason="other_amount") if earlier.numbers != later.numbers else None


def _kinds(claim: Claim, other: Claim) -> frozenset[str]:
    """Return the kinds of the words of a statement that the other one has not."""
    words = claim.content - other.content
    found = {claim.kinds[word] for word in words if word in claim.kinds}
    is_number = bool(words & claim.numbers) and claim.language != "zh"
    return frozenset(found | ({NUMBER} if is_number else set()))
