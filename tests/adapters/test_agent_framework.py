import asyncio
import gc
import json

import pytest
from adapters.harness_agent_framework import (
    AgentFrameworkHarness,
    AgentFrameworkInLoopHarness,
    ScriptedClient,
    texts,
)
from adapters.published import assert_published
from agent_framework import (
    Agent,
    AgentMiddleware,
    AgentResponse,
    BaseChatClient,
    ChatMiddleware,
    ChatResponse,
    Content,
    FunctionMiddleware,
    HistoryProvider,
    InMemoryHistoryProvider,
    Message,
    MiddlewareTermination,
    tool,
)

from beaver_hooks import Host
from beaver_hooks.adapters.adapter_turn import AdapterTurn
from beaver_hooks.adapters.agent_framework import BeaverContextProvider
from beaver_hostspecs import DropReason, HostMisused, Tool
from beaver_hostspecs import Message as Said
from beaver_hostspecs.conformance import HOST_CASES, CallTool, Say, examine
from beaver_hostspecs.conformance.probes import BLOCK, PROBE_TOOL, RECALLED, RULE, Probe
from beaver_hostspecs.testing import Fault, FaultError, FaultPlugin, RecordingPlugin

BOTH = pytest.mark.parametrize("harness", [AgentFrameworkHarness, AgentFrameworkInLoopHarness])


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
    return BeaverContextProvider(host)


class Client(ScriptedClient):
    """Answers with the given texts, calls and errors in order, and records its requests."""

    def __init__(self, *steps):
        super().__init__(self._take)
        self.steps = list(steps)
        self.sent = []
        self.options = []

    async def _take(self, messages, options):
        self.sent.append(list(messages))
        self.options.append(dict(options))
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return Say(text=step) if isinstance(step, str) else step


def kinds(messages):
    """Return the texts of messages, with "recalled" in place of each reference."""
    return ["recalled" if RECALLED in text else text for _, text in texts(messages)]


async def test_the_line_of_use(host, probe, memory):
    """One provider gives an agent memory; the framework adds the history to it by itself."""
    client = Client("Hello.", "Yes.")
    agent = Agent(client=client, context_providers=[memory])
    session = agent.create_session(session_id="s1")

    await agent.run("Hi.", session=session)
    await agent.run("Sure?", session=session)
    await host.drain()

    assert [("Hi.", "s1"), ("Sure?", "s1")] == [(turn.prompt, turn.session) for turn in probe.turns]
    assert ["Hello.", "Yes."] == [answer.text for answer in probe.answers]
    assert ["recalled", "Hi.", "Hello.", "Sure?"] == kinds(client.sent[1])


async def test_not_a_host():
    """The provider refuses anything that is not a host when it is made."""
    with pytest.raises(HostMisused, match="takes a Host or a SyncHost"):
        BeaverContextProvider("host")


async def test_no_default_session(host):
    """A default session is refused, because the framework creates a new session for every run."""
    with pytest.raises(HostMisused, match="creates a new session for every run"):
        BeaverContextProvider(host, session="mine")


@pytest.mark.parametrize("stream", [False, True])
async def test_fail_closed(tmp_path, stream):
    """The error of a fail-closed plugin reaches the caller of a run and of a stream."""
    faulty = FaultPlugin(Fault.RAISE, "before_prompt")
    client = Client("Hello.")
    async with Host({"faulty": faulty}, fail_closed=["faulty"], state_folder=tmp_path) as host:
        agent = Agent(client=client, context_providers=[BeaverContextProvider(host)])

        with pytest.raises(FaultError):
            await agent.run("Hi.", stream=stream)

    assert [] == client.sent


async def test_system_prompt(host, memory):
    """Rules and blocks stand behind the agent's own instructions, with the same bytes in each run."""
    client = Client("One.", "Two.")
    agent = Agent(client=client, instructions="Base.", context_providers=[memory])

    await agent.run("Hi.")
    await agent.run("Hi again.")

    assert [f"Base.\n{RULE}\n\n{BLOCK}"] * 2 == [options["instructions"] for options in client.options]


# --- Who and where -----------------------------------------------------------------------------------------------


async def test_no_session(host, probe, memory):
    """Each run without a session has its own session."""
    agent = Agent(client=Client("One.", "Two."), context_providers=[memory])

    await agent.run("First.")
    await agent.run("Second.")

    assert 2 == len({turn.session for turn in probe.turns})


