import asyncio
import copy
import gc
import json
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from adapters.harness_langchain import REFUSAL, LangchainHarness, LangchainInLoopHarness, ScriptedModel, echo
from adapters.published import assert_published
from conformance.scripted import ModelDown
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    ToolErrorMiddleware,
    ToolRetryMiddleware,
    dynamic_prompt,
    hook_config,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from beaver_hooks.adapters.adapter_turn import AdapterTurn
from beaver_hooks.adapters.langchain import KEY, BeaverMiddleware, Run
from beaver_hostspecs import DropReason, HostMisused, HostNotOpen, Tool
from beaver_hostspecs.conformance import ECHO, HOST_CASES, Ask, CallTool, Fail, Hang, Say, examine
from beaver_hostspecs.conformance.probes import BLOCK, PROBE_TOOL, RECALLED, RULE, Probe
from beaver_hostspecs.testing import RecordingPlugin

BOTH = pytest.mark.parametrize("harness", [LangchainHarness, LangchainInLoopHarness])
ECHOED = CallTool(tool=ECHO, arguments={"text": "once"})
SEARCHED = CallTool(tool=PROBE_TOOL, arguments={"query": "thursday"})
ANSWERED = Say(text="On Thursday.")


@BOTH
@pytest.mark.parametrize("case", HOST_CASES, ids=str)
async def test_conformance(case, harness):
    """The adapter passes the case, or its card excuses it."""
    verdict = await examine(case, harness)
    assert_published(harness.card, verdict)


@asynccontextmanager
async def remembering(harness=LangchainHarness, **built):
    """Open an agent with a probe."""
    made, probe = harness(), Probe()
    await made.open({"probe": probe})
    try:
        made.build(**built)
        yield made, probe
    finally:
        await made.close()


def ask(*steps, prompt="When do we release?", **more):
    return Ask(prompt=prompt, steps=steps or (ANSWERED,), **more)


async def ended(made, probe):
    """Return how the turns ended: the answers that were learned, and why turns were dropped."""
    await asyncio.sleep(0)  # a turn that is let go of is dropped as soon as its loop gets to it
    await made.settle()
    return [each.text for each in probe.answers], list(probe.reasons)


async def collected(made, probe):
    """Return the same as `ended`, after the garbage collector has run."""
    for _ in range(100):  # a collection that another thread has begun makes ours do nothing
        gc.collect()
        found = await ended(made, probe)
        if all(probe.endings().values()):
            break
    return found


def alive(*kinds):
    """Return the objects of these types that no collection takes away."""
    for _ in range(100):
        gc.collect()
        found = [each for each in gc.get_objects() if type(each) in kinds]
        if not found:
            break
    return found


def told(probe):
    return [(each.tool, each.call_id, dict(each.arguments), each.output, each.error) for each in probe.results]


# --- Other middlewares -------------------------------------------------------------------------------------------


async def test_a_prompt_middleware_before_it_keeps_the_rules():
    """A middleware that writes the system prompt is listed before this one, and the rules follow its text."""

    @dynamic_prompt
    def written(request):
        return "A prompt that is written anew."

    async with remembering(before=[written]) as (made, _):
        await made.run(ask())

    assert f"A prompt that is written anew.\n\n{RULE}\n\n{BLOCK}" == made.calls[0].system


async def test_blocks_of_a_system_message_stay():
    """A system message in blocks keeps its blocks and their cache marks, and the rules are one more block."""
    marked = {"type": "text", "text": "Marked.", "cache_control": {"type": "ephemeral"}}
    seen = []

    class Seeing(AgentMiddleware):
        async def awrap_model_call(self, request, handler):
            seen.append(request.system_message.content)
            return await handler(request)

    async with remembering() as (made, _):
        made.agent = create_agent(
            ScriptedModel(harness=made),
            system_prompt=SystemMessage([marked]),
            middleware=[BeaverMiddleware(made.host), Seeing()],
        )
        await made.run(ask())

    assert [[marked, {"type": "text", "text": f"{RULE}\n\n{BLOCK}"}]] == seen


class Flaky(AgentMiddleware):
    """Fails twice before the model call."""

    def __init__(self):
        self.failures = 2

    def fail(self):
        self.failures -= 1
        if self.failures >= 0:
            raise ModelDown("not now")

    def wrap_model_call(self, request, handler):
        self.fail()
        return handler(request)

    async def awrap_model_call(self, request, handler):
        self.fail()
        return await handler(request)


