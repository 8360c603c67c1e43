"""The commands under `/memory local`, as the host offers them. The first call of a command imports its handler."""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from beaver_hooks_local.tools.definitions import Serving
from beaver_hooks_local.trust import sees_any
from beaver_hostspecs import Command, CommandContext, Report

if TYPE_CHECKING:
    from beaver_hooks_local.memory import LocalMemory

_SUMMARIES: Mapping[str, str] = MappingProxyType(
    {
        "list": "the memories active in this session, and the newest",
        "active": "the memories that the model got last in this session",
        "recent": "the newest memories",
        "overview": "a short form of `list`, which `/memory` shows",
        "search": 'search memories: search WORDS, with "exact words" and prefix*',
        "why": "what the last recall of this session found, with scores",
        "pin": "pin a memory, so that it ranks higher: pin ID",
        "unpin": "unpin a memory: unpin ID",
        "forget": "show a memory before forgetting it: forget ID; `forget ID yes` erases it",
        "correct": "put a new statement in place of a memory: correct ID TEXT",
        "undo": "forget the memories of the last captured turn",
        "pending": "the memories that wait for approval; `pending ID accept`, `edit TEXT` or `reject` decides",
        "status": "the number of your memories, and the problems",
    }
)
_CHANGING = frozenset({"pin", "unpin", "forget", "correct", "undo", "pending"})
_AFTER_CAPTURE = frozenset({"undo", "pending", "list", "recent", "search", "correct"})
"""Commands that show or change captured memories, so the messages that wait are captured before them."""


Flush = Callable[[], Awaitable[None]]


async def _nothing() -> None:
    """Capture nothing."""


def offered(serve: Serving, flush: Flush = _nothing) -> tuple[Command, ...]:
    """Return the commands.

    Args:
        serve: runs work with the open memory.
        flush: captures the messages that wait.
    """
    return tuple(_command(name, summary, serve, flush) for name, summary in _SUMMARIES.items())


def _command(name: str, summary: str, serve: Serving, flush: Flush) -> Command:
    async def ran(words: tuple[str, ...], context: CommandContext, report: Report) -> str:
        def work(memory: "LocalMemory") -> str:
            from beaver_hooks_local.command_handlers import RUNS  # noqa: PLC0415 - it is slow, and loaded off the loop

            return RUNS[name](memory, words, context, report)

        if name in _AFTER_CAPTURE:
            await flush()
        return await serve(work, wrote=name in _CHANGING)

    return Command(name=name, summary=summary, run=ran, allows=sees_any)
