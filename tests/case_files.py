"""Reads files of cases: JSON lines in UTF-8, one case per line, with the fields of one class as keys."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import attrs
import cattrs

from beaver_toolkit import strict_json

T = TypeVar("T")
BREAK = "\u00a6"
"""A mark inside each made-up credential of a file, so that no program takes the file for a leak."""


class WrongCase(ValueError):
    """A line is no case. The error names the file, the line and the fault."""


def cases(path: Path, kind: type[T]) -> tuple[T, ...]:
    """Return the case of each line, as an instance of `kind`.

    Raises:
        WrongCase: a line is no JSON object, or a field of it is unknown, missing or of the wrong type.
    """
    lines = enumerate(path.read_bytes().splitlines(), 1)
    return tuple(_case(line, kind, f"{path}:{number}") for number, line in lines)


def rows(path: Path, *fields: str) -> list[Any]:
    """Return the values of the fields of each line, as `pytest.mark.parametrize` takes them."""
    kind = attrs.make_class("Row", fields)
    found = (attrs.astuple(each, recurse=False) for each in cases(path, kind))
    return [each if len(fields) > 1 else each[0] for each in found]


def unbroken(text: str) -> str:
    """Return a text with its credentials as they are."""
    return text.replace(BREAK, "")


def _case(line: bytes, kind: type[T], place: str) -> T:
    try:
        return _CONVERTER.structure(_object(strict_json.loads(line)), kind)
    except strict_json.InvalidJson as error:
        raise WrongCase(f"{place}: the line {error.problem}") from error
    except Exception as error:
        raise WrongCase(f"{place}: {', '.join(cattrs.transform_error(error))}") from error


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise strict_json.InvalidJson("is no JSON object")
    return value


def _exactly(kind: type) -> Callable[[Any, Any], Any]:
    def checked(value: Any, _: object) -> Any:
        if type(value) is not kind:
            raise TypeError(kind)
        return value

    return checked


def _tuple(value: Any, kind: Any) -> tuple[Any, ...]:
    return tuple(_CONVERTER.structure(_LIST(value, kind), list[get_args(kind)[0]]))


_LIST = _exactly(list)
_CONVERTER = cattrs.Converter(forbid_extra_keys=True)
_CONVERTER.register_structure_hook_func(lambda kind: get_origin(kind) is tuple, _tuple)
for _kind in (str, bool, int):
    _CONVERTER.register_structure_hook(_kind, _exactly(_kind))
