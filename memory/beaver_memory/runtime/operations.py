"""The operations of a memory, blocking: each takes a request and returns a report."""

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterable
from operator import itemgetter

from beaver_memory.embedding.protocol import Embedder
from beaver_memory.engine import MemoryEngine
from beaver_memory.errors import InvalidRequest, StoreError
from beaver_memory.patterns import parsed
from beaver_memory.query import Query
from beaver_memory.reconcile.reconciler import Reconciler
from beaver_memory.records import DamagedEntry, NewMemory, Owner, Store
from beaver_memory.runtime.capture_records import (
    CaptureReport,
    CaptureRequest,
    CorrectReport,
    CorrectRequest,
    PendingReport,
    PendingRequest,
    ReviewReport,
    ReviewRequest,
    UndoReport,
    UndoRequest,
)
from beaver_memory.runtime.captures import Captures, never
from beaver_memory.runtime.corrections import Corrections
from beaver_memory.runtime.erasure import Erasure
from beaver_memory.runtime.export_pages import ExportPages
from beaver_memory.runtime.hit_texts import memory_block
from beaver_memory.runtime.memory_writes import MemoryWrites
from beaver_memory.runtime.migration import Migration, MigrationReport
from beaver_memory.runtime.migration import Progress as MigrationProgress
from beaver_memory.runtime.profile import Location, PostgresLocation, Profile, RuntimeServices
from beaver_memory.runtime.recovery import Progress, Recovery
from beaver_memory.runtime.reports import (
    DamagedReport,
    EmbedReport,
    ExportReport,
    ForgetReport,
    HistoryReport,
    InspectionReport,
    MemoriesReport,
    PeopleReport,
    PinReport,
    ProjectionReport,
    RecallReport,
    RecoverReport,
    Refusal,
    SessionsReport,
    WriteReport,
)
from beaver_memory.runtime.requests import (
    DamagedRequest,
    EmbedRequest,
    ExportRequest,
    ForgetRequest,
    GetRequest,
    HistoryRequest,
    ImportRequest,
    InspectionRequest,
    ListRequest,
    PeopleRequest,
    PinRequest,
    ProjectionRequest,
    RecallRequest,
    RecoverRequest,
    SessionsRequest,
    TimelineRequest,
    WriteRequest,
)
from beaver_memory.runtime.stores import damage_marks, postgres_store
from beaver_memory.runtime.troubles import DAMAGE
from beaver_memory.runtime.turn_captures import TurnCaptures
from beaver_memory.store.joint import EVERYWHERE
from beaver_memory.views import View
from beaver_toolkit.redaction.redactor import Redactor
from beaver_toolkit.sqlite.errors import UNWRITABLE

FITS = 0.01
"""The lowest score of a memory that fits a search; the date alone gives half of it."""

MOST_TOUCHED = 10_000
"""Ids of recalled memories that are kept until `write_touches` stores them."""


