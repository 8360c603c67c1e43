"""Reads the arguments of a tool call as the model wrote them. Pure.

It is strict, because the model can correct a reported mistake: one JSON object, no repeated key, no NaN, no infinity,
no lone surrogate, at most 50 levels and 256 Ki characters. An empty text counts as an empty object: many models call a
tool without parameters so.
"""

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from beaver_hooks.tools.outcomes import one_line
from beaver_hostspecs import thaw
from beaver_toolkit.strict_json import InvalidJson, is_utf8, loads, repeated_keys

MOST_CHARACTERS = 256 * 1024
DEEPEST = 50
MOST_FAULTS = 50
"""The most faults that are compared to find the most useful one."""


class UnfitArgumentsError(Exception):
    """The arguments cannot be used; the text gives the model the reason."""


class BrokenSchemaError(Exception):
    """The tool's own JSON Schema cannot be used."""


def parse_arguments(text: str) -> dict[str, Any]:
    """Return the object in `text`.

    Raises:
        UnfitArgumentsError: it is no strict JSON object.
    """
    if len(text) > MOST_CHARACTERS:
        raise UnfitArgumentsError(f"the arguments are longer than {MOST_CHARACTERS} characters")
    value = _loads(text if text.strip() else "{}")
    if not isinstance(value, dict):
        raise UnfitArgumentsError("the arguments must be one JSON object")
    return value


def check_arguments(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Check `arguments` against a JSON Schema; references to other documents are never followed.

    Raises:
        UnfitArgumentsError: an argument is wrong; names the path of the field and its fault.
        BrokenSchemaError: the schema is invalid.
    """
    try:
        fault = _fault(arguments, thaw(schema))
    except Exception as error:  # the schema is a plugin's, and a broken one may raise any error
        raise BrokenSchemaError("the tool's own JSON Schema cannot be used") from error
    if fault is not None:
        raise UnfitArgumentsError(fault)


def _fault(arguments: Mapping[str, Any], schema: dict[str, Any]) -> str | None:
    # Imported late: a conversation without tool calls does not need it.
    import jsonschema  # type: ignore[import-untyped]  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415

    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    kind.check_schema(schema)
    # An empty registry, because the default one fetches the references of a schema.
    faults = kind(schema, registry=Registry()).iter_errors(arguments)
    best = jsonschema.exceptions.best_match(islice(faults, MOST_FAULTS))
    return None if best is None else f"{_path(best.absolute_path)}: {one_line(best.message)}"


def _path(parts: Iterable[str | int]) -> str:
    """Return the path of a fault, for example `items[2].name`."""
    path = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in parts)
    return one_line(path.removeprefix(".")) or "arguments"


def _loads(text: str) -> object:
    value = _strict(text)
    if (key := _repeated(value)) is not None:
        raise UnfitArgumentsError(f"{one_line(key)}: is given twice")
    # No tool can store text that UTF-8 cannot encode.
    if not is_utf8(json.dumps(value, ensure_ascii=False)):
        raise UnfitArgumentsError("the text of the arguments holds a lone surrogate")
    return value


def _strict(text: str) -> object:
    try:
        return loads(text, deepest=DEEPEST, keep_repeated=True)
    except InvalidJson as error:
        problem = error.problem
    raise UnfitArgumentsError(f"the text of the arguments {problem}")


def _repeated(value: object) -> str | None:
    """Return a key that an object in `value` gives twice."""
    if isinstance(value, dict):
        return next(iter(repeated_keys(value)), None) or _repeated([*value.values()])
    if isinstance(value, list):
        return next((key for each in value if (key := _repeated(each)) is not None), None)
    return None
