"""The handlers of `correct`, `undo`, `pending` and `review` under `/memory local`. Blocking.

Only a person calls commands, so what an agent proposes is never approved by the agent.
"""

from collections.abc import Mapping
from types import MappingProxyType

from beaver_hooks_local.errors import CommandRefused
from beaver_hooks_local.memory import LocalMemory
from beaver_hooks_local.tools.definitions import PLANE
from beaver_hooks_local.visibility import Visibility
from beaver_hostspecs import CommandContext, OutcomeKind, Report
from beaver_hostspecs.neutralising import neutralise
from beaver_memory.filters import Filters
from beaver_memory.runtime.capture_records import (
    CorrectReport,
    CorrectRequest,
    PendingRequest,
    ReviewReport,
    ReviewRequest,
    UndoRequest,
)
from beaver_memory.runtime.hit_texts import heading

Words = tuple[str, ...]

_LONGEST_ID = 18
_CHOICES: Mapping[str, str] = MappingProxyType({"accept": "accept", "reject": "reject", "edit": "edit"})


def correct(memory: LocalMemory, words: Words, context: CommandContext, report: Report) -> str:
    """Put a new statement in place of a memory."""
    if len(words) < 2:  # noqa: PLR2004 - an id and a text
        raise CommandRefused("Name a memory and the statement that holds: correct ID TEXT. `list` shows the ids.")
    request = CorrectRequest(ids=[_id(words[0])], text=" ".join(words[1:]), own=_own(memory, context))
    done = memory.operations.correct(request)
    if done.reason:
        raise CommandRefused(_why(done, "`list` shows the ids."))
    report.outcome(PLANE, OutcomeKind(done.outcome), memory=done.id, source="user")
    ended = ", ".join(map(str, done.superseded)) or "the same text"
    return f"{done.id} holds now, in place of {ended}."


def undo(memory: LocalMemory, words: Words, context: CommandContext, _report: Report) -> str:
    """Forget the memories of the last captured turn or correction."""
    if words:
        raise CommandRefused("`undo` takes no words; nothing was done. Write `undo` alone.")
    done = memory.operations.undo(UndoRequest(own=_own(memory, context)))
    if not done.forgotten:
        return "No memory was captured lately."
    lines = [f"forgot [{each.id}] {_plain(heading(each, 100))}" for each in done.forgotten]
    return "\n".join([*lines, *(f"[{id_}] holds again" for id_ in done.reopened)])


def pending(memory: LocalMemory, words: Words, context: CommandContext, report: Report) -> str:
    """List the memories that wait for approval; with an id and a choice, decide about one."""
    if words:
        return _reviewed(memory, words, context, report)
    found = memory.operations.pending(PendingRequest(own=_own(memory, context))).items
    rows = [f"[{each.memory.id}] {each.reason}: {_plain(heading(each.memory, 200))}" for each in found]
    if not rows:
        return "No memory waits for approval."
    return "\n".join([*rows, "Decide with `pending ID accept`, `pending ID edit TEXT` or `pending ID reject`."])


def _reviewed(memory: LocalMemory, words: Words, context: CommandContext, report: Report) -> str:
    choice = _CHOICES.get(words[1]) if len(words) > 1 else None
    if choice is None or (choice == "edit") != (len(words) > 2):  # noqa: PLR2004 - an id, a choice, a text
        raise CommandRefused("Write `pending ID accept`, `pending ID edit TEXT` or `pending ID reject`.")
    own = _own(memory, context)
    done = memory.operations.review(
        ReviewRequest(id=_id(words[0]), own=own, choice=choice, text=" ".join(words[2:]))  # type: ignore[arg-type]
    )
    if done.reason:
        raise CommandRefused(_why(done, "`pending` lists the ids."))
    report.outcome(PLANE, OutcomeKind(done.outcome), memory=done.id or int(words[0]), source="review")
    return f"{words[0]} is erased." if done.outcome == "rejected" else f"{done.id} is remembered."


def _why(done: CorrectReport | ReviewReport, remedy: str) -> str:
    """Return why nothing was changed, and the remedy."""
    return (
        f"Nothing was changed. {done.sentence}"
        if done.sentence
        else (f"Nothing was changed: {done.reason.replace('_', ' ')}. {remedy}")
    )


def _own(memory: LocalMemory, context: CommandContext) -> Filters:
    return Visibility.of_command(context, memory.home).own(memory.clock.now())


def _id(word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= _LONGEST_ID and int(word)):
        raise CommandRefused("An id is a whole number; `list` shows the ids.")
    return int(word)


def _plain(text: str) -> str:
    return " ".join(neutralise(text).split())
