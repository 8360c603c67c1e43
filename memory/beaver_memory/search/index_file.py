"""Keeps an owner's index in a file, so that a large store opens fast. A cache: it is checked, never trusted.

    8 bytes   the mark, with the version of this format
    8 bytes   length of the header
    16 bytes  digest of the header
    header    JSON: the label of the file, and the place of each array
    arrays    each at a multiple of 64 bytes

A file of another store, analyser or model, a truncated file, and a file with another checksum count as no file. A file
is replaced as a whole, by renaming. Stale units are never written: their memories may be forgotten.
"""

import contextlib
import functools
import json
import os
import tempfile
from collections.abc import Mapping
from hashlib import blake2b
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

import attrs
import numpy as np

from beaver_memory.search.block import COLUMNS, Block, Postings
from beaver_memory.search.snapshot import IndexState, Part, part_of
from beaver_memory.search.terms import ANALYSER
from beaver_memory.search.vectors import STAYING, FileRows, Vectors, writable

CHUNK = 1 << 20
"""Bytes that are summed at once."""

MARK = b"beaver4\n"
ALIGNED = 64
_LONGEST_HEADER = 16 << 20
_DIGEST = 16
_POSTINGS = ("terms", "labels", "sessions")
_LISTS = tuple(each.name for each in attrs.fields(Postings))
_VECTORS = tuple(each.name for each in attrs.fields(Vectors))

Arrays = Mapping[str, Any]
"""Arrays, and rows that stay in a file, by name."""


@attrs.frozen(kw_only=True)
class Label:
    """The contents of a file.

    Attributes:
        store: the store's identity.
        tenant, user, kind: the owner.
        model: the model of its vectors, or empty.
        dimensions: the number of their components, or 0.
    """

    store: str
    tenant: str
    user: str
    kind: str = "user"
    model: str = ""
    dimensions: int = 0

    @property
    def name(self) -> str:
        """The file's name: the same for the same owner and model, without any content."""
        return f"{self.whose}{_digest_of(self.model)}.index"

    @property
    def whose(self) -> str:
        """The beginning of the names of all files of the owner."""
        return f"{_digest_of(self.tenant, self.kind, self.user)}-"


def save(folder: Path, label: Label, state: IndexState) -> None:
    """Replace the file of a label durably.

    Args:
        folder: the folder of the file.
        label: the contents of the file.
        state: the state to write, without stale units.

    Raises:
        OSError: the file cannot be written; the earlier file is unchanged.
    """
    arrays = _arrays(state)
    places, end = _places(arrays)
    header = {
        **attrs.asdict(label), "analyser": ANALYSER, "parts": len(state.parts), "end": end,
        "version": state.version, "vector_version": state.vector_version,
        "marks": state.marks, "vector_marks": state.vector_marks,
        "sums": {name: _sum_of(array) for name, array in arrays.items()},
        "arrays": {name: [array.dtype.str, list(array.shape), places[name]] for name, array in arrays.items()},
    }  # fmt: skip
    written = json.dumps(header).encode()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / label.name
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            _write(file, written, arrays, places, end)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def load(folder: Path, label: Label) -> tuple[IndexState | None, str]:
    """Return the state in the file of a label, or `None` and the reason why no file can be used."""
    path = folder / label.name
    try:
        with path.open("rb") as file:
            header = _header(file)
            if (why := _foreign(header, label)) is not None:
                return None, why
            return _state(header, _read(file, header)), ""
    except FileNotFoundError:
        return None, "missing"
    except OSError:
        return None, "unreadable"
    # The file is untrusted and may hold anything.
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        return None, "corrupt"


def remove(folder: Path, label: Label) -> bool:
    """Delete all files of a label's owner, even unfinished ones; return whether the label had one.

    Raises:
        OSError: one of them cannot be deleted.
    """
    had = False
    for path in (*folder.glob(f"{label.whose}*.index"), *folder.glob(f".{label.whose}*.index-*")):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
            had |= label.name in path.name
    return had


def sweep(folder: Path) -> None:
    """Delete the files of killed writers. A writer that is still at work loses only its file."""
    for path in folder.glob(".*.index-*"):
        with contextlib.suppress(OSError):
            path.unlink()


def _digest_of(*texts: str) -> str:
    return blake2b("\0".join(texts).encode("utf-8", "replace"), digest_size=10).hexdigest()


def _foreign(header: Mapping[str, Any], label: Label) -> str | None:
    for name, value in attrs.asdict(label).items():
        if header[name] != value:
            return f"another_{name}"
    return None if header["analyser"] == ANALYSER else "another_analyser"


def _state(header: Mapping[str, Any], arrays: Arrays) -> IndexState:
    return IndexState(
        parts=tuple(_part(arrays, f"{number}.", int(header["dimensions"])) for number in range(header["parts"])),
        version=int(header["version"]),
        vector_version=int(header["vector_version"]),
        split=arrays["split"],
        marks=tuple((int(version), int(id_), float(more)) for version, id_, more in header["marks"]),
        vector_marks=tuple((int(version), int(id_), float(more)) for version, id_, more in header["vector_marks"]),
    )


