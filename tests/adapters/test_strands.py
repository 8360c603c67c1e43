import asyncio
import copy
import gc
import json
import logging
import warnings

import pytest
from adapters.harness_strands import ScriptedModel, StrandsHarness, StrandsInLoopHarness, echo, events_of, texts
from adapters.letting_go import collected
from adapters.published import assert_published
from conformance.scripted import ModelDown
from pydantic import BaseModel
from strands import Agent, tool
from strands.hooks import (
    AfterInvocationEvent,
    AfterModelCallEvent,
    AfterToolCallEvent,
    BeforeInvocationEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
)
from strands.middleware import InvokeModelStage
from strands.multiagent import GraphBuilder
from strands.session import FileSessionManager
from strands.types.exceptions import MaxTokensReachedException

from beaver_hooks import Host, SyncHost
from beaver_hooks.adapters.core import AdapterTurn
from beaver_hooks.adapters.strands import BeaverPlugin
from beaver_hostspecs import DropReason, HostMisused, Message, WrongLoop
from beaver_hostspecs.conformance import HOST_CASES, CallTool, Fail, Hang, Say, examine
from beaver_hostspecs.conformance.probes import BLOCK, PROBE_TOOL, RECALLED, RULE, Probe
from beaver_hostspecs.testing import FaultError, FaultPlugin

ANSWER = Say(text="We wait.")
CALL = CallTool(tool="echo", arguments={"text": "thursday"})
IMAGE = {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}


class Steps:
    """The steps of a model, in order, whatever the request."""

    def __init__(self, *steps):
        self.steps = iter(steps)

    async def step_for(self, _):
        step = next(self.steps)
        if isinstance(step, Fail):
            raise ModelDown("the model is down")
        if isinstance(step, Hang):
            await asyncio.Event().wait()
        return step


def stopped(reason, text="Something."):
    """Return the events of a model that stops for `reason`."""
    return [*events_of(Say(text=text))[:-1], {"messageStop": {"stopReason": reason}}]


@pytest.fixture
def probe():
    return Probe()


@pytest.fixture
async def host(probe, tmp_path):
    async with Host({"probe": probe}, state_folder=tmp_path / "state") as host:
        yield host


@pytest.fixture
def make(host):
    """Makes an agent with memory whose model takes the given steps."""

    def make(*steps, plugin=None, session=None, tools=(echo,), **more):
        plugins = [plugin or BeaverPlugin(host, session=session)]
        return Agent(model=ScriptedModel(Steps(*steps)), plugins=plugins, tools=[*tools], callback_handler=None, **more)

    return make


def said(request):
    """The texts of a request without the references."""
    return [text for _, text in texts(request["messages"]) if RECALLED not in text]


def opened(host):
    """The number of open turns."""
    return len(host._running().turns.open_turns)


@pytest.mark.parametrize("harness", [StrandsHarness, StrandsInLoopHarness])
@pytest.mark.parametrize("case", HOST_CASES, ids=str)
async def test_the_host_suite(case, harness):
    """Strands passes the case with a SyncHost and with a Host, or the card excuses it."""
    verdict = await examine(case, harness)
    assert_published(harness.card, verdict)


# --- What the model gets ----------------------------------------------------------------------------------------------


async def test_references_are_blocks_of_the_first_user_message(make, probe):
    """References open the first user message of each request, so that roles alternate and the history follows."""
    agent = make(ANSWER, CALL, ANSWER)

    await agent.invoke_async("One.")
    await agent.invoke_async("Two.")

    messages = agent.model.requests[-1]["messages"]
    assert ["user", "assistant", "user", "assistant", "user"] == [each["role"] for each in messages]
    recalled, first = messages[0]["content"]
    assert probe.recalled[probe.turns[1].id] in recalled["text"]
    assert {"text": "One."} == first
    assert ["One.", "We wait.", "Two."] == said(agent.model.requests[-1])


