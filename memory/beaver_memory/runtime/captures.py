"""Finds the statements of a conversation that are worth remembering, and stores what the gates admit. Blocking."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import attrs

from beaver_memory.capture.evidence import Evidence, evidence_of
from beaver_memory.capture.features import content_words, kind_of
from beaver_memory.capture.gates.budget import DAY_FULL, Ask
from beaver_memory.capture.gates.chain import Gates, Judged, PrivacyGate
from beaver_memory.capture.gates.verdict import Occasion
from beaver_memory.capture.model import Extractor, HybridExtractor, ModelExtractor, WithoutModel
from beaver_memory.capture.outcomes import ToolOutcome, fixes_of
from beaver_memory.capture.records import Candidate, Extraction, Utterance
from beaver_memory.capture.rules import RuleExtractor
from beaver_memory.capture.sentences import sentences
from beaver_memory.capture.vocabulary import vocabulary_of
from beaver_memory.errors import InvalidRequest, StoreError
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.reconcile.candidates import similar
from beaver_memory.reconcile.decision import Reconciled
from beaver_memory.reconcile.rule_judge import RuleJudge, other_words
from beaver_memory.records import CAPTURE, Memory, NewMemory, Owner, Scope
from beaver_memory.runtime.capture_records import CapturedItem, CaptureReport, CaptureRequest
from beaver_memory.runtime.corrections import PENDING, PENDING_FROM
from beaver_memory.runtime.memory_writes import MemoryWrites
from beaver_memory.runtime.profile import CaptureProfile
from beaver_memory.runtime.reports import CaptureDay
from beaver_memory.views import ALL_PROJECTS
from beaver_toolkit.redaction.redactor import Finding, Redactor

EXTERNAL = "external"
"""The tag of a captured memory whose words an external text holds; it stays when a person accepts the memory."""

CHANGING = ("changes_memory",)
"""The cues of a statement that is kept because it changes a memory."""

GLOBAL_KINDS = frozenset({"preference"})
"""Kinds that hold in all projects."""

NEAR = 3
"""Memories that are near to a candidate."""

_FROM_OUTSIDE = 0.8
"""The share of words in common with an external text from which a statement counts as taken from it."""


def never(_: str) -> bool:
    """Return that no text was injected."""
    return False


class Captures:
    """Captures memories of one engine. Thread-safe.

    Args:
        writes: writes the memories.
        profile: how capture works.
    """

    def __init__(self, writes: MemoryWrites, profile: CaptureProfile) -> None:
        self._writes, self._profile = writes, profile
        self._engine, self._clock, self._budget = writes.engine, writes.clock, writes.budget
        privacy = PrivacyGate(paths=profile.paths, tags=profile.tags, projects=profile.projects)
        self._gates = Gates(self._budget, privacy=privacy, enabled=profile.enabled)

    def capture(self, request: CaptureRequest, was_injected: Callable[[str], bool] = never) -> CaptureReport:
        """Store the statements of a conversation that are worth it; see `CaptureRequest`."""
        owner = _owner(request.own)
        request = self._without_captured(request, owner) if request.once else request
        report = self.found(request, was_injected)
        failed = any(each.outcome == "failed" for each in report.items)
        if self._profile.enabled and not (request.dry_run or failed):
            self._engine.store.mark_captured(owner, _turns(request))
        return report

    def found(self, request: CaptureRequest, was_injected: Callable[[str], bool] = never) -> CaptureReport:
        """Store the statements of a conversation that are worth it; the caller records its turns as captured."""
        owner = _owner(request.own)
        if request.store not in request.own.view.stores:
            raise InvalidRequest("store", "is one that this caller may not change")
        request, findings = redacted_request(request, self._writes.redactor)
        extraction = self._extraction(request, owner) if self._profile.enabled else Extraction()
        occasion = self._occasion(request, owner, extraction.candidates, was_injected)
        judged = self._gates.judged((*fixes_of(request.outcomes), *extraction.candidates), occasion)
        items = [self._item(each, request, occasion) for each in judged]
        spent = self._budget.spent(owner, occasion.when)
        return CaptureReport(
            items=tuple(items),
            extractor=extraction.extractor,
            fallback=extraction.fallback,
            model_calls=spent.calls,
            model_tokens=spent.tokens,
            dry_run=request.dry_run,
            redacted=findings,
            turns=tuple(_turns(request)),
        )

    def day(self, owner: Owner) -> CaptureDay:
        """Return what capture has taken of an owner's day, and its limits."""
        return CaptureDay(spent=self._budget.spent(owner, self._clock.now()), most=self._budget.budget.of_day)

    def _without_captured(self, request: CaptureRequest, owner: Owner) -> CaptureRequest:
        """Return a request in which the texts of turns that were captured before are context."""
        known = self._engine.store.captured(owner, _turns(request))
        said = (attrs.evolve(each, is_context=each.is_context or each.turn in known) for each in request.said)
        return attrs.evolve(request, said=said)

    def _extraction(self, request: CaptureRequest, owner: Owner) -> Extraction:
        found = _extractor(self._profile, self._writes.ask(owner)).extract(request.said)
        outside = [each for each in request.said if each.external]
        changing = (each for each in found.weak if not _taken(each, outside) and self._changes(each, request))
        candidates = (attrs.evolve(each, external=True) if _taken(each, outside) else each for each in found.candidates)
        return attrs.evolve(found, candidates=(*candidates, *(attrs.evolve(each, cues=CHANGING) for each in changing)))

    def _changes(self, candidate: Candidate, request: CaptureRequest) -> bool:
        """Return whether a statement would end or extend a memory, as the rules of reconciliation decide."""
        said = request.said[candidate.place]
        new = self._memory(Judged(candidate=candidate), said, evidence_of(candidate, said), request)
        found = similar(self._engine, new, other_words(new), self._clock.now())
        return RuleJudge().decide(new, found).event in {"UPDATE", "DELETE"}

    def _occasion(
        self,
        request: CaptureRequest,
        owner: Owner,
        candidates: Sequence[Candidate],
        was_injected: Callable[[str], bool],
    ) -> Occasion:
        known = {memory.title for each in candidates for memory in self._near(each.text, request)}
        return Occasion(
            owner=owner,
            project=request.own.view.place or "",
            paths=request.paths,
            tags=request.tags,
            when=self._clock.now(),
            was_injected=was_injected,
            was_forgotten=partial(self._engine.was_forgotten, owner),
            messages=tuple(each.text for each in request.said),
            known=tuple(known),
        )

    def _near(self, text: str, request: CaptureRequest) -> list[Memory]:
        filters = request.own.within(stores=(request.store,), now=self._clock.now())
        found = self._engine.search(Query(text=text, filters=filters, limit=NEAR))
        return [hit.memory for hit in found.hits]

    def _item(self, judged: Judged, request: CaptureRequest, occasion: Occasion) -> CapturedItem:
        candidate = judged.candidate
        said = request.said[candidate.place] if request.said else Utterance(text=candidate.text)
        evidence = evidence_of(candidate, said)
        item = _item_of(candidate, evidence)
        verdict = judged.verdict
        if verdict is not None:
            item = attrs.evolve(item, outcome="gated", reason=f"{verdict.gate}: {verdict.reason}")
        if judged.queued:
            item = attrs.evolve(item, outcome="queued")
        if request.dry_run or not (judged.admitted or judged.queued):
            return item
        new = self._memory(judged, said, evidence, request)
        try:
            if not self._budget.take(occasion):
                return attrs.evolve(item, outcome="gated", reason=f"{DAY_FULL.gate}: {DAY_FULL.reason}")
            return self._written(item, new, request)
        except StoreError as error:
            return attrs.evolve(item, outcome="failed", reason=error.category)

    def _written(self, item: CapturedItem, new: NewMemory, request: CaptureRequest) -> CapturedItem:
        """Write a memory, and read it back."""
        if refusal := self._writes.gate.refusal(new):
            return attrs.evolve(item, outcome="gated", reason=f"privacy: {refusal.code}")
        if item.outcome == "queued":
            (kept,) = self._engine.remember(new)
            done = Reconciled(id=kept.id, outcome=kept.outcome, mentions=kept.mentions)
        else:
            done = self._writes.reconciler(new.owner).remember(new, may_supersede=not item.external)
            item = attrs.evolve(item, outcome=done.outcome, reason=done.reason)
        if done.outcome != "duplicate" and not self._writes.is_there(done.id, new, request.own):
            return attrs.evolve(item, outcome="failed", reason="not_read_back")
        return attrs.evolve(item, id=done.id, superseded=done.superseded)

    def _memory(self, judged: Judged, said: Utterance, evidence: Evidence, request: CaptureRequest) -> NewMemory:
        candidate, own = judged.candidate, request.own
        tags = (EXTERNAL,) if candidate.external else ()
        waits: dict[str, Any] = {"tags": tags}
        if judged.verdict is not None:
            waits = {"tags": (*tags, PENDING, f"{PENDING}:{judged.verdict.reason}"), "valid_from": PENDING_FROM}
        return NewMemory(
            title=candidate.text,
            owner=_owner(own),
            store=request.store,
            type=candidate.kind,
            scope=_scope(candidate, own),
            project=own.view.place or "",
            session=own.view.session,
            agent=own.view.agent,
            speaker=said.speaker,
            keywords=candidate.keywords,
            source=CAPTURE,
            origin=evidence.turn,
            evidence=evidence.excerpt,
            confidence=candidate.confidence,
            created_at=said.when,
            **waits,
        )


