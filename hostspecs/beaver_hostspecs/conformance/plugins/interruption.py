"""Steps through a call from one await to the next, to interrupt it there or to measure each step."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any

from beaver_hostspecs.conformance.plugins.driver import Ended, contained

PROMPT = 2.0
"""Seconds within which a cancelled call must end."""


class Stepped:
    """Awaits a coroutine, step by step.

    Args:
        running: the call; it has not begun.
        suspended: called each time that it is about to wait, with the count so far.

    Attributes:
        longest: the seconds of its longest step, during which it held the event loop.
    """

    def __init__(self, running: Coroutine[Any, Any, object], suspended: Callable[[int], object] = bool) -> None:
        self.longest = 0.0
        self._running = running
        self._suspended = suspended

    def __await__(self) -> Generator[Any, Any, object]:
        resume, times = partial(self._running.send, None), 0
        while True:
            begun = time.monotonic()
            try:
                waited_for = resume()
            except StopIteration as stop:
                return stop.value
            finally:
                self.longest = max(self.longest, time.monotonic() - begun)
            times += 1
            self._suspended(times)
            try:
                resume = partial(self._running.send, (yield waited_for))
            except BaseException as error:  # noqa: BLE001 - passed on to the coroutine
                resume = partial(self._running.throw, error)


async def interrupt(running: Coroutine[Any, Any, object], at: int, what: str, *, seconds: float) -> bool:
    """Cancel a call of `seconds` when it waits for the `at`-th time; return whether it came that far.

    Raises:
        AssertionError: it did not end soon, or not as cancelled, or raised something else.
    """
    reached = asyncio.Event()

    def cancel(times: int) -> None:
        if times == at:
            reached.set()
            # From within the task: this cancels the awaited call, as a cancellation from outside does.
            task.cancel()

    task = asyncio.ensure_future(contained(Stepped(running, cancel), what))
    try:
        await asyncio.wait([task], timeout=seconds + PROMPT)
        _judge(task, what, reached=reached.is_set())
    finally:
        task.cancel()
    return reached.is_set()


def _judge(task: "asyncio.Future[object]", what: str, *, reached: bool) -> None:
    if not task.done():
        raise AssertionError(f"{what} is not over {PROMPT:g} seconds after it was cancelled")
    if task.cancelled():
        return
    ended = task.exception()
    error = ended.error if isinstance(ended, Ended) else ended
    if error is not None:
        raise AssertionError(f"{what} raised {type(error).__name__} when it was cancelled: {error}") from error
    if reached:
        raise AssertionError(f"{what} swallowed its cancellation and went on")
