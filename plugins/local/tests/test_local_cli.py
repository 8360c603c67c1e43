"""`beaver memory local`: as `beaver` runs it, each command a process of its own; and over a host in this process."""

import asyncio
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys

import attrs
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks import Host
from beaver_hooks.config import Config
from beaver_hooks.config.model import Memory as MemorySection
from beaver_hooks_local import make_plugin
from beaver_hooks_local.cli import group
from beaver_hooks_local.cli.incoming import NotTaken, from_fields, read_lines
from beaver_hooks_local.cli.piping import lines
from beaver_hooks_local.records import Owner
from beaver_hostspecs.testing import make_canary

STABLE = "Billing is deployed from the branch stable."
QUESTION = "From which branch is billing deployed?"


@attrs.frozen(kw_only=True)
class Ran:
    """What a process came to."""

    out: str
    err: str
    code: int

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def beaver(tmp_path):
    """Return what runs `beaver` in a folder of its own, where the local memory is on."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BEAVER", "COV"))}
    config = tmp_path / "config.json"
    environment = {**kept, "BEAVER_CONFIG": str(config), "XDG_STATE_HOME": str(tmp_path / "xdg"), "COLUMNS": "120"}
    configure(config)

    def run(*words, stdin=""):
        done = subprocess.run(
            [sys.executable, "-m", "beaver_hooks.cli", *map(str, words)],
            cwd=tmp_path, env=environment, input=stdin.encode(), capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        return Ran(out=done.stdout.decode(), err=done.stderr.decode(), code=done.returncode)

    run.environment = environment
    return run


def configure(path, **section):
    local = {"enabled": True, "embedding": {"provider": "none"}, **section}
    state = {"stateFolder": str(path.parent / "state")}
    path.write_text(json.dumps({"memory": {"mode": "curated", "local": local}, "host": state}))


@pytest.fixture
def local(beaver):
    """Return what runs `beaver memory local`."""
    return lambda *words, stdin="": beaver("memory", "local", *words, stdin=stdin)


class HostShell:
    """A shell over a host in this process, opened for each call."""

    def __init__(self, folder, section):
        self.folder, self.section = folder, section

    def call(self, function):
        return asyncio.run(self._call(function))

    async def _call(self, function):
        config = Config(memory=MemorySection(sections={"local": self.section}))
        plugin = make_plugin()
        async with Host({"local": plugin}, config=config, state_folder=self.folder):
            return await function(plugin)


@pytest.fixture
def here(tmp_path):
    """Return what runs a command of the group in this process."""
    shell = HostShell(tmp_path / "state", {"enabled": True, "embedding": {"provider": "none"}})

    def run(*words, stdin=""):
        done = CliRunner(env={"COLUMNS": "120"}).invoke(group, [*map(str, words)], input=stdin, obj=shell)
        return Ran(out=done.stdout, err=done.stderr, code=done.exit_code)

    return run


def database(tmp_path):
    return tmp_path / "state" / "plugins" / "local" / "memory.db"


def test_what_is_added_is_recalled_by_a_run(beaver):
    """One process adds, another one answers with it, and without the plugin's name the same command runs."""
    added = beaver("memory", "add", STABLE)
    answered = beaver("run", QUESTION)

    assert (Ran(out="1\n", err="", code=0), 0, True) == (added, answered.code, STABLE in answered.out)


def test_add_takes_all_that_a_memory_has(here):
    """Each option is a field of the memory; the whole of it is shown."""
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
        "owner": {"tenant": "", "user": ""}, "created_at": "2026-01-02T00:00:00+00:00",
        "expires_at": "2126-01-02T02:04:00+00:00", "mention_count": 1,
    }  # fmt: skip

    assert expected == {name: shown[name] for name in expected}
    assert ["ADD"] == [each["event"] for each in shown["history"]]


def test_add_reads_stdin(here):
    """The first line says it and the others say it at length; said again it is one more mention."""
    first = here("add", "--json", stdin="The office closes at six.\n\nBecause of the alarm.\n")
    again = here("add", "The office closes at six.", "--narrative", "other")
    text = here("show", 1).out

    assert {"memories": [{"id": 1, "outcome": "stored", "mentions": 1}]} == first.json
    assert Ran(out="1\n", err="That is there already; it was said 2 times by now.\n", code=0) == again
    assert "[1] The office closes at six.\nBecause of the alarm.\n  owner: everybody\n" == text[: text.index("  store")]