async def test_user(host, probe):
    """The user is the run's option, else in the session's state, else the default one."""
    agent = Agent(client=Client("1", "2", "3"), context_providers=[BeaverContextProvider(host, user="default")])
    session = agent.create_session()
    session.state["user_id"] = "in-state"

    await agent.run("First.", session=session, options={"user": "option"})
    await agent.run("Second.", session=session)
    await agent.run("Third.")

    assert ["option", "in-state", "default"] == [turn.user for turn in probe.turns]


class Stored(HistoryProvider):
    """A history outside the session."""

    def __init__(self):
        super().__init__("stored")
        self.messages = []

    async def get_messages(self, session_id, *, state=None, **_):
        return list(self.messages)

    async def save_messages(self, session_id, messages, *, state=None, **_):
        self.messages += messages


@pytest.mark.parametrize("order", [1, -1], ids=["history first", "memory first"])
@pytest.mark.parametrize("history", [InMemoryHistoryProvider, Stored])
async def test_order(probe, memory, caplog, history, order):
    """References stand before the history in any order, and the turn lacks a history that is loaded after it."""
    client = Client("One.", "Two.", "Three.")
    agent = Agent(client=client, context_providers=[history(), memory][::order])
    session = agent.create_session()

    for prompt in ("First.", "Second.", "Third."):
        await agent.run(prompt, session=session)

    assert ["recalled", "First.", "One.", "Second.", "Two.", "Third."] == kinds(client.sent[2])
    too_late = history is Stored and order == -1
    said = [("user", "First."), ("assistant", "One."), ("user", "Second."), ("assistant", "Two.")]
    expected = () if too_late else tuple(Said(role=role, text=text) for role, text in said)
    assert expected == probe.turns[2].history
    assert too_late == ("list the history provider before this one" in caplog.text)


# --- Prompts and answers of all kinds ----------------------------------------------------------------------------


async def test_multimodal_prompt(host, probe, memory):
    """The turn's prompt is the texts of a prompt in several parts."""
    picture = Content.from_uri("https://example.org/cat.png", media_type="image/png")
    agent = Agent(client=Client("A cat."), context_providers=[memory])

    await agent.run([Message("user", ["What is this?", picture, "Be short."])])

    assert "What is this?\nBe short." == probe.turns[0].prompt


async def test_no_prompt(host, probe, memory):
    """A run without a prompt is a turn with an empty prompt."""
    await Agent(client=Client("Hello."), context_providers=[memory]).run()
    await host.drain()

    assert ([""], ["Hello."]) == ([turn.prompt for turn in probe.turns], [answer.text for answer in probe.answers])


async def test_empty_answer(host, probe, memory):
    """A run that ends without any text has no answer."""
    await Agent(client=Client(""), context_providers=[memory]).run("Hi.")
    await host.drain()

    assert ((), (DropReason.FAILED,)) == (probe.answers, probe.reasons)


async def test_approval(host, probe, memory):
    """A run that stops for an approval is dropped, and the resumed run is a new turn with the same prompt."""

    @tool(approval_mode="always_require")
    def delete() -> str:
        """Delete it."""
        return "deleted"

    client = Client(CallTool(tool="delete"), "Done.")
    agent = Agent(client=client, tools=[delete], context_providers=[InMemoryHistoryProvider(), memory])
    session = agent.create_session(session_id="s1")

    stopped = await agent.run("Delete it.", session=session)
    await host.drain()
    assert ((), (DropReason.ABANDONED,), ()) == (probe.answers, probe.reasons, probe.results)

    session = type(session).from_dict(json.loads(json.dumps(session.to_dict())))
    approved = stopped.user_input_requests[0].to_function_approval_response(approved=True)
    answer = await agent.run(Message("user", [approved]), session=session)
    await host.drain()
    assert "Done." == answer.text
    assert [("s1", "Delete it.")] * 2 == [(turn.session, turn.prompt) for turn in probe.turns]
    assert ["Done."] == [each.text for each in probe.answers]
    assert [("delete", "deleted")] == [(each.tool, each.output) for each in probe.results]