async def test_a_history_that_begins_with_the_assistant(make):
    """Before a request that begins with the assistant, the references are a user message, so that roles alternate."""
    agent = make(ANSWER, messages=[{"role": "assistant", "content": [{"text": "Welcome."}]}])

    await agent.invoke_async("One.")

    messages = agent.model.requests[0]["messages"]
    assert ["user", "assistant", "user"] == [each["role"] for each in messages]
    assert RECALLED in messages[0]["content"][0]["text"]


async def test_results_of_tools_stay_first(make):
    """References come after a tool's result in the first user message, because providers want results first."""
    result = {"toolResult": {"toolUseId": "t", "status": "success", "content": [{"text": "x"}]}}
    agent = make(
        ANSWER, messages=[{"role": "user", "content": [result]}, {"role": "assistant", "content": [{"text": "?"}]}]
    )

    await agent.invoke_async("One.")

    blocks = agent.model.requests[0]["messages"][0]["content"]
    assert "toolResult" in blocks[0]
    assert RECALLED in blocks[1]["text"]


async def test_a_system_prompt_with_a_cache_point(make):
    """Rules and blocks come after a provider's cache point, and the bytes before it stay the same."""
    prompt = [{"text": "Base."}, {"cachePoint": {"type": "default"}}]
    agent = make(ANSWER, system_prompt=prompt)
    seen = []

    def look(context):
        seen.append(context.system_prompt)
        return context

    agent.add_middleware(InvokeModelStage.Input, look)
    await agent.invoke_async("One.")

    assert prompt == seen[0][:2]
    assert {"text": f"{RULE}\n\n{BLOCK}"} == seen[0][2]
    assert prompt == agent.system_prompt_content


async def test_no_system_prompt(make):
    """An agent without a system prompt gets the rules as one."""
    agent = make(ANSWER)

    await agent.invoke_async("One.")

    assert f"{RULE}\n\n{BLOCK}" == agent.model.requests[0]["system"]


async def test_nothing_to_say_leaves_the_request_alone(tmp_path):
    """Without plugins the requests of an agent are the same as without memory."""

    async def request(plugins):
        agent = Agent(model=ScriptedModel(Steps(ANSWER)), plugins=plugins, tools=[echo], callback_handler=None)
        await agent.invoke_async("One.")
        return [{**each, "messages": texts(each["messages"])} for each in agent.model.requests]

    async with Host({}, state_folder=tmp_path) as host:
        assert await request([]) == await request([BeaverPlugin(host)])


async def test_a_multimodal_prompt(make, probe):
    """The texts of a prompt are the turn's prompt; its images go to the model only."""
    agent = make(ANSWER)

    await agent.invoke_async([{"text": "Look at this:"}, IMAGE, {"text": "What is it?"}])

    assert "Look at this:\nWhat is it?" == probe.turns[0].prompt
    assert IMAGE in agent.model.requests[0]["messages"][0]["content"]


async def test_a_prompt_without_text(make, probe, host):
    """A prompt without any text is a turn with an empty one."""
    await make(ANSWER).invoke_async([IMAGE])
    await host.drain()

    assert [""] == [each.prompt for each in probe.turns]
    assert ["We wait."] == [each.text for each in probe.answers]


async def test_whole_messages_as_a_prompt(make, probe):
    """Of messages given as the prompt, the last unanswered ones are the prompt and the others the history."""
    given = [("user", "One."), ("assistant", "Two."), ("user", "Three.")]
    agent = make(ANSWER)

    await agent.invoke_async([{"role": role, "content": [{"text": text}]} for role, text in given])

    assert "Three." == probe.turns[0].prompt
    assert (Message(role="user", text="One."), Message(role="assistant", text="Two.")) == probe.turns[0].history


async def test_going_on_without_a_prompt(make, probe):
    """The turn of a run without a prompt has the unanswered prompt of the history."""
    agent = make(Fail(), ANSWER)
    with pytest.raises(ModelDown):
        await agent.invoke_async("One.")

    await agent.invoke_async()

    assert ["One.", "One."] == [each.prompt for each in probe.turns]


async def test_history_is_passed_on(make, probe):
    """The turn has the earlier messages of the session, without tool results."""
    agent = make(CALL, ANSWER, ANSWER)

    await agent.invoke_async("One.")
    await agent.invoke_async("Two.")

    assert (Message(role="user", text="One."), Message(role="assistant", text="We wait.")) == probe.turns[1].history