def test_json_lines_are_added_and_come_back(local, tmp_path):
    """What is exported can be added to another memory, and there is the same; nothing is added twice."""
    sent = [
        {"title": "One", "owner": {"user": "ann"}, "tags": ["x"]},
        {"title": "Two", "created_at": "2026-01-02", "store": "social"},
        {"title": "One", "owner": {"user": "ann"}},
    ]
    added = local("add", "--json-lines", stdin="\n\n".join(map(json.dumps, sent)))
    exported = local("export")
    database(tmp_path).unlink()
    back = local("add", "--json-lines", "--json", stdin=exported.out)
    again = local("add", "--json-lines", "--json", stdin=exported.out)

    assert (Ran(out="1\n2\n1\n", err="", code=0), 2) == (added, len(exported.out.splitlines()))
    assert sorted(map(without_moments, exported.out.splitlines())) == sorted(
        map(without_moments, local("export").out.splitlines())
    )
    assert (["stored"] * 2, ["duplicate"] * 2) == tuple(
        [each["outcome"] for each in ran.json["memories"]] for ran in (back, again)
    )


def without_moments(line):
    return json.dumps({name: value for name, value in json.loads(line).items() if name not in {"id", "updated_at"}})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("no json", "it is not JSON in UTF-8."),
        ("[]", "it is no JSON object."),
        ("{}", "`title` is missing"),
        ('{"title": "a", "colour": 1}', "it has 1 fields that a memory has not"),
        ('{"title": "a", "importance": 7}', "`importance` does not fit."),
        ('{"title": "a", "tags": "x"}', "`tags` does not fit."),
        ('{"title": "a", "created_at": "soon"}', "`created_at` is no moment such as"),
        ('{"title": "a", "owner": "ann"}', "`owner` does not fit."),
        ('{"title": "a", "store": "public"}', "`store` does not fit."),
    ],
)
def test_a_wrong_line_is_named(line, said):
    """What stood before it is given, and the error says which line, what is wrong, and nothing of what was sent."""
    batches = []
    with pytest.raises(NotTaken) as caught:
        batches.extend(read_lines([b'{"title": "good"}', b"", line.encode(), b'{"title": "behind"}'], {}, None))

    assert [["good"]] == [[new.title for new in batch] for batch in batches]
    assert str(caught.value).startswith(f"Line 3 is no memory: {said}")


def test_what_stood_before_a_wrong_line_is_added(local):
    """Its id is printed, and the file can be added again once it is mended."""
    ran = local("add", "--json-lines", stdin='{"title": "good"}\nno json\n{"title": "behind"}\n')
    mended = local("add", "--json-lines", stdin='{"title": "good"}\n{"title": "better"}\n{"title": "behind"}')

    assert ("1\n", 2, True) == (ran.out, ran.code, "Error: Line 2 is no memory: it is not JSON" in ran.err)
    assert Ran(out="1\n2\n3\n", err="", code=0) == mended


@given(content=st.binary(max_size=200), longest=st.integers(1, 50))
def test_lines_of_a_pipe(content, longest):
    """All that is written into a pipe comes out of it, in lines without their ends; the last one needs no end."""
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


def test_a_credential_is_not_remembered():
    """A field that holds one is refused, without showing it."""
    canary = make_canary()
    with pytest.raises(NotTaken) as caught:
        from_fields({"title": "a", "facts": (f"It is {canary.reveal()}",)}, Owner())

    canary.assert_clean(str(caught.value))


def test_an_interrupted_import_ends_at_once(beaver, tmp_path):
    """Ctrl-C while nothing more comes out of the pipe: what was taken is kept, and the process ends by itself."""
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
    assert "Nothing is remembered yet.\n" == here("list").out


def test_list_and_search_are_narrowed(here, local):
    """Each filter holds in both; the newest and the best come first; more than are shown are mentioned."""
    sent = [
        {"title": "Tea is green", "type": "fact", "tags": ["drink"], "created_at": "2026-01-01"},
        {"title": "Tea is black", "store": "shared", "related_people": ["Ann"], "created_at": "2026-02-01"},
        {"title": "Tea is cold", "related_files": ["src/tea.py"], "created_at": "2026-03-01"},
        {"title": "Tea is hot", "owner": {"user": "bob"}, "created_at": "2026-04-01"},
        {"title": "Tea is dear", "project": "shop", "scope": "project", "created_at": "2026-05-01"},
    ]
    local("add", "--json-lines", stdin="\n".join(map(json.dumps, sent)))
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
    assert "1 user of this memory were not looked at" in here("list", "--tag", "none").out


