"""`MemoryRuntime`: an open memory for callers on an event loop, and what it can do."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Self, TypeVar

import attrs
from attrs import field

from beaver_memory.errors import OperationUnavailable, RuntimeNotOpen, RuntimeOverloaded
from beaver_memory.runtime import table
from beaver_memory.runtime.factory import open_engine
from beaver_memory.runtime.maintenance import Upkeep
from beaver_memory.runtime.operations import Operations
from beaver_memory.runtime.profile import CLOSE_SECONDS, Location, Profile, RuntimeServices
from beaver_memory.runtime.reports import CloseReport
from beaver_memory.runtime.requests import CloseRequest
from beaver_memory.runtime.table import OPERATIONS, Operation
from beaver_toolkit import workers
from beaver_toolkit.workers import Workers

Q = TypeVar("Q")
R = TypeVar("R")
T = TypeVar("T")

NOT_OPEN = "The memory is not open; call it between `open` and `close`."


@attrs.frozen(kw_only=True)
class Capability:
    """One operation.

    Attributes:
        visible: whether this memory carries it out.
        reason: why not; empty if it is visible.
    """

    visible: bool = True
    reason: str = ""


@attrs.frozen(kw_only=True)
class CapabilityCatalog:
    """The operations of a memory, and how it finds memories.

    Attributes:
        profile: the name of its profile.
        operations: each operation by its name.
        embedder: the configured embedder; `None` for searches by words alone.
        vectors: what finds the nearest vectors.
        formula: the formula of ranking.
    """

    profile: str
    operations: Mapping[str, Capability] = field(factory=dict)
    embedder: str | None = None
    vectors: str
    formula: str

    def __getattr__(self, name: str) -> Capability:
        """Return an operation by its name, as in `capabilities.write.visible`."""
        try:
            return self.operations[name]
        except KeyError:
            raise AttributeError(name) from None


def capability_of(
    operation: Operation[Any, Any], profile: Profile, services: RuntimeServices, lacks: Mapping[str, str]
) -> Capability:
    """Return whether a memory carries out an operation.

    Args:
        operation: the operation.
        profile: of the memory.
        services: of the process.
        lacks: for each service of the open memory itself, why it is missing; empty if it is there.
    """
    if operation.name in profile.withheld:
        return Capability(visible=False, reason=f"the profile {profile.name} withholds it")
    reasons = [lacks.get(each, _lack_of(each, services)) for each in sorted(operation.services)]
    reason = ", ".join(filter(None, reasons))
    return Capability(visible=not reason, reason=reason)


def _lack_of(service: str, services: RuntimeServices) -> str:
    return "" if getattr(services, service, None) is not None else f"it needs {service}"


def capability_catalog(
    profile: Profile, services: RuntimeServices, lacks: Mapping[str, str], embedder: str | None
) -> CapabilityCatalog:
    """Return the catalogue of a memory."""
    found = {name: capability_of(each, profile, services, lacks) for name, each in OPERATIONS.items()}
    found |= {"capabilities": Capability(), "close": Capability()}
    return CapabilityCatalog(
        profile=profile.name,
        operations=dict(sorted(found.items())),
        embedder=embedder,
        vectors=profile.vectors,
        formula=profile.formula,
    )


def _in_thread(operation: Operation[Q, R]) -> "Callable[[MemoryRuntime, Q], Coroutine[Any, Any, R]]":
    """Return the method for an operation of the table."""

    async def method(self: "MemoryRuntime", request: Q) -> R:
        return await self.carry_out(operation, request)

    method.__name__ = method.__qualname__ = operation.name
    method.__doc__ = operation.run.__doc__
    return method


class MemoryRuntime:
    """An open memory. Every operation takes a request and returns a report.

    The operations run in threads of the runtime, and belong to the event loop that opened it. Between operations the
    runtime embeds new memories and stores which ones were recalled.

    Raises of every operation:
        RuntimeNotOpen: the memory is closed.
        RuntimeOverloaded: too many operations wait.
        OperationUnavailable: the profile withholds the operation, or it needs a service that is missing.
        StoreError: the store cannot do its work; `category` says why.

    Args:
        profile: how the memory works.
        location: where it lies.
        services: of the process.
    """

    def __init__(self, profile: Profile, location: Location, services: RuntimeServices) -> None:
        self.profile, self.location, self.services = profile, location, services
        self.troubles = services.troubles
        self._workers = Workers("beaver-memory")
        self._operations: Operations | None = None
        self._lacks: Mapping[str, str] = {}
        self._upkeep: Upkeep | None = None
        self._closing = False

    @classmethod
    async def open(cls, profile: Profile, location: Location, services: RuntimeServices) -> Self:
        """Open a memory.

        Raises:
            StoreError: the database cannot be used.
            ConfigurationError: the settings of the embedder do not fit.
        """
        runtime = cls(profile, location, services)
        await runtime.start()
        return runtime

    async def start(self) -> None:
        """Open the memory; see `open`. After a failure or a cancellation, `close` waits for what still runs."""
        try:
            await self._workers.run(self._open)
        except BaseException:
            self._workers.shut(self._close)
            raise
        self._upkeep = Upkeep(self.operations, self._workers, self.services.report)
        self._upkeep.begin()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def operations(self) -> Operations:
        """The operations as blocking calls, for code that runs in a thread; see `run`.

        Raises:
            RuntimeNotOpen: the memory is not open.
        """
        if self._operations is None or self._closing:
            raise RuntimeNotOpen(NOT_OPEN)
        return self._operations

    write = _in_thread(table.WRITE)
    recall = _in_thread(table.RECALL)
    project = _in_thread(table.PROJECT)
    get = _in_thread(table.GET)
    list = _in_thread(table.LIST)
    timeline = _in_thread(table.TIMELINE)
    history = _in_thread(table.HISTORY)
    people = _in_thread(table.PEOPLE)
    sessions = _in_thread(table.SESSIONS)
    inspect = _in_thread(table.INSPECT)
    pin = _in_thread(table.PIN)
    forget = _in_thread(table.FORGET)
    export = _in_thread(table.EXPORT)
    damaged = _in_thread(table.DAMAGED)
    import_ = _in_thread(table.IMPORT)
    embed = _in_thread(table.EMBED)
    recover = _in_thread(table.RECOVER)
    capture = _in_thread(table.CAPTURE)
    correct = _in_thread(table.CORRECT)
    undo = _in_thread(table.UNDO)
    pending = _in_thread(table.PENDING)
    review = _in_thread(table.REVIEW)

    async def carry_out(self, operation: Operation[Q, R], request: Q) -> R:
        """Return the report of an operation of the table.

        Raises:
            OperationUnavailable: the profile withholds the operation, or it needs a service that is missing.
        """
        capability = self.capability(operation)
        if not capability.visible:
            raise OperationUnavailable(f"`{operation.name}` is not available: {capability.reason}.")
        return await self.run(lambda operations: operation.run(operations, request), wrote=operation.writes)

    def capability(self, operation: Operation[Any, Any]) -> Capability:
        """Return whether this memory carries out an operation."""
        return capability_of(operation, self.profile, self.services, self._lacks)

    def capabilities(self) -> CapabilityCatalog:
        """Return which operations this memory carries out, and with what."""
        embedder = None if self._operations is None else self._operations.embedder
        return capability_catalog(self.profile, self.services, self._lacks, embedder)

    async def close(self, request: CloseRequest | None = None) -> CloseReport:
        """Store which memories were recalled, and close the memory. An operation that hangs is left running."""
        reason = (request or CloseRequest()).reason
        if self._closing:
            return CloseReport(reason=reason, outcome="already_closed")
        self._closing = True
        try:
            if self._upkeep is not None:
                await self._upkeep.end()
        finally:
            self._workers.shut(self._close)
        ended = await self._workers.ended(CLOSE_SECONDS)
        return CloseReport(reason=reason, outcome="closed" if ended else "incomplete")

    async def run(self, work: Callable[[Operations], T], *, wrote: bool = False) -> T:
        """Return the result of several operations, run one after the other in one thread.

        Args:
            work: called with the operations.
            wrote: it may have written, so that upkeep has something to do.
        """
        operations, loop = self.operations, asyncio.get_running_loop()

        def carried_out() -> T:
            try:
                return work(operations)
            finally:
                # Upkeep embeds, and retries an embedder that has failed. The caller may have given up by now.
                if wrote or operations.probe_in() is not None:
                    with contextlib.suppress(RuntimeError):  # the loop has ended, and upkeep with it
                        loop.call_soon_threadsafe(self.wake)

        try:
            return await self._workers.run(carried_out)
        except workers.Overloaded as error:
            if self._closing:
                raise RuntimeNotOpen(NOT_OPEN) from error
            raise RuntimeOverloaded("The memory has too many waiting calls; try again later.") from error

    def wake(self) -> None:
        """Start a round of upkeep. In the event loop only."""
        if self._upkeep is not None:
            self._upkeep.wake()

    def _open(self) -> None:
        """Open the engine, in a thread; the caller of `open` may have given up by then."""
        opened = open_engine(self.profile, self.location, self.services)
        self._lacks = opened.lacks
        self._operations = Operations(opened.engine, opened.embedder, self.profile, self.location, self.services)

    def _close(self) -> None:
        if self._operations is not None:
            self._operations.close()
