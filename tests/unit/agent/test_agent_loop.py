"""The loop: a prompt becomes an answer that is stored and committed, or it leaves no trace in the session."""

import asyncio
import json
import re
import tempfile
import threading
from collections import deque
from pathlib import Path

import attrs
import hypothesis.strategies as st
import pytest
from cancellation import CancelledAt
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from beaver_hooks.agent.errors import AnswerNotStored, ProviderError, SessionError, SkillError
from beaver_hooks.agent.factory import EngineLoader
from beaver_hooks.agent.loop import TOOL_LIMIT, AgentLoop, AgentRunResult, ToolCallSummary
from beaver_hooks.agent.messages import ChatMessage, Completion, Usage
from beaver_hooks.agent.sessions.database import DATABASE
from beaver_hooks.agent.skills import ActiveSkill, activation_text
from beaver_hooks.audit.memory_sink import MemorySink
from beaver_hooks.config import Config
from beaver_hooks.config.loader import LoadedConfig
from beaver_hooks.config.model import SYSTEM_PROMPT, AgentSettings, HostSettings, Memory, Plugins
from beaver_hooks.tools.outcomes import ToolCall
from beaver_hooks_curated.plugin import RULE
from beaver_hostspecs import (
    Contribution,
    InvalidTurn,
    Message,
    PluginInfo,
    Reference,
    Scope,
    Tool,
    Trust,
)
from beaver_hostspecs.rendering import render_references
from beaver_hostspecs.testing import Fault, FaultError, FaultPlugin, FrozenClock, RecordingPlugin
from beaver_hostspecs.testing.factories import NOON

PARAMETERS = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
REFERENCES = (Reference(text="We met at noon.", id="r1"), Reference(text="The map hangs in the hall.", id="r2"))
RULED = PluginInfo(version="0", contract="1.0", rules=("Use what you know.",))
SYSTEM = f"{SYSTEM_PROMPT}\n\n{RULE}"
YES = Completion(text="yes")


@attrs.frozen(kw_only=True)
class Asked:
    """One request to a provider."""

    messages: tuple[ChatMessage, ...]
    tools: tuple[str, ...]


class Scripted:
    """A provider that follows a script: an answer, an error, or a coroutine function that gives one of them."""

    def __init__(self, *script):
        self.script = deque(script)
        self.asked = []

    async def complete(self, messages, *, tools=(), on_delta=None):
        self.asked.append(Asked(messages=(*messages,), tools=tuple(each["name"] for each in tools)))
        step = self.script.popleft() if self.script else YES
        answer = await step() if callable(step) else step
        if isinstance(answer, Exception):
            raise answer
        if on_delta is not None and answer.text:
            on_delta(answer.text)
        return answer

    @property
    def texts(self):
        """The texts of the last request, without the system prompt."""
        return [each.text for each in self.asked[-1].messages if each.role != "system"]


class Agent:
    """A loaded agent with a scripted provider."""

    def __init__(self, engine, *script):
        self.engine = engine
        self.provider = engine.provider = Scripted(*script)
        self.loop = AgentLoop(engine)
        self.run = self.loop.run

    async def said(self, session="s"):
        return [each.text for each in (await self.engine.sessions.show(session)).messages]

    async def sql(self, statement):
        """Do something to the store's own connection."""
        job = self.engine.sessions.submit(lambda work: work._connection.execute(statement).fetchall())
        return await asyncio.wrap_future(job)


def loaded_config(folder, *, host=None, **agent):
    config = Config(
        memory=Memory(mode="curated", explicit=True),
        plugins=Plugins(disabled=("tally",)),
        agent=AgentSettings(**agent),
        host=host or HostSettings(blocked_after_seconds=60),
    )
    return LoadedConfig(config=config, path=None, trusted_by=None, state_folder=folder)


@pytest.fixture
async def load(tmp_path):
    engines = []

    async def make(*script, plugins=None, sinks=(), **options):
        loader = EngineLoader(
            loaded_config(tmp_path / ".beaver", **options),
            plugins=plugins or {},
            sinks=sinks,
            clock=FrozenClock(),
            environment={},
        )
        engines.append(await loader.load())
        return Agent(engines[-1], *script)

    yield make
    for engine in engines:
        await engine.close()


def message(role, text, **more):
    return ChatMessage(role=role, text=text, **more)


def exchange(turn, prompt, answer="yes"):
    """Return the messages that a session stores of a turn; the user's has the id of the turn."""
    return (Message(role="user", text=prompt, when=NOON, id=turn), Message(role="assistant", text=answer, when=NOON))


def call(name="echo", arguments='{"n": 1}', number=1):
    return ToolCall(id=f"call-{number}", name=name, arguments=arguments)


def calling(*calls, text="", usage=None):
    return Completion(text=text, tool_calls=calls, usage=usage)


async def echo(arguments, _turn, _report):
    return f"heard {arguments['n']}"


def tool(run=echo, name="echo"):
    return Tool(name=name, description="d", parameters=PARAMETERS, run=run)


def unfenced(text):
    """Without the boundary, which is random."""
    return re.sub(r"(?<=<<<beaver-reference )\S+", "B", text)


def recalled(plugin, references=REFERENCES):
    rendered = render_references(plugin, references, boundary="boundary")
    return message("user", unfenced(rendered.text))


def plain(messages):
    return [attrs.evolve(each, text=unfenced(each.text)) for each in messages]


# --- What the provider gets ---------------------------------------------------------------------------------------