def _scope(candidate: Candidate, own: Filters) -> Scope:
    return "project" if own.view.project is not None and not _is_global(candidate) else "global"


def _is_global(candidate: Candidate) -> bool:
    """Return whether each sentence of a memory is a preference, so that no project's facts are seen by all of them."""
    said, words = sentences(candidate.text), vocabulary_of(candidate.text)
    kinds = [candidate.kind] if len(said) <= 1 else [kind_of(each.text, words) for each in said]
    return candidate.kind in GLOBAL_KINDS and GLOBAL_KINDS.issuperset(kinds)


def _extractor(profile: CaptureProfile, ask: Ask | None) -> Extractor:
    rules = RuleExtractor(least_confidence=profile.least_confidence)
    if ask is None:
        return rules if profile.extractor == "rules" else WithoutModel(rules)
    model = ModelExtractor(ask, rules=rules)
    return model if profile.extractor == "model" else HybridExtractor(model, rules=rules)


def _turns(request: CaptureRequest) -> list[str]:
    """Return the turns whose texts are captured."""
    return [*dict.fromkeys(each.turn for each in request.said if each.turn and not each.is_context)]


def _owner(own: Filters) -> Owner:
    if own.view.owners != (own.view.owner,):
        raise InvalidRequest("own", "must be the view of one owner")
    if own.view.project is ALL_PROJECTS:
        raise InvalidRequest("own", "must be the view of one project, or of none")
    return own.view.owner


