import asyncio
import contextlib
import gc
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from adapters.harness_openai_agents import OpenaiAgentsHarness, OpenaiAgentsInLoopHarness, ScriptedModel, echo
from adapters.published import assert_published
from agents import (
    Agent,
    AgentHooks,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    OutputGuardrailTripwireTriggered,
    RunConfig,
    RunHooks,
    Runner,
    RunState,
    function_tool,
    input_guardrail,
)
from agents.run_config import ModelInputData
from conformance.scripted import ModelDown
from pydantic import BaseModel

from beaver_hooks.adapters.adapter_turn import AdapterTurn
from beaver_hooks.adapters.openai_agents import BeaverRunner
from beaver_hostspecs import DropReason, HostMisused, HostNotOpen
from beaver_hostspecs.conformance import BROKEN, ECHO, HOST_CASES, Ask, CallTool, Fail, Hang, Say, examine
from beaver_hostspecs.conformance.probes import PROBE_TOOL, RECALLED, RULE, Probe

BOTH = pytest.mark.parametrize("harness", [OpenaiAgentsHarness, OpenaiAgentsInLoopHarness])
ECHOED = CallTool(tool=ECHO, arguments={"text": "once"})
SEARCHED = CallTool(tool=PROBE_TOOL, arguments={"query": "thursday"})
ANSWERED = Say(text="On Thursday.")
PROMPT = "When do we release?"
QUIET = RunConfig(tracing_disabled=True)


@BOTH
@pytest.mark.parametrize("case", HOST_CASES, ids=str)
async def test_conformance(case, harness):
    """The adapter passes the case, or its card excuses it."""
    verdict = await examine(case, harness)
    assert_published(harness.card, verdict)


@asynccontextmanager
async def remembering(harness=OpenaiAgentsHarness):
    """Open an agent with a probe."""
    made, probe = harness(), Probe()
    await made.open({"probe": probe})
    try:
        yield made, probe
    finally:
        await made.close()


def ask(*steps, prompt=PROMPT, **more):
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


# --- What the user has configured --------------------------------------------------------------------------------


class Noting(RunHooks):
    """Records the calls of hooks, with the agent."""

    def __init__(self):
        self.called = []

    async def on_agent_start(self, context, agent):
        self.called.append(("on_agent_start", agent.name))

    async def on_agent_end(self, context, agent, output):
        self.called.append(("on_agent_end", output))

    async def on_llm_start(self, context, agent, system_prompt, input_items):
        self.called.append(("on_llm_start", len(input_items)))

    async def on_llm_end(self, context, agent, response):
        self.called.append(("on_llm_end", agent.name))

    async def on_tool_start(self, context, agent, tool):
        self.called.append(("on_tool_start", tool.name))

    async def on_tool_end(self, context, agent, tool, result):
        self.called.append(("on_tool_end", result))

    async def on_handoff(self, context, from_agent, to_agent):
        self.called.append(("on_handoff", from_agent.name, to_agent.name))


@pytest.mark.parametrize("config", [{"tracing_disabled": True}, QUIET])
@pytest.mark.parametrize("way", ["run", "stream"])
async def test_the_users_own_hooks_filter_and_formatter(config, way):
    """The user's hooks, filter and formatter work as without memory, and their objects stay unchanged."""
    hooks, seen = Noting(), []

    async def short(data):
        seen.append([each.get("content") for each in data.model_data.input])
        return ModelInputData(input=data.model_data.input[-3:], instructions="Instead.")

    own = {"call_model_input_filter": short, "tool_error_formatter": lambda given: f"{given.tool_name} is down"}
    given = {**config, **own} if isinstance(config, dict) else RunConfig(tracing_disabled=True, **own)
    async with remembering() as (made, probe):
        made.scripts.begin(ask(CallTool(tool=BROKEN), ANSWERED))
        options = {"hooks": hooks, "run_config": given}
        if way == "run":
            await made.runner.run(made.agent, PROMPT, **options)
        else:
            async for _ in made.runner.run_streamed(made.agent, PROMPT, **options).stream_events():
                pass
        assert (["On Thursday."], []) == await ended(made, probe)

    started = [("on_agent_start", "agent"), ("on_llm_start", 2), ("on_llm_end", "agent"), ("on_tool_start", BROKEN)]
    rest = [("on_tool_end", "broken is down"), ("on_llm_start", 4), ("on_llm_end", "agent")]
    assert [*started, *rest, ("on_agent_end", "On Thursday.")] == hooks.called
    assert PROMPT == seen[0][0]
    assert [f"Instead.\n\n{RULE}"] * 2 == [call.system[: len(f"Instead.\n\n{RULE}")] for call in made.calls]
    assert [True, True] == [call.messages[0].text.count(RECALLED) == 1 for call in made.calls]
    assert [(BROKEN, "call-1", {}, None, "RuntimeError")] == told(probe)
    assert (hooks, given) == (options["hooks"], options["run_config"])
    assert short is (given["call_model_input_filter"] if isinstance(given, dict) else given.call_model_input_filter)


