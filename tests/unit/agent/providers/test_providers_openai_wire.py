"""Requests are built, and whole answers read, as the format says."""

import contextlib
import json
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.agent.errors import ProviderError
from beaver_hooks.agent.messages import ChatMessage, Completion, Usage
from beaver_hooks.agent.providers.openai_wire import parse_completion, request_body
from beaver_hooks.tools.outcomes import ToolCall

TOOL = MappingProxyType({"name": "memory", "description": "d", "parameters": MappingProxyType({"required": ("a",)})})

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "stop", "x", "call-1"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["choices", "message", "content", "tool_calls", "function", "name", "id", "arguments", "usage", "error", "index", "delta", "refusal", "finish_reason", "prompt_tokens"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


def sent(messages, tools=(), **more):
    return json.loads(request_body("m", messages, tools, **more))


def answer(message=None, **more):
    choice = {"index": 0, "message": {"content": "x"} if message is None else message, "finish_reason": "stop"}
    return json.dumps({"choices": [choice]} | more).encode()


def problem(body):
    with pytest.raises(ProviderError) as caught:
        parse_completion(body)
    assert "malformed" == caught.value.category
    return str(caught.value).removeprefix("The provider's answer cannot be used: ").partition(". Check")[0]


def test_messages():
    """Every role is sent in its own shape, calls and results included."""
    call = ToolCall(id="c", name="memory", arguments='{"a": 1}')
    messages = [
        ChatMessage(role="system", text="s"),
        ChatMessage(role="user", text=""),
        ChatMessage(role="assistant", tool_calls=(call,)),
        ChatMessage(role="tool", text="done", tool_call_id="c"),
        ChatMessage(role="assistant", text="t", tool_calls=(call,)),
    ]
    calls = [{"id": "c", "type": "function", "function": {"name": "memory", "arguments": '{"a": 1}'}}]

    assert {
        "model": "m",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": ""},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "content": "done", "tool_call_id": "c"},
            {"role": "assistant", "content": "t", "tool_calls": calls},
        ],
    } == sent(messages)


def test_tools_and_streaming():
    """Tools are functions, frozen schemas included; a stream is asked for with its usage."""
    assert {
        "model": "m",
        "messages": [],
        "tools": [
            {"type": "function", "function": {"name": "memory", "description": "d", "parameters": {"required": ["a"]}}}
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
    } == sent([], [TOOL], stream=True)


@pytest.mark.parametrize("arguments", ["", "{", "[1]", '"x"', '{"a": NaN}'])
def test_broken_arguments_are_not_sent_back(arguments):
    """Servers that parse the arguments of earlier calls would refuse the whole session."""
    call = ToolCall(id="c", name="memory", arguments=arguments)

    assert (
        "{}"
        == sent([ChatMessage(role="assistant", tool_calls=(call,))])["messages"][0]["tool_calls"][0]["function"][
            "arguments"
        ]
    )


@given(st.text(st.characters(codec=None)))
def test_every_text_can_be_sent(text):
    """The body is UTF-8 whatever is in it; only lone surrogates are replaced."""
    expected = "".join("\N{REPLACEMENT CHARACTER}" if "\ud800" <= each <= "\udfff" else each for each in text)

    assert expected == sent([ChatMessage(role="user", text=text)])["messages"][0]["content"]


def test_impossible_parameters():
    """A schema that is no JSON is the caller's error, not the provider's."""
    with pytest.raises(ValueError, match="JSON"):
        request_body("m", [], [{"name": "x", "parameters": {"maximum": float("nan")}}])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (answer(), Completion(text="x", finish_reason="stop")),
        (answer({"content": None}), Completion(finish_reason="stop")),
        (answer({"content": "a", "refusal": "b", "unknown": 1e5}), Completion(text="ab", finish_reason="stop")),
        (answer(error=None), Completion(text="x", finish_reason="stop")),
        (
            answer(usage={"prompt_tokens": 3, "completion_tokens": None, "details": {}}),
            Completion(text="x", finish_reason="stop", usage=Usage(input_tokens=3)),
        ),
        (
            answer({"tool_calls": [{"id": "c", "function": {"name": "n", "arguments": "{"}}]}),
            Completion(tool_calls=(ToolCall(id="c", name="n", arguments="{"),), finish_reason="stop"),
        ),
        (
            answer({"tool_calls": [{"id": "c", "function": {"name": "n"}}]}),
            Completion(tool_calls=(ToolCall(id="c", name="n", arguments=""),), finish_reason="stop"),
        ),
        (b'\xef\xbb\xbf{"choices": [{"message": {}}, 5]}', Completion()),
    ],
)
def test_answers(body, expected):
    """Text, refusal, calls and usage are read; unknown fields are not."""
    assert expected == parse_completion(body)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", "it is not a JSON object"),
        (b"[]", "it is not a JSON object"),
        (b'{"choices": [], "choices": []}', "it is not a JSON object"),
        (b"{}", "it holds no choices"),
        (b'{"choices": {}}', "`choices` is not a list"),
        (b'{"choices": [1]}', "a choice is not a JSON object"),
        (b'{"choices": [{}]}', "`message` is not a JSON object"),
        (answer({"content": ["x"]}), "a part of `content` is not a JSON object"),
        (answer({"content": [{"type": "text", "text": 5}]}), "`text` is not a string"),
        (answer({"tool_calls": "x"}), "`tool_calls` is not a list"),
        (answer({"tool_calls": [1]}), "a tool call is not a JSON object"),
        (answer({"tool_calls": [{"id": "c"}]}), "`function` is not a JSON object"),
        (answer({"tool_calls": [{"id": "c", "function": {}}]}), "a tool call has no name"),
        (answer({"tool_calls": [{"id": "c", "function": {"name": "n", "arguments": {}}}]}), "`arguments` is not a string"),
        (answer(usage=[]), "`usage` is not a JSON object"),
        (answer(usage={"prompt_tokens": -1}), "`prompt_tokens` is not a count"),
        (answer(usage={"prompt_tokens": True}), "`prompt_tokens` is not a count"),
        (answer(usage={"completion_tokens": 2.0}), "`completion_tokens` is not a count"),
        (answer(usage={"completion_tokens": 2**60}), "`completion_tokens` is not a count"),
    ],
)  # fmt: skip
def test_malformed_answers(body, expected):
    """Each fault is named by the field, without its value."""
    assert expected == problem(body)


@given(plain)
def test_any_json_is_an_answer_or_an_error(value):
    """Nothing but a ProviderError gets out."""
    with contextlib.suppress(ProviderError):
        assert isinstance(parse_completion(json.dumps(value).encode()), Completion)


def test_content_in_parts_is_one_text():
    """Some servers send the text as a list of parts; those of other types are no text."""
    content = [{"type": "text", "text": "On "}, {"type": "image_url"}, {"type": "text", "text": "Thursday."}]

    assert "On Thursday." == parse_completion(answer({"content": content})).text
