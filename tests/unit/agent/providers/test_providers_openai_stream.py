"""A streamed answer is put together from its chunks."""

import contextlib
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.agent.errors import ProviderError
from beaver_hooks.agent.messages import Completion, Usage
from beaver_hooks.agent.providers.openai_stream import StreamedCompletion
from beaver_hooks.tools.outcomes import ToolCall

USAGE = {"usage": {"prompt_tokens": 3, "completion_tokens": 4}}
DONE = "[DONE]"


def said(text=None, finish=None, **delta):
    delta = delta if text is None else {"content": text} | delta
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def part(*, index=0, call_id=None, name=None, arguments=None):
    found = {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}
    return said(tool_calls=[{key: value for key, value in found.items() if value is not None}])


def fed(chunks):
    """Return the pieces of text and the whole."""
    stream = StreamedCompletion()
    texts = [stream.feed(each if isinstance(each, str) else json.dumps(each)) for each in chunks]
    return [each for each in texts if each], stream.finish()


def fault(*chunks):
    with pytest.raises(ProviderError) as caught:
        fed(chunks)
    return caught.value.category, str(caught.value).removeprefix("The provider's answer cannot be used: ").partition(
        ". "
    )[0]


@pytest.mark.parametrize(
    "chunks",
    [
        [said("Hel"), said("lo", "stop"), USAGE | {"choices": []}, DONE],
        [
            said("", role="assistant"),
            said("Hel"),
            said(refusal="lo") | USAGE,
            said(finish="stop"),
            " [DONE] ",
            "rubbish",
        ],
        [{"choices": []}, said("Hello", "stop") | {"usage": None}, USAGE],
        [USAGE | said("Hello"), {"choices": [{"delta": None, "finish_reason": "stop"}]}],
        [said("Hello", "stop") | USAGE, {"choices": [{"index": 1, "delta": {"content": "other"}}]}],
    ],
)
def test_texts(chunks):
    """The stream joins pieces of text, takes usage at any place, and ignores other choices and chunks after the end."""
    texts, whole = fed(chunks)

    assert Completion(text="Hello", usage=Usage(input_tokens=3, output_tokens=4), finish_reason="stop") == whole
    assert "Hello" == "".join(texts)


ONE = ToolCall(id="a", name="n", arguments='{"x": 1}')
TWO = ToolCall(id="b", name="m", arguments="{}")


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([part(call_id="a", name="n", arguments=""), part(arguments='{"x"'), part(arguments=": 1}")], (ONE,)),
        ([part(call_id="a", name="n", arguments='{"x"'), part(call_id="a", name="n", arguments=": 1}")], (ONE,)),
        ([part(call_id="a"), part(name="n"), part(arguments='{"x": 1}')], (ONE,)),
        (
            [
                part(call_id="a", name="n"),
                part(index=1, call_id="b", name="m"),
                part(arguments='{"x": 1}'),
                part(index=1, arguments="{}"),
            ],
            (ONE, TWO),
        ),
        (
            [part(call_id="a", name="n", arguments='{"x": 1}'), part(call_id="b", name="m", arguments="{}")],
            (ONE, TWO),
        ),
        ([said(tool_calls=[{"id": "b", "function": {"name": "m", "arguments": "{}"}}])], (TWO,)),
        ([part(call_id="b", name="m", arguments="{}"), said(tool_calls=[{"index": 0}])], (TWO,)),
    ],
)
def test_tool_calls(parts, expected):
    """Fragments find their call by index; another id under the same index is another call."""
    assert ([], Completion(tool_calls=expected)) == fed([*parts, DONE])


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([], ("truncated", "The provider's answer ended before it was complete")),
        ([said("Hel")], ("truncated", "The provider's answer ended before it was complete")),
        ([DONE], ("malformed", "it holds no choices")),
        (["{"], ("malformed", "it is not a JSON object")),
        ([{"error": "down"}], ("server_error", "There is no answer: the provider reports an error: down")),
        ([{"choices": [1]}], ("malformed", "a choice is not a JSON object")),
        ([{"choices": [{"index": "0"}]}], ("malformed", "`index` is not a count")),
        ([{"choices": [{"delta": "x"}]}], ("malformed", "`delta` is not a JSON object")),
        ([said(tool_calls=["x"])], ("malformed", "a tool call is not a JSON object")),
        ([said(tool_calls=[{"id": "a", "function": "x"}])], ("malformed", "`function` is not a JSON object")),
        ([part(call_id="a"), DONE], ("malformed", "a tool call has no name")),
        ([part(call_id="a", name="n"), part(name="m")], ("malformed", "a tool call has two names")),
        ([part(index=-1)], ("malformed", "`index` is not a count")),
    ],
)
def test_faults(chunks, expected):
    """Each fault has its own error, and a cut stream has another one than malformed data."""
    assert expected == fault(*chunks)


@given(
    st.lists(st.text(), min_size=1), st.lists(st.integers(0, 30)), st.sampled_from(["{}", '{"a": "b c"}', "{broken"])
)
def test_any_division_gives_the_same(texts, cuts, arguments):
    """The division of text and arguments into chunks does not change the whole."""
    places = [0, *sorted(min(cut, len(arguments)) for cut in cuts), len(arguments)]
    pieces = [arguments[start:end] for start, end in itertools.pairwise(places)]
    chunks = [*map(said, texts), part(call_id="a", name="n"), *(part(arguments=piece) for piece in pieces), DONE]

    call = ToolCall(id="a", name="n", arguments=arguments)
    assert Completion(text="".join(texts), tool_calls=(call,)) == fed(chunks)[1]


@given(st.text())
def test_any_data_is_a_chunk_or_an_error(data):
    """Nothing but a ProviderError gets out."""
    with contextlib.suppress(ProviderError):
        assert isinstance(fed([data])[1], Completion)
