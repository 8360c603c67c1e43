"""Rows of an array that stay in their file; a few are read at a time."""

import os
import weakref
from typing import BinaryIO

import numpy as np


class FileRows:
    """A two-dimensional array in a file, which takes no memory. Read-only; may be used from several threads.

    Args:
        file: the file; it may be closed, moved or deleted afterwards.
        start: the place of the array in the file.
        shape: the number of rows and of bytes in a row.
    """

    def __init__(self, file: BinaryIO, start: int, shape: tuple[int, int]) -> None:
        self._descriptor = os.dup(file.fileno())
        self._start = start
        self.shape = shape
        weakref.finalize(self, os.close, self._descriptor)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, places: np.ndarray) -> np.ndarray:
        """Return the rows at some places."""
        width, start, descriptor, read = self.shape[1], self._start, self._descriptor, os.pread
        found = b"".join([read(descriptor, width, start + width * place) for place in places.tolist()])
        return np.frombuffer(found, "i1").reshape(-1, width)

    def whole(self) -> np.ndarray:
        """Return all rows in a writable array."""
        rows = np.empty(self.shape, "i1")
        view, place = rows.reshape(-1).view("u1"), 0
        while place < view.size:
            count = os.preadv(self._descriptor, [view[place:].data], self._start + place)
            if not count:
                raise OSError("an index file was cut off while it was in use")
            place += count
        return rows