@pytest.mark.parametrize("way", ["whole", "sync"])
@pytest.mark.parametrize("where", ["before", "after"])
async def test_a_model_that_is_asked_again(where, way):
    """An inner middleware that repeats the model call stays in one turn, and an outer one starts a turn per try."""
    retry = ModelRetryMiddleware(max_retries=3, initial_delay=0.0, on_failure="error")
    placed = {"before": [retry], "after": [Flaky()]} if where == "before" else {"after": [retry, Flaky()]}
    async with remembering(**placed) as (made, probe):
        assert "On Thursday." == await made.run(ask(ECHOED, ANSWERED, way=way))
        dropped = [DropReason.FAILED] * (2 if where == "before" else 0)
        assert (["On Thursday."], dropped) == await ended(made, probe)

    assert [("after_prompt",)] == [probe.endings()[probe.turns[-1].id]]
    assert 1 + len(dropped) == len(probe.turns)
    shown = [call.messages[0].text for call in made.calls]
    assert [True, True] == [probe.recalled[probe.turns[-1].id] in text for text in shown]
    assert [(ECHO, "call-1", {"text": "once"}, "once", None)] == told(probe)


def failing(*errors):
    """Return a tool that raises these errors and then works."""
    left = list(errors)

    @tool
    def flaky() -> str:
        """Fail, and then work."""
        if left:
            raise left.pop()
        return "at last"

    return flaky


@pytest.mark.parametrize("where", ["outside", "inside"])
async def test_a_tool_that_is_tried_again(where):
    """A tool that fails twice and then works is reported once, with the result that the model got."""
    retry = ToolRetryMiddleware(max_retries=3, initial_delay=0.0)
    async with remembering() as (made, probe):
        memory = BeaverMiddleware(made.host)
        made.agent = create_agent(
            ScriptedModel(harness=made),
            tools=[failing(ModelDown("nor now"), ModelDown("not now"))],
            middleware=[retry, memory] if where == "outside" else [memory, retry],
        )
        await made.run(ask(CallTool(tool="flaky"), ANSWERED))
        assert (["On Thursday."], []) == await ended(made, probe)

    assert [("flaky", "call-1", {}, "at last", None)] == told(probe)


@pytest.mark.parametrize("where", ["outside", "inside"])
async def test_a_tool_whose_failure_is_made_an_answer(where):
    """A tool's exception that another middleware turns into an answer is reported once, as an error."""
    errors = ToolErrorMiddleware(lambda error, request: "It is down.")
    async with remembering() as (made, probe):
        memory = BeaverMiddleware(made.host)
        made.agent = create_agent(
            ScriptedModel(harness=made),
            tools=[failing(ModelDown("not now"))],
            middleware=[errors, memory] if where == "outside" else [memory, errors],
        )
        await made.run(ask(CallTool(tool="flaky"), ANSWERED))
        assert (["On Thursday."], []) == await ended(made, probe)

    assert [("flaky", "call-1", {}, None, "It is down.")] == told(probe)


@pytest.mark.parametrize("way", ["whole", "sync"])
async def test_a_tool_whose_exception_ends_the_run(way):
    """A tool's exception that no middleware handles ends the run and drops the turn."""
    async with remembering() as (made, probe):
        made.agent = create_agent(
            ScriptedModel(harness=made),
            tools=[failing(ModelDown("not now"))],
            middleware=[BeaverMiddleware(made.host)],
        )
        made.scripts.begin(ask(CallTool(tool="flaky"), ANSWERED))

        def run():
            with pytest.raises(ModelDown):
                made.agent.invoke(**made.arguments(ask()))

        if way == "sync":
            await asyncio.to_thread(run)  # which lets go of the error before it returns
        else:
            with pytest.raises(ModelDown):
                await made.agent.ainvoke(**made.arguments(ask()))
        assert ([], [DropReason.FAILED]) == await collected(made, probe)


@pytest.mark.parametrize("where", ["before", "after"])
async def test_a_prompt_that_is_refused(where):
    """A run that a middleware ends before the model call asks no plugin to recall, and is not learned."""

    class Refusing(AgentMiddleware):
        @hook_config(can_jump_to=["end"])
        def before_agent(self, state, runtime):
            return {"messages": [AIMessage(REFUSAL)], "jump_to": "end"}

    async with remembering(**{where: [Refusing()]}) as (made, probe):
        assert REFUSAL == await made.run(ask())
        assert ([], []) == await ended(made, probe)

    assert () == probe.turns


