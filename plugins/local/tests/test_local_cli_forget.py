"""`beaver memory forget`: what its options select, what it erases and counts, and what it refuses."""

import gzip
import json
import uuid
from datetime import UTC, datetime, timedelta

import postgres_server
import psycopg
import pytest

from beaver_memory.engine import MemoryEngine
from beaver_memory.records import NewMemory, Owner, SessionSummary
from beaver_memory.runtime.file_scan import traces_in
from beaver_memory.store.queries import queries_of

NOW = datetime(2026, 11, 20, tzinfo=UTC)
QUERIES = queries_of("sqlite", "update")
LINES = [
    {"title": "Ann deployed billing.", "session": "s", "related_files": ["src/billing.py"], "tags": ["work"]},
    {"title": "Tea is at four.", "created_at": "2026-01-02T00:00:00+00:00", "evidence": "We deploy tea at four."},
    {
        "title": "The whale sings.",
        "narrative": f"{' '.join(f'word{each}' for each in range(900))} at last",
        "session": "t",
        "related_files": ["docs/whale.md"],
        "related_people": ["Ann"],
    },
    {"title": "Old news.", "created_at": "2025-01-01T00:00:00+00:00", "expires_at": "2025-02-01T00:00:00+00:00"},
]


@pytest.fixture
def filled(here):
    """Return what runs a command over a memory that holds the lines above, with the ids 1 to 4."""
    here("add", "--json-lines", stdin="\n".join(map(json.dumps, LINES)))
    return here


@pytest.mark.parametrize(
    ("options", "selected"),
    [
        (("--query", "deploying"), {1, 2}),
        (("--query", "Ann"), {1, 3}),
        (("--session", "s"), {1}),
        (("--file", "src"), {1}),
        (("--tag", "work"), {1}),
        (("--since", "2026-01-02", "--until", "2026-01-03"), {2}),
        (("--until", "2026-01-01"), {4}),
        (("--query", "ann", "--session", "t", "--file", "docs"), {3}),
        ((1, 3, "--query", "whale"), {3}),
        (("--query", "whale lasts"), {3}),
        (("--query", "nothing of this"), set()),
        (("--all",), {1, 2, 3, 4}),
    ],
)
def test_options_select_what_fits_all_of_them(filled, options, selected):
    """A dry run lists the memories that fit every option, in any form of the words, lapsed ones too."""
    shown = filled("forget", *options, "--dry-run", "--json")

    assert (0, selected) == (shown.code, {each["id"] for each in shown.json["forgotten"]})


def test_a_selection_is_erased_and_counted(filled):
    """What an option selects is forgotten after --yes, with counts for each place; the rest stays."""
    gone = filled("forget", "--query", "ann", "--yes", "--json").json
    left = {each["id"] for each in filled("list", "--all", "--json").json["memories"]}

    assert ({1, 3}, {2, 4}) == ({each["id"] for each in gone["forgotten"]}, left)
    assert ({"memories": 2, "labels": 6}, {}) == (gone["erased"], gone["left"])


def test_what_is_left_is_named(filled, monkeypatch):
    """If a place keeps something of a forgotten memory, the report names it and the exit code is 1."""
    monkeypatch.setattr("beaver_memory.store.sqlite.update.drop_labels", lambda *_: None)
    ran, told = filled("forget", 1, "--yes"), filled("forget", 3, "--yes", "--json")

    assert (1, "Still there: labels 3. Run `beaver memory check`, and forget again.\n") == (ran.code, ran.err)
    assert (1, {"labels": 3}) == (told.code, told.json["left"])


def test_users_and_tenants(here):
    """`--tenant` and `--all-users` select the memories of a tenant, and of none beside it."""
    here("list")
    folder = here.shell.folder()
    with MemoryEngine.open(folder) as engine:
        owners = [Owner(user="ann"), Owner(tenant="acme", user="ann"), Owner(tenant="acme", user="bob")]
        engine.add([NewMemory(title=f"Of {each.tenant} {each.user}.", owner=each) for each in owners])
    one = here("forget", "--tenant", "acme", "--user", "ann", "--all", "--dry-run", "--json").json
    every = here("forget", "--tenant", "acme", "--all-users", "--all", "--yes", "--json").json
    left = here("list", "--user", "ann", "--json").json["memories"]

    titles = [[each["title"] for each in shown] for shown in (one["forgotten"], left)]
    assert [["Of acme ann."], ["Of  ann."], 2] == [*titles, len(every["forgotten"])]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "Name the memories (forget ID...), select them"),
        ((1, "--all"), "--all means all memories of the user"),
        (("--all", "--query", "tea"), "--all means all memories of the user"),
        (("--query", "?!"), "`query` must hold a word."),
    ],
)
def test_a_selection_that_says_nothing(filled, words, why):
    """A selection that is missing, has two meanings or holds no word is refused, and nothing is forgotten."""
    refused = filled("forget", *words, "--yes")

    assert (True, 4) == (why in refused.err, len(filled("list", "--all", "--json").json["memories"]))
    assert refused.code in {2, 6}