async def test_nested_agents(host, probe, memory):
    """An agent that is a tool of another has its own turns, in the session of its caller."""
    inner = Agent(client=Client("Inner answer."), name="inner", context_providers=[memory])
    client = Client(CallTool(tool="ask", arguments={"task": "Inner prompt."}), "Outer answer.")
    asking = inner.as_tool(name="ask", propagate_session=True)
    outer = Agent(client=client, tools=[asking], context_providers=[memory])

    await outer.run("Outer prompt.", session=outer.create_session(session_id="s1"))
    await host.drain()

    told = [
        (call.arguments["turn"].session, call.arguments["turn"].prompt, call.arguments["answer"].text)
        for call in probe.calls_of("after_prompt")
    ]
    assert [("s1", "Inner prompt.", "Inner answer."), ("s1", "Outer prompt.", "Outer answer.")] == sorted(told)
    assert [("ask", "Inner answer.")] == [(each.tool, each.output) for each in probe.results]


# --- Tools -------------------------------------------------------------------------------------------------------


async def _found(arguments, turn, report):
    return "the plugin's"


async def test_same_name(host, probe, memory):
    """A plugin's tool gives way to the agent's own tool of the same name."""
    named = Tool(name="look", description="Look.", parameters={"type": "object"}, run=_found)
    await host.register("other", RecordingPlugin(tools=[named]))
    look = tool(lambda: "the agent's", name="look", description="Look.")
    client = Client(CallTool(tool="look"), "Done.")

    await Agent(client=client, tools=[look], context_providers=[memory]).run("Look.")
    await host.drain()

    assert ["look", PROBE_TOOL] == [each.name for each in client.options[0]["tools"]]
    assert ["the agent's"] == [each.output for each in probe.results]


async def test_tool_of_a_plugin_that_goes(host, probe, memory):
    """The tool of a plugin unregistered during a turn answers that there is no such tool."""
    named = Tool(name="look", description="Look.", parameters={"type": "object"}, run=_found)
    await host.register("other", RecordingPlugin(tools=[named]))

    @tool
    async def leave() -> str:
        """Take the plugin out."""
        await host.unregister("other")
        return "gone"

    client = Client(CallTool(tool="leave"), CallTool(tool="look", id="call-2"), "Done.")
    answer = await Agent(client=client, tools=[leave], context_providers=[memory]).run("Look.")
    await host.drain()

    assert "Done." == answer.text
    assert [("leave", "success"), ("look", "error")] == [(each.tool, each.outcome) for each in probe.results]


async def test_tool_after_the_run(host, memory):
    """A plugin's tool that is called after its run answers that the run is over."""
    client = Client("Hello.")
    await Agent(client=client, context_providers=[memory]).run("Hi.")

    (offered,) = client.options[0]["tools"]
    answered = await offered.invoke(arguments={"query": "x"})

    assert ["the run is over"] == [item.text for item in answered]


async def test_schema_is_unchanged(host, memory):
    """The model gets a plugin's tool exactly as the plugin describes it."""
    client = Client("Hello.")
    await Agent(client=client, context_providers=[memory]).run("Hi.")

    (offered,) = client.options[0]["tools"]
    expected = {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "what to look for"}},
        "required": ["query"],
        "additionalProperties": False,
    }
    assert (PROBE_TOOL, "Search the probe.", expected) == (offered.name, offered.description, offered.parameters())


async def test_error_of_a_tool(host, probe, memory):
    """The result of a tool that raises has the kind of its error, and not its message."""

    @tool
    def burn() -> str:
        """Burn."""
        raise KeyError("the secret")

    agent = Agent(client=Client(CallTool(tool="burn"), "Sorry."), tools=[burn], context_providers=[memory])

    await agent.run("Burn.")
    await host.drain()

    expected = [("burn", "call-1", "error", "KeyError", None)]
    assert expected == [(e.tool, e.call_id, e.outcome, e.error, e.output) for e in probe.results]


async def test_picture_of_a_tool(host, probe, memory):
    """The result of a tool holds the kind of each content that is not text."""

    @tool
    def draw() -> list[Content]:
        """Draw."""
        return [Content.from_text("a cat"), Content.from_uri("https://example.org/cat.png", media_type="image/png")]

    agent = Agent(client=Client(CallTool(tool="draw"), "Done."), tools=[draw], context_providers=[memory])

    await agent.run("Draw.")
    await host.drain()

    assert ["a cat\n[uri]"] == [each.output for each in probe.results]