async def test_citations_are_text(make, probe):
    """The text of an answer with citations is part of the history."""
    cited = {"citationsContent": {"content": [{"text": "On Thursday."}], "citations": []}}
    before = [{"role": "user", "content": [{"text": "When?"}]}, {"role": "assistant", "content": [cited]}]

    await make(ANSWER, messages=before).invoke_async("One.")

    assert "On Thursday." == probe.turns[0].history[1].text


# --- Sessions and users -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "given"),
    [
        ("of-state", {"state": {"session_id": "of-state"}, "managed": True, "default": "default"}),
        ("7", {"state": {"session_id": 7}}),
        ("managed", {"managed": True, "default": "default"}),
        ("default", {"default": "default"}),
    ],
)
async def test_where_the_session_comes_from(make, probe, tmp_path, expected, given):
    """The session is the caller's, else the session manager's, else the plugin's default."""
    manager = FileSessionManager(session_id="managed", storage_dir=str(tmp_path)) if "managed" in given else None

    agent = make(ANSWER, session=given.get("default"), session_manager=manager)
    await agent.invoke_async("One.", invocation_state=given.get("state"))

    assert [expected] == [each.session for each in probe.turns]


async def test_an_agent_without_a_session(make, probe):
    """An agent without a session has its own session as long as it lives."""
    agent = make(ANSWER, ANSWER)

    await agent.invoke_async("One.")
    await agent.invoke_async("Two.")
    await make(ANSWER).invoke_async("Three.")

    first, second, other = [each.session for each in probe.turns]
    assert first == second == agent.session_id
    assert first != other


async def test_user_and_trust(make, probe, host):
    """The user is the caller's, else the default one; trust is the plugin's."""
    agent = make(ANSWER, ANSWER, plugin=BeaverPlugin(host, user="ann", trust="full"))

    await agent.invoke_async("One.")
    await agent.invoke_async("Two.", invocation_state={"user_id": "bob"})

    assert [("ann", "full"), ("bob", "full")] == [(each.user, each.trust) for each in probe.turns]


# --- How turns end ----------------------------------------------------------------------------------------------------


async def test_the_last_answer_is_committed_after_all_other_hooks(make, probe, host):
    """An answer that the caller does not get, because another hook fails, is not learned."""
    agent = make(ANSWER)

    def fail(event: AfterInvocationEvent):
        raise ModelDown("not the model")

    agent.add_hook(fail)
    with pytest.raises(ModelDown):
        await agent.invoke_async("One.")
    await collected(host, probe)

    assert ((), (DropReason.ABANDONED,)) == (probe.answers, probe.reasons)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("guardrail_intervened", DropReason.BLOCKED),
        ("content_filtered", DropReason.BLOCKED),
        ("nobody_knows_this", DropReason.FAILED),
    ],
)
async def test_answers_that_are_none(make, probe, host, reason, expected):
    """An answer of a provider's guardrail is not learned."""
    await make(stopped(reason)).invoke_async("One.")
    await host.drain()

    assert ((), (expected,)) == (probe.answers, probe.reasons)


async def test_an_answer_that_was_cut_off(make, probe, host):
    """An answer that ran out of tokens is an error in Strands, and the turn is dropped."""
    with pytest.raises(MaxTokensReachedException):
        await make(stopped("max_tokens")).invoke_async("One.")
    await host.drain()

    assert ((), (DropReason.FAILED,)) == (probe.answers, probe.reasons)


async def test_an_empty_answer(make, probe, host):
    """An answer without a word drops the turn."""
    await make(Say(text=" ")).invoke_async("One.")
    await host.drain()

    assert ((), (DropReason.FAILED,)) == (probe.answers, probe.reasons)


async def test_limits(make, probe, host):
    """A run that ends at its limit has no answer."""
    await make(CALL).invoke_async("One.", limits={"turns": 1})
    await host.drain()

    assert ((), (DropReason.FAILED,)) == (probe.answers, probe.reasons)


