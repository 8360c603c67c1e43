"""The chat completions format: from our records to a request, and from an answer to our records. Pure: no network.

Fields that are read are checked, and other fields are ignored: compatible servers add fields of their own. Every fault
is a `ProviderError`.

1. Of several choices the first one counts: the request asks for one.
2. A refusal is part of the model's text.
3. The arguments of a tool call are any text: the tools report faults in them to the model. Its name is required. Some
   servers leave out its id, which the loop then adds.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from beaver_hooks.agent.messages import ChatMessage, Completion, Usage
from beaver_hooks.agent.providers.faults import from_error, malformed
from beaver_hooks.tools.outcomes import ToolCall
from beaver_hostspecs import thaw
from beaver_toolkit.strict_json import InvalidJson, loads

_SURROGATES = re.compile("[\ud800-\udfff]")
_MOST_TOKENS = 2**53

_NAMES: Mapping[type, str] = {list: "a list", str: "a string", int: "a count"}

Json = Mapping[str, Any]
T = TypeVar("T", int, list[Any], str)


def request_body(
    model: str, messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]] = (), *, stream: bool = False
) -> bytes:
    """Return the body of a request.

    Lone surrogates, which UTF-8 cannot encode, become U+FFFD; every other character, including NUL, is sent unchanged.

    Raises:
        ValueError: the parameters of a tool contain NaN or infinity.
        TypeError: they are no plain data.
    """
    body: dict[str, Any] = {"model": model, "messages": [_message(each) for each in messages]}
    if tools:
        body["tools"] = [{"type": "function", "function": thaw(each)} for each in tools]
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text).encode("utf-8")


def parse_completion(body: bytes) -> Completion:
    """Return the completion in a whole answer.

    Raises:
        ProviderError: it contains none.
    """
    answer = read_object(body)
    choices = read(answer, "choices", list)
    if not choices:
        raise malformed("it holds no choices")
    choice = as_object(choices[0], "a choice")
    message = as_object(choice.get("message"), "`message`")
    return Completion(
        text=read_said(message),
        tool_calls=tuple(_whole_call(each) for each in read(message, "tool_calls", list)),
        usage=read_usage(answer),
        finish_reason=read(choice, "finish_reason", str) or None,
    )


def tool_call(*, id: str, name: str, arguments: str) -> ToolCall:  # noqa: A002 - the name of the field
    """Return the call, or raise the error of rule 3."""
    if not name:
        raise malformed("a tool call has no name")
    return ToolCall(id=id, name=name, arguments=arguments)


def read_object(text: str | bytes) -> Json:
    """Return the object in an answer or in the data of an event.

    Raises:
        ProviderError: it is no strict JSON, no object, or an error in spite of a status that claims success.
    """
    try:
        value = loads(text)
    except InvalidJson:
        value = None
    answer = as_object(value, "it")
    if answer.get("error"):
        raise from_error(answer["error"])
    return answer


def as_object(value: object, what: str) -> Json:
    """Return `value` if it is an object."""
    if not isinstance(value, dict):
        raise malformed(f"{what} is not a JSON object")
    return value


def read(holder: Json, key: str, kind: type[T]) -> T:
    """Return a list, text or count; an empty one, or 0, if the key is missing.

    Raises:
        ProviderError: the value is not of the kind.
    """
    value = holder.get(key)
    if value is None:
        return kind()
    if type(value) is not kind or (isinstance(value, int) and not 0 <= value <= _MOST_TOKENS):
        raise malformed(f"`{key}` is not {_NAMES[kind]}")
    return value


def read_said(message: Json) -> str:
    """Rule 2."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [as_object(each, "a part of `content`") for each in content]
        return "".join(read(each, "text", str) for each in parts if each.get("type") == "text")
    return read(message, "content", str) + read(message, "refusal", str)


def read_usage(answer: Json) -> Usage | None:
    """Return the usage in an answer, if it contains one."""
    if answer.get("usage") is None:
        return None
    usage = as_object(answer["usage"], "`usage`")
    return Usage(input_tokens=read(usage, "prompt_tokens", int), output_tokens=read(usage, "completion_tokens", int))


def _whole_call(value: object) -> ToolCall:
    call = as_object(value, "a tool call")
    function = as_object(call.get("function"), "`function`")
    return tool_call(
        id=read(call, "id", str), name=read(function, "name", str), arguments=read(function, "arguments", str)
    )


def _message(message: ChatMessage) -> dict[str, Any]:
    plain: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.tool_call_id is not None:
        plain["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        plain["content"] = message.text or None
        plain["tool_calls"] = [_sent_call(each) for each in message.tool_calls]
    return plain


def _sent_call(call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": _sent_arguments(call.arguments)},
    }


def _sent_arguments(arguments: str) -> str:
    # Many servers parse them, and would refuse every further request of the session. The tool's answer tells the model
    # about the fault.
    try:
        return arguments if isinstance(loads(arguments), dict) else "{}"
    except InvalidJson:
        return "{}"
