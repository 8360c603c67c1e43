"""The one way in which a model writes: `memory_write`. Every call ends in a named outcome. Blocking."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from beaver_hooks_local.memory import LocalMemory, default_scope
from beaver_hooks_local.tools.definitions import PLANE
from beaver_hooks_local.trust import default_store
from beaver_hooks_local.visibility import Visibility
from beaver_hostspecs import OutcomeKind, Report, Turn
from beaver_memory.errors import PersonalStoreError
from beaver_memory.records import AGENT, Kept, NewMemory, Store, is_reserved
from beaver_memory.runtime.capture_records import CorrectRequest
from beaver_memory.runtime.requests import WriteRequest

_NO_SUCH_MEMORY = "There is no memory with the id in `supersedes` that the user of this turn may change."


@attrs.frozen
class Refusal(Exception):
    """A refused write.

    Attributes:
        reason: in one word.
        sentence: for the model.
    """

    reason: str
    sentence: str


def write(memory: LocalMemory, arguments: Mapping[str, Any], turn: Turn, report: Report) -> dict[str, Any]:
    """Store a memory, or count one more mention of the same; end what it contradicts.

    A text that recall gave to this turn ends nothing.
    """
    sight = Visibility.of_turn(turn, memory.home)
    try:
        new = _new(memory, arguments, sight)
        if "supersedes" in arguments:
            return _corrected(memory, new, arguments["supersedes"], sight, report)
        echoes = any(map(turn.was_injected, (new.title, new.narrative, *new.facts)))
        kept = _written(memory, new, supersedes=not echoes)
    except Refusal as refusal:
        report.outcome(PLANE, OutcomeKind.REJECTED, reason=refusal.reason)
        memory.trace("memory_write", outcome="rejected", reason=refusal.reason)
        return {"outcome": "rejected", "reason": refusal.sentence}
    if kept.superseded:
        return _superseded(memory, kept.id, kept.superseded, report)
    if kept.outcome == "duplicate":
        return _mentioned(memory, kept, report)
    return _stored(memory, kept, new, report, echoes=echoes)


def _corrected(memory: LocalMemory, new: NewMemory, old: int, sight: Visibility, report: Report) -> dict[str, Any]:
    """Put a memory in place of an older one, where that one is kept."""
    request = CorrectRequest(ids=[old], memory=new, own=sight.own(memory.clock.now()))
    done = memory.operations.correct(request)
    if done.reason:
        known = _NO_SUCH_MEMORY if done.reason == "no_such_memory" else f"Nothing was remembered: {done.reason}."
        raise Refusal(done.reason, done.sentence or known)
    return _superseded(memory, done.id, done.superseded, report, done.outcome)


def _superseded(
    memory: LocalMemory, id_: int, superseded: Sequence[int], report: Report, outcome: str = "superseded"
) -> dict[str, Any]:
    report.outcome(PLANE, OutcomeKind(outcome), memory=id_, superseded=list(superseded))
    memory.trace("memory_write", outcome=outcome, memory=id_)
    return {"outcome": outcome, "id": id_, "superseded": list(superseded)}


def _written(memory: LocalMemory, new: NewMemory, *, supersedes: bool) -> Kept:
    try:
        written = memory.operations.write(WriteRequest(memories=[new], supersedes=supersedes))
    except PersonalStoreError as error:
        raise Refusal("personal_memory", str(error)) from error
    if written.refusal is not None:
        raise Refusal(written.refusal.code, written.refusal.sentence)
    return written.outcomes[0]


def _new(memory: LocalMemory, arguments: Mapping[str, Any], sight: Visibility) -> NewMemory:
    store = _store(arguments, sight)
    type_ = arguments.get("type", "discovery")
    expires = arguments.get("expires")
    if expires is not None and expires <= memory.clock.now():
        raise Refusal("expired", "`expires` is in the past; give a later time, or leave it out.")
    same = ("title", "narrative", "facts", "tags", "related_files", "related_people")
    try:
        return NewMemory(
            **{name: arguments[name] for name in same if name in arguments},
            owner=sight.owner,
            store=store,
            type=type_,
            scope=default_scope(type_, sight.place),
            project=sight.place,
            session=arguments.get("session_key", sight.session),
            agent=sight.agent,
            source=_source(arguments),
            origin="memory_write",
            expires_at=expires,
        )
    except ValueError as error:
        raise Refusal("invalid", "The title is empty; write the fact to remember in one line.") from error


def _source(arguments: Mapping[str, Any]) -> str:
    """Return where the memory comes from; a model is not taken for the user or for capture."""
    given = str(arguments.get("source", AGENT))
    return AGENT if is_reserved(given) else given


def _store(arguments: Mapping[str, Any], sight: Visibility) -> Store:
    store = Store(arguments["store"]) if "store" in arguments else default_store(sight.trust)
    if store is None:
        raise Refusal("trust", "Nothing was remembered: the user of this turn has the trust `public`.")
    if store not in sight.stores:
        allowed = ", ".join(sight.stores)
        raise Refusal("trust", f"The user of this turn may write only to these stores: {allowed or 'none'}.")
    return store


def _mentioned(memory: LocalMemory, kept: Kept, report: Report) -> dict[str, Any]:
    report.outcome(PLANE, OutcomeKind.DUPLICATE, memory=kept.id, mentions=kept.mentions)
    memory.trace("memory_write", outcome="duplicate", memory=kept.id)
    return {"outcome": "duplicate", "id": kept.id, "mentions": kept.mentions}


def _stored(memory: LocalMemory, kept: Kept, new: NewMemory, report: Report, *, echoes: bool) -> dict[str, Any]:
    report.outcome(PLANE, OutcomeKind.STORED, memory=kept.id, store=new.store.value, echoes_reference=echoes)
    memory.trace("memory_write", outcome="stored", memory=kept.id, store=new.store.value)
    return {"outcome": "stored", "id": kept.id, "store": new.store.value}
