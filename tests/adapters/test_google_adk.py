import asyncio
import contextlib
import gc

import pytest
from adapters.harness_google_adk import (
    STREAMED,
    GoogleAdkHarness,
    GoogleAdkInLoopHarness,
    content,
    echo,
    make_model,
    names,
    texts,
)
from adapters.published import assert_published
from conformance.scripted import ModelDown
from google.adk.agents import BaseAgent, LiveRequestQueue, LlmAgent, ParallelAgent, SequentialAgent
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.events.event import Event
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.plugins.reflect_retry_tool_plugin import ReflectAndRetryToolPlugin
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.workflow import RetryConfig, Workflow
from google.genai import types
from pydantic import BaseModel

from beaver_hooks import Host, SyncHost
from beaver_hooks.adapters.core import AdapterTurn
from beaver_hooks.adapters.google_adk import BeaverPlugin
from beaver_hostspecs import DropReason, HostMisused, Message, WrongLoop
from beaver_hostspecs.conformance import HOST_CASES, CallTool, Fail, Hang, Say, examine
from beaver_hostspecs.conformance.probes import BLOCK, PROBE_TOOL, RECALLED, RULE, Probe
from beaver_hostspecs.testing import FaultError, FaultPlugin

ANSWER = Say(text="We wait.")
CALL = CallTool(tool="echo", arguments={"text": "thursday"})
IMAGE = types.Part(inline_data=types.Blob(data=b"\x89PNG", mime_type="image/png"))

pytestmark = [
    # Warnings of the framework itself: its deprecated agents and tools, and its experimental features.
    pytest.mark.filterwarnings("ignore:The `plugins` argument:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*in favor of Workflow:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL.*:UserWarning"),
]


class Steps:
    """The steps of a model, in order, whatever the request."""

    def __init__(self, *steps):
        self.steps = iter(steps)
        self.hanging = asyncio.Event()

    async def step_for(self, _):
        step = next(self.steps)
        if isinstance(step, Fail):
            raise ModelDown("the model is down")
        if isinstance(step, Hang):
            self.hanging.set()
            await asyncio.Event().wait()
        return step


@pytest.fixture
def probe():
    return Probe()


@pytest.fixture
async def host(probe, tmp_path):
    async with Host({"probe": probe}, state_folder=tmp_path / "state") as host:
        yield host


def agent(*steps, name="agent", tools=(echo,), **more):
    """An agent whose model takes the given steps."""
    return LlmAgent(name=name, model=make_model(Steps(*steps)), tools=[*tools], instruction="Base.", **more)


class App1:
    """An app with memory, and the calls that tests make."""

    def __init__(self, host, root, *plugins, memory=None, **more):
        self.memory = memory or BeaverPlugin(host)
        self.sessions = InMemorySessionService()
        self.runner = Runner(
            app=App(name="app", root_agent=root, plugins=[self.memory, *plugins], **more),
            session_service=self.sessions,
            auto_create_session=True,
        )

    def stream(self, prompt, **more):
        message = content(prompt) if isinstance(prompt, str) else prompt
        return self.runner.run_async(**{"user_id": "ann", "session_id": "s1", "new_message": message, **more})

    async def ask(self, prompt, **more):
        return [event async for event in self.stream(prompt, **more)]


def said(request):
    """The texts of a request without the references."""
    return [text for _, text in texts(request.contents) if RECALLED not in text]


def left(host, app):
    """The number of open turns, and of runs that the plugin remembers."""
    return len(host._running().turns.open_turns), len(app.memory._runs)


async def until_left(host, app):
    """Wait until no turn and no run is left, while the garbage collector runs."""
    async with asyncio.timeout(30):
        while left(host, app) != (0, 0):
            gc.collect()
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("harness", [GoogleAdkHarness, GoogleAdkInLoopHarness])
@pytest.mark.parametrize("case", HOST_CASES, ids=str)
async def test_the_host_suite(case, harness):
    """Google ADK passes the case with a SyncHost and with a Host, or the card excuses it."""
    verdict = await examine(case, harness)
    assert_published(harness.card, verdict)


