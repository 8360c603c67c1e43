"""What a plugin reports ends in the trail, the receipt and its health: flat, bounded and clean."""

from math import inf, nan

import pytest

from beaver_hooks.audit.memory_sink import MemorySink
from beaver_hooks.log import make_log
from beaver_hooks.receipts.health_store import HealthStore, StoredHealth
from beaver_hooks.receipts.receipt_builder import MOST_CANDIDATES, MOST_ENTRIES, ReceiptBuilder
from beaver_hooks.receipts.receipts import Clip, Decision, Outcome, PluginReceipt
from beaver_hooks.receipts.recorder import Recorder
from beaver_hooks.receipts.reports import ARRIVED, MOST_EVENTS, TROUBLE, HostReport
from beaver_hostspecs import OutcomeKind
from beaver_hostspecs.testing import FrozenClock, make_turn

CLOCK = FrozenClock()


def identify(value):
    return f"h:{len(value)}"


class Desk:
    """A recorder with one turn and one report."""

    def __init__(self, **options):
        self.sink = MemorySink()
        self.health = HealthStore(clock=CLOCK, stored=StoredHealth(None, make_log()))
        self.recorder = Recorder(
            clock=CLOCK, sinks=[self.sink], health=self.health, identify=identify, log=make_log("beaver_hooks.desk")
        )
        self.builder = ReceiptBuilder(turn=make_turn(), recorded="t1", session="h:s", opened=CLOCK.now())
        options.setdefault("builder", self.builder)
        self.report = HostReport(plugin="p", hook="before_prompt", recorder=self.recorder, **options)

    def receipt(self):
        return self.builder.receipt(identify).plugins.get("p", PluginReceipt())

    def events(self):
        return [(event.name, dict(event.facts)) for event in self.sink.events]


@pytest.fixture
def desk():
    return Desk()


@pytest.mark.parametrize(("now", "remaining"), [(None, inf), (90.0, 10.0), (100.0, 0.0), (200.0, 0.0)])
def test_remaining(now, remaining):
    """`remaining` is the time to the deadline, at least zero, and infinite outside of turns."""
    desk = Desk(deadline=100.0, now=now and (lambda: now))

    assert desk.report.remaining() == remaining


def test_an_event(desk):
    """An event has plugin, hook, time, turn and session; its name and facts are made clean."""
    desk.report.event("recalled-some", items=3, self=1, event="e", plugin="x", query="What did we decide?")
    (event,) = desk.sink.events

    assert (event.name, event.plugin, event.hook, event.turn, event.session, event.at) == (
        "recalled_some", "p", "before_prompt", "t1", "h:s", CLOCK.now(),
    )  # fmt: skip
    assert event.facts == {"items": 3, "self": 1, "event": "e", "plugin": "x", "query": "h:19/19"}


def test_an_event_outside_turns():
    """Reports outside of a turn have neither turn nor session, and change no receipt."""
    desk = Desk(builder=None)
    desk.report.event("indexed")
    desk.report.decision("write", "no", "because")
    desk.report.candidates([("a", 1.0)])
    desk.report.degraded("slow")
    desk.report.outcome("disk", "stored")
    desk.report.clipped("text", 1, 2)

    assert [(event.name, event.turn, event.session) for event in desk.sink.events] == [
        ("indexed", None, None),
        ("plugin_degraded", None, None),
    ]
    assert desk.receipt() == PluginReceipt()


def test_a_flood_of_events(desk):
    """Beyond the limit of a call, one event reports the flood and all further ones are dropped."""
    for number in range(MOST_EVENTS * 2):
        desk.report.event("drop", number=number)

    assert [event.name for event in desk.sink.events] == ["drop"] * MOST_EVENTS + ["report_flooded"]
    assert desk.events()[-1] == ("report_flooded", {"limit": MOST_EVENTS})


def test_a_flood_of_complaints(desk):
    """Degrading and recovering without end is a flood: one event reports it, and later ones are dropped."""
    for _ in range(MOST_EVENTS):
        desk.report.degraded("slow")
        desk.report.recovered()

    assert len(desk.events()) == MOST_EVENTS + 1
    assert desk.events()[-1] == ("report_flooded", {"limit": MOST_EVENTS})


def test_candidates(desk):
    """All candidates are counted, the first ones kept; ids are clean, and a score is a number that JSON has."""
    desk.report.candidates([("session-1", 1), (7, None), ("c", nan), ("d", -inf)])
    desk.report.candidates((f"x{number}", 0.5) for number in range(MOST_CANDIDATES))

    kept = desk.receipt()
    assert kept.considered == MOST_CANDIDATES + 4
    assert kept.candidates[:5] == (("h:9/9", 1.0), ("7", None), ("c", None), ("d", None), ("x0", 0.5))
    assert len(kept.candidates) == MOST_CANDIDATES


def test_candidates_of_the_wrong_type(desk):
    """A score that is no number is an error of the plugin, and the receipt keeps none of the candidates."""
    with pytest.raises(ValueError, match="could not convert"):
        desk.report.candidates([("a", 1.0), ("b", "high")])

    assert desk.receipt() == PluginReceipt()


def test_decisions_and_clips(desk):
    """The receipt has the decisions of gates and the clips, with every text made clean."""
    desk.report.decision("recall", "no", "asked: What did we decide?")
    desk.report.clipped("note of session-1", 3, 9)

    assert (desk.receipt().decisions, desk.receipt().clipped) == (
        (Decision(gate="recall", verdict="no", reason="h:26/26"),),
        (Clip(what="h:17/17", shown=3, total=9),),
    )