async def test_a_limit_that_ends_the_run():
    """The text of a middleware that ends the run is not learned."""
    limit = ModelCallLimitMiddleware(run_limit=1, exit_behavior="end")
    async with remembering(after=[limit]) as (made, probe):
        assert "limits exceeded" in await made.run(ask(ECHOED, ANSWERED))
        assert ([], [DropReason.BLOCKED]) == await ended(made, probe)


async def test_an_answer_that_is_redacted_is_learned_as_the_user_got_it():
    """An answer that a middleware edits is learned as the user got it."""
    redacting = PIIMiddleware("email", strategy="redact", apply_to_output=True)
    async with remembering(after=[redacting]) as (made, probe):
        await made.run(ask(Say(text="Write to ann@example.com.")))
        assert (["Write to [REDACTED_EMAIL]."], []) == await ended(made, probe)


# --- Interrupts --------------------------------------------------------------------------------------------------


def config(session="session-1"):
    return {"configurable": {"thread_id": session}}


def results_of_the_last_turn(probe):
    last = probe.turns[-1].id
    results = [each.arguments for each in probe.calls_of("on_tool_result")]
    return [(each["result"].tool, each["result"].output) for each in results if each["turn"].id == last]


@BOTH
@pytest.mark.parametrize(("call", "output"), [(ECHOED, "once"), (SEARCHED, "found thursday in session-1")])
async def test_an_approval(harness, call, output):
    """A run that waits for an approval is dropped, and the resumed run is a new turn with the tool's result."""
    approving = HumanInTheLoopMiddleware(interrupt_on={ECHO: True, PROBE_TOOL: True})
    async with remembering(harness, after=[approving]) as (made, probe):
        made.scripts.begin(ask(call, ANSWERED))
        await made.agent.ainvoke(**made.arguments(ask()))
        assert ([], [DropReason.ABANDONED]) == await collected(made, probe)

        decided = Command(resume={"decisions": [{"type": "approve"}]})
        result = await made.agent.ainvoke(decided, config(), context={"user_id": "user-1"})
        assert "On Thursday." == result["messages"][-1].text
        learned, dropped = await ended(made, probe)

    assert ["On Thursday."] == learned
    assert {DropReason.ABANDONED} == set(dropped)
    assert [(call.tool, output)] == results_of_the_last_turn(probe)
    assert {("When do we release?", "session-1", "user-1")} == {
        (each.prompt, each.session, each.user) for each in (probe.turns[0], probe.turns[-1])
    }


async def test_an_approval_without_an_event_loop():
    """Without an event loop too, a run that waits is dropped, and the resumed run is a new turn."""
    approving = HumanInTheLoopMiddleware(interrupt_on={PROBE_TOOL: True})
    async with remembering(after=[approving]) as (made, probe):
        made.scripts.begin(ask(SEARCHED, ANSWERED))
        await asyncio.to_thread(made.agent.invoke, **made.arguments(ask()))
        decided = Command(resume={"decisions": [{"type": "approve"}]})
        await asyncio.to_thread(made.agent.invoke, decided, config())
        learned, dropped = await collected(made, probe)

    assert ["On Thursday."] == learned
    assert {DropReason.ABANDONED} == set(dropped)
    assert [(PROBE_TOOL, "found thursday in session-1")] == results_of_the_last_turn(probe)


async def test_a_tool_that_asks_the_user():
    """A tool that interrupts the run is not an error, and the resumed run reports it once."""

    @tool
    def asking() -> str:
        """Ask the user."""
        return interrupt("Which one?")

    async with remembering(tools=[asking]) as (made, probe):
        made.scripts.begin(ask(CallTool(tool="asking"), ANSWERED))
        await made.agent.ainvoke(**made.arguments(ask()))
        await made.agent.ainvoke(Command(resume="the second"), config())
        assert (["On Thursday."], [DropReason.ABANDONED]) == await collected(made, probe)

    assert [("asking", "call-1", {}, "the second", None)] == told(probe)


