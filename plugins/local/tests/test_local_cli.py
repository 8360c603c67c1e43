"""`beaver memory local`: as `beaver` runs it, each command a process of its own; and over a host in this process."""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st
from privileges import without_override
from processes import Ran, environment, run_beaver

from beaver_hooks_local.cli import embedders, group
from beaver_hooks_local.cli.add import lines
from beaver_hooks_local.cli.json_lines import LONGEST_LINE, InvalidMemory, read_lines
from beaver_hooks_local.cli.progress import Bar, Ended
from beaver_hooks_local.visibility import Visibility
from beaver_hostspecs import PluginError, Trust
from beaver_hostspecs.distributions import install_command
from beaver_memory.embedding.catalog import KNOWN
from beaver_memory.embedding.models import Installed
from beaver_memory.embedding.speed import Bench
from beaver_memory.errors import StoreError
from beaver_memory.records import Owner
from beaver_memory.runtime.erasure import COPIES, REMOTE
from beaver_memory.runtime.examination import Examination
from beaver_memory.runtime.memory_writes import WriteGate
from beaver_memory.search.terms import Analyser
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.testing.store_cases.kit import NOW, new
from beaver_toolkit.redaction.redactor import Redactor

STABLE = "Billing is deployed from the branch stable."
QUESTION = "From which branch is billing deployed?"
FORGOT = f"""Forgot 1 memory: texts, vectors and the texts in the history are erased.
Erased rows and files: memories 1.
Out of reach: {COPIES}; {REMOTE}.
"""
CREDENTIAL = "sk-not-a-real-one-0123456789"
NOBODY = Visibility(owner=Owner(), trust=Trust.FULL)


@pytest.fixture
def beaver(tmp_path):
    """Return what runs `beaver` in a folder of its own, where the local memory is on."""
    config = tmp_path / "config.json"
    env = environment(BEAVER_CONFIG=config, XDG_STATE_HOME=tmp_path / "xdg", COLUMNS=120)
    configure(config)

    def run(*words, stdin=""):
        return run_beaver(*words, cwd=tmp_path, env=env, stdin=stdin)

    run.environment = env
    return run


def configure(path, **section):
    local = {"enabled": True, "embedding": {"provider": "none"}} | section
    state = {"stateFolder": str(path.parent / "state")}
    path.write_text(json.dumps({"memory": {"mode": "curated", "local": local}, "host": state}))


@pytest.fixture
def local(beaver):
    """Return what runs `beaver memory local`."""
    return lambda *words, stdin="": beaver("memory", "local", *words, stdin=stdin)


def database(tmp_path):
    return tmp_path / "state" / "plugins" / "local" / "memory.db"


@pytest.mark.parametrize("terminal", [False, True])
def test_results_are_whole(here, monkeypatch, terminal):
    """A terminal wraps a long title within 80 columns, and a pipe gets it on one line; neither loses a word."""
    monkeypatch.setenv("COLUMNS", "80")
    said = f"Billing is deployed from the branch stable {'and from nowhere else, whatever the wiki says ' * 12}."
    here("add", said)
    for shown in (here("list", terminal=terminal).out, here("search", "billing", terminal=terminal).out):
        rows = shown.splitlines()[1:]
        assert (said, terminal) == (" ".join(" ".join(rows).split())[-len(said) :], len(rows) > 1)
        assert terminal == (max(map(len, rows)) <= 80)


def test_what_is_added_is_recalled_by_a_run(beaver):
    """A memory that one process adds, without naming the plugin, is in the answer of another process."""
    added = beaver("memory", "add", STABLE)
    answered = beaver("run", QUESTION)

    assert (Ran(out="1\n", err="", code=0), 0, True) == (added, answered.code, STABLE in answered.out)


def test_memories_of_another_project(local, tmp_path):
    """In a database of several projects, commands say that memories of others are left out, and where to change them."""
    shared = {"databasePath": str(tmp_path / "memory.db")}
    configure(tmp_path / "config.json", project="ours", **shared)
    added = local("add", STABLE)
    configure(tmp_path / "config.json", project="theirs", **shared)
    listed, shown, forgot = local("list"), local("show", "1"), local("forget", "1", "--yes")
    explained = local("explain", QUESTION).out
    configure(tmp_path / "config.json", project="ours", **shared)

    others = "Memories of other projects in this database were left out: --project NAME shows them."
    refusal = "Error: Another project of this database has memory 1; run the command in that project."
    assert ("1\n", f"There are no memories yet. {others}\n") == (added.out, listed.out)
    assert [(2, refusal)] * 2 == [(each.code, each.err.splitlines()[-1]) for each in (shown, forgot)]
    assert (False, True) == (STABLE in explained, STABLE in local("explain", QUESTION).out)


def test_a_command_that_a_chat_refuses_says_what_to_write(beaver):
    """A command without an id, or with an unknown one, is refused with a remedy and not as an unexpected failure."""
    chat = beaver("chat", stdin="/memory local pin\n/memory local forget 7\n")

    said = [line for line in (chat.out + chat.err).splitlines() if line.startswith("!")]
    assert [
        "! `local pin`: Name one memory: pin ID. `list` shows the ids.",
        "! `local forget`: There is no memory 7 that you may change. `list` shows the ids.",
    ] == said


def test_add_takes_all_that_a_memory_has(here):
    """`add` has an option for each field of a memory, and `show` prints all of them."""
    here(
        "add", *STABLE.split(), "--narrative", "Because main moves.", "--fact", "It is protected.", "--type", "decision",
        "--tag", "deploy", "--tag", "billing", "--person", "Ann", "--file", "src/billing", "--store", "shared",
        "--project", "shop", "--session", "s1", "--when", "2026-01-02", "--expires", "2126-01-02T03:04+01:00", "--pin",
    )  # fmt: skip
    (shown,) = here("show", 1, "--json").json["memories"]
    expected = {
        "id": 1, "title": STABLE, "narrative": "Because main moves.", "facts": ["It is protected."],
        "type": "decision", "tags": ["deploy", "billing"], "related_people": ["Ann"], "related_files": ["src/billing"],
        "store": "shared", "scope": "project", "project": "shop", "session": "s1", "pinned": True, "source": "user",
        "owner": {"tenant": "", "user": "", "kind": "user"}, "created_at": "2026-01-02T00:00:00+00:00",
        "expires_at": "2126-01-02T02:04:00+00:00", "mention_count": 1,
    }  # fmt: skip

    assert expected == {name: shown[name] for name in expected}
    assert ["ADD"] == [each["event"] for each in shown["history"]]


def test_add_supersedes_what_it_contradicts(here):
    """A memory that contradicts an older one supersedes it, and the user reads which one and how to undo that."""
    here("add", "I live in Lisbon.")
    ran = here("add", "I live in Porto.")
    assert ("2\n", 0) == (ran.out, ran.code)
    assert (
        "It supersedes memory 1. `beaver memory local undo` forgets memory 2, and what it superseded holds again.\n"
        == ran.err
    )
    changed = here("add", "I live in Braga.", "--json").json
    assert {"memories": [{"id": 3, "outcome": "superseded", "mentions": 1, "superseded": [2]}]} == changed


def test_what_is_said_in_time_to_come_is_found(here):
    """A memory with a future time is listed and found at once, and `--as-of` an earlier day leaves it out."""
    here("add", STABLE, "--when", "2126-01-02")

    assert [True, True, False] == [
        STABLE in here(*words).out for words in (("list",), ("search", "billing"), ("list", "--as-of", "2126-01-01"))
    ]


