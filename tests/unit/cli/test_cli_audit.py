"""`beaver audit`: the check of the trail, and its events."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.audit.chain import ChainedEvent
from beaver_hooks.audit.events import AuditEvent
from beaver_hooks.audit.trail import Trail
from beaver_hooks.cli import audit
from beaver_hooks.cli.audit import STEP, after
from beaver_hooks.cli.audit_texts import record_json, record_text

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TURN = f"turn-{'0123456789ab' * 2}"


@pytest.fixture
def folder(scratch):
    return scratch / ".beaver"


@pytest.fixture
def trail(folder):
    trail = Trail.open(folder)
    yield trail
    trail.close()


def put(trail, *names, **rest):
    for name in names:
        trail.append(AuditEvent(name=name, at=WHEN, **rest))
    trail.flush()


def sql(folder, *statements):
    """Change a database behind the back of its owner."""
    connection = apsw.Connection(str(folder / "host.db"))
    for statement in statements:
        connection.execute(statement)
    connection.close()


NO_REPORTS = {"lostEvents": 0, "restarts": 0, "missingTriggers": []}


def test_nothing_is_stored(cli, folder):
    """Without a trail every command succeeds, names the state folder, and creates nothing."""
    sentence = f"Nothing is stored yet; `beaver run` will store sessions in {folder}.\n"

    assert (0, sentence) == (cli("audit", "verify").code, cli("audit", "verify").out)
    assert {"ok": True, "checked": 0, "firstBad": None, "reason": "", "head": None, **NO_REPORTS} == cli(
        "audit", "verify", "--json"
    ).json
    assert (0, sentence) == (cli("audit", "tail").code, cli("audit", "tail").out)
    assert ("", sentence) == (cli("audit", "tail", "--json").out, cli("audit", "tail", "--json").err)
    assert not folder.exists()


def test_a_trail_that_is_expected_and_gone(cli):
    """A head that the user kept elsewhere shows that the whole trail was removed."""
    ran = cli("audit", "verify", "--expect", f"3:{'a' * 64}")

    assert (1, True) == (ran.code, ran.out.startswith("The audit trail is broken at record 1: it is missing"))


def test_a_key_without_a_database(cli, trail, folder):
    """A key without its database is an error, not an empty trail."""
    trail.close()
    for each in folder.glob("host.db*"):
        each.unlink()

    ran = cli("audit", "verify")

    assert (5, f"Error: The audit trail {folder}/host.db does not exist; a host creates it when it opens.\n") == (
        ran.code,
        ran.err,
    )


def test_a_whole_trail(cli, trail):
    """`verify` reports a whole trail and prints its head, which `--expect` accepts later."""
    assert "The audit trail is intact, and has no records yet.\n" == cli("audit", "verify").out
    put(trail, "one", "two")
    head = f"2:{trail.head().mac}"

    ran = cli("audit", "verify")

    assert 0 == ran.code
    assert (
        "The chain of the audit trail is intact: 2 records, each as it was written.\n"
        f"Its head is {head}\n"
        "Not known is whether records are missing at its end, or whether the trail was\n"
        "replaced together with its key: keep the head elsewhere, and use --expect HEAD.\n"
    ) == ran.out
    assert max(map(len, ran.out.splitlines())) <= 80
    expected = cli("audit", "verify", "--expect", head).out
    assert ["It contains the head that you expect."] == expected.splitlines()[2:]
    assert {"ok": True, "checked": 2, "firstBad": None, "reason": "", "head": head, **NO_REPORTS} == cli(
        "audit", "verify", "--json", "--expect", head
    ).json


def test_a_trail_that_reports_losses(cli, trail):
    """`verify` repeats what the records report: lost events, and an earlier trail that was gone."""
    put(trail, "one")
    for name, facts in (("audit_gap", {"lost": 3}), ("audit_gap", {"lost": 1}), ("audit_restarted", {"reason": "x"})):
        put(trail, name, facts=facts)
    ran = cli("audit", "verify")

    assert (0, ["The records report that 4 events could not be written."]) == (ran.code, ran.out.splitlines()[4:5])
    assert "The records report 1 time that an earlier trail was gone: its records are not here." in " ".join(
        ran.out.split()
    )
    assert max(map(len, ran.out.splitlines())) <= 80


def test_triggers_that_are_gone(cli, trail):
    """`verify` exits with 1 and names the triggers that a program removed, although every record is intact."""
    put(trail, "one")
    sql(trail._folder, "DROP TRIGGER audit_loses_nothing")
    ran, answer = cli("audit", "verify"), cli("audit", "verify", "--json")

    assert (1, True) == (ran.code, "keep the table append-only: audit_loses_nothing." in " ".join(ran.out.split()))
    assert (1, True, ["audit_loses_nothing"]) == (answer.code, answer.json["ok"], answer.json["missingTriggers"])
    assert "a program removed triggers that protect them" in " ".join(cli("doctor").out.split())


@pytest.mark.parametrize("head", ["", "x", "1:abc", "1", f"-1:{'a' * 64}"])
def test_no_head(cli, head):
    """A malformed head is an error of usage."""
    assert 2 == cli("audit", "verify", "--expect", head).code


OPEN = ("DROP TRIGGER audit_keeps_what_it_has", "DROP TRIGGER audit_loses_nothing")


@pytest.mark.parametrize(
    ("statement", "said", "reason"),
    [
        (
            "UPDATE audit SET name = 'x' WHERE seq = 2",
            ("record 2: its content", "The 1 record before it is good."),
            "changed",
        ),
        (
            "UPDATE audit SET mac = 'x' WHERE seq = 3",
            ("record 3: it was not written with", "The 2 records before"),
            "forged",
        ),
        ("DELETE FROM audit WHERE seq = 1", ("record 1: it is missing", "No record before it is good."), "missing"),
    ],
)
def test_a_broken_trail(cli, trail, *, statement, said, reason):
    """A broken trail exits with 1, and the report names the first bad record and the cause."""
    put(trail, "one", "two", "three", "four")
    sql(trail._folder, *OPEN, statement)

    ran = cli("audit", "verify")

    assert 1 == ran.code
    assert [] == [each for each in said if each not in " ".join(ran.out.split())]
    assert max(map(len, ran.out.splitlines())) <= 80
    answer = cli("audit", "verify", "--json")
    assert (1, False, reason) == (answer.code, answer.json["ok"], answer.json["reason"])


def test_tail(cli, trail):
    """The last events appear with number, time and facts, within 80 columns."""
    put(trail, "one", "two")
    put(
        trail,
        "curated_changed",
        plugin="curated",
        hook="tool:memory",
        turn=TURN,
        session="h:1",
        facts={"entries": 1, "reason": "it was worth it", "target": "user"},
    )

    assert (
        "     2  2026-01-02 03:04:05  two\n"
        "     3  2026-01-02 03:04:05  curated_changed plugin=curated hook=tool:memory\n"
        '        turn=turn-01234567 entries=1 reason="it was worth it" target=user\n'
    ) == cli("audit", "tail", "-n", 2).out
    assert {
        "seq": 3,
        "at": "2026-01-02T03:04:05.000000+00:00",
        "name": "curated_changed",
        "plugin": "curated",
        "hook": "tool:memory",
        "turn": TURN,
        "session": "h:1",
        "facts": {"entries": 1, "reason": "it was worth it", "target": "user"},
    } == cli("audit", "tail", "-n", 1, "--json").json


def names(cli, *words):
    return [json.loads(line)["name"] for line in cli("audit", "tail", "--json", *words).out.splitlines()]


def test_tail_of_some(cli, trail):
    """The options select the events of a plugin, of a turn by the beginning of its id, or of another host's turn id."""
    put(trail, "one", plugin="curated", turn=TURN)
    put(trail, "two", plugin="gateway", turn=TURN)
    put(trail, "three", plugin="gateway", turn=trail.identify("ticket 7"))
    put(trail, "four")

    assert ["two", "three"] == names(cli, "--plugin", "gateway")
    assert ["three"] == names(cli, "--plugin", "gateway", "-n", 1)
    assert ["two"] == names(cli, "--plugin", "gateway", "--turn", TURN)
    assert ["one", "two"] == names(cli, "--turn", "turn-01")
    assert ["three"] == names(cli, "--turn", "ticket 7")
    assert "No event matches the options.\n" == cli("audit", "tail", "--plugin", "local").out