def test_search_as_text(here):
    """A row has score, id, day, store, type and what it says."""
    here("add", STABLE, "--when", "2026-01-02", "--type", "decision")
    heads, row = here("search", *QUESTION.split()).out.splitlines()

    assert ["score", "id", "when", "store", "type", "memory"] == heads.split()
    assert ["1", "2026-01-02", "private", "decision", *STABLE.split()] == row.split()[1:]


def test_pin_and_unpin(here):
    """A pinned memory says so until it is unpinned; the history has both."""
    here("add", STABLE)
    pinned, unpinned = here("pin", 1), here("unpin", 1, "--json")
    (shown,) = here("show", 1, "--json").json["memories"]

    assert (0, f"[1] is pinned: {STABLE}\n") == (pinned.code, pinned.out)
    assert ([False], ["ADD", "PIN", "UNPIN"]) == (
        [each["pinned"] for each in unpinned.json["memories"]],
        [each["event"] for each in shown["history"]],
    )


def test_forget_shows_asks_and_erases(local, beaver, tmp_path):
    """A dry run shows it, without a terminal nothing is forgotten unasked, and then no file holds the text any more."""
    local("add", STABLE)
    local("add", "Another one.")
    dry, refused = local("forget", 1, "--dry-run"), local("forget", 1)
    kept = local("list", "--json").json["memories"]
    gone = local("forget", 1, "--yes", "--json")
    files = [path for path in (tmp_path / "state" / "plugins" / "local").rglob("*") if path.is_file()]
    events = [json.loads(line) for line in beaver("audit", "tail", "--json").out.splitlines()]

    assert (0, True, True) == (dry.code, STABLE in dry.out, "Nothing was forgotten; without" in dry.out)
    assert (2, True, 2) == (refused.code, "say --yes where nobody can be asked" in refused.err, len(kept))
    assert {"dry_run": False, "forgotten": [{"id": 1}]} == gone.json
    assert [] == [path.name for path in files if b"deployed from" in path.read_bytes()]
    assert [2] == [each["id"] for each in local("list", "--json").json["memories"]]
    assert 1 == sum(event["name"] == "memory_forgotten" for event in events)


@pytest.mark.parametrize("words", [("show",), ("pin",), ("unpin",), ("forget", "--yes")])
def test_what_is_not_there_is_named(here, words):
    """An id that is not there is an error of usage, and nothing is done to the others."""
    here("add", STABLE)
    here("add", "Of bob.", "--user", "bob")
    ran = here(*words, 1, 2, 99)

    assert ("", 2, True) == (ran.out, ran.code, "There is no memory 2, 99 here." in ran.err)
    assert (1, False) == (
        len(here("list", "--json").json["memories"]),
        here("show", 1, "--json").json["memories"][0]["pinned"],
    )


def test_explain(here):
    """Each signal's share is shown and adds up to the score; what a turn would be given, and what the gate says."""
    here("add", STABLE)
    here("add", "The office closes at six.", "--pin")
    (best, *_), gate = (found := here("explain", QUESTION, "--json").json)["hits"], found["gate"]
    text = here("explain", QUESTION).out

    assert (1, True, {"verdict": "recall", "reason": "session_start"}) == (best["id"], best["given"], gate)
    assert best["score"] == pytest.approx(sum(best["shares"].values()), abs=1e-4)
    assert ["score", "lexical"] == text.split()[:2]
    assert "It would be recalled: it is the first prompt of its session (recall, session_start).\n" in text


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
    """The gate's verdict and reason are those of a turn, the first of its session or behind another one."""
    here("add", STABLE)
    text = here("explain", *words).out

    assert f"({verdict}, {reason})." in text