async def test_cancelled_in_a_tool(host, probe, memory):
    """A run that is cancelled during a tool call is dropped at once."""
    began = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait for ever."""
        began.set()
        return await asyncio.Event().wait()

    agent = Agent(client=Client(CallTool(tool="wait")), tools=[wait], context_providers=[memory])
    task = asyncio.ensure_future(agent.run("Wait."))
    await began.wait()
    task.cancel()
    await asyncio.wait([task])
    await host.drain()

    assert ((), (DropReason.CANCELLED,), ()) == (probe.answers, probe.reasons, probe.results)


# --- Other middleware --------------------------------------------------------------------------------------------


class Retrying(ChatMiddleware):
    async def process(self, context, call_next):
        try:
            await call_next()
        except ConnectionError:
            await call_next()


async def test_retried(host, probe, memory):
    """A failed model call drops its turn, and the retry is a new turn, which is committed."""
    client = Client(ConnectionError(), "Hello.")
    agent = Agent(client=client, context_providers=[memory], middleware=[Retrying()])

    assert "Hello." == (await agent.run("Hi.", session=agent.create_session(session_id="s1"))).text
    await host.drain()

    assert [("Hi.", "s1")] * 2 == [(turn.prompt, turn.session) for turn in probe.turns]
    assert [("on_turn_dropped",), ("after_prompt",)] == list(probe.endings().values())
    assert ["recalled", "Hi."] == kinds(client.sent[1])
    assert probe.recalled[probe.turns[1].id] in texts(client.sent[1])[0][1]


class Rewriting(ChatMiddleware):
    async def process(self, context, call_next):
        await call_next()
        context.result = ChatResponse(messages=[Message("assistant", ["I may not say."])])


async def test_rewritten(host, probe, memory):
    """The turn learns the answer as another middleware has rewritten it."""
    agent = Agent(client=Client("A secret."), context_providers=[memory], middleware=[Rewriting()])

    assert "I may not say." == (await agent.run("Hi.")).text
    await host.drain()

    assert ["I may not say."] == [answer.text for answer in probe.answers]


class Ending(ChatMiddleware):
    async def process(self, context, call_next):
        context.result = ChatResponse(messages=[Message("assistant", ["From elsewhere."])])
        raise MiddlewareTermination


@pytest.mark.parametrize("inside", [False, True])
async def test_answered_by_a_middleware(host, probe, memory, inside):
    """An answer that another middleware gives instead of the model is learned, outside the memory or inside."""

    class Late(BeaverContextProvider):
        """Another provider, whose middleware comes after that of the memory."""

        async def before_run(self, *, context, **_):
            context.extend_middleware(self.source_id, [Ending()])

        async def after_run(self, **_):
            """Do nothing."""

    late = Late(host, source_id="late")
    places = {"context_providers": [memory, late]} if inside else {"middleware": [Ending()]}
    agent = Agent(client=Client(), **{"context_providers": [memory], **places})

    assert "From elsewhere." == (await agent.run("Hi.")).text
    await host.drain()

    assert (["From elsewhere."], ()) == ([answer.text for answer in probe.answers], probe.reasons)


class AgentRewriting(AgentMiddleware):
    async def process(self, context, call_next):
        await call_next()
        context.result = AgentResponse(messages=[Message("assistant", ["I may not say."])])


class AgentEnding(AgentMiddleware):
    async def process(self, context, call_next):
        await call_next()
        raise MiddlewareTermination


class AgentRefusing(AgentMiddleware):
    async def process(self, context, call_next):
        await call_next()
        raise PermissionError("refused")


@pytest.mark.parametrize(
    ("other", "answer"), [(AgentRewriting(), "I may not say."), (AgentEnding(), "A secret."), (AgentRefusing(), None)]
)
async def test_first_agent_middleware(host, probe, memory, other, answer):
    """As the first agent middleware too, the memory learns the answer that the others let through."""
    agent = Agent(client=Client("A secret."), context_providers=[memory], middleware=[memory, other])

    try:
        seen = (await agent.run("Hi.")).text
    except PermissionError:
        seen = None
    await host.drain()

    assert answer == seen
    learned = [each.text for each in probe.answers]
    assert (
        ([answer], ()) == (learned, probe.reasons) if answer else ([], (DropReason.FAILED,)) == (learned, probe.reasons)
    )


@pytest.mark.parametrize("others", [(), (AgentEnding(),)])
async def test_first_agent_middleware_streams(host, probe, memory, others):
    """As the first agent middleware, the memory learns a streamed answer at its end."""
    agent = Agent(client=Client("Hello to you."), context_providers=[memory], middleware=[memory, *others])

    stream = agent.run("Hi.", stream=True)
    seen = "".join([update.text async for update in stream])
    del stream
    await _all_let_go(host)

    assert "Hello to you." == seen
    assert ["Hello to you."] == [each.text for each in probe.answers]


async def test_first_agent_middleware_nests(host, probe, memory):
    """As the first agent middleware, the memory commits the turn of an inner agent separately."""
    inner = Agent(client=Client("Inner answer."), name="inner", context_providers=[memory])
    client = Client(CallTool(tool="ask", arguments={"task": "Inner prompt."}), "Outer answer.")
    outer = Agent(client=client, tools=[inner.as_tool(name="ask")], context_providers=[memory], middleware=[memory])

    await outer.run("Outer prompt.")
    await host.drain()

    assert ["Inner answer.", "Outer answer."] == [answer.text for answer in probe.answers]


async def test_agent_middleware_alone(host, probe, memory):
    """As an agent middleware without the provider, the memory does nothing."""
    agent = Agent(client=Client("Hello.", ConnectionError()), middleware=[memory])

    assert "Hello." == (await agent.run("Hi.")).text
    with pytest.raises(ConnectionError):
        await agent.run("Hi.")
    await host.drain()

    assert () == probe.told


class Skipping(FunctionMiddleware):
    async def process(self, context, call_next):
        context.result = "from elsewhere"


class Stopping(FunctionMiddleware):
    async def process(self, context, call_next):
        context.result = "stopped"
        raise MiddlewareTermination


class Last(InMemoryHistoryProvider):
    """A provider whose middleware comes after that of the memory."""

    def __init__(self, middleware):
        super().__init__("last")
        self.middleware = middleware

    async def before_run(self, *, context, **_):
        context.extend_middleware(self.source_id, [self.middleware])


async def test_skipped_tool(host, probe, memory):
    """The result of a tool call that another middleware answers holds that middleware's answer."""
    look = tool(lambda: "found", name="look", description="Look.")
    client = Client(CallTool(tool="look"), "Done.")

    await Agent(client=client, tools=[look], context_providers=[memory, Last(Skipping())]).run("Hi.")
    await host.drain()

    assert [("look", "from elsewhere")] == [(each.tool, each.output) for each in probe.results]


