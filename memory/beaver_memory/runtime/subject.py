"""Exports and erases all that a memory keeps of one owner, in every database of its location. Blocking.

The engine is opened without an embedder: a person's data is that of all projects that the databases hold.
"""

import contextlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs

from beaver_hostspecs import Subject, SubjectData, SubjectReport
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.engine import MemoryEngine
from beaver_memory.records import Change, Memory, Owner
from beaver_memory.runtime.erasure import SERVER, files_of
from beaver_memory.runtime.factory import open_engine
from beaver_memory.runtime.profile import DATABASE, Location, PostgresLocation, Profile, RuntimeServices, SqliteLocation
from beaver_memory.store.turn_queue import QueuedTurn
from beaver_memory.views import ALL_PROJECTS

MOST = 1_000_000
"""Summaries and waiting turns of an owner that an export reads."""

ROUNDS = 3
"""How often an erasure looks for data that other processes wrote meanwhile."""

INTERNAL = frozenset({"hash", "owner", "token_count", "uid"})
"""Fields of a memory that tell nothing about the person."""

OTHER_PROJECTS = (
    "Memories of this user in the databases of other projects were not reached; run the command in each of them."
)
OTHER_USERS = "Memories of other users, and those without a user, may mention this person; they belong to others."
MARKS = (
    "The id of the user stays in the database, and for each erased memory that it existed and when it was erased,"
    " without content: by these, other processes learn that it is gone."
)
DAMAGED_PLACES = {
    "memory": "damaged memories",
    "history": "damaged changes of memories",
    "summary": "damaged summaries",
}
"""The places of damaged rows by their kind."""

DAMAGED = "Damaged rows are not exported; `beaver memory export --damaged --user USER` writes what can be read of them."
SERVER_ROWS = f"Not reached on the server: {SERVER}."


@attrs.frozen(kw_only=True)
class SubjectMemory:
    """The data of persons in the memory at a location.

    Attributes:
        profile: how the memory works.
        location: where it lies.
        services: of the process.
        owner_of: returns the owner of a person's memories.
    """

    profile: Profile
    location: Location
    services: RuntimeServices
    owner_of: Callable[[Subject], Owner]

    def functions(self) -> SubjectData:
        """Return the functions of this memory."""
        return SubjectData(count=self.count, export=self.export, erase=self.erase)

    def count(self, subject: Subject) -> SubjectReport:
        """Count the rows that tell of a person.

        Raises:
            StoreError: a database cannot be read.
        """
        with self._engine() as engine:
            held = {} if engine is None else engine.holdings(self.owner_of(subject))
            return SubjectReport(places=_some(held), left=_unread(engine), unreached=self._unreached(engine))

    def export(self, subject: Subject, folder: Path) -> SubjectReport:
        """Write memories with their histories, summaries of sessions and waiting turns as JSON lines.

        Raises:
            StoreError: a database cannot be read.
            OSError: a file cannot be written.
        """
        owner = self.owner_of(subject)
        with self._engine() as engine:
            files = {} if engine is None else _records(engine, owner)
            written = {name: _write(folder / f"{name}.jsonl", lines) for name, lines in files.items()}
            return SubjectReport(
                places=_some({name.replace("-", " "): count for name, count in written.items()}),
                left=_unread(engine) | (damaged := _damaged(engine, owner)),
                unreached=(*((DAMAGED,) if damaged else ()), *self._unreached(engine)),
            )

    def erase(self, subject: Subject) -> SubjectReport:
        """Erase all rows that tell of a person but for the marks of forgetting, and the files that may hold them.

        Raises:
            StoreError: a database cannot be written.
        """
        owner = self.owner_of(subject)
        with self._engine() as engine:
            if engine is None:
                return SubjectReport(unreached=self._unreached(engine))
            before = self._traces(engine, owner)
            for _ in range(ROUNDS):
                engine.erase_owner(owner)
                left = _some(engine.holdings(owner))
                if not left:
                    break
            erased = before - self._traces(engine, owner)
            left |= _unread(engine)
            return SubjectReport(places=erased, left=left, unreached=(*self._unreached(engine), MARKS))

    @contextlib.contextmanager
    def _engine(self) -> Iterator[MemoryEngine | None]:
        """Lend the open engine; `None` if nothing is stored at the location."""
        location = self.location
        if isinstance(location, SqliteLocation) and not any(map(os.path.lexists, _databases(location))):
            yield None
            return
        profile = attrs.evolve(self.profile, embedding=EmbeddingSettings(provider="none"))
        engine = open_engine(profile, location, self.services).engine
        try:
            yield engine
        finally:
            engine.close()

    def _traces(self, engine: MemoryEngine, owner: Owner) -> Counter[str]:
        return Counter(engine.holdings(owner)) + Counter(place for place, _ in files_of(self.location))

    def _unreached(self, engine: MemoryEngine | None) -> tuple[str, ...]:
        trouble = None if engine is None else engine.personal_trouble
        where = SERVER_ROWS if isinstance(self.location, PostgresLocation) else OTHER_PROJECTS
        return (*(() if trouble is None else (str(trouble),)), where, OTHER_USERS)


def _unread(engine: MemoryEngine | None) -> dict[str, int]:
    """Return how many databases were not read."""
    return {} if engine is None or engine.personal_trouble is None else {"unread databases": 1}


def _damaged(engine: MemoryEngine | None, owner: Owner) -> dict[str, int]:
    """Return how many rows of an owner fail their checksums and are therefore not exported, by place."""
    rows = (row for store in (() if engine is None else engine.stores) for row in store.damaged(owner))
    return dict(Counter(DAMAGED_PLACES[row.kind] for row in rows if row.kind in DAMAGED_PLACES))


def _databases(location: SqliteLocation) -> tuple[Path, ...]:
    own = (location.database,)
    return own if location.is_given else (*own, location.person_folder / DATABASE)


def _records(engine: MemoryEngine, owner: Owner) -> dict[str, Iterator[dict[str, Any]]]:
    """Return the records of an owner by the name of their kind."""
    stores = engine.stores
    return {
        "memories": (_plain_memory(*each) for each in engine.every_memory(owner)),
        "summaries": (attrs.asdict(each) for store in stores for each in store.summaries(owner, limit=MOST)),
        "waiting-turns": (
            _plain_turn(each) for store in stores for each in store.queue.waiting(owner, ALL_PROJECTS, limit=MOST)
        ),
    }


def _plain_memory(memory: Memory, changes: Iterable[Change]) -> dict[str, Any]:
    fields = {name: value for name, value in attrs.asdict(memory, recurse=False).items() if name not in INTERNAL}
    return fields | {"history": [attrs.asdict(each, recurse=False) for each in changes]}


def _plain_turn(turn: QueuedTurn) -> dict[str, Any]:
    return {"session": turn.place.session, "turn": turn.turn, "queued_at": turn.queued_at, "content": turn.content}


def _write(path: Path, records: Iterable[Mapping[str, Any]]) -> int:
    """Write records as lines of JSON; return their number."""
    count = 0
    with path.open("w", encoding="utf-8", errors="backslashreplace") as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False, default=_plain) + "\n")
            count += 1
    return count


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    return dict(value) if isinstance(value, Mapping) else str(value)


def _some(counts: Mapping[str, int]) -> dict[str, int]:
    return {place: count for place, count in counts.items() if count}
