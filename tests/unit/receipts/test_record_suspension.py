"""A suspension changes with failures, probes and their answers; several hosts share one."""

from datetime import UTC, datetime, timedelta, timezone
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.audit.trail import Trail
from beaver_hooks.log import make_log
from beaver_hooks.receipts import suspension
from beaver_hooks.receipts.health import Health, after_failure, from_json, to_json, with_suspension
from beaver_hooks.receipts.health_store import HealthStore, StoredHealth
from beaver_hooks.receipts.suspension import LONGEST, Suspension, after_block, claimed, is_due, lifted, newer
from beaver_hostspecs.testing import FrozenClock

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
SUSPENDED = Suspension(
    failures=3, category="timeout", until=NOON + timedelta(seconds=30), seconds=30, version="1", moved=NOON
)

CHANGES = {
    "a turn fails": partial(suspension.after_failure, category="raised", version="1"),
    "a call blocks": partial(suspension.after_block, version="1"),
    "a turn is answered": suspension.after_answer,
    "a probe begins": partial(claimed, deadline=5.0),
    "a probe fails": partial(suspension.after_failed_probe, category="raised", version="1"),
    "it is lifted": lifted,
}


def after(*steps, known=Suspension()):  # noqa: B008 - it is frozen
    """Return failures in a row, seconds and whether it is suspended, after changes at noon."""
    for step in steps:
        known = CHANGES[step](known, NOON)
    return known.failures, known.seconds, known.active


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (["a turn fails"] * 2, (2, 0, False)),
        (["a turn fails"] * 3, (3, 30, True)),
        (["a turn fails"] * 9, (3, 30, True)),
        (["a turn fails", "a turn fails", "a turn is answered", "a turn fails"], (1, 0, False)),
        (["a turn is answered"], (0, 0, False)),
        (["a call blocks"], (1, 600, True)),
        (["a call blocks", "a turn is answered"], (1, 600, True)),
        (["a call blocks", "it is lifted"], (0, 0, False)),
        ([*["a turn fails"] * 3, "a probe fails"], (4, 60, True)),
        ([*["a turn fails"] * 3, *["a probe fails"] * 9], (12, 600, True)),
        ([*["a turn fails"] * 3, "a call blocks", "a probe fails"], (5, 600, True)),
        ([*["a turn fails"] * 3, "it is lifted", *["a turn fails"] * 3], (3, 30, True)),
    ],
)
def test_what_changes_come_to(steps, expected):
    """Three failures in a row or one block suspend; a probe that fails doubles it, and an answer to it ends it."""
    assert expected == after(*steps)


@given(st.lists(st.tuples(st.sampled_from(sorted(CHANGES)), st.integers(-1000, 1000))))
def test_changes_are_in_order_whatever_the_clock_does(steps):
    """A later change is newer even when the clock goes back; a step without a change returns an equal suspension."""
    now, known = NOON, Suspension()
    for step, passed in steps:
        now += timedelta(seconds=passed)
        changed = CHANGES[step](known, now)
        assert known == changed or (newer(known, changed), newer(changed, known)) == (changed, changed)
        assert not changed.active or changed.until - now <= timedelta(seconds=LONGEST) or changed == known
        known = changed


@pytest.mark.parametrize(
    ("passed", "due"), [(0, False), (29, False), (30, True), (-500, False), (-571, True), (-86_400, True)]
)
def test_when_it_is_due(passed, due):
    """A suspension is due when its time is over, or when the clock went back further than any suspension lasts."""
    assert due == is_due(SUSPENDED, NOON + timedelta(seconds=passed))


def test_what_is_not_suspended_is_never_due():
    """A plugin that is not suspended is never due for a probe."""
    assert not is_due(Suspension(failures=2), NOON)


@pytest.mark.parametrize(("deadline", "seconds"), [(5.0, 30), (60.0, 60), (3600.0, 600)])
def test_a_probe_is_a_lease(deadline, seconds):
    """A claim of a probe lasts for the longer of the suspension and the deadline, and at most ten minutes."""
    due = NOON + timedelta(seconds=30)

    assert due + timedelta(seconds=seconds) == claimed(SUSPENDED, due, deadline=deadline).until


@pytest.mark.parametrize(
    ("known", "text"),
    [
        (Suspension(failures=2), "before_prompt is not suspended"),
        (SUSPENDED, "before_prompt is suspended until 2026-01-02 12:00:30 UTC and then tried again"),
        (
            Suspension(until=datetime(2026, 1, 2, 13, tzinfo=timezone(timedelta(hours=1)))),
            "before_prompt is suspended until 2026-01-02 12:00:00 UTC and then tried again",
        ),
    ],
)
def test_what_a_suspension_says(known, text):
    """The text of a suspension gives its end in UTC."""
    assert text == str(known)