async def test_tool_that_stops_the_run(host, probe, memory):
    """A tool call whose middleware ends the run has no result, and the turn is dropped without an answer."""
    look = tool(lambda: "found", name="look", description="Look.")
    client = Client(CallTool(tool="look"))

    await Agent(client=client, tools=[look], context_providers=[memory, Last(Stopping())]).run("Hi.")
    await host.drain()

    assert ((), (), (DropReason.FAILED,)) == (probe.results, probe.answers, probe.reasons)


# --- Nothing is stored, nothing is left --------------------------------------------------------------------------


@pytest.mark.parametrize("per_call", [False, True])
async def test_stored_state(host, memory, per_call):
    """The stored session holds no reference and nothing of the adapter, even when each message is stored at once."""
    client = Client(CallTool(tool=PROBE_TOOL, arguments={"query": "x"}), "Done.", "Again.")
    agent = Agent(
        client=client,
        context_providers=[InMemoryHistoryProvider(store_context_messages=not per_call), memory],
        require_per_service_call_history_persistence=per_call,
    )
    session = agent.create_session()

    await agent.run("Hi.", session=session)
    await agent.run("And?", session=session)

    assert ["recalled", "Hi.", "Done.", "And?"] == kinds(client.sent[2])
    assert RECALLED not in json.dumps(session.to_dict())
    assert {"in_memory", "beaver"} == set(session.state)
    assert {} == session.state["beaver"]


