"""The manifest of a backup: its moment, its source, its content, and the hash of each file. Pure."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

import attrs

from beaver_hostspecs import BACKUP_PARTS, thaw
from beaver_toolkit.strict_json import loads

FORMAT = 1
"""The version of the archive; a later one is refused."""

MOST_FILES, LONGEST_PATH = 100_000, 500
_PART = re.compile(r"[A-Za-z0-9._ @-]{1,200}")
_HASH = re.compile(r"[0-9a-f]{64}")


@attrs.frozen(kw_only=True)
class FileEntry:
    """One file of a backup: its path in the archive, its size in bytes, and its SHA-256."""

    path: str
    size: int
    sha256: str


@attrs.frozen(kw_only=True)
class StateEntry:
    """The state of the host or of a plugin.

    Attributes:
        name: `host`, or that of the plugin.
        version: of the host or the plugin that made the copy.
        held: how many things it holds, by their plural noun.
        notes: sentences about data that is not in it.
        problems: damage that was found when it was made.
    """

    name: str
    version: str
    held: Mapping[str, int]
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Manifest:
    """The content of a backup.

    Attributes:
        made: when it was begun: changes since are not in it.
        version: of Beaver Hooks that made it.
        source: the state folder.
        parts: the parts that it holds, `project` and `person`.
        states: of the host and its plugins.
        files: all files.
    """

    made: datetime
    version: str
    source: str
    parts: tuple[str, ...]
    states: tuple[StateEntry, ...]
    files: tuple[FileEntry, ...] = attrs.field(repr=False)

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of all states."""
        return tuple(note for each in self.states for note in each.notes)

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems of all states, each with the name of the state."""
        return tuple(f"{each.name}: {problem}" for each in self.states for problem in each.problems)


def encoded(manifest: Manifest) -> bytes:
    """Return a manifest as JSON."""
    plain = {"format": FORMAT, **attrs.asdict(manifest, value_serializer=_plain)}
    return json.dumps(plain, indent=1).encode("ascii")


def decoded(content: bytes) -> Manifest:
    """Return the manifest that a file holds, which may be hostile.

    Raises:
        ValueError: it holds none.
    """
    try:
        plain = loads(content)
        if plain["format"] != FORMAT:
            raise ValueError("another format")
        manifest = Manifest(
            made=_time(plain["made"]),
            version=_text(plain["version"]),
            source=_text(plain["source"]),
            parts=_texts(plain["parts"]),
            states=tuple(map(_state, plain["states"])),
            files=tuple(map(_file, plain["files"])),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("a field is missing or has another type") from error
    _check(manifest)
    return manifest


def is_safe(path: str) -> bool:
    """Return whether a path of an archive stays in the folder into which it is written, on every system."""
    parts = path.split("/")
    return (
        len(path) <= LONGEST_PATH
        and str(PurePosixPath(path)) == path
        and all(_PART.fullmatch(part) and part not in {".", ".."} and part[-1] not in ". " for part in parts)
    )


def _check(manifest: Manifest) -> None:
    paths = [each.path for each in manifest.files]
    folders = {str(parent) for path in paths for parent in PurePosixPath(path).parents}
    if len(paths) > MOST_FILES or len({path.casefold() for path in paths}) != len(paths):
        raise ValueError("too many files, or one of them twice")
    if not all(map(is_safe, paths)) or folders & set(paths):
        raise ValueError("a path that leaves its folder")
    if not set(manifest.parts) <= set(BACKUP_PARTS):
        raise ValueError("an unknown part")


def _plain(_: object, __: object, value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else thaw(value)


def _state(plain: Mapping[str, Any]) -> StateEntry:
    return StateEntry(
        name=_text(plain["name"]),
        version=_text(plain["version"]),
        held={_text(noun): _number(count) for noun, count in plain["held"].items()},
        notes=_texts(plain["notes"]),
        problems=_texts(plain["problems"]),
    )


def _file(plain: Mapping[str, Any]) -> FileEntry:
    entry = FileEntry(path=_text(plain["path"]), size=_number(plain["size"]), sha256=_text(plain["sha256"]))
    if not _HASH.fullmatch(entry.sha256):
        raise ValueError("no hash")
    return entry


def _time(value: Any) -> datetime:
    time = datetime.fromisoformat(_text(value))
    if time.tzinfo is None:
        raise ValueError("a time without a zone")
    return time


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise TypeError("no list")
    return tuple(map(_text, values))


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("no count")
    return value