# --- What the model gets ----------------------------------------------------------------------------------------------


async def test_what_a_request_holds(host, probe):
    """References stand before the history and rules after the agent's instruction, once in each request."""
    root = agent(ANSWER, CALL, ANSWER)
    app = App1(host, root)

    await app.ask("One.")
    await app.ask("Two.")

    for request in root.model.requests[1:]:
        first = request.contents[0]
        assert ("user", True) == (first.role, probe.recalled[probe.turns[1].id] in first.parts[0].text)
        assert ["One.", "We wait.", "Two."] == said(request)
        assert request.config.system_instruction.endswith(f"{RULE}\n\n{BLOCK}")
        assert [1, 1] == [request.config.system_instruction.count(each) for each in ("Base.", RULE)]
        assert ["echo", PROBE_TOOL] == names(request)


async def test_a_multimodal_prompt(host, probe):
    """The texts of a prompt are the turn's prompt; its images go to the model only."""
    root = agent(ANSWER)
    parts = [types.Part(text="Look at this:"), IMAGE, types.Part(text="What is it?")]

    await App1(host, root).ask(types.Content(role="user", parts=parts))

    assert "Look at this:\nWhat is it?" == probe.turns[0].prompt
    assert IMAGE in root.model.requests[0].contents[-1].parts


async def test_a_prompt_without_text(host, probe):
    """A prompt without any text is a turn with an empty one."""
    await App1(host, agent(ANSWER)).ask(types.Content(role="user", parts=[IMAGE]))
    await host.drain()

    assert [""] == [each.prompt for each in probe.turns]
    assert ["We wait."] == [each.text for each in probe.answers]


async def test_history_is_passed_on(host, probe):
    """The turn has the earlier messages of the session, without tool results."""
    app = App1(host, agent(CALL, ANSWER, ANSWER))

    await app.ask("One.")
    await app.ask("Two.")

    assert (Message(role="user", text="One."), Message(role="assistant", text="We wait.")) == probe.turns[1].history


async def test_session_and_user(host, probe):
    """The turn has the session and user of ADK, and the trust of the plugin."""
    memory = BeaverPlugin(host, session="default", user="default", trust="full")

    await App1(host, agent(ANSWER), memory=memory).ask("One.")

    assert [("s1", "ann", "full")] == [(each.session, each.user, each.trust) for each in probe.turns]


async def test_a_prefix_that_is_fixed(host):
    """References come after an agent's static instruction."""
    fixed = types.Content(role="user", parts=[types.Part(text="Fixed."), IMAGE])
    root = agent(ANSWER, static_instruction=fixed)

    await App1(host, root).ask("One.")

    contents = root.model.requests[0].contents
    place = next(index for index, each in enumerate(contents) if RECALLED in str(each.parts[0].text))
    assert IMAGE.inline_data in [part.inline_data for each in contents[:place] for part in each.parts]
    assert place < len(contents) - 1


async def test_a_prompt_that_another_plugin_changes(host, probe):
    """The turn's prompt is the one that other plugins have changed."""

    class Redact(BasePlugin):
        async def on_user_message_callback(self, *, invocation_context, user_message):
            return content("[redacted]")

    await App1(host, agent(ANSWER), Redact(name="redact")).ask("My password is 1234.")

    assert ["[redacted]"] == [each.prompt for each in probe.turns]


class Verdict(BaseModel):
    """The decision."""

    day: str


async def test_structured_output(host, probe):
    """A structured answer is learned, and no functions are offered beside a schema, which providers refuse."""
    root = agent(Say(text='{"day": "Thursday"}'), output_schema=Verdict, tools=())

    await App1(host, root).ask("One.")
    await host.drain()

    assert [] == names(root.model.requests[0])
    assert ['{"day": "Thursday"}'] == [each.text for each in probe.answers]


