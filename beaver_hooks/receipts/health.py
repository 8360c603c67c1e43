"""The health of a plugin: a pure state machine, moved by the results of its hooks and by its reports.

A plugin is `degraded` as long as at least one of its *sources* is at fault. A source is a hook, a plane of memory that
the plugin writes to, or the plugin's own report (`report.degraded`). Only a success of the same source clears it, so
that a recall which fails every turn is not hidden by a write which succeeds every turn.
"""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Literal, get_args

import attrs
from attrs import field
from attrs.validators import deep_mapping, in_, instance_of, optional

from beaver_hooks.receipts import suspension as suspending
from beaver_hooks.receipts.suspension import HOOK, Suspension

State = Literal["ok", "degraded", "unavailable", "disabled"]

# Any program may have written the stored health.
_text = optional(instance_of(str))
_moment = optional(instance_of(datetime))
_texts = deep_mapping(key_validator=instance_of(str), value_validator=instance_of(str))


@attrs.frozen(kw_only=True)
class Health:
    """One plugin's health; it survives the process.

    Attributes:
        state: `ok`, `degraded`, `unavailable` (it could not be loaded) or `disabled` (by configuration).
        since: when it entered this state, or `None` if that was never recorded.
        faults: the sources at fault now, each with its category.
        consecutive_failures: the number of failures since the plugin was last `ok`.
        last_success: when one of its sources last succeeded.
        last_failure: when one of its sources last failed.
        category: the category of the last failure.
        reason: a sentence, for `unavailable` and `disabled`.
        suspension: whether its `before_prompt` is suspended; a suspended plugin is `degraded` at best.
    """

    state: State = field(default="ok", validator=in_(get_args(State)))
    since: datetime | None = field(default=None, validator=_moment)
    faults: Mapping[str, str] = field(default=MappingProxyType({}), validator=_texts)
    consecutive_failures: int = field(default=0, validator=instance_of(int))
    last_success: datetime | None = field(default=None, validator=_moment)
    last_failure: datetime | None = field(default=None, validator=_moment)
    category: str | None = field(default=None, validator=_text)
    reason: str | None = field(default=None, validator=_text)
    suspension: Suspension = field(default=Suspension(), validator=instance_of(Suspension))

    def __str__(self) -> str:
        if self.state == "ok":
            return "ok"
        since = f" since {self.since:%Y-%m-%d %H:%M:%S} UTC" if self.since else ""
        why = self._faults() if self.state == "degraded" else self.reason
        return f"{self.state}{since}: {why}" if why else f"{self.state}{since}"

    def _faults(self) -> str:
        faults = ", ".join(f"{source}: {_explained(category)}" for source, category in self.faults.items())
        times = f" ({self.consecutive_failures} in a row)" if faults and self.consecutive_failures > 1 else ""
        suspended = [str(self.suspension)] if self.suspension.active else []
        return "; ".join([*([faults + times] if faults else []), *suspended])


UNCONFIRMED = "unconfirmed_file"
"""The category of a plugin that leaves out a file which git may have written, until the user confirms the file."""


UNREADABLE = "unreadable_file"
"""The category of a plugin that cannot read a user's file; the plugin's command `show` names file and remedy."""

LOSSES = "commits_missing"
"""The category of a plugin whose database lacks acknowledged commits, until the user accepts the loss."""


DAMAGE = "damaged_rows"
"""The category of a plugin whose database has rows that fail their checksums, until its check finds none."""

_MEANINGS = {
    LOSSES: "its database lacks acknowledged commits",
    DAMAGE: "rows of its database fail their checksums",
    UNCONFIRMED: "review it with `beaver trust --files`",
    UNREADABLE: "a file cannot be read, so it cannot be used",
}


def _explained(category: str) -> str:
    return f"{category} ({_MEANINGS[category]})" if category in _MEANINGS else category


MOST_SOURCES = 20
"""Sources of fault kept per plugin; the number of planes that a plugin can name has no limit."""


def after_failure(health: Health, *, source: str, category: str, at: datetime) -> Health:
    """Return the health after `source` failed."""
    room = source in health.faults or len(health.faults) < MOST_SOURCES
    return attrs.evolve(
        health,
        state="degraded",
        since=health.since if health.state == "degraded" else at,
        faults=MappingProxyType({**health.faults, source: category}) if room else health.faults,
        consecutive_failures=health.consecutive_failures + 1,
        last_failure=at,
        category=category,
        reason=None,
    )


def after_success(health: Health, *, source: str, at: datetime) -> Health:
    """Return the health after `source` succeeded; it is `ok` again once no source is at fault."""
    # A call that was running when its hook was suspended clears nothing; only the probe does.
    cleared = () if source == HOOK and health.suspension.active else (source,)
    faults = MappingProxyType({each: fault for each, fault in health.faults.items() if each not in cleared})
    if faults or health.suspension.active:
        return attrs.evolve(health, faults=faults, last_success=at)
    if health.state in ("unavailable", "disabled"):
        return attrs.evolve(health, faults=faults, consecutive_failures=0, last_success=at)
    recovered = health.state != "ok"
    return attrs.evolve(
        health,
        state="ok",
        since=at if recovered else health.since,
        faults=faults,
        consecutive_failures=0,
        last_success=at,
    )


def after_loading(health: Health, *, at: datetime) -> Health:
    """Return the health of a plugin after loading: it is no longer unavailable, but keeps its old faults."""
    if health.state in ("ok", "degraded"):
        return health
    state: State = "degraded" if health.faults else "ok"
    return attrs.evolve(health, state=state, since=at, reason=None)


def out_of_service(health: Health, *, state: State, reason: str, at: datetime) -> Health:
    """Return the health of a plugin that is not loaded: `unavailable` or `disabled`."""
    since = health.since if health.state == state else at
    return attrs.evolve(health, state=state, since=since, reason=reason)


def with_suspension(health: Health, suspension: Suspension, *, at: datetime) -> Health:
    """Return the health with another suspension; a plugin with an active suspension is not `ok`."""
    if not suspension.active or health.state != "ok":
        return attrs.evolve(health, suspension=suspension)
    failed = after_failure(health, source=HOOK, category=str(suspension.category), at=at)
    return attrs.evolve(failed, suspension=suspension)


def to_json(health: Health) -> dict[str, object]:
    """Return the health as plain data."""
    plain = {
        field.name: value.isoformat() if isinstance(value, datetime) else value
        for field in attrs.fields(Health)
        if (value := getattr(health, field.name)) is not None
    }
    plain["faults"] = dict(health.faults)
    if health.suspension == Suspension():
        del plain["suspension"]
    else:
        plain["suspension"] = suspending.to_json(health.suspension)
    return plain


def from_json(body: Mapping[str, object]) -> Health:
    """Return the health that `to_json` wrote; ignores fields of a newer version.

    Raises:
        TypeError: a field has the wrong type.
        ValueError: a time or the state cannot be read.
    """
    known = {field.name for field in attrs.fields(Health)}
    values: dict[str, object] = {name: value for name, value in body.items() if name in known}
    for name in ("since", "last_success", "last_failure"):
        if isinstance(moment := values.get(name), str):
            values[name] = datetime.fromisoformat(moment)
    if isinstance(faults := values.get("faults"), Mapping):
        values["faults"] = MappingProxyType(dict(faults))
    if isinstance(suspension := values.get("suspension"), Mapping):
        values["suspension"] = suspending.from_json(suspension)
    health = Health(**values)  # type: ignore[arg-type]
    # One host may have written the suspension, and another host the rest.
    last = health.suspension
    return health if last.until is None else with_suspension(health, last, at=last.moved or last.until)