async def test_hooks_that_are_none():
    """Hooks that the SDK refuses are still refused."""
    async with remembering() as (made, _):
        with pytest.raises(TypeError, match="Run hooks must be instances of RunHooks"):
            await made.runner.run(made.agent, PROMPT, hooks=AgentHooks(), run_config=QUIET)


async def test_a_filter_that_fails():
    """A filter of the user that raises ends run and turn."""

    def filtering(data):
        raise ModelDown("no filter")

    async with remembering() as (made, probe):
        config = RunConfig(tracing_disabled=True, call_model_input_filter=filtering)
        with pytest.raises(ModelDown):
            await made.runner.run(made.agent, PROMPT, run_config=config)
        assert ([], [DropReason.FAILED]) == await ended(made, probe)


# --- Guardrails and limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["whole", "stream", "sync"])
async def test_an_output_guardrail(way):
    """An answer that an output guardrail refuses drops the turn as blocked, by every entry point."""
    async with remembering() as (made, probe):
        with pytest.raises(OutputGuardrailTripwireTriggered):
            await made.run(ask(blocked=True, way=way))
        assert ([], [DropReason.BLOCKED]) == await ended(made, probe)


async def test_an_input_guardrail():
    """A prompt that an input guardrail refuses is not learned from."""

    @input_guardrail
    async def refusing(context, agent, prompt):
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    async with remembering() as (made, probe):
        made.scripts.begin(ask())
        agent = made.agent.clone(input_guardrails=[refusing])
        with pytest.raises(InputGuardrailTripwireTriggered):
            await made.runner.run(agent, PROMPT, run_config=QUIET)
        learned, dropped = await ended(made, probe)

    assert [] == learned
    assert [DropReason.BLOCKED] * len(probe.turns) == dropped


async def test_too_many_steps():
    """A run that is stopped for its number of steps has failed."""
    async with remembering() as (made, probe):
        made.scripts.begin(ask(ECHOED, ANSWERED))
        with pytest.raises(MaxTurnsExceeded):
            await made.runner.run(made.agent, PROMPT, max_turns=1, run_config=QUIET)
        assert ([], [DropReason.FAILED]) == await ended(made, probe)


# --- Several agents ----------------------------------------------------------------------------------------------


@BOTH
async def test_a_handoff(harness):
    """A handoff stays within the turn, and the agent that takes over gets the same memory."""
    async with remembering(harness) as (made, probe):
        other = Agent(name="other", instructions="Other.", model=ScriptedModel(made), tools=made.runner.tools)
        agent = made.agent.clone(handoffs=[other])
        hooks = Noting()
        made.scripts.begin(ask(CallTool(tool="transfer_to_other", id="call-0"), SEARCHED, ANSWERED))
        result = await made.runner.run(agent, PROMPT, hooks=hooks, run_config=QUIET)
        assert (["On Thursday."], []) == await ended(made, probe)

    assert other is result.last_agent
    assert ("on_handoff", "agent", "other") in hooks.called
    assert 1 == len({call.messages[0].text for call in made.calls})
    assert RECALLED in made.calls[0].messages[0].text
    assert made.calls[2].system.startswith(f"Other.\n\n{RULE}")
    assert [(PROBE_TOOL, None)] == [(each.tool, each.error) for each in probe.results]


