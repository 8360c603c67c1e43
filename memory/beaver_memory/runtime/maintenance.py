"""Upkeep between operations: embeds memories, stores which ones were recalled, and retries an embedder that failed."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from beaver_hostspecs import Report
from beaver_memory.embedding.errors import EmbeddingError
from beaver_memory.embedding.protocol import Embedder
from beaver_memory.engine import MemoryEngine
from beaver_memory.errors import StoreError
from beaver_memory.layers import BATCH
from beaver_memory.records import Owner
from beaver_memory.runtime.embedders import RECORD, remember
from beaver_memory.runtime.operations import Operations
from beaver_memory.runtime.profile import Location, Profile
from beaver_memory.runtime.reports import EmbedReport, RecoverReport
from beaver_memory.runtime.requests import EmbedRequest, RecoverRequest
from beaver_memory.runtime.troubles import EMBEDDING, STORE, UPKEEP
from beaver_toolkit.workers import Overloaded, Workers

T = TypeVar("T")

LEAST_SECONDS = 1.0
"""The shortest pause between a failure and the next try, even if a probe of the embedder is due."""

OUTAGE_SECONDS = 10.0
"""The pause while the database on a server cannot be used."""

RETRY_SECONDS = 60.0
"""The pause after a failure of the embedder, unless a memory is written."""

Progress = Callable[[int, int], object]
"""Receives how many memories are done, and how many there are."""


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


class Recovery:
    """Embeds memories, and builds indexes anew. Thread-safe.

    Args:
        engine: of the memories.
        embedder: the configured embedder, if it is available.
        profile: how the memory works.
        location: where it lies.
    """

    def __init__(self, engine: MemoryEngine, embedder: Embedder | None, profile: Profile, location: Location) -> None:
        self._engine, self._embedder = engine, embedder
        self._profile, self._location = profile, location

    def recover(self, request: RecoverRequest, progress: Progress | None = None) -> RecoverReport:
        """Embed all memories of the owners in a request, and build their indexes."""
        if request.embed:
            self._engine.serve_home()
        embedded = 0
        while request.embed and (done := self._embed_batch(request.owners)):
            embedded += done
        built = self._reindexed(request.owners, progress) if request.reindex else 0
        return RecoverReport(trigger=request.trigger, embedded=embedded, reindexed=built)

    def embed(self, request: EmbedRequest) -> EmbedReport:
        """Embed some memories of the owners in a request, and count those that wait."""
        if self._embedder is None:
            return EmbedReport()
        self._engine.serve_home()
        for owner in request.owners or ():
            self._engine.serve(owner.tenant, self._location.project)
        done = self._engine.embed(limit=request.limit, owners=request.owners) if request.limit else 0
        left = self._engine.pending(request.owners)
        return EmbedReport(embedded=done, pending=left, embedder=self.embedder_name or "")

    def embed_some(self) -> int:
        """Embed a batch of the memories that this process serves; record the embedder when none is left."""
        done = self._engine.embed(limit=BATCH)
        if not done and self._embedder is not None:
            remember(self._profile.embedding, self._embedder, self._location.state_folder)
        return done

    @property
    def embedder_name(self) -> str | None:
        """The provider, model and dimensions of the configured embedder, or `None`."""
        identity = None if self._embedder is None else self._embedder.identity
        return None if identity is None else f"{identity.provider} {identity.model}, {identity.dimensions} dimensions"

    def _embed_batch(self, owners: Sequence[Owner] | None) -> int:
        if owners is not None:
            return self._engine.embed(limit=BATCH, owners=owners)
        try:
            return self.embed_some()
        except OSError as error:
            raise StoreError((self._location.state_folder or Path()) / RECORD, "io_error") from error

    def _reindexed(self, owners: Sequence[Owner] | None, progress: Progress | None) -> int:
        owners = self._engine.owners() if owners is None else owners
        total, done = sum(map(self._engine.store.count, owners)), 0
        for owner in owners:
            done += self._engine.reindex(owners=[owner], progress=partial(_advance, progress, done, total))
        return done


def _advance(progress: Progress | None, before: int, total: int, here: int, _: int) -> None:
    if progress is not None:
        progress(before + here, total)
