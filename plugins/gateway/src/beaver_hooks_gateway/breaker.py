"""When a gateway that does not answer is left alone for a while. Pure: no clock, no file.

1. Closed: everything is let through. So many transient failures in a row open it.
2. Open: nothing is let through until its time has passed.
3. Then one call is let through as a probe, and the time starts again: all others go on being skipped, and if whoever
   probes is killed, the next one probes later.
4. An answer of any kind closes it, even a refusal: whoever answers costs no deadline.
5. Refused credentials open it at once.

Times are seconds since 1970, because several processes share the state. A time further away than the policy can have
set it (the clock was put back) counts as passed.
"""

import math
from collections.abc import Mapping
from typing import Any

import attrs
from attrs import field
from attrs.validators import ge, in_, instance_of, optional

from beaver_hooks_gateway.errors import TRANSIENT

REFUSED = "credentials refused"
REASONS = TRANSIENT | {REFUSED}
"""Why it can be open."""


def _finite(_: object, __: object, value: float | None) -> None:
    if value is not None and not (isinstance(value, int | float) and math.isfinite(value)):
        raise ValueError("not a time")


@attrs.frozen(kw_only=True)
class Policy:
    """How patient the breaker is: see `BreakerSettings`."""

    failures: int
    seconds: float


@attrs.frozen(kw_only=True)
class State:
    """Where the breaker is.

    Attributes:
        failures: transient failures in a row.
        until: while it is open, when the next call may probe.
        reason: why it is open.
    """

    # What another process has kept may have been written by anybody.
    failures: int = field(default=0, validator=[instance_of(int), ge(0)])
    until: float | None = field(default=None, validator=_finite)
    reason: str | None = field(default=None, validator=optional(in_(REASONS)))


CLOSED = State()


def is_open(state: State, policy: Policy, *, now: float) -> bool:
    """Whether nothing is let through."""
    return state.until is not None and now < state.until <= now + policy.seconds


def admit(state: State, policy: Policy, *, now: float) -> tuple[bool, State]:
    """Return whether a call may be made, and the state after that decision."""
    if state.until is None:
        return True, state
    if is_open(state, policy, now=now):
        return False, state
    return True, attrs.evolve(state, until=now + policy.seconds)


def after_failure(state: State, policy: Policy, *, category: str, now: float) -> State:
    """Return the state after a transient failure."""
    if is_open(state, policy, now=now):
        return state  # the probe failed, or a call that was on its way before it opened
    failures = state.failures + 1
    if failures < policy.failures:
        return State(failures=failures)
    return State(failures=failures, until=now + policy.seconds, reason=category)


def after_refusal(policy: Policy, *, now: float) -> State:
    """Return the state after the credentials were refused."""
    return State(failures=policy.failures, until=now + policy.seconds, reason=REFUSED)


def to_json(state: State) -> dict[str, Any]:
    """Return the state as plain data."""
    return attrs.asdict(state)


def from_json(value: object) -> State:
    """Return the state that `to_json` wrote; a closed one for anything else."""
    if not isinstance(value, Mapping):
        return CLOSED
    try:
        return State(**{name: value[name] for name in ("failures", "until", "reason") if name in value})
    except (TypeError, ValueError, OverflowError):
        return CLOSED
