"""Records the contents of files that were written here or confirmed: hashes per real path, outside every project.

The record is `trusted-files.json` beside the record of confirmed configurations, changed under the same lock. A path
without a hash is known and not trusted. Beside it `files/` keeps the last recorded content of each file, so that a
difference can be shown.
"""

import hashlib
import os
from collections.abc import Collection, Mapping
from pathlib import Path

from beaver_hooks.config.confirmations import change_record, read_record, record_path
from beaver_hostspecs import ConfigurationError
from beaver_toolkit.files import replace


class FileRecords:
    """The record of one user.

    Every method raises `ConfigurationError` if the record, or a file in `files/`, cannot be read or written.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        base = record_path(environment)
        self._path = base.with_name("trusted-files.json")
        self._copies = base.with_name("files")

    def hashes(self, path: Path) -> frozenset[str]:
        """Return the hashes of a file's trusted contents."""
        return frozenset(read_record(self._path).get(_key(path), "").split())

    def put(self, path: Path, content: bytes, *, beside: Collection[str] = ()) -> None:
        """Record a content, and keep a copy of it.

        Args:
            path: the file.
            content: the content that is trusted from now on.
            beside: hashes that stay trusted; all others are forgotten.
        """
        try:
            self._copies.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace(self._copy(path), content)
        except OSError as error:
            raise ConfigurationError("", f"{self._copies} cannot be written ({error.strerror})") from None
        value = " ".join(sorted({digest(content), *beside}))
        change_record(self._path, lambda found: found.update({_key(path): value}))

    def meet(self, path: Path) -> None:
        """Note a file that is not trusted."""
        if _key(path) not in read_record(self._path):
            change_record(self._path, lambda found: found.update({_key(path): found.get(_key(path), "")}))

    def met(self, folder: Path) -> tuple[Path, ...]:
        """Return the files in a folder that were ever recorded or noted."""
        real = os.path.realpath(folder)
        return tuple(path for each in read_record(self._path) if (path := Path(each)).is_relative_to(real))

    def last(self, path: Path) -> bytes:
        """Return the last recorded content; empty if none was recorded."""
        try:
            return self._copy(path).read_bytes()
        except OSError:
            return b""

    def forget(self, path: Path) -> None:
        """Remove the hashes and the copy of a file."""
        self._copy(path).unlink(missing_ok=True)
        change_record(self._path, lambda found: _drop(found, _key(path)))

    def _copy(self, path: Path) -> Path:
        return self._copies / digest(os.fsencode(_key(path)))


def digest(content: bytes) -> str:
    """Return the hash of a content."""
    return hashlib.sha256(content).hexdigest()


def _key(path: Path) -> str:
    return os.path.realpath(path)


def _drop(found: dict[str, str], key: str) -> None:
    found.pop(key, None)
