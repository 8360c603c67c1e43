"""Carries out operations by their names, for every transport alike."""

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import Any, cast

import attrs
import cattrs

from beaver_hostspecs import BeaverError
from beaver_memory.dispatch.decoder import decode, structure
from beaver_memory.dispatch.envelopes import (
    InvalidFields,
    Problem,
    RequestEnvelope,
    ResponseEnvelope,
    Status,
    problem_of_size,
)
from beaver_memory.errors import InvalidRequest
from beaver_memory.records import Store
from beaver_memory.runtime.memory_runtime import MemoryRuntime
from beaver_memory.runtime.operations import Operations
from beaver_memory.runtime.requests import CloseRequest
from beaver_memory.runtime.table import EVERYONE, OPERATIONS, OWNER_AND_HOST, Caller, Operation

_ANY_TIME = datetime.fromtimestamp(0, UTC)

_Answered = tuple[asyncio.Future[str], asyncio.Future[ResponseEnvelope]]
"""The digest of a request with a key, and its response."""

MOST_RESPONSES = 1_000
"""Responses that are kept for repeated idempotency keys."""


OF_THE_RUNTIME: Mapping[str, frozenset[Caller]] = MappingProxyType({"capabilities": EVERYONE, "close": OWNER_AND_HOST})
"""Operations that belong to the memory as a whole, and who may call them."""

_CONVERTER = cattrs.Converter()
_CONVERTER.register_unstructure_hook(datetime, datetime.isoformat)


@attrs.frozen
class Rejected(Exception):
    """An operation is not carried out."""

    status: Status
    problems: tuple[Problem, ...]


