"""Checksums of arrays. They detect accidental changes and do not defend against deliberate ones."""

import functools
from io import BufferedReader

import numpy as np

CHUNK = 1 << 20


def sum_of(array: np.ndarray) -> int:
    """Return the sum of an array's bytes."""
    flat = np.ascontiguousarray(array).reshape(-1).view("u1")
    total = 0
    for first in range(0, len(flat), CHUNK):
        total = _added(total, flat[first : first + CHUNK])
    return total


def sum_of_file(file: BufferedReader, size: int) -> int:
    """Return the sum of the next `size` bytes of a file, by reading: pages that are read once need no mapping.

    Raises:
        ValueError: the file has fewer bytes.
    """
    buffer, total = np.empty(CHUNK, "u1"), 0
    while size > 0:
        chunk = buffer[: min(size, CHUNK)]
        if file.readinto(chunk.data) != len(chunk):
            raise ValueError("it is cut off")
        total = _added(total, chunk)
        size -= len(chunk)
    return total


def _added(total: int, chunk: np.ndarray) -> int:
    words = chunk[: len(chunk) // 8 * 8].view("u8")
    # Each word times an odd number of its own: any change or move of a word changes the sum.
    found = int(np.dot(words, _odd()[: len(words)]))
    rest = int.from_bytes(chunk[len(words) * 8 :].tobytes(), "little")
    return (total * 1_000_003 + found * 31 + rest + len(chunk)) % (1 << 64)


@functools.cache
def _odd() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 1 << 63, CHUNK // 8, dtype="u8") * np.uint64(2) + np.uint64(1)
