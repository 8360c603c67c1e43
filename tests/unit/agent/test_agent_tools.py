"""The toolbox: whatever a tool or a model does, the model gets text, and no other call fails."""

import asyncio
import json
import logging
from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.tools import BuiltInTool, ToolBox, ToolOutcome, session_search_tool
from beaver_hooks.tools.arguments import (
    MOST_CHARACTERS,
    BrokenSchemaError,
    UnfitArgumentsError,
    check_arguments,
    parse_arguments,
)
from beaver_hooks.tools.box import MOST_CALLS
from beaver_hooks.tools.outcomes import ToolCall, describe_error, one_line, render_error, render_output
from beaver_hostspecs import CommandContext, PluginFailed, Tool, Trust, scrub
from beaver_hostspecs.testing import BareFault, RecordingPlugin

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PARAMETERS = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "many": {"type": "array", "items": {"type": "integer"}}},
    "required": ["text"],
    "additionalProperties": False,
}
SHORT = 0.01
OWNER = CommandContext(session="s", user="u", trust=Trust.FULL)


async def echo(arguments, *_):
    return arguments["text"]


def built_in(run=echo, name="echo", parameters=PARAMETERS, **options):
    return BuiltInTool(name=name, description="d", parameters=parameters, run=run, **options)


def of_plugin(run=echo, name="recall", parameters=PARAMETERS, **options):
    return Tool(name=name, description="d", parameters=parameters, run=run, **options)


def call(name="echo", arguments='{"text": "hello"}', number=1):
    return ToolCall(id=f"call-{number}", name=name, arguments=arguments)


def raising(error):
    async def run(*_):
        raise error

    return run


def answering(value):
    async def run(*_):
        return value

    return run


def without_time(outcome):
    assert outcome.duration >= timedelta()
    return attrs.evolve(outcome, duration=timedelta())


async def outcome_of(make_host, *tools, asked=None, plugins=None, **options):
    async with make_host(plugins) as host:
        turn = await host.open_turn("hello", session="s", user="u")
        return without_time(await ToolBox(host, tools, **options).run(asked or call(), turn))


# --- The tools on offer ---------------------------------------------------------------------------------------


async def test_built_in_tools_and_those_of_plugins_are_offered(make_host):
    """The toolbox offers tools of currently registered plugins; one without parameters has an empty object schema."""
    mine, theirs = built_in(), of_plugin(parameters={})
    async with make_host() as host:
        box = ToolBox(host, [mine])
        await host.register("p", RecordingPlugin(tools=[theirs]))
        there = (box.offered(OWNER), box.schemas(OWNER))
        await host.unregister("p")
        after = box.offered(OWNER)

    nothing = {"type": "object", "properties": {}}
    schemas = (mine.schema, {"name": "recall", "description": "d", "parameters": nothing})
    assert (({"echo": mine, "recall": theirs}, schemas), {"echo": mine}) == (there, after)


def is_owner(caller):
    return caller.trust is Trust.FULL


async def test_what_a_caller_may_not_use_is_not_offered(make_host):
    """A turn or a caller without a turn gets only its allowed tools; a model that calls another one gets an error."""
    tools = [built_in(allows=is_owner), built_in(name="free")]
    plugin = RecordingPlugin(tools=[of_plugin(allows=is_owner), of_plugin(name="open")])
    offered, outcomes = [], []
    async with make_host({"p": plugin}) as host:
        box = ToolBox(host, tools)
        for trust in (Trust.FULL, Trust.PUBLIC):
            turn = await host.open_turn("hello", session="s", trust=trust)
            offered += [[*box.offered(each)] for each in (turn, turn.turn, CommandContext(trust=trust))]
            outcomes += [(await box.run(call(name), turn)).error for name in ("echo", "recall")]

    assert [["echo", "free", "recall", "open"]] * 3 + [["free", "open"]] * 3 == offered
    assert [None, None, *["there is no such tool; the tools are: `free`, `open`"] * 2] == outcomes


