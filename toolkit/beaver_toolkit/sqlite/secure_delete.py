"""Clears the gaps of database pages, where SQLite leaves copies of deleted content.

The pragma `secure_delete` overwrites deleted content, but not the copies between the cells of a page that are left when
SQLite moves cells to another page. Each page is therefore cleared of them on its way from the log into the database.
SQLite never reads that part of a page: the file format leaves it undefined.
"""

import os
import secrets

import apsw

_FIRST_PAGE = 100
"""The first page begins with the header of the file."""

_HEADERS = {2: 12, 5: 12, 10: 8, 13: 8}
"""How long the header of a page is, by its kind: inner and outer pages of indices and tables."""


def cleared(page: bytes, *, first: bool) -> bytes:
    """Return a page with zeros in the gap between its list of cells and the cells; another page as it is."""
    start = _FIRST_PAGE if first else 0
    header = _HEADERS.get(page[start])
    if header is None:
        return page
    gap = start + header + 2 * int.from_bytes(page[start + 3 : start + 5])
    cells = int.from_bytes(page[start + 5 : start + 7]) or len(page)
    if not gap < cells <= len(page) or page.count(0, gap, cells) == cells - gap:
        return page
    return b"".join((page[:gap], bytes(cells - gap), page[cells:]))


class ClearingFiles(apsw.VFS):
    """SQLite's own file layer, with database pages cleared when they are written."""

    def __init__(self) -> None:
        self.name = f"beaver-{secrets.token_hex(8)}"
        super().__init__(self.name, "")

    def xFullPathname(self, name: str) -> str:  # noqa: N802 - SQLite's name
        """Return the path without links, because the system's method reports links in a way that reads as a failure."""
        return os.path.realpath(name)

    def xOpen(  # noqa: N802 - SQLite's name
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        """Open a file."""
        if flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            return _Database("", name, flags)
        return super().xOpen(name, flags)


class _Database(apsw.VFSFile):
    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        super().xWrite(cleared(data, first=offset == 0), offset)
