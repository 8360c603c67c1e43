"""The result of a run, the summaries of its tool calls, and the settings of the agent."""

from datetime import timedelta
from pathlib import Path

import pytest

from beaver_hooks.agent.loop import AgentRunResult, ToolCallSummary, summarise_calls
from beaver_hooks.agent.messages import Usage
from beaver_hooks.config import structure
from beaver_hooks.config.model import AgentSettings
from beaver_hooks.tools import ToolOutcome
from beaver_hooks.tools.outcomes import ToolCall
from beaver_hostspecs import ConfigurationError


def outcome(number, error=None):
    call = ToolCall(id=f"call-{number}", name="recall", arguments='{"query": "private"}')
    return ToolOutcome(call=call, text="private", error=error, duration=timedelta(milliseconds=1.5))


def test_tool_calls_are_summarised():
    """In order, without what they were about."""
    summary = {"name": "recall", "duration": timedelta(milliseconds=1.5)}

    assert (
        ToolCallSummary(id="call-1", outcome="success", **summary),
        ToolCallSummary(id="call-2", outcome="error", **summary),
    ) == summarise_calls([outcome(1), outcome(2, "private")])


def test_a_result_as_json():
    """Exactly the documented keys."""
    result = AgentRunResult(
        text="done",
        status="tool_limit",
        session_id="s",
        turn_id="t",
        tool_calls=summarise_calls([outcome(1)]),
        usage=Usage(input_tokens=7, output_tokens=3),
        receipt_id="r",
    )

    assert {
        "text": "done",
        "status": "tool_limit",
        "sessionId": "s",
        "turnId": "t",
        "toolCalls": [{"id": "call-1", "name": "recall", "outcome": "success", "milliseconds": 1.5}],
        "usage": {"inputTokens": 7, "outputTokens": 3},
        "receiptId": "r",
    } == result.to_json()


def test_a_result_without_tools_and_usage():
    """The keys are there all the same."""
    assert {
        "text": "",
        "status": "completed",
        "sessionId": "s",
        "turnId": "t",
        "toolCalls": [],
        "usage": None,
        "receiptId": None,
    } == AgentRunResult(text="", session_id="s", turn_id="t").to_json()


def test_settings():
    """They are read from the section `agent`."""
    section = {
        "systemPrompt": "Be brief.",
        "maxToolRounds": 1,
        "historyMessages": 0,
        "storeSecrets": True,
        "skills": ["review"],
        "skillFolders": ["skills"],
        "toolOutputCharacters": 100,
    }

    assert AgentSettings(
        system_prompt="Be brief.",
        max_tool_rounds=1,
        history_messages=0,
        store_secrets=True,
        skills=("review",),
        skill_folders=(Path("skills"),),
        tool_output_characters=100,
    ) == structure(AgentSettings, section, "agent", environment={})


def test_the_defaults():
    """An empty section is the defaults."""
    settings = structure(AgentSettings, {}, "agent", environment={})

    assert (AgentSettings(), 8, 50, False, 20_000, (), ()) == (
        settings,
        settings.max_tool_rounds,
        settings.history_messages,
        settings.store_secrets,
        settings.tool_output_characters,
        settings.skills,
        settings.skill_folders,
    )


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ({"maxToolRounds": 0}, "agent.maxToolRounds: must be between 1 and 100"),
        ({"historyMessages": -1}, "agent.historyMessages: must be between 0 and 10000"),
        ({"skills": ["a", "a"]}, "agent.skills: must not name anything twice"),
        ({"toolOutputCharacters": 99}, "agent.toolOutputCharacters: must be between 100 and 1000000"),
        ({"systemprompt": ""}, "agent.systemprompt: is not a setting (did you mean `systemPrompt`?)"),
    ],
)
def test_settings_that_do_not_fit(section, problem):
    """The error names the path and shows no value."""
    with pytest.raises(ConfigurationError) as caught:
        structure(AgentSettings, section, "agent", environment={})

    assert problem == str(caught.value)