async def test_while_memory_is_off_no_tool_of_it_is_offered(make_host):
    """While memory is off, the toolbox offers no plugin's tool and no built-in one that remembers; the others stay."""
    tools = [built_in(), built_in(name="remembering", remembers=True)]
    async with make_host({"p": RecordingPlugin(tools=[of_plugin()])}) as host:
        box = ToolBox(host, tools)
        before = await host.open_turn("hello", session="s", user="u")
        await host.switch_memory(on=False, session="s", user="u")
        after = await host.open_turn("hello", session="s", user="u")
        offered = [[*box.offered(each)] for each in (before, after, OWNER)]
        elsewhere = [*box.offered(CommandContext(session="other", user="u"))]
        await host.switch_memory(on=True, session="s", user="u")
        # A turn that was opened without the plugin stays without its tools.
        again = [[*box.offered(each)] for each in (before, after, OWNER)]

    everything = ["echo", "remembering", "recall"]
    assert ([["echo"]] * 3, everything) == (offered, elsewhere)
    assert [everything, ["echo", "remembering"], everything] == again


LOOP: dict = {}
LOOP["itself"] = [LOOP]


def lied(name="lied"):
    """Return a tool whose parameters are of a wrong type."""
    tool = of_plugin(name=name)
    object.__setattr__(tool, "parameters", "none")
    return tool


@pytest.mark.parametrize(
    ("tool", "why"),
    [
        (of_plugin(name="echo"), "reserved_name"),
        (of_plugin(name="no blanks"), "unusable_name"),
        (of_plugin(name="x" * 65), "unusable_name"),
        (of_plugin(name=""), "unusable_name"),
        (of_plugin(parameters={"default": object()}), "unusable_parameters"),
        (of_plugin(parameters={"default": float("nan")}), "unusable_parameters"),
        (of_plugin(parameters={"title": "\ud800"}), "unusable_parameters"),
        (lied(), "unusable_parameters"),
    ],
)
async def test_a_tool_that_would_do_harm_is_refused_loudly_and_once(make_host, sink, caplog, tool, why):
    """A harmful tool is not offered, an audit event and the log give the reason, and the built-in one stays."""
    caplog.set_level(logging.WARNING)
    mine = built_in()
    async with make_host({"p": RecordingPlugin(tools=[tool])}) as host:
        box = ToolBox(host, [mine])
        offered = [box.offered(OWNER), box.offered(OWNER)]

    assert [{"echo": mine}] * 2 == offered
    assert [("p", why)] == [(each.plugin, each.facts["why"]) for each in sink.named("tool_refused")]


# --- Running --------------------------------------------------------------------------------------------------


async def test_a_call_comes_to_an_outcome(make_host):
    """An outcome holds the text for the model, and all facts for the plugins."""
    outcome = await outcome_of(make_host, built_in(external=True, private=True))
    expected = ToolOutcome(call=call(), text="hello", arguments={"text": "hello"}, external=True, private=True)

    assert expected == outcome
    assert ("hello", "call-1") == (outcome.text, outcome.call.id)
    assert {
        "tool": "echo",
        "call_id": "call-1",
        "arguments": {"text": "hello"},
        "output": "hello",
        "error": None,
        "duration": timedelta(),
        "external": True,
        "private": True,
    } == outcome.fields


async def test_a_tool_of_a_plugin_runs_in_the_turn(make_host):
    """A plugin's tool runs through the host with the turn of the call."""

    async def run(arguments, turn, report):
        return {"text": arguments["text"], "user": turn.user}

    outcome = await outcome_of(make_host, asked=call("recall"), plugins={"p": RecordingPlugin(tools=[of_plugin(run)])})

    expected = ToolOutcome(call=call("recall"), text='{"text":"hello","user":"u"}', arguments={"text": "hello"})
    assert expected == outcome


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (call("ecko"), "there is no such tool (did you mean `echo`?); the tools are: `echo`"),
        (call(""), "there is no such tool; the tools are: `echo`"),
        (call(arguments="{"), "the text of the arguments is not valid JSON (line 1, column 2)"),
        (call(arguments="{}"), "arguments: 'text' is a required property"),
        (call(arguments='{"text": 5}'), "text: 5 is not of type 'string'"),
        (call(arguments='{"text": "", "many": [1, "2"]}'), "many[1]: '2' is not of type 'integer'"),
        (call(arguments='{"text": "", "more": 1}'), "arguments: Additional properties are not allowed ('more' was unexpected)"),
        (call(arguments='{"text": "a", "text": "b"}'), "text: is given twice"),
    ],
)  # fmt: skip
async def test_a_slip_of_the_model_is_told_to_it(make_host, asked, problem):
    """The text is marked and names the field; the tool is not run."""
    outcome = await outcome_of(make_host, built_in(raising(AssertionError())), asked=asked)

    text = f"[tool error] {asked.name or 'a call without a name'}: {problem}"
    assert ToolOutcome(call=asked, text=text, error=problem) == outcome


