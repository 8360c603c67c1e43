"""Which memories beside each other in one turn a newer one outdates, although none has ended. Pure.

The rules end a memory only where they are certain. A turn that is given two memories needs less: if the newer one marks
a change, both are about one topic, and the question tells no difference, the older one is left out of this turn. It
stays in the store, in searches and in turns with other questions.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from beaver_memory.reconcile.claim import NO_CLAIM, Claim
from beaver_memory.reconcile.claims import claims_of, strong_words
from beaver_memory.reconcile.rule_judge import MOST_STATEMENTS, text_of
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
    asked = strong_words(question)
    said = [(memory, claims_of(text_of(memory))) for memory in memories]
    return frozenset(
        old.id
        for old, before in said
        if 0 < len(before) <= MOST_STATEMENTS
        and any(_outdates(before, after, asked) for new, after in said if _is_later(old, new))
    )


def _is_later(old: Memory, new: Memory) -> bool:
    if old.owner != new.owner or (old.project != new.project and {old.scope, new.scope} != {"global"}):
        return False
    if old.speaker and new.speaker and old.speaker != new.speaker:
        return False
    return _said_at(new) - _said_at(old) >= CLEARLY


def _outdates(before: Sequence[Claim], after: Sequence[Claim], asked: frozenset[str]) -> bool:
    return all(
        any(_has_common(earlier, later) and _succeeds(earlier, later, asked) for later in after) for earlier in before
    )


def _has_common(earlier: Claim, later: Claim) -> bool:
    """Return whether two statements can be about one thing: the cheap test of most pairs."""
    return not earlier.content.isdisjoint(later.words) or not earlier.attributes.keys().isdisjoint(later.attributes)


def _succeeds(earlier: Claim, later: Claim, asked: frozenset[str]) -> bool:
    if NO_CLAIM in (earlier, later) or earlier.language != later.language:
        return False
    if (certain := finding(earlier, later)) is not None:
        return certain.verdict == "DELETE"
    later = named(earlier, later)
    if any((each.planned or each.past) for each in (earlier, later)) or later.additive or earlier.ends:
        return False
    if earlier.kin != later.kin or apart(earlier, later) or limits_itself(earlier, later):
        return False
    return _marks_change(earlier, later) and _is_about_same(earlier, later, asked)


def _marks_change(earlier: Claim, later: Claim) -> bool:
    # "I play chess", and "I started to play go".
    is_one_more = bool(earlier.several & later.several) and not later.switches
    return (later.changes or later.perfect or later.ends) and not is_one_more


def _is_about_same(earlier: Claim, later: Claim, asked: frozenset[str]) -> bool:
    """Return whether both have a topic and enough words in common, and the question none that tells them apart."""
    common = earlier.strong & later.strong
    if not earlier.topics & later.topics or asked & earlier.strong - later.strong:
        return False
    if of_different_things(earlier, later) or differ_in_relation(earlier, later):
        return False
    return len(common) >= SHARE * min(len(earlier.strong), len(later.strong))


def _said_at(memory: Memory) -> datetime:
    return memory.valid_from or memory.created_at or memory.updated_at