async def test_a_run_that_goes_on_after_a_stop():
    """A run that was stopped between two steps and is invoked without input goes on in a turn with its prompt."""
    async with remembering(interrupt_before=["tools"]) as (made, probe):
        made.scripts.begin(ask(ECHOED, ANSWERED))
        await made.agent.ainvoke(**made.arguments(ask()))
        await made.agent.ainvoke(None, config())
        assert (["On Thursday."], [DropReason.ABANDONED]) == await collected(made, probe)

    assert ["When do we release?"] * 2 == [each.prompt for each in probe.turns]


# --- Prompts, sessions, answers ----------------------------------------------------------------------------------


async def test_a_prompt_with_a_picture():
    """The texts of a prompt in several parts are the turn's prompt, without pictures."""
    picture = {"type": "image", "url": "https://example.com/a.png"}
    parts = [{"type": "text", "text": "What is this, "}, picture, {"type": "text", "text": "and why?"}]
    async with remembering() as (made, probe):
        made.scripts.begin(ask(prompt="What is this, and why?"))
        await made.agent.ainvoke({"messages": [HumanMessage(parts)]}, config())
        assert (["On Thursday."], []) == await ended(made, probe)

    assert ["What is this, and why?"] == [each.prompt for each in probe.turns]


@pytest.mark.parametrize("messages", [[("user", "")], [], [("assistant", "Hello.")]])
async def test_a_run_without_a_prompt(messages):
    """A run without a user message is a turn with an empty prompt."""

    class Answering(AgentMiddleware):
        async def awrap_model_call(self, request, handler):
            return AIMessage("What can I do for you?")

    async with remembering(after=[Answering()]) as (made, probe):
        await made.agent.ainvoke({"messages": messages}, config())
        assert (["What can I do for you?"], []) == await ended(made, probe)

    assert [""] == [each.prompt for each in probe.turns]


async def test_runs_without_a_session():
    """A run without a thread has its own session, or the default session if there is one."""
    async with remembering() as (made, probe):
        for memory in (BeaverMiddleware(made.host), BeaverMiddleware(made.host, session="all", user="ann")):
            agent = create_agent(ScriptedModel(harness=made), middleware=[memory])
            made.scripts.begin(ask())
            await agent.ainvoke({"messages": [("user", "When do we release?")]})

    first, second = probe.turns
    assert f"run-{first.id}" == first.session
    assert ("all", "ann") == (second.session, second.user)


async def test_the_user_is_an_attribute_of_the_context():
    """The user's id may be an attribute of the context."""
    async with remembering() as (made, probe):
        made.scripts.begin(ask())
        given = made.arguments(ask()) | {"context": SimpleNamespace(user_id=7, get={}.get)}
        await made.agent.ainvoke(**given)

    assert ["7"] == [each.user for each in probe.turns]


async def test_history_is_passed_on():
    """The turn has the earlier messages of the session, without tool results."""
    async with remembering() as (made, probe):
        await made.run(ask(ECHOED, ANSWERED))
        await made.run(ask(prompt="And who tests it?"))

    said = [(each.role, each.text) for each in probe.turns[1].history]
    assert [("user", "When do we release?"), ("assistant", "On Thursday.")] == said


async def test_a_structured_answer():
    """A structured answer is learned as JSON, and the tool that produced it is not reported."""

    class Date(BaseModel):
        day: str

    async with remembering(response_format=ToolStrategy(Date)) as (made, probe):
        made.scripts.begin(ask(ECHOED, CallTool(tool="Date", arguments={"day": "Thursday"}, id="call-2")))
        result = await made.agent.ainvoke(**made.arguments(ask()))
        assert Date(day="Thursday") == result["structured_response"]
        assert (['{"day":"Thursday"}'], []) == await ended(made, probe)

    assert [(ECHO, "call-1", {"text": "once"}, "once", None)] == told(probe)


async def test_a_tool_that_answers_the_user():
    """The result of a tool with `return_direct` is learned as the answer."""

    @tool(return_direct=True)
    def direct() -> str:
        """Answer."""
        return "From the tool."

    async with remembering(tools=[direct]) as (made, probe):
        await made.run(ask(CallTool(tool="direct")))
        assert (["From the tool."], []) == await ended(made, probe)

    assert [("direct", "call-1", {}, "From the tool.", None)] == told(probe)


async def test_the_agents_own_tool_of_a_name_wins():
    """The agent's own tool wins over a plugin's tool of the same name, and is offered once."""

    @tool(PROBE_TOOL)
    def own(query: str) -> str:
        """Search elsewhere."""
        return f"elsewhere: {query}"

    async with remembering(tools=[own]) as (made, probe):
        await made.run(ask(SEARCHED, ANSWERED))
        await ended(made, probe)

    assert [(PROBE_TOOL,)] * 2 == [call.tools for call in made.calls]
    assert [(PROBE_TOOL, "call-1", {"query": "thursday"}, "elsewhere: thursday", None)] == told(probe)


