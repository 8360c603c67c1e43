"""The handlers of the commands under `/memory local`, and the texts that they show. Blocking.

The user names a memory by its id. A command shows only memories that its user may see, and changes only the user's own.
`forget` erases a memory only with the second word `yes`. Only a person calls commands, so what an agent proposes is
never approved by the agent.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import attrs

from beaver_hooks_local.errors import CommandRefused, damaged_text
from beaver_hooks_local.memory import LocalMemory
from beaver_hooks_local.recall.recaller import Recall
from beaver_hooks_local.recall.selection import REASONS
from beaver_hooks_local.tools.definitions import PLANE
from beaver_hooks_local.visibility import Visibility
from beaver_hostspecs import CommandContext, OutcomeKind, Report, Trust
from beaver_hostspecs.neutralising import neutralise
from beaver_memory.errors import StoreError
from beaver_memory.filters import Filters
from beaver_memory.query import Hit
from beaver_memory.records import Memory
from beaver_memory.runtime.capture_records import (
    CorrectReport,
    CorrectRequest,
    PendingRequest,
    ReviewReport,
    ReviewRequest,
    UndoRequest,
)
from beaver_memory.runtime.hit_texts import heading
from beaver_memory.runtime.requests import (
    ForgetRequest,
    GetRequest,
    InspectionRequest,
    ListRequest,
    PinRequest,
    RecallRequest,
)

YES = "yes"
RECENT = 20
GLANCE = 5
"""Memories of each kind that the overview of all plugins shows."""

FOUND = 10
_LONGEST_ID = 18
_LONGEST_QUERY = 4_000

Words = tuple[str, ...]
Run = Callable[[LocalMemory, Words, CommandContext, Report], str]

_CHOICES: Mapping[str, str] = MappingProxyType({"accept": "accept", "reject": "reject", "edit": "edit"})


def status(memory: LocalMemory, words: Words, context: CommandContext, _report: Report) -> str:
    """Show how many memories the user has, and the current troubles."""
    _alone("status", words)
    sight = Visibility.of_command(context, memory.home)
    # A count of the database covers all stores, so a user who may not see all of them gets none.
    lines = []
    try:
        # A question to the store ends the report of an outage that is over.
        memory.operations.versions(sight.owners)
        if sight.trust is Trust.FULL:
            figures = memory.operations.inspect(InspectionRequest(owners=sight.owners, embeddings=False, figures=False))
            lines = [f"memories: {figures.count:,}", *_queue_line(memory, sight)]
    except StoreError as error:
        lines = [str(error)] if sight.trust is Trust.FULL else []
    return "\n".join([*lines, f"trouble: {', '.join(memory.troubles.now) or 'none'}"])


def _queue_line(memory: LocalMemory, sight: Visibility) -> list[str]:
    """Return how many turns of the user could not be captured, if there are such."""
    parked = sum(each.is_parked for each in memory.operations.turns.waiting(sight.owner, sight.project))
    return [f"turns that could not be captured: {parked}; see `beaver memory queue`"] if parked else []


def list_(memory: LocalMemory, words: Words, context: CommandContext, _report: Report) -> str:
    """Show the memories active in this session, and the newest."""
    _alone("list", words)
    return _listed(memory, context, RECENT)


def active(memory: LocalMemory, words: Words, context: CommandContext, _report: Report) -> str:
    """Show the memories that the last recall of this session gave the model."""
    _alone("active", words)
    rows = _active(memory, Visibility.of_command(context, memory.home), RECENT)
    return "\n".join(map(_row, rows)) or f"This process has recalled nothing in this session. {_ELSEWHERE}"


def recent(memory: LocalMemory, words: Words, context: CommandContext, _report: Report) -> str:
    """Show the newest memories."""
    _alone("recent", words)
    filters = _filters(memory, Visibility.of_command(context, memory.home))
    return "\n".join(map(_row, _newest(memory, filters, RECENT))) or _empty(filters)


def overview(memory: LocalMemory, words: Words, context: CommandContext, _report: Report) -> str:
    """Show a short form of `list`, for the overview of all plugins."""
    _alone("overview", words)
    return _listed(memory, context, GLANCE)


def pin(memory: LocalMemory, words: Words, context: CommandContext, report: Report) -> str:
    """Pin a memory."""
    return _pinned(memory, "pin", words, context, report, pinned=True)


def unpin(memory: LocalMemory, words: Words, context: CommandContext, report: Report) -> str:
    """Unpin a memory."""
    return _pinned(memory, "unpin", words, context, report, pinned=False)


def forget(memory: LocalMemory, words: Words, context: CommandContext, report: Report) -> str:
    """Show the memory to forget; with the second word `yes`, forget it."""
    if words and words[0].strip("-").lower() == "all":
        raise CommandRefused(
            "Here one memory at a time is forgotten: forget ID yes. All of them: `beaver memory forget --all` in a"
            " terminal, which asks first."
        )
    if not words or len(words) > 2 or words[1:] not in ((), (YES,)):  # noqa: PLR2004 - an id and a word
        raise CommandRefused("Name one memory: forget ID. `list` shows the ids; `forget ID yes` erases it.")
    found = _own(memory, words[0], context, lapsed=True)
    if len(words) == 1:
        return f"This memory would be erased:\n{_row(found)}\nWrite `forget {found.id} {YES}` to erase it."
    own = Visibility.of_command(context, memory.home).own(memory.clock.now(), lapsed=True)
    if not memory.operations.forget(ForgetRequest(ids=[found.id], own=own)).forgotten:
        raise CommandRefused(_no_such(words[0]))
    report.event("memory_forgotten", memory=found.id, store=found.store.value)
    memory.trace("memory_forgotten", memory=found.id)
    return f"Memory {found.id} is forgotten: its text, its vectors and the texts in its history are erased."


def why(memory: LocalMemory, words: Words, context: CommandContext, _report: Report) -> str:
    """Show what the last recall of this session found, and what each signal added."""
    _alone("why", words)
    sight = Visibility.of_command(context, memory.home)
    last = memory.recaller.last(sight)
    if last is None:
        return f"This process has recalled nothing in this session. {_ELSEWHERE}"
    said = f"The recall gate decided `{last.decision.verdict}`: {last.decision.reason}."
    if last.decision.verdict == "skip":
        return said
    if last.skipped is not None:
        said = f"Nothing was recalled for the last prompt: {last.skipped.reason}. For the prompt before it:\n{said}"
    # Also those that have ended since.
    filters = attrs.evolve(_filters(memory, sight), lapsed=True)
    seen = {each.id: each for each in _got(memory, [hit.memory.id for hit in last.hits], filters)}
    lines = [_explained(hit, seen[hit.memory.id], last) for hit in last.hits if hit.memory.id in seen]
    return "\n".join([said, *(lines or ["No memory was found."])])


def search(memory: LocalMemory, words: Words, context: CommandContext, _report: Report) -> str:
    """Show the memories that a search for words finds."""
    text = " ".join(words)[:_LONGEST_QUERY]
    if not text.strip():
        raise CommandRefused("There are no words to search for: search WORDS.")
    sight = Visibility.of_command(context, memory.home)
    request = RecallRequest(query=text, operators=True, visible=_filters(memory, sight), limit=FOUND)
    found = memory.operations.recall(request)
    rows = [f"{hit.score:.2f} {_row(hit.memory)}" for hit in found.hits]
    return "\n".join(rows) if rows else ("No memory was found." if sight.stores else _NOTHING)


_ELSEWHERE = "`beaver why` explains turns of other processes."
_NOTHING = "The trust of this user is too low to see memories."


def _listed(memory: LocalMemory, context: CommandContext, most: int) -> str:
    """Return the memories that the session's last recall gave the model, and the newest ones."""
    sight = Visibility.of_command(context, memory.home)
    filters = _filters(memory, sight)
    parts = {
        "Active in this session:": _active(memory, sight, most),
        "Recent:": _newest(memory, filters, most),
    }
    lines = [line for title, rows in parts.items() if rows for line in (title, *map(_row, rows))]
    return "\n".join(lines) or _empty(filters)


