"""Which folder holds which memory: one for all, and one more per user where profiles are kept apart."""

import hashlib
import re
from collections import OrderedDict
from pathlib import Path

from beaver_hooks_curated.entries import Target
from beaver_hooks_curated.settings import CuratedSettings
from beaver_hooks_curated.staging import Queue
from beaver_hooks_curated.store import MemoryStore
from beaver_hostspecs import Clock, FileTrust

USERS = "users"
_MOST_OPEN = 256
_SLUG, _HASH = 24, 16
_UNSAFE = re.compile(r"[^A-Za-z0-9]+")


class Places:
    """Finds the store of a target for a user."""

    def __init__(self, folder: Path, settings: CuratedSettings, clock: Clock, trust: FileTrust) -> None:
        self.folder = folder
        self._trust = trust
        self._settings = settings
        self._clock = clock
        self._stores: OrderedDict[Path, MemoryStore] = OrderedDict()

    def store(self, target: Target, user: str | None) -> MemoryStore:
        """Return the store that holds the target of `user`.

        Notes are shared. A profile is the user's own where `perUser` is on; turns without a user share one that no
        user sees.
        """
        return self._store(self.folder_of(target, user))

    def folder_of(self, target: Target, user: str | None) -> Path:
        """Return the folder that holds the target of `user`."""
        if target is Target.MEMORY or user is None or not self._settings.per_user:
            return self.folder
        return self.folder / USERS / user_folder(user)

    def queue(self, target: Target, user: str | None) -> Queue:
        """Return what waits there for approval."""
        return Queue(self.folder_of(target, user), self._trust)

    def queue_of(self, store: MemoryStore) -> Queue:
        """Return what waits for approval beside the files of a store."""
        return Queue(store.folder, self._trust)

    def stores(self) -> tuple[MemoryStore, ...]:
        """Return every store that has a folder."""
        users = sorted((self.folder / USERS).glob("*/"))
        return tuple(self._store(folder) for folder in (self.folder, *users) if folder.is_dir())

    def _store(self, folder: Path) -> MemoryStore:
        store = self._stores.pop(folder, None) or self._made(folder)
        self._stores[folder] = store
        if len(self._stores) > _MOST_OPEN:
            self._stores.popitem(last=False)
        return store

    def _made(self, folder: Path) -> MemoryStore:
        limits = {Target.MEMORY: self._settings.memory_char_limit, Target.USER: self._settings.user_char_limit}
        seconds = self._settings.lock_seconds
        return MemoryStore(folder, limits, lock_seconds=seconds, clock=self._clock, trust=self._trust)


def user_folder(user: str) -> str:
    """Return a file name for a user id: readable where it can be, and never the same for two users."""
    slug = _UNSAFE.sub("-", user).strip("-")[:_SLUG].lower()
    digest = hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{slug}-{digest}" if slug else digest