async def test_tools_of_the_provider(host):
    """The plugin offers no functions beside a provider's own tools, because providers refuse both together."""

    class OnlySearch(BasePlugin):
        async def before_model_callback(self, *, callback_context, llm_request):
            llm_request.config.tools = [types.Tool(google_search=types.GoogleSearch())]

    root, memory = agent(ANSWER, tools=()), BeaverPlugin(host)
    runner = Runner(
        app=App(name="app", root_agent=root, plugins=[OnlySearch(name="search"), memory]),
        session_service=InMemorySessionService(),
        auto_create_session=True,
    )
    _ = [event async for event in runner.run_async(user_id="ann", session_id="s1", new_message=content("One."))]

    assert [] == names(root.model.requests[0])


# --- How turns end ----------------------------------------------------------------------------------------------------


async def test_breaking_off_at_the_final_response(host, probe):
    """A consumer that stops at the final response has its answer learned."""
    app = App1(host, agent(ANSWER))
    async with contextlib.aclosing(app.stream("One.")) as stream:
        async for event in stream:
            if event.is_final_response():
                break
    await host.drain()

    assert (["We wait."], (), (0, 0)) == ([each.text for each in probe.answers], probe.reasons, left(host, app))


async def _break_off(app, number=0):
    stream = app.stream(f"Prompt {number}.", session_id=f"s{number}", run_config=STREAMED)
    async for event in stream:
        if event.partial:
            break
    return stream


async def test_a_stream_that_nobody_closes(host, probe):
    """A stream that is broken off and forgotten drops its turn once it is collected."""
    app = App1(host, agent(Say(text="One two three.")))
    await _break_off(app)
    await until_left(host, app)
    await host.drain()

    assert ((), 1) == (probe.answers, len(probe.reasons))


async def _cancel(app, leaf, number=0):
    """Cancel a run that waits for its model, within a task that goes on."""
    run = asyncio.create_task(app.ask(f"Prompt {number}.", session_id=f"s{number}"))
    await _until_it_hangs(leaf)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


async def _until_it_hangs(leaf):
    hanging = leaf.model.scripts.hanging
    await hanging.wait()
    hanging.clear()


@pytest.mark.parametrize(
    "root_of",
    [
        lambda leaf: leaf,
        lambda leaf: Workflow(name="root", edges=[("START", leaf)]),
        lambda leaf: leaf.model_copy(update={"sub_agents": [agent(name="other")]}),
    ],
    ids=["agent", "workflow", "with sub-agents"],
)
async def test_a_cancelled_run_is_dropped_at_once(host, probe, root_of):
    """A cancelled run is dropped before the caller goes on, without garbage collection."""
    leaf = agent(Hang())
    app = App1(host, root_of(leaf))
    gc.disable()
    try:
        await _cancel(app, leaf)
        await host.drain()
    finally:
        gc.enable()

    assert ((), (DropReason.CANCELLED,)) == (probe.answers, probe.reasons)


async def test_a_run_that_runs_out_of_the_callers_time(host, probe):
    """A deadline around a run drops its turn as cancelled and leaves no run behind."""
    app = App1(host, agent(Hang()))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await app.ask("One.")
    await until_left(host, app)
    await host.drain()

    assert ((), (DropReason.CANCELLED,)) == (probe.answers, probe.reasons)


async def test_a_cancelled_run_in_the_callers_task(host, probe):
    """A cancelled run of another kind of agent is dropped once it is collected."""
    leaf = agent(Hang())
    app = App1(host, SequentialAgent(name="root", sub_agents=[leaf]))
    await _cancel(app, leaf)
    await until_left(host, app)
    await host.drain()

    assert ((), (DropReason.ABANDONED,)) == (probe.answers, probe.reasons)


async def test_nothing_is_left_of_runs_that_do_not_end(host, probe):
    """Two hundred runs that are broken off and a hundred that are cancelled leave no turn and no object."""
    gc.collect()
    before = sum(isinstance(each, AdapterTurn) for each in gc.get_objects())
    app = App1(host, agent(*[Say(text="One two three.")] * 200, *[Hang()] * 100))
    for number in range(200):
        await (await _break_off(app, number)).aclose()
    for number in range(100):
        await _cancel(app, app.runner.agent, 200 + number)
    await until_left(host, app)
    await host.drain()
    gc.collect()

    assert ((), 300) == (probe.answers, len(probe.reasons))
    assert before == sum(isinstance(each, AdapterTurn) for each in gc.get_objects())


