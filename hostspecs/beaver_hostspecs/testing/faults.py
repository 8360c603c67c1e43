"""A plugin that misbehaves in exactly one hook, in a chosen way."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Generator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import cast

from beaver_hostspecs.contributions import Contribution, Reference
from beaver_hostspecs.plugins import PluginInfo
from beaver_hostspecs.secrets import Secret
from beaver_hostspecs.testing.hooked import COROUTINE_HOOKS, PLAIN_HOOKS, Call, HookedPlugin
from beaver_hostspecs.turns import Turn

_HUGE_TEXT = 1_000_000
_HUGE_COUNT = 500


class Fault(StrEnum):
    """The ways in which a plugin can misbehave."""

    RAISE = "raise"
    """An ordinary exception whose text shows the secret and the prompt; so do those of the next three."""
    SYSTEM_EXIT = "system_exit"
    BASE_EXCEPTION = "base_exception"
    """An exception that is a `BaseException` and nothing more."""
    GENERATOR_EXIT = "generator_exit"
    RAISE_CANCELLED = "raise_cancelled"
    """Raises `CancelledError` without a cancellation."""
    CANCEL_ITSELF = "cancel_itself"
    """Cancels the task it runs in."""
    AWAIT_FOREVER = "await_forever"
    SLOW_CLEANUP = "slow_cleanup"
    """Awaits forever and, once cancelled, takes `duration` seconds to end, however often it is cancelled."""
    SWALLOW_CANCEL = "swallow_cancel"
    """Awaits forever and goes on when it is cancelled."""
    BLOCK = "block"
    """Blocks the thread, and so the event loop, for `duration` seconds."""
    GARBAGE = "garbage"
    """An answer of the wrong type."""
    SUBCLASS_GARBAGE = "subclass_garbage"
    """A `Contribution` of the right type, whose reference raises on every access."""
    HUGE = "huge"
    """A `Contribution` of hundreds of megabytes when it is rendered."""


PLAIN_FAULTS = (Fault.RAISE, Fault.SYSTEM_EXIT, Fault.BASE_EXCEPTION, Fault.GARBAGE)
"""The faults that a plain hook can have."""


class FaultError(Exception):
    """The error of `Fault.RAISE`."""


class BareFault(BaseException):
    """The error of `Fault.BASE_EXCEPTION`: no `Exception`, so that `except Exception` misses it."""


def fault_cases() -> tuple[tuple[Fault, str], ...]:
    """Return every fault with every hook that can have it."""
    plain = [(fault, hook) for fault in PLAIN_FAULTS for hook in PLAIN_HOOKS]
    return (*plain, *((fault, hook) for fault in Fault for hook in COROUTINE_HOOKS))


class FaultPlugin(HookedPlugin):
    """Misbehaves in one hook and answers `None` in the others (`describe` answers a description).

    Await `release()` at the end of the test, so that no task outlives it.
    """

    def __init__(
        self,
        fault: Fault,
        hook: str,
        *,
        secret: Secret | None = None,
        duration: float = 5.0,
        info: PluginInfo | None = None,
    ) -> None:
        """Make a plugin with one fault.

        Args:
            fault: the kind of fault.
            hook: the hook that has it.
            secret: the secret that its exceptions and its garbage try to leak, besides the prompt.
            duration: seconds, for the faults that take their time.
            info: the answer of `describe`, for example to declare deadlines.

        Raises:
            ValueError: the hook cannot have that fault.
        """
        super().__init__()
        if (fault, hook) not in fault_cases():
            raise ValueError(f"{hook} cannot have the fault {fault}")
        self.fault = fault
        self.hook = hook
        self.info = info or PluginInfo(version="0", contract="1.0")
        self._secret = secret
        self._duration = duration
        self._running = 0
        # A threading event, so that another thread can free a blocked loop.
        self._released = threading.Event()

    @property
    def running(self) -> int:
        """How many calls of coroutine hooks have begun and not ended."""
        return self._running

    def release(self) -> "Release":
        """End every call that still runs; from any thread.

        Returns:
            An awaitable that returns when all of them have ended.
        """
        self._released.set()
        self._signal.notify()
        return Release(self)

    def answer_now(self, call: Call) -> object:
        """Misbehave if this is the hook; else answer as a trivial plugin does."""
        if call.hook == self.hook:
            return self._misbehave_at_once(call)
        return self.info if call.hook == "describe" else None

    async def answer(self, call: Call) -> object:
        """Misbehave if this is the hook; else answer as a trivial plugin does."""
        if call.hook != self.hook:
            return None
        self._running += 1
        try:
            return await self._misbehave(call)
        finally:
            self._running -= 1
            self._signal.notify()

    async def ended(self) -> None:
        """Return when no call is running any more."""
        await self._signal.wait_until(lambda: self._running == 0)
        # The last call has only left its hook; its task ends at the next step of the loop.
        await asyncio.sleep(0)

    def _misbehave_at_once(self, call: Call) -> object:
        text = self._text(call)
        if self.fault in _EXCEPTIONS:
            raise _EXCEPTIONS[self.fault](text)
        if self.fault is Fault.BLOCK:
            self._released.wait(self._duration)
            return None
        return _ANSWERS[self.fault](text)

    async def _misbehave(self, call: Call) -> object:
        waits = {
            Fault.AWAIT_FOREVER: self._until_released,
            Fault.SLOW_CLEANUP: self._clean_up_slowly,
            Fault.SWALLOW_CANCEL: self._swallow_cancel,
            Fault.CANCEL_ITSELF: self._cancel_itself,
        }
        if self.fault not in waits:
            return self._misbehave_at_once(call)
        await waits[self.fault]()
        return None

    def _text(self, call: Call) -> str:
        turn = call.arguments.get("turn")
        prompt = turn.prompt if isinstance(turn, Turn) else ""
        return f"{call.hook} leaks {self._secret.reveal() if self._secret else ''} {prompt}"

    async def _until_released(self) -> None:
        await self._signal.wait_until(self._released.is_set)

    async def _clean_up_slowly(self) -> None:
        try:
            await self._until_released()
        except asyncio.CancelledError:
            await self._hold_on()
            raise

    async def _hold_on(self) -> None:
        """Stay for `duration` seconds or until released, whatever cancels the call."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._duration
        while not self._released.is_set() and loop.time() < end:
            with contextlib.suppress(asyncio.CancelledError, TimeoutError):
                async with asyncio.timeout_at(end):
                    await self._until_released()

    async def _swallow_cancel(self) -> None:
        while not self._released.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self._until_released()

    async def _cancel_itself(self) -> None:
        cast("asyncio.Task[object]", asyncio.current_task()).cancel()
        await self._until_released()


