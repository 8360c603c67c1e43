"""Selects memories and erases them, and counts rows and files before and after. Blocking."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from beaver_memory.capture.sentences import with_sentences
from beaver_memory.engine import MemoryEngine
from beaver_memory.errors import InvalidRequest
from beaver_memory.records import Memory, Owner
from beaver_memory.runtime.profile import Location, PostgresLocation, SqliteLocation
from beaver_memory.runtime.reports import ForgetReport
from beaver_memory.runtime.requests import MOST_LISTED, ForgetRequest
from beaver_memory.runtime.stores import indexes_of

COPIES = "earlier backups, exports and copies"
REMOTE = "remote memories"
SERVER = "rows that PostgreSQL keeps until VACUUM, its log (WAL), its replicas and backups"


class Erasure:
    """Erases memories of one engine. Thread-safe.

    Args:
        engine: the engine.
        location: where its files lie.
    """

    def __init__(self, engine: MemoryEngine, location: Location) -> None:
        self._engine, self._location = engine, location

    def forget(self, request: ForgetRequest) -> ForgetReport:
        """Erase the memories that a request selects; see `ForgetRequest`."""
        if request.dry_run:
            return ForgetReport(memories=tuple(self._selected(request)))
        ids = [each.id for each in self._selected(request)] if _selects(request) else [*request.ids]
        found = self._engine.get(ids, request.own) if ids else []
        # First: a failure then forgets nothing, and the mark of a memory that stays does no harm.
        self._engine.mark_forgotten(found, statements_of)
        excerpts = self._engine.drop_evidence(found)
        before = self._traces(ids, request)
        summaries = self._drop_summaries(found)
        gone = self._engine.forget(ids, request.own) if ids else []
        if gone:
            summaries += sum(map(self._drop_orphans, request.own.view.owners))
        after = self._traces(ids, request)
        # The database of the person may hold an excerpt of the same turn.
        unread = self._engine.personal_trouble is not None and any(each.origin for each in found)
        left = {**self._rows(gone, request), "unread databases": int(unread)}
        more = {"evidence": excerpts, "summaries": summaries, "waiting turns": self._drop_waiting(request)}
        return ForgetReport(
            forgotten=tuple(gone),
            erased=(before - after) + Counter(more),
            left={place: count for place, count in left.items() if count},
            unreached=(*((SERVER,) if isinstance(self._location, PostgresLocation) else ()), COPIES, REMOTE),
        )

    def _drop_waiting(self, request: ForgetRequest) -> int:
        """Erase the waiting turns of a session, or all if everything is forgotten; return their number."""
        own = request.own
        narrows = any((own.types, own.tags, own.people, own.file, own.after, own.before, request.query))
        if narrows or not (request.every or request.session):
            return 0
        queue, project = self._engine.store.queue, own.view.project
        return sum(queue.erase(owner, project, request.session or None) for owner in own.view.owners)

    def _drop_summaries(self, memories: Iterable[Memory]) -> int:
        """Erase the summaries of the sessions in which memories were said; return their number."""
        sessions: dict[Owner, set[str]] = {}
        for each in memories:
            if each.session:
                sessions.setdefault(each.owner, set()).add(each.session)
        return sum(self._engine.store.drop_summaries(*each) for each in sessions.items())

    def _drop_orphans(self, owner: Owner) -> int:
        """Erase all summaries of an owner without memories; return their number."""
        return 0 if self._engine.store.count(owner) else self._engine.store.drop_summaries(owner)

    def _selected(self, request: ForgetRequest) -> list[Memory]:
        """Return the memories that fit all conditions of a request, the newest first.

        Raises:
            InvalidRequest: the query holds no word.
        """
        if not (request.ids or _selects(request)):
            return []
        if request.ids:
            found = self._engine.get([*dict.fromkeys(request.ids)], request.own)
        else:
            found = self._engine.store.recent(request.own, limit=MOST_LISTED)
        if request.query and not self._engine.terms(request.query):
            raise InvalidRequest("query", "must hold a word")
        return [each for each in found if request.session in {"", each.session} and self._holds(each, request.query)]

    def _holds(self, memory: Memory, words: str) -> bool:
        """Return whether a memory holds words, in any form, in any of its texts."""
        return not words or self._engine.holds("\n".join(texts_of(memory)), words)

    def _traces(self, ids: list[int], request: ForgetRequest) -> Counter[str]:
        found = Counter(self._rows(ids, request))
        found.update(place for place, _ in files_of(self._location))
        return found

    def _rows(self, ids: list[int], request: ForgetRequest) -> Mapping[str, int]:
        return self._engine.store.footprint(ids, tenant=request.own.view.tenant) if ids else {}


def files_of(location: Location) -> Iterator[tuple[str, Path]]:
    """Yield the files beside the databases of a location that may hold memories, with the name of their place."""
    if not isinstance(location, SqliteLocation):
        return
    for database in dict.fromkeys((location.database, location.person_folder / location.database.name)):
        for path in sorted(indexes_of(database).glob("*.index")):
            yield "index files", path
        for path in sorted(database.parent.glob(f"{database.name}.v*.bak")):
            yield "copies before migrations", path
        for path in sorted(database.parent.glob(f"{database.name}-wal.*")):
            yield "damaged logs", path


def statements_of(memory: Memory) -> Iterator[str]:
    """Yield the statements of a memory that capture could find again."""
    for text in (memory.title, memory.narrative, *memory.facts):
        yield from with_sentences(text)


def texts_of(memory: Memory) -> Iterator[str]:
    """Yield the texts of a memory that a person wrote or said."""
    yield from (memory.title, memory.narrative, memory.summary, memory.evidence)
    for each in (memory.facts, memory.tags, memory.keywords, memory.related_files, memory.related_people):
        yield from each


def _selects(request: ForgetRequest) -> bool:
    """Return whether a request gives conditions beside ids."""
    return bool(request.every or request.query or request.session)
