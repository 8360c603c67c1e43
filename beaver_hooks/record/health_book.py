"""The health of every plugin, kept for the host and across processes."""

import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

import attrs

from beaver_hooks.record.health import (
    Health,
    State,
    after_failure,
    after_loading,
    after_success,
    out_of_service,
)
from beaver_hostspecs import Clock

KEEP_EVERY = timedelta(minutes=1)
"""How old the kept time of the last success may grow while nothing else changes."""


class HealthBook:
    """Moves each plugin's health and keeps it. Safe to use from several threads.

    What moves the health returns whether the state changed, so that the caller can say so.

    Args:
        clock: where time comes from.
        keep: called with what shall survive the process.
        earlier: what earlier processes kept.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        keep: Callable[[str, Health], None],
        earlier: Mapping[str, Health],
    ) -> None:
        self._clock = clock
        self._keep = keep
        self._lock = threading.RLock()
        self._earlier = dict(earlier)
        self._healths: dict[str, Health] = {}
        self._successes: dict[str, datetime] = {}
        self._kept: dict[str, datetime] = {}

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
            return self._move(plugin, after_loading(self[plugin], at=self._clock.now()))

    def out_of_service(self, plugin: str, *, state: State, reason: str) -> bool:
        """The plugin is not there: `unavailable` or `disabled`."""
        with self._lock:
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
            if at - self._kept.get(plugin, at) > KEEP_EVERY:
                self._keep_now(plugin, at)
            return False
        with self._lock:
            return self._move(plugin, after_success(self[plugin], source=source, at=at))

    def is_at_fault(self, plugin: str, source: str) -> bool:
        """Whether `source` is among the plugin's faults now."""
        health = self._healths.get(plugin)
        return health is not None and source in health.faults

    def keep_all(self) -> None:
        """Keep everything as it is now; called when the host closes."""
        for plugin, health in self.all().items():
            self._keep(plugin, health)

    def _move(self, plugin: str, new: Health) -> bool:
        with self._lock:
            old = self[plugin]
            self._healths[plugin] = new
            self._successes.pop(plugin, None)
            self._keep_now(plugin, self._clock.now())
        return old.state != new.state

    def _keep_now(self, plugin: str, at: datetime) -> None:
        self._kept[plugin] = at
        self._keep(plugin, self[plugin])
