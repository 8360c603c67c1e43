r"""Errors of curated memory.

    PluginError
    └── CuratedError
        ├── MemoryUnreadable     a memory file exists and cannot be read; it never counts as an empty one
        │   └── MemoryUnconfirmed    git may have brought its content, and the user has not confirmed that
        ├── MemoryUnwritable     a memory file, its history or its archive cannot be written
        ├── MemoryLocked         another process holds the lock; says which
        ├── UnknownChange        no such change or staged write (also a LookupError)
        ├── EditNotTaken         the user's edit was refused or failed; says where the text is kept
        └── EditRefused          the edit does not fit; nothing was written

The tool answers `EditRefused` to the model; the host handles the others.
"""

from pathlib import Path

from beaver_hostspecs import PluginError


class CuratedError(PluginError):
    """The root of this tree; never raised itself."""


class MemoryUnreadable(CuratedError):
    """A memory file exists and cannot be read."""


class MemoryUnconfirmed(MemoryUnreadable):
    """Git may have brought the content of a memory file, and the user has not confirmed it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(
            f"{path} may have come with a repository and is not confirmed; the user can "
            "review and confirm it with `beaver trust --files`."
        )


class MemoryUnwritable(CuratedError):
    """A memory file, its history or its archive cannot be written; its content is unchanged."""


class MemoryLocked(CuratedError):
    """Another process is writing and did not finish in time."""


class UnknownChange(CuratedError, LookupError):
    """No such change to undo, or no staged write of that id."""


class EditNotTaken(CuratedError):
    """The user's text from an editor was refused or could not be written; the message says where it is kept."""


class EditRefused(CuratedError):
    """An edit does not fit; nothing was written.

    Attributes:
        kind: `invalid`, `trust`, `missing_old_text`, `no_match`, `ambiguous`, `overflow`, `threat`, `emptied`, `stale`,
            `hand_grown` or `queue_full`.
        matches: the entries that an ambiguous `old_text` matches.
    """

    def __init__(self, message: str, *, kind: str, matches: tuple[str, ...] = ()) -> None:
        self.kind = kind
        self.matches = matches
        super().__init__(message)
