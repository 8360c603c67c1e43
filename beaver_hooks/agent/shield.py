"""Work that is not to be left half done."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Return what `work` comes to. It comes to its end even where this is cancelled meanwhile.

    The cancellation goes on after it. Whoever is cancelled is told of that only: what the work returned or raised is
    lost then.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            # Unlike `shield`, it never raises what the work does, which would hide the cancellation.
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return task.result()
    if not task.cancelled():
        task.exception()  # looked at, or asyncio would complain that nobody did
    raise cancelled
