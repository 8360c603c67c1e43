"""The trail keeps what it was given, and answers from what it kept."""

import os
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta

import apsw
import pytest

from beaver_hooks.audit import database
from beaver_hooks.audit.chain import GENESIS, ChainCheck, Head
from beaver_hooks.audit.events import AuditEvent
from beaver_hooks.audit.key import KEY_FILE
from beaver_hooks.audit.reader import TrailReader
from beaver_hooks.audit.trail import Trail
from beaver_hostspecs import AuditUnavailable
from beaver_hostspecs.testing import FrozenClock

WHEN = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)


@pytest.fixture
def trail(tmp_path):
    trail = Trail.open(tmp_path / ".beaver", clock=FrozenClock(WHEN))
    yield trail
    trail.close()


def event(name="turn_opened", **rest):
    return AuditEvent(name=name, at=WHEN, **rest)


def sql(folder, *statements):
    """Change a database behind its triggers; return the rows of the last statement."""
    connection = apsw.Connection(str(folder / "host.db"))
    rows = [connection.execute(statement).fetchall() for statement in statements][-1]
    connection.close()
    return rows


def test_events_come_back_as_they_were(trail):
    """The trail returns events in the order of appending, with all their fields."""
    events = [
        event(
            plugin="curated",
            hook="before_prompt",
            turn="t",
            session="h:1",
            facts={"count": 1, "ids": ["a", None]},
        ),
        event("caf\u00e9"),
    ]
    for each in events:
        trail.append(each)
    trail.flush()

    assert trail.tail() == events
    assert trail.tail(1) == events[1:]
    assert trail.verify() == ChainCheck(ok=True, checked=2, head=trail.head())


def test_an_empty_trail(trail):
    """A trail without events verifies, and all its lists are empty."""
    trail.flush()

    assert trail.verify() == ChainCheck(ok=True, checked=0)
    assert (
        trail.head(),
        trail.tail(),
        trail.receipts(),
        trail.receipt("t"),
        trail.health(),
        trail.integrity(),
    ) == (
        Head(seq=0, mac=GENESIS),
        [],
        {},
        None,
        {},
        [],
    )


def test_the_chain_goes_on_when_it_is_opened_again(tmp_path):
    """Every host that opens the folder continues the same chain with the same key."""
    heads = []
    for _ in range(3):
        trail = Trail.open(tmp_path)
        trail.append(event())
        assert trail.close() == 0
        heads.append(trail.head().seq)

    assert heads == [1, 2, 3]
    assert trail.verify().ok


def test_two_trails_of_one_process_share_the_chain(tmp_path):
    """Two hosts in one process append to one chain."""
    trails = [Trail.open(tmp_path) for _ in range(2)]
    for number in range(40):
        trails[number % 2].append(event())
        trails[number % 2].flush()

    assert [trail.close() for trail in trails] == [0, 0]
    assert (trails[0].verify().ok, trails[1].verify().checked) == (True, 40)


