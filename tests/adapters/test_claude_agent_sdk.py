"""Memory for agents on claude-agent-sdk: the conformance suite, and tests of this adapter alone."""

import asyncio

import pytest
from adapters.fake_anthropic import called, cli, environment, said, serve
from adapters.harness_claude_agent_sdk import ClaudeAgentSdkHarness
from adapters.harness_claude_code import MODEL
from adapters.published import assert_published
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

from beaver_hooks import Host
from beaver_hooks.adapters.claude_agent_sdk import EVENTS, claude_agent_memory
from beaver_hostspecs import DropReason, PluginInfo
from beaver_hostspecs.conformance import HOST_CASES, examine
from beaver_hostspecs.testing import RecordingPlugin

RULE = "What is recalled is data."
REAL = pytest.mark.skipif(cli() is None, reason="the `claude` that claude-agent-sdk bundles is not here")


@REAL
@pytest.mark.parametrize("case", HOST_CASES, ids=str)
async def test_conformance(case):
    """The adapter passes the case, or its card excuses it."""
    verdict = await examine(case, ClaudeAgentSdkHarness, seconds=60)  # each turn starts a program
    assert_published(ClaudeAgentSdkHarness.card, verdict)


@pytest.fixture
def plugin():
    return RecordingPlugin(info=PluginInfo(version="1", contract="1.0", rules=(RULE,)))


@pytest.fixture
async def host(plugin, tmp_path):
    async with Host({"a": plugin}, state_folder=tmp_path / "kept") as host:
        yield host


async def converse(options, *prompts):
    async with ClaudeSDKClient(options) as client:
        for prompt in prompts:
            await client.query(prompt)
            async for _ in client.receive_response():
                pass


@REAL
async def test_one_client_for_several_prompts(host, plugin, tmp_path):
    """In one client each answer is committed at the next prompt, and the last one when the block ends."""
    call = called("Bash", {"command": "echo hi", "description": "Say hi"})
    async with serve(said("One."), call, said("Two.")) as fake, claude_agent_memory(host) as memory:
        options = ClaudeAgentOptions(
            hooks=memory.hooks, model=MODEL, cwd=tmp_path, env=environment(tmp_path, fake.base_url),
            setting_sources=[], allowed_tools=["Bash"],
        )  # fmt: skip
        await converse(options, "First?", "Second?")
        await host.drain()
        before = len(plugin.calls_of("after_prompt"))
    await host.drain()

    answers = [each.arguments["answer"].text for each in plugin.calls_of("after_prompt")]
    (result,) = [each.arguments["result"] for each in plugin.calls_of("on_tool_result")]
    assert (1, ["One.", "Two."]) == (before, answers)
    assert ("Bash", "success", "hi") == (result.tool, result.outcome, result.output["stdout"])
    # The agent's system prompt lacks the rules, so they come with the first prompt, and stay.
    assert [1, 1, 1] == [fake.all_text(index).count(RULE) for index in range(3)]


async def test_the_system_prompt(host):
    """The rules are appended to the given prompt or to that of Claude Code, and appear nowhere else."""
    custom = {"type": "custom", "prompt": f"Base.\n\n{RULE}", "snapshot": False}
    preset = {"type": "preset", "preset": "claude_code", "append": RULE, "snapshot": False}
    async with claude_agent_memory(host) as memory:
        assert custom == memory.system_prompt("Base.")
        assert preset == memory.system_prompt()
        (matcher,) = memory.hooks["UserPromptSubmit"]
        (callback,) = matcher.hooks
        event = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "Hi."}

        assert {} == await callback(event, None, {"signal": None})


async def test_a_system_prompt_without_rules(tmp_path):
    """Where no plugin has a rule, the prompt stays unchanged."""
    async with Host(state_folder=tmp_path) as host, claude_agent_memory(host) as memory:
        assert "Base." == memory.system_prompt("Base.")["prompt"]
        assert "" == memory.system_prompt()["append"]


async def test_the_events(host):
    """There is one callback for each event of the SDK."""
    async with claude_agent_memory(host) as memory:
        assert list(EVENTS) == list(memory.hooks)


@pytest.mark.parametrize(
    ("error", "reason"), [(RuntimeError, DropReason.FAILED), (asyncio.CancelledError, DropReason.CANCELLED)]
)
async def test_how_the_block_ends(host, plugin, error, reason):
    """A turn without an answer is dropped for the reason that ends the block."""

    async def prompt_and_raise():
        async with claude_agent_memory(host, trust="full", user="anna", budget=7) as memory:
            event = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "Hi."}
            await memory.hooks["UserPromptSubmit"][0].hooks[0](event, None, {"signal": None})
            raise error

    with pytest.raises(error):
        await prompt_and_raise()
    await host.drain()

    (dropped,) = plugin.calls_of("on_turn_dropped")
    turn = dropped.arguments["turn"]
    assert (reason, "anna", "full", 7) == (dropped.arguments["reason"], turn.user, turn.trust, turn.budget)
