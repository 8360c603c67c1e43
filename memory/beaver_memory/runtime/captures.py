"""Carries out the operations by which a memory learns. Blocking.

A memory that waits for approval is stored with a time of validity that has not begun, so no recall finds it, forgetting
erases it, and every kind of store keeps it.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs

from beaver_memory.capture.evidence import Evidence, evidence_of
from beaver_memory.capture.features import content_words
from beaver_memory.capture.gates.budget import DAY_FULL, Ask, BudgetGate
from beaver_memory.capture.gates.chain import Gates, Judged
from beaver_memory.capture.gates.privacy import PrivacyGate
from beaver_memory.capture.gates.verdict import Occasion
from beaver_memory.capture.model import Extractor, HybridExtractor, ModelExtractor
from beaver_memory.capture.outcomes import fixes_of
from beaver_memory.capture.records import Candidate, Extraction, Utterance
from beaver_memory.capture.rules import RuleExtractor
from beaver_memory.capture.vocabulary import vocabulary_of
from beaver_memory.engine import MemoryEngine
from beaver_memory.errors import InvalidRequest, StoreError
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.reconcile.decision import Reconciled
from beaver_memory.reconcile.model_judge import ModelJudge
from beaver_memory.reconcile.reconciler import Reconciler
from beaver_memory.records import CAPTURE, Memory, NewMemory, Owner, Scope
from beaver_memory.runtime.capture_records import (
    CapturedItem,
    CaptureReport,
    CaptureRequest,
    CorrectReport,
    CorrectRequest,
    PendingItem,
    PendingReport,
    PendingRequest,
    ReviewReport,
    ReviewRequest,
    UndoReport,
    UndoRequest,
)
from beaver_memory.runtime.gates import WriteGate
from beaver_memory.runtime.profile import CaptureProfile, RuntimeServices
from beaver_memory.runtime.redaction import redacted_request
from beaver_memory.runtime.reports import CaptureDay
from beaver_toolkit.redaction.redactor import Redactor

PENDING_FROM = datetime(9999, 12, 31, tzinfo=UTC)
"""The begin of the validity of a memory that waits for approval."""

PENDING = "pending"
EXTERNAL = "external"
"""The tag of a captured memory whose words an external text holds; it stays when a person accepts the memory."""

GLOBAL_KINDS = frozenset({"preference"})
"""Kinds that hold in all projects."""

NEAR = 3
"""Memories that are near to a candidate."""

LOOKED_AT = 500
"""The newest memories in which the last capture is looked for."""

_FROM_OUTSIDE = 0.8
"""The share of words in common with an external text from which a statement counts as taken from it."""


def never(_: str) -> bool:
    """Return that no text was injected."""
    return False


class Captures:
    """The operations of capture over one engine. Thread-safe.

    Args:
        engine: the engine.
        profile: how capture works.
        services: of the process; `ask_model` asks the small model.
        redactor: takes the secrets out of conversations.
        gate: refuses memories with a secret.
        has_project: whether memories that name no project belong to one.
    """

    def __init__(
        self,
        engine: MemoryEngine,
        profile: CaptureProfile,
        services: RuntimeServices,
        *,
        redactor: Redactor,
        gate: WriteGate,
        has_project: bool,
    ) -> None:
        self._redactor, self._gate, self._has_project = redactor, gate, has_project
        self._engine, self._profile, self._services = engine, profile, services
        self._clock = services.clock
        self._budget = BudgetGate(profile.budget, engine.store)
        privacy = PrivacyGate(paths=profile.paths, tags=profile.tags, projects=profile.projects)
        self._gates = Gates(self._budget, privacy=privacy, enabled=profile.enabled)

    def capture(self, request: CaptureRequest, was_injected: Callable[[str], bool] = never) -> CaptureReport:
        """Store the statements of a conversation that are worth it; see `CaptureRequest`."""
        owner = _owner(request.own)
        if request.store not in request.own.stores:
            raise InvalidRequest("store", "is one that this caller may not change")
        request = self._without_captured(request, owner) if request.once else request
        request, findings = redacted_request(request, self._redactor)
        extraction = self._extraction(request, owner) if self._profile.enabled else Extraction()
        occasion = self._occasion(request, owner, extraction.candidates, was_injected)
        judged = self._gates.judged((*fixes_of(request.outcomes), *extraction.candidates), occasion)
        items = [self._item(each, request, occasion) for each in judged]
        failed = any(each.outcome == "failed" for each in items)
        if self._profile.enabled and not (request.dry_run or failed):
            self._engine.store.mark_captured(owner, _turns(request))
        spent = self._budget.spent(owner, occasion.when)
        return CaptureReport(
            items=tuple(items),
            extractor=extraction.extractor,
            fallback=extraction.fallback,
            model_calls=spent.calls,
            model_tokens=spent.tokens,
            dry_run=request.dry_run,
            redacted=findings,
        )

    def correct(self, request: CorrectRequest) -> CorrectReport:
        """Put a new memory in place of others; see `CorrectRequest`."""
        own = attrs.evolve(request.own, lapsed=True)
        old = self._engine.get(request.ids, own)
        if len(old) != len(set(request.ids)) or not old:
            return CorrectReport(reason="no_such_memory")
        new = _correction(old[0], request, self._clock.now())
        if refusal := self._gate.refusal(new):
            return CorrectReport(reason=refusal.code, sentence=refusal.sentence, outcome="gated")
        done = self._reconciler(new.owner).supersede(new, request.ids)
        if not self._is_there(done.id, new, own):
            return CorrectReport(reason="not_read_back")
        return CorrectReport(id=done.id, outcome=done.outcome, superseded=done.superseded)

    def undo(self, request: UndoRequest) -> UndoReport:
        """Forget the memories of the last captured turn; see `UndoRequest`."""
        own = attrs.evolve(request.own, lapsed=True)
        recent = self._engine.store.recent(own, limit=LOOKED_AT)
        captured = [each for each in recent if each.source == CAPTURE and request.session in {"", each.session}]
        last = max(captured, key=lambda each: each.updated_at, default=None)
        if last is None:
            return UndoReport()
        together = [each for each in captured if (each.origin, each.created_at) == (last.origin, last.created_at)]
        ids = [each.id for each in together]
        opened: dict[str, Any] = {"valid_until": None, "superseded_by": None}
        # First: an interruption leaves both, and never neither.
        reopened = [
            each.id
            for each in recent
            if _ended_by(each, ids, last) and self._engine.change(each.id, own, event="UNDO", **opened) is not None
        ]
        self._engine.forget(ids, own)
        self._services.report.event("memory_capture_undone", memories=ids)
        return UndoReport(forgotten=tuple(together), reopened=tuple(reopened))

    def pending(self, request: PendingRequest) -> PendingReport:
        """List the memories that wait for approval."""
        own = attrs.evolve(request.own, lapsed=True, tags=(PENDING,))
        found = self._engine.store.recent(own, limit=request.limit)
        return PendingReport(items=tuple(_pending(each) for each in found if each.valid_from == PENDING_FROM))

    def review(self, request: ReviewRequest) -> ReviewReport:
        """Decide about a memory that waits for approval; see `ReviewRequest`."""
        own = attrs.evolve(request.own, lapsed=True)
        waiting = [each for each in self._engine.get([request.id], own) if each.valid_from == PENDING_FROM]
        if not waiting:
            return ReviewReport(reason="not_pending")
        if request.choice == "edit" and not request.text.strip():
            return ReviewReport(reason="no_text")
        done = None if request.choice == "reject" else self._approved(waiting[0], request)
        if isinstance(done, ReviewReport):
            return done
        self._engine.forget([request.id], own)
        self._services.report.event("memory_reviewed", memory=request.id, choice=request.choice)
        if done is None:
            return ReviewReport(outcome="rejected")
        return ReviewReport(outcome=done.outcome, id=done.id, superseded=done.superseded)

    # --- Capture ------------------------------------------------------------------------------------------------

    def _without_captured(self, request: CaptureRequest, owner: Owner) -> CaptureRequest:
        """Return a request in which the texts of turns that were captured before are context."""
        known = self._engine.store.captured(owner, _turns(request))
        said = (attrs.evolve(each, is_context=each.is_context or each.turn in known) for each in request.said)
        return attrs.evolve(request, said=said)

    def _extraction(self, request: CaptureRequest, owner: Owner) -> Extraction:
        found = _extractor(self._profile, self._ask(owner)).extract(request.said)
        outside = [each for each in request.said if each.external]
        candidates = (attrs.evolve(each, external=True) if _taken(each, outside) else each for each in found.candidates)
        return attrs.evolve(found, candidates=candidates)

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
            project=request.own.project,
            paths=request.paths,
            tags=request.tags,
            when=self._clock.now(),
            was_injected=was_injected,
            known=tuple(known),
        )

    def _near(self, text: str, request: CaptureRequest) -> list[Memory]:
        filters = attrs.evolve(request.own, stores=(request.store,), now=self._clock.now())
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
        if refusal := self._gate.refusal(new):
            return attrs.evolve(item, outcome="gated", reason=f"privacy: {refusal.code}")
        if item.outcome == "queued":
            (kept,) = self._engine.remember(new)
            done = Reconciled(id=kept.id, outcome=kept.outcome, mentions=kept.mentions)
        else:
            done = self._reconciler(new.owner).remember(new, may_supersede=not item.external)
            item = attrs.evolve(item, outcome=done.outcome, reason=done.reason)
        own = attrs.evolve(request.own, lapsed=True, now=self._clock.now())
        if done.outcome != "duplicate" and not self._is_there(done.id, new, own):
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
            scope=self._scope(candidate, own),
            project=own.project,
            session=own.session,
            agent=own.agent,
            speaker=said.speaker,
            keywords=candidate.keywords,
            source=CAPTURE,
            origin=evidence.turn,
            evidence=evidence.excerpt,
            confidence=candidate.confidence,
            created_at=said.when,
            **waits,
        )

    def _scope(self, candidate: Candidate, own: Filters) -> Scope:
        return "project" if (own.project or self._has_project) and candidate.kind not in GLOBAL_KINDS else "global"

    # --- The model ----------------------------------------------------------------------------------------------

    def day(self, owner: Owner) -> CaptureDay:
        """Return what capture has taken of an owner's day, and its limits."""
        return CaptureDay(spent=self._budget.spent(owner, self._clock.now()), most=self._budget.budget.of_day)

    def _ask(self, owner: Owner) -> Ask | None:
        """Return what asks the small model in the name of an owner; `None` where rules alone decide."""
        ask = self._services.ask_model
        if ask is None or self._profile.extractor == "rules":
            return None
        return self._budget.counted(ask, owner, self._clock.now())

    def _reconciler(self, owner: Owner) -> Reconciler:
        ask = self._ask(owner)
        judge = None if ask is None else ModelJudge(ask, trace=self._services.trace)
        return Reconciler(self._engine, judge=judge, clock=self._clock)

    # --- Writing and reading back -------------------------------------------------------------------------------

    def _approved(self, waiting: Memory, request: ReviewRequest) -> Reconciled | ReviewReport:
        title = request.text.strip() if request.choice == "edit" else waiting.title
        new = _new(waiting, title=title, tags=_tags(waiting), valid_from=None, confidence=1.0)
        if refusal := self._gate.refusal(new):
            return ReviewReport(outcome="gated", reason=refusal.code, sentence=refusal.sentence)
        done = self._reconciler(new.owner).remember(new)
        is_there = self._is_there(done.id, new, attrs.evolve(request.own, lapsed=True, now=self._clock.now()))
        return done if is_there or done.outcome == "duplicate" else ReviewReport(reason="not_read_back")

    def _is_there(self, id_: int, new: NewMemory, own: Filters) -> bool:
        return any(
            each.title == new.title for each in self._engine.get([id_], attrs.evolve(own, now=self._clock.now()))
        )


