import asyncio
import contextlib
import gc
import json
import re
import weakref

import anyio
import attrs
import pydantic_ai
import pytest
from adapters.harness_pydantic_ai import PydanticAIHarness, PydanticAIInLoopHarness, texts
from adapters.letting_go import collected
from adapters.published import assert_published
from pydantic_ai import Agent, BinaryContent, ModelRetry
from pydantic_ai.capabilities import AbstractCapability, ProcessHistory
from pydantic_ai.exceptions import ApprovalRequired, ContentFilterError, SkipToolExecution
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturn,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults

from beaver_hooks import Host, SyncHost
from beaver_hooks.adapters.core import AdapterTurn
from beaver_hooks.adapters.pydantic_ai import BeaverMemory
from beaver_hostspecs import DropReason, HostMisused, Message, Tool
from beaver_hostspecs.conformance import HOST_CASES, examine
from beaver_hostspecs.conformance.probes import PROBE_TOOL, RECALLED, Probe
from beaver_hostspecs.testing import Fault, FaultError, FaultPlugin, RecordingPlugin

MAJOR = int(pydantic_ai.__version__.split(".", 1)[0])
BOTH = pytest.mark.parametrize("harness", [PydanticAIHarness, PydanticAIInLoopHarness])


@BOTH
@pytest.mark.parametrize("case", HOST_CASES, ids=str)
async def test_conformance(case, harness):
    """The adapter passes the case, or its card excuses it."""
    verdict = await examine(case, harness)
    assert_published(harness.card, verdict)


# --- What the suite does not show --------------------------------------------------------------------------------


@pytest.fixture
def probe():
    return Probe()


@pytest.fixture
async def host(probe, tmp_path):
    async with Host({"probe": probe}, state_folder=tmp_path) as host:
        yield host


@pytest.fixture
def memory(host):
    return BeaverMemory(host)


class Model(FunctionModel):
    """Answers with the given texts and tool calls in order, and records its requests."""

    def __init__(self, *steps, name="model"):
        super().__init__(self._next, stream_function=self._pieces, model_name=name)
        self.steps = list(steps)
        self.sent = []
        self.tools = []

    def _next(self, messages, info):
        self.sent.append(messages)
        self.tools.append({tool.name: tool for tool in info.function_tools})
        step = self.steps.pop(0)
        return ModelResponse(parts=[TextPart(step) if isinstance(step, str) else step])

    async def _pieces(self, messages, info):
        for word in self._next(messages, info).parts[0].content.split(" "):
            yield f"{word} "
            await asyncio.sleep(0)


def references(messages):
    return [text for _, text in texts(messages) if RECALLED in text]


async def test_the_line_of_use(host, probe, memory):
    """One capability gives an agent memory."""
    agent = Agent(Model("Hello."), capabilities=[memory])

    result = await agent.run("Hi.", conversation_id="s1", metadata={"user_id": "u1"})
    await host.drain()

    assert "Hello." == result.output
    assert [("Hi.", "s1", "u1")] == [(turn.prompt, turn.session, turn.user) for turn in probe.turns]
    assert ["Hello."] == [answer.text for answer in probe.answers]


async def test_given_for_one_run(host, probe, memory):
    """A capability that is given to one run works for that run only."""
    agent = Agent(Model("With.", "Without."))

    await agent.run("Hi.", capabilities=[memory])
    await agent.run("Hi.")
    await host.drain()

    assert ["With."] == [answer.text for answer in probe.answers]


async def test_not_a_host():
    """The capability refuses anything that is not a host when it is made."""
    with pytest.raises(HostMisused, match="takes a Host or a SyncHost"):
        BeaverMemory("host")


async def test_fail_closed_in_a_stream(tmp_path):
    """The one error of a fail-closed plugin reaches the caller of a stream."""
    faulty = FaultPlugin(Fault.RAISE, "before_prompt")
    model = Model("Hello.")
    async with Host({"faulty": faulty}, fail_closed=["faulty"], state_folder=tmp_path) as host:
        agent = Agent(model, capabilities=[BeaverMemory(host)])

        with pytest.raises(FaultError):
            async with agent.run_stream("Hi."):
                pass

    assert [] == model.sent


# --- Who and where -----------------------------------------------------------------------------------------------


async def test_no_conversation(host, probe, memory):
    """A run without a conversation has its own session, and a run with its messages stays in that session."""
    agent = Agent(Model("One.", "Two.", "Three."), capabilities=[memory])

    first = await agent.run("First.")
    await agent.run("Second.", message_history=first.all_messages())
    await agent.run("Third.")

    one, two, three = (turn.session for turn in probe.turns)
    assert one == two
    assert one != three


