"""The queue of turns: what it holds, how it captures, and what a failure or a crash at each step leaves."""

import random
from datetime import timedelta

import attrs
import pytest

from beaver_hostspecs.testing import FrozenClock, RecordingReport, make_canary
from beaver_memory.capture.outcomes import ToolOutcome
from beaver_memory.capture.records import Utterance
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.errors import StoreError
from beaver_memory.filters import Filters
from beaver_memory.records import Owner, QueuedSession, Store
from beaver_memory.runtime.captures import Captures
from beaver_memory.runtime.factory import open_engine
from beaver_memory.runtime.operations import Operations
from beaver_memory.runtime.profile import InMemoryLocation, Profile, RuntimeServices
from beaver_memory.runtime.turn_captures import TurnContent, Unreadable
from beaver_memory.store.in_memory import Database
from beaver_memory.store.turn_queue import LEASE, LONGEST_PAUSE, MOST_ATTEMPTS
from beaver_memory.views import ALL_PROJECTS, View
from beaver_toolkit.redaction.redactor import Finding

ANN = Owner(user="ann")
HERE = QueuedSession(owner=ANN, session="s1")
SISTER = "My sister Anna lives in Lisbon with her two kids."
BROTHER = "My brother Tom lives in Oslo and works as a nurse."


class Process:
    """A process over a database that other processes share."""

    def __init__(self, database, clock):
        self.clock, self.report = clock, RecordingReport()
        profile = Profile(embedding=EmbeddingSettings(provider="none"))
        location, services = InMemoryLocation(database=database), RuntimeServices(report=self.report, clock=clock)
        made = open_engine(profile, location, services)
        self.operations = Operations(made.engine, made.embedder, profile, location, services)
        self.turns, self.store = self.operations.turns, made.engine.store

    def put(self, *texts, turn="t1", was_injected=lambda _: False, **fields):
        said = [each if isinstance(each, Utterance) else Utterance(text=each, turn=turn) for each in texts]
        return self.turns.put(HERE, turn, said, was_injected=was_injected, **fields)

    def capture(self, **fields):
        """Return the outcomes and reasons of the captures that run now."""
        found = self.turns.capture(HERE, **{"limit": 9, **fields})
        items = [each for report in found for each in report.items]
        return [(each.outcome, "" if each.outcome == "stored" else each.reason) for each in items]

    def waiting(self):
        return [
            (each.turn, each.attempts, each.error) for each in self.store.queue.waiting(ANN, ALL_PROJECTS, limit=99)
        ]

    def memories(self):
        found = self.store.recent(Filters(view=View(owners=(ANN,), now=self.clock.now()), lapsed=True), limit=99)
        return sorted((each.title, each.mention_count) for each in found)


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
def database():
    return Database()


@pytest.fixture
def process(database, clock):
    return Process(database, clock)


def test_captured_by_a_later_process(process, database, clock):
    """A turn that one process has queued is captured by the next, once, with its evidence and at its place."""
    process.put(SISTER, outcomes=[ToolOutcome(tool="bash", command="make", files=("a.py",))])
    later = Process(database, clock)
    assert ([HERE], [("stored", "")], []) == (
        later.turns.due(clock.now() + timedelta(seconds=1)), later.capture(), later.waiting(),
    )  # fmt: skip
    (memory,) = later.store.recent(Filters(view=View(owners=(ANN,), now=clock.now())), limit=9)
    assert ("t1", "s1", SISTER, Store.PRIVATE) == (memory.origin, memory.session, memory.evidence, memory.store)
    assert ([], [(SISTER, 1)]) == (process.capture(), process.memories())


@pytest.mark.shows("003-104")
def test_a_turn_takes_effect_once(process):
    """A turn that is queued again after its capture changes nothing."""
    process.put(SISTER)
    process.capture()
    assert (True, [], [], [(SISTER, 1)]) == (
        process.put(SISTER),
        process.capture(),
        process.waiting(),
        process.memories(),
    )


@pytest.mark.shows("003-104")
def test_a_turn_that_is_queued_twice(process, clock):
    """A turn that is queued again, as after a fault that hides whether it was stored, is one row."""
    question = Utterance(text="Where does your sister live?", voice="assistant", turn="t1", is_context=True)
    queued = []
    for _ in range(2):
        queued.append(process.put(question, SISTER))
        clock.advance(1)
    assert ([True, False], [("stored", "")], [(SISTER, 1)]) == (queued, process.capture(), process.memories())


