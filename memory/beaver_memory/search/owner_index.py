"""The index of one owner's memories. Before each search it catches up: what was written is found at once.

Small blocks are merged while catching up; for larger ones there is `tidy`, which others do beside searching.
"""

import threading
from collections.abc import Callable

import numpy as np

from beaver_memory.records import Owner
from beaver_memory.search import snapshot as parts_of
from beaver_memory.search.snapshot import Model, Part, State
from beaver_memory.store.protocol import SingleStore

PAGE = 20_000
"""Rows that are read from the store at once."""

VECTOR_PAGE = 4_000
"""The same for vectors, which are larger."""

INLINE = 8_192
"""Units up to which blocks are merged before a search."""

_TRIES = 5

Progress = Callable[[int, int], None]
"""Is told how many memories are done, of how many."""


class OwnerIndex:
    """Keeps the index of one owner. Thread-safe.

    Args:
        store: where the memories are.
        owner: whose.
        model: whose vectors are looked at; `None` for none.
        trace: told when it had to be made anew.
    """

    def __init__(
        self, store: SingleStore, owner: Owner, model: Model | None = None, trace: Callable[..., None] | None = None
    ) -> None:
        self._store = store
        self._owner = owner
        self._model = model
        self._trace = trace
        self._state = State()
        self._lock = threading.Lock()
        self._tidying = threading.Lock()

    @property
    def state(self) -> State:
        """What was there when the index last caught up."""
        return self._state

    @property
    def model(self) -> Model | None:
        """Whose vectors are looked at."""
        return self._model

    def current(self, versions: tuple[int, int] | None = None) -> State:
        """Catch up with the store, and return what there is.

        Args:
            versions: of the owner's memories and vectors in the store, if they are known.
        """
        state = self._state
        versions = self._versions() if versions is None else versions
        if versions[0] == state.version and versions[1] <= state.vector_version:
            return state
        with self._lock:
            self._catch_up()
            return self._state

    def take(self, state: State) -> str:
        """Begin with a state that was saved, if it fits to the store; return why it does not, or nothing."""
        with self._lock:
            if self._state.version:
                return ""
            why = self._contradicted(state)
            if why:
                return why
            self._state = self._with_true_vectors(state)
            self._catch_up()
            if self._is_whole():
                return ""
            self._state = State()
            return "another_count"

    def has_forgotten(self, since: int) -> bool:
        """Return whether a memory was forgotten after a version of the store."""
        while rows := self._store.changed(self._owner, since, limit=PAGE):
            if any(row.gone for row in rows):
                return True
            since = rows[-1].version
        return False

    def replace(self, old: State, new: State) -> None:
        """Go on with another index of the same memories, if nothing has changed since: it takes less memory."""
        with self._lock:
            if self._state is old:
                self._state = new

    def rebuild(self, progress: Progress | None = None) -> State:
        """Make the index anew from the store."""
        with self._lock:
            self._state = self._caught_up(State(), self._versions()[1], progress)
            return self._state

    def tidy(self) -> None:
        """Merge what is to be merged, while others go on searching and adding."""
        with self._tidying:
            while self._tidy_once():
                pass

    def _versions(self) -> tuple[int, int]:
        return self._store.versions([self._owner], None if self._model is None else self._model.key)[0]

    def _catch_up(self) -> None:
        last, until = self._versions()
        if last < self._state.version:
            # The store is an older one than it was: somebody has restored a backup.
            if self._trace is not None:
                self._trace("index_rebuilt", why="older_store")
            self._state = State()
        self._state = self._caught_up(self._state, until)

    def _caught_up(self, state: State, until: int, progress: Progress | None = None) -> State:
        """Return a state with all memories, and with the vectors that were there before those were read.

        What others embed meanwhile waits for the next time: its memory may be one that is not here yet.
        """
        read, total = 0, self._store.count(self._owner) if progress else 0
        while rows := self._store.changed(self._owner, state.version, limit=PAGE):
            state = parts_of.with_rows(state, rows, self._model)
            read += len(rows)
            if progress:
                progress(min(read, total), total)
        # What is read in many pages is merged once, at the end.
        state = parts_of.merged(state, parts_of.mergeable(state, np.inf if read > PAGE else INLINE), self._model)
        return state if self._model is None else self._with_new_vectors(parts_of.for_model(state, self._model), until)

    def _with_new_vectors(self, state: State, until: int) -> State:
        model = self._model
        while model is not None and state.vector_version < until:
            found = self._store.vectors(self._owner, model.key, state.vector_version, limit=VECTOR_PAGE)
            rows = [row for row in found if row.version <= until]
            if not rows:
                break
            state = parts_of.with_vectors(state, rows)
        return state

    def _tidy_once(self) -> bool:
        before = self._state
        count = parts_of.mergeable(before, np.inf)
        if not count:
            return False
        old = before.parts[-count:]
        joined = parts_of.joined(old, self._model)
        with self._lock:
            now = self._state
            first = next((place for place, part in enumerate(now.parts) if part.block is old[0].block), -1)
            here = now.parts[first : first + count] if first >= 0 else ()
            if [part.block for part in here] != [part.block for part in old]:
                return False
            joined = self._caught_up_part(joined, old, here, before)
            parts = (*now.parts[:first], *([joined] if joined.live else []), *now.parts[first + count :])
            self._state = parts_of.with_parts(now, parts)
        return True

    def _caught_up_part(self, joined: Part, old: tuple[Part, ...], now: tuple[Part, ...], before: State) -> Part:
        """Return a merged part with what has happened to the parts while they were merged."""
        ids = parts_of.newly_stale(old, now)
        if len(ids):
            joined = parts_of.without(joined, ids)
        if self._model is None:
            return joined
        version = before.vector_version
        while rows := self._store.vectors(self._owner, self._model.key, version, limit=VECTOR_PAGE):
            data = {row.id: row.data for row in rows}
            joined = parts_of.place(joined, np.array(sorted(data), "i8"), data)
            version = rows[-1].version
        return joined

    # --- Is what was saved of this store? -----------------------------------------------------------------------

    def _contradicted(self, state: State) -> str:
        """Return what tells a saved state from the store's own history, or nothing."""
        if state.version > self._versions()[0]:
            return "newer_than_store"
        # What changed since will be read anyway; all else that is newer than a known change must be known too.
        since = self._changed_since(state.version)
        for version, id_, updated in reversed(state.marks):
            found = self._store.changed(self._owner, version - 1, limit=1)
            if found and (found[0].version, found[0].id, found[0].updated) == (version, id_, updated):
                return ""
            if id_ not in since:
                return "another_history"
        return "unknown_history"

    def _with_true_vectors(self, state: State) -> State:
        """Return a state without its vectors, unless the newest ones are the store's."""
        model = self._model
        if model is None or not state.vector_version:
            return state
        # Those of what is forgotten are not kept: there may be none that can be compared.
        since = self._changed_since(state.vector_marks[0][0]) if state.vector_marks else {}
        for mark in reversed(state.vector_marks):
            found = self._store.vectors(self._owner, model.key, mark[0] - 1, limit=1)
            if found and parts_of.vector_mark(found[0]) == mark:
                return state
            # Only the vector of a memory that has changed or is forgotten may be gone.
            if since.get(mark[1], 0) < mark[0]:
                break
        return parts_of.stripped(state)

    def _changed_since(self, version: int) -> dict[int, int]:
        return {row.id: row.version for row in self._store.changed(self._owner, version, limit=PAGE)}

    def _is_whole(self) -> bool:
        """Whether the index has as many memories as the store; others may be writing meanwhile."""
        for _ in range(_TRIES):
            if self._state.memories == self._store.count(self._owner):
                return True
            if self._versions()[0] == self._state.version:
                return False
            self._catch_up()
        return False
