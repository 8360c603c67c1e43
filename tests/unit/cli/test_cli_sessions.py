"""`beaver sessions` finds, shows, exports, imports and deletes stored sessions."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from beaver_hooks.agent.sessions.store import SessionStore
from beaver_hostspecs import Message
from beaver_hostspecs.testing import FrozenClock

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ISO = "2026-01-02T03:04:05+00:00"
MICROS = "2026-01-02T03:04:05.000000+00:00"


async def remember(folder, session, texts, *, user, event, title):
    store = SessionStore.open(folder, clock=FrozenClock(WHEN))
    await store.ensure(session, user)
    for text in texts:
        said = Message(role="user", text=text, when=WHEN - timedelta(seconds=1), speaker=user)
        await store.append_exchange(session, [said, Message(role="assistant", text=f"Heard: {text}", when=WHEN)])
    if event:
        await store.add_event(session, event, {"count": 2})
        await store.add_event(session, "bare", {})
    if title:
        await store.rename(session, title)
    await store.close()


@pytest.fixture
def folder(scratch):
    return scratch / ".beaver"


@pytest.fixture
def stored(folder, monkeypatch):
    """Return a function that stores a session."""
    monkeypatch.setenv("COLUMNS", "80")

    def store(session, *texts, user=None, event=None, title=None):
        asyncio.run(remember(folder, session, texts, user=user, event=event, title=title))

    return store


def ids(cli):
    return [each["id"] for each in cli("sessions", "list", "--json").json["sessions"]]


NAMED = [
    ("show", "x"),
    ("rename", "x", "y"),
    ("delete", "x", "--yes"),
    ("export", "x"),
    ("search", "w", "--session", "x"),
]


@pytest.mark.parametrize("words", NAMED)
def test_naming_a_session_where_nothing_is_stored(cli, folder, words):
    """A command that names a session where nothing is stored is an error of usage, and creates nothing."""
    ran = cli("sessions", *words)

    assert (2, "", f"Error: Nothing is stored yet; `beaver run` will store sessions in {folder}.\n") == ran
    assert not folder.exists()


@pytest.mark.parametrize(
    ("words", "json_out"), [(("list",), {"sessions": [], "more": False}), (("search", "tea"), {"hits": []})]
)
def test_looking_where_nothing_is_stored(cli, folder, words, json_out):
    """`list` and `search` where nothing is stored print a sentence or empty JSON, and create nothing."""
    said = cli("sessions", *words)

    assert (0, f"Nothing is stored yet; `beaver run` will store sessions in {folder}.\n") == (said.code, said.out)
    assert json_out == cli("sessions", *words, "--json").json
    assert not folder.exists()


def test_list(cli, stored):
    """The list shows the last used session first, in columns, and users only where sessions have some."""
    stored("s1", "green tea")
    stored("s2", "A long prompt about nothing in particular that goes on and on for a while")

    ran = cli("sessions", "list")

    assert (
        "ID  LAST USED (UTC)   MESSAGES  TITLE\n"
        "s2  2026-01-02 03:04  2         A long prompt about nothing in particular that goes on and on for a while\n"
        "s1  2026-01-02 03:04  2         green tea\n"
    ) == ran.out


def test_list_of_a_user(cli, stored):
    """`--user` lists only that user's sessions; for a user without sessions a sentence names the user."""
    stored("s1", "green tea", user="ann")
    stored("s2", "black tea")

    assert ("ID  USER  LAST USED (UTC)   MESSAGES  TITLE\ns1  ann   2026-01-02 03:04  2         green tea\n") == cli(
        "sessions", "list", "--user", "ann"
    ).out
    assert "No session of `bob` is stored.\n" == cli("sessions", "list", "--user", "bob").out


def test_list_is_limited(cli, stored):
    """A list that is cut by `--limit` ends with a sentence about it, or with `more` in JSON."""
    stored("s1", "a")
    stored("s2", "b")

    assert cli("sessions", "list", "--limit", 1).out.endswith("There are more than 1; raise --limit to see them.\n")
    assert {
        "sessions": [
            {
                "id": "s2",
                "user": None,
                "title": "b",
                "created": ISO,
                "updated": ISO,
                "messageCount": 2,
                "eventCount": 0,
            }
        ],
        "more": True,
    } == cli("sessions", "list", "--limit", 1, "--json").json


