"""Notes about events that a closed trail could not write.

A note is an empty file whose name holds the number: a full disk takes the name of a file, but no content.
"""

import contextlib
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

from beaver_toolkit.locks import PRIVATE

_NAME = re.compile(r"audit-lost-([0-9]{1,9})-[0-9a-f]{16}")


def leave(folder: Path, count: int) -> None:
    """Leave a note that `count` events were lost, unless the folder cannot be written."""
    with contextlib.suppress(OSError):
        (folder / f"audit-lost-{count}-{secrets.token_hex(8)}").touch(PRIVATE, exist_ok=False)


def notes(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield the notes in a folder, each with its number."""
    for path in sorted(folder.glob("audit-lost-*")):
        if found := _NAME.fullmatch(path.name):
            yield path, int(found[1])
