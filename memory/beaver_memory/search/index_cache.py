"""Caches the indexes in use: loads them from files on first use, and saves them beside searching.

An index is saved when so much has changed that reading it from the store again would take long. A search never saves:
one thread saves indexes and merges large blocks; it starts when it has work.

No file holds forgotten memories: forgetting deletes the files of the owner, and closing saves the indexes again. A
process that saves memories that another process has forgotten meanwhile detects this afterwards, and deletes its file.

If the store finds candidates by itself, the index of a large owner is built beside searching too: the first searches do
without it.
"""

import queue
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import attrs

from beaver_hostspecs import BeaverError
from beaver_memory.records import Owner
from beaver_memory.search import index_file, snapshot
from beaver_memory.search.owner_index import OwnerIndex, Progress
from beaver_memory.search.snapshot import IndexState, Model
from beaver_memory.search.vectors import STAYING
from beaver_memory.store.protocol import SingleStore

MOST_OWNERS = 256
"""Indexes that are kept in memory; a new one replaces the least recently used."""

MOST_UNITS = 2_000_000
"""Units that all indexes in memory may have together; a single index may have more."""

CHANGES = 2_000
"""Changes after which an index is worth saving, if they are also a large enough part of it."""

SHARE = 0.1

SMALL = 10_000
"""Memories up to which an index is built before the first search even if the store finds candidates by itself."""

_MOST_PAUSE = 1_024
"""Searches without an index after which a build is tried again at the latest, if it fails."""

_Key = tuple[Owner, str]


@attrs.define(eq=False)
class _Kept:
    """An index, the state of its file, and the state at the last check for work.

    Its file is lost if it held forgotten memories. `pause` counts the searches until a failed build is tried again.
    """

    index: OwnerIndex
    lock: threading.Lock = attrs.field(factory=threading.Lock)
    is_open: bool = False
    saved: int = 0
    is_lost: bool = False
    is_due: bool = False
    seen: IndexState | None = None
    failures: int = 0
    pause: int = 0


class _StoppedBuild(Exception):
    """The indexes were closed while one of them was built."""