class Operations:
    """The operations of an open memory. Thread-safe; every method may wait for a disk.

    Args:
        engine: the engine; `close` closes it.
        embedder: the configured embedder, if it is available.
        profile: how the memory works.
        location: where it lies.
        services: of the process.

    Attributes:
        turns: captures turns by a queue.
        engine: the engine below, for the code that opened it; callers of operations leave it alone.
    """

    def __init__(
        self,
        engine: MemoryEngine,
        embedder: Embedder | None,
        profile: Profile,
        location: Location,
        services: RuntimeServices,
    ) -> None:
        self.engine, self._embedder = engine, embedder
        self._profile, self._location, self._report = profile, location, services.report
        redactor = Redactor(profile.redaction)
        writes = MemoryWrites(engine, profile.capture, services, redactor)
        self._gate = writes.gate
        self._captures = Captures(writes, profile.capture)
        self._corrections = Corrections(writes)
        self.turns = TurnCaptures(engine, self._captures, services, redactor)
        self._erasure = Erasure(engine, location)
        self.clock, self.trace, self.troubles = services.clock, services.trace, services.troubles
        self._touched: set[tuple[str, int]] = set()
        self._exports = ExportPages(engine)
        self._recovery = Recovery(engine, embedder, profile, location)
        self._lock = threading.Lock()

    # --- Writing ------------------------------------------------------------------------------------------------

    def write(self, request: WriteRequest) -> WriteReport:
        """Store memories; refuse all of them if one holds a secret.

        Raises:
            StoreError: a database cannot be written; a `PersonalStoreError` if it is that of the person.
        """
        if refusal := self._gate.first_refusal(request.memories):
            return WriteReport(refusal=refusal)
        if request.supersedes:
            return WriteReport(
                outcomes=tuple(Reconciler(self.engine, clock=self.clock).add(each) for each in request.memories)
            )
        return WriteReport(outcomes=tuple(self.engine.remember(request.memories, mention=request.mention)))

    def refusal(self, memory: NewMemory) -> Refusal | None:
        """Return why `write` would refuse a memory, or `None`."""
        return self._gate.refusal(memory)

    def pin(self, request: PinRequest) -> PinReport:
        """Pin memories, or unpin them."""
        event = "PIN" if request.pinned else "UNPIN"
        changed = (
            self.engine.change(id_, request.own, event=event, pinned=request.pinned)
            for id_ in dict.fromkeys(request.ids)
        )
        return PinReport(changed=tuple(memory for memory in changed if memory is not None))

    def forget(self, request: ForgetRequest) -> ForgetReport:
        """Erase memories from all files, and count the rows and files of each place before and after.

        Raises:
            InvalidRequest: the query holds no word.
        """
        return self._erasure.forget(request)

    def import_(self, request: ImportRequest) -> WriteReport:
        """Store exported memories."""
        return self.write(WriteRequest(memories=request.memories, mention=False))

    # --- Learning -----------------------------------------------------------------------------------------------

    def capture(self, request: CaptureRequest, was_injected: Callable[[str], bool] = never) -> CaptureReport:
        """Find statements worth remembering in a conversation, and store what the gates admit.

        Args:
            request: the conversation.
            was_injected: whether a text consists of recalled references, which are not learned again.
        """
        return self._captures.capture(request, was_injected)

    def correct(self, request: CorrectRequest) -> CorrectReport:
        """Put a new memory in place of others; they stay, and `as of` finds them."""
        return self._corrections.correct(request)

    def undo(self, request: UndoRequest) -> UndoReport:
        """Forget the memories of the last captured turn or correction; those that they superseded hold again."""
        return self._corrections.undo(request)

    def pending(self, request: PendingRequest) -> PendingReport:
        """List the memories that wait for approval."""
        return self._corrections.pending(request)

    def review(self, request: ReviewRequest) -> ReviewReport:
        """Accept or reject a memory that waits for approval."""
        return self._corrections.review(request)

    # --- Reading ------------------------------------------------------------------------------------------------

    def recall(self, request: RecallRequest) -> RecallReport:
        """Return the memories that fit a query best, or the newest ones if it has no words."""
        least = request.minimum_score
        if least is None:
            least = FITS if request.query.strip() else 0.0
        text, patterns = parsed(request.query) if request.operators else (request.query, ())
        answer = self.engine.search(
            Query(
                text=text,
                patterns=patterns,
                filters=request.visible,
                limit=request.limit,
                max_tokens=request.max_tokens,
                minimum_score=least,
                formula=self._profile.formula,
                explain=request.explain,
                seconds=request.seconds,
            )
        )
        return RecallReport(
            hits=answer.hits,
            keyword_only=answer.keyword_only,
            without_index=answer.without_index,
            candidates=answer.total,
            not_reranked=answer.not_reranked,
            floor=answer.floor,
            share=answer.share,
        )

    def project(self, request: ProjectionRequest) -> ProjectionReport:
        """Return a text of the memories that fit a query best, no longer than the request says."""
        found = self.recall(RecallRequest(query=request.user_query, visible=request.visible, limit=request.limit))
        text, ids = memory_block(found.hits, request.system_max_len)
        self.touch(ids, request.visible.view.tenant)
        return ProjectionReport(
            system_memory_block=text, ids=ids, left_out=len(found.hits) - len(ids), keyword_only=found.keyword_only
        )

    def get(self, request: GetRequest) -> MemoriesReport:
        """Return memories by their ids, and which of them are damaged."""
        ids = list(dict.fromkeys(request.ids))
        found = self.engine.get(ids, request.visible)
        missing = {*ids} - {memory.id for memory in found}
        damaged = self.engine.store.damaged_among(sorted(missing), request.visible) if missing else ()
        return MemoriesReport(memories=tuple(found), damaged=tuple(damaged))

    def list(self, request: ListRequest) -> MemoriesReport:
        """Return the newest memories."""
        found = self.engine.store.recent(request.visible, limit=request.limit + 1)
        return MemoriesReport(memories=tuple(found[: request.limit]), has_more=len(found) > request.limit)

    def timeline(self, request: TimelineRequest) -> MemoriesReport:
        """Return a memory with its neighbours in time."""
        around = {"before": request.before, "after": request.after}
        return MemoriesReport(memories=tuple(self.engine.timeline(request.anchor, request.visible, **around)))

    def history(self, request: HistoryRequest) -> HistoryReport:
        """Return the history of a memory."""
        return HistoryReport(changes=tuple(self.engine.history(request.id, request.visible)))

    def people(self, request: PeopleRequest) -> PeopleReport:
        """Return people that memories are about."""
        found = self.engine.store.people(request.visible, query=request.query, limit=request.limit)
        return PeopleReport(people=tuple(found))

    def sessions(self, request: SessionsRequest) -> SessionsReport:
        """Return the summaries of an owner's last sessions."""
        return SessionsReport(sessions=tuple(self.engine.store.summaries(request.owner, limit=request.limit)))

    def export(self, request: ExportRequest) -> ExportReport:
        """Return a page of memories."""
        return self._exports.page(request)

    def damaged(self, request: DamagedRequest) -> DamagedReport:
        """Return a page of the rows that fail their checksums, as far as they can be read.

        Raises:
            InvalidRequest: the caller may not see all stores.
        """
        if {*request.visible.view.stores} != {*Store}:
            raise InvalidRequest("visible.stores", "must be all stores: a damaged row does not tell its own")
        store = self.engine.store
        view, end = request.visible.view, request.after + request.limit
        owners = self.engine.owners() if request.every_owner else view.owners
        every = (row for owner in owners for row in store.damaged(owner) if _is_seen(row, view))
        rows = [*itertools.islice(every, request.after, end + 1)]
        return DamagedReport(rows=tuple(rows[: request.limit]), has_more=len(rows) > request.limit)

    # --- The memory as a whole ----------------------------------------------------------------------------------

    def inspect(self, request: InspectionRequest) -> InspectionReport:
        """Return figures about the memory."""
        store = self.engine.store
        if request.embeddings:
            self.engine.serve_home()
        owners = () if request.owners is not None and not request.every_owner else tuple(self.engine.owners())
        return InspectionReport(
            count=sum(map(store.count, owners if request.owners is None else request.owners)),
            owners=owners if request.every_owner else (),
            to_be_embedded=None if self._embedder is None or not request.embeddings else self.engine.pending(),
            embedder=self.embedder,
            troubles=self.troubles.now,
            store=self.engine.stats() if request.figures else {},
            problems=self._problems() if request.check else None,
            capture=None if request.capture_of is None else self._captures.day(request.capture_of),
        )

    def _problems(self) -> tuple[str, ...]:
        try:
            found = tuple(self.engine.store.check(self.engine.tenant))
        except StoreError as error:
            # The damage that stops the check is itself the answer.
            if error.category != "corrupt":
                raise
            return (str(error),)
        if not found:
            for mark in damage_marks(self._location):
                mark.clear()
            self.troubles.ended(DAMAGE, self._report)
        return found

    def recover(self, request: RecoverRequest, progress: Progress | None = None) -> RecoverReport:
        """Bring embeddings and indexes up to date with the store.

        Raises:
            EmbeddingError: the embedder fails.
        """
        return self._recovery.recover(request, progress)

    def embed(self, request: EmbedRequest) -> EmbedReport:
        """Embed memories that have no embedding yet, the newest first; say how many wait.

        Raises:
            EmbeddingError: the embedder fails.
        """
        return self._recovery.embed(request)

    def migrate(
        self, target: PostgresLocation, progress: MigrationProgress, *, dry_run: bool = False
    ) -> MigrationReport:
        """Copy the whole memory into a tenant of a server, or count what a copy would bring.

        Raises:
            InvalidRequest: the tenant holds memories that are not of this one.
            StoreError: the server cannot be used.
        """
        with contextlib.closing(postgres_store(target)) as store:
            self.engine.prepare(store)
            copy = Migration(self.engine.store, store, self._location, target, now=self.clock.now(), progress=progress)
            return copy.run(dry=dry_run)

    # --- For the process that holds the memory ------------------------------------------------------------------

    def terms(self, text: str) -> frozenset[int]:
        """Return the terms of a text: the same for a word and its other forms."""
        return self.engine.terms(text)

    def versions(self, owners: Iterable[Owner]) -> tuple[int, ...]:
        """Return numbers that change with each write to the memories of owners."""
        return self.engine.versions(tuple(owners))

    def probe(self) -> bool:
        """Probe a failed embedder, if a probe is due; return whether it answered."""
        return self.engine.probe()

    def probe_in(self) -> float | None:
        """Return in how many seconds `probe` is due; `None` while no embedder is paused."""
        return self.engine.probe_in()

    def touch(self, ids: Iterable[int], tenant: str) -> None:
        """Keep the ids of a tenant's memories that a model was given until `write_touches`."""
        with self._lock:
            if len(self._touched) < MOST_TOUCHED:
                self._touched.update((tenant, id_) for id_ in ids)

    def write_touches(self) -> None:
        """Store which memories a model was given."""
        with self._lock:
            touched, self._touched = self._touched, set()
        for tenant, pairs in itertools.groupby(sorted(touched), key=itemgetter(0)):
            ids = [id_ for _, id_ in pairs]
            try:
                self.engine.store.touch(ids, tenant=tenant, now=self.clock.now())
            except StoreError:
                self.touch(ids, tenant)
                raise

    def embed_some(self) -> int:
        """Embed a batch of memories that are not embedded yet; return how many.

        Raises:
            EmbeddingError: the embedder fails.
            OSError: all memories are embedded, and the record of the embedder cannot be written.
        """
        return self._recovery.embed_some()

    @property
    def embedder(self) -> str | None:
        """The provider, model and dimensions of the configured embedder, or `None`."""
        return self._recovery.embedder_name

    @property
    def is_joint(self) -> bool:
        """Whether global memories lie in the database of the person."""
        return self.engine.is_joint

    @property
    def location(self) -> Location:
        """Where the memory lies."""
        return self._location

    @property
    def personal_trouble(self) -> str | None:
        """The sentence that says why the memories of the person are left out, or `None`."""
        trouble = self.engine.personal_trouble
        return None if trouble is None else str(trouble)

    def close(self) -> None:
        """Store which memories were recalled, and close the engine. Closing again does nothing."""
        try:
            self.write_touches()
        except StoreError as error:
            # On a disk that is read-only or full the next recall counts again.
            if error.category not in UNWRITABLE:
                raise
        finally:
            self.engine.close()


def _is_seen(row: DamagedEntry, view: View) -> bool:
    """Return whether a damaged row is of the project of a view, as far as the row tells its own."""
    return view.place in {None, row.columns.get("project")} or row.columns.get("scope") == EVERYWHERE