@pytest.mark.shows("003-106")
def test_what_a_row_holds(process):
    """A row holds neither private spans nor known secrets, and no more of a text than capture reads."""
    secret = make_canary().secret.reveal()
    process.put(f"<private>diary</private> The key is {secret}.", "x" * 30_000, outcomes=[
        ToolOutcome(tool="bash", command=f"login {secret}", files=(f"/{secret}",))])  # fmt: skip
    (row,) = process.store.queue.waiting(ANN, ALL_PROJECTS, limit=9)
    assert [False, False, True] == [each in row.content for each in ("diary", secret, "[redacted: held secret]")]
    assert len(row.content) < 21_000
    (report,) = process.turns.capture(HERE, limit=9)
    assert (Finding(kind="held secret", count=3),) == report.redacted


def test_what_was_recalled(process, database, clock):
    """What the process of the turn knew as recalled is not learned by a later one, and what it did not know is."""
    process.put(SISTER, f"Remember that {BROTHER}", was_injected=lambda text: "Anna" in text)
    assert [("gated", "write: recalled_reference"), ("stored", "")] == sorted(Process(database, clock).capture())


def test_the_content_comes_back():
    """A content is the same after it was a row, and other texts are no content."""
    content = TurnContent(
        said=[Utterance(text="a", turn="t", when=FrozenClock().now(), speaker="Ann", external=True), Utterance(text="b")],
        outcomes=[ToolOutcome(tool="bash", command="make", files=("a",))],
        recalled=["b", "b"],
        redacted={"password": 1},
    )  # fmt: skip
    assert content == TurnContent.of_text(content.text)
    for text in (
        "",
        "[]",
        "{}",
        '{"said": [1], "outcomes": [], "recalled": [], "redacted": {}}',
        content.text.replace("voice", "v"),
    ):
        with pytest.raises(Unreadable):
            TurnContent.of_text(text)


@pytest.mark.shows("003-103")
def test_turns_in_a_batch(process):
    """Turns of a session are captured together, and a message that two have as context is read once."""
    question = Utterance(text="Where does your sister live?", voice="assistant", turn="t1", is_context=True)
    process.put("Hello.", question)
    process.put(question, SISTER, turn="t2")
    reports = process.turns.capture(HERE, limit=2)
    assert [["stored"]] == [[each.outcome for each in report.items] for report in reports]


def failing(monkeypatch, error, words=""):
    """Let each capture fail in which a message has some words."""
    found = Captures.found

    def fail(self, request, was_injected):
        if any(words in each.text for each in request.said):
            raise error
        return found(self, request, was_injected)

    monkeypatch.setattr(Captures, "found", fail)


@pytest.mark.shows("003-103")
@pytest.mark.parametrize(
    ("error", "category"), [(ZeroDivisionError(), "ZeroDivisionError"), (StoreError("x", "disk_full"), "disk_full")]
)
def test_a_failure(process, clock, monkeypatch, error, category):
    """A turn that fails is reported, and captured after a pause."""
    process.put(SISTER)
    with monkeypatch.context() as broken:
        failing(broken, error)
        assert ([], [], [("t1", 1, category)]) == (process.capture(), process.capture(), process.waiting())
    facts = {"error": category, "turns": 1, "attempts": 1}
    assert [("memory_turns_postponed", facts)] == process.report.events
    clock.advance(60)
    assert ([("stored", "")], []) == (process.capture(), process.waiting())


def test_a_memory_that_cannot_be_written(process, monkeypatch):
    """A turn of which a memory fails stays in the queue with the reason."""
    process.put(SISTER)
    monkeypatch.setattr("beaver_memory.runtime.memory_writes.MemoryWrites.is_there", lambda *_: False)
    assert ([("failed", "not_read_back")], [("t1", 1, "not_read_back")]) == (process.capture(), process.waiting())