def _part(arrays: Arrays, prefix: str, dimensions: int) -> Part:
    size = len(arrays[f"{prefix}earlier"])
    groups = {group: Postings(**{name: arrays[f"{prefix}{group}.{name}"] for name in _LISTS}) for group in _POSTINGS}
    # A column with a single value is stored as that value.
    columns = {name: np.broadcast_to(arrays[f"{prefix}columns.{name}"], (size,)) for name in COLUMNS}
    block = Block(columns=columns, earlier=arrays[f"{prefix}earlier"], later=arrays[f"{prefix}later"], **groups)
    vectors = None
    if dimensions:
        vectors = Vectors(**{name: arrays[f"{prefix}vectors.{name}"] for name in _VECTORS})
    return part_of(block, None, vectors)


def _arrays(state: IndexState) -> Arrays:
    found: dict[str, Any] = {"split": state.split}
    for number, part in enumerate(state.parts):
        found |= {f"{number}.{name}": array for name, array in _of_part(part).items()}
    return found


def _of_part(part: Part) -> dict[str, Any]:
    block = part.block
    found: dict[str, Any] = {f"columns.{name}": _short(array) for name, array in block.columns.items()}
    found |= {"earlier": block.earlier, "later": block.later}
    for group in _POSTINGS:
        found |= {f"{group}.{name}": getattr(getattr(block, group), name) for name in _LISTS}
    if part.vectors is not None:
        vectors = writable(part.vectors)
        found |= {f"vectors.{name}": getattr(vectors, name) for name in _VECTORS}
    return found


def _short(array: np.ndarray) -> np.ndarray:
    return array[:1] if len(array) and array.strides == (0,) else array


def _places(arrays: Arrays) -> tuple[dict[str, int], int]:
    places, end = {}, 0
    for name, array in arrays.items():
        places[name] = end
        end = _aligned(end + array.nbytes)
    return places, end


def _write(file: BinaryIO, header: bytes, arrays: Arrays, places: Mapping[str, int], end: int) -> None:
    file.write(MARK + len(header).to_bytes(8, "little") + blake2b(header, digest_size=_DIGEST).digest() + header)
    start = _aligned(file.tell())
    for name, array in arrays.items():
        file.seek(start + places[name])
        if array.size:
            file.write(np.ascontiguousarray(array).data.cast("B"))
    file.truncate(start + end)
    file.flush()
    os.fsync(file.fileno())


def _header(file: BinaryIO) -> dict[str, Any]:
    if file.read(len(MARK)) != MARK:
        raise ValueError("not a file of ours")
    length, digest = int.from_bytes(file.read(8), "little"), file.read(_DIGEST)
    if length > _LONGEST_HEADER:
        raise ValueError("no header is that long")
    header = file.read(length)
    if blake2b(header, digest_size=_DIGEST).digest() != digest:
        raise ValueError("not the header that was written")
    return dict(json.loads(header))


def _read(file: BufferedReader, header: Mapping[str, Any]) -> Arrays:
    start = _aligned(file.tell())
    if os.fstat(file.fileno()).st_size != start + header["end"]:
        raise ValueError("it is cut off")
    _verify(file, start, header)
    # Pages of the file, shared with other processes, until this process writes to them.
    whole = np.memmap(file, np.uint8, mode="c")
    found: dict[str, Any] = {}
    for name, (dtype, shape, place) in header["arrays"].items():
        found[name] = _array(whole, start, dtype, shape, place)
        if _stays(name, shape):
            found[name] = FileRows(file, start + place, (shape[0], shape[1]))
    return found


def _stays(name: str, shape: list[int]) -> bool:
    """Return whether an array stays in the file: the components of many vectors, of which a search reads few."""
    return name.endswith(".vectors.data") and shape[0] > STAYING


def _verify(file: BufferedReader, start: int, header: Mapping[str, Any]) -> None:
    for name, (dtype, shape, place) in header["arrays"].items():
        file.seek(start + place)
        size = int(np.prod(shape, dtype="i8")) * np.dtype(dtype).itemsize
        if _sum_of_file(file, size) != header["sums"][name]:
            raise ValueError("not the array that was written")


def _array(whole: np.ndarray, start: int, dtype: str, shape: list[int], place: int) -> np.ndarray:
    kind = np.dtype(dtype)
    if kind.kind not in "iufb":
        raise ValueError("no array of ours holds objects")
    size = int(np.prod(shape, dtype="i8")) * kind.itemsize
    first = start + place
    if size < 0 or place < 0 or first + size > len(whole):
        raise ValueError("an array lies outside of the file")
    # A plain array, as a mapped array is slow to slice.
    return np.asarray(whole[first : first + size]).view(kind).reshape(shape).view(np.ndarray)


def _aligned(place: int) -> int:
    return (place + ALIGNED - 1) // ALIGNED * ALIGNED


def _sum_of(array: np.ndarray) -> int:
    """Return the sum of an array's bytes."""
    flat = np.ascontiguousarray(array).reshape(-1).view("u1")
    total = 0
    for first in range(0, len(flat), CHUNK):
        total = _added(total, flat[first : first + CHUNK])
    return total


def _sum_of_file(file: BufferedReader, size: int) -> int:
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
