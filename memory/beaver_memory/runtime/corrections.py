"""Carries out what a person decides about memories: correct, undo, and review those that wait for approval. Blocking.

A memory that waits for approval is stored with a time of validity that has not begun, so no recall finds it, forgetting
erases it, and every kind of store keeps it.
"""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs

from beaver_memory.errors import InvalidRequest
from beaver_memory.reconcile.decision import Reconciled
from beaver_memory.records import CAPTURE, Memory, NewMemory
from beaver_memory.runtime.capture_records import (
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
from beaver_memory.runtime.memory_writes import MemoryWrites

PENDING_FROM = datetime(9999, 12, 31, tzinfo=UTC)
"""The begin of the validity of a memory that waits for approval."""

PENDING = "pending"
CORRECTION = "correction"
"""The origin of a memory that a person has put in place of others."""

LOOKED_AT = 500
"""The newest memories in which the last capture is looked for."""


class Corrections:
    """Changes what capture and others have written. Thread-safe.

    Args:
        writes: writes the memories.
    """

    def __init__(self, writes: MemoryWrites) -> None:
        self._writes = writes

    def correct(self, request: CorrectRequest) -> CorrectReport:
        """Put a new memory in place of others; see `CorrectRequest`."""
        own = attrs.evolve(request.own, lapsed=True)
        old = self._writes.engine.get(request.ids, own)
        if len(old) != len(set(request.ids)) or not old:
            return CorrectReport(reason="no_such_memory")
        if any(each.superseded_by is not None for each in old):
            return CorrectReport(reason="superseded")
        new = _correction(old[0], request, self._writes.clock.now())
        if refusal := self._writes.gate.refusal(new):
            return CorrectReport(reason=refusal.code, sentence=refusal.sentence, outcome="gated")
        done = self._writes.reconciler(new.owner).supersede(new, request.ids)
        if not self._writes.is_there(done.id, new, own):
            return CorrectReport(reason="not_read_back")
        return CorrectReport(id=done.id, outcome=done.outcome, superseded=done.superseded)

    def undo(self, request: UndoRequest) -> UndoReport:
        """Forget the memories of the last captured turn, or the last correction or contradiction; see `UndoRequest`."""
        own = attrs.evolve(request.own, lapsed=True)
        recent = self._writes.engine.store.recent(own, limit=LOOKED_AT)
        captured = [each for each in _learnt(recent) if request.session in {"", each.session}]
        last = max(captured, key=lambda each: (each.created_at or each.updated_at, each.id), default=None)
        if last is None:
            return UndoReport()
        together = [each for each in captured if (each.origin, each.created_at) == (last.origin, last.created_at)]
        ids = [each.id for each in together]
        opened: dict[str, Any] = {"valid_until": None, "superseded_by": None}
        # First: an interruption leaves both, and never neither.
        reopened = [
            each.id
            for each in recent
            if _ended_by(each, ids, last)
            and self._writes.engine.change(each.id, own, event="UNDO", **opened) is not None
        ]
        self._writes.engine.drop_evidence(together)
        self._writes.engine.forget(ids, own)
        self._writes.report.event("memory_capture_undone", memories=ids)
        return UndoReport(forgotten=tuple(together), reopened=tuple(reopened))

    def pending(self, request: PendingRequest) -> PendingReport:
        """List the memories that wait for approval."""
        own = attrs.evolve(request.own, lapsed=True, tags=(PENDING,))
        found = self._writes.engine.store.recent(own, limit=request.limit)
        return PendingReport(items=tuple(_pending(each) for each in found if each.valid_from == PENDING_FROM))

    def review(self, request: ReviewRequest) -> ReviewReport:
        """Decide about a memory that waits for approval; see `ReviewRequest`."""
        own = attrs.evolve(request.own, lapsed=True)
        waiting = [each for each in self._writes.engine.get([request.id], own) if each.valid_from == PENDING_FROM]
        if not waiting:
            return ReviewReport(reason="not_pending")
        if request.choice == "edit" and not request.text.strip():
            return ReviewReport(reason="no_text")
        done = None if request.choice == "reject" else self._approved(waiting[0], request)
        if isinstance(done, ReviewReport):
            return done
        if done is None:
            self._writes.engine.drop_evidence(waiting)
        self._writes.engine.forget([request.id], own)
        self._writes.report.event("memory_reviewed", memory=request.id, choice=request.choice)
        if done is None:
            return ReviewReport(outcome="rejected")
        return ReviewReport(outcome=done.outcome, id=done.id, superseded=done.superseded)

    def _approved(self, waiting: Memory, request: ReviewRequest) -> Reconciled | ReviewReport:
        title = request.text.strip() if request.choice == "edit" else waiting.title
        new = _new(waiting, title=title, tags=_tags(waiting), valid_from=None, confidence=1.0)
        if refusal := self._writes.gate.refusal(new):
            return ReviewReport(outcome="gated", reason=refusal.code, sentence=refusal.sentence)
        done = self._writes.reconciler(new.owner).remember(new)
        is_there = self._writes.is_there(done.id, new, request.own)
        return done if is_there or done.outcome == "duplicate" else ReviewReport(reason="not_read_back")


def _learnt(recent: Sequence[Memory]) -> list[Memory]:
    """Return the memories that hold and were captured, or superseded others; what another one superseded is kept."""
    successors = {each.superseded_by for each in recent}
    holding = [each for each in recent if each.superseded_by is None]
    return [each for each in holding if each.source == CAPTURE or each.id in successors]


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
    """Return a new memory with the fields of a stored one, but its uid."""
    same = {each.name: getattr(memory, each.name) for each in attrs.fields(NewMemory)}
    return NewMemory(**(same | {"uid": ""} | fields))


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
    return _new(old, **changed, **valid, source=request.source, origin=CORRECTION, confidence=1.0, tags=_tags(old))
