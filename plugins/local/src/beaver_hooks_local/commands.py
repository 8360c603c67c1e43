"""The commands under `/memory local`, as the host offers them. What they do is imported when one is run."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from beaver_hooks_local.errors import LocalError
from beaver_hooks_local.tools.offering import Serving
from beaver_hooks_local.trust import sees_any
from beaver_hostspecs import Command, CommandContext, Report

if TYPE_CHECKING:
    from beaver_hooks_local.hosting.memory import LocalMemory

_SUMMARIES: Mapping[str, str] = MappingProxyType(
    {
        "list": "what is active in this session, and what is recent",
        "active": "what the model was given last in this session",
        "recent": "what was written last",
        "overview": "the same in short, as `/memory` shows it",
        "search": "what is found: search WORDS",
        "why": "what the last recall of this session found, with scores",
        "pin": "keep and prefer a memory: pin ID",
        "unpin": "take that back: unpin ID",
        "forget": "show what would be forgotten: forget ID; forget ID yes does it",
        "status": "how many memories there are for you, and what is wrong",
    }
)
_CHANGING = frozenset({"pin", "unpin", "forget"})


class CommandRefused(LocalError):
    """The words of a command mean nothing that can be done."""


def offered(serve: Serving) -> tuple[Command, ...]:
    """Return the commands."""
    return tuple(_command(name, summary, serve) for name, summary in _SUMMARIES.items())


def _command(name: str, summary: str, serve: Serving) -> Command:
    async def ran(words: tuple[str, ...], context: CommandContext, report: Report) -> str:
        def work(memory: "LocalMemory") -> str:
            runs = import_module("beaver_hooks_local.hosting.commanding").RUNS
            return cast("str", runs[name](memory, words, context, report))

        return await serve(work, wrote=name in _CHANGING)

    return Command(name=name, summary=summary, run=ran, allows=sees_any)