async def test_a_run_that_is_aborted(host, probe):
    """A run that its abort signal ends is dropped as cancelled."""
    signal, app = asyncio.Event(), App1(host, agent(Hang()))
    run = asyncio.create_task(app.ask("One.", abort_signal=signal))
    await _until_it_hangs(app.runner.agent)
    signal.set()
    await run
    await host.drain()

    assert ((), (DropReason.CANCELLED,)) == (probe.answers, probe.reasons)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (types.FinishReason.SAFETY, DropReason.BLOCKED),
        (types.BlockedReason.BLOCKLIST, DropReason.BLOCKED),
        ("SOMETHING_ELSE", DropReason.FAILED),
    ],
)
async def test_answers_that_are_errors(host, probe, code, expected):
    """A response with an error code is no answer."""
    response = LlmResponse(error_code=code, error_message="no")

    await App1(host, agent(response)).ask("One.")
    await host.drain()

    assert ((), (expected,)) == (probe.answers, probe.reasons)


async def test_an_empty_answer(host, probe):
    """An answer without a word drops the turn."""
    await App1(host, agent(LlmResponse(content=types.Content(role="model", parts=[])))).ask("One.")
    await host.drain()

    assert ((), (DropReason.FAILED,)) == (probe.answers, probe.reasons)


async def test_thoughts_are_no_part_of_an_answer(host, probe):
    """Thoughts are no part of an answer."""
    parts = [types.Part(text="Hm.", thought=True), types.Part(text="We "), types.Part(text="wait.")]

    await App1(host, agent(LlmResponse(content=types.Content(role="model", parts=parts)))).ask("One.")
    await host.drain()

    assert ["We wait."] == [each.text for each in probe.answers]


async def test_a_run_that_another_plugin_refuses(host, probe):
    """A run that a plugin answers instead of the agents is dropped as blocked."""

    class Refuse(BasePlugin):
        async def before_run_callback(self, *, invocation_context):
            return content("No.", "model")

    await App1(host, agent(), Refuse(name="refuse")).ask("One.")
    await host.drain()

    assert ((), (DropReason.BLOCKED,)) == (probe.answers, probe.reasons)


async def test_an_answer_that_another_plugin_changes(host, probe):
    """The turn learns the answer that the user got, after all plugins changed it."""

    class Change(BasePlugin):
        async def on_event_callback(self, *, invocation_context, event):
            return Event(author=event.author, content=content("We [redacted].", "model"))

    await App1(host, agent(ANSWER), Change(name="change")).ask("One.")
    await host.drain()

    assert ["We [redacted]."] == [each.text for each in probe.answers]


async def test_the_error_of_a_fail_closed_plugin(tmp_path):
    """The error of a fail-closed plugin is the cause of the RuntimeError that ADK raises."""
    async with Host(
        {"faulty": FaultPlugin("raise", "before_prompt")}, fail_closed=["faulty"], state_folder=tmp_path
    ) as host:
        app = App1(host, agent())
        with pytest.raises(RuntimeError, match="Error in plugin 'beaver'") as caught:
            await app.ask("One.")
        assert isinstance(caught.value.__cause__, FaultError)
        assert (0, 0) == left(host, app)


async def test_a_confirmation_that_is_awaited(host, probe):
    """A run that waits for a confirmation is dropped, and the resumed run commits a new turn with the prompt."""
    asked = FunctionTool(echo, require_confirmation=True)
    app = App1(host, agent(CALL, ANSWER, tools=[asked]), resumability_config=ResumabilityConfig(is_resumable=True))

    events = await app.ask("One.")
    call = next(each for event in events for each in event.get_function_calls() if each.name != "echo")
    reply = types.FunctionResponse(id=call.id, name=call.name, response={"confirmed": True})
    await app.ask(
        types.Content(role="user", parts=[types.Part(function_response=reply)]), invocation_id=events[0].invocation_id
    )
    await host.drain()

    assert ["One.", "One."] == [each.prompt for each in probe.turns]
    assert [("on_turn_dropped",), ("after_prompt",)] == list(probe.endings().values())
    assert ((DropReason.ABANDONED,), ["We wait."]) == (probe.reasons, [each.text for each in probe.answers])
    assert "thursday" == probe.results[-1].output
    assert (0, 0) == left(host, app)


