"""The line that says what a tool call came to."""

import pytest

from beaver_hooks.cli.chat import tool_line
from beaver_hooks.tools import ToolOutcome
from beaver_hooks.tools.outcomes import ToolCall
from beaver_hostspecs.testing import make_canary

CALL = ToolCall(id="1", name="memory", arguments="{}")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "  [memory: done]"),
        ({"arguments": {"action": "add", "content": "I like tea"}}, '  [memory add "I like tea": done]'),
        ({"arguments": {"a": "", "b": ["x", 1], "c": None, "d": "é"}}, '  [memory "" ["x", 1] null é: done]'),
        ({"arguments": {"a": "x"}, "error": "no\nroom"}, "  [memory x: failed, no room]"),
        ({"arguments": {"a": "x"}, "private": True}, "  [memory: done]"),
        ({"arguments": {"a": "x" * 400}}, f"  [memory {'x' * 300}...: done]"),
    ],
)
def test_lines(fields, expected):
    """It has the tool, what it was given in short and on one line, and how it ended; a private one says less."""
    assert expected == tool_line(ToolOutcome(call=CALL, text="x", **fields))


def test_a_credential_is_masked():
    """What this process knows to be a secret is not shown."""
    canary = make_canary()

    assert canary.reveal() not in tool_line(ToolOutcome(call=CALL, text="x", arguments={"a": canary.reveal()}))