async def test_a_call_without_name_and_id_can_be_told_to_the_plugins(make_host):
    """The toolbox fills in a missing name and id of a call, because the contract requires both."""
    asked = ToolCall(id="", name="", arguments="")
    plugin = RecordingPlugin()
    async with make_host({"p": plugin}) as host:
        turn = await host.open_turn("hello", session="s")
        (outcome,) = await ToolBox(host).run_all([asked], turn)
        told = await turn.tool_result(**outcome.fields)
        await host.drain()

    (seen,) = plugin.calls_of("on_tool_result")
    result = seen.arguments["result"]
    assert (True, "nameless", "nameless", "error", "there is no such tool; the tools are: none") == (
        told, result.tool, result.call_id, result.outcome, result.error,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (ValueError("no such\n entry"), "ValueError: no such entry"),
        (ValueError(), "ValueError"),
        (PluginFailed("it is down"), "it is down"),
        (SystemExit(3), "SystemExit: 3"),
        (BareFault("x"), "BareFault: x"),
        (TimeoutError("of its own"), "TimeoutError: of its own"),
        (asyncio.CancelledError(), "it was cancelled"),
        (ExceptionGroup("g", [OSError()]), "ExceptionGroup: g (1 sub-exception)"),
    ],
)
async def test_an_error_of_a_tool_is_told_to_the_model(make_host, error, problem):
    """The model gets the type and text of a tool's error on one line, without a traceback."""
    outcome = await outcome_of(make_host, built_in(raising(error)))

    assert (problem, f"[tool error] echo: {problem}", {"text": "hello"}) == (
        outcome.error,
        outcome.text,
        dict(outcome.arguments),
    )


async def test_a_keyboard_interrupt_is_nobodys_to_keep(make_host):
    """A `KeyboardInterrupt` of a tool goes through and does not become its answer."""
    async with make_host() as host:
        turn = await host.open_turn("hello", session="s")
        running = ToolBox(host, [built_in(raising(KeyboardInterrupt()))]).run(call(), turn)
        with pytest.raises(KeyboardInterrupt):
            running.send(None)


async def test_no_secret_gets_to_the_model(make_host, canary):
    """No secret reaches the model: not in an error, a result, a text across the cut, or a fault of the arguments."""
    secret = canary.secret.reveal()
    asked = call(arguments=json.dumps({"text": "", "many": [secret]}))
    outcomes = [
        await outcome_of(make_host, built_in(raising(ValueError(secret)))),
        await outcome_of(make_host, built_in(answering({"key": secret}))),
        await outcome_of(make_host, built_in(answering("x" * 95 + secret)), output_characters=100),
        await outcome_of(make_host, built_in(raising(ValueError("x" * 290 + secret)))),
        await outcome_of(make_host, built_in(), asked=asked),
    ]

    for outcome in outcomes:
        canary.assert_clean(outcome.text)
        canary.assert_clean(outcome.error or "")


async def test_a_built_in_tool_has_a_deadline(make_host):
    """The toolbox cancels a built-in tool at its deadline, and the model gets the error."""
    ended = asyncio.Event()

    async def run(*_):
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()

    outcome = await outcome_of(make_host, built_in(run), seconds=SHORT)

    assert ("TimeoutError: it took longer than 0.01 seconds", True) == (outcome.error, ended.is_set())


async def test_a_broken_schema_is_the_tools_fault(make_host, sink):
    """The model gets an error for a tool with a broken schema, and an audit event names the plugin."""
    broken = {"type": "object", "properties": {"text": {"type": "no type"}}}
    plugins = {"q": RecordingPlugin(), "p": RecordingPlugin(tools=[of_plugin(parameters=broken)])}
    outcomes = [
        await outcome_of(make_host, asked=call("recall"), plugins=plugins),
        await outcome_of(make_host, built_in(parameters=broken)),
    ]

    assert ["the tool's own JSON Schema cannot be used"] * 2 == [each.error for each in outcomes]
    assert [("p", {"tool": "recall"}), (None, {"tool": "echo"})] == [
        (each.plugin, dict(each.facts)) for each in sink.named("tool_schema_broken")
    ]