@pytest.mark.shows("000-026", "000-066", "000-074", "000-075", "001-052", "001-060", "003-053", "003-055", "003-059")
async def test_the_order_of_messages(load, tmp_path):
    """The order is system prompt (base, rules, blocks), skills, references, history, prompt; the result is complete."""
    for name in ("always", "asked"):
        (tmp_path / "skills" / name).mkdir(parents=True)
        (tmp_path / "skills" / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: d\n---\nBe {name}.\n")
    notes = RecordingPlugin(Contribution(blocks=("The user is British.",), references=REFERENCES), info=RULED)
    more = RecordingPlugin(Contribution(references=REFERENCES[:1]))
    agent = await load(
        Completion(text="first"),
        Completion(text="second", usage=Usage(input_tokens=3, output_tokens=1)),
        plugins={"notes": notes, "more": more},
        skills=("always",),
        skill_folders=(tmp_path / "skills",),
    )
    first = await agent.run("hello", "s", "u")
    scope = Scope(project="p")
    result = await agent.run("how are you?", "s", "u", scope=scope, trust="full", skills=["asked", "always"])

    assert [
        message("system", f"{SYSTEM}\n\nUse what you know.\n\nThe user is British."),
        *(message("user", activation_text(ActiveSkill(name=n, text=f"Be {n}."))) for n in ("always", "asked")),
        recalled("notes"),
        recalled("more", REFERENCES[:1]),
        message("user", "hello"),
        message("assistant", "first"),
        message("user", "how are you?"),
    ] == plain(agent.provider.asked[-1].messages)
    assert (
        AgentRunResult(
            text="second",
            session_id="s",
            turn_id=result.turn_id,
            usage=Usage(input_tokens=3, output_tokens=1),
            receipt_id=result.turn_id,
        )
        == result
    )
    turn = notes.calls_of("before_prompt")[-1].arguments["turn"]
    assert ("s", "u", scope, Trust.FULL, exchange(first.turn_id, "hello", "first")) == (
        turn.session,
        turn.user,
        turn.scope,
        turn.trust,
        turn.history,
    )


@pytest.mark.shows("000-077")
async def test_the_system_prompt_is_the_same_bytes_every_turn(load):
    """The system prompt is the same bytes in every turn and session, so that caches hold, and bare with memory off."""
    notes = RecordingPlugin(Contribution(blocks=("The user is British.",), references=REFERENCES), info=RULED)
    agent = await load(calling(call("nobody")), YES, ProviderError("x", category="x"), plugins={"notes": notes})
    await agent.run("one", "s")
    with pytest.raises(ProviderError):
        await agent.run("two", "s")
    await agent.run("three", "t", "u", trust="full")
    for on in (False, True):
        await agent.engine.host.switch_memory(on=on, session="s")
        await agent.run("four", "s")
    system = [each.messages[0] for each in agent.provider.asked]

    whole = message("system", f"{SYSTEM}\n\nUse what you know.\n\nThe user is British.")
    assert [whole] * 4 + [message("system", SYSTEM_PROMPT), whole] == system


@pytest.mark.parametrize(("limit", "expected"), [(0, 0), (3, 3), (4, 4), (50, 6)])
async def test_the_history_has_a_limit(load, limit, expected):
    """The newest messages go to the model and to the plugins; the session keeps all."""
    plugin = RecordingPlugin()
    agent = await load(plugins={"p": plugin}, history_messages=limit)
    for number in range(4):
        await agent.run(f"p{number}", "s")
    whole = [text for number in range(3) for text in (f"p{number}", "yes")]
    shown = whole[len(whole) - expected :]

    assert [*shown, "p3"] == agent.provider.texts
    assert shown == [each.text for each in plugin.calls_of("before_prompt")[-1].arguments["turn"].history]
    assert [*whole, "p3", "yes"] == await agent.said()


@pytest.mark.parametrize(
    ("kept", "told"),
    [(False, "Log in with password=[redacted: password]"), (True, "Log in with password=hunter2tulip")],
)
async def test_a_secret_is_there_in_its_turn_alone(load, kept, told):
    """The model sees a secret in the turn in which it was said; later turns and the title have a mask, unless `storeSecrets` keeps it."""
    agent = await load(store_secrets=kept)
    await agent.run("Log in with password=hunter2tulip", "s")
    first = [*agent.provider.texts]
    await agent.run("And now?", "s")

    assert (["Log in with password=hunter2tulip"], [told, "yes", "And now?"]) == (first, [*agent.provider.texts])
    assert [told, "yes", "And now?", "yes"] == await agent.said("s")
    assert "Log in with password=[redacted: password]" == (await agent.engine.sessions.show("s")).info.title


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("é" * 1_000_000, "é" * 1_000_000),
        (" \n padded \t", " \n padded \t"),
        ("nul\0nul", "nul\ufffdnul"),
        ("lone \ud800\udfff\udfff", "lone \U000103ff\ufffd"),
    ],
    ids=["a megabyte", "blanks around", "nul", "surrogates"],
)
async def test_a_prompt_is_the_same_text_everywhere(load, prompt, expected):
    """The provider, the store and the plugins get one text, in this turn and in the next one's history."""
    plugin = RecordingPlugin()
    agent = await load(plugins={"p": plugin})
    await agent.run(prompt, "s")
    sent = agent.provider.texts
    await agent.run("next", "s")
    await agent.engine.host.drain()
    (before, after) = (plugin.calls_of(hook)[0].arguments for hook in ("before_prompt", "after_prompt"))

    assert [expected] == sent
    assert [expected, "yes", "next"] == agent.provider.texts
    assert [expected, "yes", "next", "yes"] == await agent.said()
    assert [expected] * 3 == [before["turn"].prompt, after["turn"].prompt, after["answer"].messages[0].text]