def test_list_after_the_last_was_deleted(cli, stored):
    """The list of an empty store is a sentence."""
    stored("s1")
    cli("sessions", "delete", "s1", "--yes")

    assert "No session is stored.\n" == cli("sessions", "list").out


def test_show(cli, stored):
    """`show` prints the session's title and its messages, with indented texts."""
    stored("s1", "green\ntea", user="ann", event="gateway_recall_failed")

    assert (
        "session s1, of ann, 2 messages, 2 hidden events, begun 2026-01-02 03:04:05 UTC\n"
        "  green tea\n"
        "\n"
        "user (ann), 2026-01-02 03:04:04 UTC\n"
        "  green\n"
        "  tea\n"
        "\n"
        "assistant, 2026-01-02 03:04:05 UTC\n"
        "  Heard: green\n"
        "  tea\n"
    ) == cli("sessions", "show", "s1").out


def test_show_hidden_events(cli, stored):
    """`--hidden` shows hidden events in their places among the messages."""
    stored("s1", "tea", event="gateway_recall_failed")

    assert [
        "user, 2026-01-02 03:04:04 UTC",
        "assistant, 2026-01-02 03:04:05 UTC",
        "hidden, 2026-01-02 03:04:05 UTC: gateway_recall_failed\n  count=2",
        "hidden, 2026-01-02 03:04:05 UTC: bare\n",
    ] == [
        part.split("\n  tea")[0].split("\n  Heard")[0]
        for part in cli("sessions", "show", "s1", "--hidden").out.split("\n\n")[1:]
    ]


def test_show_json(cli, stored):
    """As JSON a session is one object, with its hidden events only with `--hidden`."""
    stored("s1", "tea", event="gateway_recall_failed", title="Tea")
    expected = {
        "id": "s1",
        "user": None,
        "title": "Tea",
        "created": ISO,
        "updated": ISO,
        "messageCount": 2,
        "eventCount": 2,
        "messages": [
            {"role": "user", "text": "tea", "when": "2026-01-02T03:04:04+00:00", "id": None, "speaker": None},
            {"role": "assistant", "text": "Heard: tea", "when": ISO, "id": None, "speaker": None},
        ],
    }
    events = [
        {"name": "gateway_recall_failed", "when": ISO, "contextVisible": False, "payload": {"count": 2}},
        {"name": "bare", "when": ISO, "contextVisible": False, "payload": {}},
    ]

    assert expected == cli("sessions", "show", "s1", "--json").json
    assert {**expected, "events": events} == cli("sessions", "show", "s1", "--json", "--hidden").json


def test_show_an_empty_session(cli, stored):
    """A session without messages is shown as such."""
    stored("s1")

    assert (
        "session s1, 0 messages, 0 hidden events, begun 2026-01-02 03:04:05 UTC\n\nNo messages.\n"
        == cli("sessions", "show", "s1").out
    )


def test_beginnings_of_ids(cli, stored):
    """The beginning of an id is enough, an exact id wins, and an ambiguous beginning names the candidates."""
    stored("se", "tea")
    stored("session-1", "tea")
    stored("session-22", "tea")

    assert "se" == cli("sessions", "show", "se", "--json").json["id"]
    assert "session-22" == cli("sessions", "show", "session-2", "--json").json["id"]
    assert (
        2,
        "Error: `session` is the beginning of 2 sessions: session-22, session-1; write more of the id.\n",
    ) == (cli("sessions", "show", "session").code, cli("sessions", "show", "session").err)
    assert (
        "Error: There is no session `x`; `beaver sessions list` lists the stored ones.\n"
        == cli("sessions", "show", "x").err
    )


def test_many_candidates(cli, stored):
    """Of many candidates the error names some and counts the others."""
    for number in range(10):
        stored(f"s-{number}", "tea")

    assert "s-3, s-2, and 2 more; write more of the id.\n" in cli("sessions", "show", "s").err.replace("s-9, ", "")


