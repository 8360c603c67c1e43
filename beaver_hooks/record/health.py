"""How each plugin is: a pure state machine, moved by what its hooks and its reports come to.

A plugin is `degraded` as long as at least one *source* of it is at fault. A source is what failed: a hook, a plane of
memory that it writes to, or the plugin's own word (`report.degraded`). Only a success of the same source clears it, so
that a recall which fails every turn is not hidden by a write which succeeds every turn.
"""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Literal, get_args

import attrs
from attrs import field
from attrs.validators import deep_mapping, in_, instance_of, optional

State = Literal["ok", "degraded", "unavailable", "disabled"]

# What an earlier process kept may have been written by anybody.
_text = optional(instance_of(str))
_moment = optional(instance_of(datetime))
_texts = deep_mapping(key_validator=instance_of(str), value_validator=instance_of(str))


@attrs.frozen(kw_only=True)
class Health:
    """One plugin's health; it survives the process.

    Attributes:
        state: `ok`, `degraded`, `unavailable` (it could not be loaded) or `disabled` (by configuration).
        since: since when it is in this state, or `None` where that was never recorded.
        faults: what is at fault now: source to category.
        consecutive_failures: how many failures there were since the plugin was last `ok`.
        last_success: when something of it last succeeded.
        last_failure: when something of it last failed.
        category: the category of the last failure.
        reason: a sentence, for `unavailable` and `disabled`.
    """

    state: State = field(default="ok", validator=in_(get_args(State)))
    since: datetime | None = field(default=None, validator=_moment)
    faults: Mapping[str, str] = field(default=MappingProxyType({}), validator=_texts)
    consecutive_failures: int = field(default=0, validator=instance_of(int))
    last_success: datetime | None = field(default=None, validator=_moment)
    last_failure: datetime | None = field(default=None, validator=_moment)
    category: str | None = field(default=None, validator=_text)
    reason: str | None = field(default=None, validator=_text)

    def __str__(self) -> str:
        if self.state == "ok":
            return "ok"
        since = f" since {self.since:%Y-%m-%d %H:%M:%S} UTC" if self.since else ""
        why = self.reason or ", ".join(f"{source}: {_explained(category)}" for source, category in self.faults.items())
        times = f" ({self.consecutive_failures} in a row)" if self.consecutive_failures > 1 else ""
        return f"{self.state}{since}: {why}{times}" if why else f"{self.state}{since}"


UNCONFIRMED = "unconfirmed_file"
"""The category of a plugin that leaves out a file which git may have brought, until the user has confirmed it."""


def _explained(category: str) -> str:
    return f"{category} (review it with `beaver trust --files`)" if category == UNCONFIRMED else category


MOST_SOURCES = 20
"""Sources of fault kept per plugin; a plugin can name planes without end."""


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
    faults = MappingProxyType({each: fault for each, fault in health.faults.items() if each != source})
    if faults:
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
    """Return the health of a plugin that was loaded: it is no longer unavailable, but old faults stand."""
    if health.state in ("ok", "degraded"):
        return health
    state: State = "degraded" if health.faults else "ok"
    return attrs.evolve(health, state=state, since=at, reason=None)


def out_of_service(health: Health, *, state: State, reason: str, at: datetime) -> Health:
    """Return the health of a plugin that is not there: `unavailable` or `disabled`."""
    since = health.since if health.state == state else at
    return attrs.evolve(health, state=state, since=since, reason=reason)


def to_json(health: Health) -> dict[str, object]:
    """Return the health as plain data."""
    return {
        field.name: value.isoformat() if isinstance(value, datetime) else value
        for field in attrs.fields(Health)
        if (value := getattr(health, field.name)) is not None
    } | {"faults": dict(health.faults)}


def from_json(body: Mapping[str, object]) -> Health:
    """Return what `to_json` wrote; fields that a newer version wrote are passed over.

    Raises:
        TypeError: a field holds something else.
        ValueError: a time or the state cannot be read.
    """
    known = {field.name for field in attrs.fields(Health)}
    values: dict[str, object] = {name: value for name, value in body.items() if name in known}
    for name in ("since", "last_success", "last_failure"):
        if isinstance(moment := values.get(name), str):
            values[name] = datetime.fromisoformat(moment)
    if isinstance(faults := values.get("faults"), Mapping):
        values["faults"] = MappingProxyType(dict(faults))
    return Health(**values)  # type: ignore[arg-type]
