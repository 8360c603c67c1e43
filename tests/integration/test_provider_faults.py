"""Whatever an OpenAI-compatible server does, over a real connection, ends in an answer or in one clear error."""

import asyncio
import logging
import traceback
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import attrs
import pytest
from integration.openai_server import (
    Reply,
    body,
    call,
    chunk,
    completion,
    event,
    events,
    serve,
    status,
    streamed,
    whole,
)

from beaver_hooks.agent.errors import ProviderError
from beaver_hooks.agent.messages import ChatMessage, Completion, Usage
from beaver_hooks.agent.providers.openai import OpenAIProvider
from beaver_hooks.config.provider import ProviderSettings
from beaver_hooks.tools.outcomes import ToolCall
from beaver_hostspecs import Secret
from beaver_hostspecs.testing import FrozenClock

KEY = "sk-zq-0123456789abcdef"
PROMPT = [ChatMessage(role="system", text="Be brief."), ChatMessage(role="user", text="Hi")]
TOOLS = [{"name": "memory", "description": "Keeps.", "parameters": {"type": "object", "properties": {}}}]
USAGE = Usage(input_tokens=11, output_tokens=7)
HELLO = Completion(text="Hello", usage=USAGE, finish_reason="stop")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Model:
    """A provider for one test, with its waits and its pieces of text."""

    def __init__(self, server, **settings):
        self.waits = []
        self.deltas = []
        settings = {"base_url": server.base_url, "model": "test-model", "api_key": Secret(KEY)} | settings
        self.provider = OpenAIProvider(
            ProviderSettings(kind="openai", **settings), clock=FrozenClock(NOW), sleep=self._wait
        )

    async def _wait(self, seconds):
        self.waits.append(seconds)

    async def ask(self, *, stream=False, tools=()):
        return await self.provider.complete(PROMPT, tools=tools, on_delta=self.deltas.append if stream else None)

    async def fault(self, *, stream=False, echoed=False):
        """Return the error; its traceback shows no credential, except in the text that a provider `echoed`."""
        with pytest.raises(ProviderError) as caught:
            await self.ask(stream=stream)
        await self.provider.close()
        shown = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=not echoed).format())
        assert KEY not in shown.replace(f"KEY = {KEY!r}", "")
        assert (None, None) == (caught.value.__cause__, caught.value.__context__)
        return caught.value


def told(error):
    return error.category, error.status, str(error)


BROKEN = "The provider's answer cannot be used: {}. Check that provider.baseUrl names an OpenAI-compatible API."
CUT = (
    "truncated",
    None,
    "The provider's answer ended before it was complete. Try again, and check the network if it happens often.",
)


async def test_a_whole_answer():
    """Text and usage arrive, and the server got exactly this request."""
    async with serve(whole("Hello")) as server:
        model = Model(server)
        answer = await model.ask(tools=TOOLS)
        await model.provider.close()

    assert HELLO == answer
    (request,) = server.requests
    assert ("POST", "/v1/chat/completions") == (request.method, request.path)
    assert {
        "model": "test-model",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        "tools": [{"type": "function", "function": TOOLS[0]}],
    } == request.json
    sent = {name: request.headers.get(name) for name in ("authorization", "accept-encoding", "content-type", "cookie")}
    assert {
        "authorization": f"Bearer {KEY}",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "cookie": None,
    } == sent


async def test_a_streamed_answer():
    """Text is given out piece by piece, tool calls are put together, and usage is asked for."""
    async with serve(
        streamed("Hel", "lo", calls=[call("memory", '{"a":1}'), call("other", "{}", call_id="call-2")])
    ) as server:
        model = Model(server)
        answer = await model.ask(stream=True)
        await model.provider.close()

    calls = (
        ToolCall(id="call-1", name="memory", arguments='{"a":1}'),
        ToolCall(id="call-2", name="other", arguments="{}"),
    )
    assert Completion(text="Hello", tool_calls=calls, usage=USAGE, finish_reason="tool_calls") == answer
    assert ["Hel", "lo"] == model.deltas
    assert (True, {"include_usage": True}) == (
        server.requests[0].json["stream"],
        server.requests[0].json["stream_options"],
    )


async def test_without_a_key_none_is_sent():
    """A local server without credentials gets no header for them."""
    async with serve(whole("Hello")) as server:
        model = Model(server, api_key=None)
        assert HELLO == await model.ask()
        await model.provider.close()

    assert "authorization" not in server.requests[0].headers


