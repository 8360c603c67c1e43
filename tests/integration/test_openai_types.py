"""Our requests and our reading agree with the types of the official `openai` package."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from integration.openai_server import USAGE, call, chunk, completion

from beaver_hooks.agent.messages import ChatMessage, Completion, Usage
from beaver_hooks.agent.providers.openai_stream import StreamedCompletion
from beaver_hooks.agent.providers.openai_wire import parse_completion, request_body
from beaver_hooks.tools.outcomes import ToolCall

REASON = "the package `openai` is not installed, so its types cannot be compared with; it is in the extra `dev`"

CALL = ToolCall(id="call-1", name="memory", arguments='{"a": 1}')
MESSAGES = [
    ChatMessage(role="system", text="Be brief."),
    ChatMessage(role="user", text="Remember tea."),
    ChatMessage(role="assistant", tool_calls=(CALL,)),
    ChatMessage(role="tool", text="Added.", tool_call_id="call-1"),
    ChatMessage(role="assistant", text="Done."),
    ChatMessage(role="user", text="Thanks."),
]
TOOLS = [{"name": "memory", "description": "Keeps.", "parameters": {"type": "object", "properties": {}}}]
WHOLE = Completion(
    text="Hello", tool_calls=(CALL,), usage=Usage(input_tokens=11, output_tokens=7), finish_reason="tool_calls"
)


@pytest.fixture(scope="module")
def chat() -> Any:
    """The official types, imported where they are used: each worker collects this module."""
    return pytest.importorskip("openai.types.chat", reason=REASON)


def checked(kind: Any, value: Any) -> Any:
    """Return `value` as the official types have it; what they do not know is refused."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind).validate_python(value)


def plain(value: Any) -> Any:
    """Return plain data: pydantic leaves iterables of typed dicts to be consumed once."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, str | int | float | bool | None):
        return value
    return [plain(item) for item in value]


@pytest.mark.parametrize("stream", [False, True])
def test_requests(chat, stream):
    """The body is what the official parameters describe, field by field, and nothing is lost on the way."""
    params = chat.completion_create_params
    kind = params.CompletionCreateParamsStreaming if stream else params.CompletionCreateParamsNonStreaming
    body = json.loads(request_body("test-model", MESSAGES, TOOLS, stream=stream))

    assert body == plain(checked(kind, body))


def test_whole_answers(chat):
    """What the official record of an answer dumps is read by us, with and without the fields it leaves empty."""
    answer = chat.ChatCompletion.model_validate(completion("Hello", calls=[call("memory", '{"a": 1}')]))

    assert WHOLE == parse_completion(answer.model_dump_json().encode())
    assert WHOLE == parse_completion(answer.model_dump_json(exclude_unset=True).encode())


@pytest.mark.parametrize("exclude_unset", [False, True])
def test_streamed_answers(chat, exclude_unset):
    """The same for the chunks of a stream."""
    first = {"index": 0, "id": "call-1", "type": "function", "function": {"name": "memory", "arguments": ""}}
    chunks = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Hel"}),
        chunk({"content": "lo"}),
        chunk({"tool_calls": [first]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"a": 1}'}}]}),
        chunk(finish="tool_calls"),
        chunk(usage=USAGE),
    ]
    stream = StreamedCompletion()
    for each in chunks:
        stream.feed(chat.ChatCompletionChunk.model_validate(each).model_dump_json(exclude_unset=exclude_unset))

    assert WHOLE == stream.finish()
