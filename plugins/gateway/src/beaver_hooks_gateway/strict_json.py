"""JSON from a gateway that may be careless or hostile. Pure: no network.

Stricter than the standard library: UTF-8 only, no NaN and no infinity, and no more nesting or structure than an
answer can have use for. A key that is given twice is legal JSON; `repeated` says which ones were, so that whoever reads
a field can refuse to guess.
"""

import json
from collections import Counter
from typing import Any, NoReturn

MOST_CONTAINERS = 100_000
"""Objects and lists in one answer: more of them only cost time."""


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
    if body.count(b"{") + body.count(b"[") <= MOST_CONTAINERS:
        try:
            return json.loads(body.decode("utf-8"), object_pairs_hook=_object, parse_constant=_refuse)
        except (ValueError, RecursionError):
            pass  # raised below, so that the error is not chained to one that holds the body
    raise InvalidJson("not strict JSON")


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
