"""Whether a request matches the wire format: every field there, none beyond, each of its type. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

SCOPES = frozenset({"current_chat", "resources", "all_user_memory"})
ROLES = frozenset({"user", "assistant"})
MOST_RESULTS = 100
MOST_MESSAGES = 500
LONGEST_ID = 128

Check = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _id(value: Any) -> bool:
    return _text(value) and len(value) <= LONGEST_ID


def _chat(value: Any) -> bool:
    return _id(value) and value.startswith("chat:") and value != "chat:"


def _number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _scopes(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and set(value) <= SCOPES and len(set(value)) == len(value)


def _messages(value: Any) -> bool:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_MESSAGES:
        return False
    if any(_misfit(message, _MESSAGE) for message in value):
        return False
    times = [message["timestamp"] for message in value]
    return times == sorted(times)


_IDENTITY: Mapping[str, Check] = {"user_id": _id, "user_key": _text, "app_id": _id, "project_id": _id}
_MESSAGE: Mapping[str, Check] = {
    "sender_id": _id,
    "role": lambda value: value in ROLES,
    "timestamp": lambda value: _number(value) and value > 0,
    "content": lambda value: isinstance(value, str) and value.strip() != "",
}
_BODIES: Mapping[str, Mapping[str, Check]] = {
    "search": {
        **_IDENTITY,
        "conversation_id": _id,
        "query": lambda value: isinstance(value, str) and value.strip() != "",
        "scope": _scopes,
        "top_k": lambda value: _number(value) and 1 <= value <= MOST_RESULTS,
    },
    "add": {**_IDENTITY, "session_id": _chat, "messages": _messages},
    "flush": {**_IDENTITY, "session_id": _chat},
}


def problem_of(operation: str, body: object) -> str | None:
    """Return the first faulty field of a body, or another name of its fault, or `None`."""
    return _misfit(body, _BODIES[operation])


def _misfit(value: object, checks: Mapping[str, Check]) -> str | None:
    if not isinstance(value, dict):
        return "not an object"
    if unexpected := sorted(set(value) ^ set(checks)):
        return unexpected[0]
    return next((name for name, check in checks.items() if not check(value[name])), None)