async def test_calls_run_side_by_side(make_host):
    """The outcomes are in the order of the calls, whichever ends first, and a failing call harms no other."""
    gate = asyncio.Event()

    async def waits(*_):
        await gate.wait()
        return "waited"

    async def opens(*_):
        gate.set()
        return "opened"

    tools = [built_in(waits, "waits"), built_in(opens, "opens"), built_in(raising(OSError("x")), "fails")]
    async with make_host() as host:
        turn = await host.open_turn("hello", session="s")
        names = ["waits", "fails", "nothing", "opens"]
        outcomes = await ToolBox(host, tools).run_all([call(name) for name in names], turn)
        none = await ToolBox(host, tools).run_all([], turn)

    assert (names, ["waited", "opened"], ()) == (
        [each.call.name for each in outcomes],
        [each.text for each in outcomes if each.error is None],
        none,
    )


async def test_cancelling_cancels_every_call(make_host):
    """The cancellation goes on, and reaches every running tool."""
    started, ended = asyncio.Event(), []

    async def waits(arguments, _):
        if arguments["text"] == "last":
            started.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(arguments["text"])

    calls = [call(arguments=json.dumps({"text": text})) for text in ("first", "last")]
    async with make_host() as host:
        turn = await host.open_turn("hello", session="s")
        running = asyncio.create_task(ToolBox(host, [built_in(waits)]).run_all(calls, turn))
        await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    assert ["first", "last"] == sorted(ended)


# --- Arguments ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        (" \n", {}),
        ("{}", {}),
        ('{"a": [1, 2.5, null, true, "\\u0000 \\ud83e\\uddab"]}', {"a": [1, 2.5, None, True, "\0 \U0001f9ab"]}),
    ],
)
def test_arguments(text, expected):
    """Arguments are one JSON object, and an empty text is an empty object."""
    assert expected == parse_arguments(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "the arguments must be one JSON object"),
        ("null", "the arguments must be one JSON object"),
        ("{} {}", "the text of the arguments is not valid JSON (line 1, column 4)"),
        ('{"a": {"b": 1, "c": 2, "b": 3}}', "b: is given twice"),
        ('{"a": NaN}', "the text of the arguments holds NaN, which JSON does not have"),
        ('{"a": 1e999}', "the text of the arguments holds a number that is too large"),
        ('{"a": ' + "9" * 101 + "}", "the text of the arguments holds a number of more than 100 digits"),
        ('{"a": "\\ud800"}', "the text of the arguments holds a lone surrogate"),
        (
            '{"a": ' + "[" * 50 + "]" * 50 + "}",
            "the text of the arguments is nested more than 50 levels deep (line 1, column 56)",
        ),
        ('{"a": ' * 40_000, "the text of the arguments is nested more than 50 levels deep (line 1, column 301)"),
        (" " * (MOST_CHARACTERS + 1), "the arguments are longer than 262144 characters"),
    ],
    ids=lambda value: value[:20],
)
def test_arguments_that_are_refused(text, problem):
    """The error names the fault of the arguments, so that the model can correct it."""
    with pytest.raises(UnfitArgumentsError) as caught:
        parse_arguments(text)

    assert problem == str(caught.value)


def test_deep_arguments_up_to_the_limit_are_taken():
    """The parser takes arguments of fifty levels."""
    text = '{"a": ' + "[" * 48 + "]" * 48 + "}"

    assert json.loads(text) == parse_arguments(text)


def attempt(function, *arguments):
    """Return the result of `function`, and the text of its refusal."""
    try:
        return function(*arguments), ""
    except UnfitArgumentsError as error:
        return None, str(error)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec=None)), inner, max_size=4),
    max_leaves=12,
)


@given(
    st.text(st.characters(codec=None)) | anything.map(json.dumps) | st.dictionaries(st.text(), anything).map(json.dumps)
)
def test_parsing_refuses_or_agrees_with_json(text):
    """Any arguments of a model parse to the object that JSON reads, or are refused with a sentence."""
    arguments, refusal = attempt(parse_arguments, text)

    assert refusal or json.loads(text.strip() or "{}") == arguments