@pytest.mark.skipif(MAJOR == 1, reason="major 1 has no seam for a default conversation")
async def test_default_session(host, probe):
    """Runs without a conversation use the default session."""
    agent = Agent(Model("One.", "Two."), capabilities=[BeaverMemory(host, session="mine", user="me")])

    await agent.run("First.")
    await agent.run("Second.", conversation_id="other")

    assert [("mine", "me"), ("other", "me")] == [(turn.session, turn.user) for turn in probe.turns]


@pytest.mark.skipif(MAJOR > 1, reason="later majors have a seam for a default conversation")
async def test_no_default_session(host):
    """On major 1 a default session is refused with the remedy to pass `conversation_id`."""
    with pytest.raises(HostMisused, match="pass `conversation_id`"):
        BeaverMemory(host, session="mine")


@attrs.frozen
class Deps:
    user_id: object


@pytest.mark.parametrize(
    ("deps", "user"),
    [(Deps("u1"), "u1"), ({"user_id": "u2"}, "u2"), (Deps(7), "7"), (Deps(object()), None), ({}, None), (None, None)],
)
async def test_user_in_deps(host, probe, memory, deps, user):
    """The user may be in the run's dependencies, as a text or a number, but not as another object."""
    agent = Agent(Model("Hello."), capabilities=[memory], deps_type=object)

    await agent.run("Hi.", deps=deps)

    assert user == probe.turns[0].user


async def test_history(host, probe, memory):
    """The turn has the earlier messages of the user and the assistant."""
    model = Model("One.", ToolCallPart("look", {}), "Two.", "Three.")
    agent = Agent(model, capabilities=[memory], instructions="Base.")
    agent.tool_plain(lambda: "found", name="look")

    first = await agent.run("First.")
    second = await agent.run("Second.", message_history=first.all_messages())
    await agent.run("Third.", message_history=second.all_messages())

    said = ("user", "First."), ("assistant", "One."), ("user", "Second."), ("assistant", "Two.")
    assert tuple(Message(role=role, text=text) for role, text in said) == probe.turns[2].history


# --- Prompts and answers of all kinds ----------------------------------------------------------------------------


async def test_multimodal_prompt(host, probe, memory):
    """The turn's prompt is the texts of a prompt in several parts."""
    model = Model("A cat.")
    picture = BinaryContent(b"...", media_type="image/png")

    await Agent(model, capabilities=[memory]).run(["What is this?", picture, "Be short."])

    assert "What is this?\nBe short." == probe.turns[0].prompt
    assert ["What is this?", picture, "Be short."] == model.sent[0][0].parts[-1].content


async def test_run_without_prompt(host, probe, memory):
    """A run without a prompt has the last prompt of its history."""
    agent = Agent(Model("Hello."), capabilities=[memory])
    history = [
        ModelRequest(parts=[UserPromptPart("Before.")]),
        ModelResponse(parts=[TextPart("Yes.")]),
        ModelRequest(parts=[UserPromptPart("Hi.")]),
    ]

    await agent.run(message_history=history)
    await host.drain()

    said = (Message(role="user", text="Before."), Message(role="assistant", text="Yes."))
    assert [("Hi.", said)] == [(turn.prompt, turn.history) for turn in probe.turns]
    assert ["Hello."] == [answer.text for answer in probe.answers]


async def test_run_without_any_text(host, probe, memory):
    """A run without a prompt is a turn with an empty prompt."""
    model = Model("Hello.")
    await Agent(model, capabilities=[memory], instructions="Greet.").run()
    await host.drain()

    assert [""] == [turn.prompt for turn in probe.turns]
    assert 1 == len(references(model.sent[0]))
    assert ["Hello."] == [answer.text for answer in probe.answers]


async def test_history_that_begins_with_an_answer(host, memory):
    """References stand before a history that begins with an answer."""
    model = Model("Hello.")
    history = [ModelResponse(parts=[TextPart("Welcome.")])]

    await Agent(model, capabilities=[memory]).run("Hi.", message_history=history)

    kinds = [text if RECALLED not in text else "recalled" for _, text in texts(model.sent[0])]
    assert ["recalled", "Welcome.", "Hi."] == kinds


