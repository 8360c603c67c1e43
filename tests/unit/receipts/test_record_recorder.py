"""The recorder tells every sink, the health and the log, and nothing that goes wrong there gets out."""

import logging

import pytest

from beaver_hooks import Host
from beaver_hooks.audit.memory_sink import MemorySink
from beaver_hooks.log import make_log
from beaver_hooks.receipts.health_store import HealthStore, StoredHealth
from beaver_hooks.receipts.receipt_builder import ReceiptBuilder
from beaver_hooks.receipts.recorder import HOST, LOG_FIELDS, Recorder
from beaver_hostspecs import hookimpl
from beaver_hostspecs.testing import FrozenClock, make_turn

CLOCK = FrozenClock()
NAME = "beaver_hooks.recorder_test"


def identify(value):
    return f"h:{len(value)}"


class Moody:
    """A sink that breaks its word on demand."""

    def __init__(self, error=None):
        self.error = error
        self.names = []

    def append(self, event):
        if self.error is not None:
            raise self.error
        self.names.append(event.name)


def make_recorder(*sinks):
    health = HealthStore(clock=CLOCK, stored=StoredHealth(None, make_log(NAME)))
    return Recorder(clock=CLOCK, sinks=sinks, health=health, identify=identify, log=make_log(NAME))


@pytest.fixture
def builder():
    return ReceiptBuilder(turn=make_turn(), recorded="t1", session="h:s", opened=CLOCK.now())


@pytest.fixture
def recorder():
    sink = MemorySink()
    health = HealthStore(clock=CLOCK, stored=StoredHealth(None, make_log(NAME)))
    recorder = Recorder(clock=CLOCK, sinks=[sink], health=health, identify=identify, log=make_log(NAME))
    return recorder, sink


def test_a_failure(recorder, builder, caplog):
    """A failure is an event with the type of the error, a fault in the receipt, degraded health, and a warning."""
    recorder, sink = recorder
    caplog.set_level(logging.INFO, NAME)
    recorder.failed("p", hook="stop", category="raised", builder=builder, error=ValueError("What did we decide?"))
    recorder.failed("p", hook="stop", category="timeout")

    since = CLOCK.now().isoformat()
    assert [(event.name, event.turn, event.hook, dict(event.facts)) for event in sink.events] == [
        (
            "plugin_failed",
            "t1",
            "stop",
            {"category": "raised", "error": "ValueError", "at": None, "degraded_since": since},
        ),
        ("plugin_failed", None, "stop", {"category": "timeout", "error": None, "at": None, "degraded_since": since}),
    ]
    assert recorder.health["p"].consecutive_failures == 2
    assert [fault.category for fault in builder.receipt(identify).plugins["p"].failures] == ["raised"]
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


def test_a_sentence_for_the_log(recorder, caplog):
    """A sentence is in the log line of an event, and not in the event."""
    recorder, sink = recorder
    recorder.event("thing_failed", {"reason": "full"}, loudly=True, sentence="make room")

    assert sink.events[0].facts == {"reason": "full"}
    assert caplog.messages == ['event=beaver_hooks.thing_failed reason="make room"']


@pytest.mark.parametrize("name", sorted(LOG_FIELDS))
def test_facts_that_clash_with_the_log(recorder, caplog, name):
    """A fact may have any name; the log line puts a prefix before a name of the log's own fields."""
    recorder, sink = recorder
    caplog.set_level(logging.DEBUG, NAME)
    recorder.event("thing_happened", {name: "mine"}, plugin="p")

    assert sink.events[0].facts == {name: "mine"}
    assert caplog.messages == [f"event=beaver_hooks.thing_happened plugin=p fact_{name}=mine"]


