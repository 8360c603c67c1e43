"""Recall before a prompt: asks the gate, searches if it says so, and composes the references of the turn. Blocking."""

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial

import attrs
from attrs import field

from beaver_hooks_local.recall.already_said import Conversation
from beaver_hooks_local.recall.gate import Decision, GatePolicy, Window, decide, served
from beaver_hooks_local.recall.index_contents import SHOWN, Listing, Listings, lasts
from beaver_hooks_local.recall.prompt_features import PromptFeatures, read
from beaver_hooks_local.recall.recall_cache import Answers, RecentItems
from beaver_hooks_local.recall.references import FRAME, Picked, pick
from beaver_hooks_local.recall.selection import (
    ALWAYS,
    LEFT_OUT,
    OUTDATED,
    UNRELATED,
    SelectionPolicy,
    chosen,
    is_related,
    listed,
    was_true,
)
from beaver_hooks_local.settings import LocalSettings, RecallSettings
from beaver_hooks_local.trust import hidden_stores
from beaver_hooks_local.visibility import Visibility
from beaver_hostspecs import Reference, Report, Turn
from beaver_memory.query import Hit
from beaver_memory.records import Owner
from beaver_memory.runtime.operations import Operations
from beaver_memory.runtime.reports import RecallReport
from beaver_memory.runtime.requests import RecallRequest
from beaver_memory.runtime.troubles import EMBEDDING, INDEX

SPARE = 6
"""Extra hits, which replace hits that the conversation already contains."""

LEAST = 0.01
"""The score of a hit that has anything of the prompt."""

_BY_TOOL = frozenset({"tool", "tool_result"})


@attrs.frozen(kw_only=True)
class SearchResult:
    """The result of one search.

    Attributes:
        hits: the best first.
        listing: the rows of the prompt index.
        confident: whether the best hit is good; after another search the next turn searches again.
        policy: how many of the hits are given.
        picked: a cache of picks; the key is the ids already said, the kind of the question and the room in tokens.
    """

    hits: tuple[Hit, ...] = ()
    listing: Listing = field(factory=Listing)
    confident: bool = False
    policy: SelectionPolicy = ALWAYS
    picked: RecentItems[Picked] = field(init=False, factory=partial(RecentItems, SHOWN), repr=False, eq=False)


@attrs.frozen(kw_only=True)
class Recall:
    """The recall of one turn.

    Attributes:
        decision: of the gate.
        references: for the turn.
        hits: all candidates, with each signal's share.
        given: the ids of the hits that the turn was given.
        tenant: the tenant of all of them.
        reasons: why each hit is given or not, by id; see `selection.REASONS`.
        skipped: set if the gate skipped the prompt after this one: its decision.
    """

    decision: Decision
    references: tuple[Reference, ...] = field(default=(), repr=False)
    hits: tuple[Hit, ...] = field(default=(), repr=False)
    given: tuple[int, ...] = ()
    tenant: str = ""
    reasons: Mapping[int, str] = field(factory=dict)
    skipped: Decision | None = None


