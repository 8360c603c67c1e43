"""Stores the health of every plugin, for the host and across processes."""

import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import attrs

from beaver_hooks.audit.trail import Trail
from beaver_hooks.log import Log
from beaver_hooks.receipts.health import (
    Health,
    State,
    after_failure,
    after_loading,
    after_success,
    from_json,
    out_of_service,
    to_json,
    with_suspension,
)
from beaver_hooks.receipts.suspension import Suspension, newer
from beaver_hostspecs import AuditUnavailable, Clock
from beaver_hostspecs.naming import type_name

KEEP_EVERY = timedelta(minutes=1)
"""How old stored counts and times may grow while nothing else changes."""


NEVER = datetime.min.replace(tzinfo=UTC)

UNKNOWN = Suspension()

GLANCE = 0.1
"""Seconds that a turn waits for the stored health while another process has locked it."""


@attrs.frozen
class StoredHealth:
    """The health that the hosts of a state folder have stored; without a trail there is none.

    Attributes:
        trail: the trail, or `None` if it could not be opened.
        log: takes one warning for each unreadable part, which then starts anew.
    """

    trail: Trail | None
    log: Log
    _reported: set[str] = attrs.field(factory=set, init=False)

    def put(self, plugin: str, health: Health) -> None:
        """Store the health of a plugin over its earlier health."""
        if self.trail is not None:
            self.trail.put_health(plugin, to_json(health))

    def read(self, *, wait: float | None = None) -> dict[str, Health]:
        """Return the stored health by plugin; wait at most `wait` seconds for another process's lock."""
        if self.trail is None:
            return {}
        try:
            stored = self.trail.health(wait=wait)
        except (AuditUnavailable, ValueError) as error:
            self._report("", reason=str(error))
            return {}
        return {name: health for name, body in stored.items() if (health := self._revived(name, body)) is not None}

    def _revived(self, name: str, body: Mapping[str, object]) -> Health | None:
        try:
            return from_json(body)
        except (TypeError, ValueError) as error:
            self._report(name, plugin=name, error=type_name(error))
            return None

    def _report(self, about: str, **fields: str) -> None:
        if about not in self._reported:
            self._reported.add(about)
            self.log.warning("health_unreadable", **fields)


