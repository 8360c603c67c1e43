"""A host that is closed while a framework runs, for every adapter, in a thread and in the framework's own loop."""

import asyncio

import pytest
from adapters.harness_langchain import LangchainHarness
from adapters.harnesses import IN_LOOP, IN_THREAD
from conformance.scripted import ModelDown

from beaver_hostspecs import Tool
from beaver_hostspecs.conformance import ECHO, Ask, CallTool, Fail, Say
from beaver_hostspecs.testing import RecordingPlugin

SYNC = [each for each in IN_THREAD if each.card.sync]
PROMPT = "When is it?"


async def look(arguments, turn, report):
    return "Thursday"


@pytest.fixture
async def opened():
    made = []

    async def open_harness(make):
        harness = make()
        plugin = RecordingPlugin(tools=[Tool(name="look", description="Look.", parameters={}, run=look)])
        made.append((harness, plugin))
        await harness.open({"p": plugin})
        return harness, plugin

    yield open_harness
    for harness, _ in made:
        harness.host = None
        await harness.close()


async def close(harness):
    await (harness.host.close() if harness.in_loop else asyncio.to_thread(harness.host.close))


def close_at_first_step(harness):
    """Close the host when the model is asked for the first time."""
    plain, later, done = harness.scripts.step_for, harness.scripts.next_for, []

    async def step_for(texts):
        if not done:
            done.append(True)
            await close(harness)
        return await plain(texts)

    def next_for(texts):
        if not done:
            done.append(True)
            harness.host.close()
        return later(texts)

    harness.scripts.step_for = step_for
    if isinstance(harness, LangchainHarness):  # whose model is asked without a loop by `invoke`
        harness.scripts.next_for = next_for


@pytest.mark.parametrize("make", [*IN_THREAD, *IN_LOOP], ids=lambda each: each.__name__)
@pytest.mark.parametrize("tool", [ECHO, "look"])
async def test_closed_between_two_steps(opened, make, tool):
    """The run goes on without memory: a plugin's tool says that it is out of service, and the user has the answer."""
    harness, plugin = await opened(make)
    close_at_first_step(harness)
    arguments = {"text": "x"} if tool == ECHO else {}
    ask = Ask(prompt=PROMPT, steps=(CallTool(tool=tool, arguments=arguments), Say(text="On Thursday.")))

    assert "On Thursday." == await harness.run(ask)
    assert not plugin.calls_of("after_prompt")
    assert 1 == len(plugin.calls_of("on_turn_dropped"))


@pytest.mark.parametrize("make", SYNC, ids=lambda each: each.__name__)
async def test_closed_without_a_loop(opened, make):
    """So it is by the entry point for callers without an event loop."""
    harness, plugin = await opened(make)
    close_at_first_step(harness)
    ask = Ask(prompt=PROMPT, steps=(CallTool(tool="look"), Say(text="On Thursday.")), way="sync")

    assert "On Thursday." == await harness.run(ask)
    assert not plugin.calls_of("after_prompt")


@pytest.mark.parametrize("make", SYNC, ids=lambda each: each.__name__)
async def test_a_model_that_fails_then(opened, make):
    """What the model raised is what comes out."""
    harness, _ = await opened(make)
    close_at_first_step(harness)

    with pytest.raises(ModelDown):
        await harness.run(Ask(prompt=PROMPT, steps=(Fail(),), way="sync"))
