"""`capture`, `correct`, `undo` and `review` at the command line."""

import contextlib
import json
from datetime import UTC, datetime
from functools import partial

import pytest
from processes import environment, run_beaver

from beaver_hooks_local.cli.examine import PARKED, examine
from beaver_memory.records import Owner, QueuedSession
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.store.turn_queue import QueuedTurn

SISTER = "My sister Anna lives in Lisbon with her two kids."
RULE = "Always answer in short sentences without emojis."


@pytest.fixture
def run(tmp_path):
    """Runs `beaver` in a folder with the local memory, with settings of capture."""

    def run(*words, code=0, stdin="", **capture):
        local = {"enabled": True, "embedding": {"provider": "none"}, "capture": capture}
        path = tmp_path / "config.json"
        path.write_text(json.dumps({"memory": {"local": local}}), "utf-8")
        env = environment(HOME=tmp_path, BEAVER_HOME=tmp_path)
        done = run_beaver("--config", path, *words, cwd=tmp_path, env=env, stdin=stdin)
        assert done.code == code, done.err
        return done.out if code == 0 else done.err

    return run


@pytest.fixture
def beaver(run):
    """Runs a command of the local memory."""
    return partial(run, "memory", "local")


def read(text):
    return json.loads(text)


def test_capture_and_correct(beaver):
    """A text is shown in a dry run, captured, found, corrected, and found as of yesterday."""
    dry = read(beaver("capture", "--dry-run", "--json", SISTER))
    (kept,) = read(beaver("capture", "--json", SISTER))["memories"]
    corrected = beaver("correct", str(kept["id"]), "Anna", "lives", "in", "Porto.")
    found = [each["title"] for each in read(beaver("search", "Anna", "--json"))["hits"]]
    assert [(each["outcome"], each["text"], each["id"]) for each in dry["memories"]] == [("stored", SISTER, 0)]
    assert (kept["outcome"], corrected, found) == (
        "stored", f"[{kept['id'] + 1}] holds now, in place of [{kept['id']}].\n", ["Anna lives in Porto."],
    )  # fmt: skip


@pytest.fixture
def parked(run, tmp_path):
    """A turn that failed too often."""
    run("memory", "local", "list")
    (path,) = (tmp_path / ".beaver").rglob("local/memory.db")
    place, now = QueuedSession(owner=Owner(), session="s1"), datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
    turn = QueuedTurn(place=place, turn="t1", content="{}", queued_at=now)
    with contextlib.closing(SqliteStore.open(path)) as store:
        store.queue.put(turn)
        store.queue.postpone(store.queue.claim(place, now, limit=1), None, "ValueError")
    return turn.key


def test_queue(beaver, parked):
    """A parked turn is listed without its text, retried, and erased by its key."""
    row = {
        "key": parked, "session": "s1", "queued": "2026-11-20 09:30", "attempts": 1, "state": "parked",
        "error": "ValueError",
    }  # fmt: skip
    assert [row] == read(beaver("queue", "--json"))["waiting"]
    assert [parked, "s1", "2026-11-20", "09:30", "1", "parked", "ValueError"] == beaver("queue").splitlines()[1].split()
    assert {"retried": 1} == read(beaver("queue", "--retry", "--json"))
    assert "The turn is erased.\n" == beaver("queue", "--drop", parked)
    assert "No turn waits to be captured.\n" == beaver("queue")
    assert "0 turns will be captured again.\n" == beaver("queue", "--retry")


@pytest.mark.parametrize("which", [("--session", "s1"), ("--all",)])
def test_forgetting_a_session_forgets_its_waiting_turns(parked, beaver, which):
    """Turns that wait are forgotten with a whole session, or with all of a user, and the command says so."""
    nothing = beaver("forget", "--session", "s2", "--yes"), beaver("forget", "--query", "sister", "--yes")
    shown = beaver("forget", *which, "--dry-run"), beaver("queue")
    forgotten = beaver("forget", *which, "--yes")

    assert ("There are no memories to forget.\n",) * 2 == nothing
    assert ("There are no memories to forget.\n", True) == (shown[0], parked in shown[1])
    assert "Forgot 1 turn that waited to be captured.\n" == forgotten
    assert "No turn waits to be captured.\n" == beaver("queue")