def _taken(candidate: Candidate, outside: Sequence[Utterance]) -> bool:
    """Return whether a statement has most of its words from an external text."""
    words = vocabulary_of(candidate.text)
    ours = content_words(candidate.text, words)
    return any(len(ours & content_words(each.text, words)) >= _FROM_OUTSIDE * len(ours) for each in outside)


def _item_of(candidate: Candidate, evidence: Evidence) -> CapturedItem:
    return CapturedItem(
        kind=candidate.kind,
        text=candidate.text,
        confidence=candidate.confidence,
        outcome="stored",
        explicit=candidate.explicit,
        external=candidate.external,
        cues=candidate.cues,
        turn=evidence.turn,
        excerpt=evidence.excerpt,
    )


def redacted_request(request: CaptureRequest, redactor: Redactor) -> tuple[CaptureRequest, tuple[Finding, ...]]:
    """Return a request without secrets, and how many of each kind it held."""
    counts = Counter[str]()

    def plain(text: str) -> str:
        done = redactor.redact(text)
        counts.update({each.kind: each.count for each in done.findings})
        return done.text

    said = tuple(_said(each, plain(each.text)) for each in request.said)
    outcomes = tuple(_outcome(each, plain(each.command)) for each in request.outcomes)
    findings = tuple(Finding(kind=kind, count=count) for kind, count in sorted(counts.items()))
    return attrs.evolve(request, said=said, outcomes=outcomes), findings


def _said(said: Utterance, text: str) -> Utterance:
    return said if text == said.text else attrs.evolve(said, text=text)


def _outcome(outcome: ToolOutcome, command: str) -> ToolOutcome:
    return outcome if command == outcome.command else attrs.evolve(outcome, command=command)
