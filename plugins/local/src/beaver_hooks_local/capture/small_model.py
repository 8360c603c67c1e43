"""Asks the small model of the host from a thread, within a deadline."""

import asyncio
from collections.abc import Callable

from beaver_hostspecs import SmallModel

MOST_TOKENS = 1_000
"""Tokens of an answer."""


def asker(model: SmallModel, loop: asyncio.AbstractEventLoop, seconds: float) -> Callable[[str], object]:
    """Return a function that asks the model, for threads.

    Args:
        model: the model.
        loop: the event loop of the host.
        seconds: the longest time of an answer.
    """

    def ask(prompt: str) -> object:
        future = asyncio.run_coroutine_threadsafe(model.complete(prompt, max_tokens=MOST_TOKENS), loop)
        try:
            return future.result(seconds)
        finally:
            future.cancel()

    return ask