def test_the_doctor_names_parked_turns(beaver, parked, tmp_path):
    """`beaver doctor` counts the turns that failed too often, until the user has decided about them."""
    (path,) = (tmp_path / ".beaver").rglob("local/memory.db")
    before = examine.main([str(path.parent)], "examine", standalone_mode=False)
    beaver("queue", "--drop", parked)
    after = examine.main([str(path.parent)], "examine", standalone_mode=False)

    intact = ("ok", f"{path}: 0 memories, intact", "")
    assert [intact, ("problem", f"{path}: 1 turn could not be captured (parked)", PARKED)] == before
    assert [intact] == after


def test_forgetting_all(beaver, parked):
    """Forgetting all memories of a user erases the turns that wait, too, though there are no memories."""
    assert [parked] == [each["key"] for each in read(beaver("queue", "--json"))["waiting"]]
    beaver("forget", "--all", "--yes")
    assert [] == read(beaver("queue", "--json"))["waiting"]


def test_queue_refusals(beaver):
    """A key that no turn has, and two decisions at once, are refused."""
    assert "No turn with this key waits" in beaver("queue", "--drop", "x", code=2)
    assert "Choose one of --retry and --drop KEY" in beaver("queue", "--retry", "--drop", "x", code=2)


def test_capture_of_a_transcript(beaver, tmp_path):
    """A transcript is read by voices; a line of another form is refused with its number."""
    lines = [{"role": "assistant", "text": "I prefer tabs over spaces."}, {"role": "user", "text": SISTER}]
    path = tmp_path / "talk.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    shown = beaver("capture", "--dry-run", "--transcript", str(path))
    path.write_text('{"role": "user"}', "utf-8")
    assert ("Lisbon" in shown, "tabs" in shown) == (True, False)
    assert "Line 1 of the transcript" in beaver("capture", "--transcript", str(path), code=2)


def test_nothing_to_capture(beaver):
    """A text without a statement says so, and no text at all is a usage error."""
    assert beaver("capture", "Thanks!") == "There is no statement worth remembering.\n"
    assert "There is no text" in beaver("capture", code=2)


def test_short_statements(beaver):
    """A dry run keeps a short statement that holds beyond the day, says why, and leaves the small talk out."""
    dry = read(beaver("capture", "--dry-run", "--json", "Good morning! The standup is at 10 now."))
    assert [(each["text"], each["cues"]) for each in dry["memories"]] == [("The standup is at 10 now.", ["lasting"])]


def test_review(beaver):
    """A rule about the agent waits; it is listed, accepted once, and not a second time."""
    beaver("capture", RULE)
    (waiting,) = read(beaver("review", "--json"))["pending"]
    assert (waiting["title"], waiting["reason"]) == (RULE, "rule_about_the_agent")
    assert "Choose one of" in beaver("review", str(waiting["id"]), "--accept", "--reject", code=2)
    assert "is remembered." in beaver("review", str(waiting["id"]), "--accept")
    assert "waits for approval" in beaver("review", str(waiting["id"]), "--reject", code=2)
    assert beaver("review") == "No memory waits for approval.\n"
    assert "Choose one of" in beaver("review", "1", code=2)


def test_undo(beaver):
    """The last capture is forgotten; without one, the command says so."""
    beaver("capture", SISTER)
    assert (SISTER in beaver("undo"), beaver("undo")) == (True, "No memory was captured lately.\n")


def test_correction_of_an_unknown_memory(beaver):
    """A correction of an unknown memory fails and says where the ids are."""
    assert "`beaver memory list --all`" in beaver("correct", "7", "x", code=2)


@pytest.mark.campaign
def test_correction_of_a_superseded_memory(beaver):
    """A correction of a memory in whose place another one holds fails, and changes nothing."""
    first = read(beaver("capture", "--json", SISTER))["memories"][0]["id"]
    beaver("correct", str(first), "Anna", "lives", "in", "Porto.")
    refused = beaver("correct", str(first), "Anna", "lives", "in", "Rome.", code=2)
    found = [each["title"] for each in read(beaver("search", "Anna", "--json"))["hits"]]
    assert ("Another memory holds in its place" in refused, found) == (True, ["Anna lives in Porto."])