def test_add_reads_stdin(here):
    """`add` reads the title from the first line of stdin and the narrative from the rest, and counts repeats."""
    first = here("add", "--json", stdin="The office closes at six.\n\nBecause of the alarm.\n")
    again = here("add", stdin="The office closes at six.\nBecause of the alarm.")
    text = here("show", 1).out

    assert {"memories": [{"id": 1, "outcome": "stored", "mentions": 1}]} == first.json
    assert Ran(out="1\n", err="This memory is stored already; it was mentioned 2 times.\n", code=0) == again
    assert "[1] The office closes at six.\nBecause of the alarm.\n  owner: everybody\n" == text[: text.index("  store")]


def test_json_lines_are_added_and_come_back(here, tmp_path):
    """Lines that `export` prints restore the same memories in a new database, and adding them again stores nothing."""
    sent = [
        {"title": "One", "owner": {"user": "ann"}, "tags": ["x"]},
        {"title": "Two", "created_at": "2026-01-02", "store": "social"},
        {"title": "One", "owner": {"user": "ann"}},
        *({"title": "How to deploy", "narrative": said} for said in ("Use blue.", "Use green.")),
        *({"title": "Use tabs.", "scope": "project", "project": name} for name in ("p", "q")),
    ]
    added = here("add", "--json-lines", stdin="\n\n".join(map(json.dumps, sent)))
    exported = here("export").out.splitlines()
    database(tmp_path).unlink()
    back, again = (here("add", "--json-lines", "--json", stdin="\n".join(exported)) for _ in range(2))

    assert (Ran(out="1\n2\n1\n3\n4\n5\n6\n", err="", code=0), 6) == (added, len(exported))
    assert sorted(map(without_moments, exported)) == sorted(map(without_moments, here("export").out.splitlines()))
    assert (["stored"] * 6, ["duplicate"] * 6) == tuple(
        [each["outcome"] for each in ran.json["memories"]] for ran in (back, again)
    )


def test_a_line_with_a_known_uid_is_the_same_memory(here):
    """A line whose uid is there adds no memory, whatever it says; a uid of another form is refused."""
    here("add", "One")
    uid = here("show", 1, "--json").json["memories"][0]["uid"]
    again = here("add", "--json-lines", stdin=json.dumps({"title": "Two", "uid": uid}))
    wrong = here("add", "--json-lines", stdin=json.dumps({"title": "Two", "uid": uid.upper() + "0"}))

    assert (Ran(out="1\n", err="", code=0), ["One"]) == (
        again,
        [json.loads(line)["title"] for line in here("export").out.splitlines()],
    )
    assert (2, True) == (wrong.code, "`uid` has a wrong type or value" in wrong.err)


def without_moments(line):
    return json.dumps({name: value for name, value in json.loads(line).items() if name not in {"id", "updated_at"}})


@pytest.mark.shows("003-085", "003-086")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("no json", "it is not JSON in UTF-8."),
        ("[]", "it is not a JSON object."),
        ("x" * (LONGEST_LINE + 1), "it is too long; split it into several memories."),
        ('{"title": "a", "owner": {"user": 7}}', "`owner` must be an object with `tenant` and `user`."),
        ('{"title": "a", "expires_at": 7}', "`expires_at` must be an ISO date and time such as"),
        ("{}", "`title` is missing"),
        ('{"title": "a", "colour": 1}', "unknown field `colour`. The fields are: agent, confidence, created_at, "),
        ('{"title": "a", "b\\u001b": 1, "c": 2}', "unknown fields `b`, `c`. The fields are: "),
        ('{"title": "a",}', "it is not JSON in UTF-8; there is a trailing comma."),
        ('{"title": "a"},', "it is not JSON in UTF-8; there is a trailing comma."),
        ('{"title": "a", "importance": 7}', "`importance` has a wrong type or value."),
        ('{"title": "a", "confidence": -0.1}', "`confidence` has a wrong type or value."),
        ('{"title": "a", "tags": "x"}', "`tags` has a wrong type or value."),
        ('{"title": "a", "created_at": "soon"}', "`created_at` must be an ISO date and time such as"),
        ('{"title": "a", "owner": "ann"}', "`owner` must be an object with `tenant` and `user`."),
        ('{"title": "a", "store": "public"}', "`store` has a wrong type or value."),
    ],
)
def test_a_wrong_line_is_named(line, said):
    """Reading yields the memories before a wrong line, then raises an error with the line's number and its fault."""
    batches, read = [], [b'{"title": "good"}', b"", line.encode(), b'{"title": "behind"}']
    with pytest.raises(InvalidMemory) as caught:
        batches.extend(read_lines(read, {}, NOBODY, WriteGate(Redactor()).refusal, every_owner=True))

    assert [["good"]] == [[new.title for new in batch] for batch in batches]
    assert str(caught.value).startswith(f"Line 3 is not a memory: {said}")


def test_what_stood_before_a_wrong_line_is_added(local):
    """An import stores the memories before a wrong line and prints their ids, and the corrected file can be added."""
    ran = local("add", "--json-lines", stdin='{"title": "good"}\nno json\n{"title": "behind"}\n')
    mended = local("add", "--json-lines", stdin='{"title": "good"}\n{"title": "better"}\n{"title": "behind"}')

    assert ("1\n", 2, True) == (ran.out, ran.code, "Error: Line 2 is not a memory: it is not JSON" in ran.err)
    assert "it is not JSON in UTF-8. The lines before it were added. Correct" in ran.err
    assert Ran(out="1\n2\n3\n", err="", code=0) == mended


@given(content=st.binary(max_size=200), longest=st.integers(1, 50))
def test_lines_of_a_pipe(content, longest):
    """Reading a pipe yields every line without its end, also a last line without one."""
    read, write = os.pipe()
    os.write(write, content)
    os.close(write)
    try:
        found = list(lines(read, longest, bool))
    finally:
        os.close(read)

    whole = content.split(b"\n")
    assert b"".join(whole) == b"".join(found)
    assert len(whole[-1]) > longest or [*whole[:-1], *([whole[-1]] if whole[-1] else [])] == found


def test_a_credential_of_the_configuration_is_not_remembered(beaver, tmp_path):
    """`add` refuses a credential of the configuration, also in a new process."""
    url = "http://127.0.0.1:9/v1"
    embedding = {"provider": "openai-compatible", "model": "m", "dimensions": 8, "baseUrl": url, "apiKey": CREDENTIAL}
    configure(tmp_path / "config.json", embedding=embedding)
    ran = beaver("memory", "add", f"The key is {CREDENTIAL}.")
    many = beaver("memory", "add", "--json-lines", stdin=json.dumps({"title": f"The key is {CREDENTIAL}."}))

    assert [("", 2), ("", 2)] == [(ran.out, ran.code), (many.out, many.code)]
    assert (
        "The text holds a secret (held secret); leave it out, or name the place where it is kept. Secrets are never remembered. Nothing was added."
        in ran.err
    )
    assert [] == [each for each in (ran.err, many.err) if CREDENTIAL in each]
    assert 0 == beaver("memory", "stats", "--json").json["memories"]


