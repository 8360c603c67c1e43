"""Whole turns of the agent against an OpenAI-compatible server: the requests that it gets, and the end of each turn."""

import asyncio
import contextlib
import json
import re

import attrs
import pytest
from integration.openai_server import (
    MODEL,
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
from beaver_hooks.agent.factory import EngineLoader
from beaver_hooks.agent.loop import AgentLoop
from beaver_hooks.agent.messages import Usage
from beaver_hooks.agent.providers.openai import OpenAIProvider
from beaver_hooks.agent.skills import ActiveSkill, activation_text
from beaver_hooks_curated.plugin import RULE
from beaver_hostspecs import Contribution, PluginInfo, Reference, Tool
from beaver_hostspecs.rendering import render_references
from beaver_hostspecs.testing import RecordingPlugin

KEY = "sk-zq-0123456789abcdef"
BASE = "Be brief."
REFERENCES = (Reference(text="We met at noon.", id="r1"),)
SYSTEM = {"role": "system", "content": f"{BASE}\n\n{RULE}\n\nUse what you know.\n\nThe user is British."}
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, *calls):
    return {"role": "assistant", "content": text} | ({"tool_calls": [*calls]} if calls else {})


def answered(call_id, text):
    return {"role": "tool", "content": text, "tool_call_id": call_id}


def unfenced(text):
    """Without the boundary, which is random."""
    return re.sub(r"(?<=<<<beaver-reference )\S+", "B", text)


RECALLED = user(unfenced(render_references("notes", REFERENCES, boundary="boundary").text))


class Notes(RecordingPlugin):
    """A memory with everything, whose tool's calls wait for each other in pairs."""

    def __init__(self):
        self.meeting = asyncio.Barrier(2)
        super().__init__(
            Contribution(blocks=("The user is British.",), references=REFERENCES),
            [Tool(name="meet", description="Meets.", parameters=NUMBER, run=self.meet)],
            PluginInfo(version="0", contract="1.0", rules=("Use what you know.",)),
        )

    async def meet(self, arguments, _turn, _report):
        await self.meeting.wait()
        return {"met": arguments["n"]}


@attrs.define
class Agent:
    """An agent whose provider is the server."""

    engine: object
    server: object
    plugin: Notes
    deltas: list = attrs.field(factory=list)

    async def run(self, prompt, *, stream=False, **options):
        return await AgentLoop(self.engine).run(prompt, "s", on_delta=self.deltas.append if stream else None, **options)

    @contextlib.asynccontextmanager
    async def patience(self, seconds):
        """Give the provider another deadline for the duration of the block."""
        usual, settings = self.engine.provider, self.engine.loaded.config.provider
        self.engine.provider = OpenAIProvider(attrs.evolve(settings, timeout_seconds=seconds))
        yield
        await self.engine.provider.close()
        self.engine.provider = usual

    def sent(self, number=-1):
        """The messages of a request."""
        messages = self.server.requests[number].json["messages"]
        return [each | {"content": each["content"] and unfenced(each["content"])} for each in messages]

    async def said(self):
        return [each.text for each in await self.engine.sessions.history("s")]

    async def ended(self):
        """How each turn ended, with the reason of one that was dropped."""
        await self.engine.host.drain()
        return [
            str(each.arguments.get("reason", "committed"))
            for each in self.plugin.calls
            if each.hook in {"after_prompt", "on_turn_dropped"}
        ]


@contextlib.asynccontextmanager
async def agent_of(folder, *script, **provider):
    """Serve a script, and load an agent from a configuration file that names the server."""
    async with serve(*script) as server:
        config = {
            "provider": {"kind": "openai", "baseUrl": server.base_url, "model": MODEL, "apiKey": {"env": "KEY"}}
            | provider,
            "agent": {"systemPrompt": BASE},
            "plugins": {"disabled": ["tally"]},
            "host": {"stateFolder": "state", "blockedAfterSeconds": 60},
        }
        (folder / "config.json").write_text(json.dumps(config))
        plugin = Notes()
        loader = EngineLoader(folder / "config.json", plugins={"notes": plugin}, environment={"KEY": KEY})
        async with await loader.load() as engine:
            yield Agent(engine, server, plugin)