async def test_an_agent_as_a_tool():
    """An agent that runs as a tool gets the user's filter, and no references of the turn."""
    filtered = []

    def noting(data):
        filtered.append(data.agent.name)
        return data.model_data

    async with remembering() as (made, probe):
        inner = Agent(name="inner", instructions="Inner.", model=ScriptedModel(made))
        agent = made.agent.clone(tools=[inner.as_tool("delegate", "Ask another agent.")])
        made.scripts.begin(ask(CallTool(tool="delegate", arguments={"input": "The inner prompt."}), ANSWERED))
        made.scripts.begin(ask(Say(text="The inner answer."), prompt="The inner prompt."))
        config = RunConfig(tracing_disabled=True, call_model_input_filter=noting)
        await made.runner.run(agent, PROMPT, run_config=config)
        assert (["On Thursday."], []) == await ended(made, probe)

    assert ["agent", "inner", "agent"] == filtered
    assert ("Inner.", ["The inner prompt."]) == (made.calls[1].system, [each.text for each in made.calls[1].messages])
    assert [PROMPT] == [each.prompt for each in probe.turns]
    assert ["The inner answer."] == [each.output for each in probe.results]


async def test_a_run_in_a_tool():
    """A run with memory within another one has its own turn."""
    async with remembering() as (made, probe):
        inner = Agent(name="inner", instructions="Inner.", model=ScriptedModel(made))

        @function_tool
        async def delegate() -> str:
            """Ask another agent."""
            return (await made.runner.run(inner, "The inner prompt.", run_config=QUIET)).final_output

        made.scripts.begin(ask(CallTool(tool="delegate"), ANSWERED))
        made.scripts.begin(ask(Say(text="The inner answer."), prompt="The inner prompt."))
        await made.runner.run(made.agent.clone(tools=[delegate]), PROMPT, run_config=QUIET)
        assert (["The inner answer.", "On Thursday."], []) == await ended(made, probe)

    assert [PROMPT, "The inner prompt."] == [each.prompt for each in probe.turns]


# --- Runs that stop and go on ------------------------------------------------------------------------------------


def approved(state):
    for each in state.get_interruptions():
        state.approve(each)
    return state


def results_of_the_last_turn(probe):
    last = probe.turns[-1].id
    results = [each.arguments for each in probe.calls_of("on_tool_result")]
    return [(each["result"].tool, each["result"].output) for each in results if each["turn"].id == last]


@BOTH
@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("way", ["run", "stream"])
async def test_an_approval(harness, written, way):
    """A run that waits for an approval is dropped, and the resumed run is a new turn with every call."""

    @function_tool(needs_approval=True)
    def careful() -> str:
        """Do it carefully."""
        return "done"

    async with remembering(harness) as (made, probe):
        agent = made.agent.clone(tools=[*made.agent.tools, careful])
        options = {**made.options(ask()), "context": {"user_id": "user-1"}}
        made.scripts.begin(ask(ECHOED, CallTool(tool="careful", id="call-2"), ANSWERED))
        waiting = await made.runner.run(agent, PROMPT, **options)
        assert ([], [DropReason.ABANDONED]) == await ended(made, probe)

        state = waiting.to_state()
        state = approved(await RunState.from_json(agent, state.to_json()) if written else state)
        if way == "run":
            result = await made.runner.run(agent, state, **options)
        else:
            result = made.runner.run_streamed(agent, state, **options)
            async for _ in result.stream_events():
                pass
        assert "On Thursday." == result.final_output
        assert (["On Thursday."], [DropReason.ABANDONED]) == await ended(made, probe)

    assert [(PROMPT, "session-1", "user-1")] * 2 == [(each.prompt, each.session, each.user) for each in probe.turns]
    assert [(ECHO, "once"), ("careful", "done")] == results_of_the_last_turn(probe)


async def test_an_approval_of_a_plugins_tool():
    """A plugin's approved tool runs before the turn of the resumed run is open."""
    async with remembering() as (made, probe):
        (search,) = made.runner.tools
        search.needs_approval = True
        agent = made.agent.clone(tools=[search])
        made.scripts.begin(ask(SEARCHED, ANSWERED))
        waiting = await made.runner.run(agent, PROMPT, **made.options(ask()))
        result = await made.runner.run(agent, approved(waiting.to_state()), **made.options(ask()))
        assert "On Thursday." == result.final_output
        learned, dropped = await ended(made, probe)

    assert ["On Thursday."] == learned
    assert {DropReason.ABANDONED} == set(dropped)
    assert [(PROBE_TOOL, "found thursday in session-1")] == results_of_the_last_turn(probe)


# --- Prompts, sessions, answers ----------------------------------------------------------------------------------


