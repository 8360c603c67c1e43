"""Memories that hold everywhere are kept with the person: two projects, a home directory, hosts with real folders."""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from operator import methodcaller

import apsw
import pytest
from letters import Letters

from beaver_hooks import Host
from beaver_hooks.audit.memory_sink import MemorySink
from beaver_hooks.config import Config
from beaver_hooks.config.model import Memory
from beaver_hooks_local import make_plugin
from beaver_hostspecs import CommandContext, Scope
from beaver_hostspecs.testing import FrozenClock
from beaver_memory.engine import MemoryEngine
from beaver_memory.errors import PersonalStoreError, StoreError
from beaver_memory.layers import Personal
from beaver_memory.query import Query
from beaver_memory.records import NewMemory, Owner
from beaver_memory.search.nearest import TableSearch
from beaver_memory.search.terms import Analyser
from beaver_memory.store import personal as personal_module
from beaver_memory.store.joint import PERSONAL_IDS
from beaver_memory.store.personal import REST_SECONDS, PersonalStore
from beaver_memory.store.protocol import Analysed
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.testing.store_cases.kit import looking

ANN = Owner(user="ann")
TEA = "Ann drinks green tea in the morning."
BRANCH = "Billing is deployed from the branch stable."
NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
FIRST = PERSONAL_IDS + 1
OWNERS = methodcaller("owners", None)
"""The id of the first memory of the person."""


@pytest.fixture
def own_home(tmp_path, monkeypatch):
    """A home directory with two projects, each with a `.beaver`."""
    folder = tmp_path / "home"
    for project in ("one", "two"):
        (folder / project / ".beaver").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def host(own_home, monkeypatch):
    """Return what makes a host in a folder of the home directory."""

    def make(place, sinks=(), clock=None, **section):
        monkeypatch.chdir(own_home / place)
        section = {"enabled": True, "embedding": {"provider": "none"}, **section}
        config = Config(memory=Memory(sections={"local": section}))
        return Host({"local": make_plugin()}, config=config, sinks=sinks, clock=clock)

    return make


def database(folder):
    return folder / ".beaver" / "plugins" / "local" / "memory.db"


def made(path):
    """Return the path of a database whose folder is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


async def tool(host, name, project="one", user="ann", trust="full", **arguments):
    scope = Scope(project=project) if project else Scope()
    async with host.turn("Do it.", session="s", user=user, trust=trust, scope=scope) as turn:
        answer = await host.run_tool(turn.id, name, arguments)
        await turn.commit("Done.")
    await host.drain()
    return json.loads(answer) if isinstance(answer, str) else answer


async def titles(host, query="", **more):
    found = await tool(host, "memory_search", query=query, **more)
    return [row["title"] for row in found["results"]]


async def status(host):
    return await commanded(host, "status")


async def commanded(host, name, *words):
    return await host.run_command("local", name, words, CommandContext(session="s", user="ann", trust="full"))


# --- Where memories lie -------------------------------------------------------------------------------------------------


async def test_what_holds_everywhere_is_found_in_every_project(host):
    """A preference written in one project is found, recalled and read in another, and at home under its own id."""
    async with host("one") as one:
        written = await tool(one, "memory_write", title=TEA, type="preference")
    async with host("two") as two:
        found = await titles(two, "what does Ann drink", project="two")
        whole = await tool(two, "memory_get", project="two", ids=[FIRST])
        async with two.turn("What tea does Ann drink?", session="s", user="ann", trust="full") as turn:
            recalled = [reference.text for reference in turn.references]
            await turn.commit("Green.")
    async with host(".") as outside:
        at_home = await tool(outside, "memory_get", project="", ids=[1])
    assert {"outcome": "stored", "id": FIRST, "store": "private"} == written
    assert ([TEA], TEA, TEA) == (found, whole["observations"][0]["title"], at_home["observations"][0]["title"])
    assert any(TEA in content for content in recalled)


async def test_what_belongs_to_a_project_stays_there(host, own_home):
    """A memory about a project is in that project's database alone, and no database of the person is made."""
    async with host("one") as one:
        written = await tool(one, "memory_write", title=BRANCH)
        found = await titles(one, "stable")
    async with host("two") as two:
        elsewhere = await titles(two, "stable", project="two")
    assert (1, [BRANCH], [], False) == (written["id"], found, elsewhere, database(own_home).exists())


