"""The bodies of requests and answers. Pure: no network.

1. The three request bodies have exactly the fields that a gateway expects, in a fixed order.
2. The credential stays a `Secret` until `encode` writes the bytes.
3. Texts are sent as they are. Only half a surrogate pair, which no JSON in UTF-8 can hold, becomes U+FFFD.
4. One session id serves for searching and adding: `current_chat` finds the turns that are added under `chat:<id>`. An
   id that exceeds a gateway's 128 characters is sent as a hash of it, always the same.
5. Of a result six fields are read; all others are dropped. A field of another type counts as absent.
6. A result with a blank text is dropped. Dropped results count in the total.
7. NaN, a field that is given twice and half a surrogate pair make the whole answer malformed.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import attrs
from attrs import field

from beaver_hooks_gateway.settings import GatewaySettings
from beaver_hostspecs import Answer, Reference, Secret, Turn, scrub
from beaver_toolkit.strict_json import InvalidJson, is_utf8, loads, repeated_keys

CHAT = "chat:"
LONGEST_SESSION = 128
"""Characters of a session id that a gateway holds, the prefix included."""

ASSISTANT = "beaver"
"""The sender of answers."""

MOST_CHARACTERS = 500_000
"""Characters of all results together; a host refuses a contribution of twice as many."""

MOST_MARKS = 20_000
"""Commas, colons, objects and lists in one answer, beside those in its texts. The most results need a few thousand."""

DEEPEST = 100

LONGEST_VALUE = 500
"""Characters of a field that is no text."""

_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_FIELDS = frozenset({"id", "session_id", "text", "score", "source_scope", "resource_uri"})

Body = Mapping[str, Any]

_OPAQUE = re.compile(r"[\w.:@/+-]{1,128}", re.ASCII)


class MalformedError(ValueError):
    """An answer does not match the wire format.

    Attributes:
        category: `invalid_json` or `invalid_shape`.
    """

    def __init__(self, category: str) -> None:
        self.category = category
        super().__init__(category)


@attrs.frozen(kw_only=True)
class Result:
    """One result, reduced to the fields that are used."""

    text: str = field(repr=False)
    id: str | None = None
    session_id: str | None = None
    score: float | None = None
    source_scope: str | None = None
    resource_uri: str | None = None


@attrs.frozen(kw_only=True)
class RecalledMemory:
    """The results of a search.

    Attributes:
        results: those that can be used, as many as were asked for, in the gateway's order.
        total: how many the gateway sent.
    """

    results: tuple[Result, ...]
    total: int


# --- Requests -----------------------------------------------------------------------------------------------------


def search_body(settings: GatewaySettings, *, session: str, query: str, top_k: int) -> Body:
    """Return the body of a search in a host's session."""
    scope = list(settings.scope)
    return _body(settings, conversation_id=mapped(session), query=query, scope=scope, top_k=top_k)


def add_body(settings: GatewaySettings, turn: Turn, answer: Answer) -> Body:
    """Return the body that adds the prompt and the answer of a completed turn."""
    asked = max(1, milliseconds(turn.when))
    answered = max(asked + 1, milliseconds(answer.when))
    messages = [
        {"sender_id": settings.user_id, "role": "user", "timestamp": asked, "content": turn.prompt},
        {"sender_id": ASSISTANT, "role": "assistant", "timestamp": answered, "content": answer.text},
    ]
    return {**flush_body(settings, session=turn.session), "messages": messages}


def flush_body(settings: GatewaySettings, *, session: str) -> Body:
    """Return the body of a flush of a host's session."""
    return _body(settings, session_id=chat(session))


def _body(settings: GatewaySettings, **fields: Any) -> Body:
    identity = {"user_id": settings.user_id, "user_key": settings.user_key}
    return {**identity, **fields, "app_id": settings.app_id, "project_id": settings.project_id}


