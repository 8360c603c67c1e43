"""A call of a tool, a tool that is built in, and the outcome of a call."""

import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import date, timedelta
from typing import Any

import attrs
from attrs import field

from beaver_hooks.text import presentable
from beaver_hostspecs import BeaverError, Turn, freeze, scrub, thaw
from beaver_hostspecs.naming import type_name
from beaver_hostspecs.plugins import Allows, any_caller

RunBuiltIn = Callable[[Mapping[str, Any], Turn], Awaitable[object]]

NAMELESS = "nameless"
"""The name or id of a call if the model gave none."""

LONGEST_LINE = 300
MARK = "[tool error]"
"""The beginning of every text about a failure for the model."""


@attrs.frozen(kw_only=True)
class ToolCall:
    """A call that the model asks for.

    Attributes:
        id: the provider's id of the call.
        name: the tool.
        arguments: the arguments as the model wrote them: JSON text, not checked yet.
    """

    id: str
    name: str
    arguments: str = field(repr=False)


@attrs.frozen(kw_only=True)
class BuiltInTool:
    """A tool of the agent's own. Its name is reserved: no plugin can take it.

    Attributes:
        name: its name for the model.
        description: its description for the model.
        parameters: the JSON Schema of its arguments.
        run: `async run(arguments, turn)`; its result goes to the model.
        external: its output comes from outside: data of strangers.
        private: its output must not be stored or sent anywhere.
        allows: whether a caller may use it; it is neither offered to other callers nor run for them.
        remembers: its output contains earlier messages, so it is out of service while memory is off.
    """

    name: str
    description: str
    parameters: Mapping[str, Any] = field(converter=freeze)
    run: RunBuiltIn = field(repr=False)
    external: bool = False
    private: bool = False
    allows: Allows = field(default=any_caller, repr=False)
    remembers: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """The tool in the form that providers take."""
        return {"name": self.name, "description": self.description, "parameters": thaw(self.parameters)}


@attrs.frozen(kw_only=True)
class ToolOutcome:
    """The outcome of one call.

    Attributes:
        call: the call, as the model asked for it.
        text: the text for the model; that of an error has a mark.
        error: the error without the mark, or `None`.
        arguments: the arguments of the call; empty if they could not be read.
        duration: the duration, including the reading of the arguments.
        external: see `BuiltInTool`.
        private: see `BuiltInTool`.
    """

    call: ToolCall
    text: str = field(repr=False)
    error: str | None = field(default=None, repr=False)
    arguments: Mapping[str, Any] = field(factory=dict, converter=freeze, repr=False)
    duration: timedelta = timedelta()
    external: bool = False
    private: bool = False

    @property
    def fields(self) -> dict[str, Any]:
        """The fields for the plugins: `await turn.tool_result(**outcome.fields)`.

        The output is the text that the model got, so that it contains no object of a plugin.
        """
        return {
            "tool": self.call.name or NAMELESS,
            "call_id": self.call.id or NAMELESS,
            "arguments": self.arguments,
            "output": None if self.error is not None else self.text,
            "error": self.error,
            "duration": self.duration,
            "external": self.external,
            "private": self.private,
        }


OnTool = Callable[[ToolOutcome], None]
"""Called with the outcome of each tool call, in the order of the calls."""


def render_output(value: object, *, characters: int) -> str:
    """Return a tool's result as text: a str unchanged, else JSON; scrubbed, and cut with a mark.

    Raises:
        TypeError: it contains a value that JSON cannot represent.
        ValueError: it contains itself.
        RecursionError: it is nested too deeply.
    """
    if not isinstance(value, str):
        value = json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":"))
    text = presentable(scrub(str.__str__(value)))
    return text if len(text) <= characters else text[:characters] + _cut(characters, len(text))


def render_error(name: str, problem: str) -> str:
    """Return the text that tells the model that a call failed."""
    return f"{MARK} {one_line(name) or 'a call without a name'}: {problem}"


def describe_error(error: BaseException) -> str:
    """Return the text of an exception on one line, without a traceback or a secret; with its type if that helps."""
    try:
        said = one_line(str(error))
    except BaseException as trouble:  # noqa: BLE001 - a plugin's code makes the text
        said = f"its text cannot be read ({type_name(trouble)})"
    if issubclass(type(error), BeaverError):  # by its type: an error may lie about its class
        return said
    return f"{type_name(error)}: {said}" if said else type_name(error)


def one_line(text: str) -> str:
    """Return `text` scrubbed, on one line and short."""
    line = presentable(" ".join(scrub(text).split()))
    return line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "..."


def _cut(shown: int, total: int) -> str:
    return f"\n[cut here: {shown} of {total} characters are shown, {total - shown} are missing]"


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"a {type_name(value)} has no form in JSON")
