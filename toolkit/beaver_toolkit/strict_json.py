"""Reads JSON that may be careless or hostile. Pure: no file, no network.

Stricter than the standard library: UTF-8 only, no NaN and no infinity, no number beyond reason, no key given twice in
one object, no nesting and no structure beyond a limit. Errors hold nothing of the text.
"""

import json
import math
import re
from collections import Counter
from typing import Any, NoReturn

DEEPEST = 50
"""Objects and lists within each other. The parser's own limit is the free stack."""

MOST_DIGITS = 100

_MARKS_IN_TEXTS = 10
"""How many times more structure a body may have with the marks in its texts counted, which is much faster."""

_TEXT = re.compile(r'"[^"]*"?')
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)
_TRAILING_COMMA = re.compile(r",\s*[}\]]")
_NOT_BRACKETS = re.compile(r"[^\[\]{}]+")


class InvalidJson(ValueError):
    """A text is not strict JSON. The error holds nothing of the text.

    Attributes:
        problem: the fault, as the end of a sentence: "is not valid JSON (line 1, column 5)".
    """

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(problem)


class Repeating(dict[str, Any]):
    """An object in which keys are given more than once; it holds the last value of each.

    Attributes:
        repeated: those keys, in order.
    """

    repeated: tuple[str, ...]


def loads(
    text: str | bytes,
    *,
    deepest: int = DEEPEST,
    most_marks: int | None = None,
    keep_repeated: bool = False,
    keep_numbers: bool = False,
) -> Any:
    """Return the value that `text` holds. A byte order mark is accepted.

    Args:
        text: the JSON text; bytes are UTF-8.
        deepest: how many objects and lists may lie within each other.
        most_marks: how many commas, colons, objects and lists there may be outside of texts.
        keep_repeated: return an object with repeated keys as `Repeating`, for a caller that names the key.
        keep_numbers: return a number beyond reason as infinity, for a caller that names the field.

    Raises:
        InvalidJson: it is not strict JSON.
    """
    decoded = _decoded(text) if isinstance(text, bytes) else text.removeprefix("\ufeff")
    _check_structure(decoded, deepest, most_marks)
    try:
        return json.loads(
            decoded,
            object_pairs_hook=_object if keep_repeated else _unrepeated,
            parse_int=_any_integer if keep_numbers else _integer,
            parse_float=float if keep_numbers else _finite,
            parse_constant=_no_constant,
        )
    except json.JSONDecodeError as error:
        # Only numbers leave this block: the library's error holds the whole text.
        at = error.pos
    comma = _trailing_comma(decoded, at)
    line, column = _position(decoded, at if comma is None else comma)
    why = "" if comma is None else "there is a trailing comma, "
    raise InvalidJson(f"is not valid JSON ({why}line {line}, column {column})")


def repeated_keys(value: dict[str, Any]) -> tuple[str, ...]:
    """Return the keys that an object gives more than once, as far as `loads` kept them."""
    return value.repeated if isinstance(value, Repeating) else ()


def is_utf8(value: str) -> bool:
    """Return whether a text can be written as UTF-8: it holds no half of a surrogate pair."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _decoded(text: bytes) -> str:
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = error.start
    raise InvalidJson(f"is not UTF-8 text (byte {at + 1})")


def _check_structure(text: str, deepest: int, most_marks: int | None) -> None:
    """Refuse a text that would cost the parser too much time or stack, before it is parsed."""
    marks = _marks(text)
    if marks <= deepest:
        return
    if most_marks is not None and marks > _MARKS_IN_TEXTS * most_marks:
        raise InvalidJson("has too many values")
    # Two backslashes are one in a text, and a single one before a quote escapes it. Elsewhere they end the parsing.
    bare = _TEXT.sub("", text.replace("\\\\", "").replace('\\"', ""))
    if most_marks is not None and _marks(bare) > most_marks:
        raise InvalidJson("has too many values")
    if _depth(bare) > deepest:
        line, column = _position(text, _too_deep(text, deepest))
        raise InvalidJson(f"is nested more than {deepest} levels deep (line {line}, column {column})")


def _marks(text: str) -> int:
    return sum(text.count(mark) for mark in ",:{[")


def _depth(bare: str) -> int:
    """Return how deep objects and lists are within each other, up to the first unmatched closing bracket."""
    depth = deepest = 0
    for bracket in _NOT_BRACKETS.sub("", bare):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
        if depth < 0:
            break
    return deepest


def _too_deep(text: str, deepest: int) -> int:
    """Return the place of the first bracket that is too deep."""
    depth = 0
    for token in _TOKEN.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if depth > deepest:
            return token.start()
    return 0


def _position(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _trailing_comma(text: str, at: int) -> int | None:
    # Some Pythons point to the comma, others behind it.
    comma = at if text[at : at + 1] == "," else max(0, len(text[:at].rstrip()) - 1)
    return comma if _TRAILING_COMMA.match(text, comma) else None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeating = Repeating(found)
    repeating.repeated = tuple(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
    return repeating


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidJson("gives a key twice in one object")
    return found


def _any_integer(digits: str) -> float:
    return int(digits) if len(digits) <= MOST_DIGITS else math.inf


def _integer(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise InvalidJson(f"holds a number of more than {MOST_DIGITS} digits")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise InvalidJson("holds a number that is too large")
    return number


def _no_constant(name: str) -> NoReturn:
    raise InvalidJson(f"holds {name}, which JSON does not have")