def encode(body: Body) -> bytes:
    """Return the bytes of a body, with the credential in them."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), default=_revealed)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")


def mapped(session: str) -> str:
    """Return the session id that the gateway gets for a host's session id."""
    if len(CHAT) + len(session) <= LONGEST_SESSION and is_utf8(session):
        return session
    return f"sha256-{hashlib.sha256(session.encode('utf-8', 'surrogatepass')).hexdigest()}"


def chat(session: str) -> str:
    """Return the gateway's id of the chat of a host's session."""
    return CHAT + mapped(session)


def milliseconds(when: datetime) -> int:
    """Return a time as UTC milliseconds since 1970."""
    return (when - _EPOCH) // timedelta(milliseconds=1)


def _revealed(value: object) -> str:
    if isinstance(value, Secret):
        return value.reveal()
    raise TypeError(f"a request cannot hold a {type(value).__name__}")


# --- Answers ------------------------------------------------------------------------------------------------------


def parse_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object of an answer, which confirms an add or a flush by any content.

    Raises:
        MalformedError: it is no JSON object.
    """
    try:
        value = loads(body, deepest=DEEPEST, most_marks=MOST_MARKS, keep_repeated=True, keep_numbers=True)
    except InvalidJson:
        raise MalformedError("invalid_json") from None
    if not isinstance(value, dict):
        raise MalformedError("invalid_shape")
    return value


def parse_found(body: bytes, *, most: int) -> RecalledMemory:
    """Return the results of a search, at most `most`.

    Raises:
        MalformedError: it is not strict JSON, or holds no list `results` at its top.
    """
    answer = parse_object(body)
    items = answer.get("results")
    if not isinstance(items, list) or "results" in repeated_keys(answer):
        raise MalformedError("invalid_shape")
    usable = [result for item in items if (result := _result(item)) is not None]
    return RecalledMemory(results=_fitting(usable[:most]), total=len(items))


def _result(item: object) -> Result | None:
    """Rules 5 to 7."""
    if not isinstance(item, dict):
        return None
    if _FIELDS.intersection(repeated_keys(item)):
        raise MalformedError("invalid_shape")
    if not is_utf8("".join(value for value in map(item.get, _FIELDS) if isinstance(value, str))):
        raise MalformedError("invalid_json")
    text = item.get("text")
    if not isinstance(text, str) or not text.strip():
        return None
    return Result(
        text=text,
        id=_name(item.get("id")),
        session_id=_name(item.get("session_id")),
        score=_score(item.get("score")),
        source_scope=_name(item.get("source_scope")),
        resource_uri=_name(item.get("resource_uri")),
    )


def _name(value: object) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        return str(value)
    return value[:LONGEST_VALUE] if isinstance(value, str) and value.strip() else None


def _score(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _fitting(results: Sequence[Result]) -> tuple[Result, ...]:
    """Return the results that fit a contribution; the first one that does not is cut, and ends it."""
    fitting: list[Result] = []
    left = MOST_CHARACTERS
    for result in results:
        if left <= 0:
            break
        fitting.append(result if len(result.text) <= left else attrs.evolve(result, text=result.text[:left]))
        left -= len(result.text)
    return tuple(fitting)


def reference(result: Result, user_id: str) -> Reference:
    """Return the reference for a result. A user key that the gateway repeats in it is masked."""
    resource = result.resource_uri is not None or result.source_scope == "resources"
    return Reference(
        text=scrub(result.text),
        kind="resource" if resource else "conversation",
        id=reference_id(result, user_id),
        score=result.score,
        scope=result.source_scope and scrub(result.source_scope),
        session=result.session_id and scrub(result.session_id),
        uri=result.resource_uri and scrub(result.resource_uri),
    )


def reference_id(result: Result, user_id: str) -> str:
    """Return an id for receipts: the gateway's own, or a hash where that may hold the user's id or text."""
    given = scrub(result.id or result.text)
    if result.id is not None and _OPAQUE.fullmatch(given) and user_id not in given:
        return given
    return f"sha256-{sha256(given.encode()).hexdigest()[:16]}"