@given(anything)
def test_any_value_is_checked_against_a_schema(value):
    """The check accepts any value without an exception, and describes a fault on one short line."""
    _, refusal = attempt(check_arguments, {"text": value}, PARAMETERS)

    assert (not isinstance(value, str), True, []) == (bool(refusal), len(refusal) < 700, refusal.splitlines()[1:])


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "no type"},
        {"properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}},
        {"$ref": "#/nowhere"},
        {"$schema": []},
        {"patternProperties": {"(": {}}},
    ],
    ids=str,
)
def test_a_schema_that_cannot_be_used(schema):
    """An unusable schema is an error, and the check fetches nothing that it refers to."""
    with pytest.raises(BrokenSchemaError):
        check_arguments({"a": 1}, schema)


@pytest.mark.parametrize("draft", ["http://json-schema.org/draft-07/schema#", "https://example.org/unknown"])
def test_older_and_unknown_drafts_are_checked_too(draft):
    """A known draft is taken by its rules, an unknown one by those of the latest."""
    with pytest.raises(UnfitArgumentsError) as caught:
        check_arguments({}, {"$schema": draft, "required": ["a"]})

    assert "arguments: 'a' is a required property" == str(caught.value)


# --- Texts for the model --------------------------------------------------------------------------------------


class Odd(str):
    __slots__ = ()

    def __str__(self):
        return "something else"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("as it is\n", "as it is\n"),
        (Odd("itself"), "itself"),
        ("\ud800\0", "\ufffd\ufffd"),
        (None, "null"),
        ({"a": (1, 2)}, '{"a":[1,2]}'),
        (MappingProxyType({"ü": {"b", "a"}}), '{"ü":["a","b"]}'),
        ([WHEN, date(2026, 1, 2)], '["2026-01-02T03:04:05+00:00","2026-01-02"]'),
        ("x" * 10, "x" * 10),
        ("x" * 11, "x" * 10 + "\n[cut here: 10 of 11 characters are shown, 1 are missing]"),
    ],
)
def test_output(value, expected):
    """Text stays as it is, any other output becomes JSON, and a cut output says so."""
    limit = 10 if value and set(str(value)) == {"x"} else 1000
    assert expected == render_output(value, characters=limit)


@pytest.mark.parametrize("value", [object(), b"bytes", {(1, 2): 3}, LOOP])
async def test_output_that_has_no_text(make_host, value):
    """An output without a text form is a failure of the tool."""
    outcome = await outcome_of(make_host, built_in(answering(value)))

    assert ({"text": "hello"}, "[tool error] echo:") == (dict(outcome.arguments), outcome.text[:18])


@given(anything, st.integers(1, 50))
def test_output_never_exceeds_its_limit(value, characters):
    """The text is as long as the limit allows, its mark aside, and every encoder takes it."""
    text = render_output(value, characters=characters)
    text.encode()

    assert len(text) <= characters + 100


@given(st.text(st.characters(codec=None)))
def test_lines_are_lines(text):
    """Any text becomes one short line that every encoder takes."""
    line = one_line(text)
    line.encode()

    assert ([], True) == (line.splitlines()[1:], len(line) <= 303)


def test_an_error_whose_text_cannot_be_had():
    """An error whose text raises is described by its type."""

    class Hostile(Exception):
        def __str__(self):
            raise SystemExit

    assert "Hostile: its text cannot be read (SystemExit)" == describe_error(Hostile())
    assert "[tool error] a b: x" == render_error("a\nb", scrub("x"))


# --- session_search -------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Hit:
    session: str = "s1"
    user: str | None = "u"
    trust: Trust = Trust.PUBLIC
    when: datetime | None = WHEN
    role: str = "user"
    snippet: str = "beavers build dams"


def nowhere(session, user):
    """Memory is on in every session."""
    return False


class Sessions:
    def __init__(self, *hits):
        self.hits, self.asked = hits, []

    async def search(self, query, *, limit, user_id):
        self.asked.append((query, limit, user_id))
        return self.hits


async def test_earlier_sessions_are_searched(make_host):
    """The search covers the sessions of the turn's user, returns compact JSON, and is private from memory."""
    sessions = Sessions(Hit(), Hit(when=None, role="assistant"))
    asked = call("session_search", '{"query": "dams"}')
    outcome = await outcome_of(make_host, session_search_tool(sessions, nowhere), asked=asked)

    assert ([("dams", 20, "u")], True) == (sessions.asked, outcome.private)
    assert (
        '{"found":[{"session":"s1","when":"2026-01-02T03:04:05+00:00","role":"user","text":"beavers build dams"},'
        '{"session":"s1","when":null,"role":"assistant","text":"beavers build dams"}]}'
    ) == outcome.text