class Recaller:
    """Recalls for turns. Thread-safe.

    Args:
        operations: of the memory.
        settings: of the plugin.
        most: how many tokens of this plugin's references the host shows in a turn, or `None`.
    """

    def __init__(self, operations: Operations, settings: LocalSettings, *, most: int | None = None) -> None:
        self._operations = operations
        self._settings = settings
        self._clock, self._trace, self._troubles = operations.clock, operations.trace, operations.troubles
        self._most = None if most is None else max(0, most - FRAME)
        self._policy = GatePolicy(topic_turns=settings.recall.topic_turns)
        self._windows: RecentItems[Window] = RecentItems()
        self._answers: Answers[SearchResult] = Answers(settings.recall.cache_seconds)
        self._listings = Listings(operations, settings.prompt_index)
        self._last: RecentItems[Recall] = RecentItems()

    def recall(self, turn: Turn, report: Report) -> Recall:
        """Return the recall of a turn.

        Raises:
            StoreError: the store cannot be read.
        """
        sight = Visibility.of_turn(turn, self._operations.location)
        for left_out in hidden_stores(sight.trust):
            report.decision("trust", "left_out", left_out)
        said = self._read(turn)
        decision, found = self._decided(turn, said, sight, report)
        if found is None:
            self._listings.skipped("gate" if sight.stores else "trust", report)
            recall = Recall(decision=decision)
            last = self.last(sight)
            self._last.put(_place(sight), recall if last is None else attrs.evolve(last, skipped=decision))
            return recall
        recall = self._given(turn, said, decision, found, report, tenant=sight.owner.tenant)
        self._last.put(_place(sight), recall)
        return recall

    def last(self, sight: Visibility) -> Recall | None:
        """Return the last recall of a session; it may hold memories that this caller may not see."""
        return self._last.get(_place(sight))

    # --- The gate -----------------------------------------------------------------------------------------------

    def _decided(
        self, turn: Turn, said: PromptFeatures, sight: Visibility, report: Report
    ) -> tuple[Decision, SearchResult | None]:
        """Return the decision of the gate, and the result of the search unless the gate skips the turn."""
        if reason := self._why_never(sight):
            return self._said(Decision(verdict="skip", reason=reason), report), None
        version, window = self._version(sight), self._windows.get(sight)
        fresh = self._fresh(sight, {said.fingerprint, *([window.fingerprint] if window else ())}, version)
        decision = self._said(decide(said, window, version=version, fresh=fresh, policy=self._policy), report)
        if decision.verdict == "skip":
            return decision, None
        if decision.verdict == "recall" or window is None:
            return decision, self._look(turn, said, sight, version, report)
        same = said.fingerprint if decision.reason == "same_query" else window.fingerprint
        again = Window(fingerprint=same, terms=said.terms, version=version, past=said.kind.past)
        self._windows.put(sight, served(window) if same == window.fingerprint else again)
        return decision, fresh[same]

    def _why_never(self, sight: Visibility) -> str:
        if not self._settings.recall.enabled:
            return "off"
        return "" if sight.stores else "trust"

    def _said(self, decision: Decision, report: Report) -> Decision:
        report.decision("recall", decision.verdict, decision.reason)
        self._trace("recall_gate", verdict=decision.verdict, reason=decision.reason)
        return decision

    def _fresh(self, sight: Visibility, asked: Iterable[str], version: tuple[int, ...]) -> dict[str, SearchResult]:
        now = self._clock.monotonic()
        kept = {each: self._answers.get((sight, each), version=version, now=now) for each in asked}
        return {each: found for each, found in kept.items() if found is not None}

    def _read(self, turn: Turn) -> PromptFeatures:
        by_tool = {turn.actors.speaker_kind, turn.actors.trigger} & _BY_TOOL
        return read(turn.prompt, self._operations.terms(turn.prompt), by_tool=bool(by_tool))

    def _version(self, sight: Visibility) -> tuple[int, ...]:
        return self._operations.versions(sight.owners)

    # --- The search ---------------------------------------------------------------------------------------------

    def _look(
        self, turn: Turn, said: PromptFeatures, sight: Visibility, version: tuple[int, ...], report: Report
    ) -> SearchResult:
        """Search, and cache the result."""
        now, moment = self._clock.monotonic(), self._clock.now()
        recent = self._listings.recent(sight, version, report)
        lacking = self._listings.lacking(recent)
        answer = self._search(turn.prompt, sight, moment, report, lacking=lacking, past=said.kind.past)
        policy = policy_of(self._settings.recall, answer)
        hits = tuple(hit for hit in answer.hits if was_true(hit.memory, moment)) if said.kind.past else answer.hits
        trouble = answer.without_index or answer.keyword_only
        confident = trouble is None and is_related(hits, policy.floor)
        listing = self._listings.filled(recent, listed(hits, policy))
        top = hits[: self._settings.recall.top_k + SPARE]
        found = SearchResult(hits=top, listing=listing, confident=confident, policy=policy)
        if confident:
            ends = lasts([*(hit.memory for hit in found.hits), *(row.memory for row in listing.rows)], moment)
            self._answers.put((sight, said.fingerprint), found, version=version, now=now, lasts=ends)
        self._windows.put(
            sight,
            Window(
                fingerprint=said.fingerprint,
                terms=said.terms,
                version=version,
                confident=confident,
                past=said.kind.past,
            ),
        )
        return found

    def _search(
        self, text: str, sight: Visibility, moment: datetime, report: Report, *, lacking: int, past: bool
    ) -> RecallReport:
        """Return the answer; `lacking` rows of the list need hits, too, and the `past` needs what has ended."""
        recall = self._settings.recall
        limit = max(recall.top_k + SPARE, lacking)
        found = self._operations.recall(
            RecallRequest(
                query=text,
                visible=sight.filters(moment, lapsed=past),
                limit=limit,
                minimum_score=min(LEAST, LEAST if recall.minimum_score is None else recall.minimum_score),
                explain=True,
                seconds=_seconds(report),
            )
        )
        self._trace("recall_searched", hits=len(found.hits), total=found.candidates, keyword_only=found.keyword_only)
        if found.keyword_only is None:
            self._troubles.ended(EMBEDDING, report)
        else:
            report.event("memory_recall_keyword_only", category=found.keyword_only)
            self._troubles.began(EMBEDDING, found.keyword_only, report)
        if found.without_index is None:
            self._troubles.ended(INDEX, report)
        else:
            report.event("memory_recall_without_index", category=found.without_index)
            self._troubles.began(INDEX, found.without_index, report)
        if found.not_reranked is not None:
            report.event("memory_recall_not_reranked", category=found.not_reranked)
        return found

    # --- The references of the turn -----------------------------------------------------------------------------

    def _given(
        self,
        turn: Turn,
        prompt: PromptFeatures,
        decision: Decision,
        found: SearchResult,
        report: Report,
        *,
        tenant: str,
    ) -> Recall:
        conversation = Conversation.of(turn)
        said = frozenset(hit.memory.id for hit in found.hits if conversation.holds(hit.memory))
        settings = self._settings.recall
        bounds = [bound for bound in (turn.budget, self._most) if bound is not None]
        room = min([settings.max_tokens, *bounds])

        def made() -> Picked:
            return pick(
                chosen(found.hits, found.policy, turn.prompt, said=said, kind=prompt.kind), turn.prompt, max_tokens=room
            )

        picked = found.picked.once((said, prompt.kind, room), made)
        selected = picked.selection
        report.candidates((str(hit.memory.id), round(hit.score, 4)) for hit in found.hits)
        if picked.left_out:
            report.clipped("memories", len(selected.hits), len(selected.hits) + picked.left_out)
        counts = selected.counts
        if not selected.hits and UNRELATED in counts:
            report.decision("relevance", "none_given", UNRELATED)
        facts = {"found": len(found.hits), "said_already": len(said), "given": len(selected.hits)}
        self._trace("recalled", **{**facts, **{name: counts[name] for name in LEFT_OUT}}, tokens=picked.tokens)
        given = tuple(hit.memory.id for hit in selected.hits)
        left = min(bounds) - picked.tokens if bounds else None
        outdated = {id_ for id_, reason in selected.reasons.items() if reason == OUTDATED}
        index = self._listings.references(found.listing, {*given} | outdated, conversation, left, report)
        references = (*picked.references, *index)
        return Recall(
            decision=decision,
            references=references,
            hits=found.hits,
            given=given,
            tenant=tenant,
            reasons=selected.reasons,
        )


def policy_of(settings: RecallSettings, answer: RecallReport) -> SelectionPolicy:
    """Return how many hits of an answer are given: by the settings, or else as the search says."""
    return SelectionPolicy(
        most=settings.top_k,
        share=answer.share if settings.share_of_best is None else settings.share_of_best,
        floor=answer.floor if settings.minimum_score is None else settings.minimum_score,
    )


def _seconds(report: Report) -> float | None:
    """Return the seconds until the deadline of the hook; `None` without one."""
    left = report.remaining()
    return None if math.isinf(left) else left


def _place(sight: Visibility) -> tuple[Owner, str]:
    """Return the key of a session: its owner and its name."""
    return sight.owner, sight.session