def answer_of(stream, *texts, calls=()):
    return streamed(*texts, calls=calls) if stream else whole("".join(texts), calls=calls)


# --- What the provider gets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
async def test_the_exact_messages(tmp_path, stream):
    """System prompt, skill, references, history, prompt; the same tools each time, and the stream is asked for."""
    skill = tmp_path / "state" / "skills" / "review"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: review\ndescription: d\n---\nBe kind.\n")
    (tmp_path / "state").chmod(0o700)
    script = (answer_of(stream, "Hel", "lo"), answer_of(stream, "Fine"))
    async with agent_of(tmp_path, *script) as agent:
        first = await agent.run("hi", stream=stream)
        second = await agent.run("how are\0 you\ud800?", stream=stream, skills=["review"])
        requests = [each.json for each in agent.server.requests]
        sent = [agent.sent(number) for number in range(2)]
        found = (agent.deltas, await agent.said(), await agent.ended())

    activation = user(activation_text(ActiveSkill(name="review", text="Be kind.")))
    history = [user("hi"), assistant("Hello")]
    prompt = "how are\ufffd you\ufffd?"
    assert [
        [SYSTEM, RECALLED, user("hi")],
        [SYSTEM, activation, RECALLED, *history, user(prompt)],
    ] == sent
    options = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    assert [{"model": MODEL} | options] * 2 == [
        {key: value for key, value in each.items() if key not in {"messages", "tools"}} for each in requests
    ]
    meet = {"name": "meet", "description": "Meets.", "parameters": NUMBER}
    assert ["session_search", "memory", "meet"] == [each["function"]["name"] for each in requests[0]["tools"]]
    assert {"type": "function", "function": meet} == requests[0]["tools"][-1]
    assert requests[0]["tools"] == requests[1]["tools"]
    deltas = ["Hel", "lo", "Fine"] if stream else []
    assert (deltas, ["hi", "Hello", prompt, "Fine"], ["committed"] * 2) == found
    usage = Usage(input_tokens=11, output_tokens=7)
    assert [("Hello", usage), ("Fine", usage)] == [(each.text, each.usage) for each in (first, second)]


@pytest.mark.parametrize("stream", [False, True])
async def test_tools_in_parallel(tmp_path, stream):
    """Calls of one answer, in fragments or whole, run side by side; all go back in order; usage is added up."""
    calls = [
        call("meet", '{"n":1}', call_id="a"),
        call("meet", '{"n":2}', call_id="b"),
        call("gone", "{}", call_id="c"),
    ]
    script = (answer_of(stream, "Wait. ", calls=calls), answer_of(stream, "Done"))
    async with agent_of(tmp_path, *script) as agent:
        result = await agent.run("go", stream=stream)
        sent, said, ended = agent.sent(), await agent.said(), await agent.ended()
        told = [each.arguments["result"].call_id for each in agent.plugin.calls_of("on_tool_result")]

    gone = "[tool error] gone: there is no such tool; the tools are: `session_search`, `memory`, `meet`"
    assert [
        SYSTEM,
        RECALLED,
        user("go"),
        assistant("Wait. ", *calls),
        answered("a", '{"met":1}'),
        answered("b", '{"met":2}'),
        answered("c", gone),
    ] == sent
    assert ("Done", Usage(input_tokens=22, output_tokens=14)) == (result.text, result.usage)
    assert (["go", "Done"], ["committed"], ["a", "b", "c"]) == (said, ended, told)
    assert (["Wait. ", "\n\n", "Done"] if stream else []) == agent.deltas