@pytest.mark.parametrize("prompt", ["", " \n\t\u2003", "\0\0", " \0 "])
async def test_a_prompt_that_says_nothing_is_refused(load, prompt):
    """An empty prompt is refused before the loop opens a turn, asks the provider or stores anything."""
    plugin = RecordingPlugin()
    agent = await load(plugins={"p": plugin})
    with pytest.raises(InvalidTurn, match=r"^the prompt is empty; write one$"):
        await agent.run(prompt, "s")

    assert ([], (), ()) == (
        agent.provider.asked,
        await agent.engine.sessions.list(),
        plugin.calls_of("before_prompt"),
    )


async def test_an_answer_is_text_that_can_be_sent_back(load):
    """A NUL and a lone surrogate in an answer become U+FFFD, in the result, the session and for the plugins."""
    plugin = RecordingPlugin()
    agent = await load(Completion(text="a\0b\ud800"), plugins={"p": plugin})
    result = await agent.run("hello", "s")
    (kept,) = await plugin.wait_for("after_prompt")

    assert ["a\ufffdb\ufffd"] * 3 == [result.text, (await agent.said())[1], kept.arguments["answer"].text]


@pytest.mark.shows("000-064", "001-051")
async def test_a_new_session_has_an_id(load):
    """Each run without an id makes a new session, and a later run can continue it."""
    agent = await load()
    first, second = [await agent.run("hello") for _ in range(2)]
    again = await agent.run("and?", first.session_id)

    assert [1, 2] == [len({first.session_id, again.session_id}), len({first.session_id, second.session_id})]
    assert ["hello", "yes", "and?"] == agent.provider.texts


# --- Tools --------------------------------------------------------------------------------------------------------


async def test_tools_run_side_by_side_and_go_back_to_the_model(load):
    """Two tools that wait for each other both end; failures are marked; the plugins see each result, in order."""
    meeting = asyncio.Barrier(2)

    async def meet(arguments, _turn, _report):
        await meeting.wait()
        return {"met": arguments["n"]}

    async def fail(_arguments, _turn, _report):
        raise ValueError("no luck")

    tools = [tool(meet, "meet"), tool(fail, "fail")]
    plugin = RecordingPlugin(tools=tools)
    calls = (
        call("meet", '{"n": 1}', 1),
        call("meet", '{"n": 2}', 2),
        call("fail", "{}", 3),
        call("meet", '{"n": "x"}', 4),
        call("gone", "{", 5),
    )
    usages = [Usage(input_tokens=5, output_tokens=1), None, Usage(input_tokens=9, output_tokens=2)]
    agent = await load(
        calling(*calls, text="Let me see. ", usage=usages[0]),
        calling(call("fail", "", 6), usage=usages[1]),
        Completion(text="done", usage=usages[2]),
        plugins={"p": plugin},
    )
    heard = []
    result = await agent.run("go", "s", on_delta=heard.append)
    told = [each.arguments["result"] for each in await plugin.wait_for("on_tool_result", 6)]

    answers = [
        '{"met":1}',
        '{"met":2}',
        "[tool error] fail: ValueError: no luck",
        "[tool error] meet: n: 'x' is not of type 'integer'",
        "[tool error] gone: there is no such tool; the tools are: `session_search`, `memory`, `meet`, `fail`",
    ]
    first = (
        message("system", SYSTEM),
        message("user", "go"),
        message("assistant", "Let me see. ", tool_calls=calls),
        *(message("tool", text, tool_call_id=f"call-{n}") for n, text in enumerate(answers, 1)),
    )
    assert first == agent.provider.asked[1].messages
    assert (
        *first,
        message("assistant", "", tool_calls=(call("fail", "", 6),)),
        message("tool", answers[2], tool_call_id="call-6"),
    ) == agent.provider.asked[2].messages
    assert [("session_search", "memory", "meet", "fail")] * 3 == [each.tools for each in agent.provider.asked]
    assert [(f"call-{n}", answer.startswith("[")) for n, answer in enumerate([*answers, answers[2]], 1)] == [
        (each.call_id, each.outcome == "error") for each in told
    ]
    assert ("meet", {"n": 1}, '{"met":1}', None) == (told[0].tool, told[0].arguments, told[0].output, told[0].error)
    assert (["Let me see. ", "\n\n", "done"], ["go", "done"]) == (heard, await agent.said())
    assert (
        tuple(
            ToolCallSummary(id=each.id, name=each.name, outcome=outcome, duration=summary.duration)
            for each, outcome, summary in zip(
                [*calls, call("fail", "", 6)],
                ["success", "success", *["error"] * 4],
                result.tool_calls,
                strict=True,
            )
        )
        == result.tool_calls
    )
    assert Usage(input_tokens=14, output_tokens=3) == result.usage


