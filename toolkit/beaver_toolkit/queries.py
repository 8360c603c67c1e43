"""Reads named queries from a `.sql` file, so that SQL is read as SQL.

A line `-- name: <name>` begins a query; the lines up to the next one are its text.
"""

import re
from functools import cached_property
from pathlib import Path

_NAME = re.compile(r"^-- name: *([a-z][a-z0-9_]*) *$", re.MULTILINE)


class Queries:
    """The queries of one file, read when the first one is used.

    Args:
        path: the file, most often beside the module that uses it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __getitem__(self, name: str) -> str:
        """Return the text of a query.

        Raises:
            KeyError: the file has no query of that name.
        """
        return self._texts[name]

    def names(self) -> tuple[str, ...]:
        """Return the names of all queries, in the order of the file."""
        return tuple(self._texts)

    @cached_property
    def _texts(self) -> dict[str, str]:
        _, *parts = _NAME.split(self._path.read_text("utf-8"))
        names, texts = parts[::2], [text.strip() for text in parts[1::2]]
        if len({*names}) < len(names) or not all(texts):
            raise ValueError(f"{self._path} gives a name twice, or a name without a query")
        return dict(zip(names, texts, strict=True))