def test_stats_and_check(local, tmp_path):
    """Numbers, and whether the database is whole; where it is not, the exit code says so."""
    local("add", STABLE, "--type", "decision")
    stats, whole = local("stats", "--json").json, local("check")
    with sqlite3.connect(database(tmp_path)) as connection:
        connection.execute("UPDATE owners SET live = 7")
    connection.close()
    broken, as_json = local("check"), local("check", "--json")

    assert (1, {"decision": 1}, None, 0) == (
        stats["memories"], stats["types"], stats["embedder"], stats["to_be_embedded"],
    )  # fmt: skip
    assert Ran(out="The database is whole.\n", err="", code=0) == whole
    assert (1, "1 owners are counted wrongly.\n") == (broken.code, broken.out)
    assert (1, {"ok": False, "problems": ["1 owners are counted wrongly."]}) == (as_json.code, as_json.json)
    assert "memories: 1\n" in local("stats").out


def test_reindex(local, tmp_path):
    """What is not embedded yet is embedded, and the index files are made anew."""
    pytest.importorskip("wordllama")
    local("add", "--json-lines", stdin="\n".join(json.dumps({"title": f"Memory {at}"}) for at in range(50)))
    configure(tmp_path / "config.json", embedding={"provider": "static"})
    done = local("reindex", "--json").json
    stats = local("stats", "--json").json

    assert {"embedded": 50, "indexed": 50} == done
    assert (0, [50]) == (stats["to_be_embedded"], [*stats["embeddings"].values()])


def test_reindex_without_the_embedder_that_is_asked_for(local, tmp_path):
    """The error says what is missing and how to get it; nothing waits for ever."""
    local("add", STABLE)
    configure(tmp_path / "config.json", embedding={"provider": "onnx"})
    ran = local("reindex")

    assert ("", 6, True) == (ran.out, ran.code, "Run: beaver memory embedder install e5-small" in ran.err)


def test_reindex_with_an_embedder_that_fails(local, tmp_path):
    """The error says so."""
    local("add", STABLE)
    there = {"provider": "ollama", "model": "m", "dimensions": 3, "baseUrl": "http://127.0.0.1:9"}
    configure(tmp_path / "config.json", embedding=there)
    ran = local("reindex")

    assert ("", 6, True) == (ran.out, ran.code, "Not all is embedded (embedding_unavailable)" in ran.err)


def test_export_to_a_file(local, tmp_path):
    """It is whole and private, and one that is there is overwritten only when told to."""
    local("add", STABLE)
    local("add", "Of bob.", "--user", "bob")
    done, refused = local("export", "-o", "out.jsonl"), local("export", "-o", "out.jsonl")
    bobs = local("export", "-o", "out.jsonl", "--force", "--user", "bob", "--before", "2126-01-01")
    nowhere = local("export", "-o", "no/such/folder")

    assert ("Exported 2 memories to out.jsonl.\n", 2) == (done.out, refused.code)
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


def test_a_database_that_cannot_be_used(local, tmp_path):
    """The plugin is not in service, and the error says why; the file is left alone."""
    local("add", STABLE)
    database(tmp_path).write_bytes(b"This is no database, and somebody may need it. " * 100)
    ran = local("list")

    assert ("", 2, True) == (ran.out, ran.code, "the plugin `local` is unavailable" in ran.err)
    assert database(tmp_path).read_bytes().startswith(b"This is no database")


def test_models(local):
    """What is not installed cannot be checked, measured or removed, and what is none is named."""
    check, bench, remove, unknown = (
        local("embedder", *words) for words in (["check"], ["bench"], ["remove"], ["install", "nonsense"])
    )

    assert (6, 6) == (check.code, bench.code)
    assert "Run: beaver memory embedder install e5-small" in check.err
    assert (0, "e5-small is not installed; there is nothing to remove.\n") == (remove.code, remove.out)
    assert (6, True) == (
        unknown.code,
        "There is no embedding model of that name. Choose one of: e5-small." in unknown.err,
    )
    assert ["model", "dimensions"] == local("embedder", "list").out.split()[:2]


def test_removing_a_model_asks(local, tmp_path):
    """Without a terminal it is removed only with --yes; what is no model any more is said in the list."""
    folder = tmp_path / "state" / "plugins" / "local" / "models" / "e5-small"
    local("embedder", "list")
    folder.mkdir(parents=True)
    listed, refused = local("embedder", "list", "--json").json, local("embedder", "remove")
    removed = local("embedder", "remove", "--yes", "--json")

    assert (True, True) == (listed["models"][0]["installed"], "is not whole" in listed["models"][0]["problem"])
    assert (2, True) == (refused.code, "say --yes" in refused.err)
    assert ({"model": "e5-small", "removed": True}, False) == (removed.json, folder.exists())
