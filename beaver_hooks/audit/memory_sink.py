"""A sink that keeps audit events in a list: for tests, and for hosts that want no file."""

from beaver_hooks.audit.events import AuditEvent


class MemorySink:
    """Keeps every event for its own lifetime, oldest first. Safe to use from several threads.

    Attributes:
        events: the events appended so far.
    """

    def __init__(self) -> None:
        self.events: list[AuditEvent] = []

    def append(self, event: AuditEvent) -> None:
        """Keep `event`."""
        self.events.append(event)

    def named(self, name: str) -> list[AuditEvent]:
        """Return the events of that name, oldest first."""
        return [event for event in self.events if event.name == name]
