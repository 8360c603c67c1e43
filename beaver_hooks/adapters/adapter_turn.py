"""The turn that an adapter holds: it replays one recall at each model step, and is closed once."""

import asyncio
import contextlib
import weakref
from collections.abc import Callable, Coroutine, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import attrs

from beaver_hooks.adapters.texts import text_of
from beaver_hooks.text import presentable
from beaver_hooks.tools.outcomes import MARK, render_output
from beaver_hooks.turns.open_turn import OpenTurn
from beaver_hostspecs import DropReason, HostError
from beaver_hostspecs.naming import type_name

if TYPE_CHECKING:
    from beaver_hooks.adapters.core import Adapter

MOST_CHARACTERS = 100_000
"""The most characters of a tool's output that plugins get."""


@attrs.define(kw_only=True, eq=False)
class _End:
    """The end of a turn that the framework does not close."""

    reason: DropReason = DropReason.ABANDONED


@attrs.define(kw_only=True, eq=False, weakref_slot=True)
class AdapterTurn:
    """One turn of a framework's run: keep it where the framework keeps the state of the run."""

    opened: OpenTurn
    _adapter: "Adapter"
    _end: _End = attrs.field(factory=_End, init=False)
    _finalizer: Any = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._finalizer = weakref.finalize(self, _let_go, loop, self.opened, self._end)
        self._finalizer.atexit = False

    @property
    def id(self) -> str:
        """The turn's id."""
        return self.opened.id

    @property
    def references(self) -> tuple[str, ...]:
        """The texts of the reference messages: the same ones at each model step."""
        return tuple(each.text for each in self.opened.references)

    def system_prompt(self, base: str = "") -> str:
        """Return `base` with the plugins' rules and trusted blocks after it."""
        return self.opened.system_prompt(base)

    def may_fail(self, error: BaseException) -> None:
        """Remember an error, in case the framework ends the turn because of it without a callback."""
        self._end.reason = reason_for(error)

    async def tool_result(
        self,
        tool: str,
        *,
        call_id: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        output: object = None,
        error: BaseException | str | None = None,
        seconds: float | None = None,
    ) -> None:
        """Report a tool call to the plugins; an error is logged.

        Args:
            tool: its name.
            call_id: the model's id of the call.
            arguments: its arguments.
            output: its return value. The text of a plugin's tool that failed counts as an error.
            error: the exception, or a sentence about it.
            seconds: its duration.
        """
        said = _error(output, error)
        await self._adapter.quietly(
            "tool_result",
            self.opened.tool_result,
            tool=tool or "nameless",
            call_id=call_id or "nameless",
            arguments=arguments or {},
            output=None if said is not None else _told(output),
            error=said,
            duration=None if seconds is None else timedelta(seconds=seconds),
        )

    async def run_tool(self, name: str, arguments: Mapping[str, Any] | str, *, call_id: str | None = None) -> str:
        """Run a plugin's tool; return the text for the model, even for a failure."""
        return await self._adapter.run_tool(self.opened, name, arguments, call_id or "nameless")

    async def commit(self, answer: object, *, stored: bool | None = None) -> None:
        """Close the turn with the user's answer; an error is logged.

        An answer that is no text is passed on as JSON. A blank answer drops the turn.
        """
        text = text_of(answer)
        if not text.strip():
            await self.drop(DropReason.FAILED)
            return
        await self._close("commit", self.opened.commit, answer=presentable(text), stored=stored)

    async def drop(self, reason: DropReason | BaseException = DropReason.FAILED) -> None:
        """Close the turn without an answer; an error is logged. A task cancelled meanwhile drops the turn, too."""
        why = reason_for(reason) if isinstance(reason, BaseException) else reason
        self._end.reason = why
        await self._close("drop", self.opened.drop, reason=why)

    def drop_soon(self, reason: DropReason) -> None:
        """Close the turn without an answer, from code that cannot wait: a callback of a task, any thread."""
        self._end.reason = reason
        self._finalizer()

    def tool_result_now(self, tool: str, **fields: Any) -> None:
        """Do as `tool_result` does, without an event loop."""
        self._adapter.quietly_now("tool_result", self.tool_result, tool=tool, **fields)

    def run_tool_now(self, name: str, arguments: Mapping[str, Any] | str, *, call_id: str | None = None) -> str:
        """Do as `run_tool` does, without an event loop."""
        try:
            return self._adapter.now(self.run_tool, name, arguments, call_id=call_id)
        except HostError as error:
            return self._adapter.unreached(name, error)

    def commit_now(self, answer: object, **fields: Any) -> None:
        """Do as `commit` does, without an event loop."""
        self._adapter.quietly_now("commit", self.commit, answer=answer, **fields)

    def drop_now(self, reason: DropReason | BaseException = DropReason.FAILED) -> None:
        """Do as `drop` does, without an event loop."""
        self._adapter.quietly_now("drop", self.drop, reason=reason)

    async def _close(self, what: str, function: Callable[..., Coroutine[Any, Any, object]], **keywords: Any) -> None:
        await self._adapter.quietly(what, function, **keywords)
        self._finalizer.detach()


def reason_for(error: BaseException) -> DropReason:
    """Return the drop reason for `error`; a consumer that breaks off cancels the turn, too."""
    cancelled = isinstance(error, asyncio.CancelledError | GeneratorExit | KeyboardInterrupt)
    return DropReason.CANCELLED if cancelled else DropReason.FAILED


def _error(output: object, error: BaseException | str | None) -> str | None:
    """Return the text about a failure for plugins: never an exception's own text, which may contain secrets."""
    if isinstance(error, BaseException):
        return type_name(error)
    if error is None and isinstance(output, str) and output.startswith(MARK):
        return output
    return error


def _told(output: object) -> str:
    """Return a tool's result as text, so that plugins hold no object of the framework."""
    return render_output("null" if output is None else text_of(output), characters=MOST_CHARACTERS)


def _let_go(loop: asyncio.AbstractEventLoop, opened: OpenTurn, end: _End) -> None:
    """Drop a turn without references. Runs in the thread that released the last one."""

    def drop() -> None:
        with contextlib.suppress(HostError):  # the host is closed, and has dropped it
            opened.drop_at_once(end.reason)

    with contextlib.suppress(RuntimeError):  # the loop is closed, and so is the host
        loop.call_soon_threadsafe(drop)