@BOTH
async def test_the_tool_of_a_plugin_that_is_gone(harness):
    """A tool of an unregistered plugin returns an error to the model."""
    async with remembering(harness) as (made, _):

        class Going(AgentMiddleware):
            async def aafter_model(self, state, runtime):
                if isinstance(made.calls, list) and len(made.calls) == 1:
                    await made.unregister("probe")

        made.build(after=[Going()])
        assert "On Thursday." == await made.run(ask(SEARCHED, ANSWERED))
        state = await made.agent.aget_state(config())

    assert "error" == state.values["messages"][2].status
    assert "there is no such tool" in state.values["messages"][2].text


async def test_a_plugins_tool_may_call_its_arguments_what_it_likes():
    """A plugin's tool may have arguments with the names of the framework's own."""
    names = ("self", "config", "run_manager", "callbacks", "run_id", "state", "runtime", "args", "kwargs")
    given = dict.fromkeys(names, "x")
    async with remembering() as (made, probe):
        await made.run(ask(CallTool(tool=PROBE_TOOL, arguments=given), ANSWERED))
        await ended(made, probe)

    ((_, _, arguments, _, error),) = told(probe)
    assert given == arguments
    assert "query" in error


# --- Agents in agents --------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("with_memory", [True, False])
async def test_an_agent_in_a_tool(harness, with_memory):
    """An agent that a tool runs has only its own memory, and not that of the calling agent."""
    async with remembering(harness) as (made, probe):
        inner = create_agent(
            ScriptedModel(harness=made), middleware=[BeaverMiddleware(made.host)] if with_memory else []
        )

        @tool
        async def delegate() -> str:
            """Ask another agent."""
            result = await inner.ainvoke({"messages": [("user", "The inner prompt.")]})
            return str(result["messages"][-1].text)

        made.build(tools=[delegate])
        made.scripts.begin(ask(Say(text="The inner answer."), prompt="The inner prompt."))
        assert "On Thursday." == await made.run(ask(CallTool(tool="delegate"), ANSWERED))
        learned, dropped = await ended(made, probe)

    assert (["The inner answer."] if with_memory else []) + ["On Thursday."] == learned
    assert [] == dropped
    assert [with_memory] == [RECALLED in str(call) for call in made.calls if "The inner prompt." in str(call)]
    assert ["The inner answer."] == [each.output for each in probe.results]


# --- Leftovers ---------------------------------------------------------------------------------------------------


async def test_what_is_stored_and_streamed():
    """Checkpointer and result hold nothing of memory, and a full stream shows the turn's id."""
    saver = InMemorySaver()
    async with remembering(checkpointer=saver) as (made, probe):
        made.scripts.begin(ask())
        shown = [each async for each in made.agent.astream(**made.arguments(ask()), stream_mode=["updates", "values"])]
        made.scripts.begin(ask())
        result = await made.agent.ainvoke(**made.arguments(ask()))
        state = await made.agent.aget_state(config())

    stored = repr((saver.storage, saver.blobs, saver.writes))
    assert [] == [text for text in (RECALLED, probe.turns[0].id, probe.turns[1].id) if text in stored]
    assert ({"messages"}, {"messages"}) == (set(result), set(state.values))
    runs = [
        each[KEY] for _, chunk in shown for each in (chunk, *chunk.values()) if isinstance(each, dict) and KEY in each
    ]
    assert {json.dumps(probe.turns[0].id)} == {json.dumps(each) for each in runs}
    assert {str} == {type(copy.deepcopy(each)) for each in runs}