@pytest.mark.shows("000-097", "001-074")
@pytest.mark.parametrize("streamed", [False, True])
async def test_too_many_rounds_end_normally(load, streamed):
    """The fallback text is an answer like any other: streamed, stored, committed and learned from."""
    plugin = RecordingPlugin(tools=[tool()])
    agent = await load(*[calling(call())] * 3, plugins={"p": plugin}, max_tool_rounds=2)
    heard = []
    result = await agent.run("go", "s", on_delta=heard.append if streamed else None)
    text = TOOL_LIMIT.format(rounds=2)
    (kept,) = await plugin.wait_for("after_prompt")
    await agent.run("go on", "s")

    assert ("tool_limit", text, 2) == (result.status, result.text, len(result.tool_calls))
    assert [text] * streamed == heard
    assert exchange(result.turn_id, "go", text) == kept.arguments["answer"].messages
    assert ["go", text, "go on"] == agent.provider.texts
    assert (4, 0) == (len(agent.provider.asked), len(plugin.calls_of("on_turn_dropped")))


async def test_calls_without_an_id_get_one(load):
    """Each call without an id gets one that is unique in the turn, and its result has the same id."""
    plugin = RecordingPlugin(tools=[tool()])
    nameless = attrs.evolve(call(), id="")
    agent = await load(calling(nameless, nameless), calling(nameless), Completion(text="done"), plugins={"p": plugin})
    result = await agent.run("go", "s")

    assert ["call-1", "call-2", "call-3"] == [each.id for each in result.tool_calls]
    assert ["call-1", "call-2", "call-3"] == [
        each.tool_call_id for each in agent.provider.asked[-1].messages if each.role == "tool"
    ]


@pytest.mark.parametrize(
    ("reason", "status"), [("stop", "completed"), ("length", "truncated"), ("content_filter", "truncated")]
)
async def test_an_answer_that_was_cut_says_so(load, reason, status):
    """A cut answer has its own status, and is stored and committed like any other."""
    agent = await load(Completion(text="Half of", finish_reason=reason))

    assert (status, "Half of") == ((result := await agent.run("go", "s")).status, result.text)


# --- Stored, then committed, then returned ------------------------------------------------------------------------


def ended(log):
    """Note the end of a transaction that wrote messages; `False` lets it go on."""
    if log[-1:] == ["row"]:
        log.append("end")
    return False


async def test_stored_then_committed_then_returned(load):
    """Both messages are written in one transaction; only then the turn is committed, and only then `run` returns."""
    log = []

    class Watching:
        def append(self, event):
            if event.name in {"turn_committed", "turn_dropped"}:
                log.append(event.name)

    agent = await load(sinks=[Watching()])
    await agent.engine.sessions.ensure("s")

    def watch(work):
        work._connection.set_update_hook(lambda _type, _base, table, _row: table == "messages" and log.append("row"))
        work._connection.set_commit_hook(lambda: ended(log))

    await asyncio.wrap_future(agent.engine.sessions.submit(watch))
    await agent.run("hello", "s")
    log.append("returned")
    await asyncio.wrap_future(
        agent.engine.sessions.submit(
            lambda work: (work._connection.set_update_hook(None), work._connection.set_commit_hook(None))
        )
    )

    assert ["row", "row", "end", "turn_committed", "returned"] == log


async def test_the_plugins_learn_what_was_stored(load):
    """The plugins get an answer that is marked as stored, with the messages of the session."""
    plugin = RecordingPlugin()
    agent = await load(plugins={"p": plugin})
    result = await agent.run("hello", "s")
    (kept,) = await plugin.wait_for("after_prompt")
    answer = kept.arguments["answer"]

    assert ("yes", NOON, True, exchange(result.turn_id, "hello")) == (
        answer.text,
        answer.when,
        answer.stored,
        answer.messages,
    )
    assert exchange(result.turn_id, "hello") == await agent.engine.sessions.history("s")
    await agent.engine.host.drain()
    assert "committed" == (await agent.engine.host.receipt(result.receipt_id))["state"]


async def test_without_a_trail_there_is_no_receipt(load, tmp_path):
    """A trail that cannot be opened costs the receipt's id and nothing else."""
    (tmp_path / ".beaver").mkdir(mode=0o700)
    (tmp_path / ".beaver" / "host.db").write_bytes(b"no database at all" * 100)
    agent = await load()
    result = await agent.run("hello", "s")

    assert ("yes", None) == (result.text, result.receipt_id)


# --- What breaks --------------------------------------------------------------------------------------------------


async def failing():
    raise ProviderError("The provider failed.", category="server_error")


@pytest.mark.shows("000-096", "001-073")
@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (failing, ProviderError),
        (Completion(text=" \n", finish_reason="length"), ProviderError),
        (Completion(), ProviderError),
        (RuntimeError("a bug"), RuntimeError),
    ],
)
@pytest.mark.parametrize("rounds", [0, 1])
async def test_a_model_that_does_not_answer_leaves_no_trace(load, step, kind, rounds):
    """The error comes out, the turn is dropped, and the next prompt follows the last stored answer."""
    plugin = RecordingPlugin(tools=[tool()])
    agent = await load(YES, *[calling(call(), text="Let me see.")] * rounds, step, plugins={"p": plugin})
    await agent.run("hello", "s")
    with pytest.raises(kind) as caught:
        await agent.run("lost", "s")
    await agent.run("next", "s")
    await agent.engine.host.drain()

    if isinstance(step, Completion):
        reason = step.finish_reason or "no reason given"
        expected = f"The model answered nothing ({reason}). Ask again, or ask for less."
        assert ("empty", expected) == (caught.value.category, str(caught.value))
    assert ["hello", "yes", "next"] == agent.provider.texts
    assert ["hello", "yes", "next", "yes"] == await agent.said()
    assert ["failed"] == [each.arguments["reason"] for each in plugin.calls_of("on_turn_dropped")]
    assert ["hello", "next"] == [each.arguments["turn"].prompt for each in plugin.calls_of("after_prompt")]
    assert {} == agent.loop._busy


