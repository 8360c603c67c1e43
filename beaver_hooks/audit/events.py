"""One content-free fact: what an audit trail is made of."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Protocol

import attrs

from beaver_hostspecs import Fact

Facts = Mapping[str, Fact | list[Fact]]


@attrs.frozen(kw_only=True)
class AuditEvent:
    """One fact about a plugin, a turn or the host.

    Attributes:
        name: what happened, in `snake_case`.
        at: when, in UTC.
        plugin: the plugin it is about, if any.
        hook: the hook in which it happened, if any.
        turn: the id of the turn; a keyed hash where the id is not one of ours.
        session: the keyed hash of the session.
        facts: flat and content-free, already scrubbed.
    """

    name: str
    at: datetime
    plugin: str | None = None
    hook: str | None = None
    turn: str | None = None
    session: str | None = None
    facts: Facts = MappingProxyType({})


class AuditSink(Protocol):
    """Where audit events go. A host may have several."""

    def append(self, event: AuditEvent) -> None:
        """Take an event and return at once; any thread may call it.

        Never raises for what happens to the event later.
        """
