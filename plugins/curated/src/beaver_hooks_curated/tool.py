"""The tool `memory`: the only way for a model to edit curated memory."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from beaver_hooks_curated import tool_replies
from beaver_hooks_curated.access import writable
from beaver_hooks_curated.approvals import Staged
from beaver_hooks_curated.edits import ACTIONS, Operation
from beaver_hooks_curated.entries import Page, Target
from beaver_hooks_curated.errors import CuratedError, EditRefused, MemoryUnconfirmed
from beaver_hooks_curated.reports import PLANE, tell_staged, tell_written
from beaver_hooks_curated.service import MemoryService
from beaver_hooks_curated.store import Written
from beaver_hostspecs import Caller, OutcomeKind, Report, Tool, Turn

NAME = "memory"
MOST_FAILURES = 3
"""Failed tries in one turn after which the answer is to stop."""
MOST_OPERATIONS = 100
_MOST_TURNS = 1000
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

    async def run(self, arguments: Mapping[str, Any], turn: Turn, report: Report) -> tool_replies.Answer:
        """Make the edit of a call, and return the answer to the model.

        Raises:
            CuratedError: a file cannot be read or written, or another process keeps the lock.
        """
        target = Target.MEMORY
        try:
            target, operations = read_arguments(arguments)
            self._check_trust(target, turn)
        except EditRefused as error:
            _tell_failure(target, error, report)
            return tool_replies.failure(error, None, self._service.scan, batch=False)
        batch = bool(arguments.get("operations"))
        echoes = any(turn.was_injected(operation.content) for operation in operations if operation.content)
        call = partial(self._do, target, operations, turn.user, report, echoes=echoes, batch=batch)
        try:
            answer = await asyncio.to_thread(call)
        except EditRefused as error:
            return await self._refused(target, error, turn, batch=batch)
        except MemoryUnconfirmed as error:
            return tool_replies.unconfirmed(error)
        if "staged" not in answer:
            self.forget(turn)
        return answer

    def forget(self, turn: Turn) -> None:
        """Forget the failures of a turn that is over."""
        self._failures.pop(turn.id, None)

    def _allows(self, caller: Caller) -> bool:
        return bool(writable(caller, per_user=self._service.settings.per_user))

    def _check_trust(self, target: Target, turn: Turn) -> None:
        allowed = writable(turn, per_user=self._service.settings.per_user)
        if target not in allowed:
            names = ", ".join(each.file_name for each in allowed) or "neither of the two files"
            raise EditRefused(f"The user of this turn may change only {names}; nothing was written.", kind="trust")

    def _do(
        self, target: Target, operations: Sequence[Operation], user: str | None, report: Report, *, echoes: bool,
        batch: bool,
    ) -> tool_replies.Answer:  # fmt: skip
        """Make the edit and report it, in a thread: the caller may be cancelled before the write is done."""
        service = self._service
        try:
            if service.settings.approval:
                waiting = service.stage(target, operations, user, echoes=echoes, batch=batch)
                _tell_waiting(waiting, report)
                return tool_replies.staged(waiting, service.scan)
            written = attrs.evolve(service.change(target, operations, user, batch=batch), echoes=echoes)
        except CuratedError as error:
            _tell_failure(target, error, report)
            raise
        _tell(written, report, well=written.change is not None and service.is_well(user))
        return tool_replies.success(written, operations, service.scan, batch=batch)

    async def _refused(self, target: Target, error: EditRefused, turn: Turn, *, batch: bool) -> tool_replies.Answer:
        if self._is_hopeless(turn, error):
            return tool_replies.terminal()
        page: Page | None = None
        if error.kind != "invalid":
            page = await asyncio.to_thread(self._service.page, target, turn.user)
        return tool_replies.failure(error, page, self._service.scan, batch=batch)

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
    texts = (step.get("action"), content, step.get("old_text"))
    if not all(text is None or isinstance(text, str) for text in texts):
        raise EditRefused("action, content and old_text must be texts.", kind="invalid")
    return Operation(action=texts[0] or "", content=texts[1], old_text=texts[2])


def _tell_failure(target: Target, error: CuratedError, report: Report) -> None:
    if isinstance(error, EditRefused):
        report.outcome(PLANE, OutcomeKind.REJECTED, target=target.value, reason=error.kind)
    elif isinstance(error, MemoryUnconfirmed):
        report.outcome(PLANE, OutcomeKind.REJECTED, target=target.value, reason="unconfirmed")
    else:
        report.outcome(PLANE, OutcomeKind.FAILED, target=target.value, error=type(error).__name__)


def _tell_waiting(waiting: Staged, report: Report) -> None:
    tell_staged(waiting, report)
    report.outcome(PLANE, OutcomeKind.QUEUED, target=waiting.target.value, staged=waiting.id)


def _tell(written: Written, report: Report, *, well: bool) -> None:
    tell_written(written, report, well=well)
    if written.change is None:
        kind = OutcomeKind.DUPLICATE
    else:
        kind = OutcomeKind.UPDATED if written.change.removed else OutcomeKind.STORED
    report.outcome(PLANE, kind, target=written.page.target.value)
