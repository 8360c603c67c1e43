"""Audit events of turns become hidden events of their sessions."""

import asyncio
import threading
from datetime import UTC, datetime

import pytest

from beaver_hooks.agent.errors import StorageError
from beaver_hooks.agent.sessions import events as module
from beaver_hooks.agent.sessions.events import SessionEvents
from beaver_hooks.agent.sessions.records import HiddenEvent
from beaver_hooks.agent.sessions.store import SessionStore
from beaver_hooks.audit.events import AuditEvent

WHEN = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
async def store(tmp_path):
    store = SessionStore.open(tmp_path / "state")
    await store.ensure("a")
    yield store
    await store.close()


@pytest.fixture
def sink(store):
    sink = SessionEvents(store)
    sink.register("t", "a")
    return sink


def event(name="turn_opened", turn="t", **rest):
    return AuditEvent(name=name, at=WHEN, turn=turn, **rest)


async def names(store):
    return [each.name for each in await store.events("a")]


async def test_events_go_to_their_session(store, sink):
    """Events of a registered turn become hidden events of its session; all other events stay in the trail alone."""
    for each in (
        event(),
        event("other", "x"),
        event("host", None),
        event("failed", plugin="p", hook="h", facts={"n": 1}),
    ):
        sink.append(each)
    await sink.flush()

    assert (
        HiddenEvent(name="turn_opened", at=WHEN, payload={"turn": "t"}),
        HiddenEvent(name="failed", at=WHEN, payload={"turn": "t", "plugin": "p", "hook": "h", "n": 1}),
    ) == await store.events("a")
    assert (0, None) == (sink.lost, sink.failure)


async def test_nobody_waits(store, sink, monkeypatch):
    """A busy store delays no caller: the sink keeps events up to its limit for later, and counts the rest as lost."""
    monkeypatch.setattr(module, "MOST_WAITING", 3)
    gate = threading.Event()
    busy = store.submit(lambda _: gate.wait(20))
    for number in range(5):
        sink.append(event(f"e{number}"))
    waiting = sink.lost
    gate.set()
    await asyncio.wrap_future(busy)
    await sink.flush()

    assert (2, ["e0", "e1", "e2"]) == (waiting, await names(store))


async def test_events_that_come_while_others_are_written(store, sink):
    """The sink writes events that arrive during a write next, without a further call."""
    add_events = module.Work.add_events
    started, gate = threading.Event(), threading.Event()

    def slow(self, batch):
        started.set()
        gate.wait(20)
        return add_events(self, batch)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module.Work, "add_events", slow)
        sink.append(event("first"))
        await asyncio.to_thread(started.wait, 20)
        sink.append(event("second"))
        gate.set()
        await sink.flush()
        await sink.flush()

    assert ["first", "second"] == await names(store)


async def test_a_store_that_fails_for_a_while(store, sink, monkeypatch):
    """After a failed write the sink keeps the event, reports the failure, and writes both with the next event."""

    def failing(self, batch):
        raise OSError

    with monkeypatch.context() as patched:
        patched.setattr(module.Work, "add_events", failing)
        sink.append(event("first"))
        with pytest.raises(StorageError, match="check the disk"):
            await sink.flush()
        await store.list()
        failure = sink.failure
    sink.append(event("second"))
    await sink.flush()
    await store.list()

    assert "check the disk" in failure
    assert (["first", "second"], 0, None) == (await names(store), sink.lost, sink.failure)


async def test_a_session_that_is_gone(store, sink):
    """Events of a deleted session count as lost; events of other sessions are stored."""
    sink.register("u", "gone")
    sink.append(event("lost", "u"))
    sink.append(event("kept"))
    await sink.flush()

    assert (["kept"], 1) == (await names(store), sink.lost)


async def test_a_closed_store(store, sink):
    """An event that comes too late is counted and raises nothing."""
    await store.close()
    sink.append(event())

    assert 1 == sink.lost
    assert sink.failure.endswith("is closed; open the store again.")


async def test_old_turns_are_forgotten(store, sink, monkeypatch):
    """Only the newest turns are remembered."""
    monkeypatch.setattr(module, "MOST_TURNS", 1)
    sink.register("u", "a")
    sink.append(event("old", "t"))
    sink.append(event("new", "u"))
    await sink.flush()

    assert ["new"] == await names(store)
