"""Removes known secrets from text, in every shape in which they usually escape.

Only an exact list of known secrets can promise that none of them gets out, so every `Secret` registers itself
here when it is made. That list is the only state of the process in this package: a secret must be masked in the
log of a host that does not know the plugin of the secret. The page `docs/explanation/decisions/0003-scrubber.md`
says why.

Shapes: as it is, reversed, percent-encoded (both cases of the hex digits, and with `+` for blanks), escaped as in
JSON or in a Python literal (the `repr` of a str, of an exception, of bytes), in hex digits, and base64 (both
alphabets) at each of the three offsets at which it can start inside a longer text.
"""

import threading
from collections.abc import Iterator, Mapping

MASK = "[secret]"
MINIMUM_LENGTH = 8
"""Shorter secrets are not looked for: they would mask half of every text."""

FEW = 256
"""Needles up to which a search for each in turn costs least."""

_SAFE = ("", "/", "!'()*", "!$&'()*+,;=:@/", "!$&'()*+,;=:@/?")
"""Characters that percent-encoders leave: none, slashes, and those that RFC 3986 and browsers allow in their places."""


class Scrubber:
    """Knows secrets and masks them. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: set[str] = set()
        self._few: tuple[str, ...] | None = ()
        self._by_piece: dict[str, tuple[str, ...]] = {}

    def remember(self, secret: str) -> None:
        """Mask `secret` from now on; short and known ones change nothing."""
        if len(secret) < MINIMUM_LENGTH or secret in self._known:
            return
        with self._lock:
            # The mask itself is no needle, or scrubbing would not end.
            needles = {*shapes(secret)} - {MASK}
            for needle in needles:
                self._index(needle)
            if self._few is not None:
                few = tuple({*self._few, *needles})
                self._few = few if len(few) <= FEW else None
            # Added last: another thread that makes the same secret must find it masked.
            self._known.add(secret)

    @property
    def known(self) -> int:
        """The number of known secrets; it never falls."""
        return len(self._known)

    def needles(self) -> tuple[str, ...]:
        """Return every shape of every known secret, for a search of another kind."""
        with self._lock:
            return tuple({needle for needles in self._by_piece.values() for needle in needles})

    def holds_secret(self, text: str) -> bool:
        """Whether `text` contains a known secret in any of its shapes."""
        return bool(self._found(text))

    def scrub(self, text: str) -> str:
        """Return `text` with every known secret masked; where secrets overlap, with all of them masked as one."""
        # Repeated, because a mask and the text beside it can form a secret.
        while found := self._found(text):
            text = _masked(text, _spans(text, found))
        return text

    def _index(self, needle: str) -> None:
        # Keys of one kind have the same beginning and differ at their ends.
        piece = min(needle[:MINIMUM_LENGTH], needle[-MINIMUM_LENGTH:], key=lambda each: len(self._with(each)))
        self._by_piece[piece] = (*self._with(piece), needle)

    def _with(self, piece: str) -> tuple[str, ...]:
        return self._by_piece.get(piece, ())

    def _found(self, text: str) -> list[str]:
        """Return the needles that are in `text`. A process that serves many users has a secret for each of them."""
        few, known, length = self._few, self._by_piece, MINIMUM_LENGTH
        if few is not None:
            return [needle for needle in few if needle in text]
        pieces = {piece for at in range(len(text) - length + 1) if (piece := text[at : at + length]) in known}
        return [needle for piece in pieces for needle in known[piece] if needle in text]

    def scrub_value(self, value: object) -> object:
        """Return `value` with every str and bytes inside mappings, lists and sets scrubbed.

        Other values are left alone. A named tuple becomes a plain one.
        """
        if isinstance(value, str):
            return self.scrub(value)
        if isinstance(value, bytes):
            return self.scrub(value.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        if isinstance(value, Mapping):
            return {self.scrub_value(key): self.scrub_value(item) for key, item in value.items()}
        for kind in (list, tuple, set, frozenset):
            if isinstance(value, kind):
                return kind(self.scrub_value(item) for item in value)
        return value


def shapes(secret: str) -> Iterator[str]:
    """Yield every shape in which `secret` is searched."""
    # Imported late: a process without secrets does not need these, and they cost more than the contract's hooks.
    import json  # noqa: PLC0415
    from urllib.parse import quote, quote_plus  # noqa: PLC0415

    # Lone surrogates are legal in a str and must not break the scrubber.
    raw = secret.encode("utf-8", "surrogatepass")
    yield from (secret, secret[::-1], raw.hex(), raw.hex().upper())
    yield from (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    yield from _python_literals(secret, raw)
    for encoded in (quote_plus(raw), *(quote(raw, safe=safe) for safe in _SAFE)):
        yield encoded
        yield _lower_hex(encoded)
    for offset in range(3):
        yield from _base64_cores(raw, offset)


def _lower_hex(encoded: str) -> str:
    first, *rest = encoded.split("%")
    return "%".join([first, *(part[:2].lower() + part[2:] for part in rest)])


def _python_literals(secret: str, raw: bytes) -> Iterator[str]:
    """Yield the forms in a `repr`: a longer text with both quotation marks in it has `'` escaped."""
    for literal in (repr, ascii):
        yield literal(secret)[1:-1]
        yield literal('"' + secret)[2:-1]
    yield repr(raw)[2:-1]
    yield repr(b'"' + raw)[3:-1]


def _base64_cores(raw: bytes, offset: int) -> Iterator[str]:
    """Yield the characters of the base64 text that depend on `raw` alone."""
    import base64  # noqa: PLC0415 - as above

    padded = bytes(offset) + raw
    start = -(-offset * 8 // 6)
    stop = len(padded) * 8 // 6
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(padded).decode("ascii")[start:stop]


def _spans(text: str, needles: list[str]) -> list[tuple[int, int]]:
    """Return where the needles and the masks of an earlier round are in `text`, overlapping ones too, in order."""
    spans = []
    for needle in (*needles, MASK):
        start = text.find(needle)
        while start >= 0:
            spans.append((start, start + len(needle)))
            start = text.find(needle, start + 1)
    return sorted(spans)


def _masked(text: str, spans: list[tuple[int, int]]) -> str:
    """Return `text` with one mask for every stretch of overlapping spans."""
    parts, end = [], 0
    for start, stop in spans:
        if start >= end:
            parts += [text[end:start], MASK]
        end = max(end, stop)
    return "".join([*parts, text[end:]])


SCRUBBER = Scrubber()
"""The process's scrubber: every `Secret` is known to it."""

scrub = SCRUBBER.scrub
scrub_value = SCRUBBER.scrub_value
holds_secret = SCRUBBER.holds_secret