def test_an_empty_id_is_no_beginning(cli, stored):
    """A blank id, from an unset variable for example, is refused and deletes nothing."""
    stored("s1", "tea")

    ran = cli("sessions", "delete", "", "--yes")

    assert (2, ["s1"]) == (ran.code, ids(cli))


def test_search(cli, stored):
    """`search` finds messages in all sessions, in those of a user, or in one."""
    stored("session-1", "green tea", user="ann")
    stored("session-2", "green leaves")

    found = cli("sessions", "search", "green", "tea", "--session", "session-1", "--limit", 1)
    assert "session-1  user, 2026-01-02 03:04:04 UTC\n  green tea\n" == found.out
    assert {"session-1"} == {
        each["sessionId"] for each in cli("sessions", "search", "green", "--user", "ann", "--json").json["hits"]
    }
    (hit,) = cli("sessions", "search", "leaves", "--limit", 1, "--json").json["hits"]
    assert {
        "sessionId": "session-2",
        "role": "user",
        "when": "2026-01-02T03:04:04+00:00",
        "snippet": "green leaves",
    } == {key: value for key, value in hit.items() if key != "score"}
    assert "No stored message has these words.\n" == cli("sessions", "search", "coffee").out


def test_rename(cli, stored):
    """`rename` gives a session a title; an empty title restores its first words."""
    stored("s1", "green tea")
    stored("s2")

    assert "The title of s1 is: Tea\n" == cli("sessions", "rename", "s1", "Tea").out
    assert "The title of s1 is: green tea\n" == cli("sessions", "rename", "s1", "").out
    assert "The title of s2 is: (none)\n" == cli("sessions", "rename", "s2", "").out


def test_delete_needs_a_word(cli, stored):
    """Without a terminal `delete` needs `--yes` and deletes nothing without it."""
    stored("s1", "tea")

    ran = cli("sessions", "delete", "s1")

    assert (2, ["s1"]) == (ran.code, ids(cli))
    assert "there is no terminal to ask for confirmation; add --yes" in ran.err


def test_delete(cli, stored):
    """`delete --yes` deletes each named session once; one unknown session keeps all of them."""
    for each in ("s1", "s2", "t"):
        stored(each, "tea")

    assert 2 == cli("sessions", "delete", "s1", "x", "--yes").code
    assert "Deleted 2 sessions.\n" == cli("sessions", "delete", "s1", "s2", "s1", "--yes").out
    assert ["t"] == ids(cli)


@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, []), ("n\n", 1, ["s1"])])
def test_delete_asks_on_a_terminal(cli, stored, answer, code, left):
    """On a terminal `delete` shows the sessions and obeys the answer."""
    stored("s1", "tea")

    ran = cli("sessions", "delete", "s1", stdin=answer, terminal=True)

    assert (code, left, code == 1) == (ran.code, ids(cli), ran.err.endswith("Nothing was changed.\n"))
    assert "s1  2 messages  tea\nDelete 1 session for good? [y/N]: " in ran.err


def test_export_and_import(cli, stored, scratch, folder):
    """An import restores exported sessions exactly, in another state folder too."""
    stored("s1", "green tea", user="ann", event="turn_committed", title="Tea")
    stored("s2", "black tea")
    before = [cli("sessions", "show", each, "--json", "--hidden").json for each in ("s1", "s2")]

    assert "Exported 2 sessions to out.jsonl.\n" == cli("sessions", "export", "-o", "out.jsonl").out
    folder.rename(scratch / "moved")
    assert "Would add 2 sessions (4 messages).\n" == cli("sessions", "import", "out.jsonl", "--dry-run").out
    assert not folder.exists()
    assert "Added 2 sessions (4 messages).\n" == cli("sessions", "import", "out.jsonl").out
    assert before == [cli("sessions", "show", each, "--json", "--hidden").json for each in ("s1", "s2")]


