"""A judge that decides by rules, without a model. Pure."""

from collections.abc import Sequence
from datetime import datetime

import attrs

from beaver_memory.reconcile.claim import Claim
from beaver_memory.reconcile.claims import claims_of, keywords_of, search_words
from beaver_memory.reconcile.decision import Decision, Finding, Verdict
from beaver_memory.reconcile.rules import finding
from beaver_memory.records import MOST_LABELS, Memory, NewMemory

MOST_STATEMENTS = 3
"""Statements of a memory that one later statement can supersede; a longer one holds more than what has changed."""


class RuleJudge:
    """Decides by rules, without a model."""

    def decide(self, new: NewMemory, candidates: Sequence[Memory]) -> Decision:
        """Return the decision about a memory."""
        said = claims_of(new.text)
        found = [_between(new, said, each) for each in candidates]
        ended = tuple(place for place, each in enumerate(found) if each is not None and each.verdict == "DELETE")
        if ended:
            return _decision("DELETE", ended, found)
        for verdict in ("NONE", "UPDATE"):
            places = tuple(place for place, each in enumerate(found) if each is not None and each.verdict == verdict)
            if places:
                return _decision(verdict, places[:1], found)
        return Decision(reason="no_conflict")


def other_words(new: NewMemory) -> tuple[str, ...]:
    """Return texts to search for beside that of a memory: other ways to say what it is about."""
    return tuple(dict.fromkeys(filter(None, map(search_words, claims_of(new.text)[:MOST_STATEMENTS]))))


def with_keywords(new: NewMemory) -> NewMemory:
    """Return a memory with other words for its attributes, so that a question in those words finds it."""
    said = claims_of(new.text)
    if len(said) > MOST_STATEMENTS:
        return new
    words = [word for each in said for word in keywords_of(each)]
    return attrs.evolve(new, keywords=tuple(dict.fromkeys([*new.keywords, *words]))[:MOST_LABELS])


def _between(new: NewMemory, said: Sequence[Claim], old: Memory) -> Finding | None:
    known = claims_of(old.text)
    if not known or not said or (new.speaker and old.speaker and new.speaker != old.speaker):
        return None
    new_at, old_at = _said_at(new), _said_at(old)
    is_later = new_at is None or old_at is None or new_at >= old_at
    earlier, later = (known, said) if is_later else (said, known)
    if len(known) == len(said) == 1:
        found = finding(earlier[0], later[0])
        return (
            Finding(verdict="NONE", reason=found.reason)
            if found and found.verdict == "UPDATE" and not is_later
            else found
        )
    if len(earlier) > MOST_STATEMENTS:
        return None
    # "I changed banks, I am with Monzo now" names the attribute in one clause and the value in the other.
    later = (*later, *claims_of((new if is_later else old).text, whole=True))
    found_each = [_ended(each, later) for each in earlier]
    ends = [each for each in found_each if each is not None]
    return ends[0] if 2 * len(ends) > len(earlier) or (ends and len(earlier) == 1) else None


def _ended(earlier: Claim, later: Sequence[Claim]) -> Finding | None:
    found = (finding(earlier, each) for each in later)
    return next((each for each in found if each is not None and each.verdict == "DELETE"), None)


def _said_at(memory: NewMemory) -> datetime | None:
    return memory.valid_from or memory.created_at


def _decision(event: Verdict, places: tuple[int, ...], found: Sequence[Finding | None]) -> Decision:
    first = found[places[0]]
    return Decision(event=event, places=places, reason="" if first is None else first.reason)
