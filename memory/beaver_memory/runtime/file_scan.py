"""Looks for words in files: as they are, in other case and coding, by their stems, and inside compressed parts."""

import itertools
import json
import mmap
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

AT_ONCE = 1 << 22
"""Bytes of a file that are compared at once."""

PIECE = 1 << 16
"""Bytes of a compressed part that are read at once."""

MOST_UNPACKED = 1 << 26
"""Bytes of one compressed part that are compared."""

_PACKED = re.compile(rb"\x1f\x8b\x08|\x78[\x01\x5e\x9c\xda]")


@attrs.frozen(kw_only=True)
class Needle:
    """Bytes that show a text.

    Attributes:
        form: how the text is written.
        value: the bytes.
        folded: whether the case of letters is ignored; `value` is then in lower case.
    """

    form: str
    value: bytes = attrs.field(repr=False)
    folded: bool = False


@attrs.frozen(kw_only=True)
class Trace:
    """A place in which a text was found: the file, and how the text is written there."""

    path: Path
    form: str


def needles_of(text: str, *, stem: str = "", hashes: Iterable[int] = ()) -> tuple[Needle, ...]:
    """Return the forms of a text.

    Args:
        text: the text.
        stem: its stem; an index may leave out the letters that a word shares with the one before it.
        hashes: its terms.
    """
    lower = text.lower()
    escaped = json.dumps(lower)[1:-1]
    forms = {
        "as it is": (text.encode(), False),
        "case-folded": (lower.encode(), True),
        "escaped": (escaped.encode(), True),
        "UTF-16": (lower.encode("utf-16-le"), True),
        "UTF-16, big-endian": (lower.encode("utf-16-be"), True),
        "stemmed": (stem.lower().encode(), True),
    }
    found = [Needle(form=form, value=value, folded=folded) for form, (value, folded) in forms.items() if value]
    return (*found, *(Needle(form="indexed", value=each.to_bytes(8, "little")) for each in hashes))


def traces_in(files: Iterable[Path], needles: Iterable[Needle]) -> list[Trace]:
    """Return where needles are found in files, each form of a file once."""
    some = [*needles]
    found = (Trace(path=path, form=form) for path in files for form in _forms_in(path, some))
    return [*dict.fromkeys(found)]


def files_below(places: Iterable[Path], *, leave_out: Iterable[str] = ()) -> list[Path]:
    """Return files, and those of folders at any depth, each once, without folders of some names."""
    apart, found = {*leave_out}, dict[Path, Path]()
    for place in places:
        below = sorted(place.rglob("*")) if place.is_dir() else [place]
        for path in below:
            if path.is_file() and not apart & {*path.relative_to(place).parts}:
                found.setdefault(path.resolve(), path)
    return [*found.values()]


def _forms_in(path: Path, needles: list[Needle]) -> Iterator[str]:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield from _plain_forms(content, needles)
            yield from (f"compressed, {form}" for part in _unpacked(content) for form in _plain_forms(part, needles))
    except FileNotFoundError:
        return  # It is gone, as a log is that was emptied.
    except ValueError:
        return  # It is empty.


def _plain_forms(content: "mmap.mmap | bytes", needles: list[Needle]) -> Iterator[str]:
    """Yield the forms that occur; parts overlap by the longest needle."""
    overlap = max((len(each.value) for each in needles), default=0)
    for start in range(0, len(content), AT_ONCE):
        part = content[max(0, start - overlap) : start + AT_ONCE]
        lower = part.lower()
        yield from (each.form for each in needles if each.value in (lower if each.folded else part))


def _unpacked(content: mmap.mmap) -> Iterator[bytes]:
    """Yield the compressed parts of a file that can be read."""
    for match in _PACKED.finditer(content):
        part = _inflated(content, match.start())
        if part:
            yield part


def _inflated(content: mmap.mmap, start: int) -> bytes:
    inflater = zlib.decompressobj(wbits=47)
    found: list[bytes] = []
    try:
        for at in itertools.count(start, PIECE):
            piece = content[at : at + PIECE]
            if not piece or inflater.eof or sum(map(len, found)) > MOST_UNPACKED:
                break
            found.append(inflater.decompress(piece, MOST_UNPACKED))
    except zlib.error:
        pass  # The bytes before the fault count; most places that look compressed are not.
    return b"".join(found)