@pytest.mark.parametrize(("arguments", "limit"), [({}, 5), ({"limit": 20}, 18), ({"limit": 2.0}, 2)])
async def test_sessions_whose_memory_is_off_are_not_found(make_host, arguments, limit):
    """The user's own, asked for as theirs; the others fill the places, as many as were wanted."""
    asked, questions = call("session_search", json.dumps({"query": "dams", **arguments})), []

    def is_off(session, user):
        questions.append(user)
        return session in ("s0", "s3")

    search = session_search_tool(Sessions(*(Hit(session=f"s{number}") for number in range(20))), is_off)
    outcome = await outcome_of(make_host, search, asked=asked)

    expected = [f"s{number}" for number in range(20) if number not in (0, 3)][:limit]
    assert (expected, {"u"}) == ([each["session"] for each in json.loads(outcome.text)["found"]], {*questions})


@pytest.mark.parametrize(
    "arguments",
    [{}, {"query": ""}, {"query": " "}, {"query": "x" * 1001}, {"query": "x", "limit": 0}, {"query": "x", "limit": 21}, {"query": "x", "user": "eve"}],
    ids=lambda value: str(value)[:30],
)  # fmt: skip
async def test_a_search_that_does_not_fit_is_refused(make_host, arguments):
    """A search with wrong arguments is refused before the sessions are searched."""
    sessions = Sessions()
    asked = call("session_search", json.dumps(arguments))
    outcome = await outcome_of(make_host, session_search_tool(sessions, nowhere), asked=asked)

    assert ([], True) == (sessions.asked, outcome.text.startswith("[tool error] session_search: "))


@pytest.mark.parametrize(
    ("fields", "asked", "error"),
    [
        ({"trust": "full"}, [("dams", 20, None)], None),
        ({"trust": "full", "user": "u"}, [("dams", 20, "u")], None),
        ({"trust": "public", "user": "u"}, [("dams", 20, "u")], None),
        ({"trust": "inner"}, [], "there is no such tool; the tools are: none"),
        ({"trust": "public"}, [], "there is no such tool; the tools are: none"),
        ({}, [], "there is no such tool; the tools are: none"),
    ],
)
async def test_nobody_unknown_reads_what_others_said(make_host, fields, asked, error):
    """Without a user all sessions would be searched; that is for the owner alone, and is not offered to others."""
    sessions = Sessions()
    async with make_host() as host:
        turn = await host.open_turn("hello", session="s", **fields)
        box = ToolBox(host, [session_search_tool(sessions, nowhere)])
        outcome = await box.run(call("session_search", '{"query": "dams"}'), turn)

    assert (asked, error) == (sessions.asked, outcome.error)


async def test_more_calls_than_anybody_needs_are_not_run(make_host):
    """The toolbox runs the first calls of a round; each further outcome names the limit, in the order of the calls."""
    calls = [call(number=number) for number in range(MOST_CALLS + 2)]
    async with make_host() as host, host.turn("hello", session="s") as turn:
        outcomes = await ToolBox(host, [built_in()]).run_all(calls, turn)

    assert [None] * MOST_CALLS + ["only 64 calls are run in one round"] * 2 == [each.error for each in outcomes]
    assert [each.id for each in calls] == [each.call.id for each in outcomes]


@pytest.mark.parametrize(
    ("tool", "plugin", "error"),
    [
        (built_in(run=raising(OSError("gone"))), None, "OSError"),
        (of_plugin(name="echo2", run=answering(object())), "p", "TypeError"),
    ],
    ids=["a tool of our own", "an answer that has no form in JSON"],
)
async def test_a_failure_that_the_host_does_not_see_is_written_down(make_host, sink, tool, plugin, error):
    """A failing built-in tool, and an answer without a text form, leave an audit event."""
    mine = isinstance(tool, BuiltInTool)
    async with (
        make_host({"p": RecordingPlugin(tools=[] if mine else [tool])}) as host,
        host.turn("hi", session="s") as turn,
    ):
        outcome = await ToolBox(host, [tool] if mine else []).run(call(name=tool.name), turn)

    assert outcome.error is not None
    assert [(plugin, {"tool": tool.name, "error": error})] == [
        (each.plugin, dict(each.facts)) for each in sink.named("tool_failed")
    ]
