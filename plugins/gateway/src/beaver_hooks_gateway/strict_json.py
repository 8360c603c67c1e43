"""JSON from a gateway that may be careless or hostile. Pure: no network.

Stricter than the standard library: UTF-8 only, no NaN and no infinity, and no more nesting or structure than an
answer can have use for. A key that is given twice is legal JSON; `repeated` says which ones were, so that whoever reads
a field can refuse to guess.
"""

import json
import re
from collections import Counter
from typing import Any, NoReturn

MOST_MARKS = 20_000
"""Commas, colons, objects and lists in one answer, beside those in its texts. The most results need a few thousand of
them; more only cost time and room.
"""

MOST_IN_TEXTS = 10 * MOST_MARKS
"""The same with those in its texts, which are much faster to count."""

DEEPEST = 100
"""Objects and lists within each other: the parser's own limit is the room that it happens to have."""

_TEXT = re.compile(rb'"[^"]*"?')
_BRACKETS = b"[]{}"
_REST = bytes({*range(256)} - {*_BRACKETS})


class InvalidJson(ValueError):
    """A body is not strict JSON. The error holds nothing of it."""


class Repeating(dict[str, Any]):
    """An object in which keys are given more than once; it holds the last value of each.

    Attributes:
        repeated: those keys.
    """

    repeated: frozenset[str]


def loads(body: bytes) -> Any:
    """Return the value that `body` holds.

    Raises:
        InvalidJson: it is not strict JSON; nothing of it is chained to the error.
    """
    if is_small(body):
        try:
            return json.loads(body.decode("utf-8"), object_pairs_hook=_object, parse_constant=_refuse)
        except (ValueError, RecursionError):
            pass  # raised below, so that the error is not chained to one that holds the body
    raise InvalidJson("not strict JSON")


def is_small(body: bytes) -> bool:
    """Whether a body has no more structure than an answer has use for. Nothing is parsed, and no bytes are kept."""
    marks = _marks(body)
    if marks <= DEEPEST:
        return True
    if marks > MOST_IN_TEXTS:
        return False
    # Two backslashes are one in a text, and what is left before a quote escapes it. Elsewhere they end the parsing.
    bare = _TEXT.sub(b"", body.replace(b"\\\\", b"").replace(b'\\"', b""))
    return _marks(bare) <= MOST_MARKS and _depth(bare) <= DEEPEST


def _marks(body: bytes) -> int:
    return sum(body.count(mark) for mark in (b",", b":", b"{", b"["))


def _depth(bare: bytes) -> int:
    """Return how deep objects and lists are within each other, up to the first end of what never began."""
    depth = deepest = 0
    for bracket in bare.translate(None, _REST):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
        if depth < 0:
            break
    return deepest


def repeated(value: dict[str, Any]) -> frozenset[str]:
    """Return the keys of an object that were given more than once."""
    return value.repeated if isinstance(value, Repeating) else frozenset()


def is_text(value: object) -> bool:
    """Whether a value is a text that can be written as UTF-8: it holds no half of a surrogate pair."""
    if not isinstance(value, str):
        return False
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeating = Repeating(found)
    repeating.repeated = frozenset(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
    return repeating


def _refuse(_constant: str) -> NoReturn:
    raise ValueError("not a finite number")
