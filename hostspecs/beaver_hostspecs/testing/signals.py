"""Waiting for a condition, without polling."""

import asyncio
from collections.abc import Callable
from functools import partial


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
