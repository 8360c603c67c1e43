"""Decides whether a statement that marks a change is about the same thing as an earlier one. Pure.

No vocabulary has all attributes. So a marked change ends an earlier statement too if both have the same topic and most
of their other words in common, and each of them gives another value.
"""

from beaver_memory.reconcile.claims import Claim
from beaver_memory.reconcile.findings import Finding

MOST_WORDS = 10
"""Words of a statement; a longer one is about more than one thing."""

SHARE, SHARE_OF_KIND = 0.5, 0.3
"""The least share of the words of the shorter statement that both have in common; less if their values are of a kind."""

NUMBER = "number"
"""The kind of numbers."""


def by_topic(earlier: Claim, later: Claim) -> Finding | None:
    """Return that a later statement ends an earlier one, if it marks a change of its topic; else `None`."""
    if not later.changes or later.ends or earlier.ends or apart(earlier, later):
        return None
    one, other = earlier.content, later.content
    if max(len(one), len(other)) > MOST_WORDS or not one - other or not other - one:
        return None
    before, after = _kinds(earlier, one - other), _kinds(later, other - one)
    if (before or after) and not before & after:
        return None
    share = SHARE_OF_KIND if before - {NUMBER} else SHARE
    topics = earlier.topics & later.topics - (earlier.several | later.several)
    if topics and len(one & other) >= share * min(len(one), len(other)):
        return Finding(verdict="DELETE", reason="same_topic")
    if before and one - other <= earlier.kinds.keys() and other - one <= later.kinds.keys() and one & other:
        return Finding(verdict="DELETE", reason="other_value") if earlier.own == later.own else None
    return None


def _kinds(claim: Claim, words: frozenset[str]) -> frozenset[str]:
    """Return the kinds of some words of a statement."""
    found = {claim.kinds[word] for word in words if word in claim.kinds}
    return frozenset(found | ({NUMBER} if words & claim.numbers else set()))


def apart(earlier: Claim, later: Claim) -> bool:
    """Return whether both are about different people or things of a kind."""
    if (earlier.contrasts ^ later.contrasts) & (earlier.content | later.content):
        return True
    if earlier.subject and later.subject and earlier.subject != later.subject:
        return earlier.subject not in later.content and not (earlier.role and later.role)
    if later.subject and later.subject not in earlier.content:
        return not later.role
    return bool(earlier.subject) and earlier.subject not in later.content and not earlier.role