async def test_reading_makes_no_database(host, own_home):
    """Reading, recall and status in a project create no database of the person."""
    async with host("one") as one:
        await tool(one, "memory_search", query="tea")
        await tool(one, "memory_get", ids=[1, FIRST])
        await tool(one, "memory_timeline", anchor=FIRST)
        await tool(one, "memory_history", observation_id=FIRST)
        await tool(one, "memory_people")
        await status(one)
        async with one.turn("What tea does Ann drink?", session="s", user="ann", trust="full") as turn:
            await turn.commit("Green.")
    assert ([], True) == ([*database(own_home).parent.iterdir()], database(own_home / "one").exists())


async def test_what_was_said_outside_of_projects_is_not_seen_in_one(host):
    """A project sees the global memories of the home directory, and neither sees nor counts its other memories."""
    async with host(".") as outside:
        await tool(outside, "memory_write", project="errands", title="The shop opens at nine.", related_people=["Bob"])
        await tool(outside, "memory_write", project="errands", title=TEA, type="preference", related_people=["Ann"])
    async with host("one") as one:
        seen = await titles(one, project="")
        people = [each["name"] for each in (await tool(one, "memory_people", project=""))["people"]]
        hidden = await tool(one, "memory_get", project="", ids=[FIRST])
        counted = await status(one)
    assert ([TEA], ["Ann"], 0, "memories: 1") == (seen, people, hidden["count"], counted.splitlines()[0])


async def test_commands_of_a_conversation_take_ids_of_the_person(host, own_home):
    """A conversation of any project lists, pins and forgets global memories, and forgetting leaves no trace."""
    async with host("one") as one:
        await tool(one, "memory_write", title=TEA, type="preference")
        await tool(one, "memory_write", title=BRANCH)
    async with host("two") as two:
        pinned = await commanded(two, "pin", str(FIRST))
        listed = await commanded(two, "recent")
        forgot = await commanded(two, "forget", str(FIRST), "yes")
        left = await commanded(two, "recent")
    assert (f"{FIRST} is pinned: {TEA}", f"Memory {FIRST} is forgotten") == (
        pinned,
        forgot[: len(f"Memory {FIRST} is forgotten")],
    )
    assert ([f"[{FIRST}]"], "There are no memories yet.") == ([line.split()[0] for line in listed.splitlines()], left)
    assert [] == holding(database(own_home).parent, "green tea")


async def test_the_prompt_index_lists_both(host):
    """The list of recent memories beside a recall has those of the project and those of the person."""
    async with host("one") as one:
        await tool(one, "memory_write", title=TEA, type="preference")
        await tool(one, "memory_write", title=BRANCH)
        where = {"session": "s", "user": "ann", "trust": "full", "scope": Scope(project="one")}
        async with one.turn("Where does the owl nest?", **where) as turn:
            shown = " ".join(reference.text for reference in turn.references)
            await turn.commit("In the garden.")
    assert [True, True] == [f"[{id_}] private" in shown for id_ in (FIRST, 1)]


async def test_users_and_trust_are_as_ever(host):
    """A project shows the person's memories only to their user, and only the stores that the trust allows."""
    async with host("one") as one:
        for store in ("private", "shared"):
            await tool(one, "memory_write", title=f"Ann's {store} tea.", type="preference", store=store)
    async with host("two") as two:
        seen = [await titles(two, "tea", user=user, trust=trust) for user, trust in (
            ("ann", "full"), ("ann", "inner"), ("ann", "familiar"), ("bob", "full"),
        )]  # fmt: skip
        gone = await tool(two, "memory_get", user="bob", ids=[FIRST, FIRST + 1])
    both = ["Ann's private tea.", "Ann's shared tea."]
    assert ([both, both[1:], [], []], 0) == ([sorted(each) for each in seen], gone["count"])


async def test_one_database_where_one_is_named(host, own_home, tmp_path):
    """A configured `databasePath` or state folder holds all memories in one database, with the ids of that database."""
    path = tmp_path / "own.db"
    async with host("one", databasePath=str(path)) as one:
        first = await tool(one, "memory_write", title=TEA, type="preference")
    config = Config(memory=Memory(sections={"local": {"enabled": True, "embedding": {"provider": "none"}}}))
    async with Host({"local": make_plugin()}, config=config, state_folder=tmp_path / "state") as named:
        second = await tool(named, "memory_write", title=TEA, type="preference")
    assert ([1, 1], False) == ([first["id"], second["id"]], database(own_home).exists())