async def test_a_connection_is_used_again():
    """Streamed and whole answers leave the connection as they found it."""
    late = streamed("Hello")
    late = attrs.evolve(late, parts=(*late.parts, b": goodbye\n\n"))
    async with serve(late, whole("Hello"), streamed("Hello")) as server:
        model = Model(server)
        answers = [await model.ask(stream=stream) for stream in (True, False, True)]
        await model.provider.close()

    assert [HELLO] * 3 == answers
    assert 1 == server.connections


@pytest.mark.parametrize("end", ["cut", "hang"])
async def test_what_happens_after_the_answer_is_of_no_matter(end):
    """A complete answer stays good when the connection is cut or never ends."""
    async with serve(streamed("Hello", end=end)) as server:
        model = Model(server)
        assert HELLO == await model.ask(stream=True)
        await model.provider.close()


async def test_too_much_after_the_answer_is_of_no_matter():
    """Bytes beyond the limit after the answer are not read."""
    async with serve(events(event(chunk({"content": "Hello"}, finish="stop")), event("[DONE]"), b":" * 4096)) as server:
        model = Model(server, max_bytes=1024)
        assert Completion(text="Hello", finish_reason="stop") == await model.ask(stream=True)
        await model.provider.close()


async def test_a_server_that_does_not_stream():
    """A whole answer to a request for a stream is taken as it is; an empty text is no piece of text."""
    async with serve(whole("Hello"), whole(None, calls=[call("memory", "{")])) as server:
        model = Model(server)
        assert HELLO == await model.ask(stream=True)
        answer = await model.ask(stream=True)
        await model.provider.close()

    broken = (ToolCall(id="call-1", name="memory", arguments="{"),)
    assert Completion(tool_calls=broken, usage=USAGE, finish_reason="tool_calls") == answer
    assert ["Hello"] == model.deltas


HTML = Reply(headers={"Content-Type": "text/html"}, parts=(b"<html>",))
NO_TYPE = Reply(parts=(b"{}",))
COMPRESSED = Reply(headers={"Content-Type": "application/json", "Content-Encoding": "gzip"}, parts=(b"\x1f\x8b",))
NOT_JSON = Reply(headers={"Content-Type": "application/json"}, parts=(b'{"choices": [',))
TYPE = "its content type is not the one that the request names"


@pytest.mark.parametrize(
    ("reply", "stream", "expected"),
    [
        (HTML, False, TYPE),
        (HTML, True, TYPE),
        (NO_TYPE, False, TYPE),
        (streamed("Hello"), False, TYPE),
        (COMPRESSED, True, "it is compressed, although the request did not allow that"),
        (NOT_JSON, False, "it is not a JSON object"),
        (body([]), False, "it is not a JSON object"),
        (body(completion("Hello", choices=[])), False, "it holds no choices"),
        (whole("", calls=[call("", "{}")]), False, "a tool call has no name"),
        (events(event("{")), True, "it is not a JSON object"),
        (events(event("[DONE]")), True, "it holds no choices"),
        (events(event(chunk({"content": 5}))), True, "`content` is not a string"),
        (events(b"data: \xff\n\n"), True, "its event stream is not UTF-8 text"),
    ],
)
async def test_malformed_answers(reply, stream, expected):
    """One sentence describes a reply that no OpenAI-compatible API sends."""
    async with serve(reply) as server:
        assert ("malformed", None, BROKEN.format(expected)) == told(await Model(server).fault(stream=stream))


@pytest.mark.parametrize(
    ("reply", "stream"),
    [
        (events(event(chunk({"content": "Hel"})), end="cut"), True),
        (events(event(chunk({"content": "Hel"}))), True),
        (events(event(chunk({"content": "Hel"})), b'data: {"choices"', end="cut"), True),
        (Reply(headers={"Content-Type": "application/json"}, parts=(b'{"choices": [',), end="cut"), False),
        (Reply(headers={"Content-Type": "application/json"}, parts=(b"{",), length=100, end="cut"), False),
    ],
)
async def test_cut_answers(reply, stream):
    """A stream or body that ends in the middle gets another error than a malformed one."""
    async with serve(reply) as server:
        assert CUT == told(await Model(server).fault(stream=stream))


UNREACHABLE = (
    "connection",
    None,
    "The provider cannot be reached or does not speak HTTP. Check provider.baseUrl, the network, and that the server runs.",
)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(end="reset"),
        Reply(headers={"Not a header": "x"}, end="hang"),
        Reply(headers={"X": "x" * 200_000}, end="hang"),
    ],
)
async def test_what_is_no_http(reply):
    """A connection that is closed before any answer counts as none, and so does an answer that is no HTTP."""
    async with serve(reply) as server:
        assert UNREACHABLE == told(await Model(server).fault())