async def test_a_fail_closed_plugin_stops_the_turn(load):
    """The plugin's error comes out unchanged, the model is not asked, and the session is as it was."""
    plugin, strict = RecordingPlugin(), FaultPlugin(Fault.RAISE, "before_prompt")
    agent = await load(plugins={"p": plugin})
    await agent.run("hello", "s")
    await agent.engine.host.register("strict", strict, fail_closed=True)
    with pytest.raises(FaultError):
        await agent.run("lost", "s")
    await agent.engine.host.unregister("strict")
    await agent.run("next", "s")
    await agent.engine.host.drain()

    assert (2, ["hello", "yes", "next"]) == (len(agent.provider.asked), agent.provider.texts)
    assert ["failed"] == [each.arguments["reason"] for each in plugin.calls_of("on_turn_dropped")]


@pytest.mark.shows("001-089")
async def test_a_fail_open_plugin_costs_only_itself(load):
    """A turn goes on without a fail-open plugin that raises, and the plugin is degraded."""
    agent = await load(plugins={"p": FaultPlugin(Fault.RAISE, "before_prompt")})

    assert "yes" == (await agent.run("hello", "s")).text
    assert "degraded" == agent.engine.status["p"].state


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        ("PRAGMA query_only = 1", "is read-only; check who owns it and its folder"),
        ("PRAGMA max_page_count = 1", "cannot grow: the disk is full; make room and try again"),
        (
            (
                "CREATE TEMP TRIGGER harm BEFORE INSERT ON main.messages WHEN NEW.role = 'assistant'"
                " BEGIN SELECT RAISE(ABORT, 'no'); END"
            ),
            "is not a database of sessions; move it away",
        ),
        ("DELETE FROM sessions WHERE id = 's'", None),
    ],
    ids=["read-only", "full", "half way", "deleted meanwhile"],
)
async def test_an_answer_that_cannot_be_stored(load, tmp_path, harm, sentence):
    """The error has the answer, the turn is dropped, nothing is half stored; it works again by itself."""
    answer = "x" * 1_000_000

    async def break_it():
        await agent.engine.events.flush()  # or writing events would find the harm first, and mend it
        await agent.sql(harm)
        return Completion(text=answer)

    plugin = RecordingPlugin()
    agent = await load(YES, break_it, plugins={"p": plugin})
    await agent.run("hello", "s")
    with pytest.raises(AnswerNotStored) as caught:
        await agent.run("lost", "s")
    (dropped,) = await plugin.wait_for("on_turn_dropped")
    await agent.run("next", "s")

    where = f"The session store {tmp_path / '.beaver' / DATABASE} {sentence}."
    gone = "There is no such session; `beaver sessions list` lists the stored ones."
    expected = f"The answer could not be stored, so the turn was dropped. {where if sentence else gone}"
    assert (answer, expected, "failed") == (caught.value.text, str(caught.value), dropped.arguments["reason"])
    kept = ["hello", "yes"] if sentence else []
    assert ([*kept, "next"], [*kept, "next", "yes"]) == (agent.provider.texts, await agent.said())
    assert () == await agent.engine.sessions.integrity()


@pytest.mark.parametrize(
    ("session", "options", "error", "said"),
    [
        *((each, {}, SessionError, "^A session id is a text of 1 to 512 characters")
          for each in ("", "a\nb", "x" * 513, 7, ["s"], "\ud800")),
        ("s", {"user_id": ""}, SessionError, "user"),
        ("s", {"skills": ["nope"]}, SkillError, "there is no skill `nope`"),
        ("s", {"trust": "boss"}, ValueError, "not a valid Trust; it is one of `full`, `inner`, `familiar`, `public`"),
    ],
    ids=["empty", "line", "long", "int", "list", "surrogate", "blank user", "skill", "trust"],
)  # fmt: skip
async def test_what_does_not_fit_is_refused(load, session, options, error, said):
    """A wrong session, a blank user, an unknown skill and an unknown trust are refused; nothing is asked or stored."""
    agent = await load()
    with pytest.raises(error, match=said):
        await agent.run("hello", session, **options)

    assert ([], [], {}) == (agent.provider.asked, await agent.sql("SELECT id FROM sessions"), agent.loop._busy)


async def test_a_session_is_its_users(load):
    """A run as another user, or without a user below full trust, is refused and reads nothing."""
    agent = await load()
    await agent.run("hello", "s", "ann")
    with pytest.raises(SessionError) as caught:
        await agent.run("what was said?", "s", "ben")
    with pytest.raises(SessionError):
        await agent.run("what was said?", "s", trust="familiar")
    await agent.run("next", "s", trust="full")

    assert "The session belongs to another user; leave the id out to start a new session." == str(caught.value)
    assert (2, ["hello", "yes", "next"], {}) == (len(agent.provider.asked), agent.provider.texts, agent.loop._busy)


async def test_a_listener_that_raises(load):
    """An exception of `on_delta` comes out, and the turn is dropped."""

    def deaf(_text):
        raise BrokenPipeError

    agent = await load()
    with pytest.raises(BrokenPipeError):
        await agent.run("hello", "s", on_delta=deaf)

    assert [] == await agent.said()


# --- Cancellation -------------------------------------------------------------------------------------------------

MOST_POINTS = 80
"""More than a run has points at which it can be cancelled."""


