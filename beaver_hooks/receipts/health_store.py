"""The health of every plugin, kept for the host and across processes."""

import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import attrs

from beaver_hooks.receipts.health import (
    Health,
    State,
    after_failure,
    after_loading,
    after_success,
    out_of_service,
    with_suspension,
)
from beaver_hooks.receipts.suspension import Suspension, newer
from beaver_hostspecs import Clock

KEEP_EVERY = timedelta(minutes=1)
"""How old kept counts and times may grow while nothing else changes."""


NEVER = datetime.min.replace(tzinfo=UTC)

UNKNOWN = Suspension()

Read = Callable[[], Mapping[str, Health]]


class HealthBook:
    """Moves each plugin's health and keeps it. Safe to use from several threads.

    What moves the health returns whether the state changed, so that the caller can say so.

    Several hosts may keep their books in one place. What is kept there is read again when this host loads a
    plugin, takes it out of service, moves its suspension, or closes; and it writes only what it has moved itself.

    Args:
        clock: where time comes from.
        keep: called with what shall survive the process.
        earlier: returns what is kept now, of other hosts too.
        glance: the same for moments in which a turn waits; `earlier` unless given.
    """

    def __init__(
        self, *, clock: Clock, keep: Callable[[str, Health], None], earlier: Read, glance: Read | None = None
    ) -> None:
        self._clock = clock
        self._keep = keep
        self._lock = threading.RLock()
        self._read = earlier
        self._glance = glance or earlier
        self._earlier = dict(earlier())
        self._healths: dict[str, Health] = {}
        self._successes: dict[str, datetime] = {}
        self._kept: dict[str, tuple[Health, datetime]] = {}

    def __getitem__(self, plugin: str) -> Health:
        health = self._healths.get(plugin) or self._earlier.get(plugin) or Health()
        success = self._successes.get(plugin)
        return attrs.evolve(health, last_success=success) if success else health

    def all(self) -> dict[str, Health]:
        """Return the health of every plugin that this host has heard of."""
        return {plugin: self[plugin] for plugin in sorted(self._healths)}

    def loaded(self, plugin: str) -> bool:
        """The plugin was loaded."""
        with self._lock:
            self._refresh(plugin)
            return self._move(plugin, after_loading(self[plugin], at=self._clock.now()))

    def out_of_service(self, plugin: str, *, state: State, reason: str) -> bool:
        """The plugin is not there: `unavailable` or `disabled`."""
        with self._lock:
            self._refresh(plugin)
            at = self._clock.now()
            return self._move(plugin, out_of_service(self[plugin], state=state, reason=reason, at=at))

    def failed(self, plugin: str, *, source: str, category: str) -> bool:
        """Something of the plugin failed."""
        with self._lock:
            at = self._clock.now()
            return self._move(plugin, after_failure(self[plugin], source=source, category=category, at=at))

    def succeeded(self, plugin: str, *, source: str) -> bool:
        """Something of the plugin succeeded."""
        at = self._clock.now()
        health = self._healths.get(plugin)
        if health is not None and health.state == "ok":
            # The common case costs one assignment; the time is kept now and then, and when the host closes.
            self._successes[plugin] = at
            if at - self._kept[plugin][1] > KEEP_EVERY:
                self._keep_now_and_then(plugin, at)
            return False
        with self._lock:
            return self._move(plugin, after_success(self[plugin], source=source, at=at))

    def suspension(self, plugin: str) -> Suspension:
        """Return whether the plugin's `before_prompt` is suspended, as far as this host knows."""
        health = self._healths.get(plugin)
        return UNKNOWN if health is None else health.suspension

    def suspend(
        self, plugin: str, change: Callable[[Suspension, datetime], Suspension]
    ) -> tuple[Suspension, Suspension]:
        """Change the plugin's suspension, from the one that any host has moved last; return it before and after."""
        with self._lock:
            self._refresh(plugin, self._glance)
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
        """Keep what this host has moved and nobody has moved since; called when the host closes."""
        with self._lock:
            earlier = self._read()
            for plugin, health in self.all().items():
                known = self._kept.get(plugin)
                if (known is None or known[0] != health) and not _is_newer(earlier.get(plugin), health):
                    self._keep(plugin, health)

    def _refresh(self, plugin: str, read: Read | None = None) -> None:
        """Take over what another host has kept since; what waits here to be written is newer than what can be read."""
        self._earlier = dict((read or self._read)())
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
        """Keep the health at once if it says something else than what is kept; counts and times alone may wait."""
        new, (old, since) = self[plugin], self._kept.get(plugin, (None, at))
        if old is None or _news(old) != _news(new) or (old != new and at - since > KEEP_EVERY):
            self._kept[plugin] = (new, at)
            self._keep(plugin, new)


def _news(health: Health) -> tuple[object, ...]:
    """Return what of a health others must know at once."""
    return (health.state, health.since, health.reason, health.category, dict(health.faults), health.suspension)


def _is_newer(one: Health | None, other: Health) -> bool:
    """Whether something happened to `one` after everything that happened to `other`."""
    return one is not None and _last_moved(one) > _last_moved(other)


def _last_moved(health: Health) -> datetime:
    moments = (health.since, health.last_success, health.last_failure, health.suspension.moved)
    return max((each for each in moments if each is not None), default=NEVER)
