"""When a server is left alone, as a pure machine."""

import math

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from beaver_toolkit.breaker import CLOSED, BreakerPolicy, BreakerState, admit, after_failure, is_open

POLICY = BreakerPolicy(failures=3, seconds=30.0)
GROWING = BreakerPolicy(failures=1, seconds=4.0, longest=60.0, lease=math.inf)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (100.0, (False, 130.0)),
        (129.9, (False, 130.0)),
        (130.0, (True, 160.0)),
        (500.0, (True, 530.0)),
        (99.9, (True, 129.9)),
    ],
)
def test_one_call_probes(now, expected):
    """After its time one call is let through, and the time starts again; so it does if the clock was put back."""
    admitted, state = admit(BreakerState(failures=3, until=130.0), POLICY, now=now)

    assert expected == (admitted, state.until)


def test_a_failed_probe_leaves_it_open():
    """A failure while it is open changes nothing: its time runs already."""
    _, probing = admit(BreakerState(failures=3, until=130.0, reason="timeout"), POLICY, now=130.0)

    assert probing == after_failure(probing, POLICY, reason="dns", now=140.0)
    assert is_open(probing, POLICY, now=140.0)


def test_a_late_failure_of_a_probe_opens_it_again():
    """A probe that fails after its time opens it anew."""
    expected = BreakerState(failures=4, until=200.0, reason="dns")

    assert expected == after_failure(BreakerState(failures=3, until=130.0), POLICY, reason="dns", now=170.0)


class Breaking(RuleBasedStateMachine):
    """Calls, failures and time in any order."""

    def __init__(self):
        super().__init__()
        self.state, self.now, self.admitted = CLOSED, 1000.0, []

    @rule(seconds=st.floats(0, 40))
    def wait(self, seconds):
        self.now += seconds

    @rule()
    def call_and_fail(self):
        was_open = self.state.until is not None
        admitted, self.state = admit(self.state, POLICY, now=self.now)
        if admitted:
            self.admitted += [self.now] if was_open else []
            self.state = after_failure(self.state, POLICY, reason="timeout", now=self.now)

    @rule()
    def call_and_succeed(self):
        admitted, self.state = admit(self.state, POLICY, now=self.now)
        if admitted:
            self.state, self.admitted = CLOSED, []

    @invariant()
    def opens_after_so_many(self):
        assert (self.state.until is not None) == (self.state.failures >= POLICY.failures)

    @invariant()
    def probes_are_far_apart(self):
        gaps = [later - earlier for earlier, later in zip(self.admitted, self.admitted[1:], strict=False)]
        assert all(gap > POLICY.seconds - 0.001 for gap in gaps)


TestBreaking = Breaking.TestCase


def test_the_pause_doubles():
    """With a longest pause, each further failure doubles the pause up to it."""
    state, now, pauses = CLOSED, 0.0, []
    for _ in range(6):
        state = after_failure(state, GROWING, reason="timeout", now=now, probe=True)
        pauses.append(state.until - now)
        now = state.until

    assert [4.0, 8.0, 16.0, 32.0, 60.0, 60.0] == pauses
    assert 60.0 == GROWING.pause(10**9)


def test_a_lease_without_end():
    """A policy may let a probe take as long as it needs: no other call is admitted, and its failure opens it anew."""
    failed = after_failure(CLOSED, GROWING, reason="timeout", now=0.0)
    admitted, probing = admit(failed, GROWING, now=4.0)

    assert (True, math.inf) == (admitted, probing.until)
    assert (False, probing) == admit(probing, GROWING, now=1e9)
    assert probing == after_failure(probing, GROWING, reason="dns", now=5.0)
    assert BreakerState(failures=2, until=13.0, reason="dns") == after_failure(
        probing, GROWING, reason="dns", now=5.0, probe=True
    )