async def cancelled_at(body, point):
    """Cancel the body at its k-th suspension; return whether there was one."""
    stepping = CancelledAt(body, point)

    async def driven():
        await stepping

    task = asyncio.create_task(driven())
    await asyncio.wait([task])
    assert (stepping.suspensions >= point) == task.cancelled()
    return task.cancelled()


async def test_a_run_cancelled_at_any_point(load):
    """The cancellation comes out, the turn is dropped without a trace or stored and committed; the next run works."""

    async def slowly(arguments, _turn, _report):
        await asyncio.sleep(0)
        return arguments["n"]

    async def thinking():
        await asyncio.sleep(0)
        return calling(call(), call(number=2))

    plugin = RecordingPlugin(Contribution(references=REFERENCES), tools=[tool(slowly)])
    agent = await load(plugins={"p": plugin})
    before = asyncio.all_tasks()
    seen = []
    for point in range(1, MOST_POINTS):
        session = f"s{point}"
        agent.provider.script = deque([thinking])
        again = await cancelled_at(agent.run("hello", session, "u"), point)
        agent.provider.script.clear()
        await agent.run("next", session, "u")
        await agent.engine.host.drain()
        ends = [
            each.hook
            for each in plugin.calls
            if each.hook in {"after_prompt", "on_turn_dropped"}
            and (each.arguments["turn"].session, each.arguments["turn"].prompt) == (session, "hello")
        ]
        seen.append((tuple((await agent.said(session))[:-2]), tuple(ends)))
        if not again:
            break

    outcomes = [((), ()), ((), ("on_turn_dropped",)), (("hello", "yes"), ("after_prompt",))]
    assert [each for each in outcomes for _ in range(seen.count(each))] == seen
    assert {*outcomes} == {*seen}
    # Not only the run that was cancelled nowhere was kept: so was the one that was cancelled while it was stored.
    assert seen.count(outcomes[2]) >= 2
    assert ({}, 0, before) == (
        agent.loop._busy,
        len(agent.engine.host._running().turns.open_turns),
        asyncio.all_tasks(),
    )


@pytest.fixture
async def storing(load):
    """An agent whose run is just being stored once `begun` is set; `gate` lets it go on, after the `harm` if any."""
    plugin, gate, begun = RecordingPlugin(), threading.Event(), asyncio.Event()

    def wait(work):
        gate.wait(20)
        for statement in agent.harm:
            work._connection.execute(statement)

    async def hold():
        await agent.engine.events.flush()
        agent.engine.sessions.submit(wait)
        asyncio.get_running_loop().call_soon(begun.set)
        return YES

    agent = await load(YES, hold, plugins={"p": plugin})
    await agent.run("hello", "s")
    agent.plugin, agent.gate, agent.begun, agent.harm = plugin, gate, begun, []
    yield agent
    gate.set()


@pytest.mark.parametrize(
    ("harm", "kept", "hooks"),
    [([], ["going", "yes"], {"after_prompt": 2}), (["PRAGMA query_only = 1"], [], {"on_turn_dropped": 1})],
    ids=["stored", "failed"],
)
async def test_cancelling_while_the_answer_is_stored(storing, harm, kept, hooks):
    """Cancelling a run while it stores lets the storing end first, however often; then the cancellation comes out."""
    storing.harm = harm
    run = asyncio.create_task(storing.run("going", "s"))
    await storing.begun.wait()
    for _ in range(3):
        run.cancel()
        await asyncio.sleep(0)
    waited = run.done()
    storing.gate.set()
    await asyncio.wait([run])
    (hook,) = hooks
    ended = await storing.plugin.wait_for(hook, hooks[hook])
    await storing.run("next", "s")

    assert (False, True, 3) == (waited, run.cancelled(), run.cancelling())
    assert ["hello", "yes", *kept, "next", "yes"] == await storing.said()
    assert "going" == ended[-1].arguments["turn"].prompt
    closed = [each for each in storing.plugin.calls if each.hook in {"after_prompt", "on_turn_dropped"}]
    assert 1 == sum(each.arguments["turn"].prompt == "going" for each in closed)


# --- Many at the same time ----------------------------------------------------------------------------------------


async def test_runs_of_one_session_queue_and_others_do_not_wait(load):
    """A second run of a busy session waits until the first is stored; a run of another session does not wait."""
    gate, begun = asyncio.Event(), asyncio.Event()

    async def hold():
        begun.set()
        await gate.wait()
        return Completion(text="at last")

    agent = await load(hold, Completion(text="elsewhere"), Completion(text="second"))
    first = asyncio.create_task(agent.run("one", "s"))
    await begun.wait()
    second, cancelled = [asyncio.create_task(agent.run(prompt, "s")) for prompt in ("two", "three")]
    other = await agent.run("hello", "t")
    cancelled.cancel()
    await asyncio.wait([cancelled])
    waiting, asked = {session: count for session, (_, count) in agent.loop._busy.items()}, len(agent.provider.asked)
    gate.set()
    results = [each.text for each in await asyncio.gather(first, second)]

    assert ("elsewhere", {"s": 2}, 2, True) == (other.text, waiting, asked, cancelled.cancelled())
    assert (["at last", "second"], ["one", "at last", "two"]) == (results, agent.provider.texts)
    assert ({}, ["one", "at last", "two", "second"]) == (agent.loop._busy, await agent.said())