@pytest.mark.campaign
def test_an_interrupted_import_ends_at_once(beaver, tmp_path):
    """Ctrl-C during an import from an open pipe ends the command with code 130 and keeps the memories read so far."""
    beaver("memory", "add", "one")
    command = [sys.executable, "-m", "beaver_hooks.cli", "memory", "add", "--json-lines"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=beaver.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        many = "".join(f'{{"title": "Memory {at}"}}\n' for at in range(500))
        process.stdin.write(many.encode())
        process.stdin.flush()
        until(lambda: 501 == beaver("memory", "stats", "--json").json["memories"])
        process.send_signal(signal.SIGINT)
        process.wait(30)
        said = process.stderr.read()
    finally:
        process.kill()
        process.communicate()

    assert (130, b"Interrupted.") == (process.returncode, said.strip())


def until(happened):
    for _ in range(60):
        if happened():
            return
    pytest.fail("It did not happen.")


def test_nothing_to_add(here):
    """Blank stdin and words beside --json-lines are errors of usage, and nothing is added."""
    blank, both = here("add", stdin=" \n"), here("add", "--json-lines", "x")

    assert (2, True) == (blank.code, "`title` is missing" in blank.err and "Nothing was added." in blank.err)
    assert (2, True) == (both.code, "leave the words out" in both.err)
    assert "There are no memories yet.\n" == here("list").out


def test_list_and_search_are_narrowed(here):
    """Each filter narrows `list` and `search`; both sort their rows, and say when there are more."""
    sent = [
        {"title": "Tea is green", "type": "fact", "tags": ["drink"], "created_at": "2026-01-01"},
        {"title": "Tea is black", "store": "shared", "related_people": ["Ann"], "created_at": "2026-02-01"},
        {"title": "Tea is cold", "related_files": ["src/tea.py"], "created_at": "2026-03-01"},
        {"title": "Tea is hot", "owner": {"user": "bob"}, "created_at": "2026-04-01"},
        {"title": "Tea is dear", "project": "shop", "scope": "project", "created_at": "2026-05-01"},
    ]
    here("add", "--json-lines", stdin="\n".join(map(json.dumps, sent)))
    cases = {
        (): [5, 3, 2, 1],
        ("--type", "fact"): [1],
        ("--tag", "drink"): [1],
        ("--store", "shared"): [2],
        ("--person", "ann"): [2],
        ("--file", "src"): [3],
        ("--user", "bob"): [5, 4, 3, 2, 1],
        ("--project", "other"): [3, 2, 1],
        ("--after", "2026-02-01"): [5, 3, 2],
        ("--before", "2026-02-01"): [1],
        ("--as-of", "2026-02-15"): [2, 1],
        ("--limit", "1"): [5],
    }
    listed = {words: here("list", "--json", *words).json for words in cases}
    found = {
        words: here("search", "tea", "--json", *words).json["hits"] for words in cases if words != ("--limit", "1")
    }

    assert cases == {words: [each["id"] for each in answer["memories"]] for words, answer in listed.items()}
    assert [("--limit", "1")] == [words for words, answer in listed.items() if answer["more"]]
    assert {words: {*ids} for words, ids in cases.items() if words in found} == {
        words: {each["id"] for each in hits} for words, hits in found.items()
    }
    assert "1 user with memories was left out" in here("list", "--tag", "none").out


def test_search_as_text(here):
    """A row of `search` has the score, id, day, store, type and title."""
    here("add", STABLE, "--when", "2026-01-02", "--type", "decision")
    heads, row = here("search", *QUESTION.split()).out.splitlines()

    assert ["score", "id", "when", "store", "type", "memory"] == heads.split()
    assert ["1", "2026-01-02", "private", "decision", *STABLE.split()] == row.split()[1:]


def test_pin_and_unpin(here):
    """`pin` and `unpin` change a memory and are both in its history."""
    here("add", STABLE)
    pinned, unpinned = here("pin", 1), here("unpin", 1, "--json")
    (shown,) = here("show", 1, "--json").json["memories"]

    assert (0, f"[1] is pinned: {STABLE}\n") == (pinned.code, pinned.out)
    assert ([False], ["ADD", "PIN", "UNPIN"]) == (
        [each["pinned"] for each in unpinned.json["memories"]],
        [each["event"] for each in shown["history"]],
    )


@pytest.mark.parametrize("words", [("pin",), ("forget", "--yes")])
def test_what_belongs_to_no_user_is_not_changed_for_one(here, words):
    """`--user` refuses a memory without a user and says to leave it out, which changes that memory."""
    here("add", STABLE)
    refused, kept = here(*words, 1, "--user", "ann"), here("show", 1)

    assert (2, True) == (refused.code, "No user owns memory 1; leave --user out." in refused.err)
    assert [0, 0] == [kept.code, here(*words, 1).code]


@pytest.mark.shows("003-108")
def test_forget_shows_asks_and_erases(local, beaver, tmp_path):
    """`forget` shows a memory on a dry run, needs --yes without a terminal, and erases its text from every file."""
    local("add", STABLE)
    local("add", "Another one.")
    dry, refused = local("forget", 1, "--dry-run"), local("forget", 1)
    kept = local("list", "--json").json["memories"]
    gone = local("forget", 1, "--yes", "--json")
    files = [path for path in (tmp_path / "state" / "plugins" / "local").rglob("*") if path.is_file()]
    events = [json.loads(line) for line in beaver("audit", "tail", "--json").out.splitlines()]

    assert (0, True, True) == (dry.code, STABLE in dry.out, "Nothing was forgotten; without" in dry.out)
    assert (2, True, 2) == (
        refused.code,
        "there is no terminal to ask for confirmation; add --yes" in refused.err,
        len(kept),
    )
    counts = {"quoting_sessions": 0, "erased": {"memories": 1}, "left": {}, "unreached": [COPIES, REMOTE]}
    assert {"dry_run": False, "forgotten": [{"id": 1}], **counts} == gone.json
    assert [] == [path.name for path in files if b"deployed from" in path.read_bytes()]
    assert [2] == [each["id"] for each in local("list", "--json").json["memories"]]
    assert 1 == sum(event["name"] == "memory_forgotten" for event in events)


@pytest.mark.shows("003-092", "003-118")
def test_forget_erases_what_finds_it(here, tmp_path):
    """After `forget`, neither the index nor the copy that a migration makes holds a word of the memory."""
    here("add", "Ann has leukemia.")
    here("add", "Another one.")
    here("reindex")
    copy = database(tmp_path).with_name("memory.db.v1.bak")
    copy.write_bytes(b"leukemia")
    needles = (b"leukemia", Analyser().query("leukemia")[0].to_bytes(8, "little"))
    held = [_holding(database(tmp_path).parent, needles), here("forget", 1, "--yes").code]

    assert [3, 0] == [len(held[0]), held[1]]
    assert [] == _holding(database(tmp_path).parent, needles)
    assert 1 == len([*database(tmp_path).parent.glob("index/*.index")])


def _holding(folder, needles):
    paths = (path for path in folder.rglob("*") if path.is_file())
    return [path.name for path in paths if any(each in path.read_bytes() for each in needles)]


LAPSED = [
    {"title": "The fair is on Friday.", "expires_at": "2026-01-09T00:00:00+00:00"},
    {"title": "The office closes at five.", "valid_until": "2026-01-09T00:00:00+00:00"},
]


def test_what_has_lapsed_is_seen_and_forgotten(here, tmp_path):
    """Only `--all` lists expired and superseded memories; `show` and `forget` take their ids, and `pin` does not."""
    here("add", "--json-lines", stdin="\n".join(map(json.dumps, [*LAPSED, {"title": STABLE}])))
    listed, everything = here("list"), here("list", "--all")
    pinned, shown = here("pin", 1), here("show", 1, 2)
    exported = [len(here("export", *words).out.splitlines()) for words in ((), ("--all",))]
    gone = here("forget", 1, 2, "--yes", "--json")
    files = [path for path in (tmp_path / "state" / "plugins" / "local").rglob("*") if path.is_file()]

    assert ([3], [3, 2, 1]) == tuple([int(line.split()[0]) for line in ran.out.splitlines()[1:]]
                                     for ran in (listed, everything))  # fmt: skip
    assert (True, True) == ("discovery, expired" in everything.out, "discovery, superseded" in everything.out)
    assert (2, 0, True) == (pinned.code, shown.code, "expires_at: 2026-01-09" in shown.out)
    assert ([1, 3], [{"id": 1}, {"id": 2}]) == (exported, gone.json["forgotten"])
    assert [] == [path.name for path in files if b"on Friday" in path.read_bytes()]
    assert ["fair"] not in here("search", "fair", "office", "--all").out.split()
    assert [3] == [each["id"] for each in here("list", "--all", "--json").json["memories"]]


NO_ID = "An id is a whole number; `beaver memory list` shows the ids."
NO_WORDS = "There are no words to search for; `beaver memory list` lists"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        *((("show", "--", word), NO_ID) for word in ("0", "-1", "abc", "1.0", "²", "9" * 19)),
        (("search", "", " "), NO_WORDS),
        *(
            (("list", *each), "")
            for each in (["--after", "soon"], ["--tag", " "], ["--store", "public"], ["--limit", "0"])
        ),
    ],
)
def test_words_that_do_not_fit(here, words, said):
    """A word that is not an id, a search without words and options that do not fit are errors of usage."""
    ran = here(*words)

    assert (2, True) == (ran.code, said in ran.err)


