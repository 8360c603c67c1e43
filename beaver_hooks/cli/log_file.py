"""The log of a conversation: a private file in the state folder, so that no log line interrupts the messages."""

import logging
import os
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from beaver_hooks.cli.terminal import show

NAME = "beaver.log"
MOST_BYTES = 1024 * 1024


class LogFile(RotatingFileHandler):
    """Appends to a file that the first record creates, and keeps one earlier file. No link is followed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / NAME, maxBytes=MOST_BYTES, backupCount=1, encoding="utf-8", delay=True)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, "a", encoding="utf-8", opener=_private)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is the standard library's
        """Show on stderr that a record cannot be written."""
        show(f"{record.levelname} {record.getMessage()} ({self.baseFilename} cannot be written)", err=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)
