"""The optional fields of a turn and the fields of a tool call, for type checkers."""

import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, Required, TypedDict

import attrs

from beaver_hooks.config.paths import meant_or_known
from beaver_hostspecs import Actors, HostRef, InvalidTurn, Message, Scope, ToolRegistry, Trust

_OURS = re.compile(r"turn-[0-9a-f]{24}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


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


def new_turn_id() -> str:
    """Return a new random id."""
    return f"turn-{secrets.token_hex(12)}"


def is_ours(turn_id: str) -> bool:
    """Whether an id has the form of the host's own ids or of a UUID; any other id could identify a person."""
    return _OURS.fullmatch(turn_id) is not None


def checked(kind: Callable[..., Any], /, *args: Any, **fields: Any) -> Any:
    """Return `kind(...)`, or raise `InvalidTurn` for invalid arguments. The errors of the records show no value."""
    try:
        return kind(*args, **fields)
    except RecursionError:
        raise InvalidTurn(f"{kind.__name__}: a value is nested too deeply, or holds itself") from None
    except (TypeError, ValueError) as error:
        raise InvalidTurn(f"{kind.__name__}: {_names_at_fault(kind, fields) or error}") from None


def checked_id(turn_id: object) -> str:
    """Return the id of a turn, or raise `InvalidTurn` unless it is a str."""
    if not isinstance(turn_id, str):
        raise InvalidTurn("the id of a turn must be a str")
    return turn_id


def _names_at_fault(kind: Callable[..., Any], given: Mapping[str, object]) -> str | None:
    """Return the fault in the names of the fields, or `None` if they are right."""
    if not (isinstance(kind, type) and attrs.has(kind)):
        return None
    fields = {each.alias: each for each in attrs.fields(kind) if each.name == each.alias}
    for name in given:
        if name not in fields and f"_{name}" not in attrs.fields_dict(kind):
            return f"there is no field `{name}`{meant_or_known(name, fields, 'fields')}"
    missing = [name for name, each in fields.items() if each.default is attrs.NOTHING and name not in given]
    return f"{_listed(missing)} must be given" if missing else None


def _listed(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)
