"""Entries of a memory file, with a line that holds a section sign between two of them. Pure.

Entries are stripped, empty ones dropped, and of equal ones the first is kept. Every line that is a section sign and
nothing else, blanks aside, divides; a section sign inside a line is text like any other. So no entry ever holds such
a line, however the user edited the file, and joined entries are parsed into the same entries.
"""

import hashlib
from collections.abc import Iterable
from enum import StrEnum

import attrs

DELIMITER = "\n§\n"
MOST_ENTRIES = 1000
"""Entries of one target that the tool may write, and that are shown of a file to which the user added more."""
_SIGN = "§"
_HANDLE_LENGTH = 8


class Target(StrEnum):
    """The two memories."""

    MEMORY = "memory"
    USER = "user"

    @property
    def file_name(self) -> str:
        """The name of its file."""
        return f"{self.name}.md"


Entries = tuple[str, ...]
Targets = tuple[Target, ...]
BOTH: Targets = tuple(Target)


def parse(text: str) -> Entries:
    """Return the entries of a file's text; any line ends are taken."""
    parts: list[list[str]] = [[]]
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if line.strip() == _SIGN:
            parts.append([])
        else:
            parts[-1].append(line)
    return tidy("\n".join(part) for part in parts)


def join(entries: Iterable[str]) -> str:
    """Return the text of a file, from which `parse` returns the same entries."""
    return DELIMITER.join(entries)


def tidy(entries: Iterable[str]) -> Entries:
    """Return the entries stripped, without empty ones, and each only once."""
    return tuple(dict.fromkeys(stripped for entry in entries if (stripped := entry.strip())))


def size(entries: Iterable[str]) -> int:
    """Return how many characters the entries take up in the file, delimiters included."""
    return len(join(entries))


def holds_delimiter(content: str) -> bool:
    """Whether an entry would fall apart in the file: one of its lines is a section sign and nothing else."""
    return any(line.strip() == _SIGN for line in content.split("\n"))


def handle(entry: str) -> str:
    """Return a short name for an entry whose text must not be shown."""
    return hashlib.sha256(entry.encode("utf-8", "surrogatepass")).hexdigest()[:_HANDLE_LENGTH]


@attrs.frozen(kw_only=True)
class Page:
    """The entries of one target and how many characters it may hold."""

    target: Target
    entries: Entries = attrs.field(repr=False)
    limit: int

    @property
    def size(self) -> int:
        """The characters in use."""
        return size(self.entries)

    @property
    def usage(self) -> str:
        """The characters in use, for people and models: `41% — 902/2,200 chars`."""
        return f"{min(100, self.size * 100 // self.limit)}% — {self.size:,}/{self.limit:,} chars"