class HealthStore:
    """Changes and stores each plugin's health. Safe to use from several threads.

    The methods that change the health return whether the state changed, so that the caller can report it.

    Several hosts may store health in one place. This host reads the stored health again when it loads a plugin, takes
    it out of service, changes its suspension, or closes; it writes only its own changes.

    Args:
        clock: the source of the time.
        stored: the health beyond the process, that of other hosts too.
    """

    def __init__(self, *, clock: Clock, stored: StoredHealth) -> None:
        self._clock = clock
        self._stored = stored
        self._lock = threading.RLock()
        # Read when the first plugin is loaded.
        self._earlier: dict[str, Health] = {}
        self._healths: dict[str, Health] = {}
        self._successes: dict[str, datetime] = {}
        self._kept: dict[str, tuple[Health, datetime]] = {}

    def __getitem__(self, plugin: str) -> Health:
        health = self._healths.get(plugin) or self._earlier.get(plugin) or Health()
        success = self._successes.get(plugin)
        return attrs.evolve(health, last_success=success) if success else health

    def all(self) -> dict[str, Health]:
        """Return the health of every plugin that this host knows."""
        return {plugin: self[plugin] for plugin in sorted(self._healths)}

    def loaded(self, plugin: str) -> bool:
        """Record that the plugin was loaded."""
        with self._lock:
            self._refresh(plugin)
            return self._move(plugin, after_loading(self[plugin], at=self._clock.now()))

    def out_of_service(self, plugin: str, *, state: State, reason: str) -> bool:
        """Record that the plugin is not loaded: `unavailable` or `disabled`."""
        with self._lock:
            self._refresh(plugin)
            at = self._clock.now()
            return self._move(plugin, out_of_service(self[plugin], state=state, reason=reason, at=at))

    def failed(self, plugin: str, *, source: str, category: str) -> bool:
        """Record that a source of the plugin failed."""
        with self._lock:
            at = self._clock.now()
            return self._move(plugin, after_failure(self[plugin], source=source, category=category, at=at))

    def succeeded(self, plugin: str, *, source: str) -> bool:
        """Record that a source of the plugin succeeded."""
        at = self._clock.now()
        health = self._healths.get(plugin)
        if health is not None and health.state == "ok":
            # The common case costs one assignment; the time is stored once per `KEEP_EVERY`, and at close.
            self._successes[plugin] = at
            if at - self._kept[plugin][1] > KEEP_EVERY:
                self._keep_now_and_then(plugin, at)
            return False
        with self._lock:
            return self._move(plugin, after_success(self[plugin], source=source, at=at))

    def suspension(self, plugin: str) -> Suspension:
        """Return the suspension of the plugin's `before_prompt`, as far as this host knows."""
        health = self._healths.get(plugin)
        return UNKNOWN if health is None else health.suspension

    def suspend(
        self, plugin: str, change: Callable[[Suspension, datetime], Suspension]
    ) -> tuple[Suspension, Suspension]:
        """Change the plugin's newest suspension of any host; return the suspension before and after."""
        with self._lock:
            self._refresh(plugin, wait=GLANCE)
            at = self._clock.now()
            old = self[plugin].suspension
            new = change(old, at)
            if new != old:
                self._move(plugin, with_suspension(self[plugin], new, at=at))
            return old, new

    def is_at_fault(self, plugin: str, source: str) -> bool:
        """Whether `source` is among the plugin's faults now."""
        health = self._healths.get(plugin)
        return health is not None and source in health.faults

    def keep_all(self) -> None:
        """Store this host's changes unless another host stored newer ones; called when the host closes."""
        with self._lock:
            earlier = self._stored.read()
            for plugin, health in self.all().items():
                known = self._kept.get(plugin)
                if (known is None or known[0] != health) and not _is_newer(earlier.get(plugin), health):
                    self._stored.put(plugin, health)

    def _refresh(self, plugin: str, *, wait: float | None = None) -> None:
        """Take over health that another host stored since; this host's unwritten changes are newer than that."""
        self._earlier = self._stored.read(wait=wait)
        kept, own = self._earlier.get(plugin), self[plugin]
        if kept is None:
            return
        if plugin not in self._healths or _is_newer(kept, own):
            self._kept[plugin] = (kept, self._clock.now())
        elif (moved := newer(own.suspension, kept.suspension)) is not own.suspension:
            kept = with_suspension(own, moved, at=self._clock.now())
        else:
            return
        self._healths[plugin] = kept
        self._successes.pop(plugin, None)

    def _move(self, plugin: str, new: Health) -> bool:
        with self._lock:
            old = self[plugin]
            self._healths[plugin] = new
            self._successes.pop(plugin, None)
            self._keep_now_and_then(plugin, self._clock.now())
        return old.state != new.state

    def _keep_now_and_then(self, plugin: str, at: datetime) -> None:
        """Store the health at once if more than counts and times differs from the stored one; those may wait."""
        new, (old, since) = self[plugin], self._kept.get(plugin, (None, at))
        if old is None or _news(old) != _news(new) or (old != new and at - since > KEEP_EVERY):
            self._kept[plugin] = (new, at)
            self._stored.put(plugin, new)


def _news(health: Health) -> tuple[object, ...]:
    """Return the parts of a health that other hosts must know at once."""
    return (health.state, health.since, health.reason, health.category, dict(health.faults), health.suspension)


def _is_newer(one: Health | None, other: Health) -> bool:
    """Whether the last change of `one` is later than the last change of `other`."""
    return one is not None and _last_moved(one) > _last_moved(other)


def _last_moved(health: Health) -> datetime:
    moments = (health.since, health.last_success, health.last_failure, health.suspension.moved)
    return max((each for each in moments if each is not None), default=NEVER)