async def test_cancelling_an_agent(make, probe, host):
    """`agent.cancel()` drops the turn as cancelled, though Strands returns a result."""
    agent = make(CALL, ANSWER)
    agent.add_hook(lambda _: agent.cancel(), AfterToolCallEvent)

    result = await agent.invoke_async("One.")
    await host.drain()

    assert "cancelled" == result.stop_reason
    assert ((), (DropReason.CANCELLED,)) == (probe.answers, probe.reasons)


async def test_a_model_call_that_is_denied(make, probe, host):
    """An answer that a hook gives instead of the model is not learned, even after other steps."""
    agent = make(CALL)

    def deny(event: BeforeModelCallEvent):
        event.cancel = len(event.agent.messages) > 1 and "no more"

    agent.add_hook(deny)
    result = await agent.invoke_async("One.")
    await host.drain()

    assert "no more" == str(result).strip()
    assert ((), (DropReason.BLOCKED,)) == (probe.answers, probe.reasons)


async def test_a_run_that_is_denied(make, probe, host):
    """A run that a hook refuses has no turn."""
    agent = make()

    def deny(event: BeforeInvocationEvent):
        event.cancel = "no"

    agent.add_hook(deny)
    await agent.invoke_async("One.")
    await host.drain()

    assert () == probe.told


async def test_prompts_are_those_that_hooks_leave(make, probe):
    """The turn's prompt is the one that a hook has redacted."""
    agent = make(ANSWER)

    def redact(event: BeforeInvocationEvent):
        event.messages = [{"role": "user", "content": [{"text": "[redacted]"}]}]

    agent.add_hook(redact)
    await agent.invoke_async("My password is 1234.")

    assert ["[redacted]"] == [each.prompt for each in probe.turns]


async def test_a_run_that_a_hook_resumes(make, probe, host):
    """Passes that hooks add belong to the same turn, which is committed with the final answer."""
    agent, again = make(Say(text="A draft."), ANSWER), iter(["Do better."])

    def resume(event: AfterInvocationEvent):
        event.resume = next(again, None)

    agent.add_hook(resume)
    result = await agent.invoke_async("One.")
    await host.drain()

    assert "We wait." == str(result).strip()
    assert ("before_prompt", "after_prompt") == probe.told
    assert ("One.", "We wait.") == (probe.turns[0].prompt, probe.answers[0].text)


async def test_an_interrupted_run_is_resumed(make, probe, host):
    """An interrupted run is dropped, and the resumed run commits a new turn with the same prompt."""
    agent = make(CALL, ANSWER)

    def ask(event: BeforeToolCallEvent):
        event.interrupt("approve", reason="may it?")

    agent.add_hook(ask)
    stopped = await agent.invoke_async("One.")
    reply = {"interruptResponse": {"interruptId": stopped.interrupts[0].id, "response": "yes"}}
    await agent.invoke_async([reply])
    await host.drain()

    assert ["One.", "One."] == [each.prompt for each in probe.turns]
    assert {
        probe.turns[0].id: ("on_turn_dropped",),
        probe.turns[1].id: ("after_prompt",),
    } == probe.endings()
    assert (DropReason.ABANDONED,) == probe.reasons
    assert ["echo"] == [each.tool for each in probe.results]


async def test_structured_output(make, probe, host):
    """A structured answer is learned as JSON."""

    class Verdict(BaseModel):
        """The decision."""

        day: str

    agent = make(CallTool(tool="Verdict", arguments={"day": "Thursday"}))

    result = await agent.invoke_async("One.", structured_output_model=Verdict)
    await host.drain()

    assert Verdict(day="Thursday") == result.structured_output
    assert ['{"day":"Thursday"}'] == [each.text for each in probe.answers]


async def test_the_deprecated_way_to_structured_output(make, probe):
    """`Agent.structured_output_async` works past all middleware, and opens no turn."""

    class Verdict(BaseModel):
        day: str

    agent = make()

    async def answer(*_, **__):
        yield {"output": Verdict(day="Thursday")}

    agent.model.structured_output = answer
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert Verdict(day="Thursday") == await agent.structured_output_async(Verdict, "One.")

    assert () == probe.told


