"""Which memories beside each other in one turn a newer one outdates, although none has ended. Pure.

The rules end a memory only where they are certain. A turn that is given two memories needs less: if the newer one marks
a change, both are about one topic, and the question tells no difference, the older one is left out of this turn. It
stays in the store, in searches and in turns with other questions.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache

from beaver_memory.reconcile.claim import NO_CLAIM, Claim
from beaver_memory.reconcile.claims import claims_of, strong_words
from beaver_memory.reconcile.rule_judge import MOST_STATEMENTS
from beaver_memory.reconcile.rules import finding, limits_itself, named
from beaver_memory.reconcile.topics import apart, differ_in_relation, of_different_things
from beaver_memory.records import Memory

CLEARLY = timedelta(minutes=1)
"""How much later a memory was said than one that it outdates."""

SHARE = 0.3
"""The least share of the words of the shorter statement that both have in common."""


def outdated(question: str, memories: Sequence[Memory]) -> frozenset[int]:
    """Return the ids of memories that newer ones among them outdate.

    Args:
        question: the words that the memories were found by.
        memories: those that a turn would be given; at most some dozens. Only memories of one owner, and of one project
            or of all projects, are compared.
    """
    said_at = [(memory, _said_at(memory)) for memory in memories]
    holding = cache(_holding)
    found = set()
    for old, at in said_at:
        newer = [new for new, later in said_at if later - at >= CLEARLY and _are_of_one_place(old, new)]
        before = _ending(old.text) if newer else ()
        if before and any(_outdates(before, holding(new.text), question) for new in newer):
            found.add(old.id)
    return frozenset(found)


def _are_of_one_place(old: Memory, new: Memory) -> bool:
    """Return whether both have the same owner and speaker, and hold in one project or in all."""
    if old.owner != new.owner or (old.project != new.project and {old.scope, new.scope} != {"global"}):
        return False
    return not (old.speaker and new.speaker and old.speaker != new.speaker)


def _ending(text: str) -> Sequence[Claim]:
    """Return the statements of a memory that later ones must all end; none if one of them cannot end."""
    claims = claims_of(text)
    return claims if len(claims) <= MOST_STATEMENTS and all(map(_holds, claims)) else ()


def _holding(text: str) -> Sequence[Claim]:
    """Return the statements of a memory that can end an earlier one."""
    return [claim for claim in claims_of(text) if _holds(claim)]


def _holds(claim: Claim) -> bool:
    """Return whether a statement says what holds now."""
    return not (claim is NO_CLAIM or claim.planned or claim.past)


def _outdates(before: Sequence[Claim], after: Sequence[Claim], question: str) -> bool:
    return all(
        any(_may_succeed(earlier, later) and _succeeds(earlier, later, question) for later in after)
        for earlier in before
    )


def _may_succeed(earlier: Claim, later: Claim) -> bool:
    """Return whether the later statement can end the earlier one: the cheap test of most pairs."""
    if not earlier.attributes.keys().isdisjoint(later.attributes):
        return True
    if earlier.content.isdisjoint(later.words):
        return False
    is_marked = later.changes or later.perfect or later.ends or earlier.ends or bool(later.replaced)
    return is_marked or bool(earlier.numbers and later.numbers)


def _succeeds(earlier: Claim, later: Claim, question: str) -> bool:
    if earlier.language != later.language:
        return False
    if (certain := finding(earlier, later)) is not None:
        return certain.verdict == "DELETE"
    later = named(earlier, later)
    if later.additive or earlier.ends:
        return False
    if earlier.kin != later.kin or apart(earlier, later) or limits_itself(earlier, later):
        return False
    return _marks_change(earlier, later) and _is_about_same(earlier, later, question)


def _marks_change(earlier: Claim, later: Claim) -> bool:
    # "I play chess", and "I started to play go".
    is_one_more = bool(earlier.several & later.several) and not later.switches
    return (later.changes or later.perfect or later.ends) and not is_one_more


def _is_about_same(earlier: Claim, later: Claim, question: str) -> bool:
    """Return whether both have a topic and enough words in common, and the question none that tells them apart."""
    common = earlier.strong & later.strong
    if not earlier.topics & later.topics or strong_words(question) & earlier.strong - later.strong:
        return False
    if of_different_things(earlier, later) or differ_in_relation(earlier, later):
        return False
    return len(common) >= SHARE * min(len(earlier.strong), len(later.strong))


def _said_at(memory: Memory) -> datetime:
    return memory.valid_from or memory.created_at or memory.updated_at
