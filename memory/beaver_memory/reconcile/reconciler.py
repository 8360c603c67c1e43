"""Writes memories so that what no longer holds is not recalled beside what holds now."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import attrs

from beaver_hostspecs import Clock, SystemClock
from beaver_memory.engine import MemoryEngine
from beaver_memory.reconcile.candidates import own_filters, same_place, similar
from beaver_memory.reconcile.decision import Decision, Judge, Outcome, Reconciled
from beaver_memory.reconcile.rule_judge import RuleJudge, other_words, with_keywords
from beaver_memory.records import MOST_LABELS, Kept, Memory, NewMemory
from beaver_memory.store.fingerprint import hash_of

MOST_AT_ONCE = 100
"""Memories of one owner that were said in the same moment, among which a replayed one is looked for."""

OF_NUMBERS = frozenset({"other_number", "other_amount"})
"""Reasons for which a memory that its author has titled ends none: "Ticket 12" and "Ticket 13" are two things."""


class Reconciler:
    """Writes memories through an engine. Thread-safe; each method blocks until the write is durable.

    Args:
        engine: the engine.
        judge: decides about each memory that has candidates; rules unless given.
        clock: the source of time.
    """

    def __init__(self, engine: MemoryEngine, *, judge: Judge | None = None, clock: Clock | None = None) -> None:
        self._engine = engine
        self._judge: Judge = RuleJudge() if judge is None else judge
        self._clock = SystemClock() if clock is None else clock

    def remember(self, new: NewMemory, *, may_supersede: bool = True) -> Reconciled:
        """Store a memory, or count it as a mention of one that says the same; end what it supersedes.

        Nothing is erased: a superseded memory keeps its text, with the moment until which it was true and the memory
        that holds since. Both are written in one transaction.

        Args:
            new: the memory.
            may_supersede: whether it may change other memories; a text that does not come from their owner may not.
        """
        now = self._clock.now()
        if (done := self._replayed(new, now)) is not None:
            # A worker ended after it stored the memory, and before it recorded the turn as captured.
            return Reconciled(id=done.id, outcome="duplicate", mentions=done.mention_count, reason="same_origin")
        found = similar(self._engine, new, other_words(new), now)
        if any(_same(new, each) for each in found):
            return self._added(new, "exact")
        decision = self._judge.decide(new, found) if found else Decision(reason="no_candidate")
        return self._carried_out(new, decision, found, now, may_supersede=may_supersede)

    def _replayed(self, new: NewMemory, now: datetime) -> Memory | None:
        """Return the memory that an earlier capture of the same turn has stored, also if it has ended since."""
        if not new.origin or new.created_at is None:
            return None
        then, more = new.created_at, timedelta(microseconds=1)
        filters = attrs.evolve(own_filters(new, now), lapsed=True, after=then, before=then + more)
        stored = self._engine.store.recent(filters, limit=MOST_AT_ONCE)
        # The same statement that waits for approval begins at another time.
        same = (each for each in stored if (each.origin, each.valid_from) == (new.origin, new.valid_from))
        return next((each for each in same if _same(new, each)), None)

    def add(self, new: NewMemory) -> Kept:
        """Store a memory as it is given, or count it as a mention of the same one; end what it supersedes.

        Other than by `remember`, no memory gets its text, and one that says more or less stays beside it: the author
        has chosen its type and its fields. The author waits for it, so no embedder is asked.
        """
        now = self._clock.now()
        found = similar(self._engine, new, other_words(new), now, by_words=True)
        if found and not any(_same(new, each) for each in found):
            decision = self._judge.decide(new, found)
            if decision.event == "DELETE" and decision.reason not in OF_NUMBERS:
                done = self._replaced(new, [found[place] for place in decision.places], now, decision.reason)
                return Kept(id=done.id, outcome="stored", mentions=done.mentions, superseded=done.superseded)
        (kept,) = self._engine.remember(new)
        return kept

    def supersede(self, new: NewMemory, ids: Sequence[int]) -> Reconciled:
        """Store a memory that corrects others: end those that lie at the same place, whatever they say."""
        now = self._clock.now()
        old = [each for each in self._engine.get(ids, own_filters(new, now)) if same_place(new, each)]
        return self._replaced(new, old, now, "corrected")

    def _carried_out(
        self, new: NewMemory, decision: Decision, found: Sequence[Memory], now: datetime, *, may_supersede: bool
    ) -> Reconciled:
        chosen = [found[place] for place in decision.places]
        if decision.event == "NONE" and chosen:
            return self._mentioned(new, chosen[0], now, decision.reason)
        if not may_supersede and chosen:
            return self._added(new, "may_not_supersede")
        if decision.event == "UPDATE" and chosen:
            return self._updated(new, chosen[0], now, decision.reason)
        if decision.event == "DELETE" and chosen:
            return self._replaced(new, chosen, now, decision.reason)
        return self._added(new, decision.reason)

    def _added(self, new: NewMemory, reason: str) -> Reconciled:
        (kept,) = self._engine.remember(with_keywords(new))
        return Reconciled(id=kept.id, outcome=kept.outcome, mentions=kept.mentions, reason=reason)

    def _mentioned(self, new: NewMemory, old: Memory, now: datetime, reason: str) -> Reconciled:
        count = old.mention_count + 1
        changed = self._engine.change(old.id, own_filters(new, now), event="UPDATE", mention_count=count)
        if changed is None:
            return self._added(new, "candidate_gone")
        return Reconciled(id=old.id, outcome="duplicate", mentions=changed.mention_count, reason=reason)

    def _updated(self, new: NewMemory, old: Memory, now: datetime, reason: str) -> Reconciled:
        changed = self._engine.change(
            old.id,
            own_filters(new, now),
            event="UPDATE",
            title=new.title,
            narrative=new.narrative,
            facts=new.facts,
            keywords=with_keywords(new).keywords,
            mention_count=old.mention_count + 1,
        )
        if changed is None:
            return self._added(new, "candidate_gone")
        return Reconciled(id=old.id, outcome="updated", mentions=changed.mention_count, reason=reason)

    def _replaced(self, new: NewMemory, old: Sequence[Memory], now: datetime, reason: str) -> Reconciled:
        at = new.valid_from or new.created_at or now
        later = min((each for each in old if _began(each) > at), key=_began, default=None)
        if later is not None:
            # The new one was said before what holds now, so it was true until then only.
            new, reason = attrs.evolve(new, valid_until=_began(later)), "said_before"
        # Questions about the attribute find the new one too, even if it names only its value.
        words = dict.fromkeys((*new.keywords, *(word for each in old for word in each.keywords)))
        new = with_keywords(attrs.evolve(new, keywords=tuple(words)[:MOST_LABELS]))
        before = [each.id for each in old if _began(each) <= at]
        kept = self._engine.supersede(new, before, own_filters(new, now), at=at)
        if later is not None:
            lapsed = attrs.evolve(own_filters(new, now), lapsed=True)
            self._engine.change(kept.id, lapsed, event="UPDATE", superseded_by=later.id)
        outcome: Outcome = "superseded" if kept.superseded else kept.outcome
        return Reconciled(
            id=kept.id, outcome=outcome, superseded=kept.superseded, mentions=kept.mentions, reason=reason
        )


def _same(new: NewMemory, old: Memory) -> bool:
    return hash_of(new.title, new.facts) == old.hash and new.narrative == old.narrative


def _began(memory: Memory) -> datetime:
    began = memory.valid_from or memory.created_at
    return began or memory.updated_at