async def test_a_prompt_with_a_picture():
    """The texts of a prompt in several parts are the turn's prompt, without pictures."""
    picture = {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "auto"}
    parts = [{"type": "input_text", "text": "What is this?"}, picture, {"type": "input_text", "text": "And why?"}]
    async with remembering() as (made, probe):
        made.scripts.begin(ask(prompt="And why?"))
        await made.runner.run(made.agent, [{"role": "user", "content": parts}], run_config=QUIET)
        assert (["On Thursday."], []) == await ended(made, probe)

    assert ["What is this?\nAnd why?"] == [each.prompt for each in probe.turns]


@pytest.mark.parametrize("given", ["", [], [{"role": "assistant", "content": "Hello."}]])
async def test_a_run_without_a_prompt(given):
    """A run without a user message is a turn with an empty prompt."""

    class Answering(ScriptedModel):
        async def _next(self, **given):
            return Say(text="What can I do for you?")

    async with remembering() as (made, probe):
        await made.runner.run(Agent(name="agent", model=Answering(made)), given, run_config=QUIET)
        assert (["What can I do for you?"], []) == await ended(made, probe)

    assert [""] == [each.prompt for each in probe.turns]


async def test_runs_without_a_session():
    """The session is the conversation's or the group's name, else the default one, else the run's own."""
    async with remembering() as (made, probe):
        by_default = BeaverRunner(made.host, session="all", user="ann")
        group = RunConfig(tracing_disabled=True, group_id="group-1")
        for runner, options in (
            (made.runner, {"run_config": QUIET}),
            (made.runner, {"run_config": QUIET, "conversation_id": "conversation-1"}),
            (made.runner, {"run_config": group}),
            (by_default, {"run_config": QUIET}),
        ):
            made.scripts.begin(ask())
            agent = made.agent.clone(output_guardrails=[])
            await runner.run(agent, PROMPT, context=SimpleNamespace(user_id=None), **options)

    sessions = [f"run-{probe.turns[0].id}", "conversation-1", "group-1", "all"]
    assert [*zip(sessions, [None, None, None, "ann"], strict=True)] == [
        (each.session, each.user) for each in probe.turns
    ]


async def test_history_is_passed_on():
    """The turn has the earlier messages of the session, without tool results."""
    async with remembering() as (made, probe):
        await made.run(ask(ECHOED, ANSWERED))
        await made.run(ask(prompt="And who tests it?"))

    said = [(each.role, each.text) for each in probe.turns[1].history]
    assert [("user", PROMPT), ("assistant", "On Thursday.")] == said


async def test_what_the_developer_says_stays_first():
    """References stand after the developer's messages."""
    async with remembering() as (made, _):
        made.scripts.begin(ask())
        seen = []
        config = RunConfig(tracing_disabled=True)
        agent = made.agent.clone(model=Seeing(made, seen))
        given = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": PROMPT}]
        await made.runner.run(agent, given, run_config=config)

    assert ["developer", "user", "user"] == [each["role"] for each in seen[0]]
    assert RECALLED in seen[0][1]["content"]


class Seeing(ScriptedModel):
    """Records the input of each call."""

    def __init__(self, harness, seen):
        super().__init__(harness)
        self._seen = seen

    async def _next(self, **given):
        self._seen.append(given["input"])
        return await super()._next(**given)


async def test_a_history_that_the_provider_keeps():
    """With a history that the provider keeps, references are sent once per turn."""
    async with remembering() as (made, probe):
        seen = []
        agent = made.agent.clone(model=Seeing(made, seen), output_guardrails=[])
        made.scripts.begin(ask(ECHOED, ANSWERED))
        with contextlib.suppress(AssertionError):  # the second call has no prompt that the script knows
            await made.runner.run(agent, PROMPT, conversation_id="conversation-1", run_config=QUIET)

    assert [1, 0] == [sum(RECALLED in str(item) for item in items) for items in seen]
    assert 1 == len(probe.turns)


@pytest.mark.parametrize("returned", [b"\xff", iter([1]), {"self": ...}], ids=["bytes", "iterator", "ellipsis"])
async def test_a_tool_that_returns_no_text(returned):
    """A tool that returns no text does not disturb the run, and its result is a success."""

    @function_tool
    def give() -> object:
        """Give."""
        return returned

    async with remembering() as (made, probe):
        made.scripts.begin(ask(CallTool(tool="give"), Say(text="Done.")))
        agent = made.agent.clone(tools=[give])
        result = await made.runner.run(agent, PROMPT, run_config=QUIET)

        assert "Done." == result.final_output
        assert (["Done."], []) == await ended(made, probe)
        assert ["success"] == [each.outcome for each in probe.results]