def test_a_poison_turn(process, database, clock, monkeypatch):
    """A turn that always fails is parked, shown by health, and keeps no other turn from its capture."""
    failing(monkeypatch, ValueError(), "Anna")
    process.put(SISTER)
    process.put(f"Remember that {BROTHER}", turn="t2")
    for _ in range(MOST_ATTEMPTS):
        process.capture()
        clock.advance(LONGEST_PAUSE.total_seconds())
    assert [("t1", MOST_ATTEMPTS, "ValueError")] == process.waiting()
    assert (True, ["queue_parked"]) == (
        process.store.queue.waiting(ANN, ALL_PROJECTS, limit=1)[0].is_parked,
        process.report.degradations,
    )
    monkeypatch.undo()
    later = Process(database, clock)
    later.turns.tell_parked()
    assert ([], 1) == (later.capture(), later.turns.retry(ANN, ALL_PROJECTS))
    assert ([("stored", "")], []) == (later.capture(), later.waiting())
    assert (["queue_parked"], 1) == (later.report.degradations, later.report.recoveries)


def test_a_forgotten_memory_does_not_come_back(process, monkeypatch):
    """The turn that a forgotten memory rests on is not captured again, and others of the session are."""
    with monkeypatch.context() as broken:
        broken.setattr("beaver_memory.store.in_memory.turn_queue.InMemoryTurnQueue.finish", lambda *_: None)
        process.put(SISTER)
        process.capture()
    process.put(f"Remember that {BROTHER}", turn="t2")
    process.operations.engine.forget([1], Filters(view=View(owners=(ANN,), now=process.clock.now())))
    assert ([("t2", 0, "")], [("stored", "")]) == (process.waiting(), process.capture())
    process.put(SISTER, turn="t3")
    assert ([1, 0], []) == ([process.turns.erase(ANN, ALL_PROJECTS, "s1") for _ in range(2)], process.waiting())


def test_a_dropped_turn(process):
    """A turn that the user drops is not captured."""
    process.put(SISTER)
    (row,) = process.turns.waiting(ANN, ALL_PROJECTS)
    assert ([True, False], []) == ([process.turns.drop(ANN, row.key) for _ in range(2)], process.capture())


def test_a_damaged_row(process, database):
    """A row that no longer holds the queued content is parked at once."""
    process.put(SISTER)
    ((key, row),) = database.tables[ANN].waiting.items()
    database.tables[ANN].waiting[key] = attrs.evolve(row, content=row.content.replace("Lisbon", "Lisbom"))
    assert ([], [("t1", 1, "Unreadable")]) == (process.capture(), process.waiting())
    assert process.store.queue.waiting(ANN, ALL_PROJECTS, limit=1)[0].is_parked


class Crash(BaseException):
    """The process ends."""


class CrashingStore:
    """Stands in for a store of which one call, the n-th, ends the process before or after it."""

    def __init__(self, inner, plan):
        self._inner, self._plan = inner, plan

    def __getattr__(self, name):
        there = getattr(self._inner, name)
        if name == "queue":
            return CrashingStore(there, self._plan)
        return self._crashing(there) if callable(there) else there

    def _crashing(self, call):
        def called(*given, **named):
            self._plan["left"] -= 1
            if self._plan["left"] == 0 and not self._plan["after"]:
                raise Crash
            found = call(*given, **named)
            if self._plan["left"] == 0:
                raise Crash
            return found

        return called


@pytest.mark.parametrize("seed", range(20))
def test_a_crash_at_each_step(database, clock, seed):
    """After a crash at any call of the store, the turns of which `put` has returned are captured once, and no others."""
    chance = random.Random(seed)
    texts = {"t1": f"Remember that {SISTER}", "t2": f"Remember that {BROTHER}", "t3": "Thanks!"}
    sure, tried = set(), set()
    for _ in range(3):
        process = Process(database, clock)
        plan = {"left": chance.randrange(1, 25), "after": chance.random() < 0.5}
        crashing = CrashingStore(process.store, plan)
        process.turns._store = process.operations.engine.store = crashing
        process.operations._captures._engine.store = crashing
        try:
            for turn, text in texts.items():
                tried.add(turn)
                process.put(text, turn=turn)
                sure.add(turn)
            process.capture(limit=2)
        except Crash:
            clock.advance(LEASE.total_seconds())
    process = Process(database, clock)
    clock.advance(LONGEST_PAUSE.total_seconds())
    process.capture(limit=2)
    wanted = [(text.removeprefix("Remember that "), 1) for turn, text in texts.items() if turn in sure and turn != "t3"]
    found = process.memories()
    assert [] == process.waiting()
    assert {*wanted} <= {*found}
    assert len(found) == len({title for title, _ in found})
    assert {title for title, _ in found} <= {texts[turn].removeprefix("Remember that ") for turn in tried}