class IndexShelf:
    """Holds the indexes of owners. Thread-safe.

    Args:
        store: the store of the memories.
        folder: the folder for saved indexes; `None` to save none.
        trace: receives events: `trace(event, **facts)`.
        small: memories up to which an index is built at once; `None` to build every index at once.
    """

    def __init__(
        self, store: SingleStore, folder: Path | None, trace: Callable[..., None], small: int | None = None
    ) -> None:
        self._store = store
        self._small = small
        self._folder = folder
        self._trace = trace
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._lock = threading.Lock()
        self._work: queue.SimpleQueue[tuple[_Key, _Kept] | None] = queue.SimpleQueue()
        self._worker: threading.Thread | None = None
        self._closed = False

    def current(self, owners: Sequence[Owner], model: Model | None) -> list[IndexState | None]:
        """Return the index of each owner, up to date with the store; `None` for a large one that is not built yet."""
        versions = self._store.versions(owners, None if model is None else model.key)
        return [self._current(*each, model) for each in zip(owners, versions, strict=True)]

    def known(self, owners: Sequence[Owner], model: Model | None) -> list[IndexState]:
        """Return the index of each owner as it was at the last search; an empty list if one is not in memory."""
        found = []
        with self._lock:
            for owner in owners:
                key = (owner, model.key if model is not None else "")
                kept = self._kept.get(key)
                if kept is None or not kept.is_open:
                    return []
                self._kept.move_to_end(key)
                found.append(kept.index.state)
        return found

    def build(self, owner: Owner, model: Model | None) -> None:
        """Begin to build the index of a large owner, unless that has begun."""
        key = (owner, model.key if model is not None else "")
        kept = self._find(key, model)
        kept.pause -= 1
        if not kept.is_open and kept.pause <= 0:
            self._schedule(key, kept)

    def _current(self, owner: Owner, versions: tuple[int, int], model: Model | None) -> IndexState | None:
        key = (owner, model.key if model is not None else "")
        kept = self._find(key, model)
        if not kept.is_open:
            if self._small is not None and versions[0] and self._store.count(owner) > self._small:
                return None
            self._open(key, kept)
        state = kept.index.current(versions)
        if state is not kept.seen:
            kept.seen = state
            if snapshot.mergeable(state, float("inf")) or self._is_worth_saving(kept, state):
                self._schedule(key, kept)
        return state

    def rebuild(self, owners: Iterable[Owner], model: Model | None, progress: Progress | None = None) -> int:
        """Build indexes anew from the store and save them if possible; return the number of their memories."""
        done = 0
        for owner in owners:
            key = (owner, model.key if model is not None else "")
            kept = self._find(key, model)
            with kept.lock:
                done += kept.index.rebuild(progress).memories
                kept.is_open = True
            self._try(self._save, key, kept)
        return done

    def forget(self, owners: Iterable[Owner], model: Model | None) -> None:
        """Remove from all files the memories that owners have forgotten."""
        if self._folder is not None:
            for owner in owners:
                key = (owner, model.key if model is not None else "")
                kept = self._find(key, model)
                # An index that is loaded before its file is deleted need not be built anew.
                self._open(key, kept)
                self._delete(self._folder, key, kept)

    def drop_owner(self, owner: Owner) -> None:
        """Delete the indexes of an owner, and their files."""
        with self._lock:
            gone = {key: self._kept.pop(key) for key in [key for key in self._kept if key[0] == owner]}
        if self._folder is not None:
            key = (owner, "")
            kept = gone.get(key) or _Kept(OwnerIndex(self._store, owner, None, self._trace))
            self._delete(self._folder, key, kept)

    def drop(self, model: Model) -> None:
        """Drop the indexes with a model's vectors."""
        with self._lock:
            for key in [key for key in self._kept if key[1] == model.key]:
                del self._kept[key]

    def owners(self) -> list[Owner]:
        """Return the owners whose indexes are in memory."""
        with self._lock:
            return list(dict.fromkeys(owner for owner, _ in self._kept))

    def close(self) -> None:
        """Save the indexes that are worth it and end the thread. Closing again does nothing."""
        with self._lock:
            first, self._closed = not self._closed, True
            worker, kept = self._worker, list(self._kept.items())
        if not first:
            return
        if worker is not None:
            self._work.put(None)
            worker.join()
        for key, each in kept:
            if each.is_open and (each.is_lost or self._is_worth_saving(each, each.index.state)):
                self._try(self._tidy, key, each)

    def _find(self, key: _Key, model: Model | None) -> _Kept:
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                index = OwnerIndex(self._store, key[0], model, self._trace)
                kept = self._kept[key] = _Kept(index)
                self._make_room(key)
            self._kept.move_to_end(key)
            return kept

    def _make_room(self, new: _Key) -> None:
        units = sum(kept.index.state.live for kept in self._kept.values())
        for key in [key for key in self._kept if key != new]:
            if len(self._kept) <= MOST_OWNERS and units <= MOST_UNITS:
                return
            units -= self._kept.pop(key).index.state.live

    def _open(self, key: _Key, kept: _Kept) -> None:
        with kept.lock:
            if kept.is_open:
                return
            if self._folder is not None:
                state, why = index_file.load(self._folder, self._label(key, kept))
                if state is not None:
                    why = kept.index.take(state)
                    if not why and kept.index.has_forgotten(state.version):
                        self._delete(self._folder, key, kept)
                if why not in {"", "missing"}:
                    self._trace("index_rebuilt", why=why)
            kept.is_open = True

    def _label(self, key: _Key, kept: _Kept) -> index_file.Label:
        owner, model = key[0], kept.index.model
        return index_file.Label(
            store=self._store.identity,
            tenant=owner.tenant,
            user=owner.user,
            kind=owner.kind,
            model=key[1],
            dimensions=0 if model is None else model.dimensions,
        )

    def _is_worth_saving(self, kept: _Kept, state: IndexState) -> bool:
        new = state.changes - kept.saved
        return self._folder is not None and new >= max(CHANGES, SHARE * state.live)

    def _schedule(self, key: _Key, kept: _Kept) -> None:
        with self._lock:
            if self._closed or kept.is_due:
                return
            kept.is_due = True
            if self._worker is None:
                self._worker = threading.Thread(target=self._run, name="beaver-memory-index", daemon=True)
                self._worker.start()
        self._work.put((key, kept))

    def _run(self) -> None:
        while (job := self._work.get()) is not None:
            if self._small is not None and not job[1].is_open:
                self._build(job[1])
            else:
                self._try(self._tidy, *job)

    def _build(self, kept: _Kept) -> None:
        try:
            with kept.lock:
                self._go_on()
                kept.index.build(self._go_on)
                kept.is_open = True
            self._trace("index_built", memories=kept.index.state.memories)
        except _StoppedBuild:
            return
        # The store goes on answering without the index.
        except (MemoryError, BeaverError) as error:
            kept.failures += 1
            kept.pause = min(2**kept.failures, _MOST_PAUSE)
            self._trace("index_not_built", why=getattr(error, "category", "out_of_memory"))
        finally:
            kept.is_due = False

    def _go_on(self) -> None:
        if self._closed:
            raise _StoppedBuild

    def _tidy(self, key: _Key, kept: _Kept) -> None:
        kept.is_due = False
        kept.index.tidy()
        if kept.is_lost or self._is_worth_saving(kept, kept.index.state):
            self._save(key, kept)

    def _try(self, work: Callable[[_Key, _Kept], None], key: _Key, kept: _Kept) -> None:
        try:
            work(key, kept)
        # An index that cannot be merged or saved is slower, and still correct.
        except (OSError, MemoryError, BeaverError) as error:
            self._trace("index_not_saved", why=type(error).__name__)

    def _delete(self, folder: Path, key: _Key, kept: _Kept) -> None:
        try:
            had = index_file.remove(folder, self._label(key, kept))
        except OSError as error:
            self._trace("index_not_erased", why=type(error).__name__)
        else:
            kept.is_lost |= had and kept.index.state.version > 0

    def _reopen(self, key: _Key, kept: _Kept, state: IndexState) -> None:
        if self._folder is not None:
            saved, _ = index_file.load(self._folder, self._label(key, kept))
            if saved is not None:
                kept.index.replace(state, attrs.evolve(saved, changes=state.changes))

    def _save(self, key: _Key, kept: _Kept) -> None:
        if self._folder is None:
            return
        kept.is_lost = False
        before = kept.index.current()
        state = snapshot.without_stale(before, kept.index.model)
        index_file.sweep(self._folder)
        index_file.save(self._folder, self._label(key, kept), state)
        kept.saved = state.changes
        if kept.index.has_forgotten(state.version):
            # The process that forgot may have looked for files before this one existed.
            self._delete(self._folder, key, kept)
            return
        kept.index.replace(before, state)
        if state.live > STAYING:
            self._reopen(key, kept, state)
        self._trace("index_saved", memories=state.memories, blocks=len(state.parts))