async def test_no_server():
    """Without a listening server, the error names the address to check."""
    async with serve() as server:
        pass

    assert UNREACHABLE == told(await Model(server).fault())


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (400, ("refused", "The provider refused the request (HTTP 400: why). Check provider.model, or start a new session if this one is too long.")),
        (401, ("unauthorised", "The provider does not accept the credential (HTTP 401). Set provider.apiKey to a valid key.")),
        (403, ("unauthorised", "The provider does not allow this (HTTP 403: why). Check the permissions of provider.apiKey.")),
        (404, ("not_found", "The provider does not know this address or model (HTTP 404: why). Check provider.baseUrl and provider.model.")),
        (500, ("server_error", "The provider failed (HTTP 500: why). Try again later.")),
        (204, ("http_error", "The provider's answer is unexpected (HTTP 204). Check provider.baseUrl; redirects are not followed.")),
        (418, ("http_error", "The provider's answer is unexpected (HTTP 418: why). Check provider.baseUrl; redirects are not followed.")),
    ],
)  # fmt: skip
async def test_statuses(code, expected):
    """Each kind of refusal has its own category, sentence and remedy; the provider repeats none of these requests."""
    reply = Reply(code=204) if code == 204 else status(code, "why.")
    async with serve(reply, whole("Hello")) as server:
        error = await Model(server).fault()

    assert (expected[0], code, expected[1]) == told(error)
    assert 1 == len(server.requests)


async def test_a_redirect_is_not_followed():
    """The credential goes where it was configured to go and nowhere else."""
    async with (
        serve(whole("Hello")) as elsewhere,
        serve(status(307, headers={"Location": elsewhere.base_url})) as server,
    ):
        error = await Model(server).fault()

    assert ("http_error", 307) == (error.category, error.status)
    assert [] == elsewhere.requests


@pytest.mark.parametrize("stream", [False, True])
async def test_an_error_with_a_status_of_success(stream):
    """An error body is an error whatever the status; its message shows no credential."""
    error = {"error": {"message": f"overloaded by {KEY}", "code": "overloaded"}}
    async with serve(events(event(error)) if stream else body(error)) as server:
        found = await Model(server).fault(stream=stream, echoed=True)

    expected = "There is no answer: the provider reports an error: overloaded by [secret]. Try again later."
    assert ("server_error", None, expected) == told(found)


async def test_an_error_in_the_middle_of_a_stream():
    """An error after half an answer ends it, under the status that it names."""
    error = {"error": {"message": "too many", "code": 429}}
    async with serve(events(event(chunk({"content": "Hel"})), event(error))) as server:
        model = Model(server)
        found = await model.fault(stream=True)

    assert ("rate_limited", 429) == (found.category, found.status)
    assert ["Hel"] == model.deltas


async def test_a_cut_error_keeps_its_status():
    """A refusal whose body is cut keeps its category and status."""
    async with serve(Reply(code=400, parts=(b'{"error": ',), end="cut")) as server:
        error = await Model(server).fault()

    assert ("refused", 400) == (error.category, error.status)


async def test_a_long_error_is_not_read_to_its_end():
    """The client reads only the beginning of a long error, and does not show a body that is no JSON."""
    async with serve(Reply(code=500, parts=(b"x" * 65536,) * 40, end="hang")) as server:
        error = await Model(server).fault()
        await server.gone.wait()

    assert "The provider failed (HTTP 500). Try again later." == str(error)


@pytest.mark.parametrize("code", [429, 503])
async def test_a_busy_provider_is_asked_again(code):
    """Retry-After is honoured as seconds and as a date; without it, and for nonsense, the wait doubles."""
    at = format_datetime(NOW + timedelta(seconds=7), usegmt=True)
    busy = [status(code, headers={"Retry-After": after}) for after in ("3", at, "soon")]
    async with serve(*busy, status(code), streamed("Hello")) as server:
        model = Model(server, max_retries=4)
        answer = await model.ask(stream=True)
        await model.provider.close()

    assert HELLO == answer
    assert [3.0, 7.0, 2.0, 4.0] == model.waits
    assert 1 == len({request.body for request in server.requests})