async def test_system_prompt_stays_first(host, memory):
    """References stand after a system prompt in the history, in the same request."""
    model = Model("Hello.")

    await Agent(model, capabilities=[memory], system_prompt="Base.").run("Hi.")

    assert ["system-prompt", "user-prompt", "user-prompt"] == [part.part_kind for part in model.sent[0][0].parts]
    assert RECALLED in model.sent[0][0].parts[1].content


async def test_structured_output(host, probe, memory):
    """A structured answer is learned as JSON."""
    model = Model(ToolCallPart("final_result", {"response": ["Köln", 7]}))
    agent = Agent(model, capabilities=[memory], output_type=list[str | int])

    await agent.run("Where?")
    await host.drain()

    assert ['["Köln",7]'] == [answer.text for answer in probe.answers]
    assert () == probe.results


async def test_answers_again(host, probe, memory):
    """An answer that a validator sends back stays in one turn, which is committed with the accepted answer."""
    model = Model("Wrong.", "Right.")
    agent = Agent(model, capabilities=[memory])

    @agent.output_validator
    def check(output: str) -> str:
        if output == "Wrong.":
            raise ModelRetry("try again")
        return output

    await agent.run("Hi.")
    await host.drain()

    assert (1, ["Right."]) == (len(probe.turns), [answer.text for answer in probe.answers])
    assert references(model.sent[0]) == references(model.sent[1])


async def test_deferred_tools(host, probe, memory):
    """A run that stops for an approval is dropped, and the resumed run is a new turn with the same prompt."""
    model = Model(ToolCallPart("delete", {}, "call-1"), "Done.")
    agent = Agent(model, capabilities=[memory], output_type=[str, DeferredToolRequests])
    agent.tool_plain(lambda: "deleted", name="delete", requires_approval=True)

    stopped = await agent.run("Delete it.", conversation_id="s1")
    await host.drain()
    assert isinstance(stopped.output, DeferredToolRequests)
    assert ((), (DropReason.ABANDONED,), ()) == (probe.answers, probe.reasons, probe.results)

    approved = DeferredToolResults(approvals={"call-1": True})
    await agent.run(message_history=stopped.all_messages(), deferred_tool_results=approved)
    await host.drain()
    assert [("s1", "Delete it.")] * 2 == [(turn.session, turn.prompt) for turn in probe.turns]
    assert ["Done."] == [answer.text for answer in probe.answers]
    assert [("delete", "deleted")] == [(result.tool, result.output) for result in probe.results]


async def test_content_filter(host, probe, memory):
    """An answer that the provider's filter blocks is dropped as blocked."""

    def refuse(messages, info):
        raise ContentFilterError("filtered")

    with pytest.raises(ContentFilterError):
        await Agent(FunctionModel(refuse), capabilities=[memory]).run("Hi.")
    await host.drain()

    assert ((), (DropReason.BLOCKED,)) == (probe.answers, probe.reasons)


# --- Other ways to run -------------------------------------------------------------------------------------------


async def test_iterated(host, probe, memory):
    """An iterated agent has a turn like any other."""
    agent = Agent(Model("Hello."), capabilities=[memory])

    async with agent.iter("Hi.") as run:
        async for _ in run:
            await host.drain()
            assert () == probe.answers
    await host.drain()

    assert ["Hello."] == [answer.text for answer in probe.answers]


async def test_iteration_broken_off(host, probe, memory):
    """An iteration that is left before its end is dropped at once."""
    agent = Agent(Model("Hello."), capabilities=[memory])

    async with agent.iter("Hi.") as run:
        async for _ in run:
            break
    await host.drain()

    assert ((), (DropReason.CANCELLED,)) == (probe.answers, probe.reasons)


async def test_consumer_raises(host, probe, memory):
    """A stream whose consumer raises has no answer."""
    agent = Agent(Model("Hello to you."), capabilities=[memory])

    async def consume():
        async with agent.run_stream("Hi.") as result:
            async for _ in result.stream_text(debounce_by=None):
                raise KeyError

    with pytest.raises(KeyError):
        await consume()
    await host.drain()

    assert ((), (DropReason.FAILED,)) == (probe.answers, probe.reasons)


async def test_events(host, probe, memory):
    """A stream of events is committed at its end."""
    agent = Agent(Model("Hello to you."), capabilities=[memory])

    async with agent.run_stream_events("Hi.") as events:
        result = [event async for event in events][-1].result
    await host.drain()

    assert [result.output] == [answer.text for answer in probe.answers]