def test_a_turn_without_a_key(cli, trail, folder):
    """Without a key, or with a damaged one, `--turn` still finds a turn by its recorded id."""
    put(trail, "one", turn=TURN)
    (folder / "audit.key").unlink()
    assert ["one"] == names(cli, "--turn", "turn-")
    (folder / "audit.key").write_text("no key")
    assert ["one"] == names(cli, "--turn", "turn-")


class Watched:
    """A stdout that runs a function when a given word is written."""

    encoding = "utf-8"

    def __init__(self, **reactions):
        self.text = ""
        self._reactions = reactions

    def write(self, text):
        self.text += text
        for word in [word for word in self._reactions if word in text]:
            self._reactions.pop(word)()

    def flush(self):
        pass

    def isatty(self):
        return False


def interrupt():
    raise KeyboardInterrupt


@pytest.fixture
def quickly(monkeypatch):
    monkeypatch.setattr(audit, "POLL", 0.001)


@pytest.mark.usefixtures("quickly")
def test_follow(cli, trail, monkeypatch):
    """Following shows each later event once until Ctrl-C, and passes over events that do not match the options."""
    put(trail, "zero", plugin="p")
    stdout = Watched(
        zero=lambda: [put(trail, "other"), put(trail, "one", plugin="p")],
        one=lambda: put(trail, "two", plugin="p"),
        two=interrupt,
    )
    monkeypatch.setattr(sys, "stdout", stdout)

    assert 130 == cli("audit", "tail", "--follow", "--plugin", "p", "--json").code
    assert ["zero", "one", "two"] == [json.loads(line)["name"] for line in stdout.text.splitlines()]


