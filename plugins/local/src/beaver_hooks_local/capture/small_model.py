"""Asks the small model of the host from threads, within a deadline."""

import asyncio
from concurrent.futures import CancelledError, Future

from beaver_hostspecs import SmallModel

MOST_TOKENS = 1_000
"""Tokens of an answer."""


class SmallModelAsker:
    """Asks a small model for threads; it is a function of the prompt.

    Args:
        model: the model.
        loop: the event loop of the host.
        seconds: the longest time of an answer.
    """

    def __init__(self, model: SmallModel, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._model, self._loop, self._seconds = model, loop, seconds
        self._end = float("inf")
        self._running: set[Future[str]] = set()

    def __call__(self, prompt: str) -> object:
        """Return the answer of the model.

        Raises:
            TimeoutError: there is none in time.
        """
        seconds = min(self._seconds, self._end - self._loop.time())
        if seconds <= 0:
            raise TimeoutError
        future = asyncio.run_coroutine_threadsafe(self._model.complete(prompt, max_tokens=MOST_TOKENS), self._loop)
        self._running.add(future)
        try:
            return future.result(seconds)
        except CancelledError:
            raise TimeoutError from None
        finally:
            self._running.discard(future)
            future.cancel()

    def end_in(self, seconds: float) -> None:
        """Give running and later calls at most so many seconds from now, together. In the event loop only."""
        self._end = self._loop.time() + seconds
        self._loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        for each in self._running.copy():
            each.cancel()