def test_what_suspended_it():
    """How many turns failed, or that it blocked."""
    assert ("3 turns in a row failed, the last one with timeout", "it blocked the event loop beyond its deadline") == (
        SUSPENDED.why,
        after_block(Suspension(), NOON, version="1").why,
    )


def test_as_plain_data_and_back():
    """A suspension that is kept with the health reads back equal."""
    health = with_suspension(Health(), SUSPENDED, at=NOON)

    assert health == from_json(to_json(health))
    assert "suspension" not in to_json(Health())


@pytest.mark.parametrize(
    "body",
    [
        {"until": "soon"}, {"until": "2026-01-02T12:00:00"}, {"moved": 7}, {"failures": -1}, {"failures": "3"},
        {"seconds": 10**9}, {"seconds": "30"}, {"category": 1}, {"version": []},
    ],
)  # fmt: skip
def test_what_cannot_be_read(body):
    """A suspension that another program has written wrongly is refused with its health, and breaks no turn later."""
    with pytest.raises((TypeError, ValueError)):
        from_json({"suspension": body})
    with pytest.raises(TypeError):
        from_json({"suspension": "no"})


def test_what_a_newer_version_has_kept():
    """Fields that are not known are passed over."""
    assert Suspension(failures=1) == from_json({"suspension": {"failures": 1, "mood": "gloomy"}}).suspension


def test_a_suspended_plugin_is_never_well():
    """A health that one host wrote as `ok` and another one's suspension come to `degraded`."""
    read = from_json({"state": "ok", "suspension": to_json(Health(suspension=SUSPENDED))["suspension"]})

    assert ("degraded", NOON, {"before_prompt": "timeout"}) == (read.state, read.since, dict(read.faults))


def test_a_plugin_that_is_out_of_service_says_nothing_of_its_suspension():
    """A disabled plugin shows neither its suspension nor its number of failures."""
    failed = after_failure(
        after_failure(Health(), source="a", category="b", at=NOON), source="a", category="b", at=NOON
    )
    gone = {"state": "disabled", "reason": "by hand", "since": None}

    assert "disabled: by hand" == str(from_json(to_json(with_suspension(failed, SUSPENDED, at=NOON)) | gone))
    assert "degraded" == str(Health(state="degraded"))


# --- Several hosts -------------------------------------------------------------------------------------------


class Durable(StoredHealth):
    """Stored health that is durable as soon as it is stored."""

    def put(self, plugin, health):
        super().put(plugin, health)
        self.trail.flush()


class Place:
    """A state folder in which several hosts keep their books."""

    def __init__(self, folder, clock):
        self.clock = clock
        self.trails = [Trail.open(folder, clock=clock) for _ in range(2)]

    def book(self, number):
        return HealthStore(clock=self.clock, stored=Durable(self.trails[number], make_log()))

    def kept(self):
        return from_json(self.trails[0].health()["p"])


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path / ".beaver", FrozenClock(NOON))
    yield place
    for trail in place.trails:
        trail.close()


def suspend(book):
    book.failed("p", source="before_prompt", category="blocked")
    return book.suspend("p", lambda known, at: after_block(known, at, version="1"))


def test_a_host_that_never_heard_of_a_suspension_does_not_end_it(place):
    """A host that writes another fault of the plugin keeps the suspension in the store for the next host."""
    one, two = place.book(0), place.book(1)
    for book in (one, two):
        book.loaded("p")
    place.clock.advance(1)
    _, suspended = suspend(one)
    place.clock.advance(100)
    two.failed("p", source="after_prompt", category="raised")
    two.succeeded("p", source="after_prompt")
    three = place.book(1)
    three.loaded("p")

    assert ("degraded", suspended) == (three["p"].state, three["p"].suspension)
    assert ("ok", False) == (two["p"].state, two.suspension("p").active)
    two.suspend("p", lambda known, _: known)
    assert ("degraded", suspended) == (two["p"].state, two["p"].suspension)


def test_the_end_of_a_suspension_reaches_every_host(place):
    """A host that changes a suspension starts from the newest stored state of it."""
    one, two = place.book(0), place.book(1)
    suspend(one)
    two.loaded("p")
    heard = two.suspension("p").active
    two.suspend("p", lifted)
    two.succeeded("p", source="before_prompt")
    place.clock.advance(600)
    before, after = one.suspend("p", lambda known, at: claimed(known, at, deadline=5.0))

    assert (True, False, before, "ok") == (heard, before.active, after, place.kept().state)


def test_a_host_whose_clock_is_put_back(place):
    """The last change ends a suspension, even by a host whose clock is put back."""
    one, two = place.book(0), place.book(1)
    suspend(one)
    place.clock._now -= timedelta(hours=1)
    two.loaded("p")
    two.suspend("p", lifted)
    one.suspend("p", lambda known, _: known)

    assert (False, False) == (place.kept().suspension.active, one.suspension("p").active)