@pytest.mark.parametrize(
    ("words", "given", "said"),
    [
        ((), {"terminal": True}, "There is no text to remember"),
        ((), {"stdin": b"caf\xe9"}, ""),
        ((), {"stdin": b"x" * (LONGEST_LINE + 1)}, ""),
        (("--json-lines",), {"stdin": "{"}, "it is not JSON in UTF-8. Nothing was added. Correct"),
    ],
)
def test_stdin_that_is_no_memory(here, words, given, said):
    """`add` fails at once at a terminal, and refuses stdin in another encoding, without an end or of another form."""
    ran = here("add", *words, **given)

    assert ("", 2, True) == (ran.out, ran.code, said in ran.err)


def test_everything_of_somebody_is_forgotten(here):
    """`forget --all --user` erases every memory of that user, lapsed ones too, and none of another user."""
    lines = [*LAPSED, *({"title": f"Number {number}."} for number in range(60))]
    for user in ("ann", "bob"):
        here("add", "--json-lines", "--user", user, stdin="\n".join(map(json.dumps, lines)))
    dry = here("forget", "--all", "--user", "ann", "--dry-run")
    ran, again = (here("forget", "--all", "--user", "ann", "--yes") for _ in range(2))

    assert (0, True, True) == (dry.code, "and 12 more" in dry.out, "--dry-run, 62 memories would be" in dry.out)
    assert (True, True) == ("Forgot 62 memories" in ran.out, "There are no memories to forget" in again.out)
    assert (0, 62) == tuple(
        len(here("list", "--all", "--user", user, "--limit", 99, "--json").json["memories"]) for user in ("ann", "bob")
    )
    assert [2, 2] == [here("forget", *words).code for words in ((), (1, "--all"))]


@pytest.mark.parametrize("words", [("show",), ("pin",), ("unpin",), ("forget", "--yes")])
def test_what_is_not_there_is_named(here, words):
    """An unknown id is an error of usage, and the command leaves the other memories unchanged."""
    here("add", STABLE)
    here("add", "Of bob.", "--user", "bob")
    ran = here(*words, 1, 2, 99)

    assert ("", 2, True) == (ran.out, ran.code, "There is no memory 2, 99 here." in ran.err)
    assert (1, False) == (
        len(here("list", "--json").json["memories"]),
        here("show", 1, "--json").json["memories"][0]["pinned"],
    )


def test_explain(here):
    """`explain` shows shares that add up to the score, the memories that a turn is given, and the gate's decision."""
    here("add", STABLE)
    here("add", "The office closes at six.", "--pin")
    (best, *_), gate = (found := here("explain", QUESTION, "--json").json)["hits"], found["gate"]
    text = here("explain", QUESTION).out

    assert (1, True, {"verdict": "recall", "reason": "session_start"}) == (best["id"], best["given"], gate)
    assert best["score"] == pytest.approx(sum(best["shares"].values()), abs=1e-4)
    assert ["score", "lexical"] == text.split()[:2]
    assert "The prompt would start a recall: it is the first prompt of its session (recall, session_start).\n" in text


def test_phrases_and_prefixes(here):
    """Search finds quoted words and prefixes; explain says by which of them, and that a prompt has none."""
    here("add", STABLE)
    found = here("search", '"the branch" bill*').out
    explained = here("explain", '"the branch" bill* deployed')

    assert (True, True) == (STABLE in found, "No memory was found" in here("search", '"branch the"').out)
    assert ["score", "phrase", "prefix", "lexical", "given", "id", "memory"] == explained.out.splitlines()[0].split()
    assert "The table is of a search; in a prompt quotes and stars have no meaning." in explained.out


@pytest.mark.parametrize(
    ("words", "verdict", "reason"),
    [
        (["thanks"], "skip", "acknowledgement"),
        (["?!"], "skip", "no_words"),
        ([QUESTION, "--previous", QUESTION], "reuse", "same_query"),
        (["which branch is deployed", "--previous", QUESTION], "reuse", "same_topic"),
        (["as we decided last time", "--previous", QUESTION], "recall", "prior_work"),
        (["when does the office close", "--previous", QUESTION], "recall", "topic_change"),
        (["when does the office close", "--previous", "zebra"], "recall", "low_confidence"),
    ],
)
def test_explain_says_what_the_gate_says(here, words, verdict, reason):
    """`explain` shows the verdict and reason of the gate, for the first prompt of a session and a later one."""
    here("add", STABLE)
    text = here("explain", *words).out

    assert f"({verdict}, {reason})." in text


def test_stats_and_check(here, tmp_path):
    """Numbers, and whether the database is whole; where it is not, the exit code says so."""
    here("add", STABLE, "--type", "decision")
    stats, whole = here("stats", "--json").json, here("check")
    with sqlite3.connect(database(tmp_path)) as connection:
        connection.execute("UPDATE owners SET live = 7")
    connection.close()
    broken, as_json = here("check"), here("check", "--json")
    vanished = "6 of 7 memories of the user without a name vanished: restore the database from a backup."

    assert (1, {"decision": 1}, None, 0) == (
        stats["memories"], stats["types"], stats["embedder"], stats["to_be_embedded"],
    )  # fmt: skip
    assert Ran(out="The database is intact.\n", err="", code=0) == whole
    assert (1, f"{vanished}\n") == (broken.code, broken.out)
    assert (1, {"ok": False, "problems": [vanished]}) == (as_json.code, as_json.json)
    assert "memories: 1\n" in here("stats").out