def test_a_sink_that_raises(caplog):
    """The other sinks get every event; the host is degraded until the sink works again, and the log says so once."""
    caplog.set_level(logging.ERROR, NAME)
    odd, good = Moody(ValueError("x")), Moody()
    recorder = make_recorder(odd, good)
    for name in ("one", "two"):
        recorder.event(name)
    degraded = recorder.health[HOST]
    odd.error = None
    recorder.event("three")

    assert (odd.names, good.names) == (["three"], ["one", "two", "three"])
    assert (degraded.state, dict(degraded.faults)) == ("degraded", {"sink_0_Moody": "raised"})
    assert recorder.health[HOST].state == "ok"
    assert caplog.messages == ["event=beaver_hooks.audit_sink_failed source=sink_0_Moody error=ValueError"]


@pytest.mark.parametrize("error", [SystemExit(1), GeneratorExit(), RuntimeError()])
def test_a_sink_that_raises_anything(error):
    """The recorder contains any exception of a sink except `KeyboardInterrupt`."""
    recorder = make_recorder(Moody(error), Moody(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        recorder.event("one")

    assert dict(recorder.health[HOST].faults) == {"sink_0_Moody": "raised"}


class Broken(logging.Handler):
    """Raises on demand, as no handler should."""

    error = SystemExit(1)

    def emit(self, record):
        if self.error is not None:
            raise self.error


@pytest.fixture
def broken():
    handler, logger = Broken(), logging.getLogger(NAME)
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def test_a_log_handler_that_raises(broken):
    """The event reaches every sink, the host is degraded while it lasts, and the caller notices nothing."""
    sink = Moody()
    recorder = make_recorder(sink)
    recorder.event("one", loudly=True)
    recorder.failed("p", hook="stop", category="raised", error=ValueError())
    degraded = recorder.health[HOST]
    broken.error = None
    recorder.event("two", loudly=True)

    assert (sink.names, dict(degraded.faults)) == (["one", "plugin_failed", "two"], {"log": "raised"})
    assert (degraded.consecutive_failures, recorder.health[HOST].state) == (2, "ok")


def test_a_log_handler_and_a_sink_that_raise(broken):
    """A failing sink and a failing log handler are two faults of the host."""
    recorder = make_recorder(Moody(ValueError()))
    recorder.event("one")

    assert dict(recorder.health[HOST].faults) == {"sink_0_Moody": "raised", "log": "raised"}


def raised(function):
    """Return the error of a function, with its traceback."""
    with pytest.raises(ValueError, match="x") as caught:
        function()
    return caught.value


def test_where_it_was_raised(recorder, builder, caplog):
    """A failure names the plugin's own line; the debug log lists every frame, and no text of the error."""
    caplog.set_level(logging.DEBUG, NAME)
    error = raised(lambda: int("x"))
    recorder[0].failed("p", hook="stop", category="raised", builder=builder, error=error)
    (failure,) = builder.receipt(identify).plugins["p"].failures
    line = error.__traceback__.tb_next.tb_lineno

    assert failure.at == recorder[1].events[0].facts["at"] == f"{__name__}:{line}"
    assert f"{__name__}:{line} in test_where_it_was_raised.<locals>.<lambda>" in caplog.messages[-1]
    assert 'int("x")' not in caplog.text
    assert "invalid literal" not in caplog.text


class Calm:
    @hookimpl
    async def before_prompt(self, turn):
        """Answers nothing."""


async def test_a_sink_that_raises_harms_no_turn(tmp_path):
    """Turns go on while a sink of the host fails, and the host's health names the sink."""
    sinks = [Moody(RuntimeError("full"))]
    async with Host({"calm": Calm()}, state_folder=tmp_path / "state", sinks=sinks) as host:
        async with host.turn("hello", session="s") as turn:
            assert await turn.commit("hi")
        await host.drain()
        host.trail.flush()

        assert "sink_1_Moody: raised" in str(host.health()["host"])
        assert "turn_committed" in [event.name for event in host.trail.tail()]


def test_only_changes_of_health_are_events(recorder):
    """Degraded twice and recovered twice are two events."""
    recorder, sink = recorder
    for _ in range(2):
        recorder.degraded("p", source="disk", category="full")
    for _ in range(2):
        recorder.succeeded("p", source="disk")

    assert [event.name for event in sink.events] == ["plugin_degraded", "plugin_recovered"]