def test_copies_and_damaged_logs_are_counted(filled):
    """The copies made before a migration and the logs kept as evidence are deleted, and counted."""
    folder = filled.shell.folder()
    for name in ("memory.db.v3.bak", "memory.db-wal.damaged-7"):
        (folder / name).write_bytes(b"Ann deployed billing.")
    erased = filled("forget", 1, "--yes", "--json").json["erased"]

    assert {"memories": 1, "labels": 3, "copies before migrations": 1, "damaged logs": 1} == erased
    assert [] == [*folder.glob("*.bak"), *folder.glob("*-wal.*")]


def test_summaries_are_counted(filled):
    """The summary of the session in which a forgotten memory was said is erased, and counted."""
    with MemoryEngine.open(filled.shell.folder()) as engine:
        for session in ("s", "t"):
            engine.store.summarise(Owner(), SessionSummary(session=session, request="Billing?", created_at=NOW))
    one, every = (filled("forget", *words, "--yes", "--json").json["erased"] for words in ((1,), ("--all",)))

    assert (1, 1) == (one["summaries"], every["summaries"])


# --- Proof --------------------------------------------------------------------------------------------------------


@pytest.mark.shows("003-021", "003-108", "003-118")
def test_forgetting_is_proved(filled, tmp_path):
    """`--prove` finds a planted memory in every form, nothing of it after forgetting, and removes its owner."""
    ran = filled("forget", "--prove", "--json")
    forms = {each["form"] for each in ran.json["before"]}
    stores = {path: path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file()}

    assert (0, True, [], 0) == (ran.code, ran.json["proved"], ran.json["after"], ran.json["hits_after"])
    assert {"as it is", "case-folded", "stemmed", "indexed"} <= forms
    assert ({"memory.db"}, 4) == (
        {path.name for path in (tmp_path / "state").rglob("memory.db")},
        len(filled("list", "--all", "--json").json["memories"]),
    )
    assert [] == [path.name for path, content in stores.items() if b"beaver-proof" in content]


class WithoutErasingHistory:
    """The queries of the store, but for the one that empties the history."""

    def __getitem__(self, name):
        return "SELECT ?, ?" if name == "empty_history" else QUERIES[name]


def nothing(*_, **__):
    """Erase nothing."""


@pytest.mark.parametrize(
    ("place", "broken", "seen"),
    [
        ("store.sqlite.update._SQL", WithoutErasingHistory(), ("db", "history")),
        ("store.sqlite.update.drop_words", nothing, ("db",)),
        ("store.sqlite.update.drop_labels", nothing, ("db", "labels")),
        ("store.sqlite.store.SqliteStore.drop_summaries", lambda *_: 0, ("db",)),
        ("search.index_cache.IndexShelf.forget", nothing, ("index",)),
    ],
)
def test_a_place_that_is_left_fails_the_proof(here, monkeypatch, place, broken, seen):
    """If forgetting leaves one place as it is, the proof fails with exit code 1, and names the file and the rows."""
    monkeypatch.setattr(f"beaver_memory.{place}", broken)
    ran = here("forget", "--prove", "--json")
    found = {each["file"] for each in ran.json["after"]}

    assert (1, False, True) == (ran.code, ran.json["proved"], ran.json["detectable"])
    assert seen == (*{each.rpartition(".")[2] for each in found}, *ran.json["left"])


@pytest.mark.parametrize(("broken", "code"), [(False, 0), (True, 1)])
def test_an_excerpt_that_another_memory_has_fails_the_proof(here, monkeypatch, broken, code):
    """The words of a memory in the excerpt of its turn are looked for too, whatever memory has the excerpt."""
    said = "Quokkas juggle lemons near Ulm every Friday."
    turn = {"evidence": f"{said} Walruses paint barns.", "origin": "t1"}
    here("add", "--json-lines", stdin="\n".join(json.dumps({"title": each, **turn}) for each in (said, "Barns.")))
    if broken:
        monkeypatch.setattr("beaver_memory.store.sqlite.store.SqliteStore.drop_evidence", lambda *_, **__: 0)
    ran = here("forget", "1", "--yes", "--prove", "--json")

    assert (code, not broken) == (ran.code, ran.json["proof"]["proved"])