class Dispatcher:
    """Carries out operations of one memory. It belongs to the event loop of the memory.

    Args:
        runtime: the memory.
        operations: the table of operations.
    """

    def __init__(self, runtime: MemoryRuntime, operations: Mapping[str, Operation[Any, Any]] = OPERATIONS) -> None:
        self._runtime, self._operations = runtime, operations
        self._responses: OrderedDict[tuple[object, ...], _Answered] = OrderedDict()

    async def dispatch(self, envelope: RequestEnvelope) -> ResponseEnvelope:
        """Return the response to a request. Only cancellation and faults of the program raise."""
        try:
            if envelope.operation in OF_THE_RUNTIME:
                return await self._of_the_runtime(envelope)
            operation = self._admitted(envelope)
            if envelope.idempotency_key is None or not operation.writes:
                return await self._carried_out(operation, envelope)
            return await self._once(operation, envelope)
        except Rejected as error:
            return self._response(envelope, error.status, problems=error.problems)
        except InvalidFields as error:
            return self._response(envelope, "invalid", problems=error.problems)

    async def _of_the_runtime(self, envelope: RequestEnvelope) -> ResponseEnvelope:
        """Carry out `capabilities` or `close`, which belong to the memory as a whole."""
        self._check_source(envelope, OF_THE_RUNTIME[envelope.operation])
        if envelope.operation == "capabilities":
            return self._response(envelope, "done", report=encode(self._runtime.capabilities()))
        request = structure(CloseRequest, envelope.request)
        return self._response(envelope, "done", report=encode(await self._runtime.close(request)))

    def _admitted(self, envelope: RequestEnvelope) -> Operation[Any, Any]:
        """Return the operation, if this source may call it in this memory.

        Raises:
            Rejected: it may not.
        """
        operation = self._operations.get(envelope.operation)
        if operation is None:
            known = ", ".join([*self._operations, *OF_THE_RUNTIME])
            raise _rejected("invalid", "unknown_operation", f"The operations are: {known}.")
        self._check_source(envelope, operation.callers)
        if operation.private and Store.PRIVATE not in envelope.source.visible.view.stores:
            raise _rejected("refused", "trust", f"`{operation.name}` is for callers that see the private store.")
        capability = self._runtime.capability(operation)
        if not capability.visible:
            raise _rejected("refused", "not_available", f"`{operation.name}` is not available: {capability.reason}.")
        return operation

    def _check_source(self, envelope: RequestEnvelope, callers: frozenset[Caller]) -> None:
        profile = self._runtime.profile.name
        if envelope.profile not in (None, profile):
            raise _rejected("refused", "another_profile", f"This memory has the profile {profile}.")
        if envelope.source.caller not in callers:
            allowed = ", ".join(sorted(callers))
            raise _rejected("refused", "not_allowed", f"Only these callers may use `{envelope.operation}`: {allowed}.")

    async def _carried_out(self, operation: Operation[Any, Any], envelope: RequestEnvelope) -> ResponseEnvelope:
        """Decode the request, carry it out and encode its report, all in one thread of the memory."""
        try:
            return await self._runtime.run(partial(self._answer, operation, envelope), wrote=operation.writes)
        except InvalidFields as error:
            return self._response(envelope, "invalid", problems=error.problems)
        except InvalidRequest as error:
            problem = Problem(code="invalid", field=error.field, sentence=str(error))
            return self._response(envelope, "invalid", problems=(problem,))
        except BeaverError as error:
            return self._response(envelope, "failed", problems=(_fault(error, envelope.source.caller),))

    def _answer(
        self, operation: Operation[Any, Any], envelope: RequestEnvelope, operations: Operations
    ) -> ResponseEnvelope:
        report = operation.run(operations, decode(operation, envelope.request, envelope.source))
        refusal = getattr(report, "refusal", None)
        if refusal is None:
            return self._response(envelope, "done", report=encode(report))
        problem = Problem(code=refusal.code, sentence=refusal.sentence)
        return self._response(envelope, "refused", report=encode(report), problems=(problem,))

    async def _once(self, operation: Operation[Any, Any], envelope: RequestEnvelope) -> ResponseEnvelope:
        """Carry out a request with an idempotency key, unless the key's first request has been or is being answered."""
        key = (envelope.source.owner, envelope.source.name, envelope.idempotency_key)
        digest = asyncio.ensure_future(asyncio.to_thread(_digest, envelope))
        if (first := self._responses.get(key)) is None:
            task = asyncio.ensure_future(self._carried_out(operation, envelope))
            self._responses[key] = (digest, task)
            task.add_done_callback(lambda done: self._settle(key, done))
            return await asyncio.shield(task)
        if await digest != await asyncio.shield(first[0]):
            raise _rejected("refused", "key_in_use", "The idempotency key belongs to another request; use a new one.")
        return attrs.evolve(await asyncio.shield(first[1]), replayed=True)

    def _settle(self, key: tuple[object, ...], done: "asyncio.Future[ResponseEnvelope]") -> None:
        """Drop a response that the caller may correct or repeat, and the oldest responses beyond the limit."""
        if done.cancelled() or done.exception() is not None or done.result().status in {"invalid", "failed"}:
            self._responses.pop(key, None)
        while len(self._responses) > MOST_RESPONSES:
            self._responses.popitem(last=False)

    def _response(
        self,
        envelope: RequestEnvelope,
        status: Status,
        *,
        report: Mapping[str, Any] | None = None,
        problems: tuple[Problem, ...] = (),
    ) -> ResponseEnvelope:
        return ResponseEnvelope(
            operation=envelope.operation,
            status=status,
            report=report or {},
            problems=problems,
            profile=self._runtime.profile.name,
            idempotency_key=envelope.idempotency_key,
        )


def _rejected(status: Status, code: str, sentence: str) -> Rejected:
    return Rejected(status, (Problem(code=code, sentence=sentence),))


def _fault(error: BeaverError, caller: Caller) -> Problem:
    """Return the problem of a fault. Only the owner is shown its text, which may name a path."""
    category = getattr(error, "category", "fault")
    shown = str(error) if caller is Caller.OWNER else f"The memory cannot do its work ({category}); try again later."
    return Problem(code=category, sentence=shown)


def _digest(envelope: RequestEnvelope) -> str:
    """Return what makes two requests the same: their fields, and the rights of their sources. Blocking.

    A request that is too large to be decoded has none, and is answered as such.
    """
    if problem_of_size(envelope.request):
        return ""
    source = envelope.source
    rights = [each.within(now=_ANY_TIME) for each in (source.visible, source.own)]
    told = [envelope.operation, envelope.request, source.caller, source.store, source.every_owner, repr(rights)]
    digest = hashlib.sha256()
    # `dumps` would keep every other thread waiting until a large request is one text.
    for part in json.JSONEncoder(sort_keys=True, default=repr).iterencode(told):
        digest.update(part.encode("ascii"))
    return digest.hexdigest()


def encode(report: object) -> dict[str, Any]:
    """Return the fields of a report, by the names of its class; moments are ISO texts."""
    return cast("dict[str, Any]", _CONVERTER.unstructure(report))