async def test_nested_agents(host, probe, memory):
    """An agent that a tool runs has its own turns, and each is committed with its own answer."""
    inner = Agent(Model("Inner answer."), capabilities=[memory])
    outer = Agent(Model(ToolCallPart("ask", {}), "Outer answer."), capabilities=[memory])

    @outer.tool_plain
    async def ask() -> str:
        return (await inner.run("Inner prompt.", conversation_id="inner")).output

    await outer.run("Outer prompt.", conversation_id="outer")
    await host.drain()

    told = {call.arguments["turn"].session: call.arguments["answer"].text for call in probe.calls_of("after_prompt")}
    assert {"inner": "Inner answer.", "outer": "Outer answer."} == told
    assert [("ask", "Inner answer.")] == [(result.tool, result.output) for result in probe.results]


# --- Tools -------------------------------------------------------------------------------------------------------


async def _found(arguments, turn, report):
    return "the plugin's"


async def test_same_name(host, probe, memory):
    """A plugin's tool gives way to the agent's own tool of the same name."""
    tool = Tool(name="look", description="Look.", parameters={"type": "object"}, run=_found)
    await host.register("other", RecordingPlugin(tools=[tool]))
    model = Model(ToolCallPart("look", {}), "Done.")
    agent = Agent(model, capabilities=[memory])
    agent.tool_plain(lambda: "the agent's", name="look")

    await agent.run("Look.")
    await host.drain()

    assert {"look", PROBE_TOOL} == set(model.tools[0])
    assert ["the agent's"] == [result.output for result in probe.results]


async def test_tool_of_a_plugin_that_goes(host, probe, memory):
    """The tool of a plugin unregistered during a turn answers that there is no such tool."""
    tool = Tool(name="look", description="Look.", parameters={"type": "object"}, run=_found)
    await host.register("other", RecordingPlugin(tools=[tool]))
    model = Model(ToolCallPart("leave", {}), ToolCallPart("look", {}, "call-2"), "Done.")
    agent = Agent(model, capabilities=[memory])

    @agent.tool_plain
    async def leave() -> str:
        await host.unregister("other")
        return "gone"

    assert "Done." == (await agent.run("Look.")).output
    await host.drain()

    assert [("leave", "success"), ("look", "error")] == [(result.tool, result.outcome) for result in probe.results]
    assert "there is no such tool" in model.sent[2][-1].parts[-1].content


async def test_schema_is_unchanged(host, memory):
    """The model gets a plugin's tool exactly as the plugin describes it."""
    model = Model("Hello.")

    await Agent(model, capabilities=[memory]).run("Hi.")

    offered = model.tools[0][PROBE_TOOL]
    expected = {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "what to look for"}},
        "required": ["query"],
        "additionalProperties": False,
    }
    assert ("Search the probe.", expected) == (offered.description, offered.parameters_json_schema)


async def test_arguments_that_are_no_json(host, probe, memory):
    """Arguments that are not JSON make the model try again, and the turn goes on."""
    model = Model(ToolCallPart(PROBE_TOOL, "{"), ToolCallPart(PROBE_TOOL, '{"query": "x"}', "call-2"), "Done.")

    assert "Done." == (await Agent(model, capabilities=[memory]).run("Look.")).output
    await host.drain()

    assert [("call-2", "success")] == [(result.call_id, result.outcome) for result in probe.results]


async def test_tool_that_ends_the_run(host, probe, memory):
    """The result of a tool that raises has the kind of its error, and the run is dropped."""
    agent = Agent(Model(ToolCallPart("burn", {})), capabilities=[memory])

    @agent.tool_plain
    def burn() -> str:
        raise KeyError("the secret")

    with pytest.raises(KeyError):
        await agent.run("Burn.")
    await host.drain()

    assert [("burn", "error", "KeyError")] == [(each.tool, each.outcome, each.error) for each in probe.results]
    assert ((), (DropReason.FAILED,)) == (probe.answers, probe.reasons)


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ({"when": ("Thursday", 7)}, '{"when":["Thursday",7]}'),
        (ToolReturn(return_value="short", content="long", metadata={"for": "the application"}), "short"),
        (BinaryContent(b"...", media_type="image/png"), "[image/png]"),
        (b"\xff", "[1 bytes]"),
        (None, "null"),
    ],
    ids=["data", "tool return", "picture", "bytes", "nothing"],
)
async def test_what_tools_return(host, probe, memory, returned, told):
    """The turn gets the result of any tool as text."""
    agent = Agent(Model(ToolCallPart("give", {}), "Done."), capabilities=[memory])
    agent.tool_plain(lambda: returned, name="give")

    await agent.run("Give.")
    await host.drain()

    assert [told] == [result.output for result in probe.results]


