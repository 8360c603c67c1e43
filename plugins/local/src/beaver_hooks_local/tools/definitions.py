"""The tools as the host offers them. The first call imports the slow modules behind them, off the event loop."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from beaver_hooks_local.tools.schemas import DESCRIPTIONS, SCHEMAS, ArgumentError, checked
from beaver_hooks_local.trust import sees_any
from beaver_hostspecs import OutcomeKind, Report, Tool, Turn

if TYPE_CHECKING:
    from beaver_hooks_local.memory import LocalMemory

T = TypeVar("T")
Answer = dict[str, Any]

PLANE = "local"
"""The plane in the outcomes of writes."""

WRITES = "memory_write"


class Serving(Protocol):
    """Runs work with the open memory, off the event loop."""

    def __call__(self, work: "Callable[[LocalMemory], T]", /, *, wrote: bool = False) -> Awaitable[T]:
        """Return the result of `work`.

        Args:
            work: called with the memory.
            wrote: it may have written something.

        Raises:
            RuntimeNotOpen: the memory is not open.
            RuntimeOverloaded: too many calls wait for it.
        """


def offered(serve: Serving) -> tuple[Tool, ...]:
    """Return the tools."""
    return tuple(
        Tool(
            name=name,
            description=DESCRIPTIONS[name],
            parameters=SCHEMAS[name],
            run=partial(_run, serve, name),
            allows=sees_any,
        )
        for name in SCHEMAS
    )


async def _run(serve: Serving, name: str, arguments: Mapping[str, Any], turn: Turn, report: Report) -> Answer:
    """Run a tool; for arguments that do not fit, return an error that the model can fix."""
    try:
        given = checked(arguments, SCHEMAS[name])
    except ArgumentError as error:
        if name == WRITES:
            report.outcome(PLANE, OutcomeKind.REJECTED, reason="arguments")
        return {"error": str(error)}

    def work(memory: "LocalMemory") -> Answer:
        from beaver_hooks_local.tools.dispatch import DONE  # noqa: PLC0415 - it is slow, and loaded off the loop

        return DONE[name](memory, given, turn, report)

    return await serve(work, wrote=name == WRITES)