class Release:
    """The result of `FaultPlugin.release`: await it until the calls have ended, or ignore it."""

    def __init__(self, plugin: FaultPlugin) -> None:
        self._plugin = plugin

    def __await__(self) -> Generator[object, None, None]:
        return self._plugin.ended().__await__()


def _garbage(text: str) -> object:
    return {"blocks": [text], "references": text}


def _huge(text: str) -> Contribution:
    # One big text, shared: the plugin itself stays cheap.
    reference = Reference(text=(text * (_HUGE_TEXT // len(text) + 1))[:_HUGE_TEXT], id="huge")
    return Contribution(references=(reference,) * _HUGE_COUNT)


def _hostile(text: str) -> Contribution:
    class Hostile(Reference):
        def __getattribute__(self, name: str) -> object:
            raise FaultError(f"{name}: {text}")

    # Not initialised: its own validators would be the first to access it.
    return Contribution(references=(object.__new__(Hostile),))


_EXCEPTIONS: Mapping[Fault, type[BaseException]] = MappingProxyType(
    {
        Fault.RAISE: FaultError,
        Fault.SYSTEM_EXIT: SystemExit,
        Fault.BASE_EXCEPTION: BareFault,
        Fault.GENERATOR_EXIT: GeneratorExit,
        Fault.RAISE_CANCELLED: asyncio.CancelledError,
    }
)

_ANSWERS: Mapping[Fault, Callable[[str], object]] = MappingProxyType(
    {Fault.GARBAGE: _garbage, Fault.SUBCLASS_GARBAGE: _hostile, Fault.HUGE: _huge}
)
