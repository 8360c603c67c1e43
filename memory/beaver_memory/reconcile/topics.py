"""Decides whether a statement that marks a change is about the same thing as an earlier one. Pure.

No vocabulary has all attributes. So a marked change ends an earlier statement too if both have the same topic and
enough of their other words in common, and each of them gives another value of the same kind.
"""

from beaver_memory.reconcile.claim import Attribute, Claim
from beaver_memory.reconcile.decision import Finding

MOST_WORDS = 10
"""Words of a statement; a longer one is about more than one thing."""

SHARE, SHARE_OF_PERFECT, SHARE_OF_KIND = 0.34, 0.5, 0.3
"""The least share of the words of the shorter statement that both have in common: if a change is marked, if something
has happened, and if the values are of a kind."""

ALIKE = 2
"""The fewest words that are the same in two statements of one form."""

NUMBER = "number"
"""The kind of numbers."""

HAS_AND_IS = frozenset({0, 1})
"""The relations of which one says what a thing has, and the other one what it is."""


def by_topic(earlier: Claim, later: Claim) -> Finding | None:
    """Return that a later statement ends an earlier one, if it changes its topic; else `None`."""
    if later.ends or earlier.ends or apart(earlier, later):
        return None
    if max(len(earlier.content), len(later.content)) > MOST_WORDS:
        return None
    changed = _by_mark if later.changes or later.perfect else _by_amount
    reason = changed(earlier, later)
    return Finding(verdict="DELETE", reason=reason) if reason else None


def apart(earlier: Claim, later: Claim) -> bool:
    """Return whether both are about different people or things of a kind, or the later one about a value."""
    common = earlier.attributes.keys() & later.attributes.keys()
    if any(of_other_kinds(earlier.attributes[name], later.attributes[name]) for name in common):
        return True
    return _contrasted(earlier, later) or _of_other_people(earlier, later) or _about_value(earlier, later)


def of_other_kinds(before: Attribute, after: Attribute) -> bool:
    """Return whether one value is a description or an end, and the other one is not: a city, and "a small flat"."""
    return (before.described, before.ending) != (after.described, after.ending)


def _contrasted(earlier: Claim, later: Claim) -> bool:
    before = earlier.contrasts - later.contrasts - earlier.kinds.keys()
    after = later.contrasts - earlier.contrasts - later.kinds.keys()
    words = {each.modifiers.get(topic) for each in (earlier, later) for topic in _common(earlier, later)}
    return bool((before and after) or words & (before | after))


def _of_other_people(earlier: Claim, later: Claim) -> bool:
    if earlier.subject and later.subject and earlier.subject != later.subject:
        return earlier.subject not in later.content and not (earlier.role and later.role)
    if later.subject and later.subject not in earlier.content:
        return not later.role
    return bool(earlier.subject) and earlier.subject not in later.content and not earlier.role


def _about_value(earlier: Claim, later: Claim) -> bool:
    """Return whether the value of the earlier one is the subject of the later one, and all that both share."""
    # "Our dog is called Rex", and "Rex is five now".
    if later.changes and bool(earlier.numbers) == bool(later.numbers):
        return False
    common = earlier.strong & later.strong
    before, after = ([word for word in each.sequence or each.words if word in each.strong] for each in (earlier, later))
    many = len(common)
    return bool(common) and many < len(before) and common == {*before[-many:]} == {*after[:many]}


def _by_mark(earlier: Claim, later: Claim) -> str:
    """Return the reason why a marked change ends an earlier statement; an empty text if it does not."""
    before, after = _kinds(earlier, later), _kinds(later, earlier)
    if not (earlier.strong - later.strong or earlier.role) or not later.strong - earlier.strong:
        return ""
    if (before or after) and not before & after:
        return ""
    if differ_in_relation(earlier, later) and not before:
        return ""
    topics = _common(earlier, later)
    if of_different_things(earlier, later):
        return ""
    share = SHARE_OF_KIND if before - {NUMBER} else SHARE if later.changes else SHARE_OF_PERFECT
    common, fewest = len(earlier.strong & later.strong), min(len(earlier.strong), len(later.strong))
    return "same_topic" if topics and common >= share * fewest else _by_form(earlier, later)


def differ_in_relation(earlier: Claim, later: Claim) -> bool:
    """Return whether one says what a thing has, and the other one what it is."""
    return {earlier.relation, later.relation} == HAS_AND_IS


def _by_form(earlier: Claim, later: Claim) -> str:
    """Return the reason why a change of one part of a statement ends it: its form is the same, or its values are."""
    rests = earlier.content - later.content, later.content - earlier.content
    common = earlier.content & later.content
    if not later.changes or not common:
        return ""
    if later.language != "zh" and [*map(len, rests)] == [1, 1] and len(common) >= ALIKE:
        return "same_form" if earlier.own == later.own or earlier.kin else ""
    are_of_kind = all(rest and rest <= each.kinds.keys() for rest, each in zip(rests, (earlier, later), strict=True))
    return "other_value" if are_of_kind and earlier.own == later.own else ""


def _by_amount(earlier: Claim, later: Claim) -> str:
    """Return a reason if both say the same but for a number, and for words that are in statements about anything."""
    if later.happened or earlier.happened or not earlier.numbers or not later.numbers:
        return ""
    rests = earlier.strong - earlier.numbers, later.strong - later.numbers
    is_same = rests[0] == rests[1] and earlier.kinds == later.kinds and bool(_common(earlier, later))
    return "other_amount" if is_same and earlier.numbers != later.numbers else ""


def _common(earlier: Claim, later: Claim) -> frozenset[str]:
    """Return the topics that both have."""
    return earlier.topics & later.topics - (earlier.several | later.several)


def of_different_things(earlier: Claim, later: Claim) -> bool:
    """Return whether the topics of both have different words before them, which are not their values."""
    topics = _common(earlier, later)
    named = [topic for topic in topics if topic in earlier.modifiers and topic in later.modifiers]
    if earlier.language == "zh":
        # The end of a value is not what both are about: that comes first.
        named = [topic for topic in named if topic == next(each for each in earlier.sequence if each in topics)]
    return any(_differ(earlier, later, topic) for topic in named)


def _differ(earlier: Claim, later: Claim, topic: str) -> bool:
    one, other = earlier.modifiers[topic], later.modifiers[topic]
    if one in later.strong or other in earlier.strong:
        return False
    return bool(earlier.strong - later.strong - {one} or later.strong - earlier.strong - {other})


def _kinds(claim: Claim, other: Claim) -> frozenset[str]:
    """Return the kinds of the words of a statement that the other one has not."""
    words = claim.content - other.content
    found = {claim.kinds[word] for word in words if word in claim.kinds}
    is_number = bool(words & claim.numbers) and claim.language != "zh"
    return frozenset(found | ({NUMBER} if is_number else set()))
