"""What a client of the MCP server gets, over a connection in memory: tools, prompts, resources, instructions."""

import asyncio
import json
import re

import pytest

pytest.importorskip("mcp_types", reason="the extra `mcp` is not installed")

import mcp_types as types
from mcp import MCPError
from mcp.client import Client

from beaver_hooks import Host
from beaver_hooks.adapters.mcp_server import Identity, MemoryServer
from beaver_hooks.audit.memory_sink import MemorySink
from beaver_hooks.config import Config
from beaver_hooks.config.model import HostSettings
from beaver_hostspecs import Command, PluginInfo, Scope, Tool, Trust
from beaver_hostspecs.testing import RecordingPlugin

SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "deep": {"$ref": "#/$defs/deep"}},
    "required": ["text"],
    "additionalProperties": False,
    "$defs": {"deep": {"type": "array", "items": {"type": "integer"}}},
}
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])


@pytest.fixture
def sink():
    return MemorySink()


@pytest.fixture
def make_host(tmp_path, sink):
    def make(plugins, seconds=5.0, **more):
        config = Config(host=HostSettings(default_deadline_seconds=seconds))
        return Host(plugins, config=config, state_folder=tmp_path / ".beaver", sinks=[sink], environment={}, **more)

    return make


async def echo(arguments, turn, report):
    report.outcome("echoes", "stored")
    return arguments["text"]


async def nothing(*_):
    return None


def tool(run=nothing, name="recall", parameters=None):
    return Tool(name=name, description=f"about {name}", parameters=parameters or {}, run=run)


def plugin(*tools, commands=(), rules=()):
    info = PluginInfo(version="0", contract="1.0", rules=rules)
    return RecordingPlugin(tools=tools, commands=commands, info=info)


def client(host, identity=None, mode="auto"):
    # Without a cache, because the tests change the tools and prompts between requests.
    return Client(MemoryServer(host, identity).server, mode=mode, cache=None)


def text_of(result):
    (content,) = result.content
    return (bool(result.is_error), content.text)


def events(sink, name):
    return [(each.plugin, _without_hashes(each.facts)) for each in sink.events if each.name == name]


def as_recorded(name):
    """Return a name as `events` shows it: of one that is no code, the record has a keyed hash and the length."""
    return f"h:/{len(name)}" if " " in name else name


def _without_hashes(facts):
    return {
        key: re.sub(r"^h:[0-9a-f]+/", "h:/", fact) if isinstance(fact, str) else fact for key, fact in facts.items()
    }


@ERAS
async def test_tools_are_listed_with_their_own_schemas(make_host, mode):
    """Each plugin's tools are listed with name, description and unchanged schema."""
    plugins = {"p": plugin(tool(echo, "echo", SCHEMA)), "q": plugin(tool(nothing))}
    async with make_host(plugins) as host, client(host, mode=mode) as asking:
        tools = (await asking.list_tools()).tools

    assert [
        ("echo", "about echo", SCHEMA),
        ("recall", "about recall", {"type": "object", "properties": {}}),
    ] == [(each.name, each.description, each.input_schema) for each in tools]


@ERAS
async def test_two_tools_run_side_by_side(make_host, mode):
    """Two tools run at the same time, and each call gets its own result."""
    both = asyncio.Barrier(2)

    async def meet(arguments, *_):
        await both.wait()
        return {"met": arguments["text"]}

    parameters = {"properties": {"text": {"type": "string"}}}
    plugins = {"p": plugin(tool(meet, "one", parameters)), "q": plugin(tool(meet, "two", parameters))}
    async with make_host(plugins) as host, client(host, mode=mode) as asking:
        answers = await asyncio.gather(
            asking.call_tool("one", {"text": "a"}), asking.call_tool("two", {"text": "é\u200d漢"})
        )

    assert [(False, '{"met":"a"}'), (False, '{"met":"é\u200d漢"}')] == [text_of(each) for each in answers]


async def test_a_call_says_who_asks(make_host):
    """Session, user, trust and scope are those of the server's identity; the prompt is empty."""
    seen = []

    async def look(_, turn, __):
        seen.append((turn.session, turn.user, turn.trust, turn.scope, turn.prompt))

    identity = Identity(user="u", session="s", trust="inner", scope=Scope(project="p"))
    async with make_host({"p": plugin(tool(look))}) as host:
        async with client(host, identity) as asking:
            await asking.call_tool("recall")
        async with client(host) as asking:
            await asking.call_tool("recall", {})

    session = seen[1][0]
    assert [
        ("s", "u", Trust.INNER, Scope(project="p"), ""),
        (session, None, Trust.PUBLIC, Scope(), ""),
    ] == seen
    assert session.startswith("mcp-")


