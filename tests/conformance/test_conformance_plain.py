import pytest
from conformance.harness_plain import PlainHarness

from beaver_hostspecs.conformance import HOST_CASES, Outcome, examine


@pytest.mark.parametrize("case", HOST_CASES, ids=str)
async def test_a_plain_host(case):
    """A synchronous agent with a call before and a call after passes the case, or its card excuses it."""
    verdict = await examine(case, PlainHarness)
    assert Outcome.FAILED != verdict.outcome, verdict.reason