async def test_many_sessions_at_once(load):
    """A hundred runs of ten sessions are all kept, each exchange whole, in the order in which they came."""
    agent = await load()
    await asyncio.gather(*[agent.run(f"p{n}", f"s{n % 10}") for n in range(100)])

    expected = [[text for n in range(100) if n % 10 == s for text in (f"p{n}", "yes")] for s in range(10)]
    assert expected == [await agent.said(f"s{s}") for s in range(10)]
    assert {} == agent.loop._busy


# --- A session whose memory is off --------------------------------------------------------------------------------


async def test_a_session_whose_memory_is_off_has_none(load):
    """While memory is off no plugin, not even a fail-closed one, takes part and the model has no memory tool."""
    loose = RecordingPlugin(Contribution(references=REFERENCES), tools=[tool(name="loose")], info=RULED)
    strict = RecordingPlugin(Contribution(blocks=("strict",)), tools=[tool(name="strict")])
    # The model may still know the names of the tools from before.
    asking = [calling(call("loose"), call("strict", number=2)), YES]
    agent = await load(*asking, *asking, plugins={"loose": loose})
    await agent.engine.host.register("strict", strict, fail_closed=True)
    await agent.engine.host.switch_memory(on=False, session="s")
    quietly = await agent.run("quietly", "s")
    await agent.run("elsewhere", "t")
    await agent.engine.host.drain()
    quiet, elsewhere = agent.provider.asked[1], agent.provider.asked[-1]
    hooks = [
        [each.hook for each in plugin.calls if "turn" in each.arguments and each.arguments["turn"].session == "s"]
        for plugin in (loose, strict)
    ]
    receipt = await agent.engine.host.receipt(quietly.receipt_id)
    await agent.engine.host.switch_memory(on=True, session="s")
    await agent.run("again", "s")
    await agent.engine.host.drain()

    system = f"{SYSTEM}\n\nUse what you know.\n\nstrict"
    gone = ["[tool error] loose: there is no such tool; the tools are: none",
            "[tool error] strict: there is no such tool; the tools are: none"]  # fmt: skip
    assert [SYSTEM_PROMPT, "quietly", "", *gone] == [each.text for each in quiet.messages]
    assert ((), ("session_search", "memory", "loose", "strict")) == (quiet.tools, elsewhere.tools)
    assert [[], []] == hooks
    off = [("memory", "off", "memory is off for this session")]
    assert {"curated": off, "loose": off, "strict": off} == {
        name: [(each["gate"], each["verdict"], each["reason"]) for each in plugin["decisions"]]
        for name, plugin in receipt["plugins"].items()
    }
    assert [message("system", system), recalled("loose")] == plain(agent.provider.asked[-1].messages)[:2]
    assert [["again"], ["again"]] == [
        [each.arguments["turn"].prompt for each in plugin.calls_of("after_prompt")
         if each.arguments["turn"].session == "s"]
        for plugin in (loose, strict)
    ]  # fmt: skip


@pytest.mark.parametrize(("asking", "session"), [("ada", "hers"), (None, "hers"), (None, None)])
async def test_what_was_said_where_memory_is_off_is_not_found(load, asking, session):
    """A session that is off for its user is in no search of earlier sessions, whether she searches or the owner does."""
    search = calling(call("session_search", '{"query": "heron"}'))
    agent = await load(YES, YES, search, YES, search)
    await agent.run("the heron is mine", "hers", "ada")
    await agent.run("the heron is ours", "another's", asking)
    found = []
    for on in (False, True):
        await agent.engine.host.switch_memory(on=on, session=session, user="ada")
        await agent.run("look it up", f"asking-{on}", asking)
        found.append({each["session"] for each in json.loads(agent.provider.asked[-1].messages[-1].text)["found"]})

    assert [{"another's"}, {"another's", "hers"}] == found


# --- Trust --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("configured", "given", "expected"),
    [
        (None, None, Trust.FULL),
        (None, "public", Trust.PUBLIC),
        ("familiar", None, Trust.FAMILIAR),
        ("familiar", "full", Trust.FAMILIAR),
        ("familiar", Trust.INNER, Trust.FAMILIAR),
        ("familiar", "public", Trust.PUBLIC),
    ],
)
async def test_a_run_is_trusted_as_the_configuration_says_or_less(load, configured, given, expected):
    """The turn, its tools and its session get the lesser of `agent.trust` and the trust of the run."""
    plugin = RecordingPlugin()
    agent = await load(plugins={"p": plugin}, **({} if configured is None else {"trust": configured}))
    said = {} if given is None else {"trust": given}
    await agent.run("hello", "s", **said)
    turn = plugin.calls_of("before_prompt")[0].arguments["turn"]

    assert (expected, expected) == (agent.engine.trust(given), turn.trust)
    assert (("session_search", "memory") if expected is Trust.FULL else ()) == agent.provider.asked[0].tools
    assert [(expected.value,)] == await agent.sql("SELECT trust FROM sessions")


async def test_what_was_said_at_more_trust_is_not_gone_on_with_at_less(load):
    """A run at less trust cannot continue a session that began with more trust, and gets a session of its own."""
    agent = await load()
    await agent.run("a secret of the owner", "s")
    with pytest.raises(SessionError, match="The session was started with more trust; leave the id out"):
        await agent.run("what was said?", "s", trust="public")
    await agent.run("hello", "t", trust="public")
    await agent.run("what was said?", "t", trust="public")

    assert ["hello", "yes", "what was said?"] == agent.provider.texts
    # The owner may read along.
    await agent.run("and now?", "t")
    assert ["a secret of the owner", "yes"] == await agent.said("s")


# --- Audit events -------------------------------------------------------------------------------------------------