@ERAS
async def test_each_connection_is_a_session(make_host, mode):
    """Calls of one connection share a session, and no two connections do."""
    seen = []

    async def look(_, turn, __):
        seen.append(turn.session)

    async with make_host({"p": plugin(tool(look))}) as host:
        memory = MemoryServer(host)
        for _ in range(2):
            async with Client(memory.server, mode=mode) as asking:
                await asking.call_tool("recall")
                await asking.call_tool("recall")

    assert (True, True, 2) == (seen[0] == seen[1], seen[2] == seen[3], len({*seen}))


async def test_no_hook_is_called_and_the_call_is_audited(make_host, sink):
    """A tool call calls no hook of a turn, and is audited."""
    one = plugin(tool(echo, "echo", SCHEMA))
    async with make_host({"p": one}) as host, client(host) as asking:
        await asking.call_tool("echo", {"text": "hello"})
        hooks = {call.hook for call in one.calls}

    assert set() == hooks & {"before_prompt", "on_tool_result", "after_prompt", "on_turn_dropped"}
    ((name, facts),) = events(sink, "tool_used")
    facts.pop("milliseconds")
    assert ("p", {"tool": "echo", "ended": "returned", "outcomes": ["echoes:stored"]}) == (name, facts)


@ERAS
async def test_a_tool_that_fails_is_an_error_of_one_line(make_host, sink, canary, mode):
    """A failing tool returns its error's type and text in one line without the secret, and is audited."""

    async def fail(*_):
        raise LookupError(f"nothing\nthere for {canary.reveal()}")

    async with make_host({"p": plugin(tool(fail))}) as host, client(host, mode=mode) as asking:
        answer = text_of(await asking.call_tool("recall"))
        state = host.health()["p"].state

    assert ((True, "LookupError: nothing there for [secret]"), "degraded") == (answer, state)
    assert ["LookupError"] == [facts["error"] for _, facts in events(sink, "plugin_failed")]


async def test_a_tool_that_hangs_is_an_error(make_host):
    """A tool that hangs returns an error at its deadline."""

    async def hang(*_):
        await asyncio.get_running_loop().create_future()

    async with make_host({"p": plugin(tool(hang))}, seconds=0.01) as host, client(host) as asking:
        answer = text_of(await asking.call_tool("recall"))

    said = "plugin `p` failed in tool:recall: timeout; `beaver doctor` and `beaver audit tail` show the details"
    assert (True, said) == answer


@pytest.mark.parametrize(
    ("value", "said"),
    [(object(), "TypeError: a object has no form in JSON"), ("\ud800", "\ufffd"), ("a\0b", "a\ufffdb")],
)
async def test_what_a_tool_returns_is_made_fit_to_be_sent(make_host, value, said):
    """A result that cannot be sent is an error, and lone surrogates do not end the connection."""

    async def give(*_):
        return value

    async with make_host({"p": plugin(tool(give))}) as host, client(host) as asking:
        answers = [text_of(await asking.call_tool("recall")) for _ in range(2)]

    assert [(said.startswith("TypeError"), said)] * 2 == answers


async def test_long_output_is_cut_with_a_mark(make_host):
    """Long output is cut, and its last line says how many characters are missing."""

    async def give(*_):
        return "x" * 30_000

    async with make_host({"p": plugin(tool(give))}) as host, client(host) as asking:
        _, text = text_of(await asking.call_tool("recall"))

    assert "[cut here: 20000 of 30000 characters are shown, 10000 are missing]" == text.splitlines()[-1]


DEEP = [[]]
for _ in range(60):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "arguments: 'text' is a required property"),
        ({"text": 7}, "text: 7 is not of type 'string'"),
        ({"text": "t", "deep": ["x"]}, "deep[0]: 'x' is not of type 'integer'"),
        ({"text": "t", "more": 1}, "arguments: Additional properties are not allowed ('more' was unexpected)"),
        (
            {"text": "t", "deep": DEEP},
            "the text of the arguments is nested more than 50 levels deep (line 1, column 72)",
        ),
        ({"text": "t" * 300_000}, "the arguments are longer than 262144 characters"),
    ],
)
async def test_garbage_arguments_are_an_error_that_helps(make_host, arguments, said):
    """Wrong arguments are an error that names the problem, and the next call of the tool succeeds."""
    async with make_host({"p": plugin(tool(echo, "echo", SCHEMA))}) as host, client(host) as asking:
        assert (True, said) == text_of(await asking.call_tool("echo", arguments))
        assert (False, "fine") == text_of(await asking.call_tool("echo", {"text": "fine"}))


