"""Reads and stores the health of plugins in the audit trail, which every host of a state folder shares."""

from collections.abc import Mapping

import attrs

from beaver_hooks.audit.trail import Trail
from beaver_hooks.log import Log
from beaver_hooks.receipts.health import Health, from_json, to_json
from beaver_hostspecs import AuditUnavailable
from beaver_hostspecs.naming import type_name


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
