"""Secrets that are recognised in every shape in which they leak.

`traces` works the other way round from the scrubber, on purpose: it decodes the text and looks for the secret
in the result, while the scrubber looks for encoded secrets in the text. So each can prove the other.
"""

import base64
import re
import secrets
import string
import sys
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

import attrs

from beaver_hostspecs.secrets import Secret

_PREFIX = "Canary"
_TRICKY = "%+/\"\\'é 漢"  # each of them looks different in at least one encoding
_RANDOM_AT_LEAST = 12
_PART = 12
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}")
_QUANTUM = 4


@attrs.frozen(kw_only=True)
class Canary:
    """A secret that must not turn up anywhere.

    Attributes:
        secret: the credential to configure.
    """

    secret: Secret

    def reveal(self) -> str:
        """Return the credential itself."""
        return self.secret.reveal()

    def traces(self, text: str | bytes) -> list[str]:
        """Return the names of the shapes in which the secret appears in `text`; see the function `traces`."""
        return traces(self.secret.reveal(), text)

    def assert_clean(self, *texts: str | bytes) -> None:
        """Raise `AssertionError` if one of `texts` shows the secret; the message names the shapes, not the secret."""
        for number, text in enumerate(texts):
            if found := self.traces(text):
                raise AssertionError(f"text {number} shows the canary: {', '.join(found)}")


def make_canary(length: int = 32) -> Canary:
    """Return a new random canary of `length` characters, among them some that every encoding changes."""
    count = length - len(_PREFIX) - len(_TRICKY)
    if count < _RANDOM_AT_LEAST:
        raise ValueError(f"a canary has at least {length - count + _RANDOM_AT_LEAST} characters")
    random = "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(count))
    # In the middle, so that a cut at either end keeps them.
    half = count // 2
    return Canary(secret=Secret(_PREFIX + random[:half] + _TRICKY + random[half:]))


def traces(secret: str, text: str | bytes) -> list[str]:
    """Return the names of the shapes in which `secret` appears in `text`: an empty list if it does not.

    Shapes: `plain`, `reversed`, `percent-encoded`, `escaped` (as in JSON or in a Python literal), `base64`
    (both alphabets, inside a longer text too), `hex`. A text that shows none of these, but a dozen characters
    of the secret in a row, is named `in part`.
    """
    written = _as_text(text)
    rest = written.replace(secret, "\0")
    found = {
        "plain": rest != written,
        "reversed": secret in rest[::-1],
        "percent-encoded": _is_percent_encoded(secret, rest),
        "escaped": _is_escaped(secret, rest),
        "base64": _is_in_base64(secret, rest),
        "hex": _raw(secret).hex() in rest.lower(),
    }
    names = [name for name, there in found.items() if there]
    return names or (["in part"] if _is_there_in_part(secret, rest) else [])


def _as_text(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("utf-8", "surrogateescape")


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _is_percent_encoded(secret: str, text: str) -> bool:
    if "%" not in text and "+" not in text:
        return False
    return any(_raw(secret) in unquote_to_bytes(_raw(each)) for each in (text, text.replace("+", " ")))


def _is_escaped(secret: str, text: str) -> bool:
    if "\\" not in text:
        return False
    unescaped = _ESCAPE.sub(_unescaped, text)
    # A literal of bytes shows the encoded characters one by one.
    return _paired(secret) in _paired(unescaped) or _raw(secret).decode("latin-1") in unescaped


def _unescaped(match: re.Match[str]) -> str:
    *codes, other = match.groups()
    for code in codes:
        if code and int(code, 16) <= sys.maxunicode:
            return chr(int(code, 16))
    return _CONTROLS.get(other, other or "")


def _paired(text: str) -> str:
    """Return `text` with surrogate pairs, as JSON escapes them, put together."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _is_in_base64(secret: str, text: str) -> bool:
    # The first and last byte may share a character with their neighbours; all between must not be readable.
    core = _raw(secret)[1:-1]
    return any(core in decoded for run in _BASE64.findall(text) for decoded in _decodings(run))


def _decodings(run: str) -> Iterator[bytes]:
    """Yield the decoded forms of `run`, for each place where the encoded text may begin."""
    standard = run.replace("-", "+").replace("_", "/")
    for start in range(_QUANTUM):
        part = standard[start:]
        yield base64.b64decode(part + "A" * (-len(part) % _QUANTUM))


def _is_there_in_part(secret: str, text: str) -> bool:
    return any(secret[start : start + _PART] in text for start in range(len(secret) - _PART + 1))
