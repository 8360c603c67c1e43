"""`capture`, `correct`, `undo` and `review` at the command line."""

import json

import pytest
from processes import environment, run_beaver

SISTER = "My sister Anna lives in Lisbon with her two kids."
RULE = "Always answer in short sentences without emojis."


@pytest.fixture
def beaver(tmp_path):
    """Runs `beaver` in a folder with the local memory."""
    config = {"memory": {"local": {"enabled": True, "embedding": {"provider": "none"}}}}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), "utf-8")

    def run(*words, code=0, stdin=""):
        done = run_beaver(
            "--config",
            path,
            "memory",
            "local",
            *words,
            cwd=tmp_path,
            env=environment(HOME=tmp_path, BEAVER_HOME=tmp_path),
            stdin=stdin,
        )
        assert done.code == code, done.err
        return done.out if code == 0 else done.err

    return run


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


def test_review(beaver):
    """A rule about the agent waits; it is listed, accepted once, and not a second time."""
    beaver("capture", RULE)
    (waiting,) = read(beaver("review", "--json"))["pending"]
    assert (waiting["title"], waiting["reason"]) == (RULE, "rule_about_the_agent")
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
