"""Calls the plugin for a command, with errors that end in an exit code."""

import contextlib
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from beaver_hooks_local.cli.output import say
from beaver_hooks_local.cli.progress import Bar
from beaver_hooks_local.plugin import Local
from beaver_hostspecs import PluginError, Shell
from beaver_memory.embedding.errors import EmbeddingError
from beaver_memory.errors import EngineError

if TYPE_CHECKING:
    from beaver_hooks_local.memory import LocalMemory

T = TypeVar("T")

NAME = "local"

LEFT_OUT = "Until then, memories that hold in all of your projects are left out."
"""The sentence for the user when the database of the person cannot be read."""


def ask(shell: Shell, work: "Callable[[LocalMemory], T]", *, wrote: bool = False) -> T:
    """Return the result of `work`, run in a thread of the plugin; `wrote` says that it may have written."""
    return call(shell, lambda plugin: plugin.serve(work, wrote=wrote))


def ask_long(shell: Shell, work: "Callable[[LocalMemory, Bar], T]", *, wrote: bool = False, shown: bool = True) -> T:
    """Return the result of `work`, which calls a bar at each step; after an interrupt the next step ends it.

    Args:
        shell: of the plugin.
        work: called with the memory and the bar.
        wrote: it may have written.
        shown: whether the bar is visible.
    """
    bar = Bar(shown=shown)

    async def served(plugin: Local) -> T:
        try:
            return await plugin.serve(partial(_with, work, bar), wrote=wrote)
        finally:
            bar.end()

    return call(shell, served)


def call(shell: Shell, function: Callable[[Local], Awaitable[T]]) -> T:
    """Return the result of `await function(plugin)`.

    Raises:
        PluginUnavailable: the plugin could not be loaded, for example because its database is damaged; says why.
        UnknownPlugin: the memory is off.
        PluginError: the memory or the embedder fails.
    """

    async def called(plugin: Local) -> T:
        try:
            return await function(plugin)
        finally:
            if trouble := plugin.memory.operations.personal_trouble:
                say(f"{trouble} {LEFT_OUT}", err=True)

    with explained():
        return shell.call(called)


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Turn errors of the memory into `PluginError`, which tells the host that this plugin failed and why."""
    try:
        yield
    except (EngineError, EmbeddingError) as error:
        raise PluginError(str(error), plugin=NAME) from error


def _with(work: "Callable[[LocalMemory, Bar], T]", bar: Bar, memory: "LocalMemory") -> T:
    return work(memory, bar)
