"""Parameters of a tool in the form of the protocol. Pure."""

from collections.abc import Mapping
from typing import Any

from beaver_hooks.adapters.mcp_server.texts import clean_all
from beaver_hostspecs import thaw

EMPTY: Mapping[str, Any] = {"type": "object", "properties": {}}


class UnusableSchemaError(Exception):
    """The protocol has no form for the parameters; one such tool would cost a client the whole list."""


def input_schema(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON Schema in the form of the protocol: of an object, with an explicit `type`.

    Raises:
        UnusableSchemaError: the schema describes no object, or its outermost level is no JSON Schema.
    """
    plain: Any = clean_all(thaw(parameters))
    schema: dict[str, Any] = {"type": "object", **plain} if plain else dict(EMPTY)
    if schema["type"] != "object" or not (_has_properties(schema) and _has_required(schema)):
        raise UnusableSchemaError
    if not isinstance(schema.get("$schema", ""), str):
        raise UnusableSchemaError
    return schema


def _has_properties(schema: Mapping[str, Any]) -> bool:
    properties = schema.get("properties", {})
    return isinstance(properties, dict) and all(isinstance(each, dict | bool) for each in properties.values())


def _has_required(schema: Mapping[str, Any]) -> bool:
    required = schema.get("required", [])
    return isinstance(required, list) and all(isinstance(each, str) for each in required)
