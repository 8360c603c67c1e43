"""Brings embeddings and indexes up to date with the store. Blocking."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from beaver_memory.embedding.protocol import Embedder
from beaver_memory.engine import MemoryEngine
from beaver_memory.errors import StoreError
from beaver_memory.layers import BATCH
from beaver_memory.records import Owner
from beaver_memory.runtime.embedders import RECORD, remember
from beaver_memory.runtime.profile import Location, Profile
from beaver_memory.runtime.reports import EmbedReport, RecoverReport
from beaver_memory.runtime.requests import EmbedRequest, RecoverRequest

Progress = Callable[[int, int], object]
"""Receives how many memories are done, and how many there are."""


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
