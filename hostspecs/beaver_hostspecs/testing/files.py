"""A `FileTrust` in memory, for a plugin all of whose files git lists."""

from pathlib import Path

from beaver_hostspecs.errors import ConfigurationError


class RecordedFiles:
    """Believes of each file its recorded contents alone.

    Attributes:
        recorded: the believed contents, by file.
        broken: whether recording fails.
    """

    def __init__(self) -> None:
        self.recorded: dict[Path, set[bytes]] = {}
        self.broken = False

    def doubts(self, path: Path) -> bool:  # noqa: ARG002 - as the protocol has it
        """Doubt every file."""
        return True

    def believes(self, path: Path, content: bytes) -> bool:
        """Whether this content was recorded; an empty file is always believed."""
        return not content or content in self.recorded.get(path, ())

    def record(self, path: Path, content: bytes) -> None:
        """Believe this content; the replaced content stays believed, if it was."""
        if self.broken:
            raise ConfigurationError("", "nothing can be recorded")
        before = {path.read_bytes()} if path.is_file() else set()
        self.recorded[path] = {content} | (before & self.recorded.get(path, set()))
