"""The index of one owner's memories. It catches up before each search, so new memories are found at once.

Catching up merges small blocks; `tidy` merges larger ones, outside of searches.
"""

import threading
from collections.abc import Callable

import numpy as np

from beaver_memory.records import Owner
from beaver_memory.search import snapshot
from beaver_memory.search.snapshot import IndexState, Model, Part
from beaver_memory.store.protocol import SingleStore

PAGE = 20_000
"""Rows that are read from the store at once."""

VECTOR_PAGE = 4_000
"""Vectors that are read from the store at once; they are larger than rows."""

INLINE = 8_192
"""Units up to which blocks are merged before a search."""

_TRIES = 5

Progress = Callable[[int, int], None]
"""Receives the number of memories that are done, and of all."""


class OwnerIndex:
    """Keeps the index of one owner. Thread-safe.

    Args:
        store: the store of the memories.
        owner: their owner.
        model: the model of the vectors to read; `None` for none.
        trace: receives an event when the index is rebuilt.
    """

    def __init__(
        self, store: SingleStore, owner: Owner, model: Model | None = None, trace: Callable[..., None] | None = None
    ) -> None:
        self._store = store
        self._owner = owner
        self._model = model
        self._trace = trace
        self._state = IndexState()
        self._lock = threading.Lock()
        self._tidying = threading.Lock()

    @property
    def state(self) -> IndexState:
        """The state when the index last caught up."""
        return self._state

    @property
    def model(self) -> Model | None:
        """The model of the vectors in the index."""
        return self._model

    def current(self, versions: tuple[int, int] | None = None) -> IndexState:
        """Catch up with the store, and return the state.

        Args:
            versions: the versions of the owner's memories and vectors in the store, if they are known.
        """
        state = self._state
        versions = self._versions() if versions is None else versions
        if versions[0] == state.version and versions[1] <= state.vector_version:
            return state
        with self._lock:
            self._catch_up()
            return self._state

    def take(self, state: IndexState) -> str:
        """Begin with a saved state, if it fits the store; return why it does not, or nothing."""
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
            self._state = IndexState()
            return "another_count"

    def has_forgotten(self, since: int) -> bool:
        """Return whether a memory was forgotten after a version of the store."""
        while rows := self._store.changed(self._owner, since, limit=PAGE):
            if any(row.gone for row in rows):
                return True
            since = rows[-1].version
        return False

    def replace(self, old: IndexState, new: IndexState) -> None:
        """Replace an unchanged state by another one of the same memories, which takes less memory."""
        with self._lock:
            if self._state is old:
                self._state = new

    def rebuild(self, progress: Progress | None = None) -> IndexState:
        """Build the index anew from the store."""
        with self._lock:
            self._state = self._caught_up(IndexState(), self._versions()[1], progress)
            return self._state

    def build(self, page: Callable[[], None]) -> None:
        """Build the index if it is empty.

        Args:
            page: called after each page that was read; it ends the build by raising an error.
        """
        with self._lock:
            if not self._state.version:
                self._state = self._caught_up(IndexState(), self._versions()[1], lambda *_: page())

    def tidy(self) -> None:
        """Merge large blocks, while other threads go on searching and adding."""
        with self._tidying:
            while self._tidy_once():
                pass

    def _versions(self) -> tuple[int, int]:
        return self._store.versions([self._owner], None if self._model is None else self._model.key)[0]

    def _catch_up(self) -> None:
        last, until = self._versions()
        if last < self._state.version:
            # The store is older than it was: a backup was restored.
            if self._trace is not None:
                self._trace("index_rebuilt", why="older_store")
            self._state = IndexState()
        self._state = self._caught_up(self._state, until)

    def _caught_up(self, state: IndexState, until: int, progress: Progress | None = None) -> IndexState:
        """Return a state with all memories, and with the vectors that the store had before the memories were read.

        Vectors that other processes store meanwhile wait for the next time: the index may not have their memories yet.
        """
        read, total = 0, self._store.count(self._owner) if progress else 0
        while rows := self._store.changed(self._owner, state.version, limit=PAGE):
            state = snapshot.with_rows(state, rows, self._model)
            read += len(rows)
            if progress:
                progress(min(read, total), total)
        # Rows from many pages are merged once, at the end.
        state = snapshot.merged(state, snapshot.mergeable(state, np.inf if read > PAGE else INLINE), self._model)
        if self._model is None:
            return state
        return self._with_new_vectors(
            snapshot.for_model(state, self._model), until, lambda: progress and progress(total, total)
        )

    def _with_new_vectors(self, state: IndexState, until: int, page: Callable[[], object]) -> IndexState:
        model = self._model
        while model is not None and state.vector_version < until:
            found = self._store.vectors(self._owner, model.key, state.vector_version, limit=VECTOR_PAGE)
            rows = [row for row in found if row.version <= until]
            if not rows:
                break
            state = snapshot.with_vectors(state, rows)
            page()
        return state

    def _tidy_once(self) -> bool:
        before = self._state
        count = snapshot.mergeable(before, np.inf)
        if not count:
            return False
        old = before.parts[-count:]
        joined = snapshot.joined(old, self._model)
        with self._lock:
            now = self._state
            first = next((place for place, part in enumerate(now.parts) if part.block is old[0].block), -1)
            here = now.parts[first : first + count] if first >= 0 else ()
            if [part.block for part in here] != [part.block for part in old]:
                return False
            joined = self._caught_up_part(joined, old, here, before)
            parts = (*now.parts[:first], *([joined] if joined.live else []), *now.parts[first + count :])
            self._state = snapshot.with_parts(now, parts)
        return True

    def _caught_up_part(self, joined: Part, old: tuple[Part, ...], now: tuple[Part, ...], before: IndexState) -> Part:
        """Return a merged part with the changes that the parts had during the merge."""
        ids = snapshot.newly_stale(old, now)
        if len(ids):
            joined = snapshot.without(joined, ids)
        if self._model is None:
            return joined
        version = before.vector_version
        while rows := self._store.vectors(self._owner, self._model.key, version, limit=VECTOR_PAGE):
            data = {row.id: row.data for row in rows}
            joined = snapshot.place(joined, np.array(sorted(data), "i8"), data)
            version = rows[-1].version
        return joined

    # --- Checks of a saved state against the store --------------------------------------------------------------

    def _contradicted(self, state: IndexState) -> str:
        """Return how a saved state contradicts the store's own history, or nothing."""
        if state.version > self._versions()[0]:
            return "newer_than_store"
        # Later changes will be read anyway; every other change above a known one must be known too.
        since = self._changed_since(state.version)
        for version, id_, updated in reversed(state.marks):
            found = self._store.changed(self._owner, version - 1, limit=1)
            if found and (found[0].version, found[0].id, found[0].updated) == (version, id_, updated):
                return ""
            if id_ not in since:
                return "another_history"
        return "unknown_history"

    def _with_true_vectors(self, state: IndexState) -> IndexState:
        """Return a state without its vectors, unless its newest vectors are those of the store."""
        model = self._model
        if model is None or not state.vector_version:
            return state
        # Vectors of forgotten memories are not stored: possibly none is left to compare.
        since = self._changed_since(state.vector_marks[0][0]) if state.vector_marks else {}
        for mark in reversed(state.vector_marks):
            found = self._store.vectors(self._owner, model.key, mark[0] - 1, limit=1)
            if found and snapshot.vector_mark(found[0]) == mark:
                return state
            # Only the vector of a memory that has changed or is forgotten may be missing.
            if since.get(mark[1], 0) < mark[0]:
                break
        return snapshot.stripped(state)

    def _changed_since(self, version: int) -> dict[int, int]:
        return {row.id: row.version for row in self._store.changed(self._owner, version, limit=PAGE)}

    def _is_whole(self) -> bool:
        """Return whether the index has as many memories as the store, while other processes may write."""
        for _ in range(_TRIES):
            if self._state.memories == self._store.count(self._owner):
                return True
            if self._versions()[0] == self._state.version:
                return False
            self._catch_up()
        return False