def test_events_of_many_threads_all_arrive(trail):
    """Several threads may append at once without losing an event."""
    threads = [threading.Thread(target=lambda: [trail.append(event()) for _ in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trail.flush()

    assert trail.verify().checked == 800


def test_receipts_are_replaced_and_come_newest_first(trail):
    """A turn has one receipt, the last one given."""
    trail.put_receipt("one", WHEN, {"pending": True})
    trail.flush()
    trail.put_receipt("two", WHEN + timedelta(seconds=1), {"pending": False})
    trail.put_receipt("one", WHEN, lambda: {"pending": False, "kept": [1]})
    trail.flush()

    expected = {"two": {"pending": False}, "one": {"pending": False, "kept": [1]}}
    assert [*trail.receipts().items()] == [*expected.items()]
    assert trail.receipts(1) == {"two": {"pending": False}}
    assert trail.receipt("one") == expected["one"]


def test_only_the_newest_receipts_are_kept(trail, monkeypatch):
    """The table is bounded; the oldest go."""
    monkeypatch.setattr(database, "RECEIPTS_KEPT", 3)
    for number in range(6):
        trail.put_receipt(f"t{number}", WHEN + timedelta(seconds=number), {})
        trail.flush()

    assert [*trail.receipts()] == ["t5", "t4", "t3"]


def test_a_body_is_asked_for_once_in_the_writers_thread(trail):
    """Only the last receipt of a turn is serialised, and not by the thread that gave it."""
    asked, gate = [], threading.Event()

    def slow():
        gate.wait(10)
        return {}

    def body(number):
        return lambda: asked.append((number, threading.current_thread().name)) or {"number": number}

    trail.put_receipt("first", WHEN, slow)
    waiter = threading.Thread(target=trail.flush)
    waiter.start()
    trail.put_receipt("t", WHEN, body(1))
    trail.put_receipt("t", WHEN, body(2))
    gate.set()
    waiter.join()
    trail.flush()

    assert asked[-1] == (2, "beaver-hooks-audit")
    assert trail.receipt("t") == {"number": 2}


class Broken(dict):
    def items(self):
        raise RuntimeError("canary text")


@pytest.mark.parametrize("give", [lambda: 1 / 0, sys.exit])
def test_a_body_that_raises_is_named(trail, give):
    """A receipt that raises is stored as unwritable with the type of its error, and the trail has an event about it."""
    trail.put_receipt("t", WHEN, give)
    trail.flush()

    error = trail.receipt("t")["unwritable"]
    assert error in {"ZeroDivisionError", "SystemExit"}
    assert trail.tail() == [event("audit_body_unwritable", facts={"what": "receipt", "error": error})]


def test_what_cannot_be_serialised_is_named(trail):
    """Objects that are no JSON cost their own record alone."""
    trail.append(event(facts={"a": object()}))
    trail.put_receipt("t", WHEN, {"a": float("nan")})
    trail.put_health("p", {"a": object()})
    trail.flush()

    assert (trail.receipt("t"), trail.health()) == ({"unwritable": "ValueError"}, {"p": {"unwritable": "TypeError"}})
    assert [(each.name, dict(each.facts)) for each in trail.tail()] == [
        ("audit_event_unwritable", {"error": "TypeError"}),
        ("audit_body_unwritable", {"what": "health", "error": "TypeError"}),
        ("audit_body_unwritable", {"what": "receipt", "error": "ValueError"}),
    ]


def test_health_is_the_last_known(trail, tmp_path):
    """The health of each plugin survives its process, and other processes read it."""
    trail.put_health("local", {"state": "ok"})
    trail.put_health("gateway", {"state": "ok"})
    trail.flush()
    trail.put_health("gateway", {"state": "degraded", "since": WHEN.isoformat()})
    trail.close()

    expected = {
        "gateway": {"state": "degraded", "since": "2026-01-02T03:04:05.000678+00:00"},
        "local": {"state": "ok"},
    }
    assert TrailReader(tmp_path / ".beaver").health() == expected


def test_identifiers_are_the_same_in_every_process(trail, tmp_path):
    """Every process with the key gives a value the same identifier."""
    other = Trail.open(tmp_path / ".beaver")
    same = trail.identify("eve") == other.identify("eve") != trail.identify("bob")
    other.close()

    assert same


def test_nobody_else_can_read_the_files(trail, tmp_path):
    """Only the owner can read the database and the key."""
    trail.append(event())
    trail.flush()

    files = [each for each in (tmp_path / ".beaver").iterdir() if each.is_file()]
    assert {"host.db", "host.db-wal", "audit.key"} <= {each.name for each in files}
    assert [each.name for each in files if each.stat().st_mode & 0o077] == []


def test_a_closed_trail_takes_nothing_more(trail):
    """Closing writes the pending events; a closed trail takes no event, refuses a flush, and can still be read."""
    trail.append(event())

    assert (trail.close(), trail.close()) == (0, 0)
    trail.append(event())
    with pytest.raises(AuditUnavailable, match="is closed"):
        trail.flush()
    assert len(trail.tail()) == 1


def test_a_forked_child_is_refused(trail, monkeypatch):
    """In a forked child, a trail drops its events and refuses every call."""
    monkeypatch.setattr(os, "getpid", lambda: -1)
    trail.append(event())
    sentences = []
    for call in (trail.flush, trail.verify):
        with pytest.raises(AuditUnavailable) as caught:
            call()
        sentences.append("was opened by another process" in str(caught.value))
    closed = trail.close()
    monkeypatch.undo()
    trail.flush()

    assert (sentences, closed, trail.tail()) == ([True, True], 0, [])


def test_a_loose_key_is_audited(trail, tmp_path):
    """That others could have read the key is an event."""
    (tmp_path / ".beaver" / KEY_FILE).chmod(0o644)

    other = Trail.open(tmp_path / ".beaver", clock=FrozenClock(WHEN))
    other.close()

    assert other.tail() == [event("audit_key_tightened")]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit SET name = 'x'",
        "DELETE FROM audit",
        "INSERT OR REPLACE INTO audit SELECT * FROM audit",
    ],
)
def test_records_cannot_be_changed_by_mistake(trail, tmp_path, statement):
    """The database itself refuses to change or delete a record."""
    trail.append(event())
    trail.flush()

    with pytest.raises(apsw.ConstraintError, match="append-only"):
        sql(tmp_path / ".beaver", statement)


@pytest.mark.parametrize(
    ("statement", "first_bad", "reason"),
    [
        ("UPDATE audit SET name = 'x' WHERE seq = 3", 3, "changed"),
        ("UPDATE audit SET plugin = '' WHERE seq = 3", 3, "changed"),
        ("UPDATE audit SET at = CAST(x'ff' AS TEXT) WHERE seq = 5", 5, "changed"),
        ("UPDATE audit SET mac = 'x', name = 'y' WHERE seq = 2", 2, "forged"),
        ("DELETE FROM audit WHERE seq BETWEEN 2 AND 3", 2, "missing"),
        ("DELETE FROM audit WHERE seq = 1", 1, "missing"),
        ("DELETE FROM audit WHERE seq = 5", 5, "missing"),
        (
            "INSERT INTO audit SELECT 6, at, name, plugin, hook, turn, session, facts, mac FROM audit LIMIT 1",
            6,
            "changed",
        ),
    ],
)
def test_tampering_is_named(trail, tmp_path, statement, first_bad, reason):
    """Verification finds changes made behind the triggers, by the number of the first bad record."""
    for _ in range(5):
        trail.append(event())
    trail.flush()
    head = trail.head()

    triggers = ("audit_keeps_what_it_has", "audit_loses_nothing", "audit_replaces_nothing")
    sql(tmp_path / ".beaver", *(f"DROP TRIGGER {each}" for each in triggers), statement)

    verdict = trail.verify(expected_head=head)
    assert (verdict.ok, verdict.checked, verdict.first_bad, verdict.reason) == (
        False,
        first_bad - 1,
        first_bad,
        reason,
    )


def test_what_others_wrote_does_not_break_readers(trail, tmp_path):
    """Rows that are no JSON and no time are shown as unreadable."""
    sql(
        tmp_path / ".beaver",
        "INSERT INTO health VALUES ('a', '{', ''), ('b', '[]', '')",
        "INSERT INTO audit VALUES (1, 'x', 'n', NULL, NULL, NULL, NULL, '{', '')",
    )

    assert trail.health() == {"a": {"unreadable": True}, "b": {"unreadable": True}}
    assert trail.tail() == [
        AuditEvent(name="n", at=datetime(1970, 1, 1, tzinfo=UTC), facts={"unreadable": True}),
    ]


def test_importing_the_trail_loads_no_database_engine():
    """The engine is imported when the first trail is opened."""
    code = "import sys, beaver_hooks.audit.trail; sys.exit('apsw' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
