"""A `FileTrust` in memory, as a plugin gets it where git lists all of its files."""

from pathlib import Path

from beaver_hostspecs.errors import ConfigurationError


class RecordedFiles:
    """Believes of each file what was recorded of it, and nothing else.

    Attributes:
        recorded: the contents that are believed, by file.
        broken: whether nothing can be recorded.
    """

    def __init__(self) -> None:
        self.recorded: dict[Path, set[bytes]] = {}
        self.broken = False

    def doubts(self, path: Path) -> bool:  # noqa: ARG002 - as the protocol has it
        """Doubt every file."""
        return True

    def believes(self, path: Path, content: bytes) -> bool:
        """Whether this content was recorded; an empty file holds nothing that could be doubted."""
        return not content or content in self.recorded.get(path, ())

    def record(self, path: Path, content: bytes) -> None:
        """Believe this content, and what it replaces if that was believed."""
        if self.broken:
            raise ConfigurationError("", "nothing can be recorded")
        before = {path.read_bytes()} if path.is_file() else set()
        self.recorded[path] = {content} | (before & self.recorded.get(path, set()))