def test_a_damaged_page_is_a_problem(here, tmp_path, monkeypatch):
    """`check` ends with code 1 for a database with a damaged page, and fails with code 6 for a locked one."""
    here("add", "--json-lines", stdin="\n".join(json.dumps({"title": f"Memory {at} {'x' * 500}"}) for at in range(50)))
    path = database(tmp_path)
    content = path.read_bytes()
    pages = [at for at in range(0, len(content), 4096) if b"x" * 400 in content[at : at + 4096]]
    with path.open("r+b") as file:
        file.seek(pages[len(pages) // 2])
        file.write(b"\xff" * 4096)
    damaged = here("check", "--json")
    monkeypatch.setattr(SqliteStore, "check", raised(StoreError(path, "locked")))
    locked = here("check")

    away = "is damaged; move it (with its -wal and -shm files) away, or restore it from a backup."
    assert {"ok": False, "problems": [f"The memory store {path} {away}"]} == damaged.json
    assert (1, "") == (damaged.code, damaged.err)
    assert (6, True) == (locked.code, "is locked" in locked.err)


def raised(error):
    def check(*_):
        raise error

    return check


def test_reindex(here):
    """`reindex` embeds the memories that have no vector and rebuilds the index files."""
    pytest.importorskip("wordllama")
    here("add", "--json-lines", stdin="\n".join(json.dumps({"title": f"Memory {at}"}) for at in range(50)))
    here.section["embedding"] = {"provider": "static"}
    done = here("reindex", "--json").json
    stats = here("stats", "--json").json

    assert {"embedded": 50, "indexed": 50} == done
    assert (0, [50]) == (stats["to_be_embedded"], [*stats["embeddings"].values()])


DOWN = {"provider": "ollama", "model": "m", "dimensions": 3, "baseUrl": "http://127.0.0.1:9", "timeoutSeconds": 0.2}


@pytest.mark.parametrize(
    ("embedding", "said"),
    [
        ({"provider": "onnx"}, "Run: beaver memory embedder install e5-small"),
        (DOWN, "Some memories are not embedded (embedding_unavailable)"),
    ],
)
def test_reindex_without_an_embedder_that_works(here, embedding, said):
    """`reindex` names the command that installs a missing model, and says that memories are left if one fails."""
    here("add", STABLE)
    here.section["embedding"] = embedding
    ran = here("reindex")

    assert ("", 6, True) == (ran.out, ran.code, said in ran.err)


def test_without_the_key_that_is_asked_for(here, monkeypatch):
    """Without the configured key, commands that need no embedder work, and `stats` names the missing key."""
    monkeypatch.delenv("ACME_API_KEY", raising=False)
    here.section["embedding"] = {"provider": "openai", "model": "m", "dimensions": 8, "apiKeyEnv": "ACME_API_KEY"}
    here("add", STABLE)
    found, stats = here("search", "stable", "--json").json["hits"], here("stats", "--json").json

    assert [STABLE] == [each["title"] for each in found]
    assert (None, 0, ["embedder_missing_key"]) == (stats["embedder"], stats["to_be_embedded"], stats["troubles"])


def test_reindex_without_sqlite_vec(here, monkeypatch):
    """`reindex` embeds every memory although sqlite-vec is not installed."""
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    here("add", STABLE)
    here.section |= {"vectors": "sqlite-vec", "embedding": {"provider": "static"}}
    code, stats = here("reindex").code, here("stats", "--json").json

    assert (0, 0, ["sqlite_vec_not_installed"]) == (code, stats["to_be_embedded"], stats["troubles"])


def test_export_to_a_file(here, tmp_path):
    """`export` writes a complete private file, and overwrites an existing file only with --force."""
    here("add", STABLE)
    here("add", "Of bob.", "--user", "bob")
    done, refused = here("export", "-o", tmp_path / "out.jsonl"), here("export", "-o", tmp_path / "out.jsonl")
    bobs = here("export", "-o", tmp_path / "out.jsonl", "--force", "--user", "bob", "--before", "2126-01-01")
    nowhere = here("export", "-o", tmp_path / "no" / "folder")
    told = here("export", "-o", tmp_path / "other.jsonl", "--json")
    os.mkfifo(tmp_path / "pipe")
    piped = here("export", "-o", tmp_path / "pipe", "--force")

    assert (f"Exported 2 memories to {tmp_path}/out.jsonl.\n", 2) == (done.out, refused.code)
    assert {"exported": 2, "file": f"{tmp_path}/other.jsonl"} == told.json
    assert here("export", "--json") == here("export")
    assert (2, True, True) == (piped.code, "is not a file that can be" in piped.err, (tmp_path / "pipe").is_fifo())
    assert (0, ["Of bob.", STABLE]) == (
        bobs.code, [json.loads(line)["title"] for line in (tmp_path / "out.jsonl").read_text().splitlines()],
    )  # fmt: skip
    assert 0o600 == stat.S_IMODE((tmp_path / "out.jsonl").stat().st_mode)
    assert (6, True) == (nowhere.code, "cannot be written" in nowhere.err)
    assert [] == [*tmp_path.glob(".out*")]


def test_off(local, tmp_path):
    """A memory that is off says how to turn it on."""
    configure(tmp_path / "config.json", enabled=False)
    ran = local("list")

    assert (2, True) == (ran.code, "`memory.local.enabled` is false; set it to true to use the local memory" in ran.err)


def test_models_while_it_is_off(local, tmp_path):
    """One installs a model first and turns the memory on then: its commands do not need the memory."""
    configure(tmp_path / "config.json", enabled=False)
    listed, removed = local("embedder", "list", "--json"), local("embedder", "remove", "--json")
    unknown = local("embedder", "install", "nonsense")

    assert (0, {*KNOWN}) == (listed.code, {each["name"] for each in listed.json["models"]})
    assert (0, {"model": "e5-small", "removed": False}) == (removed.code, removed.json)
    assert (6, True) == (unknown.code, "e5-small" in unknown.err)
    assert not database(tmp_path).exists()


@pytest.mark.shows("002-115")
def test_a_provider_that_there_is_not(local, tmp_path):
    """An unknown provider is refused with the path of the field and the names that there are."""
    configure(tmp_path / "config.json", embedding={"provider": "nobody"})
    ran = local("list")

    assert ("", 3) == (ran.out, ran.code)
    assert "memory.local.embedding.provider: must be one of `auto`, `none`, `static`, `onnx`" in ran.err
    assert "nobody" not in ran.err


def test_each_command_is_listed_once(local):
    """The list of commands has each command once, including those that only conversations have."""
    names = [line.split()[1] for line in local().out.splitlines()]

    assert (sorted({*names}), {"why", "overview", "active", "recent", "status", "pending"}) == (
        sorted(names),
        {*names} - {*group.commands},
    )


def test_the_overview_of_all(beaver):
    """`beaver memory` lists recent memories below the health of the local plugin."""
    beaver("memory", "add", STABLE)
    lines = beaver("memory").out.splitlines()
    place = next(number for number, line in enumerate(lines) if line.split()[:2] == ["local", "ok"])

    assert ("  Recent:", True) == (lines[place + 1], lines[place + 2].endswith(STABLE))


def test_a_database_that_cannot_be_used(local, tmp_path):
    """A damaged database makes the plugin unavailable with an error, and the file is left as it is."""
    local("add", STABLE)
    database(tmp_path).write_bytes(b"This is no database, and somebody may need it. " * 100)
    ran = local("list")

    assert ("", 6, True) == (ran.out, ran.code, "the plugin `local` is unavailable" in ran.err)
    assert database(tmp_path).read_bytes().startswith(b"This is no database")


def test_models(here):
    """`embedder` refuses to check or measure a missing model, has none to remove, and names the models that exist."""
    check, bench, remove, unknown = (
        here("embedder", *words) for words in (["check"], ["bench"], ["remove"], ["install", "nonsense"])
    )

    assert (6, 6) == (check.code, bench.code)
    assert "Run: beaver memory embedder install e5-small" in check.err
    assert (0, "e5-small is not installed, so nothing was removed.\n") == (remove.code, remove.out)
    assert (6, True) == (
        unknown.code,
        "There is no embedding model with this name. Choose one of: e5-small." in unknown.err,
    )
    assert ["model", "dimensions"] == here("embedder", "list").out.split()[:2]


def test_removing_a_model_asks(here, tmp_path):
    """Removing a model without a terminal needs --yes, and `embedder list` reports a damaged model."""
    folder = tmp_path / "state" / "plugins" / "local" / "models" / "e5-small"
    here("embedder", "list")
    folder.mkdir(parents=True)
    listed, refused = here("embedder", "list", "--json").json, here("embedder", "remove")
    removed = here("embedder", "remove", "--yes", "--json")

    assert (True, True) == (listed["models"][0]["installed"], "are damaged" in listed["models"][0]["problem"])
    assert (2, True) == (refused.code, "add --yes" in refused.err)
    assert ({"model": "e5-small", "removed": True}, False) == (removed.json, folder.exists())


# --- On a terminal ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("typed", "code", "left"), [("n\n", 130, 1), ("\n", 130, 1), ("y\n", 0, 0)])
def test_forget_asks(here, typed, code, left):
    """`forget` on a terminal shows the memory and erases it only after a yes."""
    here("add", "The office closes at six.")
    ran = here("forget", 1, stdin=typed, terminal=True)

    assert (code, left) == (ran.code, len(here("list", "--json").json["memories"]))
    assert ("The office closes at six." in ran.err, "Forget 1 memory for good?" in ran.err) == (True, True)


def test_removing_a_model_asks_on_a_terminal(here, tmp_path):
    """`embedder remove` on a terminal removes the model only after a yes."""
    folder = tmp_path / "state" / "plugins" / "local" / "models" / "e5-small"
    here("list")
    folder.mkdir(parents=True)
    refused = here("embedder", "remove", stdin="n\n", terminal=True).code, folder.is_dir()
    removed = here("embedder", "remove", stdin="y\n", terminal=True)

    assert ((130, True), False, "e5-small is removed.\n") == (refused, folder.is_dir(), removed.out)


def test_more_lines_than_one_batch(here):
    """An import of more than one batch stores every line in order, duplicates included, for the user of --user."""
    sent = [f"Memory {at % 600}" for at in range(1_100)]
    stdin = "\n".join(json.dumps({"title": title, "owner": {"user": "bob"}}) for title in sent)
    ran = here("add", "--json-lines", "--user", "ann", stdin=stdin)

    assert [str(at % 600 + 1) for at in range(1_100)] == ran.out.splitlines()
    assert 600 == len(here("list", "--user", "ann", "--limit", 1000, "--json").json["memories"])


def test_forget_says_what_it_did(here):
    """`forget` says how many memories it erased, and a dry run says how many it would erase."""
    here("add", STABLE)
    dry = here("forget", 1, "--dry-run", "--json").json
    ran = here("forget", 1, "--yes")

    assert (True, [STABLE]) == (dry["dry_run"], [each["title"] for each in dry["forgotten"]])
    assert FORGOT == ran.out
    assert (
        "Nothing was forgotten; without --dry-run, 1 memory would be."
        in (here("add", "x"), here("forget", 2, "--dry-run"))[1].out
    )


def test_forget_counts_the_sessions_that_quote_it(local, beaver):
    """`forget` says how many sessions may quote the memory, and `beaver sessions forget` erases those turns."""
    local("add", STABLE)
    beaver("run", "Where is billing deployed from?")
    beaver("run", "Something else?", "--no-memory")
    gone, shown = local("forget", 1, "--yes"), beaver("sessions", "forget", "billing", "deployed", "--yes")

    assert "1 session may quote it; to erase that: beaver sessions forget WORDS" == gone.out.splitlines()[1]
    assert "Erased 2 messages of 1 session; 1 session had no other, and is deleted.\n" == shown.out
    assert 1 == len(beaver("sessions", "list", "--json").json["sessions"])


def test_forget_counts_only_the_sessions_of_the_user(here):
    """With --user only that user's sessions are counted, and the command that erases them names the user."""
    here("add", STABLE, "--user", "dora o")
    here.shell.quoting = lambda _, user: 1 if user == "dora o" else 5
    ran = here("forget", "--all", "--user", "dora o", "--yes")

    assert (
        "1 session may quote it; to erase that: beaver sessions forget WORDS --user 'dora o'" == ran.out.splitlines()[1]
    )


def test_forget_where_the_sessions_cannot_be_read(here):
    """A memory is forgotten although the sessions cannot be read, and a warning says that the count is unknown."""

    def fail(*_):
        raise PluginError("They are locked.", plugin="x")

    here("add", STABLE)
    here.shell.quoting = fail
    ran = here("forget", 1, "--yes")

    assert (0, FORGOT) == (ran.code, ran.out)
    assert "It is unknown whether stored sessions quote what was forgotten. They are locked.\n" == ran.err


@pytest.mark.campaign
def test_adding_many_on_a_full_disk(beaver, tmp_path):
    """When the disk is full, `add --json-lines` prints the ids of the memories before, which are kept, and says why."""
    many = "".join(
        json.dumps({"title": f"fact {at}", "narrative": f"{at} " + "long " * 100}) + "\n" for at in range(2_000)
    )
    script = 'ulimit -f 3000; exec "$0" -m beaver_hooks.cli memory add --json-lines'
    ran = subprocess.run(
        ["sh", "-c", script, sys.executable],
        input=many, env=beaver.environment, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    ids = ran.stdout.split()

    assert (6, True, True) == (ran.returncode, 0 < len(ids) < 2_000, "the disk is full; make room" in ran.stderr)
    assert len(ids) == beaver("memory", "stats", "--json").json["memories"]


def test_reindex_as_text(here):
    """`reindex` says how many memories it embedded and indexed."""
    here("add", STABLE)

    assert "Embedded 0 memories, and indexed 1 memory.\n" == here("reindex").out


def test_texts_do_no_harm_on_a_terminal(here):
    """`list` and `show` print no control characters of a memory."""
    here("add", "one\x1b[31m two\u202e\nthree", "--type", "a\x07b")

    assert [] == [each for each in "\x1b\x07\u202e" if each in here("list").out + here("show", 1).out]


def test_more_than_are_shown(here):
    """`list` says that there are more memories than its limit shows."""
    here("add", "--json-lines", stdin='{"title": "a"}\n{"title": "b"}')

    assert here("list", "--limit", 1).out.endswith("There are more than 1; raise --limit to see them.\n")


BY_WORDS = "Found by words only, because the embedder does not work now (unavailable).\n"
NOT_RANKED = "Not ranked again by their tokens, as memory.local.recall.reranker wants (no_token_vectors).\n"


@pytest.mark.parametrize("command", ["search", "explain"])
@pytest.mark.parametrize(
    ("section", "said", "reason"),
    [({"embedding": DOWN}, BY_WORDS, None), ({"recall": {"reranker": "tokens"}}, NOT_RANKED, "no_token_vectors")],
)
def test_found_without_an_embedder(here, command, section, said, reason):
    """`search` and `explain` say that the embedder is down, or that none gives the tokens of `recall.reranker`."""
    here("add", STABLE)
    here.section |= section
    ran, told = here(command, "billing"), here(command, "billing", "--json").json

    assert (True, said, reason) == (STABLE in ran.out, ran.err, told.get("not_reranked"))


def test_explain_where_nothing_is_recalled(here):
    """`explain` names recall that is turned off as the reason, and says when no memory was found."""
    here.section["recall"] = {"enabled": False}
    text = here("explain", QUESTION).out

    assert (
        "No memory was found.\n\nNothing would be recalled: memory.local.recall.enabled is false (skip, off).\n" == text
    )


def test_an_export_that_somebody_else_writes_meanwhile(here, tmp_path, monkeypatch):
    """`export` leaves a file alone that another process creates meanwhile."""
    here("add", STABLE)
    path = tmp_path / "out.jsonl"
    exporting = import_module("beaver_hooks_local.cli.export")
    write = exporting._lines

    def slowly(*arguments):
        path.write_text("precious")
        return write(*arguments)

    monkeypatch.setattr(exporting, "_lines", slowly)
    ran = here("export", "-o", path)

    assert (2, "precious", []) == (ran.code, path.read_text(), [*tmp_path.glob(".out*")])


# --- Models -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", [True, False])
def test_a_model_is_installed_checked_and_measured(here, tmp_path, monkeypatch, runs):
    """`embedder install`, `check` and `bench` report their results; the first two name missing packages."""
    installed = Installed(known=KNOWN["e5-small"], folder=tmp_path / "e5-small")
    measured = Bench(load_seconds=1, query_p50_ms=2, query_p95_ms=3, passages_per_second=4, peak_mb=5)
    monkeypatch.setattr(embedders, "install_model", lambda *_, **__: installed)
    monkeypatch.setattr(embedders, "check_model", lambda *_, **__: installed)
    monkeypatch.setattr(embedders, "bench_model", lambda *_, **__: measured)
    monkeypatch.setattr(embedders, "PACKAGES", ("json",) if runs else ("no_such_package",))
    texts = [here("embedder", words) for words in ("install", "check", "bench")]
    records = [here("embedder", words, "--json").json for words in ("install", "check", "bench")]

    assert [0] * 3 == [each.code for each in texts]
    assert [not runs] * 2 == [install_command("beaver-hooks-local", "onnx") in each.out for each in texts[:2]]
    assert ("a query takes 2.0 ms (p50), 3.0 ms (p95)" in texts[2].out, [runs] * 2, 2) == (
        True, [each["can_run"] for each in records[:2]], records[2]["query_p50_ms"],
    )  # fmt: skip


# --- The bar ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["things", "bytes"])
def test_a_bar_is_shown_on_a_terminal(monkeypatch, capsys, unit):
    """A progress bar on a terminal writes its steps to stderr only."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with Bar(unit=unit) as bar:
        bar(1, 7, "counting [sheep]")
        bar(2, None, "resting")
    said = capsys.readouterr()

    assert ("", True) == (said.out, "resting" in said.err or "counting [sheep]" in said.err)


@pytest.mark.parametrize("shown", [True, False])
def test_a_bar_is_not_shown_elsewhere(capsys, shown):
    """Without a terminal, or where it would be in the way, nothing is written."""
    with Bar(shown=shown) as bar:
        bar(1, 2, "counting")

    assert ("", "") == tuple(capsys.readouterr())


def test_what_was_ended_goes_no_further():
    """A progress bar that was ended raises at the next step, so that work in another thread stops."""
    bar = Bar()
    bar.end()

    with pytest.raises(Ended):
        bar(1, 2, "counting")


@pytest.mark.parametrize("terminal", [False, True])
def test_many_that_were_added_are_counted(here, monkeypatch, capsys, terminal):
    """An import on a terminal ends with the number of new memories and the command that embeds them."""
    read, write = os.pipe()
    os.write(write, b'{"title": "one"}\n{"title": "two"}\n{"title": "one"}\n')
    os.close(write)
    with os.fdopen(read) as typed:
        monkeypatch.setattr(sys, "stdin", typed)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
        code = here.code("add", "--json-lines")

    said = "Added 2 memories; `beaver memory reindex` embeds them now.\n" if terminal else ""
    assert (0, True) == (code, capsys.readouterr().err.endswith(said))


def test_a_damaged_memory_is_named_and_forgotten(here, tmp_path):
    """Each command that is given a damaged memory names it with the commands that export and erase it, which work."""
    id_ = here("add", "The price is 1000 euros.", "--scope", "project", "--user", "ann").out.strip()
    connection = sqlite3.connect(database(tmp_path))
    with connection:
        connection.execute("UPDATE observations SET title = 'The price is 9000 euros.'")
    connection.close()
    named = [here(*words, id_, "--user", "ann") for words in (("show",), ("pin",), ("forget", "--yes"))]
    other, checked, refused = here("show", id_), here("check"), here("forget", "--damaged", id_)
    gone = here("forget", "--damaged", id_, "--yes")

    erase = f"`beaver memory forget --damaged {id_} --yes`"
    said = (
        f"Error: Memory {id_} is damaged and not shown: `beaver memory export --damaged` writes its readable columns,"
        f" and {erase} erases it.\n"
    )
    assert [Ran(out="", err=said, code=6)] * 3 == named
    assert (2, True) == (other.code, f"There is no memory {id_} here." in other.err)
    evidence = (
        "keep what can be read of it with `beaver memory export --damaged`, then restore the database from a backup"
    )
    assert (
        Ran(
            out=f"Memory {id_} fails its checksum and is not shown: {evidence}, or erase it with {erase}.\n",
            err="",
            code=1,
        )
        == checked
    )
    assert (2, "Forgot 1 damaged memory.\n") == (refused.code, gone.out)
    assert 0 == here("check").code


def test_a_damaged_memory_is_named_by_what_leaves_it(here, tmp_path):
    """`forget --all` names the damaged memories that it leaves, and `--damaged` refuses those that are another user's."""
    for title in ("The price is 1000 euros.", "Tea is at four."):
        here("add", title, "--scope", "project", "--user", "ann")
    damage(database(tmp_path), "The price", 1)
    dry, first, again = (
        here("forget", "--all", "--user", "ann", *how) for how in (["--dry-run"], ["--yes"], ["--yes"])
    )
    refused = here("forget", "1", "--damaged", "--yes", "--user", "zoe")
    gone = here("forget", "1", "2", "--damaged", "--yes", "--user", "ann")

    assert [6, 6, 6] == [dry.code, first.code, again.code]
    assert {True} == {each.err.startswith("Error: Memory 1 is damaged and not shown: ") for each in (dry, first, again)}
    assert ("Forgot 1 memory: ", "") == (first.out[:17], again.out)
    assert (2, "") == (refused.code, refused.out)
    assert "There is no memory 1 of this user." in refused.err
    assert (2, "Forgot 1 damaged memory.\n") == (gone.code, gone.out)
    assert "There is no memory 2 of this user." in gone.err
    assert Ran(out="There are no memories to forget.\n", err="", code=0) == here(
        "forget", "--all", "--user", "ann", "--yes"
    )


def damage(path, text, mask, *, page=False):
    """Flip bits in the first byte of a text in a database, or in the pointer at the start of the page that holds it."""
    content = bytearray(path.read_bytes())
    at = content.index(text.encode())
    at = at // 4096 * 4096 if page else at
    content[at] ^= mask
    path.write_bytes(content)


def test_damaged_rows_are_exported(here, tmp_path):
    """`export --damaged` writes the readable columns of each damaged row, with the reason, and no other rows."""
    lines = [{"title": title, "narrative": text} for title, text in (
        ("1000 euros", "whole"), ("Text two", "second"), ("Long", f"{'a' * 9000}END{'z' * 9000}"), ("Fourth", "whole"),
    )]  # fmt: skip
    here("add", "--json-lines", "--user", "bob", stdin="\n".join(map(json.dumps, lines)))
    none = here("export", "--damaged")
    damage(database(tmp_path), "1000 euros", 8)
    damage(database(tmp_path), "second", 0x80)
    damage(database(tmp_path), f"END{'z' * 50}", 0x80, page=True)
    ran, bobs, anns = (
        here("export", "--damaged"),
        here("export", "--damaged", "--user", "bob"),
        here("export", "--damaged", "--user", "ann"),
    )
    told = here("export", "--damaged", "-o", tmp_path / "evidence.jsonl")
    found = [json.loads(line) for line in ran.out.splitlines()]

    assert Ran(out="", err="", code=0) == none == anns
    assert ran == bobs
    assert [
        ("memory", 1, {"tenant": "", "user": "bob", "kind": "user"}, "checksum", "9000 euros", "whole"),
        ("memory", 2, {"tenant": "", "user": "bob", "kind": "user"}, "not_utf8", "Text two", {"base64": "82Vjb25k"}),
        ("memory", 3, {"tenant": "", "user": "bob", "kind": "user"}, "unreadable", "Long", None),
    ] == [
        (each["kind"], each["id"], each["owner"], each["reason"], *map(each["columns"].get, ("title", "narrative")))
        for each in found
    ]
    assert f"Exported 3 damaged rows to {tmp_path}/evidence.jsonl.\n" == told.out
    assert (tmp_path / "evidence.jsonl").read_text() == ran.out
    assert (2, 2) == (here("export", "--damaged", "--all").code, here("export", "--damaged", "--project", "x").code)


def test_the_doctor_verifies_memories(local, beaver, tmp_path):
    """`beaver doctor` verifies the rows of the local memory and names damage, and changes no file by that."""
    local("add", "The price is 1000 euros.", "--scope", "project")
    whole = beaver("doctor", "--json").json["findings"]
    damage(database(tmp_path), "The price", 1)
    before = {path: path.read_bytes() for path in database(tmp_path).parent.iterdir() if path.is_file()}
    damaged = beaver("doctor", "--json")
    database(tmp_path).write_bytes(b"garbage " * 1000)
    broken = beaver("doctor", "--json")

    found = [
        [each for each in ran if each["subject"] == "memory local"]
        for ran in (whole, damaged.json["findings"], broken.json["findings"])
    ]
    assert [("ok", f"{database(tmp_path)}: 1 memory, intact")] == [(each["level"], each["text"]) for each in found[0]]
    assert [("problem", True)] == [
        (each["level"], each["text"].startswith(f"{database(tmp_path)}: Memory 1 fails its checksum"))
        for each in found[1]
    ]
    text, remedy = "is damaged", "move it (with its -wal and -shm files) away, or restore it from a backup."
    assert (1, [("problem", f"The memory store {database(tmp_path)} {text}", remedy)]) == (
        broken.code,
        [(each["level"], each["text"], each["remedy"]) for each in found[2]],
    )
    after = {path: path.read_bytes() for path in before}
    assert before | {database(tmp_path): b"garbage " * 1000} == after


def test_an_older_copy_in_place_of_the_database(here, beaver, tmp_path):
    """Each command names one remedy for an older copy of the database, and the doctor that accepts it finds no problem."""
    path = database(tmp_path)
    here("add", STABLE)
    older = path.read_bytes()
    here("add", "The quay is new.")
    path.write_bytes(older)
    accept = f"restore a backup, or accept the loss with `beaver doctor --accept-loss {path}`"
    missing = "1 commit that was acknowledged is missing: the database is older than what was acknowledged here, or another one."
    ran = [beaver("doctor", "--json")]
    checked, added = here("check"), here("add", "The pier is old.")
    ran += [beaver("doctor", "--json"), beaver("doctor", "--json", "--accept-loss", path)]
    wrong = [[each for each in one.json["findings"] if each["level"] != "ok"] for one in ran]

    found = {"subject": "memory.db", "level": "problem", "text": f"{path}: {missing}", "remedy": accept}
    assert [[found], [found], []] == wrong
    assert [1, 1, 0] == [one.code for one in ran]
    assert (f"{missing} To do: {accept}.\n", 1) == (checked.out, checked.code)
    assert ("2\n", 0) == (added.out, added.code)


def test_the_doctor_counts_stored_secrets(tmp_path):
    """Memories that hold a secret by the rules of today are counted and named by their ids, and none is shown."""
    folders = [tmp_path / "project", tmp_path / "person"]
    folders[0].mkdir()
    with contextlib.closing(SqliteStore.open(folders[0] / "memory.db")) as store:
        store.add([new("ann@example.org reads it"), new("two", facts=(f"the password: {CREDENTIAL}",))], now=NOW)
    shutil.copytree(*folders)
    found = group.commands["examine"].main([str(folder) for folder in folders], standalone_mode=False)

    strict = group.commands["examine"].main([str(folders[0]), "--redact=emails"], standalone_mode=False)

    hold = "1 memory holds a secret that is refused today:"
    assert f"{folders[0]}/memory.db: 2 memories hold a secret that is refused today: 2, 1" == strict[1][1]
    assert [
        ("ok", f"{folders[0]}/memory.db: 2 memories, intact"),
        ("warning", f"{folders[0]}/memory.db: {hold} 2"),
        ("ok", f"{folders[1]}/memory.db: 2 memories, intact"),
        ("warning", f"{folders[1]}/memory.db: {hold} 1000000002"),
    ] == [(level, text) for level, text, _ in found]


def test_the_doctor_without_a_memory(here, beaver, tmp_path):
    """The doctor makes no database, and a plugin that cannot be examined is a problem."""
    ran = beaver("doctor", "--json")

    assert [] == [each for each in ran.json["findings"] if each["subject"] == "memory local"]
    assert not database(tmp_path).exists()


def test_a_read_only_disk(here, tmp_path):
    """On a folder that may only be read, `search`, `show`, `list`, `export` and `check` work, and `add` says why not."""
    id_ = here("add", STABLE).out.strip()
    paths = [tmp_path / "state", *(tmp_path / "state").rglob("*")]
    modes = {path: path.stat().st_mode for path in paths}
    for path in reversed(paths):
        path.chmod(0o500 if path.is_dir() else 0o400)
    with without_override():
        with pytest.raises(PermissionError):
            (database(tmp_path).parent / "new").touch()
        read = [here(*words) for words in (("search", "stable"), ("show", id_), ("list",), ("export",), ("check",))]
        refused = here("add", "The quay is new.")
    for path, mode in modes.items():
        path.chmod(mode)

    assert [(0, True)] * 4 + [(0, False)] == [(ran.code, STABLE in ran.out) for ran in read]
    assert "The database is intact.\n" == read[-1].out
    assert (6, True) == (refused.code, "read-only" in refused.err)


@pytest.mark.parametrize(
    ("found", "level", "text"),
    [
        (Examination(memories=50_000, examined=20_000), "ok", "the newest 20,000 of 50,000 memories are intact"),
        (
            Examination(memories=9, examined=9, problems=("a.", "b.", "c.", "d.", "e.")),
            "problem",
            "a; b; c; and 2 more",
        ),
        (StoreError("here", "locked"), "problem", "is locked"),
        (
            Examination(memories=99, examined=99, refused=tuple(range(1, 13))),
            "warning",
            "12 memories hold a secret that is refused today: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more",
        ),
    ],
)
def test_the_findings_of_an_examination(tmp_path, monkeypatch, found, level, text):
    """An examination says what it read and left out, and names three problems and ten secrets, and counts the others."""

    def examined(*_, **__):
        if isinstance(found, StoreError):
            raise found
        return found

    (tmp_path / "memory.db").touch()
    monkeypatch.setattr(sys.modules["beaver_hooks_local.cli.examine"], "examined", examined)
    *_, (shown, said, _) = group.commands["examine"].main(
        ["--database", str(tmp_path / "memory.db")], standalone_mode=False
    )

    assert (level, True) == (shown, text in said)
