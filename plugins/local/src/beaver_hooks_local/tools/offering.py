"""The tools as the host offers them."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from beaver_hooks_local.hosting.memory import LocalMemory
from beaver_hooks_local.tools import reading, writing
from beaver_hooks_local.tools.arguments import ArgumentError, checked
from beaver_hooks_local.tools.schemas import DESCRIPTIONS, SCHEMAS
from beaver_hostspecs import OutcomeKind, Report, Tool, Turn

T = TypeVar("T")
Answer = dict[str, Any]
Work = Callable[[LocalMemory, Mapping[str, Any], Turn, Report], Answer]

WRITES = "memory_write"

_WORK: Mapping[str, Work] = MappingProxyType(
    {
        "memory_search": reading.search,
        "memory_timeline": reading.timeline,
        "memory_get": reading.get,
        WRITES: writing.write,
        "memory_history": reading.history,
        "memory_people": reading.people,
        "memory_sessions": reading.sessions,
    }
)


class Serving(Protocol):
    """Who does something with the open memory, off the event loop."""

    def __call__(self, work: Callable[[LocalMemory], T], /, *, wrote: bool = False) -> Awaitable[T]:
        """Return what `work` returns.

        Args:
            work: what to do.
            wrote: it may have written something.

        Raises:
            LocalError: the memory is not open, or overloaded.
        """


def offered(serve: Serving) -> tuple[Tool, ...]:
    """Return the tools."""
    return tuple(
        Tool(name=name, description=DESCRIPTIONS[name], parameters=SCHEMAS[name], run=partial(_run, serve, name))
        for name in _WORK
    )


async def _run(serve: Serving, name: str, arguments: Mapping[str, Any], turn: Turn, report: Report) -> Answer:
    """Run a tool; arguments that do not fit are told to the model, which can mend them."""
    try:
        given = checked(arguments, SCHEMAS[name])
    except ArgumentError as error:
        if name == WRITES:
            report.outcome(writing.PLANE, OutcomeKind.REJECTED, reason="arguments")
        return {"error": str(error)}

    def work(memory: LocalMemory) -> Answer:
        return _WORK[name](memory, given, turn, report)

    return await serve(work, wrote=name == WRITES)