async def test_two_names_of_one_folder(host, own_home, monkeypatch, tmp_path):
    """A project folder that is the person's folder by another name has one database."""
    (tmp_path / "link").symlink_to(own_home)
    monkeypatch.setenv("HOME", str(tmp_path / "link"))
    async with host("../link") as linked:
        written = await tool(linked, "memory_write", title=TEA, type="preference")
        found = await tool(linked, "memory_search", query="tea")
    assert (1, 1) == (written["id"], found["count"])


async def test_a_new_memory_holds_in_its_project_unless_it_is_a_preference(host):
    """A turn that names no project writes facts for the project of its folder, and preferences for all projects."""
    async with host("one") as one:
        written = [
            (await tool(one, "memory_write", title=title, type=type_, project=""))["id"]
            for title, type_ in ((BRANCH, "fact"), (TEA, "preference"))
        ]
    async with host("two") as two:
        assert ([1, FIRST], [TEA]) == (written, await titles(two, project=""))


# --- Every operation over both -------------------------------------------------------------------------------------------


def holding(folder, text):
    """Return the files below a folder that hold a text, but for what SQLite shares."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.endswith("-shm")]
    needles = (text.encode(), text.lower().encode(), Analyser().query(text)[0].to_bytes(8, "little"))
    return [path.name for path in paths if any(each in path.read_bytes() for each in needles)]


KEY = Letters().identity.key
TITLES = [f"{word} {each} was said about the {other}" for each, (word, other) in enumerate(
    zip(["tea", "rain", "billing", "stable"] * 12, ["branch", "garden", "kitchen"] * 16, strict=True)
)]  # fmt: skip


def said(number):
    """Return a memory: every second one holds everywhere, and no session has both kinds."""
    scope = "global" if number % 2 else "project"
    created = NOW - timedelta(minutes=number)
    return NewMemory(title=TITLES[number], owner=ANN, scope=scope, session=f"s{number % 4}", created_at=created)


@contextlib.contextmanager
def joint(folder, clock=None, **options):
    """Open an engine over two databases."""
    clock = clock or FrozenClock(NOW)
    options = {"embedder": Letters(), **options}
    store = PersonalStore(made(folder / "person" / "memory.db"), clock=clock)
    personal = Personal(store=store, indexes=folder / "person" / "index", nearest=options.pop("tables", None))
    with MemoryEngine.open(folder / "project", personal=personal, clock=clock, **options) as engine:
        yield engine


def seen(**more):
    return looking(**{"owners": (ANN,), "now": NOW} | more)


def answers(engine, **more):
    """Return the scores and titles of all hits, sorted."""
    texts = ["tea in the garden", "billing", "rain kitchen stable", ""]
    found = [engine.search(Query(text=text, filters=seen(**more), limit=99)) for text in texts]
    return [sorted((-round(hit.score, 5), hit.memory.title) for hit in each.hits) for each in found]


@pytest.mark.parametrize("embedder", [None, Letters()], ids=["words", "vectors"])
@pytest.mark.parametrize("narrowed", [{}, {"scopes": ("project",)}, {"scopes": ("global",)}, {"types": ("none",)}])
def test_two_databases_rank_as_one(tmp_path, embedder, narrowed):
    """A search over two databases returns the same memories and scores as over one database with all of them."""
    with MemoryEngine.open(tmp_path / "all", embedder=embedder, clock=FrozenClock(NOW)) as engine:
        engine.add(map(said, range(48)))
        engine.embed(limit=100)
        expected = answers(engine, **narrowed)
    with joint(tmp_path, embedder=embedder) as engine:
        ids = engine.add(map(said, range(48)))
        embedded = engine.embed(limit=100)
        assert expected == answers(engine, **narrowed)
        assert [number % 2 == 1 for number in range(48)] == [id_ > PERSONAL_IDS for id_ in ids]
        assert (48 if embedder else 0) == embedded
    with joint(tmp_path, embedder=embedder) as engine:
        assert expected == answers(engine, **narrowed)


def test_what_is_done_beside_searching_is_done_in_both(tmp_path):
    """Memories in both databases are embedded, indexed, counted, listed, checked and touched."""
    with joint(tmp_path) as engine:
        ids = engine.remember(map(said, range(4)))
        ids = [each.id for each in ids]
        assert (3, 1, 0) == (engine.embed(limit=3), engine.embed(limit=3), engine.embed(limit=3))
        engine.store.touch(ids, tenant="", now=NOW)
        stats = engine.stats()
        assert [NOW] * 4 == [each.last_accessed_at for each in engine.get(ids, seen())]
        assert (4, sorted(ids), [ANN]) == (
            engine.store.count(ANN), sorted(engine.store.ids(ANN)), engine.store.owners(None),
        )  # fmt: skip
        assert (4, [4], {"project": 2, "person": 2}, 1) == (
            stats["memories"], [*stats["embeddings"].values()], stats["databases"], stats["owners"],
        )  # fmt: skip
        assert (4, [], 4) == (engine.reindex(), engine.store.check(None), engine.store.drop_vectors(KEY))
        assert 4 == engine.pending()
    indexes = [[*(tmp_path / each / "index").glob("*.index")] for each in ("project", "person")]
    assert [1, 1] == [len(each) for each in indexes]


def test_a_new_model_takes_over_in_both(tmp_path):
    """Queries use the earlier model until both databases are embedded with the new one."""
    with joint(tmp_path) as engine:
        engine.add(map(said, range(8)))
        engine.embed(limit=100)
    told = []
    with joint(
        tmp_path, embedder=Letters("new"), previous=Letters(), trace=lambda name, **_: told.append(name)
    ) as engine:
        engine.search(Query(text="tea", filters=seen()))
        engine.embed(limit=4)
        before = "model_switched" in told
        engine.embed(limit=4)
        answered = engine.search(Query(text="tea", filters=seen()))
    assert (False, True, None, 8) == (before, "model_switched" in told, answered.keyword_only, answered.total)


def test_the_tables_of_sqlite_vec_are_in_both(tmp_path):
    """With sqlite-vec, each database has its own table of vectors."""
    pytest.importorskip("sqlite_vec")
    troubles = []

    def tables(store):
        return TableSearch(store.vec_tables(), troubles.append)

    with joint(tmp_path) as engine:
        engine.add(map(said, range(48)))
        engine.embed(limit=100)
        expected = answers(engine)
    with SqliteStore.open(tmp_path / "project" / "memory.db") and joint(tmp_path, tables=tables) as engine:
        engine.embed()
        assert (expected, []) == (answers(engine), troubles)
    with contextlib.closing(sqlite3.connect(tmp_path / "person" / "memory.db")) as connection:
        rows = connection.execute("SELECT count(*) FROM observations_vec_marks").fetchone()
    assert (1,) == rows


def test_forgetting_leaves_nothing_in_either(tmp_path):
    """Forgetting removes a memory from every file of both folders, indexes included."""
    secrets = [NewMemory(title=f"The zebra {scope}.", owner=ANN, scope=scope) for scope in ("global", "project")]
    with joint(tmp_path) as engine:
        engine.add(map(said, range(8)))
        ids = engine.add(secrets)
        engine.embed(limit=100)
        engine.reindex()
        before = holding(tmp_path, "zebra")
        assert ids == engine.forget(ids, seen())
        found = engine.search(Query(text="zebra", filters=seen()))
    assert (4, [], []) == (
        len(before), holding(tmp_path, "zebra"), [hit for hit in found.hits if "zebra" in hit.memory.title],
    )  # fmt: skip


def test_a_forgetting_that_fails_half_way(tmp_path):
    """Forgetting with one missing database raises an error, and the other's indexes keep nothing of the memory."""
    with joint(tmp_path) as engine:
        ids = engine.add(
            [NewMemory(title=f"The zebra {scope}.", owner=ANN, scope=scope) for scope in ("global", "project")]
        )
        engine.reindex()
        (tmp_path / "project" / "memory.db").rename(tmp_path / "project" / "away.db")
        with pytest.raises(StoreError, match="disappeared"):
            engine.forget(ids, seen())
    assert [] == holding(tmp_path / "person", "zebra")