async def test_a_call_in_many_fragments(tmp_path):
    """Name and id first, then the arguments letter by letter, two calls interleaved."""

    def fragment(index, **function):
        more = {"id": f"call-{index}", "type": "function"} if "name" in function else {}
        return event(chunk({"tool_calls": [{"index": index, "function": function} | more]}))

    texts = ['{"n":7}', '{"n":8}']
    letters = [fragment(at, arguments=pair[at]) for pair in zip(*texts, strict=True) for at in (0, 1)]
    begun = [fragment(at, name="meet", arguments="") for at in (0, 1)]
    stream = events(*begun, *letters, event(chunk(finish="tool_calls")), event("[DONE]"))
    async with agent_of(tmp_path, stream, streamed("Done")) as agent:
        await agent.run("go", stream=True)
        sent = agent.sent()

    calls = [call("meet", text, call_id=f"call-{at}") for at, text in enumerate(texts)]
    assert [
        assistant(None, *calls),
        answered("call-0", '{"met":7}'),
        answered("call-1", '{"met":8}'),
    ] == sent[3:]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('{"n":', "the text of the arguments is not valid JSON (line 1, column 6)"),
        ('{"n":"x"}', "n: 'x' is not of type 'integer'"),
        ("[1]", "the arguments must be one JSON object"),
    ],
)
async def test_broken_arguments_go_back_to_the_model(tmp_path, stream, arguments, problem):
    """The model gets broken arguments back as a tool error, and the turn goes on to its answer."""
    calls = [call("meet", arguments)]
    async with agent_of(tmp_path, answer_of(stream, calls=calls), answer_of(stream, "Sorry")) as agent:
        result = await agent.run("go", stream=stream)
        sent, ended = agent.sent(), await agent.ended()

    # Many servers refuse arguments that are no object, so the agent sends these back as an empty object.
    shown = arguments if arguments == '{"n":"x"}' else "{}"
    assert [assistant(None, call("meet", shown)), answered("call-1", f"[tool error] meet: {problem}")] == sent[3:]
    assert ("Sorry", ["committed"]) == (result.text, ended)


# --- What a misbehaving provider leaves ---------------------------------------------------------------------------

JSON = {"Content-Type": "application/json"}
MEGABYTE = b" " * 2**20
HALF = event(chunk({"content": "Hel"}))
DRIPPING = Reply(headers=JSON, parts=(b" ",), end="drip")
HTML = Reply(headers={"Content-Type": "text/html"}, parts=(b"<html>",))
NAMELESS = {"tool_calls": [{"index": 0, "id": "call-1", "function": {"arguments": "{}"}}]}
SWITCHED = {"tool_calls": [{"index": 0, "id": "", "function": {"name": "meet"}}] * 2}

FAULTS = [
    ("cut in the middle", True, events(HALF, end="cut"), "truncated"),
    ("cut in the middle of an event", True, events(HALF, b'data: {"choi', end="cut"), "truncated"),
    ("ended without an end", True, events(HALF), "truncated"),
    ("cut body", False, Reply(headers=JSON, parts=(b'{"choices"',), end="cut"), "truncated"),
    ("closed before any answer", True, Reply(end="reset"), "connection"),
    ("no JSON in an event", True, events(HALF, event("{")), "malformed"),
    ("no JSON", False, Reply(headers=JSON, parts=(b"{",)), "malformed"),
    ("a list", False, body([]), "malformed"),
    ("no choices", False, body(completion(choices=[])), "malformed"),
    ("no choices in a stream", True, events(event(chunk()), event("[DONE]")), "malformed"),
    ("no text and no calls", False, whole(""), "empty"),
    ("no text in a stream", True, streamed(), "empty"),
    ("a call without a name", True, events(event(chunk(NAMELESS)), event("[DONE]")), "malformed"),
    ("text that is a number", True, events(event(chunk({"content": 5}))), "malformed"),
    ("no UTF-8", True, events(b"data: \xff\n\n"), "malformed"),
    ("a web page", False, HTML, "malformed"),
    ("a web page for a stream", True, HTML, "malformed"),
    ("an error with status 200", False, body({"error": {"message": "overloaded"}}), "server_error"),
    ("an error in a stream", True, events(HALF, event({"error": {"message": "no", "code": 429}})), "rate_limited"),
    ("silence", False, Reply(headers=JSON, end="hang"), "timeout"),
    ("a slow drip", False, DRIPPING, "timeout"),
    ("a slow drip in a stream", True, events(HALF, b":\n", end="drip"), "timeout"),
    ("50 MB", False, Reply(headers=JSON, parts=(MEGABYTE,) * 50), "too_large"),
    ("50 MB in a stream", True, events(*(b":" + MEGABYTE + b"\n",) * 50), "too_large"),
    ("401", True, status(401, f"wrong key {KEY}"), "unauthorised"),
    ("404", False, status(404, "no model"), "not_found"),
    ("429", False, status(429, "slow down"), "rate_limited"),
    ("500", True, status(500, "oops"), "server_error"),
]