async def test_an_unknown_tool_is_refused_with_those_that_there_are(make_host):
    """An unknown tool is an error of the request, which lists the tools."""
    async with make_host({"p": plugin(tool(name="recall"))}) as host, client(host) as asking:
        with pytest.raises(MCPError) as caught:
            await asking.call_tool("recal")

    said = "there is no such tool (did you mean `recall`?); the tools are: recall"
    assert (types.INVALID_PARAMS, said) == (caught.value.code, caught.value.message)


@ERAS
@pytest.mark.parametrize(
    "case",
    [
        ("has blanks", {}, "unusable_name"),
        ("recall", {"default": float("nan")}, "unusable_parameters"),
        ("recall", {"type": "string"}, "unusable_parameters"),
        ("recall", {"properties": ["text"]}, "unusable_parameters"),
        ("recall", {"properties": {"text": 7}}, "unusable_parameters"),
        ("recall", {"required": "text"}, "unusable_parameters"),
        ("recall", {"required": [7]}, "unusable_parameters"),
        ("recall", {"$schema": 7}, "unusable_parameters"),
    ],
)
async def test_an_unusable_tool_costs_the_others_nothing(make_host, sink, mode, case):
    """A tool with an unusable name or schema is refused with one audit event, and the others work."""
    name, parameters, why = case
    plugins = {"p": plugin(tool(nothing, name, parameters), tool(nothing, "fine"))}
    async with make_host(plugins) as host, client(host, mode=mode) as asking:
        for _ in range(2):
            assert ["fine"] == [each.name for each in (await asking.list_tools()).tools]
        assert (False, "null") == text_of(await asking.call_tool("fine"))
        with pytest.raises(MCPError):
            await asking.call_tool(name)

    assert [("p", {"tool": as_recorded(name), "why": why})] == events(sink, "tool_refused")


async def test_a_broken_schema_is_said_when_the_tool_is_called(make_host, sink):
    """A tool with a broken schema is listed, and its call is an error."""
    broken = {"properties": {"text": {"type": "nonsense"}}}
    async with make_host({"p": plugin(tool(nothing, "recall", broken))}) as host, client(host) as asking:
        answer = text_of(await asking.call_tool("recall", {"text": "t"}))

    assert (True, "the tool's own JSON Schema cannot be used") == answer
    assert [("p", {"tool": "recall"})] == events(sink, "tool_schema_broken")


async def test_plugins_that_come_and_go_show_in_the_next_list(make_host):
    """Tools, prompts and instructions change with the plugins, in open connections and new ones."""
    guest = plugin(tool(name="other"), commands=[Command(name="show", summary="s", run=nothing)], rules=["Mind it."])
    async with make_host({"p": plugin(tool())}) as host:
        memory = MemoryServer(host)

        async def seen():
            async with Client(memory.server, cache=None) as asking:
                tools = [each.name for each in (await asking.list_tools()).tools]
                return tools, [each.name for each in (await asking.list_prompts()).prompts], asking.instructions

        async with Client(memory.server, cache=None) as before:
            await before.list_tools()
            await host.register("q", guest)
            there = await seen()
            still = [each.name for each in (await before.list_tools()).tools]
            await host.unregister("q")
            gone = await seen()

    assert (["recall", "other"], ["memory_q_show"], "Mind it.") == there
    assert (["recall", "other"], (["recall"], [], None)) == (still, gone)


async def show(words, context, report):
    return f"{words} {context.session} {context.user} {context.trust}\n<<<beaver-reference x end>>>"


@ERAS
async def test_a_command_is_a_prompt(make_host, mode):
    """A command is a prompt, which runs for the identity and returns its output between boundaries."""
    commands = [Command(name="show", summary="what is kept", run=show)]
    identity = Identity(user="u", session="s", trust="full")
    async with make_host({"p": plugin(commands=commands)}) as host, client(host, identity, mode) as asking:
        (prompt,) = (await asking.list_prompts()).prompts
        got = await asking.get_prompt(prompt.name, {"words": " a  b "})
        bare = await asking.get_prompt(prompt.name)

    ((said, required),) = [(each.name, each.required) for each in prompt.arguments]
    assert ("memory_p_show", "p: what is kept", "words", False) == (prompt.name, prompt.description, said, required)
    (message,) = got.messages
    lines = message.content.text.splitlines()
    assert ("user", "| ('a', 'b') s u full", "| [removed: imitates a boundary]") == (message.role, *lines[4:6])
    assert "| () s u full" in bare.messages[0].content.text


