"""Which folder holds which memory: notes belong to the project, profiles to the user."""

import hashlib
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from beaver_hooks_curated.entries import BOTH, Target, Targets
from beaver_hooks_curated.settings import CuratedSettings
from beaver_hooks_curated.store import BELIEVE_ALL, MemoryStore
from beaver_hostspecs import Clock, FileTrust

USERS = "users"
_MOST_OPEN = 256
_SLUG, _HASH = 24, 16
_UNSAFE = re.compile(r"[^A-Za-z0-9]+")

Reached = Mapping[MemoryStore, Targets]


class Layout:
    """Finds the store of a target for a user.

    Args:
        folder: the project's folder.
        person: the folder that the user's projects share; may be the same. `folder` holds both where `person`
            neither exists nor can be made: a service may have no home directory.
    """

    def __init__(self, folder: Path, person: Path, settings: CuratedSettings, clock: Clock, trust: FileTrust) -> None:
        self.folder = folder
        # Two names of one folder are one place: a home directory may be reached through a link.
        is_one = os.path.realpath(person) == os.path.realpath(folder) or not _can_be(person)
        self.person = folder if is_one else person
        self._trust = trust
        self._settings = settings
        self._clock = clock
        self._store = lru_cache(_MOST_OPEN)(self._new_store)

    def store(self, target: Target, user: str | None) -> MemoryStore:
        """Return the store that holds the target of `user`.

        Notes are shared by all users. A profile is the user's own where `perUser` is on; turns without a user share one
        that no user sees.
        """
        return self._store(self.folder_of(target, user))

    def folder_of(self, target: Target, user: str | None) -> Path:
        """Return the folder that holds the target of `user`."""
        return self.folder if target is Target.MEMORY else self.person / self._name(user)

    def at(self, folder: Path) -> MemoryStore:
        """Return the store of a folder of this layout."""
        return self._store(folder)

    def copy_at(self, folder: Path) -> MemoryStore:
        """Return the store of a copy of such a folder, which needs no trust."""
        return self._new_store(folder, BELIEVE_ALL)

    def reached(self, user: str | None, targets: Targets = BOTH) -> Reached:
        """Return the stores of the targets of `user`, each with its targets that belong to the user."""
        return self._grouped((self._name(user),), targets)

    def all(self) -> Reached:
        """Return every store that has a folder, of all users, with the targets that are held there."""
        found = self._grouped(self._names(), BOTH)
        return {store: targets for store, targets in found.items() if store.folder.is_dir()}

    def _grouped(self, names: tuple[Path, ...], targets: Targets) -> Reached:
        found: dict[MemoryStore, Targets] = {}
        if Target.MEMORY in targets:
            found[self._store(self.folder)] = (Target.MEMORY,)
        for name in names if Target.USER in targets else ():
            store = self._store(self.person / name)
            found[store] = (*found.get(store, ()), Target.USER)
        return found

    def _name(self, user: str | None) -> Path:
        """Return the path of the profile of `user` in a folder."""
        return Path() if user is None or not self._settings.per_user else Path(USERS, user_folder(user))

    def _names(self) -> tuple[Path, ...]:
        users = {each.name for each in (self.person / USERS).glob("*/")}
        return (Path(), *(Path(USERS, name) for name in sorted(users)))

    def _new_store(self, folder: Path, trust: FileTrust | None = None) -> MemoryStore:
        limits = {Target.MEMORY: self._settings.memory_char_limit, Target.USER: self._settings.user_char_limit}
        seconds = self._settings.lock_seconds
        return MemoryStore(folder, limits, lock_seconds=seconds, clock=self._clock, trust=trust or self._trust)


def user_folder(user: str) -> str:
    """Return a file name for a user id: readable where it can be, and never the same for two users."""
    slug = _UNSAFE.sub("-", user).strip("-")[:_SLUG].lower()
    digest = hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{slug}-{digest}" if slug else digest


def _can_be(folder: Path) -> bool:
    """Whether a folder exists or can be made."""
    there = next(each for each in (folder, *folder.parents) if os.path.lexists(each))
    return there == folder or (there.is_dir() and os.access(there, os.W_OK | os.X_OK))