def _active(memory: LocalMemory, sight: Visibility, most: int) -> tuple[Memory, ...]:
    last = memory.recaller.last(sight)
    return _got(memory, last.given[:most], _filters(memory, sight)) if last else ()


def _newest(memory: LocalMemory, visible: Filters, most: int) -> tuple[Memory, ...]:
    return memory.operations.list(ListRequest(visible=visible, limit=most)).memories


def _got(memory: LocalMemory, ids: Iterable[int], visible: Filters) -> tuple[Memory, ...]:
    return memory.operations.get(GetRequest(ids=ids, visible=visible)).memories


def _empty(filters: Filters) -> str:
    return "There are no memories yet." if filters.view.stores else _NOTHING


def _pinned(
    memory: LocalMemory, name: str, words: Words, context: CommandContext, report: Report, *, pinned: bool
) -> str:
    if len(words) != 1:
        raise CommandRefused(f"Name one memory: {name} ID. `list` shows the ids.")
    found = _own(memory, words[0], context)
    own = Visibility.of_command(context, memory.home).own(memory.clock.now())
    if not memory.operations.pin(PinRequest(ids=[found.id], own=own, pinned=pinned)).changed:
        raise CommandRefused(_no_such(words[0]))
    report.outcome(PLANE, OutcomeKind.UPDATED, memory=found.id, pinned=pinned)
    return f"{found.id} is {'pinned' if pinned else 'no longer pinned'}: {_title(found)}"


