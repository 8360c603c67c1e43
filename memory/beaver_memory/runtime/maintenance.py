"""Upkeep between operations: embeds memories, stores which ones were recalled, and retries an embedder that failed."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeVar

from beaver_hostspecs import Report
from beaver_memory.embedding.errors import EmbeddingError
from beaver_memory.errors import StoreError
from beaver_memory.runtime.operations import Operations
from beaver_memory.runtime.troubles import EMBEDDING, STORE, UPKEEP
from beaver_toolkit.workers import Overloaded, Workers

T = TypeVar("T")

LEAST_SECONDS = 1.0
"""The shortest pause between a failure and the next try, even if a probe of the embedder is due."""

OUTAGE_SECONDS = 10.0
"""The pause while the database on a server cannot be used."""

RETRY_SECONDS = 60.0
"""The pause after a failure of the embedder, unless a memory is written."""


class Upkeep:
    """Works in the background of one event loop.

    Args:
        operations: of the open memory.
        workers: run the blocking calls.
        report: for events outside turns.
    """

    def __init__(self, operations: Operations, workers: Workers, report: Report) -> None:
        self._operations, self._workers, self._report = operations, workers, report
        self._woken = asyncio.Event()
        self._woken.set()
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin to work."""
        self._task = asyncio.create_task(self._run(), name="beaver-memory-upkeep")

    def wake(self) -> None:
        """Start a round, because memories were written or recalled. In the event loop only."""
        self._woken.set()

    async def end(self) -> None:
        """Stop working; a batch in progress finishes in its thread."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        pause: float | None = None
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._woken.wait()
            self._woken.clear()
            pause = self._pause(await self._round())

    def _pause(self, retry: float | None) -> float | None:
        """Return the seconds until the next round unless woken.

        It is shorter if a probe is due sooner, but at least `LEAST_SECONDS` after a failure.
        """
        probe = self._operations.probe_in()
        if probe is None or retry is None:
            return retry if probe is None else probe
        return min(retry, max(LEAST_SECONDS, probe))

    async def _round(self) -> float | None:
        """Do all pending work; return the seconds until the next try if it fails."""
        try:
            await self._do(self._operations.write_touches)
            if await self._do(self._operations.probe):
                self._operations.troubles.ended(EMBEDDING, self._report)
            while await self._do(self._operations.embed_some):
                self._operations.troubles.ended(EMBEDDING, self._report)
        except EmbeddingError as error:
            self._report.event("memory_embedding_failed", provider=error.provider, category=error.category)
            self._operations.troubles.began(EMBEDDING, error.category, self._report)
            return RETRY_SECONDS
        except Overloaded:
            return LEAST_SECONDS
        except StoreError as error:
            if not self._operations.troubles.last(STORE):
                return self._failed(error)
            # The store reports its outage itself, and its end.
            return OUTAGE_SECONDS
        except Exception as error:  # noqa: BLE001 - it is reported, and the next try may work
            return self._failed(error)
        self._operations.troubles.ended(UPKEEP, self._report)
        return None

    def _failed(self, error: Exception) -> float:
        self._report.event("memory_upkeep_failed", error=type(error).__name__)
        self._operations.troubles.began(UPKEEP, type(error).__name__, self._report)
        return RETRY_SECONDS

    async def _do(self, work: Callable[[], T]) -> T:
        return await self._workers.run(work)