class PlainClient(BaseChatClient):
    """A client without any middleware."""

    def __init__(self, *answers):
        super().__init__()
        self.answers = list(answers)
        self.sent = []

    async def _inner_get_response(self, *, messages, **_):
        self.sent.append(list(messages))
        return ChatResponse(messages=[Message("assistant", [self.answers.pop(0)])])


async def test_client_without_middleware(host, probe, memory, caplog):
    """With a client that runs no middleware memory still works, and one warning says so."""
    client = PlainClient("One.", "Two.")
    agent = Agent(client=client, context_providers=[memory, InMemoryHistoryProvider()])
    session = agent.create_session()

    await agent.run("First.", session=session)
    await agent.run("Second.", session=session)
    await host.drain()

    assert ["recalled", "First.", "One.", "Second."] == kinds(client.sent[1])
    assert ["One.", "Two."] == [answer.text for answer in probe.answers]
    assert RECALLED not in json.dumps(session.to_dict())
    assert 1 == caplog.text.count("runs no middleware")


async def _all_let_go(host):
    for _ in range(5):  # the loop closes the generators that the framework left behind
        gc.collect()
        await asyncio.sleep(0)
    await host.drain()


def _turns():
    return [each for each in gc.get_objects() if isinstance(each, AdapterTurn)]


@pytest.mark.parametrize("closing", [False, True])
async def test_growth(host, probe, memory, closing):
    """Three hundred runs that are broken off leave no open turn and no object, with and without closing the stream."""
    client = Client(*["Hello to you."] * 300)
    agent = Agent(client=client, context_providers=[memory])

    for number in range(300):
        stream = agent.run(f"Prompt {number}.", stream=True)
        async for _ in stream:
            break
        if closing:
            await stream.close()
        del stream
        client.sent.clear()
        client.options.clear()
    await _all_let_go(host)

    assert (300, 300, ()) == (len(probe.turns), len(probe.reasons), probe.answers)
    assert set(probe.reasons) <= {DropReason.CANCELLED, DropReason.ABANDONED}
    assert [] == _turns()
    assert {"source_id", "_adapter", "_log", "_warned"} == set(vars(memory))


@pytest.mark.parametrize("awaited", [False, True])
async def test_client_keeps_no_turn(host, memory, awaited):
    """Neither the client nor the caller's context keeps the turn of the last run."""
    client = Client("Hello.")
    agent = Agent(client=client, context_providers=[memory], middleware=[memory] if awaited else [])

    await agent.run("Hi.")
    client.options.clear()
    await _all_let_go(host)

    assert [] == _turns()


async def test_refused_behind_everything(host, probe, memory):
    """An answer refused before the context providers see it is dropped once the run is collected."""

    class Refusing(ChatMiddleware):
        async def process(self, context, call_next):
            await call_next()
            raise PermissionError("refused")

    agent = Agent(client=Client("A secret."), context_providers=[memory], middleware=[Refusing()])
    with pytest.raises(PermissionError):
        await agent.run("Hi.")
    await _all_let_go(host)

    assert ((), 1) == (probe.answers, len(probe.reasons))


async def test_middleware_of_a_run_that_is_over(host, memory):
    """A middleware of a finished run passes calls on unchanged."""
    kept = []

    class Keeping(BeaverContextProvider):
        async def before_run(self, *, context, **more):
            await super().before_run(context=context, **more)
            kept.extend(context.get_middleware())

    await Agent(client=Client("Hello."), context_providers=[Keeping(host)]).run("Hi.")
    await _all_let_go(host)
    client = Client(CallTool(tool="look"), "Done.")
    look = tool(lambda: "found", name="look", description="Look.")

    answer = await Agent(client=client, tools=[look], middleware=kept).run("Look.")

    assert "Done." == answer.text
    assert ["Look."] == kinds(client.sent[0])


async def test_after_run_without_a_turn(host, probe, memory):
    """A run for which the provider opened no turn ends without one."""
    agent = Agent(client=Client(), context_providers=[memory])
    context = type("Context", (), {"metadata": {}, "response": AgentResponse(messages=[])})()

    await memory.after_run(agent=agent, session=agent.create_session(), context=context, state={})
    await host.drain()

    assert () == probe.told


def test_card():
    """The card can be written as JSON."""
    assert "agent-framework" == json.loads(json.dumps(AgentFrameworkHarness.card.as_dict()))["host"]
