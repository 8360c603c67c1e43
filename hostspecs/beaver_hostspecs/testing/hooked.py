"""The base of the plugins of this kit: implements every hook and records each call."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import attrs
from attrs import field

from beaver_hostspecs.freezing import freeze
from beaver_hostspecs.markers import hookimpl
from beaver_hostspecs.plugins import Setup
from beaver_hostspecs.reports import Report
from beaver_hostspecs.turns import Answer, Compaction, DropReason, ToolResult, Turn

PLAIN_HOOKS = ("describe", "configure", "provide_tools", "provide_commands", "provide_backup", "subject_data")
"""The hooks that are plain functions."""

COROUTINE_HOOKS = (
    "start", "before_prompt", "on_tool_result", "after_prompt", "on_turn_dropped", "before_compaction", "stop"
)  # fmt: skip
"""The hooks that are coroutine functions."""


@attrs.frozen(kw_only=True)
class Call:
    """One call of a hook.

    Attributes:
        hook: the name of the hook.
        arguments: its arguments, by name.
    """

    hook: str
    arguments: Mapping[str, object] = field(factory=dict, converter=freeze)


class HookedPlugin(ABC):
    """Implements every hook. A subclass answers each call.

    Attributes:
        calls: every call so far, oldest first. A call is recorded before it is answered.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._signal = Signal()

    @abstractmethod
    def answer_now(self, call: Call) -> object:
        """Return the answer to a call of a plain hook."""

    @abstractmethod
    async def answer(self, call: Call) -> object:
        """Return the answer to a call of a coroutine hook."""

    def calls_of(self, hook: str) -> tuple[Call, ...]:
        """Return the calls of one hook so far, oldest first."""
        return tuple(call for call in tuple(self.calls) if call.hook == hook)

    def wait_for(self, hook: str, count: int = 1, timeout: float = 5.0) -> Awaitable[tuple[Call, ...]]:
        """Await this to get the calls of `hook`, as soon as there are `count` of them.

        Raises:
            TimeoutError: there are fewer after `timeout` seconds.
        """
        return asyncio.wait_for(self._seen(hook, count), timeout)

    @hookimpl
    def describe(self) -> object:
        """Answer as the subclass says."""
        return self.answer_now(self._noted("describe"))

    @hookimpl
    def configure(self, setup: Setup) -> object:
        """Answer as the subclass says."""
        return self.answer_now(self._noted("configure", setup=setup))

    @hookimpl
    def provide_tools(self) -> object:
        """Answer as the subclass says."""
        return self.answer_now(self._noted("provide_tools"))

    @hookimpl
    def provide_commands(self) -> object:
        """Answer as the subclass says."""
        return self.answer_now(self._noted("provide_commands"))

    @hookimpl
    def provide_backup(self) -> object:
        """Answer as the subclass says."""
        return self.answer_now(self._noted("provide_backup"))

    @hookimpl
    def subject_data(self) -> object:
        """Answer as the subclass says."""
        return self.answer_now(self._noted("subject_data"))

    @hookimpl
    async def start(self) -> object:
        """Answer as the subclass says."""
        return await self.answer(self._noted("start"))

    @hookimpl
    async def stop(self) -> object:
        """Answer as the subclass says."""
        return await self.answer(self._noted("stop"))

    @hookimpl
    async def before_prompt(self, turn: Turn, report: Report) -> object:
        """Answer as the subclass says."""
        return await self.answer(self._noted("before_prompt", turn=turn, report=report))

    @hookimpl
    async def on_tool_result(self, turn: Turn, result: ToolResult, report: Report) -> object:
        """Answer as the subclass says."""
        return await self.answer(self._noted("on_tool_result", turn=turn, result=result, report=report))

    @hookimpl
    async def after_prompt(self, turn: Turn, answer: Answer, report: Report) -> object:
        """Answer as the subclass says."""
        return await self.answer(self._noted("after_prompt", turn=turn, answer=answer, report=report))

    @hookimpl
    async def on_turn_dropped(self, turn: Turn, reason: DropReason, report: Report) -> object:
        """Answer as the subclass says."""
        return await self.answer(self._noted("on_turn_dropped", turn=turn, reason=reason, report=report))

    @hookimpl
    async def before_compaction(self, compaction: Compaction, report: Report) -> object:
        """Answer as the subclass says."""
        return await self.answer(self._noted("before_compaction", compaction=compaction, report=report))

    def _noted(self, hook: str, **arguments: object) -> Call:
        call = Call(hook=hook, arguments=arguments)
        self.calls.append(call)
        self._signal.notify()
        return call

    async def _seen(self, hook: str, count: int) -> tuple[Call, ...]:
        await self._signal.wait_until(lambda: len(self.calls_of(hook)) >= count)
        return self.calls_of(hook)


class Signal:
    """Wakes the tasks that wait for a condition, on any event loop, from any thread.

    The host under test may run its hooks on a loop of its own, while the test waits on another one.
    """

    def __init__(self) -> None:
        self._wakers: list[Callable[[], object]] = []

    def notify(self) -> None:
        """Make every waiting task check its condition again."""
        for wake in tuple(self._wakers):
            wake()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Return as soon as `condition` is true; it is checked now and after each `notify`."""
        changed = asyncio.Event()
        wake = partial(asyncio.get_running_loop().call_soon_threadsafe, changed.set)
        self._wakers.append(wake)
        try:
            while not condition():
                await changed.wait()
                changed.clear()
        finally:
            self._wakers.remove(wake)