async def test_a_retried_model_call(make, probe, host):
    """A model call that a hook repeats gets the same references, and the turn is committed once."""
    agent, again = make(Say(text="A draft."), ANSWER), iter([True])

    def repeat(event: AfterModelCallEvent):
        event.retry = next(again, False)

    agent.add_hook(repeat)
    await agent.invoke_async("One.")
    await host.drain()

    first, second = [texts(each["messages"]) for each in agent.model.requests]
    assert first == second
    assert ["We wait."] == [each.text for each in probe.answers]


# --- Tools ------------------------------------------------------------------------------------------------------------


async def test_a_retried_tool_call_is_told_of_once(make, probe, host):
    """A tool call that a hook repeats is reported once, with its last result."""
    tries = iter(["first", "second"])

    @tool
    def attempt() -> str:
        """Try."""
        return next(tries)

    agent = make(CallTool(tool="attempt"), ANSWER, tools=[attempt])

    def repeat(event: AfterToolCallEvent):
        event.retry = "first" in str(event.result)

    agent.add_hook(repeat)
    await agent.invoke_async("One.")
    await host.drain()

    assert [("attempt", "success", "second")] == [(each.tool, each.outcome, each.output) for each in probe.results]


async def test_what_is_told_of_a_tool(make, probe, host):
    """A result that a tool marks as an error is an error; JSON becomes text; each result has call id and duration."""

    @tool
    def count() -> dict:
        """Count."""
        return {"status": "success", "content": [{"json": {"n": 1}}, IMAGE, {"text": "done"}]}

    @tool
    def refuse() -> dict:
        """Refuse."""
        return {"status": "error", "content": [{"text": "not today"}]}

    agent = make(CallTool(tool="count", id="a"), CallTool(tool="refuse", id="b"), ANSWER, tools=[count, refuse])
    await agent.invoke_async("One.")
    await host.drain()

    assert [
        ("a", "success", '{"n":1}\ndone', None),
        ("b", "error", None, "not today"),
    ] == [(each.call_id, each.outcome, each.output, each.error) for each in probe.results]
    assert all(each.duration is not None for each in probe.results)


async def test_an_unknown_tool(make, probe, host):
    """A call of an unknown tool is reported as an error."""
    await make(CallTool(tool="nobody_has_this"), ANSWER).invoke_async("One.")
    await host.drain()

    assert [("nobody_has_this", "error")] == [(each.tool, each.outcome) for each in probe.results]


async def test_a_plugins_tool_that_fails(make, probe, host):
    """A failing tool of a plugin is an error for the model and for the plugins."""
    agent = make(CallTool(tool=PROBE_TOOL, arguments={"wrong": 1}), ANSWER)

    await agent.invoke_async("One.")
    await host.drain()

    (result,) = [each["toolResult"] for each in agent.messages[2]["content"]]
    assert ("error", True) == (result["status"], result["content"][0]["text"].startswith("[tool error]"))
    assert ["error"] == [each.outcome for each in probe.results]


async def test_a_plugin_that_goes_during_the_turn(make, host):
    """A tool of a plugin that was unregistered returns a text, and the turn goes on."""
    agent = make(CallTool(tool=PROBE_TOOL, arguments={"query": "x"}), ANSWER)

    async def unregister(_: BeforeToolCallEvent):
        await host.unregister("probe")

    agent.add_hook(unregister)
    result = await agent.invoke_async("One.")

    assert "We wait." == str(result).strip()
    assert "[tool error]" in str(agent.messages[2])


async def test_the_agents_own_tool_wins(make, host):
    """The agent's own tool wins over a plugin's tool of the same name, and is offered once."""

    @tool(name=PROBE_TOOL)
    def own(query: str) -> str:
        """Mine."""
        return f"my {query}"

    agent = make(CallTool(tool=PROBE_TOOL, arguments={"query": "x"}), ANSWER, tools=[own])

    await agent.invoke_async("One.")

    assert [PROBE_TOOL] == [each["name"] for each in agent.model.requests[0]["tools"]]
    assert "my x" in str(agent.messages[2])