async def test_result_that_cannot_be_written_down(host, probe, memory):
    """A result that cannot be written as JSON is still reported as a success."""
    endless = []
    endless.append(endless)
    agent = Agent(Model(ToolCallPart("give", {}), "Done."), capabilities=[memory])
    agent.tool_plain(lambda: endless, name="give")

    with contextlib.suppress(ValueError, RecursionError):
        await agent.run("Give.")
    await host.drain()

    assert [("give", "success")] == [(result.tool, result.outcome) for result in probe.results]


async def test_tool_that_asks_for_approval(host, probe, memory):
    """A tool that asks for an approval has no result, and its run is dropped."""
    agent = Agent(Model(ToolCallPart("ask", {})), capabilities=[memory], output_type=[str, DeferredToolRequests])

    @agent.tool_plain
    def ask() -> str:
        raise ApprovalRequired

    await agent.run("Ask.")
    await host.drain()

    assert ((), (), (DropReason.ABANDONED,)) == (probe.results, probe.answers, probe.reasons)


# --- Other capabilities ------------------------------------------------------------------------------------------


async def test_history_processor(host, memory):
    """A history processor sees no reference, and none is stored."""
    seen = []

    def process(messages):
        seen.append(list(messages))
        return messages[-1:]

    model = Model("One.", "Two.")
    agent = Agent(model, capabilities=[memory, ProcessHistory(process)])

    first = await agent.run("First.")
    second = await agent.run("Second.", message_history=first.all_messages())

    assert [1, 1] == [len(references(sent)) for sent in model.sent]
    assert [[], []] == [references(messages) for messages in seen]
    assert [] == references(second.all_messages())


async def test_stored_messages(host, memory):
    """The framework's stored messages hold no reference and nothing of the adapter."""
    agent = Agent(Model(ToolCallPart(PROBE_TOOL, {"query": "x"}), "Done."), capabilities=[memory])

    result = await agent.run("Hi.", metadata={"user_id": "u1"})
    written = result.all_messages_json().decode()

    assert RECALLED not in written
    assert None is re.search(r"beaver|turn-[0-9a-f]+", written.replace("Beaver", ""))
    assert {"user_id": "u1"} == result.metadata
    assert result.all_messages() == ModelMessagesTypeAdapter.validate_json(written)


class Refusing(AbstractCapability):
    def __init__(self, where):
        self.where = where

    async def after_run(self, ctx, *, result):
        if self.where == "after_run":
            raise PermissionError("refused")
        return result

    async def wrap_run(self, ctx, *, handler):
        result = await handler()
        if self.where == "wrap_run":
            raise PermissionError("refused")
        return result


@pytest.mark.parametrize("where", ["after_run", "wrap_run"])
@pytest.mark.parametrize("order", [1, -1])
async def test_refused_by_a_capability(host, probe, memory, where, order):
    """An answer that another capability refuses is not learned, in either order of the capabilities."""
    agent = Agent(Model("A secret."), capabilities=[memory, Refusing(where)][::order])

    with pytest.raises(PermissionError):
        await agent.run("Hi.")
    await collected(host, probe)

    assert ((), (DropReason.FAILED,)) == (probe.answers, probe.reasons)


class Recovering(AbstractCapability):
    def __init__(self, where):
        self.where = where

    async def wrap_run(self, ctx, *, handler):
        try:
            return await handler()
        except ConnectionError:
            if self.where != "wrap_run":
                raise
            return AgentRunResult("Recovered.")

    async def on_run_error(self, ctx, *, error):
        if self.where != "on_run_error":
            raise error
        return AgentRunResult("Recovered.")


@pytest.mark.parametrize("where", ["on_run_error", "wrap_run"])
async def test_recovered_by_a_capability(host, probe, memory, where):
    """A run that another capability recovers is committed with the answer that the user got."""

    def fail(messages, info):
        raise ConnectionError

    agent = Agent(FunctionModel(fail), capabilities=[memory, Recovering(where)])

    assert "Recovered." == (await agent.run("Hi.")).output
    await host.drain()

    assert (["Recovered."], ()) == ([answer.text for answer in probe.answers], probe.reasons)


class Skipping(AbstractCapability):
    async def wrap_tool_execute(self, ctx, *, call, tool_def, args, handler):
        raise SkipToolExecution("from elsewhere")