def test_memories_of_the_person_are_changed_there(tmp_path):
    """A global memory can be changed in the person's database, but its scope cannot."""
    with joint(tmp_path) as engine:
        (id_,) = engine.add(said(1))
        changed = engine.change(id_, seen(), event="UPDATE", title="The owl", pinned=True)
        assert (id_, "The owl", True) == (changed.id, changed.title, changed.pinned)
        assert [id_] == [hit.memory.id for hit in engine.search(Query(text="owl", filters=seen())).hits]
        assert ["ADD", "UPDATE"] == [each.event for each in engine.history(id_, seen())]
        with pytest.raises(ValueError, match="holds everywhere"):
            engine.change(id_, seen(), event="UPDATE", scope="project")
        hidden = seen(scopes=("project",))
        assert (None, [], [], []) == (
            engine.change(id_, hidden, event="PIN", pinned=False), engine.get([id_], hidden),
            engine.forget([id_], hidden), engine.history(id_, hidden),
        )  # fmt: skip


# --- Faults -------------------------------------------------------------------------------------------------------------


def newer(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO schema_version VALUES (99, 0)")
        connection.commit()


def damaged(path):
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)


def emptied(path):
    for each in path.parent.glob("memory.db*"):
        each.unlink()
    path.touch()


def a_folder(path):
    for each in path.parent.glob("memory.db*"):
        each.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("spoil", "category"), [(newer, "newer"), (damaged, "corrupt"), (emptied, "emptied"), (a_folder, "cannot_open")]
)
async def test_an_unusable_database_of_the_person_costs_its_memories_alone(host, own_home, spoil, category):
    """A damaged database of the person costs its memories alone: events, health and refused writes name the fault."""
    async with host("one") as one:
        await tool(one, "memory_write", title=TEA, type="preference")
        await tool(one, "memory_write", title=BRANCH)
    spoil(database(own_home))
    sink = MemorySink()
    async with host("one", sinks=[sink]) as one:
        refused = await tool(one, "memory_write", title="Ann likes owls.", type="preference")
        kept = await tool(one, "memory_write", title="Owls nest in the garden.")
        found = await titles(one, "tea stable owls")
        health = one.health()["local"]
    assert ({BRANCH, "Owls nest in the garden."}, "stored") == ({*found}, kept["outcome"])
    assert ("rejected", True) == (refused["outcome"], "nothing was stored" in refused["reason"])
    assert ("degraded", f"personal_memory_{category}") == (health.state, health.category)
    told = [dict(event.facts) for event in sink.named("memory_personal_unavailable")]
    assert [{"category": category}] == told


