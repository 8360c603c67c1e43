"""Work that a cancellation must not interrupt."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`, which runs to its end even if this call is cancelled.

    The cancellation is raised after the end of the work; the result or error of the work is then lost.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            # Unlike `shield`, it never raises an error of the work, which would hide the cancellation.
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return task.result()
    if not task.cancelled():
        task.exception()  # retrieved, because asyncio logs an exception that is never retrieved
    raise cancelled