@pytest.mark.shows("000-016", "001-011", "001-084")
async def test_audit_events_are_hidden_events_of_their_session(load):
    """Events of committed and dropped turns are hidden events of their session, and in no history and no search."""
    sink = MemorySink()
    agent = await load(YES, YES, failing, plugins={"p": FaultPlugin(Fault.RAISE, "before_prompt")}, sinks=[sink])
    done = await agent.run("hello", "s")
    await agent.run("hello", "t")
    with pytest.raises(ProviderError):
        await agent.run("lost", "s")
    await agent.engine.host.drain()
    await agent.engine.events.flush()
    shown = await agent.engine.sessions.show("s", hidden=True)
    hits = await agent.engine.sessions.search("turn_committed hook_failed before_prompt dropped", 20)

    turns = {each.payload["turn"]: None for each in shown.events}
    expected = [(each.name, each.turn) for each in sink.events if each.turn in turns]
    assert expected == [(each.name, each.payload["turn"]) for each in shown.events]
    assert (2, done.turn_id) == (len(turns), next(iter(turns)))
    assert {"turn_committed", "turn_dropped"} < {each.name for each in shown.events}
    assert "p" in {each.payload.get("plugin") for each in shown.events}
    assert (exchange(done.turn_id, "hello"), ()) == (shown.messages, hits)
    assert shown.messages == await agent.engine.sessions.history("s")


# --- Anything in any order ----------------------------------------------------------------------------------------

ROUNDS = 2
ENDS = st.sampled_from(["answer", "answer", "error", "empty", "cancel", "cancel while stored"])
RUN = st.tuples(st.sampled_from("abc"), st.integers(0, ROUNDS + 1), ENDS)


class Model:
    """A provider that acts on a prompt of the form `number rounds end`."""

    async def complete(self, messages, *, tools=(), on_delta=None):
        at = max(at for at, each in enumerate(messages) if each.role == "user")
        _, rounds, end = messages[at].text.split(" ", 2)
        done = sum(each.role == "assistant" for each in messages[at:])
        await asyncio.sleep(0)
        if done < int(rounds):
            return calling(*[call(number=10 * done + n) for n in range(2)])
        if end == "error":
            raise ProviderError("The provider failed.", category="server_error")
        if end.startswith("cancel"):
            asyncio.current_task().cancel()
        if end == "cancel":
            await asyncio.sleep(0)
        return Completion(text="" if end == "empty" else f"answer to {messages[at].text}")

    async def close(self):
        pass


class Conversations(RuleBasedStateMachine):
    """A loop beside the dictionary of histories that its sessions should have."""

    def __init__(self):
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.plugin = RecordingPlugin(Contribution(references=REFERENCES), tools=[tool()])
        self.model, self.ends, self.number = {}, [], 0
        self.runner.run(self.open())

    async def open(self):
        loaded = loaded_config(Path(self.folder.name), max_tool_rounds=ROUNDS)
        self.engine = await EngineLoader(loaded, plugins={"p": self.plugin}, environment={}).load()
        self.engine.provider, self.loop = Model(), AgentLoop(self.engine)

    @rule(runs=st.lists(RUN, min_size=1, max_size=5))
    def run_side_by_side(self, runs):
        prompts = [self.expect(*each) for each in runs]
        self.runner.run(self.run_all([(session, prompt) for (session, *_), prompt in zip(runs, prompts, strict=True)]))

    def expect(self, session, rounds, end):
        """Return the prompt, and record its expected outcome."""
        self.number += 1
        prompt = f"{self.number} {rounds} {end}"
        stored = self.model.setdefault(session, [])
        if rounds > ROUNDS:
            stored += [prompt, TOOL_LIMIT.format(rounds=ROUNDS)]
        elif end in {"answer", "cancel while stored"}:
            stored += [prompt, f"answer to {prompt}"]
        kept = rounds > ROUNDS or end in {"answer", "cancel while stored"}
        self.ends.append((prompt, "after_prompt" if kept else "on_turn_dropped"))
        return prompt

    async def run_all(self, runs):
        tasks = [asyncio.create_task(self.loop.run(prompt, session)) for session, prompt in runs]
        await asyncio.wait(tasks)
        for task, (_, prompt) in zip(tasks, runs, strict=True):
            _, rounds, end = prompt.split(" ", 2)
            cancelled = int(rounds) <= ROUNDS and end.startswith("cancel")
            assert cancelled == task.cancelled()
            assert cancelled or isinstance(task.exception(), ProviderError | None)
        await self.engine.host.drain()

    @precondition(lambda self: self.model)
    @rule()
    def load_again(self):
        self.runner.run(self.engine.close())
        self.runner.run(self.open())

    @invariant()
    def the_sessions_are_the_model(self):
        assert self.model == self.runner.run(self.histories())
        closed = [
            (each.arguments["turn"].prompt, each.hook)
            for each in self.plugin.calls
            if each.hook in {"after_prompt", "on_turn_dropped"}
        ]
        assert sorted(self.ends) == sorted(closed)
        assert {} == self.loop._busy

    async def histories(self):
        store = self.engine.sessions
        return {each: [said.text for said in (await store.resume(each, limit=1000)).history] for each in self.model}

    def teardown(self):
        self.runner.run(self.engine.close())
        self.runner.close()
        self.folder.cleanup()


TestConversations = Conversations.TestCase
TestConversations.settings = settings(max_examples=settings.default.max_examples // 10, stateful_step_count=6)