async def test_a_home_directory_in_which_nothing_can_be_kept(host, own_home):
    """Without a folder for the person, a project's memory works and refuses global memories."""
    (own_home / ".beaver").write_text("in the way")
    async with host("one") as one:
        refused = await tool(one, "memory_write", title=TEA, type="preference")
        kept = await tool(one, "memory_write", title=BRANCH)
        found = await titles(one, "stable tea")
    assert ("rejected", "stored", [BRANCH]) == (refused["outcome"], kept["outcome"], found)


def test_a_database_that_is_well_again(tmp_path):
    """A store rests after a failed read and retries afterwards; it reports the failure and the recovery once."""
    clock, told = FrozenClock(NOW), []
    path = made(tmp_path / "person.db")
    with contextlib.closing(SqliteStore.open(path)):
        pass
    whole = path.read_bytes()
    damaged(path)
    store = PersonalStore(path, told=lambda error: told.append(error and error.category), clock=clock)
    asked = [store.attempt(OWNERS) for _ in range(2)]
    path.write_bytes(whole)
    asked.append(store.attempt(OWNERS))
    clock.advance(REST_SECONDS)
    asked += [store.attempt(OWNERS) for _ in range(2)]
    store.close()
    assert ([None, None, None, [], []], ["corrupt", None]) == (asked, told)
    with pytest.raises(StoreError, match="is closed"):
        store.there().owners(None)


def test_terms_of_a_newer_version(tmp_path):
    """A database of the person with terms of a newer version is neither searched nor written."""
    with joint(tmp_path) as engine:
        engine.add(map(said, range(4)))
    with contextlib.closing(SqliteStore.open(tmp_path / "person" / "memory.db")) as store:
        store.settle(999, lambda memory: Analysed(memory=memory, terms=b"", length=0))
    with joint(tmp_path) as engine:
        found = engine.search(Query(text="tea billing rain", filters=seen()))
        trouble = engine.personal_trouble
        with pytest.raises(PersonalStoreError, match="newer version"):
            engine.add(said(5))
    assert ({TITLES[0], TITLES[2]}, "newer") == ({hit.memory.title for hit in found.hits}, trouble.category)


def test_a_closed_store_makes_nothing(tmp_path):
    """A closed store refuses to create its database."""
    store = PersonalStore(tmp_path / "person.db")
    store.close()
    with pytest.raises(StoreError, match="is closed"):
        store.made()
    assert not (tmp_path / "person.db").exists()


