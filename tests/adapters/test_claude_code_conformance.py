"""The conformance suite for hosts, with the real Claude Code."""

import pytest
from adapters.fake_anthropic import cli
from adapters.harness_claude_code import ClaudeCodeHarness
from adapters.published import assert_published

from beaver_hostspecs.conformance import HOST_CASES, examine

pytestmark = pytest.mark.skipif(cli() is None, reason="the `claude` that claude-agent-sdk bundles is not here")


@pytest.mark.parametrize("case", HOST_CASES, ids=str)
async def test_conformance(case):
    """Claude Code passes the case, or its card excuses it."""
    verdict = await examine(case, ClaudeCodeHarness, seconds=60)  # each turn starts a program
    assert_published(ClaudeCodeHarness.card, verdict)
