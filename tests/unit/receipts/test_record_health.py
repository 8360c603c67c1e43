"""Health changes with each failure and success, source by source, and survives the process."""

from datetime import UTC, datetime, timedelta
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks import Host
from beaver_hooks.audit.memory_sink import MemorySink
from beaver_hooks.receipts.health import (
    MOST_SOURCES,
    Health,
    after_failure,
    after_loading,
    after_success,
    from_json,
    out_of_service,
    to_json,
)
from beaver_hooks.receipts.health_store import KEEP_EVERY, HealthStore
from beaver_hostspecs import hookimpl
from beaver_hostspecs.testing import FrozenClock

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)
BAD = after_failure(Health(), source="recall", category="timeout", at=NOON)

SOURCES = st.sampled_from(["before_prompt", "after_prompt", "plane", "reported"])
STEPS = st.lists(st.tuples(SOURCES, st.booleans(), st.integers(0, 5)), max_size=40)


class Stored:
    """Health beyond the process, in memory."""

    def __init__(self, earlier=MappingProxyType({})):
        self.earlier, self.kept, self.writes = earlier, {}, []

    def read(self, *, wait=None):
        return dict(self.earlier)

    def put(self, plugin, health):
        self.kept[plugin] = health
        self.writes.append((plugin, health))


def make_book(clock, earlier=MappingProxyType({})):
    stored = Stored(earlier)
    return HealthStore(clock=clock, stored=stored), stored.kept


@given(STEPS)
def test_health_is_what_the_last_events_say(steps):
    """A plugin is degraded if and only if a source failed last, and the store has its counts and times."""
    clock = FrozenClock()
    book, kept = make_book(clock)
    book.loaded("p")
    faults, failures, since, success, failure = {}, 0, None, None, None
    for source, succeeds, seconds in steps:
        clock.advance(seconds)
        before = bool(faults)
        if succeeds:
            faults.pop(source, None)
            success = clock.now()
            changed = book.succeeded("p", source=source)
        else:
            faults[source] = "raised"
            failure = clock.now()
            changed = book.failed("p", source=source, category="raised")
        failures = (failures if faults else 0) + (not succeeds)
        since = clock.now() if before != bool(faults) else since
        expected = Health(
            state="degraded" if faults else "ok",
            since=since,
            faults=faults,
            consecutive_failures=failures,
            last_success=success,
            last_failure=failure,
            category="raised" if failure else None,
        )
        assert (book["p"], changed) == (expected, before != bool(faults))

    book.keep_all()
    assert from_json(to_json(kept["p"])) == book["p"]


@given(
    st.builds(
        Health,
        state=st.sampled_from(["ok", "degraded", "unavailable", "disabled"]),
        since=st.none() | st.datetimes(timezones=st.just(UTC)),
        faults=st.dictionaries(st.text(), st.text(), max_size=3),
        consecutive_failures=st.integers(0),
        last_success=st.none() | st.datetimes(timezones=st.just(UTC)),
        category=st.none() | st.text(),
        reason=st.none() | st.text(),
    )
)
def test_health_as_plain_data_and_back(health):
    """Health that is written as JSON reads back equal."""
    assert from_json(to_json(health)) == health


def test_what_a_newer_version_kept():
    """Fields that we do not know are passed over, and absent ones have their defaults."""
    assert from_json({"state": "degraded", "mood": "gloomy"}) == Health(state="degraded")


@pytest.mark.parametrize(
    ("health", "said"),
    [
        (Health(), "ok"),
        (BAD, "degraded since 2026-01-02 12:00:00 UTC: recall: timeout"),
        (
            after_failure(BAD, source="plane", category="plane_failed", at=LATER),
            "degraded since 2026-01-02 12:00:00 UTC: recall: timeout, plane: plane_failed (2 in a row)",
        ),
        (Health(state="unavailable", since=NOON, reason="no key"), "unavailable since 2026-01-02 12:00:00 UTC: no key"),
        (Health(state="disabled"), "disabled"),
    ],
)
def test_what_health_says(health, said):
    """A person reads the state, since when, and why."""
    assert str(health) == said