async def test_skipped_tool(host, probe, memory):
    """The result of a tool call that another capability answers holds that capability's answer."""
    agent = Agent(Model(ToolCallPart("look", {}), "Done."), capabilities=[memory, Skipping()])
    agent.tool_plain(lambda: "found", name="look")

    await agent.run("Hi.")
    await host.drain()

    assert [("look", "success", "from elsewhere")] == [(e.tool, e.outcome, e.output) for e in probe.results]


# --- Nothing is left ---------------------------------------------------------------------------------------------


async def _break_off(agent, number):
    async with agent.run_stream(f"Prompt {number}.", conversation_id=f"s{number}") as result:
        async for _ in result.stream_text(debounce_by=None):
            break


async def test_growth(host, probe, memory):
    """Three hundred runs that are broken off leave no open turn and no object."""
    model = Model(*["Hello to you."] * 300)
    agent = Agent(model, capabilities=[memory])
    alive = weakref.WeakSet()
    opened = memory._adapter.open

    async def remembering(*arguments, **fields):
        turn = await opened(*arguments, **fields)
        alive.add(turn)
        return turn

    memory._adapter.open = remembering
    for number in range(300):
        await _break_off(agent, number)
        model.sent.clear()
        model.tools.clear()
    await host.drain()
    for _ in range(5):  # the loop closes the generators that the framework left behind
        gc.collect()
        await asyncio.sleep(0)

    assert (300, (DropReason.CANCELLED,) * 300, ()) == (len(probe.turns), probe.reasons, probe.answers)
    assert [] == list(alive)
    assert [] == [each for each in gc.get_objects() if isinstance(each, AdapterTurn)]
    assert {"_adapter", "_session", "_turn", "_tools"} == set(vars(memory))
    assert (None, ()) == memory.offers()


@pytest.mark.parametrize("way", ["whole", "stream"])
async def test_cancelled_in_a_scope(probe, tmp_path, way):
    """A run that a cancelled scope ends is dropped, although it can await nothing more."""
    host = SyncHost({"probe": probe}, state_folder=tmp_path)
    await asyncio.to_thread(host.open)
    memory, asked = BeaverMemory(host), asyncio.Event()

    async def hang(messages, info):
        asked.set()
        await asyncio.Event().wait()

    async def hanging(messages, info):
        yield "Hello "
        await hang(messages, info)

    agent = Agent(FunctionModel(hang, stream_function=hanging), capabilities=[memory])

    async def run():
        if way == "whole":
            await agent.run("Hi.")
        else:
            async with agent.run_stream("Hi.") as result:
                async for _ in result.stream_text(debounce_by=None):
                    pass

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await asked.wait()
        group.cancel_scope.cancel()
    gc.collect()
    await asyncio.to_thread(host.close)

    assert ((), (DropReason.CANCELLED,)) == (probe.answers, probe.reasons)


class Swapping(AbstractCapability):
    """Replaces the model of a request, and records the model that other capabilities see afterwards."""

    def __init__(self, model):
        self.model = model
        self.seen = []

    async def wrap_model_request(self, ctx, *, request_context, handler):
        if MAJOR == 1:
            request_context.model = self.model
        return await handler(request_context)

    async def prepare_model_request(self, ctx, request_context):
        request_context.model = self.model
        return request_context

    async def after_model_request(self, ctx, *, request_context, response):
        told = [text for _, text in texts(request_context.messages)]
        self.seen.append((request_context.model.model_name, [text for text in told if RECALLED not in text]))
        return response


@pytest.mark.parametrize("remembers", [False, True], ids=["alone", "with memory"])
@pytest.mark.parametrize("way", ["whole", "stream"])
async def test_another_model_by_another_capability(memory, way, remembers):
    """Other capabilities see the model that has answered, as they do without memory."""
    other = Model("Other.", name="other")
    swapping = Swapping(other)
    agent = Agent(Model("Own.", name="own"), capabilities=[*([memory] if remembers else []), swapping])

    if way == "whole":
        await agent.run("Hi.")
    else:
        async with agent.run_stream("Hi.") as result:
            await result.get_output()

    assert ([("other", ["Hi."])], remembers) == (swapping.seen, bool(references(other.sent[0])))


def test_is_not_written_to_a_file():
    """The capability, which holds a host, has no name for serialisation."""
    assert None is BeaverMemory.get_serialization_name()


def test_card():
    """The card can be written as JSON."""
    assert "pydantic-ai" == json.loads(json.dumps(PydanticAIHarness.card.as_dict()))["host"]