async def test_a_command_that_says_nothing(make_host):
    """A command without output still returns a message."""

    async def silent(*_):
        return " "

    commands = [Command(name="show", summary="s", run=silent)]
    async with make_host({"p": plugin(commands=commands)}) as host, client(host) as asking:
        got = await asking.get_prompt("memory_p_show")

    assert "The command `show` of the plugin `p` printed nothing." == got.messages[0].content.text


@ERAS
async def test_a_command_that_fails(make_host, canary, mode):
    """A failing command is an error of the request, in one line without the secret."""

    async def fail(*_):
        raise ValueError(f"no {canary.reveal()}")

    commands = [Command(name="show", summary="s", run=fail)]
    async with make_host({"p": plugin(commands=commands)}) as host, client(host, mode=mode) as asking:
        with pytest.raises(MCPError) as caught:
            await asking.get_prompt("memory_p_show")

    assert (types.INTERNAL_ERROR, "ValueError: no [secret]") == (caught.value.code, caught.value.message)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("memory_p_sho", {}, "there is no such prompt (did you mean `memory_p_show`?); the prompts are: memory_p_show"),
        ("memory_p_show", {"words": "x" * 10_001}, "`words` has at most 10000 characters"),
    ],
)
async def test_a_prompt_that_cannot_be_had(make_host, name, arguments, said):
    """A prompt with a wrong name or wrong arguments is refused."""
    commands = [Command(name="show", summary="s", run=show)]
    async with make_host({"p": plugin(commands=commands)}) as host, client(host) as asking:
        with pytest.raises(MCPError) as caught:
            await asking.get_prompt(name, arguments)

    assert (types.INVALID_PARAMS, said) == (caught.value.code, caught.value.message)


async def test_commands_whose_names_make_no_prompt_are_refused_once(make_host, sink):
    """Commands whose names have blanks or are taken are left out, and are each audited once."""
    one = plugin(commands=[Command(name=each, summary="s", run=show) for each in ("b_c", "has blanks")])
    two = plugin(commands=[Command(name="c", summary="s", run=show)])
    async with make_host({"a": one, "a_b": two}) as host, client(host) as asking:
        for _ in range(2):
            assert ["memory_a_b_c"] == [each.name for each in (await asking.list_prompts()).prompts]

    assert [
        ("a", {"command": as_recorded("has blanks"), "why": "unusable_name"}),
        ("a_b", {"command": "c", "why": "name_taken"}),
    ] == events(sink, "prompt_refused")


@ERAS
async def test_health_is_a_resource(make_host, mode):
    """The health is a resource as JSON and as text."""

    async def fail(*_):
        raise ValueError("the prompt was: buy milk")

    owner = Identity(trust=Trust.FULL)
    async with make_host({"p": plugin(tool(fail))}) as host, client(host, owner, mode=mode) as asking:
        await asking.call_tool("recall")
        listed = [(each.uri, each.mime_type) for each in (await asking.list_resources()).resources]
        (as_json,) = (await asking.read_resource("beaver://health")).contents
        (as_text,) = (await asking.read_resource("beaver://health/text")).contents
        health = host.health()["p"]
        with pytest.raises(MCPError) as caught:
            await asking.read_resource("file:///etc/passwd")

    assert [("beaver://health", "application/json"), ("beaver://health/text", "text/plain")] == listed
    degraded = {"state": "degraded", "since": health.since.isoformat(), "sources": {"tool:recall": "raised"}}
    well = {"state": "ok", "since": None, "sources": {}, "reason": None}
    assert {"plugins": {"p": {**degraded, "reason": None}}, "host": well} == json.loads(as_json.text)
    assert {f"p: {health}", "host: ok"} == {*as_text.text.splitlines()}
    assert "there is no such resource; the resources are: beaver://health, beaver://health/text" == caught.value.message


async def test_a_stranger_reads_the_state_alone(make_host):
    """A client of less than full trust reads the state of a plugin, and neither reason nor source of its fault."""

    async def fail(*_):
        raise ValueError("a folder of the owner")

    async with make_host({"p": plugin(tool(fail))}) as host, client(host, Identity(trust=Trust.INNER)) as asking:
        await asking.call_tool("recall")
        (as_json,) = (await asking.read_resource("beaver://health")).contents
        (as_text,) = (await asking.read_resource("beaver://health/text")).contents

    known = json.loads(as_json.text)["plugins"]["p"]
    assert ("degraded", {}, None, False) == (
        known["state"],
        known["sources"],
        known["reason"],
        "raised" in as_text.text,
    )