def test_a_model_that_the_host_does_not_have(run):
    """Where a model is configured and the host has none, the rules capture, and the report says so."""
    shown = read(run("memory", "local", "capture", "--dry-run", "--json", SISTER, extractor="model"))
    assert (shown["fallback"], [each["text"] for each in shown["memories"]]) == ("no_model", [SISTER])


def outcomes(text):
    return [(each["outcome"], each["text"]) for each in read(text)["memories"]]


def test_capture_of_a_session(run, beaver):
    """A stored session yields once what its turns would have yielded; a forgotten memory does not come back."""
    run("run", SISTER, "--session", "holidays", enabled=False)
    shown = beaver("capture", "--session", "holi", "--dry-run", "--json")
    (kept,) = read(beaver("capture", "--session", "holidays", "--json"))["memories"]
    (found,) = read(beaver("show", str(kept["id"]), "--json"))["memories"]
    beaver("forget", str(kept["id"]), "--yes")
    run("run", "We decided to use PostgreSQL for billing.", "--session", "holidays", enabled=False)
    assert outcomes(shown) == [("stored", SISTER)]
    assert (found["title"], found["session"], found["source"], found["evidence"]) == (
        SISTER, "holidays", "auto_capture", SISTER,
    )  # fmt: skip
    assert [outcomes(beaver("capture", "--session", "holidays", "--json")) for _ in range(2)] == [
        [("stored", "We decided to use PostgreSQL for billing.")], [],
    ]  # fmt: skip


@pytest.mark.campaign
def test_capture_of_a_captured_session(run, beaver):
    """A session that was captured in its turns yields nothing more."""
    run("run", SISTER, "--session", "holidays")
    assert SISTER in beaver("list")
    assert outcomes(beaver("capture", "--session", "holidays", "--json")) == []


@pytest.mark.campaign
def test_a_late_session_ends_nothing(run, beaver):
    """A statement of an older session does not end a newer one."""
    run("run", "I live in Berlin now.", "--session", "old", enabled=False)
    beaver("capture", "I live in Lisbon.")
    (late,) = read(beaver("capture", "--session", "old", "--json"))["memories"]
    found = read(beaver("search", "where do I live", "--json"))["hits"]
    assert (late["outcome"], late["superseded"]) == ("stored", [])
    assert "I live in Lisbon." in {each["title"] for each in found}


@pytest.mark.campaign
def test_sessions_that_teach_nothing(run, beaver):
    """The session of a stranger is refused, and so is one whose memory is off; the remedy is named."""
    run("run", SISTER, "--session", "strange", "--user", "eve", "--trust", "public", enabled=False)
    run("run", SISTER, "--session", "quiet", "--no-memory", enabled=False)
    assert "a session of trust `public`" in beaver("capture", "--session", "strange", code=2)
    assert "`beaver memory on` switches it on" in beaver("capture", "--session", "quiet", code=2)
    assert beaver("list", "--user", "eve") == "There are no memories yet.\n"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--session", "x"], 2, "Nothing is stored yet"),
        (["--session", "x", "y"], 2, "only one of them"),
        (["--session", "x", "--user", "ann"], 2, "leave out --user and --store"),
    ],
)
def test_refused_sessions(beaver, words, code, message):
    """A session that is not stored, or that comes with another source or owner, is refused."""
    assert message in beaver("capture", *words, code=code)


def test_spend_of_today(beaver):
    """`stats` shows what capture has taken today of a user, with the limits of the day."""
    beaver("capture", "--user", "ann", SISTER, perDay=7)
    found = read(beaver("stats", "--user", "ann", "--json", perDay=7))
    assert (found["captured_today"], found["model_calls_today"]) == (
        {"spent": 1, "most": 7}, {"spent": 0, "most": 200},
    )  # fmt: skip
    assert "captured today: spent 0, most 200\n" in beaver("stats")