async def test_calling_a_tool_directly(make, probe):
    """A tool that is called without a run is not part of any turn."""
    agent = make()

    await asyncio.to_thread(agent.tool.echo, text="x")

    assert () == probe.told


# --- Several agents ---------------------------------------------------------------------------------------------------


async def test_an_agent_as_a_tool(make, probe, host):
    """An inner agent with the plugin has its own turn, and is a tool of the outer turn."""
    plugin = BeaverPlugin(host)
    inner = make(Say(text="Inner answer."), plugin=plugin, name="inner")
    outer = make(
        CallTool(tool="inner", arguments={"input": "Inner prompt."}), ANSWER, plugin=plugin, tools=[inner.as_tool()]
    )

    await outer.invoke_async("Outer prompt.")
    await host.drain()

    assert ["Outer prompt.", "Inner prompt."] == [each.prompt for each in probe.turns]
    assert {"We wait.", "Inner answer."} == {each.text for each in probe.answers}
    assert ["inner"] == [each.tool for each in probe.results]
    assert 0 == opened(host)


async def test_agents_that_share_a_state(make, probe, host):
    """Agents of a graph run at once over one state, and each has its own turn and answer."""
    plugin, builder = BeaverPlugin(host), GraphBuilder()
    for name in ("left", "right"):
        builder.add_node(make(Say(text=f"I am {name}."), plugin=plugin, name=name), name)
        builder.set_entry_point(name)
    builder.set_max_node_executions(2)
    state = {"session_id": "shared", "user_id": "ann"}

    await builder.build().invoke_async("Who are you?", invocation_state=state)
    await host.drain()

    assert [("shared", "ann")] * 2 == [(each.session, each.user) for each in probe.turns]
    assert {"I am left.", "I am right."} == {each.text for each in probe.answers}
    assert [("after_prompt",)] * 2 == list(probe.endings().values())
    assert [] == [key for key in state if key.startswith("beaver")]


# --- Leftovers --------------------------------------------------------------------------------------------------------


async def _break_off(agent, prompt):
    """Read the first piece of an answer; return the stream, still open."""
    stream = agent.stream_async(prompt)
    async for event in stream:
        if "data" in event:
            break
    return stream


async def test_nothing_is_left_of_runs_that_are_broken_off(make, probe, host, monkeypatch):
    """Three hundred runs that are broken off leave no open turn and no object behind."""
    # What it logs when a stream is broken off holds a traceback, which pytest keeps, and so the run.
    monkeypatch.setattr(logging.getLogger("opentelemetry.context"), "disabled", True)
    gc.collect()
    before = sum(isinstance(each, AdapterTurn) for each in gc.get_objects())
    agent = make(*[Say(text="One two three four.")] * 300)
    for number in range(300):
        await (await _break_off(agent, f"Prompt {number}.")).aclose()
    await host.drain()
    for _ in range(20):  # the event loop closes the framework's own generators, a layer at a time
        gc.collect()
        await asyncio.sleep(0)

    assert (300, 0) == (len(probe.reasons), opened(host))
    assert {DropReason.CANCELLED} == set(probe.reasons)
    assert before == sum(isinstance(each, AdapterTurn) for each in gc.get_objects())


async def test_events_of_a_stream_are_json(make, probe):
    """The first event of `stream_async` is JSON, and differs from that without memory only by the turn's id."""
    agent, bare = make(ANSWER), Agent(model=ScriptedModel(Steps(ANSWER)), callback_handler=None)

    first = [await anext(each.stream_async("One.", invocation_state={"user_id": "anna"})) for each in (bare, agent)]

    without, with_ours = (json.loads(json.dumps(each)) for each in first)
    (name,) = with_ours.keys() - without.keys()
    (turn,) = probe.turns
    assert {**without, name: turn.id} == with_ours
    assert str is type(copy.deepcopy(first[1][name]))


async def test_a_stream_that_nobody_closes(make, probe, host):
    """A stream that is broken off and forgotten drops its turn once it is collected."""
    await _break_off(make(Say(text="One two three four.")), "One.")
    async with asyncio.timeout(30):
        while opened(host):
            gc.collect()
            await asyncio.sleep(0.001)
    await host.drain()

    assert ((), 1) == (probe.answers, len(probe.reasons))