def test_out_of_service_and_back():
    """`since` moves when the state does; old faults stand until a success clears them."""
    gone = out_of_service(BAD, state="unavailable", reason="no key", at=LATER)
    still = out_of_service(gone, state="unavailable", reason="no door", at=LATER + timedelta(hours=1))
    back = after_loading(still, at=LATER + timedelta(hours=2))

    assert (gone.state, gone.since, gone.reason) == ("unavailable", LATER, "no key")
    assert (still.since, still.reason) == (LATER, "no door")
    assert (back.state, back.since, back.reason, dict(back.faults)) == (
        "degraded", LATER + timedelta(hours=2), None, {"recall": "timeout"},
    )  # fmt: skip
    assert after_loading(BAD, at=LATER) is BAD
    assert after_loading(out_of_service(Health(), state="disabled", reason="x", at=NOON), at=LATER).state == "ok"


def test_a_success_does_not_bring_a_plugin_back():
    """A success leaves a plugin out of service, and clears the fault of its source."""
    gone = out_of_service(BAD, state="unavailable", reason="no key", at=LATER)
    mended = after_success(gone, source="recall", at=LATER)

    assert (mended.state, dict(mended.faults), mended.consecutive_failures, mended.last_success) == (
        "unavailable", {}, 0, LATER,
    )  # fmt: skip


def test_the_book_lists_whom_it_has_heard_of():
    """Earlier plugins that this host has not loaded are known, and not listed."""
    book, _ = make_book(FrozenClock(), {"old": BAD, "both": BAD})
    book.loaded("both")

    assert book.all() == {"both": BAD}
    assert (book["old"], book["new"]) == (BAD, Health())


def test_successes_are_kept_now_and_then():
    """The common success costs no write, but its time never gets more than a little stale."""
    clock = FrozenClock()
    book, kept = make_book(clock)
    book.loaded("p")
    times = []
    for _ in range(4):
        clock.advance(KEEP_EVERY.total_seconds() / 2)
        book.succeeded("p", source="before_prompt")
        times.append(kept["p"].last_success)

    start = FrozenClock().now()
    assert times == [None, None, start + KEEP_EVERY * 1.5, start + KEEP_EVERY * 1.5]
    assert book["p"].last_success == start + KEEP_EVERY * 2


def test_only_news_is_kept_at_once():
    """Failures that repeat cost no write each; the count is kept now and then, and when the host closes."""
    clock, stored = FrozenClock(), Stored()
    book = HealthStore(clock=clock, stored=stored)
    for _ in range(10):
        book.failed("p", source="recall", category="timeout")
    clock.advance(KEEP_EVERY.total_seconds() + 1)
    for _ in range(2):
        book.failed("p", source="recall", category="timeout")
    book.keep_all()
    book.keep_all()

    assert [health.consecutive_failures for _, health in stored.writes] == [1, 11, 12, 12]


class Shared:
    """A place where several hosts keep their books."""

    def __init__(self):
        self.rows, self.writes, self.clock = {}, [], FrozenClock()

    def book(self):
        return HealthStore(clock=self.clock, stored=self)

    def read(self, *, wait=None):
        return dict(self.rows)

    def put(self, plugin, health):
        self.rows[plugin] = health
        self.writes.append(plugin)


def test_a_host_that_did_nothing_writes_nothing():
    """A host that only loaded a plugin does not overwrite the health that another host wrote."""
    shared = Shared()
    shared.book().loaded("p")
    idle, busy = shared.book(), shared.book()
    for book in (idle, busy):
        book.loaded("p")
    busy.failed("p", source="recall", category="timeout")
    idle.keep_all()

    assert (shared.rows["p"].state, shared.writes) == ("degraded", ["p", "p"])


def test_an_older_success_does_not_hide_a_newer_failure():
    """A closing host does not overwrite a newer health of another host."""
    shared = Shared()
    older, newer = shared.book(), shared.book()
    for book in (older, newer):
        book.loaded("p")
    shared.clock.advance(1)
    older.succeeded("p", source="recall")
    shared.clock.advance(1)
    newer.failed("p", source="recall", category="timeout")
    older.keep_all()

    assert dict(shared.rows["p"].faults) == {"recall": "timeout"}


