"""The sink that keeps events in a list."""

from datetime import UTC, datetime

from beaver_hooks.audit.events import AuditEvent
from beaver_hooks.audit.memory_sink import MemorySink


def test_it_keeps_events_in_order():
    """The sink returns its events oldest first, all of them or those with one name."""
    sink = MemorySink()
    one, two = (AuditEvent(name=name, at=datetime(2026, 1, 1, tzinfo=UTC)) for name in ("one", "two"))

    for event in (one, two, one):
        sink.append(event)

    assert ([one, two, one], [one, one], []) == (sink.events, sink.named("one"), sink.named("three"))