async def test_a_provider_that_stays_busy():
    """After the last retry the refusal is the answer."""
    async with serve(*[status(429, "slow down", headers={"Retry-After": "0"})] * 3, whole("Hello")) as server:
        error = await Model(server, max_retries=2).fault()

    expected = "The provider gets too many requests (HTTP 429: slow down). Wait a while, or check the account's quota."
    assert ("rate_limited", 429, expected) == told(error)
    assert 3 == len(server.requests)


async def test_a_wait_beyond_the_deadline_is_not_begun():
    """A provider that wants a longer wait than the deadline leaves is not waited for."""
    async with serve(status(503, headers={"Retry-After": "120"})) as server:
        model = Model(server, timeout_seconds=60)
        error = await model.fault()

    assert ("server_error", 503) == (error.category, error.status)
    assert [] == model.waits


async def test_waiting_really_waits():
    """The provider waits for real by default."""
    async with serve(status(429, headers={"Retry-After": "0"}), whole("Hello")) as server:
        provider = OpenAIProvider(ProviderSettings(kind="openai", base_url=server.base_url + "/", model="test-model"))
        assert HELLO == await provider.complete(PROMPT)
        await provider.close()

    assert "/v1/chat/completions" == server.requests[1].path


@pytest.mark.parametrize(
    "reply",
    [
        Reply(headers={"Content-Type": "application/json"}, end="hang"),
        events(event(chunk({"content": "Hel"})), b":\n", end="drip"),
        Reply(headers={"Content-Type": "application/json"}, parts=(b" ",), end="drip"),
        Reply(code=500, parts=(b" ",), end="drip"),
    ],
)
async def test_the_deadline_is_total(reply):
    """The deadline ends silence and a slow drip of bytes alike, and closes the connection."""
    async with serve(reply) as server:
        error = await Model(server, timeout_seconds=0.3).fault(stream=True)
        await server.gone.wait()

    expected = "The provider did not answer within 0.3 seconds. Try again, or raise provider.timeoutSeconds."
    assert ("timeout", None, expected) == told(error)


async def test_a_timeout_of_the_caller_is_the_callers():
    """A TimeoutError that comes from elsewhere passes unchanged."""

    def late(_text):
        raise TimeoutError("mine")

    async with serve(streamed("Hello")) as server:
        model = Model(server)
        with pytest.raises(TimeoutError, match="mine"):
            await model.provider.complete(PROMPT, on_delta=late)
        await model.provider.close()


MEGABYTE = b" " * 2**20


@pytest.mark.parametrize(
    ("reply", "stream"),
    [
        (Reply(headers={"Content-Type": "application/json"}, parts=(MEGABYTE,) * 50), False),
        (events(*(b":" + MEGABYTE + b"\n",) * 50), True),
        (events(b"data: ", *(MEGABYTE,) * 50), True),
        (events(*(event(chunk({"content": "x"})) * 10_000,) * 50), True),
    ],
)
async def test_fifty_megabytes(reply, stream):
    """A body beyond the limit is given up long before its end, whatever it consists of."""
    async with serve(reply) as server:
        error = await Model(server, max_bytes=2**20).fault(stream=stream)
        await server.gone.wait()

    expected = "The provider's answer has more than 1048576 bytes. Raise provider.maxBytes if that is what you expect."
    assert ("too_large", None, expected) == told(error)


async def test_cancelling_closes_the_connection():
    """A cancelled caller gets its `CancelledError`, and the server sees the client leave."""
    async with serve(events(event(chunk({"content": "Hel"})), end="hang")) as server:
        model = Model(server)
        first = asyncio.Event()
        asking = asyncio.create_task(model.provider.complete(PROMPT, on_delta=lambda _: first.set()))
        await first.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await server.gone.wait()
        await model.provider.close()


async def test_the_environment_has_no_say(monkeypatch):
    """The provider uses neither a proxy nor credentials from the environment."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with serve(whole("Hello")) as server:
        model = Model(server)
        assert HELLO == await model.ask()
        await model.provider.close()


async def test_logs_hold_no_credential(caplog):
    """The debug log of the HTTP library shows neither the credential nor a word of the conversation."""
    with caplog.at_level(logging.DEBUG):
        async with serve(whole("Hello"), status(401, f"Wrong key {KEY}")) as server:
            model = Model(server)
            await model.ask()
            shown = repr(model.provider) + repr(await model.fault())

    assert "HTTP Request: POST" in caplog.text
    assert [] == [each for each in (KEY, "Be brief.", "Hello") if each in caplog.text + shown]