@BOTH
async def test_runs_that_are_broken_off_leave_nothing_behind(harness):
    """Three hundred runs that fail, hang or lose their consumer leave no turn and no object behind."""
    asked = asyncio.Event()

    class Watching(AgentMiddleware):
        async def awrap_model_call(self, request, handler):
            asked.set()
            return await handler(request)

    assert [] == alive(AdapterTurn)
    gc.disable()
    try:
        async with remembering(harness, after=[Watching()]) as (made, probe):
            for number in range(100):
                prompt = f"Prompt {number}."
                with pytest.raises(ModelDown):
                    await made.run(ask(Fail(), prompt=prompt, session=f"a{number}"))
                await made.run(ask(Say(text="One two three."), prompt=prompt, session=f"b{number}", way="break_off"))
                asked.clear()
                task = asyncio.create_task(made.run(ask(Hang(), prompt=prompt, session=f"c{number}")))
                await asked.wait()
                task.cancel()
                await asyncio.wait([task])
                del task
            learned, dropped = await ended(made, probe)
            left = sum(type(each) is AdapterTurn for each in gc.get_objects())
    finally:
        gc.enable()

    assert ([], 300, 0) == (learned, len(dropped), left)
    assert 100 == dropped.count(DropReason.FAILED)
    assert [] == alive(AdapterTurn, Run)


async def test_a_failure_without_an_event_loop():
    """Without an event loop too, a model that fails drops the turn."""
    async with remembering() as (made, probe):
        with pytest.raises(ModelDown):
            await made.run(ask(Fail(), way="sync"))
        assert ([], [DropReason.FAILED]) == await ended(made, probe)


# --- Where memory has nothing to add -----------------------------------------------------------------------------


class Appending(AgentMiddleware):
    """Appends a message to the list of the request itself, and returns nothing."""

    async def awrap_model_call(self, request, handler):
        request.messages.append(SystemMessage("Appended."))
        return await handler(request)


class Keeping(AgentMiddleware):
    """Calls the model a second time with the original request."""

    def __init__(self):
        self.seen = []

    async def awrap_model_call(self, request, handler):
        await handler(request)
        self.seen += [str(each.text) for each in request.messages]
        return await handler(request)


async def appended(made, *middlewares):
    """Return the texts of a request after an inner middleware has appended to it."""
    keeping = Keeping()
    made.agent = create_agent(ScriptedModel(harness=made), middleware=[keeping, *middlewares, Appending()])
    made.scripts.begin(ask(ANSWERED, ANSWERED))
    await made.agent.ainvoke({"messages": [("user", "When do we release?")]})
    return keeping.seen


async def test_nothing_to_add_changes_nothing():
    """Without a contribution, the request of an inner middleware is the same as without memory."""
    made = LangchainHarness()
    await made.open({})
    try:
        without, with_ours = await appended(made), await appended(made, BeaverMiddleware(made.host))
    finally:
        await made.close()

    assert (["When do we release?", "Appended."], without) == (without, with_ours)


async def test_only_what_is_added_to_changes():
    """With a plugin that only has a tool, the request keeps its own message objects."""
    found = []

    class Noting(AgentMiddleware):
        async def awrap_model_call(self, request, handler):
            found.append((request.messages, request.system_message, [each.name for each in request.tools]))
            return await handler(request)

    async def run(*_):
        return "found"

    made = LangchainHarness()
    tools = [Tool(name="only", description="about", parameters={}, run=run)]
    await made.open({"p": RecordingPlugin(tools=tools)})
    try:
        made.agent = create_agent(
            ScriptedModel(harness=made),
            system_prompt="Base.",
            middleware=[Noting(), BeaverMiddleware(made.host), type("Inner", (Noting,), {})()],
        )
        made.scripts.begin(ask())
        await made.agent.ainvoke({"messages": [("user", "When do we release?")]})
    finally:
        await made.close()

    (before, base, none), (after, still, offered) = found
    assert (True, True, [], ["only"]) == (before is after, base is still, none, offered)


# --- Use ---------------------------------------------------------------------------------------------------------


async def test_one_line_of_use():
    """An agent needs only the middleware over a host, with or without tools of its own."""
    async with remembering() as (made, probe):
        for tools in ([], [echo]):
            agent = create_agent(ScriptedModel(harness=made), tools=tools, middleware=[BeaverMiddleware(made.host)])
            made.scripts.begin(ask())
            await agent.ainvoke({"messages": [("user", "When do we release?")]})
        assert (["On Thursday."] * 2, []) == await ended(made, probe)


async def test_a_host_has_no_way_in_without_its_loop():
    """With a `Host`, `invoke` is refused, and a closed host raises `HostNotOpen`."""
    async with remembering(LangchainInLoopHarness) as (made, _):
        with pytest.raises(HostMisused, match="SyncHost"):
            await made.run(ask(way="sync"))
    with pytest.raises(HostNotOpen):
        await made.run(ask())