@pytest.mark.parametrize("rounds", [0, pytest.param(1, marks=pytest.mark.campaign)], ids=["at once", "after tools"])
@pytest.mark.parametrize(
    ("stream", "reply", "category"), [case[1:] for case in FAULTS], ids=[case[0] for case in FAULTS]
)
async def test_a_provider_that_misbehaves(tmp_path, stream, reply, category, rounds):
    """A faulty answer raises one error without a credential, drops the turn, stores nothing; the next prompt works."""
    script = [answer_of(stream, calls=[call("gone", "{}")])] * rounds
    limits = {"maxRetries": 0, "maxBytes": 2**20}
    async with agent_of(tmp_path, whole("Hello"), *script, reply, whole("Fine"), **limits) as agent:
        await agent.run("hi")
        async with agent.patience(0.2 if category == "timeout" else 60):
            with pytest.raises(ProviderError) as caught:
                await agent.run("lost", stream=stream)
        stored = await agent.said()
        shown = await agent.engine.sessions.show("s", hidden=True)
        await agent.run("and now?")
        sent, ended = agent.sent(), await agent.ended()

    text = str(caught.value)
    assert (category, ["hi", "Hello"]) == (caught.value.category, stored)
    assert [SYSTEM, RECALLED, user("hi"), assistant("Hello"), user("and now?")] == sent
    assert ["committed", "failed", "committed"] == ended
    assert (True, False, False) == (text.endswith("."), KEY in text, "\n" in text)
    assert not [each for each in shown.events if KEY in str(each.payload) or "lost" in str(each.payload.values())]


@pytest.mark.parametrize("stream", [False, True])
async def test_fields_that_nobody_knows(tmp_path, stream):
    """The agent ignores unknown fields of a server and takes the answer."""
    odd = {"x_cost": 0.1, "reasoning": {"deep": [1]}, "system_fingerprint": None}
    delta = {"content": "Hello", "thoughts": "none", "tool_calls": None}
    reply = events(event(chunk(delta, **odd)), event(chunk(finish="stop")), b": note\n\n", event("[DONE]"))
    async with agent_of(tmp_path, reply if stream else whole("Hello", **odd)) as agent:
        result = await agent.run("hi", stream=stream)
        ended = await agent.ended()

    assert ("Hello", ["committed"]) == (result.text, ended)


async def test_cancelling_while_the_provider_speaks(tmp_path):
    """The agent closes the connection, drops the turn, leaves the session as it was, and answers the next prompt."""
    async with agent_of(tmp_path, events(HALF, end="hang"), whole("Fine")) as agent:
        begun = asyncio.Event()
        run = asyncio.create_task(AgentLoop(agent.engine).run("lost", "s", on_delta=lambda _: begun.set()))
        await begun.wait()
        run.cancel()
        await asyncio.wait([run])
        await agent.server.gone.wait()
        await agent.run("again")
        sent, said, ended = agent.sent(), await agent.said(), await agent.ended()

    assert (True, [SYSTEM, RECALLED, user("again")]) == (run.cancelled(), sent)
    assert (["again", "Fine"], ["cancelled", "committed"]) == (said, ended)