def _extractor(profile: CaptureProfile, ask: Ask | None) -> Extractor:
    rules = RuleExtractor(least_confidence=profile.least_confidence)
    if ask is None:
        return rules
    model = ModelExtractor(ask, rules=rules)
    return model if profile.extractor == "model" else HybridExtractor(model, rules=rules)


def _turns(request: CaptureRequest) -> list[str]:
    """Return the turns whose texts are captured."""
    return [*dict.fromkeys(each.turn for each in request.said if each.turn and not each.is_context)]


def _owner(own: Filters) -> Owner:
    if len(own.owners) != 1:
        raise InvalidRequest("own.owners", "must name one owner")
    return own.owners[0]


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


def _ended_by(memory: Memory, ids: Collection[int], last: Memory) -> bool:
    """Return whether a capture ended a memory; one that names no successor tells it by the moment."""
    if memory.superseded_by is not None:
        return memory.superseded_by in ids
    return memory.valid_until is not None and memory.valid_until == last.created_at


def _pending(memory: Memory) -> PendingItem:
    reasons = [tag.removeprefix(f"{PENDING}:") for tag in memory.tags if tag.startswith(f"{PENDING}:")]
    return PendingItem(memory=memory, reason=next(iter(reasons), ""))


def _tags(memory: Memory) -> tuple[str, ...]:
    return tuple(tag for tag in memory.tags if tag != PENDING and not tag.startswith(f"{PENDING}:"))


def _new(memory: Memory, **fields: Any) -> NewMemory:
    """Return a new memory with the fields of a stored one."""
    same = {each.name: getattr(memory, each.name) for each in attrs.fields(NewMemory)}
    return NewMemory(**(same | fields))


def _correction(old: Memory, request: CorrectRequest, now: datetime) -> NewMemory:
    place = {name: getattr(old, name) for name in ("owner", "store", "scope", "project", "session", "agent")}
    if request.memory is not None:
        return attrs.evolve(request.memory, **place)
    if not request.text.strip():
        raise InvalidRequest("text", "must not be empty")
    changed = {
        "title": request.text.strip(),
        "narrative": "",
        "facts": (),
        "summary": "",
        "keywords": (),
        "evidence": "",
    }
    valid = {"created_at": now, "valid_from": None, "valid_until": None, "expires_at": None}
    return _new(old, **changed, **valid, source=request.source, origin="correction", confidence=1.0, tags=_tags(old))