def test_loading_takes_over_what_is_newer():
    """Loading a plugin again takes the newest known health, this host's or another one's."""
    shared = Shared()
    one, two = shared.book(), shared.book()
    one.loaded("p")
    shared.clock.advance(1)
    two.failed("p", source="recall", category="timeout")
    one.loaded("p")
    theirs = dict(one["p"].faults)
    shared.clock.advance(1)
    one.succeeded("p", source="recall")
    shared.rows["p"] = BAD
    two.loaded("p")
    one.loaded("p")

    assert (theirs, one["p"].state, shared.writes) == ({"recall": "timeout"}, "ok", ["p", "p", "p"])


def test_taking_out_of_service_is_kept():
    """Health keeps the reason of a disabled plugin, and only a change of state is news."""
    clock = FrozenClock()
    book, kept = make_book(clock)

    news = [book.out_of_service("p", state="disabled", reason="by hand") for _ in range(2)]

    assert news == [True, False]
    assert kept["p"] == Health(state="disabled", since=clock.now(), reason="by hand")


class Moody:
    """Fails on demand."""

    def __init__(self, *, failing):
        self.failing = failing

    @hookimpl
    async def before_prompt(self, turn):
        if self.failing:
            raise ValueError

    @hookimpl
    async def after_prompt(self, turn, answer, report):
        """Works always."""


async def one_turn(tmp_path, clock, *, failing, sink=None):
    """Run one turn in a process of its own, as far as the host can tell; return the health at its end."""
    clock.advance(100)
    sinks = [] if sink is None else [sink]
    async with Host(
        {"moody": Moody(failing=failing)}, state_folder=tmp_path / "state", clock=clock, sinks=sinks
    ) as host:
        async with host.turn("hello", session="s") as turn:
            await turn.commit("hi")
        await host.drain()
        return host.health()["moody"]


async def test_health_survives_the_process(tmp_path):
    """`degraded since` spans several processes, and recovery is an event and sets a new `since`."""
    clock, sink = FrozenClock(), MemorySink()
    start = clock.now()
    seen = [await one_turn(tmp_path, clock, failing=each) for each in (False, True, True)]
    seen.append(await one_turn(tmp_path, clock, failing=False, sink=sink))

    def at(seconds):
        return start + timedelta(seconds=seconds)

    assert [(each.state, each.since, each.consecutive_failures) for each in seen] == [
        ("ok", None, 0), ("degraded", at(200), 1), ("degraded", at(200), 2), ("ok", at(400), 0),
    ]  # fmt: skip
    assert [each.last_success for each in seen] == [at(100), at(200), at(300), at(400)]
    assert [each.last_failure for each in seen] == [None, at(200), at(300), at(300)]
    assert [(each.plugin, dict(each.facts)) for each in sink.named("plugin_recovered")] == [
        ("moody", {"source": "before_prompt"})
    ]


async def test_a_write_that_works_hides_no_recall_that_fails(tmp_path):
    """The success of one hook clears no fault of another one."""
    health = await one_turn(tmp_path, FrozenClock(), failing=True)

    assert (health.state, dict(health.faults)) == ("degraded", {"before_prompt": "raised"})
    assert health.last_success == health.last_failure


def test_a_plugin_cannot_name_sources_without_end():
    """The first sources at fault are kept; those that come on top degrade the plugin and are not listed."""
    health = Health()
    for number in range(MOST_SOURCES + 5):
        health = after_failure(health, source=f"plane {number}", category="failed", at=NOON)
    health = after_failure(health, source="plane 0", category="timeout", at=NOON)

    expected = {f"plane {number}": "failed" for number in range(MOST_SOURCES)} | {"plane 0": "timeout"}
    assert (expected, MOST_SOURCES + 6) == (dict(health.faults), health.consecutive_failures)