async def test_a_structured_answer():
    """An answer that is an object is learned as JSON."""

    class Date(BaseModel):
        day: str

    async with remembering() as (made, probe):
        made.scripts.begin(ask(Say(text='{"day": "Thursday"}')))
        agent = made.agent.clone(output_type=Date)
        result = await made.runner.run(agent, PROMPT, run_config=QUIET)
        assert Date(day="Thursday") == result.final_output
        assert (['{"day":"Thursday"}'], []) == await ended(made, probe)


async def test_a_tool_that_answers_the_user():
    """With `stop_on_first_tool` the tool's result is learned as the answer."""
    async with remembering() as (made, probe):
        made.scripts.begin(ask(ECHOED))
        agent = made.agent.clone(tool_use_behavior="stop_on_first_tool")
        await made.runner.run(agent, PROMPT, run_config=QUIET)
        assert (["once"], []) == await ended(made, probe)

    assert [(ECHO, "call-1", {"text": "once"}, "once", None)] == told(probe)


async def test_a_tool_whose_exception_ends_the_run():
    """A tool that raises ends the run and drops the turn."""

    @function_tool(failure_error_function=None)
    def ending() -> str:
        """Raise."""
        raise ModelDown("no more")

    async with remembering() as (made, probe):
        made.scripts.begin(ask(CallTool(tool="ending"), ANSWERED))
        with pytest.raises(Exception, match="no more"):
            await made.runner.run(made.agent.clone(tools=[ending]), PROMPT, run_config=QUIET)
        assert ([], [DropReason.FAILED]) == await ended(made, probe)


@BOTH
async def test_the_tool_of_a_plugin_that_is_gone(harness):
    """A tool of an unregistered plugin returns an error to the model."""
    async with remembering(harness) as (made, _):
        await made.unregister("probe")
        seen = []
        made.scripts.begin(ask(SEARCHED, ANSWERED))
        result = await made.runner.run(made.agent.clone(model=Seeing(made, seen)), PROMPT, run_config=QUIET)

    assert "On Thursday." == result.final_output
    assert "there is no such tool" in seen[1][-1]["output"]


async def test_a_plugins_tool_without_memory():
    """In a run that this runner did not start, a plugin's tool answers that there is no memory."""
    async with remembering() as (made, probe):
        seen = []
        made.scripts.begin(ask(SEARCHED, ANSWERED))
        await Runner.run(made.agent.clone(model=Seeing(made, seen)), PROMPT, run_config=QUIET)

    assert "this run has no memory" in seen[1][-1]["output"]
    assert () == probe.turns


# --- Streams -----------------------------------------------------------------------------------------------------


async def test_a_stream_is_committed_when_it_has_been_seen():
    """An answer is learned once, after the consumer has seen the end of the stream."""
    async with remembering() as (made, probe):
        made.scripts.begin(ask(Say(text="One two three.")))
        result = made.runner.run_streamed(made.agent, PROMPT, run_config=QUIET)
        during = []
        async for _ in result.stream_events():
            during.append(await ended(made, probe))
        async for _ in result.stream_events():
            raise AssertionError("there is nothing more to see")
        assert (["One two three."], []) == await ended(made, probe)

    assert [([], [])] * len(during) == during
    assert "One two three." == result.final_output


@pytest.mark.parametrize("mode", ["immediate", "after_turn"])
async def test_a_stream_that_is_cancelled(mode):
    """A stream that its consumer cancels is dropped, though it ends without an error."""
    async with remembering() as (made, probe):
        made.scripts.begin(ask(ECHOED, ANSWERED))
        result = made.runner.run_streamed(made.agent, PROMPT, run_config=QUIET)
        async for event in result.stream_events():
            if event.type == "run_item_stream_event":
                result.cancel(mode=mode)
        assert ([], [DropReason.CANCELLED]) == await ended(made, probe)


async def test_a_stream_without_a_consumer():
    """A stream without a consumer is dropped once its result is collected."""
    async with remembering() as (made, probe):
        made.scripts.begin(ask())
        result = made.runner.run_streamed(made.agent, PROMPT, run_config=QUIET)
        await result.run_loop_task
        assert ([], []) == await ended(made, probe)
        del result
        assert ([], [DropReason.ABANDONED]) == await collected(made, probe)