def test_a_memory_that_was_not_detectable_proves_nothing(here, monkeypatch):
    """If a planted memory was not found before it was forgotten, its absence proves nothing."""
    monkeypatch.setattr("beaver_hooks_local.cli.prove.traces_in", lambda *_: [])
    ran = here("forget", "--prove")

    assert (1, True) == (ran.code, "Nothing is proved" in ran.err)


def test_an_interrupted_proof_leaves_nothing(here, monkeypatch):
    """The owner of a proof that fails in the middle is removed at once, that of a killed one by a proof of a later day."""

    def fail(*_):
        raise OSError("interrupted")

    def is_there():
        return b"beaver-proof" in (here.shell.folder() / "memory.db").read_bytes()

    seen = []
    for removed in (True, False):
        with monkeypatch.context() as patch:
            patch.setattr("beaver_hooks_local.cli.prove.traces_in", fail)
            if not removed:
                patch.setattr("beaver_memory.runtime.proof.remove", nothing)
            with pytest.raises(OSError, match="interrupted"):
                here("forget", "--prove")
        seen.append(is_there())

    codes = []
    for age in (timedelta(days=1), timedelta(seconds=-1)):
        monkeypatch.setattr("beaver_memory.runtime.proof.STRAY", age)
        codes.append(here("forget", "--prove").code)
        seen.append(is_there())
    assert ([0, 0], [False, True, True, False]) == (codes, seen)


def test_proofs_side_by_side(here, monkeypatch):
    """A proof that begins and ends in the middle of another one finds its own memory, and disturbs no other proof."""
    inner = []

    def beside(*given):
        if not inner:
            inner.append(None)
            inner[0] = here("forget", "--prove", "--json")
        return traces_in(*given)

    monkeypatch.setattr("beaver_hooks_local.cli.prove.traces_in", beside)
    outer = here("forget", "--prove", "--json")

    assert [(0, True)] * 2 == [(each.code, each.json["proved"]) for each in (outer, *inner)]
    assert b"beaver-proof" not in (here.shell.folder() / "memory.db").read_bytes()


def test_forgetting_a_selection_is_proved(filled):
    """With a selection, the sequences of words that no other memory has are gone; a copy elsewhere proves nothing."""
    filled("add", "Ann deployed billing. It was late.")
    same = filled("forget", 1, "--prove", "--yes", "--json")
    own = filled("forget", "--query", "tea", "--prove", "--yes")

    assert (1, False) == (same.code, same.json["proof"]["detectable"])
    assert (0, True) == (own.code, own.out.endswith("Proved: it was there, and it is gone.\n"))


def test_a_selection_that_a_file_keeps(filled):
    """If a file of the memory still holds the words of a forgotten memory, the proof names it and fails."""
    copy = filled.shell.folder() / "copy.gz"
    copy.write_bytes(gzip.compress(b"filler " * 900 + b"so: TEA IS AT FOUR. " + b"filler " * 900))
    ran = filled("forget", 2, "--prove", "--yes")

    assert (1, True) == (ran.code, f"{copy}: compressed, case-folded" in ran.out)
    assert ran.err.endswith("Not forgotten everywhere.\n")


def test_a_proof_over_postgresql(here):
    """Over PostgreSQL the rows are counted, the local files are read, and the owner is removed from every table."""
    url, schema = postgres_server.shared(), f"beaver_{uuid.uuid4().hex}"
    here.section["store"] = {"postgres": {"tenant": "acme", "url": url, "schema": schema}}
    ran = here("forget", "--prove")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT set_config('search_path', %s, false)", [schema])
        owners = connection.execute("SELECT count(*) FROM owners").fetchone()
        rows = connection.execute("SELECT count(*) FROM observations").fetchone()
        connection.execute(f"DROP SCHEMA {schema} CASCADE")

    assert (0, (0,), (0,)) == (ran.code, owners, rows)
    assert (True, True) == ("rows were counted" in ran.out, ran.out.endswith("Proved: it was there, and it is gone.\n"))
