"""The file of a backup: a zip archive that ends with the SHA-256 of all bytes before it, as its comment.

Any zip program can read it. It is read as hostile: only the files of its manifest, regular ones at safe paths, of the
size and the hash that the manifest says.
"""

import hashlib
import os
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from beaver_hooks.backups.errors import DamagedBackup, full_disk
from beaver_hooks.backups.manifest import FORMAT, FileEntry, Manifest, decoded, encoded
from beaver_toolkit.files import flush, open_regular

MANIFEST = "manifest.json"
LARGEST_MANIFEST = 64 * 2**20
_BLOCK = 2**20
_DIGITS = 64
_MARK = f"beaver-backup {FORMAT} sha256 ".encode()
_TAIL = re.compile(rb"beaver-backup (\d{1,4}) sha256 [0-9a-f]{64}")
_FAULTS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError)
_NEWER = "was made by a newer version of Beaver Hooks; update this one, and try again"

Read = Callable[[], Mapping[str, zipfile.ZipInfo]]


def entries_of(folder: Path) -> tuple[FileEntry, ...]:
    """Return the files below a folder, each with its size and hash."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return tuple(_entry(path, path.relative_to(folder).as_posix()) for path in paths)


def write_archive(path: Path, folder: Path, manifest: Manifest) -> None:
    """Write the files of a manifest, which are below a folder, to a new private file, durably.

    Raises:
        BackupError: it cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w+b") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(_info(MANIFEST), encoded(manifest))
                for each in manifest.files:
                    with (
                        (folder / each.path).open("rb") as source,
                        archive.open(_info(each.path), "w", force_zip64=True) as to,
                    ):
                        shutil.copyfileobj(source, to, _BLOCK)
                archive.comment = _MARK + b"0" * _DIGITS
            _seal(file)
            flush(descriptor)
    except OSError as error:
        raise full_disk(error, path) from error


def read_manifest(path: Path) -> Manifest:
    """Return the manifest of an archive, without reading the rest of it.

    Raises:
        DamagedBackup: it is no backup, or a newer version made it.
    """
    with _opened(path) as (file, archive):
        _check_tail(path, file)
        return _manifest(path, archive)


def extract(path: Path, folder: Path) -> Manifest:
    """Write the files of an archive into an empty folder, after each byte was verified; return the manifest.

    Raises:
        DamagedBackup: it is damaged, hostile, or was made by a newer version; names the damaged files.
        BackupError: the files cannot be written.
    """
    with _opened(path) as (file, archive):
        _check_tail(path, file)
        is_whole = _digest_of(file) == _last(file, _DIGITS)
        try:
            manifest = _manifest(path, archive)
            found = _entries(archive)
        except DamagedBackup:
            if is_whole:
                raise
            raise DamagedBackup(path, "is damaged: its content is not as it was written") from None
        except _FAULTS as error:
            raise DamagedBackup(path, f"is not safe to read ({error})") from error
        _check_names(path, manifest, found)
        _check_room(folder, manifest)
        damaged = [each.path for each in manifest.files if not _extracted(archive, found[each.path], each, folder)]
    if damaged or not is_whole:
        what = ", ".join(damaged[:3]) or "bytes between its files"
        raise DamagedBackup(path, f"is damaged: {what}{' and others' if damaged[3:] else ''}")
    return manifest


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], zipfile.ZipFile]]:
    try:
        with open_regular(path) as file:
            try:
                archive = zipfile.ZipFile(file)
            except _FAULTS as error:
                raise DamagedBackup(path, "is no backup, or it is damaged") from error
            with archive:
                yield file, archive
    except OSError as error:
        raise DamagedBackup(path, f"cannot be read ({error.strerror or error})") from error


def _check_tail(path: Path, file: IO[bytes]) -> None:
    found = _TAIL.fullmatch(_last(file, len(_MARK) + _DIGITS))
    if found is None:
        # A newer version has more digits, or nothing of this.
        raise DamagedBackup(path, "is no backup, or it is damaged")
    if int(found[1]) != FORMAT:
        raise DamagedBackup(path, _NEWER)


def _manifest(path: Path, archive: zipfile.ZipFile) -> Manifest:
    try:
        info = archive.getinfo(MANIFEST)
        if info.file_size > LARGEST_MANIFEST:
            raise ValueError("a large manifest")
        with archive.open(info) as file:
            return decoded(file.read(LARGEST_MANIFEST))
    except (*_FAULTS, KeyError) as error:
        raise DamagedBackup(path, "has no manifest that can be read") from error


def _entries(archive: zipfile.ZipFile) -> Mapping[str, zipfile.ZipInfo]:
    """Return the entries of an archive by name; raise ValueError for what no backup holds."""
    found: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        # `orig_filename` is the name as it is stored: zipfile cuts it at a zero byte, and turns backslashes.
        if info.orig_filename in found:
            raise ValueError("a file that is there twice")
        mode = info.external_attr >> 16
        if info.is_dir() or (stat.S_IFMT(mode) and not stat.S_ISREG(mode)):
            raise ValueError("an entry that is no regular file")
        found[info.orig_filename] = info
    return found


def _check_names(path: Path, manifest: Manifest, found: Mapping[str, zipfile.ZipInfo]) -> None:
    wanted = {each.path: each.size for each in manifest.files}
    if {MANIFEST, *wanted} != found.keys():
        raise DamagedBackup(path, "holds other files than its manifest says")
    if any(found[name].file_size != size for name, size in wanted.items()):
        raise DamagedBackup(path, "holds files of other sizes than its manifest says")


def _check_room(folder: Path, manifest: Manifest) -> None:
    wanted, free = sum(each.size for each in manifest.files), shutil.disk_usage(folder).free
    if wanted > free:
        error = OSError(28, f"it needs {wanted:,} bytes, and {free:,} are free")
        raise full_disk(error, folder)


def _extracted(archive: zipfile.ZipFile, info: zipfile.ZipInfo, entry: FileEntry, folder: Path) -> bool:
    """Write a file; return whether it is the one of the manifest."""
    target, digest = folder / entry.path, hashlib.sha256()
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            left = entry.size
            with archive.open(info) as source:
                while block := source.read(min(_BLOCK, left + 1)):
                    left -= len(block)
                    if left < 0:
                        return False
                    digest.update(block)
                    file.write(block)
    except _FAULTS:
        return False
    except OSError as error:
        raise full_disk(error, target) from error
    return left == 0 and digest.hexdigest() == entry.sha256


def _entry(path: Path, name: str) -> FileEntry:
    with path.open("rb") as file:
        return FileEntry(path=name, size=path.stat().st_size, sha256=hashlib.file_digest(file, "sha256").hexdigest())


def _info(name: str) -> zipfile.ZipInfo:
    # The time in the archive has no zone: the manifest has the time.
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFREG | 0o600) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def _seal(file: IO[bytes]) -> None:
    """Put the hash in the place of its digits."""
    file.flush()
    digest = _digest_of(file)
    file.seek(-_DIGITS, os.SEEK_END)
    file.write(digest)
    file.flush()


def _digest_of(file: IO[bytes]) -> bytes:
    """Return the hash of all bytes before it, as digits."""
    left, digest = file.seek(0, os.SEEK_END) - _DIGITS, hashlib.sha256()
    file.seek(0)
    while left > 0 and (block := file.read(min(_BLOCK, left))):
        digest.update(block)
        left -= len(block)
    return digest.hexdigest().encode()


def _last(file: IO[bytes], count: int) -> bytes:
    file.seek(max(0, file.seek(0, os.SEEK_END) - count))
    return file.read(count)