async def test_a_stream_whose_result_nobody_holds():
    """A stream works when only its iterator is kept, and the result object is not."""
    async with remembering() as (made, probe):
        made.scripts.begin(ask())
        events = made.runner.run_streamed(made.agent, PROMPT, run_config=QUIET).stream_events()
        gc.collect()
        assert [each async for each in events]
        assert (["On Thursday."], []) == await ended(made, probe)


@BOTH
async def test_runs_that_are_broken_off_leave_nothing_behind(harness):
    """Three hundred runs that fail, hang or lose their consumer leave no turn and no object behind."""
    asked = asyncio.Event()

    class Watching(ScriptedModel):
        async def _next(self, **given):
            asked.set()
            return await super()._next(**given)

    async with remembering(harness) as (made, probe):
        made.agent = made.agent.clone(model=Watching(made))
        for number in range(100):
            prompt, session = f"Prompt {number}.", "session-1"
            with pytest.raises(ModelDown):
                await made.run(ask(Fail(), prompt=prompt, session=session))
            await made.run(ask(Say(text="One two three."), prompt=prompt, session=session, way="break_off"))
            asked.clear()
            task = asyncio.create_task(made.run(ask(Hang(), prompt=prompt, session=session)))
            await asked.wait()
            task.cancel()
            await asyncio.wait([task])
            del task
            await made.session(session).clear_session()
        learned, dropped = await ended(made, probe)
        assert [] == alive(AdapterTurn)

    assert ([], 300) == (learned, len(dropped))
    assert (100, 200) == (dropped.count(DropReason.FAILED), dropped.count(DropReason.CANCELLED))


# --- What the SDK takes ------------------------------------------------------------------------------------------


class Nameless:
    """A session of the user whose id raises."""

    session_settings = None

    def __init__(self):
        self.items = []

    @property
    def session_id(self):
        raise RuntimeError("no id before the first row is written")

    async def get_items(self, limit=None):
        return list(self.items)

    async def add_items(self, items):
        self.items += items

    async def pop_item(self):
        return self.items.pop()

    async def clear_session(self):
        self.items.clear()


async def test_a_session_whose_id_raises(caplog):
    """A session whose id raises does not fail the run, which has its own session, and the log names the reason."""
    async with remembering() as (made, probe):
        for runner in (Runner, made.runner):
            made.scripts.begin(ask())
            result = await runner.run(made.agent, PROMPT, session=Nameless(), run_config=QUIET)
            assert "On Thursday." == result.final_output
        assert (["On Thursday."], []) == await ended(made, probe)

    (turn,) = probe.turns
    assert f"run-{turn.id}" == turn.session
    assert 'what=session why="its `session_id` raises" type=RuntimeError' in caplog.text


async def test_options_without_their_names():
    """`run_streamed` takes its options by position, as the SDK's does."""
    async with remembering() as (made, probe):
        for runner, steps in ((Runner, (ANSWERED,)), (made.runner, (ANSWERED,)), (made.runner, (ECHOED, ANSWERED))):
            made.scripts.begin(ask(*steps))
            result = runner.run_streamed(made.agent, PROMPT, {"user_id": "anna"}, 1, None, QUIET)
            over = len(steps) > 1
            with pytest.raises(MaxTurnsExceeded) if over else contextlib.nullcontext():
                async for _ in result.stream_events():
                    pass
        learned = await ended(made, probe)

    assert (["On Thursday."], [DropReason.FAILED]) == learned
    assert ["anna", "anna"] == [turn.user for turn in probe.turns]


# --- Use ---------------------------------------------------------------------------------------------------------


async def test_one_line_of_use():
    """An agent needs only a runner over the host, with tools or without."""
    async with remembering() as (made, probe):
        for tools in ([], [echo]):
            agent = Agent(name="agent", model=ScriptedModel(made), tools=tools)
            made.scripts.begin(ask())
            result = await BeaverRunner(made.host).run(agent, PROMPT, run_config=QUIET)
            assert "On Thursday." == result.final_output
        assert (["On Thursday."] * 2, []) == await ended(made, probe)


async def test_a_host_has_no_way_in_without_its_loop():
    """With a `Host`, `run_sync` is refused, and a closed host raises `HostNotOpen`."""
    async with remembering(OpenaiAgentsInLoopHarness) as (made, _):
        with pytest.raises(HostMisused, match="SyncHost"):
            await made.run(ask(way="sync"))
        agent, runner = made.agent, made.runner
    with pytest.raises(HostNotOpen):
        await runner.run(agent, PROMPT, run_config=QUIET)