def test_export_to_stdout(cli, stored):
    """`export` without a file writes the lines of one session or of all to stdout, and `import -` reads them."""
    stored("session-1", "tea \u2028 caf\u00e9")
    stored("session-2", "tea")

    exported = cli("sessions", "export", "session-1").out

    assert ["session", "message", "message"] == [json.loads(line)["type"] for line in exported.splitlines()]
    assert exported == cli("sessions", "export", "session-1", "-o", "-").out
    assert 6 == len(cli("sessions", "export").out.splitlines())
    cli("sessions", "delete", "session-1", "--yes")
    assert "Added 1 session (2 messages).\n" == cli("sessions", "import", "-", stdin=exported).out


def test_export_keeps_a_file(cli, stored, scratch):
    """`export` overwrites an existing file only with `--force`, and leaves no other file in its folder."""
    stored("s1", "tea")
    (scratch / "out").mkdir()
    path = scratch / "out" / "sessions.jsonl"
    path.write_text("mine")

    ran = cli("sessions", "export", "-o", path)
    assert (2, "mine") == (ran.code, path.read_text())
    assert "overwrite it with --force" in ran.err
    assert 0 == cli("sessions", "export", "-o", path, "--force").code
    assert ([path], 0o600, 3) == (
        [*path.parent.iterdir()],
        path.stat().st_mode & 0o777,
        len(path.read_text().splitlines()),
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("export", "-o", "no/file"), "no/file cannot be written (No such file or directory); name another one."),
        (("import", "missing"), "missing cannot be read (No such file or directory); nothing was imported."),
    ],
)
def test_a_file_that_is_not_there(cli, stored, words, said):
    """An output file in a missing folder, and a missing input file, are errors of one sentence."""
    stored("s1", "tea")

    assert (5, "", f"Error: The file {said}\n") == cli("sessions", *words)


def test_export_where_nothing_is_stored(cli, scratch):
    """Where nothing is stored `export` writes no file, and stderr reports it."""
    ran = cli("sessions", "export", "-o", "out.jsonl")

    assert (0, "", True) == (ran.code, ran.out, ran.err.startswith("Nothing is stored yet"))
    assert [] == [*scratch.iterdir()]


def test_import_of_what_is_there(cli, stored, scratch):
    """`import` skips stored sessions, or replaces them with `--replace`; a dry run predicts both."""
    stored("s1", "tea")
    cli("sessions", "export", "-o", "one.jsonl")
    stored("s1", "more tea")
    stored("s2", "tea")
    cli("sessions", "export", "s2", "-o", "two.jsonl")
    cli("sessions", "delete", "s2", "--yes")
    lines = "".join((scratch / each).read_text() for each in ("one.jsonl", "two.jsonl"))

    def both(*options):
        foreseen = cli("sessions", "import", "-", "--dry-run", *options, stdin=lines).out
        return foreseen, cli("sessions", "import", "-", *options, stdin=lines).out

    assert (
        "Would add 1 session (2 messages), skipped 1 stored already (--replace replaces them).\n",
        "Added 1 session (2 messages), skipped 1 stored already (--replace replaces them).\n",
    ) == both()
    assert (
        "Would add 0 sessions, would replace 2 (4 messages).\n",
        "Added 0 sessions, replaced 2 (4 messages).\n",
    ) == both("--replace")
    assert 2 == len(cli("sessions", "show", "s1", "--json").json["messages"])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{}\n", "Line 1 is not a line of an exported session; nothing was imported. Correct or remove the line."),
        (
            b"\xff\xfe\n",
            "The file does not hold exported sessions (it is not UTF-8); nothing was imported. Export them again.",
        ),
    ],
)
@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_import_of_something_else(cli, scratch, content, said, options):
    """A file that is no export is refused with a sentence, and nothing is imported."""
    (scratch / "file").write_bytes(content)

    ran = cli("sessions", "import", "file", *options)

    assert (2, "", f"Error: {said}\n") == ran


def test_import_into_an_export_that_was_made_meanwhile(cli, stored, scratch, monkeypatch):
    """`export` keeps a file that another process creates while the export is read."""
    stored("s1", "tea")
    path = scratch / "out.jsonl"
    monkeypatch.setattr(os.path, "lexists", lambda each, seen=os.path.lexists: each != path and seen(each))
    path.write_text("mine")

    assert (2, "mine") == (cli("sessions", "export", "-o", path).code, path.read_text())