@pytest.mark.usefixtures("quickly")
def test_follow_begins_before_there_is_a_trail(cli, folder, monkeypatch):
    """Following waits for a trail that does not exist yet."""
    opened = []
    real = audit.has_trail

    def has_trail(each):
        if len(opened) == 2:
            with contextlib.closing(Trail.open(folder)) as made:
                put(made, "one")
        opened.append(each)
        return real(each)

    monkeypatch.setattr(audit, "has_trail", has_trail)
    stdout = Watched(one=interrupt)
    monkeypatch.setattr(sys, "stdout", stdout)

    assert (130, "     1  2026-01-02 03:04:05  one\n") == (cli("audit", "tail", "-f").code, stdout.text)


def test_following_misses_nothing(trail, folder):
    """Following reads all events between two looks, however many; a trail that begins anew is read from its start."""
    put(trail, *["x"] * (STEP + 5))

    assert [*range(3, STEP + 6)] == [each.seq for each in after(folder, 2)]
    assert [STEP + 5] == [each.seq for each in after(folder, STEP + 4)]
    assert [] == after(folder, STEP + 5)
    assert [*range(1, STEP + 6)] == [each.seq for each in after(folder, STEP + 100)]


def test_a_trail_that_vanishes_while_it_is_followed(cli, folder, trail, monkeypatch):
    """A trail that vanishes while it is followed is an error of the store."""
    put(trail, "zero")
    trail.close()
    monkeypatch.setattr(sys, "stdout", Watched(zero=lambda: [each.unlink() for each in folder.glob("host.db*")]))
    monkeypatch.setattr(audit, "POLL", 0.001)

    assert 5 == cli("audit", "tail", "-f").code


@pytest.mark.parametrize("facts", ["", "[]", "7", "{", "[" * 100_000])
def test_what_others_wrote(facts):
    """A record that another program wrote is shown with its facts marked as unreadable."""
    record = ChainedEvent(seq=1, fields=("yesterday", "x", None, None, None, None, facts), mac="")

    assert "     1  yesterday  x unreadable=true" == record_text(record)
    assert {"unreadable": True} == record_json(record)["facts"]


@given(
    st.tuples(
        st.text(),
        st.text(),
        *[st.none() | st.text()] * 4,
        st.text()
        | st.dictionaries(st.text(), st.recursive(st.none() | st.floats() | st.text(), st.lists)).map(json.dumps),
    )
)
def test_any_record_can_be_shown(fields):
    """Every record has a text and a JSON, whatever its fields hold."""
    record = ChainedEvent(seq=1, fields=fields, mac="")

    assert record_text(record).startswith("     1")
    assert 1 == json.loads(json.dumps(record_json(record)))["seq"]


def test_ctrl_c_ends_following(trail, scratch):
    """A real Ctrl-C ends following with exit code 130 and without a traceback."""
    put(trail, "zero")
    with subprocess.Popen(
        [sys.executable, "-m", "beaver_hooks.cli", "audit", "tail", "-f"],
        cwd=scratch, env={**os.environ, "PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        line = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert (130, "     1  2026-01-02 03:04:05  zero\n", "Interrupted.") == (process.returncode, line, said.strip())
