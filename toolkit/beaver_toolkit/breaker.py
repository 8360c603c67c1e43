"""A circuit breaker: pauses calls to a server that fails. Pure: no clock, no lock, no file.

1. Closed: every call is admitted. So many failures in a row open it.
2. Open: no call is admitted until its time has passed.
3. Then one call is admitted as a probe, and the time is set to the end of its lease: all others are refused as before,
   and where the caller that probes is killed, another one probes after the lease.
4. Any answer closes it: the state is `CLOSED` again.

Times are seconds of whichever clock the caller uses. A time further away than the policy can have set it (a clock that
processes share was put back) counts as passed.
"""

from dataclasses import dataclass, replace

_MOST_DOUBLINGS = 64


@dataclass(frozen=True, kw_only=True)
class BreakerPolicy:
    """When a breaker opens, and for how long.

    Attributes:
        failures: how many failures in a row open it.
        seconds: how long it is open at first; twice as long after each further failure.
        longest: the most seconds it is open; `seconds` unless given.
        lease: how long a probe keeps others from probing; `seconds` unless given.
    """

    failures: int
    seconds: float
    longest: float | None = None
    lease: float | None = None

    def pause(self, failures: int) -> float:
        """Return the seconds that it is open after so many failures in a row."""
        longest = self.seconds if self.longest is None else self.longest
        return min(longest, self.seconds * 2.0 ** min(failures - self.failures, _MOST_DOUBLINGS))


@dataclass(frozen=True, kw_only=True)
class BreakerState:
    """The state of a breaker.

    Attributes:
        failures: failures in a row.
        until: while it is open, when the next call may probe.
        reason: why it is open.
    """

    failures: int = 0
    until: float | None = None
    reason: str | None = None


CLOSED = BreakerState()


def is_open(state: BreakerState, policy: BreakerPolicy, *, now: float) -> bool:
    """Return whether no call is admitted."""
    furthest = max(policy.pause(policy.failures + _MOST_DOUBLINGS), _lease(policy))
    return state.until is not None and now < state.until <= now + furthest


def admit(state: BreakerState, policy: BreakerPolicy, *, now: float) -> tuple[bool, BreakerState]:
    """Return whether a call may be made, and the state after that decision."""
    if state.until is None:
        return True, state
    if is_open(state, policy, now=now):
        return False, state
    return True, replace(state, until=now + _lease(policy))


def after_failure(
    state: BreakerState, policy: BreakerPolicy, *, reason: str, now: float, probe: bool = False
) -> BreakerState:
    """Return the state after a failure.

    An open breaker keeps its state: the call began before it opened, or is a probe under a lease that goes on.

    Args:
        state: the state before.
        policy: when it opens, and for how long.
        reason: why the call failed.
        now: the time.
        probe: whether the call is the probe and its lease ends with it.
    """
    if is_open(state, policy, now=now) and not probe:
        return state
    failures = state.failures + 1
    if failures < policy.failures:
        return BreakerState(failures=failures)
    return BreakerState(failures=failures, until=now + policy.pause(failures), reason=reason)


def after_refusal(policy: BreakerPolicy, *, reason: str, now: float) -> BreakerState:
    """Return the state after a failure that opens it at once."""
    return BreakerState(failures=policy.failures, until=now + policy.seconds, reason=reason)


def _lease(policy: BreakerPolicy) -> float:
    return policy.seconds if policy.lease is None else policy.lease
