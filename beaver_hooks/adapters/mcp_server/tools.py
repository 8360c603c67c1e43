"""The tools of the plugins, as a client lists and calls them."""

import json
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp import MCPError

from beaver_hooks.adapters.mcp_server.identity import Identity
from beaver_hooks.adapters.mcp_server.texts import clean, clean_all
from beaver_hooks.config.paths import did_you_mean
from beaver_hooks.host import Host
from beaver_hooks.tools import ToolBox
from beaver_hooks.tools.arguments import BrokenSchemaError, UnfitArgumentsError, check_arguments, parse_arguments
from beaver_hooks.tools.box import OUTPUT_CHARACTERS
from beaver_hooks.tools.outcomes import describe_error, one_line, render_output
from beaver_hostspecs import Tool, thaw
from beaver_hostspecs.naming import type_name

EMPTY: Mapping[str, Any] = {"type": "object", "properties": {}}


class Tools:
    """Lists and runs the tools of the plugins that are registered now.

    Tools that the reference agent refuses, and tools whose parameters are no object, are refused, with one loud log
    entry.
    """

    def __init__(self, host: Host, identity: Identity, *, characters: int = OUTPUT_CHARACTERS) -> None:
        self._host = host
        self._identity = identity
        self._characters = characters
        self._box = ToolBox(host)
        self._refused: set[tuple[str | None, str]] = set()

    def listed(self, session: str) -> types.ListToolsResult:
        """Return every tool that the client may use, with its name, description and schema."""
        tools = [
            types.Tool(name=tool.name, description=clean(tool.description), input_schema=schema)
            for tool, schema in self._offered(session).values()
        ]
        # A plugin may come or go, so clients must not cache the list.
        return types.ListToolsResult(tools=tools, ttl_ms=0, cache_scope="private")

    async def call(self, name: str, arguments: Mapping[str, Any] | None, session: str) -> types.CallToolResult:
        """Run a tool. Its failure is an answer that is marked as an error.

        Raises:
            MCPError: this client has no such tool.
        """
        offered = self._offered(session)
        if name not in offered:
            known = one_line(", ".join(offered)) or "none"
            meant = did_you_mean(name, offered)
            raise MCPError(types.INVALID_PARAMS, f"there is no such tool{meant}; the tools are: {known}")
        tool, _ = offered[name]
        try:
            given = _strict(arguments or {})
            check_arguments(given, tool.parameters)
        except UnfitArgumentsError as error:
            return _failed(str(error))
        except BrokenSchemaError as error:
            self._tell(tool, "tool_schema_broken")
            return _failed(str(error))
        return await self._run(tool, given, session)

    async def _run(self, tool: Tool, arguments: Mapping[str, Any], session: str) -> types.CallToolResult:
        try:
            value = await self._host.use_tool(tool.name, arguments, session=session, **self._identity.fields)
        except Exception as error:  # noqa: BLE001 - the host has recorded it, and the client gets it
            return _failed(describe_error(error))
        try:
            return _answer(render_output(value, characters=self._characters))
        except Exception as error:  # noqa: BLE001 - a plugin's return value may raise any error when it is rendered
            self._tell(tool, "tool_failed", error=type_name(error))
            return _failed(describe_error(error))

    def _offered(self, session: str) -> dict[str, tuple[Tool, dict[str, Any]]]:
        offered: dict[str, tuple[Tool, dict[str, Any]]] = {}
        refused: dict[tuple[str | None, str], Tool] = {}
        for name, tool in self._box.offered(self._identity.context(session)).items():
            if not isinstance(tool, Tool):  # this box has no built-in tools
                continue
            try:
                offered[name] = (tool, input_schema(tool.parameters))
            except UnusableSchemaError:
                refused[self._owner(tool), name] = tool
        for key in sorted(refused.keys() - self._refused, key=str):
            self._tell(refused[key], "tool_refused", why="unusable_parameters")
        self._refused = {*refused}
        return offered

    def _tell(self, tool: Tool, event: str, **facts: object) -> None:
        self._host.record(event, plugin=self._owner(tool), loudly=True, tool=tool.name, **facts)

    def _owner(self, tool: Tool) -> str | None:
        return next((name for name, tools in self._host.tools.items() if any(each is tool for each in tools)), None)


def _strict(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a client's arguments, read as strictly as those of a model."""
    try:
        text = json.dumps(arguments, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UnfitArgumentsError("the arguments are not a JSON object") from error
    return parse_arguments(text)


def _answer(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


def _failed(problem: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=clean(problem))], is_error=True)


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