@pytest.mark.shows("003-049")
@pytest.mark.parametrize("kind", OutcomeKind)
def test_outcomes_move_the_health(desk, kind):
    """A failed write degrades its plane, a successful one heals the same plane, and other planes change nothing."""
    desk.report.outcome("disk", "failed")
    desk.report.outcome("net", "stored")
    desk.report.outcome("disk", kind, bytes=3)

    healed = kind in ARRIVED
    faults = {} if healed else {"disk": f"disk_{kind.value}" if kind in TROUBLE else "disk_failed"}
    assert (desk.health["p"].state, dict(desk.health["p"].faults)) == ("ok" if healed else "degraded", faults)
    assert desk.receipt().outcomes[-1] == Outcome(plane="disk", kind=kind.value, facts={"bytes": 3})
    assert desk.events() == [
        ("plugin_degraded", {"source": "disk", "category": "disk_failed"}),
        *([("plugin_recovered", {"source": "disk"})] if healed else []),
    ]
    assert desk.report.troubled


@pytest.mark.shows("003-049")
def test_an_outcome_that_does_not_exist(desk):
    """A write ends in a named outcome or the plugin has a fault; nothing is written down for it."""
    with pytest.raises(ValueError, match="is not a valid OutcomeKind"):
        desk.report.outcome("disk", "maybe")

    assert (desk.receipt(), desk.events()) == (PluginReceipt(), [])


def test_degraded_and_recovered(desk):
    """A plugin's own word about itself holds until it takes it back, and each change is one event."""
    for category in ("no_key", "no_key", "slow"):
        desk.report.degraded(category)
    health = desk.health["p"]
    desk.report.recovered()
    desk.report.recovered()

    assert (health.state, dict(health.faults), health.consecutive_failures) == ("degraded", {"reported": "slow"}, 3)
    assert desk.receipt().degraded == ("no_key", "slow")
    assert desk.events() == [
        ("plugin_degraded", {"source": "reported", "category": "no_key"}),
        ("plugin_recovered", {"source": "reported"}),
    ]
    assert desk.health["p"].state == "ok"


def test_too_many_entries(desk):
    """No plugin fills the memory with its story: the first entries and categories are kept."""
    for number in range(MOST_ENTRIES + 5):
        desk.report.decision("gate", "yes", str(number))
        desk.report.degraded(f"category_{number}")
    kept = desk.receipt()

    assert [decision.reason for decision in kept.decisions] == [str(number) for number in range(MOST_ENTRIES)]
    assert kept.degraded == tuple(f"category_{number}" for number in range(MOST_ENTRIES))
    assert desk.events() == [("plugin_degraded", {"source": "reported", "category": "category_0"})]


def test_a_flood_of_outcomes(desk):
    """Alternating failed and good writes are a flood, and the health still follows the last one."""
    for _ in range(MOST_EVENTS):
        desk.report.outcome("disk", "failed")
        desk.report.outcome("disk", "stored")
    desk.report.outcome("disk", "failed")

    assert len(desk.events()) == MOST_EVENTS + 1
    assert desk.events()[-1] == ("report_flooded", {"limit": MOST_EVENTS})
    assert dict(desk.health["p"].faults) == {"disk": "disk_failed"}


def test_many_writes_that_arrive_are_no_flood(desk):
    """Writes without an event do not count as a flood."""
    for _ in range(MOST_EVENTS * 2):
        desk.report.outcome("disk", "stored")

    assert desk.events() == []


def test_late_reports(desk):
    """A report after the receipt is closed becomes an event, and the receipt stays as it was kept."""
    desk.builder.closed = CLOCK.now()
    desk.report.decision("write", "yes", "new")
    desk.report.outcome("disk", "stored", bytes=3)
    desk.report.clipped("text", 1, 2)
    desk.report.candidates([("a", 1.0)])
    desk.report.degraded("slow")

    assert desk.receipt() == PluginReceipt()
    assert desk.events() == [
        ("late_report", {"gate": "write", "verdict": "yes", "reason": "new", "said": "decision"}),
        ("late_report", {"plane": "disk", "kind": "stored", "said": "outcome"}),
        ("late_report", {"what": "text", "shown": 1, "total": 2, "said": "clip"}),
        ("late_report", {"considered": 1, "said": "candidates"}),
        ("late_report", {"category": "slow", "said": "degraded"}),
        ("plugin_degraded", {"source": "reported", "category": "slow"}),
    ]
    assert desk.health["p"].state == "degraded"


def test_a_flood_of_late_reports(desk):
    """Late reports count towards the flood limit like other events."""
    desk.builder.closed = CLOCK.now()
    for _ in range(MOST_EVENTS * 2):
        desk.report.decision("write", "yes", "new")

    assert len(desk.events()) == MOST_EVENTS + 1


def test_a_notice(desk, canary):
    """A notice is kept once, scrubbed and on one line; it changes no health, and their number is limited."""
    for text in ("Move it.", f"Move\nit {canary.reveal()}.", "Move it.", *map(str, range(50))):
        desk.report.notice(text)
    told = desk.recorder.notices["p"]

    assert (("Move it.", 20), {}, []) == ((told[0], len(told)), desk.health.all(), desk.events())
    canary.assert_clean(str(told))
    assert "\n" not in told[1]