async def test_a_tool_that_takes_long(host, probe):
    """A run that waits for the result of a long-running tool is dropped."""

    def order(what: str):
        """Order something."""

    app = App1(host, agent(CallTool(tool="order", arguments={"what": "x"}), tools=[LongRunningFunctionTool(order)]))
    await app.ask("One.")
    await host.drain()

    assert ((), (DropReason.ABANDONED,)) == (probe.answers, probe.reasons)


# --- Tools ------------------------------------------------------------------------------------------------------------


async def test_what_is_told_of_a_tool(host, probe):
    """A turn gets text results unchanged, other results as JSON, and a result with the key `error` as an error."""

    def count() -> dict:
        """Count."""
        return {"n": 1}

    def refuse() -> dict:
        """Refuse."""
        return {"error": "not today"}

    calls = [CallTool(tool=tool, id=tool) for tool in ("count", "refuse", "nobody")]
    await App1(host, agent(*calls, ANSWER, tools=[count, refuse])).ask("One.")
    await host.drain()

    told = [(each.call_id, each.outcome, each.output) for each in probe.results]
    assert [("count", "success", '{"n":1}'), ("refuse", "error", None), ("nobody", "error", None)] == told
    assert "not today" == probe.results[1].error


async def test_a_tool_that_raises(host, probe):
    """A tool that raises ends the run in ADK: its error is reported, and the turn is dropped."""

    def fail() -> str:
        """Fail."""
        raise ModelDown("not the model")

    app = App1(host, agent(CallTool(tool="fail"), tools=[fail]))
    with pytest.raises(ModelDown):
        await app.ask("One.")
    await host.drain()

    assert [("fail", "error", "ModelDown")] == [(each.tool, each.outcome, each.error) for each in probe.results]
    assert ((), (DropReason.FAILED,)) == (probe.answers, probe.reasons)


async def test_a_failure_that_another_plugin_answers(host, probe):
    """A failure that another plugin turns into a result is reported once, as an error."""

    def fail() -> str:
        """Fail."""
        raise ModelDown("not the model")

    root = agent(CallTool(tool="fail"), ANSWER, tools=[fail])
    await App1(host, root, ReflectAndRetryToolPlugin()).ask("One.")
    await host.drain()

    assert [("fail", "error")] == [(each.tool, each.outcome) for each in probe.results]
    assert ["We wait."] == [each.text for each in probe.answers]


async def test_a_plugins_tool_that_fails(host, probe):
    """A failing tool of a plugin is an error for the model and for the plugins."""
    root = agent(CallTool(tool=PROBE_TOOL, arguments={"wrong": 1}), ANSWER)

    await App1(host, root).ask("One.")
    await host.drain()

    (response,) = [part.function_response.response for part in root.model.requests[1].contents[-1].parts]
    assert response["error"].startswith("[tool error]")
    assert ["error"] == [each.outcome for each in probe.results]


async def test_a_plugin_that_goes_during_the_turn(host):
    """A tool of a plugin that was unregistered returns a text, and the turn goes on."""

    class Unregister(BasePlugin):
        async def before_tool_callback(self, *, tool, tool_args, tool_context):
            await host.unregister("probe")

    root = agent(CallTool(tool=PROBE_TOOL, arguments={"query": "x"}), ANSWER)
    await App1(host, root, Unregister(name="unregister")).ask("One.")

    assert "[tool error]" in str(root.model.requests[1].contents[-1])