def _own(memory: LocalMemory, word: str, context: CommandContext, *, lapsed: bool = False) -> Memory:
    """Return a memory that the user of the command may change."""
    plain = word.isascii() and word.isdigit() and len(word) <= _LONGEST_ID
    own = Visibility.of_command(context, memory.home).own(memory.clock.now(), lapsed=lapsed)
    if not (plain and int(word)):
        raise CommandRefused(_no_such(word))
    got = memory.operations.get(GetRequest(ids=[int(word)], visible=own))
    if not got.memories:
        raise CommandRefused(damaged_text(got.damaged) if got.damaged else _no_such(word))
    return got.memories[0]


def _no_such(word: str) -> str:
    shown = word if word.isascii() and word.isdigit() and len(word) <= _LONGEST_ID else "with this id"
    return f"There is no memory {shown} that you may change. `list` shows the ids."


def _alone(name: str, words: Words) -> None:
    if words:
        raise CommandRefused(f"`{name}` takes no words; nothing was done. Write `{name}` alone.")


def _filters(memory: LocalMemory, sight: Visibility) -> Filters:
    return sight.filters(memory.clock.now())


def _row(memory: Memory) -> str:
    pinned = " pinned" if memory.pinned else ""
    when = f"{memory.created_at:%Y-%m-%d}" if memory.created_at else ""
    return f"[{memory.id}] {when} {memory.store} {_plain(memory.type)}{pinned}: {_title(memory)}"


def _title(memory: Memory) -> str:
    return _plain(heading(memory, 100))


def _plain(text: str) -> str:
    return " ".join(neutralise(text).split())


def _explained(hit: Hit, now: Memory, last: Recall) -> str:
    reason = last.reasons.get(hit.memory.id, "")
    given = "given" if hit.memory.id in last.given else f"not given, because {REASONS.get(reason, reason)}"
    shares = ", ".join(f"{name} {share:.3f}" for name, share in hit.shares.items() if share)
    ended = "" if now.superseded_by is None else f"\n      superseded by {now.superseded_by} since"
    return f"{hit.score:.3f} {_row(hit.memory)}\n      {given}; {shares or 'by date only'}{ended}"


"""The handler of each command."""


def correct(memory: LocalMemory, words: Words, context: CommandContext, report: Report) -> str:
    """Put a new statement in place of a memory."""
    if len(words) < 2:  # noqa: PLR2004 - an id and a text
        raise CommandRefused("Name a memory and the statement that holds: correct ID TEXT. `list` shows the ids.")
    request = CorrectRequest(ids=[_id(words[0])], text=" ".join(words[1:]), own=_own_view(memory, context))
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
    done = memory.operations.undo(UndoRequest(own=_own_view(memory, context)))
    if not done.forgotten:
        return "No memory was captured lately."
    lines = [f"forgot [{each.id}] {_plain(heading(each, 100))}" for each in done.forgotten]
    return "\n".join([*lines, *(f"[{id_}] holds again" for id_ in done.reopened)])


def pending(memory: LocalMemory, words: Words, context: CommandContext, report: Report) -> str:
    """List the memories that wait for approval; with an id and a choice, decide about one."""
    if words:
        return _reviewed(memory, words, context, report)
    found = memory.operations.pending(PendingRequest(own=_own_view(memory, context))).items
    rows = [f"[{each.memory.id}] {each.reason}: {_plain(heading(each.memory, 200))}" for each in found]
    if not rows:
        return "No memory waits for approval."
    return "\n".join([*rows, "Decide with `pending ID accept`, `pending ID edit TEXT` or `pending ID reject`."])


def _reviewed(memory: LocalMemory, words: Words, context: CommandContext, report: Report) -> str:
    choice = _CHOICES.get(words[1]) if len(words) > 1 else None
    if choice is None or (choice == "edit") != (len(words) > 2):  # noqa: PLR2004 - an id, a choice, a text
        raise CommandRefused("Write `pending ID accept`, `pending ID edit TEXT` or `pending ID reject`.")
    own = _own_view(memory, context)
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


def _own_view(memory: LocalMemory, context: CommandContext) -> Filters:
    return Visibility.of_command(context, memory.home).own(memory.clock.now())


def _id(word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= _LONGEST_ID and int(word)):
        raise CommandRefused("An id is a whole number; `list` shows the ids.")
    return int(word)


RUNS: Mapping[str, Run] = MappingProxyType(
    {
        "list": list_,
        "active": active,
        "recent": recent,
        "overview": overview,
        "search": search,
        "why": why,
        "pin": pin,
        "unpin": unpin,
        "forget": forget,
        "correct": correct,
        "undo": undo,
        "pending": pending,
        "status": status,
    }
)
