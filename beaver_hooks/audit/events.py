"""The audit event, one content-free fact, and the sink that takes such events."""

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Protocol

import attrs

from beaver_hostspecs import Fact

Facts = Mapping[str, Fact | list[Fact]]


@attrs.frozen(kw_only=True)
class AuditEvent:
    """One fact about a plugin, a turn or the host.

    Attributes:
        name: the kind of event, in `snake_case`.
        at: its time, in UTC.
        plugin: the plugin it is about, if any.
        hook: the hook in which it happened, if any.
        turn: the id of the turn; a keyed hash if the host did not make the id.
        session: the keyed hash of the session.
        facts: numbers, codes and ids, already clean.
    """

    name: str
    at: datetime
    plugin: str | None = None
    hook: str | None = None
    turn: str | None = None
    session: str | None = None
    facts: Facts = MappingProxyType({})


def stamp(at: datetime) -> str:
    """Return a time as text that sorts: UTC, microseconds."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


class AuditSink(Protocol):
    """A destination of audit events. A host may have several."""

    def append(self, event: AuditEvent) -> None:
        """Take an event and return at once; any thread may call it.

        Never raises because a later step fails with the event.
        """