def test_a_folder_that_cannot_be_looked_at(cli, scratch, monkeypatch):
    """A state folder that cannot be examined is an error, not an empty store."""
    (scratch / "config.json").write_text(json.dumps({"host": {"stateFolder": "x" * 300}}))
    monkeypatch.setenv("BEAVER_CONFIG", str(scratch / "config.json"))

    ran = cli("sessions", "list")

    assert (5, "", True) == (ran.code, ran.out, "File name too long" in ran.err)


def test_a_database_that_is_damaged(cli, stored, folder):
    """A damaged database is an error that names the file and the remedy."""
    stored("s1", "tea")
    for each in folder.glob("sessions.db*"):
        each.write_bytes(b"x" * 8192)

    ran = cli("sessions", "list")

    assert (
        5,
        f"Error: The session store {folder}/sessions.db is damaged; move it (with its -wal and -shm files) away, or restore it from a backup.\n",
    ) == (ran.code, ran.err)


def test_on_a_real_terminal(stored, scratch):
    """At a real terminal `delete` asks, shows no escapes from stored text, and keeps the session after a no."""
    stored("s1", "tea \x1b[31mred\x1b[0m")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "beaver_hooks.cli", "sessions", "delete", "s1"],
        cwd=scratch, stdin=theirs, stdout=theirs, stderr=theirs,
    ) as process:  # fmt: skip
        os.close(theirs)
        said = b""
        while b"[y/N]: " not in said:
            said += os.read(ours, 1024)
        os.write(ours, b"n\n")
        assert 1 == process.wait()
    os.close(ours)
    assert b"\x1b" not in said
    assert b"s1  2 messages  tea" in said


def test_forgetting_words(cli, stored):
    """`forget` shows the messages on a dry run, needs --yes without a terminal, and erases their turns."""
    stored("s1", "green tea", "black coffee")
    stored("s2", "green tea")
    dry, refused = cli("sessions", "forget", "tea", "green", "--dry-run"), cli("sessions", "forget", "tea")
    before = ids(cli)
    gone, again = (cli("sessions", "forget", "tea", "green", "--yes", *more) for more in ((), ("--json",)))

    assert (0, 4, True) == (dry.code, dry.out.count("green tea"), "Nothing was forgotten; without --dry-run" in dry.out)
    assert (2, True, ["s2", "s1"]) == (refused.code, "add --yes, or --dry-run to see" in refused.err, before)
    assert (0, "Erased 4 messages of 2 sessions; 1 session had no other, and is deleted.\n") == (gone.code, gone.out)
    nothing = {"dryRun": False, "messages": 0, "sessions": 0, "deletedSessions": 0, "found": []}
    assert (0, nothing, ["s1"]) == (again.code, again.json, ids(cli))


@pytest.mark.parametrize("session", [None, "s1"])
def test_forgetting_words_that_are_not_there(cli, stored, session):
    """`forget` without a matching message says so."""
    if session is not None:
        stored(session, "green tea")

    assert "No stored message has all of these words.\n" == cli("sessions", "forget", "coffee", "--yes").out


def test_a_damaged_message(cli, folder, stored):
    """A message with a flipped bit is not shown, found or continued; a line and the audit trail name it."""
    stored("one", "The price is 1000.", "And the quay?")
    path = folder / "sessions.db"
    content = bytearray(path.read_bytes())
    content[content.index(b"assistantHeard: The price") + 28] ^= 1
    path.write_bytes(content)
    show, search, run = (
        cli("sessions", "show", "one"),
        cli("sessions", "search", "price"),
        cli("run", "So?", "--session", "one"),
    )
    found = {each["subject"]: each["text"] for each in cli("doctor", "--json").json["findings"]}
    events = [json.loads(line) for line in cli("audit", "tail", "--json").out.splitlines()]
    assert [{"number": 2}] == [each["facts"] for each in events if each["name"] == "message_damaged"]
    for ran in (show, search, run):
        assert (0, True) == (ran.code, "message_damaged number=2" in ran.err)
    assert (True, False) == ("And the quay?" in show.out, "Heard: The price" in show.out + search.out)
    assert found["sessions"] == f"{path} is damaged: message 2 of session 'one' fails its checksum"
