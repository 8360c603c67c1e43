"""The tool `memory`: the only way for a model to edit curated memory."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from beaver_hooks_curated import tool_replies
from beaver_hooks_curated.edits import ACTIONS, Operation
from beaver_hooks_curated.entries import Target
from beaver_hooks_curated.errors import CuratedError, EditRefused, MemoryUnconfirmed
from beaver_hooks_curated.reports import PLANE, tell_staged, tell_written
from beaver_hooks_curated.service import MemoryService
from beaver_hooks_curated.store import WriteResult
from beaver_hooks_curated.tool_replies import Answer
from beaver_hostspecs import Caller, OutcomeKind, Report, Tool, Turn

NAME = "memory"
MOST_FAILURES = 3
"""Failed tries in one turn after which the answer is to stop."""
MOST_OPERATIONS = 100
_MOST_TURNS = 1000
_WITHOUT_PAGE = frozenset({"invalid", "trust"})
_COUNTED = frozenset({"overflow", "no_match", "ambiguous", "missing_old_text", "emptied", "stale", "hand_grown"})

DESCRIPTION = (
    "Keep short facts that will matter in later sessions. target=user: who the user is, preferences, how to work with "
    "them. target=memory: your own notes on environment, projects, conventions and lessons. Add a fact when the user "
    "states or corrects it; replace (the whole entry) when it changes; remove when it is wrong or no longer true. "
    "old_text is a unique part of the entry meant. Use operations to do several steps at once, all or nothing: the "
    "character limit is judged on the final state. Do not keep secrets, task progress, or what is easily found again. "
    "What is kept shows in the system prompt from the next run on."
)
_STEP: Mapping[str, Any] = {
    "action": {"type": "string", "enum": list(ACTIONS), "description": "what to do"},
    "content": {"type": "string", "description": "the new entry, for add and replace"},
    "old_text": {"type": "string", "description": "a unique part of the entry to replace or remove"},
    "new_text": {"type": "string", "description": "the same as content"},
}
PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "target": {"type": "string", "enum": [target.value for target in Target], "description": "which memory"},
        **_STEP,
        "operations": {
            "type": "array",
            "description": "several steps in order, instead of action, content and old_text",
            "maxItems": MOST_OPERATIONS,
            "items": {"type": "object", "properties": _STEP, "required": ["action"], "additionalProperties": False},
        },
    },
    "required": ["target"],
    "additionalProperties": False,
}


class MemoryTool:
    """Runs the calls of the tool, and counts the failures of each turn."""

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        self._failures: OrderedDict[str, int] = OrderedDict()

    @property
    def tool(self) -> Tool:
        """The tool as the host offers it."""
        return Tool(name=NAME, description=DESCRIPTION, parameters=PARAMETERS, run=self.run, allows=self._allows)

    async def run(self, arguments: Mapping[str, Any], turn: Turn, report: Report) -> Answer:
        """Make the edit of a call, and return the answer to the model.

        It runs in a thread to its end: an edit is made and reported, although the caller is cancelled meanwhile.

        Raises:
            CuratedError: a file cannot be read or written, or another process keeps the lock.
        """
        return await asyncio.to_thread(self._answer, arguments, turn, report)

    def forget(self, turn: Turn) -> None:
        """Forget the failures of a turn that is over."""
        self._failures.pop(turn.id, None)

    def _allows(self, caller: Caller) -> bool:
        return bool(self._service.writable(caller))

    def _answer(self, arguments: Mapping[str, Any], turn: Turn, report: Report) -> Answer:
        target, batch = Target.MEMORY, bool(arguments.get("operations"))
        try:
            target, operations = read_arguments(arguments)
            self._check_trust(target, turn)
            answer = self._edit(target, operations, turn, report, batch=batch)
        except EditRefused as error:
            report.outcome(PLANE, OutcomeKind.REJECTED, target=target.value, reason=error.kind)
            return self._refused(target, error, turn, batch=batch)
        except MemoryUnconfirmed as error:
            report.outcome(PLANE, OutcomeKind.REJECTED, target=target.value, reason="unconfirmed")
            return tool_replies.unconfirmed(error)
        except CuratedError as error:
            report.outcome(PLANE, OutcomeKind.FAILED, target=target.value, error=type(error).__name__)
            raise
        if "staged" not in answer:
            self.forget(turn)
        return answer

    def _check_trust(self, target: Target, turn: Turn) -> None:
        allowed = self._service.writable(turn)
        if target not in allowed:
            names = ", ".join(each.file_name for each in allowed) or "neither of the two files"
            raise EditRefused(f"The user of this turn may change only {names}; nothing was written.", kind="trust")

    def _edit(
        self, target: Target, operations: Sequence[Operation], turn: Turn, report: Report, *, batch: bool
    ) -> Answer:
        service = self._service
        echoes = any(turn.was_injected(operation.content) for operation in operations if operation.content)
        if service.settings.approval:
            waiting = service.stage(target, operations, turn.user, echoes=echoes, batch=batch)
            tell_staged(waiting, report)
            report.outcome(PLANE, OutcomeKind.QUEUED, target=target.value, staged=waiting.id)
            return tool_replies.staged(waiting)
        written = attrs.evolve(service.change(target, operations, turn.user, batch=batch), echoes=echoes)
        tell_written(written, report, service, turn.user)
        report.outcome(PLANE, _kind(written), target=target.value)
        return tool_replies.success(written, operations, batch=batch)

    def _refused(self, target: Target, error: EditRefused, turn: Turn, *, batch: bool) -> Answer:
        if self._is_hopeless(turn, error):
            return tool_replies.terminal()
        page = None if error.kind in _WITHOUT_PAGE else self._service.page(target, turn.user)
        return tool_replies.failure(error, page, batch=batch)

    def _is_hopeless(self, turn: Turn, error: EditRefused) -> bool:
        """Count the failure, and say whether it was one too many."""
        if error.kind not in _COUNTED:
            return False
        count = self._failures.pop(turn.id, 0) + 1
        self._failures[turn.id] = count
        if len(self._failures) > _MOST_TURNS:
            self._failures.popitem(last=False)
        return count > MOST_FAILURES


def read_arguments(arguments: Mapping[str, Any]) -> tuple[Target, tuple[Operation, ...]]:
    """Return the target and the operations of a call; a list of operations comes before a single one.

    Raises:
        EditRefused: the target is unknown, or the operations are malformed.
    """
    target = arguments.get("target") or Target.MEMORY.value
    if target not in list(Target):
        raise EditRefused("target must be `memory` or `user`.", kind="invalid")
    steps = arguments.get("operations") or [arguments]
    if isinstance(steps, str) or not isinstance(steps, Sequence) or len(steps) > MOST_OPERATIONS:
        raise EditRefused(f"operations must be a list of at most {MOST_OPERATIONS} steps.", kind="invalid")
    return Target(target), tuple(_operation(step) for step in steps)


def _operation(step: object) -> Operation:
    if not isinstance(step, Mapping):
        raise EditRefused("Each entry of operations must be an object with an action.", kind="invalid")
    content = step.get("content") if step.get("content") is not None else step.get("new_text")
    try:
        return Operation(action=step.get("action") or "", content=content, old_text=step.get("old_text"))
    except TypeError:
        raise EditRefused("action, content and old_text must be texts.", kind="invalid") from None


def _kind(written: WriteResult) -> OutcomeKind:
    if written.change is None:
        return OutcomeKind.DUPLICATE
    return OutcomeKind.UPDATED if written.change.removed else OutcomeKind.STORED