def test_a_check_names_the_database(tmp_path):
    """A check names the path of the person's database in each problem that it finds there."""
    with joint(tmp_path) as engine:
        engine.add(map(said, range(4)))
        with contextlib.closing(apsw.Connection(str(tmp_path / "person" / "memory.db"))) as connection:
            connection.execute("UPDATE owners SET live = live + 1")
        (found,) = engine.store.check(None)
        assert found.startswith(f"{tmp_path / 'person' / 'memory.db'}: 1 of ")


def test_a_folder_that_cannot_be_looked_into(tmp_path, monkeypatch):
    """A database that cannot be looked for counts as a fault, not as a missing file."""
    monkeypatch.setattr(os, "lstat", refused)
    store = PersonalStore(tmp_path / "person.db")
    assert (None, "cannot_open") == (store.attempt(OWNERS), store.trouble.category)


def refused(_path):
    raise PermissionError(13, "Permission denied")


LOCKING = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA locking_mode = EXCLUSIVE")
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_database_that_another_process_locks(tmp_path, monkeypatch):
    """While another program locks the person's database, the project's memories are found."""
    monkeypatch.setattr(personal_module, "PATIENCE", 0.1)
    with joint(tmp_path) as engine:
        engine.add(map(said, range(4)))
    path = tmp_path / "person" / "memory.db"
    with subprocess.Popen(
        [sys.executable, "-c", LOCKING, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert "locked" == other.stdout.readline().strip()
        with joint(tmp_path) as engine:
            found = engine.search(Query(text="tea billing", filters=seen()))
            trouble = engine.personal_trouble
        other.stdin.close()
    assert ({TITLES[0], TITLES[2]}, "locked") == ({hit.memory.title for hit in found.hits}, trouble.category)


# --- Processes ------------------------------------------------------------------------------------------------------------

WRITER = """
import sys
from pathlib import Path
from beaver_memory.engine import MemoryEngine
from beaver_memory.search.terms import Analyser
from beaver_memory.layers import Personal
from beaver_memory.records import NewMemory, Owner
from beaver_memory.store.personal import PersonalStore

folder, name = Path(sys.argv[1]), sys.argv[2]
personal = Personal(store=PersonalStore(folder / "memory.db"), indexes=folder / "index")
with MemoryEngine.open(folder / name, personal=personal) as engine:
    for number in range(25):
        engine.remember(NewMemory(title=f"{name} {number}", owner=Owner(user="ann")))
        engine.remember(NewMemory(title=f"both {number}", owner=Owner(user="ann")))
        engine.remember(NewMemory(title=f"{name} in the project {number}", owner=Owner(user="ann"), scope="project"))
"""


@pytest.mark.campaign
def test_two_projects_write_at_once(tmp_path):
    """Two processes in their own projects write to one database of the person without losing or doubling a memory."""
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, tmp_path, name]) for name in ("one", "two")]
    assert [0, 0] == [each.wait(timeout=60) for each in writers]
    with contextlib.closing(SqliteStore.open(tmp_path / "memory.db")) as store:
        found = store.recent(seen(), limit=500)
        assert [] == store.check(None)
    wanted = sorted(f"{name} {number}" for name in ("one", "two", "both") for number in range(25))
    assert (wanted, {1, 2}) == (sorted(each.title for each in found), {each.mention_count for each in found})
    for name in ("one", "two"):
        with contextlib.closing(SqliteStore.open(tmp_path / name / "memory.db")) as store:
            assert 25 == store.count(ANN)


def test_damaged_rows_of_both_databases(tmp_path):
    """Damaged rows of both databases are named, those of the person with the ids that the project shows."""
    with joint(tmp_path) as engine:
        engine.add(map(said, range(4)))
        ids = {memory.id for memory in engine.store.recent(seen(), limit=9)}
        for path in (tmp_path / "project", tmp_path / "person"):
            with contextlib.closing(apsw.Connection(str(path / "memory.db"))) as connection:
                connection.execute("UPDATE observations SET title = 'another'")
        assert ids == {each.id for each in engine.store.damaged(ANN)}
        assert sorted(ids) == engine.store.damaged_among(sorted(ids), seen())
        named = [each.partition("Memory ")[2].partition(" fails")[0] for each in engine.store.check(None)]
        assert sorted(ids) == sorted(int(each) for each in named if each)