async def test_a_state_that_the_caller_keeps(make, probe, host):
    """A reused state keeps nothing of a turn, also when hooks fail."""
    agent, state = make(Fail(), ANSWER, ANSWER), {}
    with pytest.raises(ModelDown):
        await agent.invoke_async("One.", invocation_state=state)
    assert [] == [key for key in state if key.startswith("beaver")]

    failing = iter([True])

    def fail(_: AfterInvocationEvent):
        if next(failing, False):
            raise ModelDown("not the model")

    agent.add_hook(fail)
    with pytest.raises(ModelDown):
        await agent.invoke_async("Two.", invocation_state=state)
    await agent.invoke_async("Three.", invocation_state=state)
    await asyncio.sleep(0)
    await host.drain()

    assert ["One.", "Two.", "Three."] == [each.prompt.splitlines()[-1] for each in probe.turns]
    assert [("on_turn_dropped",), ("on_turn_dropped",), ("after_prompt",)] == list(probe.endings().values())
    assert [] == [key for key in state if key.startswith("beaver")]


async def test_a_state_that_somebody_clears(make, probe, host):
    """A run whose state was cleared goes on without memory, and its turn is dropped."""
    agent = make(CALL, ANSWER)

    def clear(event: BeforeModelCallEvent):
        for key in [each for each in event.invocation_state if each.startswith("beaver")]:
            del event.invocation_state[key]

    agent.add_hook(clear)
    result = await agent.invoke_async("One.")
    await asyncio.sleep(0)
    await host.drain()

    assert "We wait." == str(result).strip()
    assert ((), (DropReason.ABANDONED,)) == (probe.answers, probe.reasons)


async def test_what_strands_stores(make, tmp_path):
    """Session files and snapshots hold the messages, and no part of memory."""
    manager = FileSessionManager(session_id="s1", storage_dir=str(tmp_path / "sessions"))
    agent = make(CALL, ANSWER, session_manager=manager, system_prompt="Base.")

    await agent.invoke_async("One.")

    files = "".join(path.read_text() for path in (tmp_path / "sessions").rglob("*.json"))
    kept = files + json.dumps(agent.take_snapshot(preset="session").to_dict(), default=str)
    assert "One." in kept
    assert [] == [each for each in (RECALLED, RULE, BLOCK, "beaver") if each in kept.replace(str(tmp_path), "")]


# --- Hosts ------------------------------------------------------------------------------------------------------------


def test_without_an_event_loop(tmp_path):
    """With a SyncHost `agent(...)` just works."""
    probe = Probe()
    with SyncHost({"probe": probe}, state_folder=tmp_path) as host:
        agent = Agent(model=ScriptedModel(Steps(ANSWER)), plugins=[BeaverPlugin(host)], callback_handler=None)
        assert "We wait." == str(agent("One.")).strip()
        host.drain()

    assert ("before_prompt", "after_prompt") == probe.told


async def test_a_host_of_another_loop(make):
    """`agent(...)` with a Host raises an error that names SyncHost."""
    with pytest.raises(WrongLoop, match="SyncHost"):
        await asyncio.to_thread(make(ANSWER), "One.")


def test_something_that_is_no_host():
    """A plugin without a host is refused at once."""
    with pytest.raises(HostMisused):
        BeaverPlugin(None)


async def test_the_error_of_a_fail_closed_plugin(tmp_path):
    """The error of a fail-closed plugin reaches the caller, and the agent goes on with its history unchanged."""
    async with Host(
        {"faulty": FaultPlugin("raise", "before_prompt")}, fail_closed=["faulty"], state_folder=tmp_path
    ) as host:
        agent = Agent(model=ScriptedModel(Steps(ANSWER)), plugins=[BeaverPlugin(host)], callback_handler=None)
        with pytest.raises(FaultError):
            await agent.invoke_async("One.")
        await host.unregister("faulty")
        await agent.invoke_async("Two.")

    assert [("user", "Two."), ("assistant", "We wait.")] == texts(agent.messages)