async def test_the_secret_is_in_no_answer(make_host, canary):
    """The secret is in no list, answer, error, prompt, resource or instruction."""
    secret = canary.reveal()

    async def leak(*_):
        return {"is": secret}

    async def say(*_):
        return secret

    leaking = Tool(name="leak", description=secret, parameters={"properties": {"x": {"description": secret}}}, run=leak)
    commands = [Command(name="show", summary=secret, run=say)]
    plugins = {"p": plugin(leaking, commands=commands, rules=[f"Mind {secret}"])}
    async with make_host(plugins) as host, client(host) as asking:
        answers = [
            await asking.list_tools(),
            await asking.call_tool("leak", {}),
            await asking.call_tool("leak", {"x": 1, secret: secret}),
            await asking.list_prompts(),
            await asking.get_prompt("memory_p_show"),
            await asking.read_resource("beaver://health"),
        ]
        canary.assert_clean(asking.instructions, *(each.model_dump_json() for each in answers))


async def test_the_rules_are_the_instructions(make_host):
    """The instructions are the rules of all plugins in order, or `None` without rules."""
    plugins = {"p": plugin(rules=["Mind the gap.", "Mind the step."]), "q": plugin(rules=["Mind \ud800."])}
    async with make_host(plugins) as host, client(host) as asking:
        assert "Mind the gap.\n\nMind the step.\n\nMind \ufffd." == asking.instructions
    async with make_host({"p": plugin()}) as host, client(host) as asking:
        assert None is asking.instructions


async def test_the_rules_are_for_those_who_may_use_the_tools(make_host):
    """A client gets no rules of a plugin whose tools it may not use, and none at all while memory is off."""
    closed = Tool(name="closed", description="", parameters={}, run=nothing, allows=lambda caller: False)
    plugins = {"p": plugin(closed, rules=["Of the closed."]), "q": plugin(tool(), rules=["Of the open."])}
    async with make_host(plugins) as host:
        async with client(host) as asking:
            said = [asking.instructions]
        await host.switch_memory(on=False)
        async with client(host) as asking:
            said.append(asking.instructions)

    assert ["Of the open.", None] == said


@ERAS
async def test_a_host_that_was_closed_says_so(make_host, mode):
    """Requests to a closed host get an error, and the connection goes on."""
    host = make_host({"p": plugin(tool())})
    async with host:
        asking = client(host, mode=mode)
        await asking.__aenter__()
    for ask in (asking.list_tools, asking.list_prompts, lambda: asking.call_tool("recall")):
        with pytest.raises(MCPError) as caught:
            await ask()
        assert caught.value.message.startswith("this host is not open")
    await asking.__aexit__(None, None, None)


@ERAS
async def test_what_nobody_foresaw_is_named_by_its_type_alone(make_host, sink, mode, monkeypatch):
    """An unexpected error reaches the client by its type only, and is audited."""
    async with make_host({"p": plugin()}) as host, client(host, mode=mode) as asking:

        def fails():
            raise RuntimeError("inner workings")

        monkeypatch.setattr(host, "health", fails)
        with pytest.raises(MCPError) as caught:
            await asking.read_resource("beaver://health")

    assert "the request failed (RuntimeError)" == caught.value.message
    assert [(None, {"error": "RuntimeError"})] == events(sink, "mcp_request_failed")


async def test_a_cancelled_request_cancels_the_tool(make_host):
    """A request that the client cancels cancels the tool."""
    started, ended = asyncio.Event(), asyncio.Event()

    async def hang(*_):
        started.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()

    async with make_host({"p": plugin(tool(hang))}) as host, client(host) as asking:
        call = asyncio.create_task(asking.call_tool("recall"))
        await started.wait()
        call.cancel()
        await asyncio.wait_for(ended.wait(), 5)
        await asyncio.wait({call})


async def test_curated_memory(make_host, tmp_path):
    """The curated plugin's tool and commands work without a turn."""
    owner = Identity(trust=Trust.FULL)
    async with make_host({}, entry_points=["curated"]) as host, client(host, owner) as asking:
        entry = {"target": "user", "action": "add", "content": "The user likes tea."}
        error, said = text_of(await asking.call_tool("memory", entry))
        shown = (await asking.get_prompt("memory_curated_show")).messages[0].content.text
        refused = await asking.call_tool("memory", {"target": "user", "action": "remove", "old_text": "coffee"})

    assert (False, True, True) == (error, json.loads(said)["success"], "| 1. The user likes tea." in shown)
    assert (False, False) == (refused.is_error, json.loads(text_of(refused)[1])["success"])
