import pytest
from conformance.harness_agent import AgentHarness

from beaver_hostspecs.conformance import HOST_CASES, Outcome, examine


@pytest.mark.parametrize("case", HOST_CASES, ids=str)
async def test_the_reference_agent(case):
    """The reference agent passes the case, or its card excuses it."""
    verdict = await examine(case, AgentHarness)
    assert Outcome.FAILED != verdict.outcome, verdict.reason