async def test_a_run_whose_turn_is_lost(host, probe):
    """A run whose turn is lost goes on without memory, and a plugin's tool says that its turn is over."""
    memory = BeaverPlugin(host)

    class Lose(BasePlugin):
        async def before_tool_callback(self, *, tool, tool_args, tool_context):
            memory._runs.clear()

    root = agent(CallTool(tool=PROBE_TOOL, arguments={"query": "x"}), ANSWER)
    app = App1(host, root, Lose(name="lose"), memory=memory)
    await app.ask("One.")
    await until_left(host, app)
    await host.drain()

    assert "is over" in str(root.model.requests[1].contents[-1])
    assert ["One."] == said(root.model.requests[1])
    assert ((), (DropReason.ABANDONED,)) == (probe.answers, probe.reasons)


async def test_the_agents_own_tool_wins(host):
    """The agent's own tool wins over a plugin's tool of the same name, and is offered once."""

    def probe_search(query: str) -> str:
        """Mine."""
        return f"my {query}"

    root = agent(CallTool(tool=PROBE_TOOL, arguments={"query": "x"}), ANSWER, tools=[probe_search])
    await App1(host, root).ask("One.")

    assert [PROBE_TOOL] == names(root.model.requests[0])
    assert "my x" in str(root.model.requests[1].contents[-1])


# --- Several agents ---------------------------------------------------------------------------------------------------


async def test_an_agent_that_hands_over(host, probe):
    """Agents that take over within a run get the same references, and the last agent's answer is learned."""
    other = agent(ANSWER, name="other")
    root = agent(CallTool(tool="transfer_to_agent", arguments={"agent_name": "other"}), sub_agents=[other])

    await App1(host, root).ask("One.")
    await host.drain()

    shown = [
        [text for _, text in texts(each.contents) if RECALLED in text]
        for each in (root.model.requests[0], other.model.requests[0])
    ]
    assert 1 == len(shown[0])
    assert shown[0] == shown[1]
    assert RULE in other.model.requests[0].config.system_instruction
    assert (1, ["We wait."]) == (len(probe.turns), [each.text for each in probe.answers])


@pytest.mark.parametrize("kind", [SequentialAgent, ParallelAgent])
async def test_agents_side_by_side_and_in_sequence(host, probe, kind):
    """Agents of one run share one turn, which is committed once, with the last answer."""
    agents = [agent(Say(text=f"I am {name}."), name=name) for name in ("left", "right")]
    app = App1(host, kind(name="root", sub_agents=agents))

    events = await app.ask("Who are you?")
    await host.drain()

    assert [("after_prompt",)] == list(probe.endings().values())
    assert [text for event in events for _, text in texts([event.content])][-1] == probe.answers[0].text
    assert [1, 1] == [
        len([text for _, text in texts(each.model.requests[0].contents) if RECALLED in text]) for each in agents
    ]
    assert (0, 0) == left(host, app)


async def test_a_workflow(host, probe):
    """Nodes of a workflow share one turn, and the output of its last function is the answer."""

    def close(node_input: str) -> dict:
        return {"closed": node_input}

    first = agent(Say(text="A draft."), name="first")
    app = App1(host, Workflow(name="root", edges=[("START", first), (first, close)]))

    await app.ask("One.")
    await host.drain()

    assert [("after_prompt",)] == list(probe.endings().values())
    assert ['{"closed":"A draft."}'] == [each.text for each in probe.answers]
    assert 1 == len([text for _, text in texts(first.model.requests[0].contents) if RECALLED in text])


async def test_a_node_that_is_tried_again(host, probe):
    """A node that ran out of time and is tried again does not end the turn."""
    retry = RetryConfig(max_attempts=2, initial_delay=0.0, jitter=0.0)
    slow = agent(Hang(), ANSWER, timeout=0.05, retry_config=retry)
    app = App1(host, Workflow(name="root", edges=[("START", slow)]))

    await app.ask("One.")
    await host.drain()

    assert (["We wait."], ()) == ([each.text for each in probe.answers], probe.reasons)


async def test_an_agent_without_a_model(host, probe):
    """A custom agent without a model has a turn like any other."""

    class Own(BaseAgent):
        async def _run_async_impl(self, ctx):
            yield Event(author=self.name, invocation_id=ctx.invocation_id, content=content("By hand.", "model"))

    await App1(host, Own(name="own")).ask("One.")
    await host.drain()

    assert ["By hand."] == [each.text for each in probe.answers]


