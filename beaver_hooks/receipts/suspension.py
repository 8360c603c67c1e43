"""The suspension of a plugin's `before_prompt`: a pure state machine with a back-off.

Three turns in a row that fail suspend the hook, and so does one call that blocks the event loop beyond its deadline.
After the suspension's time, one turn probes the hook: an answer ends the suspension, a failure lengthens it.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
from attrs import field
from attrs.validators import ge, in_, instance_of, optional

HOOK = "before_prompt"
"""The only hook that can be suspended, as the user waits for no other hook."""

GATE = "suspension"
"""The gate of the receipt's decision that a turn left the suspended hook out."""

BLOCKED = "blocked"
"""The category of a call that blocked the event loop."""

TURNS = 3
"""Turns in a row that fail before the hook is suspended."""

SHORTEST, LONGEST = 30, 600
"""Seconds of the first suspension, and of the longest: each probe that fails doubles the seconds."""


def _is_aware(_: object, attribute: "attrs.Attribute[Any]", value: datetime | None) -> None:
    if value is not None and (not isinstance(value, datetime) or value.utcoffset() is None):
        raise ValueError(f"`{attribute.name}` is not a time with a time zone")


@attrs.frozen(kw_only=True)
class Suspension:
    """The failures and the suspension of a plugin's `before_prompt`; part of the plugin's health.

    Attributes:
        failures: the number of turns in a row that failed.
        category: the category of the last failure.
        until: the end of the suspension, or `None` if the hook is not suspended.
        seconds: the length of the last suspension.
        version: the version of the plugin that failed.
        moved: the time of the last change; it orders the records of several hosts, so it never runs backwards.
    """

    failures: int = field(default=0, validator=[instance_of(int), ge(0)])
    category: str | None = field(default=None, validator=optional(instance_of(str)))
    until: datetime | None = field(default=None, validator=_is_aware)
    seconds: int = field(default=0, validator=[instance_of(int), in_(range(LONGEST + 1))])
    version: str | None = field(default=None, validator=optional(instance_of(str)))
    moved: datetime | None = field(default=None, validator=_is_aware)

    @property
    def active(self) -> bool:
        """Whether the hook is suspended."""
        return self.until is not None

    @property
    def why(self) -> str:
        """The reason of the suspension."""
        if self.category == BLOCKED:
            return "it blocked the event loop beyond its deadline"
        return f"{self.failures} turns in a row failed, the last one with {self.category}"

    def __str__(self) -> str:
        if self.until is None:
            return f"{HOOK} is not suspended"
        return f"{HOOK} is suspended until {self.until.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC and then tried again"


def after_failure(known: Suspension, at: datetime, *, category: str, version: str) -> Suspension:
    """Return the suspension after a turn failed."""
    if known.active:
        return known
    failed = _failed(known, at, category, version)
    return _suspended(failed, SHORTEST, at) if failed.failures >= TURNS else failed


def after_block(known: Suspension, at: datetime, *, version: str) -> Suspension:
    """Return the suspension after a call blocked; it has full length, as a probe would block the event loop again."""
    return _suspended(_failed(known, at, BLOCKED, version), LONGEST, at)


def after_answer(known: Suspension, at: datetime) -> Suspension:
    """Return the suspension after a turn was answered; a turn that began before the suspension does not end it."""
    return known if known.active else lifted(known, at)


def lifted(known: Suspension, at: datetime) -> Suspension:
    """Return the suspension after a probe was answered, or after another reason to call the hook again."""
    return Suspension(moved=_later(known, at)) if known.failures or known.active else known


def after_failed_probe(known: Suspension, at: datetime, *, category: str, version: str) -> Suspension:
    """Return the suspension after a probe failed."""
    return _suspended(_failed(known, at, category, version), min(LONGEST, max(SHORTEST, 2 * known.seconds)), at)


def claimed(known: Suspension, at: datetime, *, deadline: float) -> Suspension:
    """Return the suspension while a due probe runs; during that time no turn of any host probes the hook."""
    if not is_due(known, at):
        return known
    lease = min(LONGEST, max(known.seconds, deadline))
    return attrs.evolve(known, until=at + timedelta(seconds=lease), moved=_later(known, at))


def is_due(known: Suspension, at: datetime) -> bool:
    """Whether a suspended hook is due for a probe: its time is over, or the clock was set back."""
    if known.until is None:
        return False
    return known.until <= at or known.until - at > timedelta(seconds=LONGEST)


def newer(one: Suspension, other: Suspension) -> Suspension:
    """Return the suspension that changed last; `one` if neither did."""
    if other.moved is None or (one.moved is not None and one.moved >= other.moved):
        return one
    return other


def to_json(known: Suspension) -> dict[str, object]:
    """Return the suspension as plain data."""
    values = attrs.asdict(known)
    return {name: each.isoformat() if isinstance(each, datetime) else each for name, each in values.items()}


def from_json(body: Mapping[str, object]) -> Suspension:
    """Return the suspension that `to_json` wrote; ignores fields of a newer version.

    Raises:
        TypeError: a field has the wrong type.
        ValueError: a time cannot be read, or a number is out of range.
    """
    values = {each.name: body[each.name] for each in attrs.fields(Suspension) if each.name in body}
    for name in ("until", "moved"):
        if isinstance(moment := values.get(name), str):
            values[name] = datetime.fromisoformat(moment)
    return Suspension(**values)  # type: ignore[arg-type]


def _suspended(known: Suspension, seconds: int, at: datetime) -> Suspension:
    return attrs.evolve(known, seconds=seconds, until=at + timedelta(seconds=seconds))


def _failed(known: Suspension, at: datetime, category: str, version: str) -> Suspension:
    failures = known.failures + 1
    return attrs.evolve(known, failures=failures, category=category, version=version, moved=_later(known, at))


def _later(known: Suspension, at: datetime) -> datetime:
    """Return a moment after the last change, even if the clock was set back."""
    return at if known.moved is None else max(at, known.moved + timedelta(microseconds=1))
