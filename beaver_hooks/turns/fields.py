"""The optional fields of a turn and the fields of a tool call, for type checkers."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, Required, TypedDict

from beaver_hostspecs import Actors, HostRef, Message, Scope, ToolRegistry, Trust


class TurnFields(TypedDict, total=False):
    """The fields of a turn besides its prompt and its session; see `Turn`."""

    id: str
    when: datetime
    conversation: str
    user: str | None
    history: Iterable[Message]
    scope: Scope
    actors: Actors
    refs: Iterable[HostRef]
    registry: ToolRegistry | None
    budget: int | None
    trust: Trust | str


class ToolFields(TypedDict, total=False):
    """The fields of a tool call; see `ToolResult`."""

    tool: Required[str]
    call_id: Required[str]
    output: object
    error: str | None
    arguments: Mapping[str, Any] | None
    outcome: Literal["success", "error"] | None
    registry: str | None
    duration: timedelta | None
    summary: str | None
    external: bool
    private: bool