async def test_an_agent_as_a_tool(host, probe):
    """An agent that is called as a tool has no turn and no references, and is a tool of the outer turn."""
    inner = agent(CALL, Say(text="Inner answer."), name="inner")
    calls = [CallTool(tool="inner", arguments={"request": "Inner prompt."}, id=f"call-{each}") for each in range(2)]
    app = App1(host, agent(calls[0], ANSWER, ANSWER, tools=[AgentTool(inner)]))

    await app.ask("Outer prompt.")
    await app.ask("Next prompt.")
    await host.drain()

    assert ["Outer prompt.", "Next prompt."] == [each.prompt for each in probe.turns]
    assert ["inner"] == [each.tool for each in probe.results]
    assert ["We wait.", "We wait."] == [each.text for each in probe.answers]
    assert [RECALLED not in str(each.contents) for each in inner.model.requests] == [True, True]


async def test_a_run_that_a_tool_leaves_behind(host, probe):
    """A run that a tool starts and that begins after the outer run has its own turn."""
    over, left_behind = asyncio.Event(), []

    async def later():
        await over.wait()
        await app.ask("Later prompt.", session_id="s2")

    async def begin() -> str:
        """Begin something."""
        left_behind.append(asyncio.create_task(later()))
        return "begun"

    app = App1(host, agent(CallTool(tool="begin"), ANSWER, ANSWER, tools=[begin]))
    await app.ask("Outer prompt.")
    over.set()
    await left_behind[0]

    assert ["Outer prompt.", "Later prompt."] == [each.prompt for each in probe.turns]


# --- Hosts, and storage -----------------------------------------------------------------------------------------------


async def test_what_the_session_stores(host):
    """The session stores the messages, and no part of memory."""
    app = App1(host, agent(CALL, ANSWER))

    await app.ask("One.")

    session = await app.sessions.get_session(app_name="app", user_id="ann", session_id="s1")
    kept = session.model_dump_json()
    assert "One." in kept
    assert [] == [each for each in (RECALLED, RULE, BLOCK, "beaver") if each in kept]


async def test_a_live_run(host, probe):
    """A live run has no turn."""
    queue, app = LiveRequestQueue(), App1(host, agent())
    with pytest.raises(NotImplementedError):  # the scripted model is no live one
        async for _ in app.runner.run_live(user_id="ann", session_id="s1", live_request_queue=queue):
            pass

    assert () == probe.told


def test_without_an_event_loop(tmp_path):
    """With a SyncHost `Runner.run` works, and breaking it off drops the turn."""
    probe, begun = Probe(), [LlmResponse(content=content("One ", "model"), partial=True)]
    with SyncHost({"probe": probe}, state_folder=tmp_path) as host:
        app = App1(host, agent(ANSWER, begun))
        given = {"user_id": "ann", "session_id": "s1"}
        assert 1 == len(list(app.runner.run(**given, new_message=content("One."))))
        stream = app.runner.run(**given, new_message=content("Two."), run_config=STREAMED)
        assert next(stream).partial
        stream.close()
        host.drain()

    assert [("after_prompt",), ("on_turn_dropped",)] == list(probe.endings().values())
    assert (DropReason.CANCELLED,) == probe.reasons


def test_a_host_of_another_loop(tmp_path):
    """`Runner.run` with a Host raises an error that names SyncHost."""

    async def run():
        async with Host({}, state_folder=tmp_path) as host:
            app = App1(host, agent(ANSWER))
            await asyncio.to_thread(
                lambda: list(app.runner.run(user_id="ann", session_id="s1", new_message=content("One.")))
            )

    with pytest.raises(RuntimeError, match="SyncHost") as caught:
        asyncio.run(run())
    assert isinstance(caught.value.__cause__, WrongLoop)


def test_something_that_is_no_host():
    """A plugin without a host is refused at once."""
    with pytest.raises(HostMisused):
        BeaverPlugin(None)
