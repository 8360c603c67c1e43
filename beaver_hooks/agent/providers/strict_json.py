"""JSON from somebody who may be careless or hostile. Pure: no network.

Stricter than the standard library: UTF-8 only, no NaN, no infinity, no key given twice, no absurd number, no
nesting beyond what the parser's stack holds.
"""

import json
import math
from typing import Any, NoReturn

_MOST_DIGITS = 100


class InvalidJson(ValueError):
    """A text is not strict JSON. The error holds nothing of it."""


def loads(text: str | bytes) -> Any:
    """Return the value that `text` holds.

    Raises:
        InvalidJson: it is not strict JSON; nothing of the text is chained to the error.
    """
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        return json.loads(
            decoded, object_pairs_hook=_object, parse_int=_integer, parse_float=_finite, parse_constant=_refuse
        )
    except (ValueError, RecursionError):
        pass  # raised below, so that the error is not chained to one that holds the text
    raise InvalidJson("not strict JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found


def _integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError("a number that is too large")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse(digits)


def _refuse(_constant: str) -> NoReturn:
    raise ValueError("not a finite number")
