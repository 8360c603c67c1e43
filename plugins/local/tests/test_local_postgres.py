"""The local memory in PostgreSQL: the same by one setting, and what an outage of the server costs."""

import asyncio
import contextlib
import json
import logging
import os
import re
import socket
import uuid
from pathlib import Path
from urllib.parse import quote

import postgres_server
import psycopg
import pytest
from case_files import rows
from click.testing import CliRunner
from processes import environment, run_beaver

from beaver_hooks import Host
from beaver_hooks.audit.memory_sink import MemorySink
from beaver_hooks.config import Config
from beaver_hooks.config.converter import structure
from beaver_hooks.config.model import Memory
from beaver_hooks_local import make_plugin
from beaver_hooks_local.cli import group
from beaver_hooks_local.settings import PATH, LocalSettings
from beaver_hostspecs import CommandContext, ConfigurationError, Scope, Trust
from beaver_hostspecs.testing import make_canary
from beaver_memory.errors import StoreError

DATA = Path(__file__).with_name("data")
STABLE = "Billing is deployed from the branch stable."
QUESTION = "From which branch is billing deployed?"
WORDS = {"enabled": True, "embedding": {"provider": "none"}}


@contextlib.contextmanager
def new_schema():
    """Name a schema that no other test uses, and drop it at the end."""
    url, schema = postgres_server.shared(), f"beaver_{uuid.uuid4().hex}"
    yield {"url": url, "schema": schema}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


@pytest.fixture
def database():
    with new_schema() as found:
        yield found


@pytest.fixture
def make_host(tmp_path):
    """Makes hosts with the plugin and nothing else, on a state folder; a `store` is a section of PostgreSQL."""

    def make(store=None, sinks=(), state="state", **section):
        given = {} if store is None else {"store": {"postgres": {"tenant": "acme", **store}}}
        config = Config(memory=Memory(sections={"local": WORDS | given | section}))
        return Host({"local": make_plugin()}, config=config, state_folder=tmp_path / state, sinks=sinks)

    return make


async def run_turn(host, prompt=QUESTION, answer="Yes.", **fields):
    async with host.turn(prompt, **{"session": "s1", "user": "ann", "trust": "full", **fields}) as turn:
        await turn.commit(answer)
    await host.drain()
    return " ".join(message.text for message in turn.references)


async def write(host, title=STABLE, tenant=None, **fields):
    async with host.turn("Keep it.", session="s0", user="ann", trust="full", scope=Scope(tenant=tenant)) as turn:
        answer = await host.run_tool(turn.id, "memory_write", {"title": title, **fields})
        await turn.commit("Done.")
    await host.drain()
    return answer


async def command(host, *words):
    return await host.run_command("local", words[0], words[1:], CommandContext(user="ann", trust=Trust.FULL))


# --- By one setting ---------------------------------------------------------------------------------------------


ID = re.compile(r"""(['"]id['"]: |\[|Memory |id="|^)(\d+)(?=\D|$)(?!\] kind)""", re.MULTILINE)
VARYING = re.compile(r"\b\d\.\d+|\b\d\d:\d\d\b|[0-9a-f]{16,}|bytes: [\d,]+|\d\d\d\d-\d\d-[-\dT:.+]+")


def comparable(texts):
    """Return texts with their ids in the order in which they occur: PostgreSQL leaves out numbers."""
    ids = list(dict.fromkeys(found[2] for text in texts for found in ID.finditer(text)))
    return [VARYING.sub("…", ID.sub(lambda found: f"{found[1]}{ids.index(found[2])}", text)) for text in texts]


async def talked(host):
    """Return what a conversation, its tools and its commands give."""
    async with host:
        found = [await write(host), await write(host), await write(host, "Ann likes tea.", type="preference")]
        found += [await run_turn(host), await command(host, "search", "tea"), await command(host, "pin", "1")]
        found += [await command(host, "recent"), await command(host, "forget", "1", "yes"), await run_turn(host)]
        found += [await command(host, "status"), host.health()["local"].state]
    return comparable([str(each) for each in found])


@pytest.mark.campaign
async def test_the_same_conversation(make_host, database, tmp_path):
    """Turns, tools and commands give the same over SQLite and over PostgreSQL, by one setting."""
    # One database for all memories, as PostgreSQL is.
    files = await talked(make_host(state="files", databasePath=str(tmp_path / "memory.db")))
    server = await talked(make_host(database, state="server"))

    assert files == server
    assert any(STABLE in each for each in files)


@pytest.mark.campaign
def test_the_same_commands(tmp_path, database):
    """Each command of the command line prints the same over SQLite and over PostgreSQL."""
    commands = (
        *(("add", STABLE, "--type", "fact"), ("add", "Ann likes tea.", "--user", "ann", "--json"), ("list",)),
        *(("search", "billing branch"), ("show", "1"), ("explain", "billing"), ("pin", "1"), ("stats",)),
        *(("check",), ("reindex",), ("export",), ("forget", "1", "--yes"), ("list", "--json")),
    )
    printed, forget = {}, commands.index(("forget", "1", "--yes"))
    for name, store in (("files", {}), ("server", {"store": {"postgres": {**database, "tenant": "acme"}}})):
        folder = tmp_path / name
        folder.mkdir()
        place = {} if store else {"databasePath": str(folder / "memory.db")}
        config = {"memory": {"mode": "curated", "local": WORDS | store | place}, "host": {"stateFolder": str(folder)}}
        (folder / "config.json").write_text(json.dumps(config))
        env = environment(BEAVER_CONFIG=folder / "config.json", XDG_STATE_HOME=folder / "xdg", COLUMNS=120)
        ran = [run_beaver("memory", "local", *words, cwd=folder, env=env) for words in commands]
        assert [0] * len(commands) == [each.code for each in ran]
        printed[name] = comparable([each.out for each in ran])

    # Other places hold a memory on a server than in files, so the counts of the places differ.
    forgot = {name: texts.pop(forget).splitlines()[0] for name, texts in printed.items()}
    assert forgot["files"] == forgot["server"]
    assert printed["files"] == printed["server"]


async def test_projects_and_machines(make_host, database):
    """Memories of a project are seen from every machine with its name; global ones from every project."""
    async with (
        make_host(database, project="billing") as one,
        make_host(database, project="billing", state="other") as other,
        make_host(database, project="web", state="web") as web,
    ):
        await write(one)
        await write(one, "Ann likes tea.", type="preference")
        for host, seen in ((one, True), (other, True), (web, False)):
            assert seen == (STABLE in await run_turn(host))
            assert "Ann likes tea." in await run_turn(host, "What does Ann like?", session="s2")


async def test_tenants(make_host, database):
    """A memory of another tenant is found by no turn, tool, command or count, whatever tenant a turn names."""
    async with make_host(database) as acme, make_host({**database, "tenant": "other"}, state="other") as other:
        await write(acme)
        for tenant in (None, "acme", "other"):
            assert "" == await run_turn(other, scope=Scope(tenant=tenant))
        assert "memories: 0\ntrouble: none" == await command(other, "status")
        # The tenant of a turn is a part of that of the settings.
        await write(acme, "Of the part.", tenant="part")
        assert "Of the part." in await run_turn(acme, "What is of the part?", scope=Scope(tenant="part"))
        assert "Of the part." not in await run_turn(acme, "What is of the part?")


# --- Settings ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("section", "problem"), rows(DATA / "refused_stores.jsonl", "section", "problem"))
def test_settings_that_do_not_fit(section, problem):
    """A wrong setting is named with its remedy; its value is not shown."""
    with pytest.raises(ConfigurationError) as caught:
        structure(LocalSettings, {"store": {"postgres": section}}, PATH, environment={})

    assert str(caught.value).startswith(f"{PATH}.{problem}")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p@localhost:5433/d",
        "postgres://127.0.0.1/d",
        "postgresql://[::1]:5432/d",
        "postgresql://u@/d?host=/run/postgresql",
        "postgresql://db.example/d?sslmode=verify-full",
        "postgresql://a.example,b.example:5433/d?sslmode=require&target_session_attrs=read-write",
    ],
)
def test_settings_that_fit(url):
    """Addresses on this machine need no TLS; others have it required."""
    store = {"url": {"env": "MEMORY_URL"}, "tenant": "acme"}
    found = structure(LocalSettings, {"store": {"postgres": store}}, PATH, environment={"MEMORY_URL": url})

    assert url == found.store.postgres.url.reveal()


@pytest.mark.parametrize(
    ("more", "problem"), [({"databasePath": "/memory.db"}, "`databasePath`"), ({"vectors": "sqlite-vec"}, "`vectors`")]
)
def test_settings_of_files_beside_a_server(more, problem):
    """Settings that only a file has are refused beside a server."""
    store = {"postgres": {"url": "postgresql://localhost/d", "tenant": "a"}}
    with pytest.raises(ConfigurationError) as caught:
        structure(LocalSettings, {"store": store, **more}, PATH, environment={})

    assert problem in str(caught.value)


# --- Outages ----------------------------------------------------------------------------------------------------


@pytest.fixture
def server():
    """A server of this test's own, which it may kill."""
    with postgres_server.running(postgres_server.cluster(Path(os.environ[postgres_server.FOLDER]))) as running:
        yield running


def troubles_of(sink):
    return [each.facts["category"] for each in sink.events if each.name == "memory_store_unavailable"]


@pytest.mark.campaign
async def test_a_server_that_is_down_at_start(make_host, server, caplog):
    """The host opens, turns go on without memories, and recall works as soon as the server runs.

    The trouble is one line in the log; another one says that the messages of the turns could not be captured.
    """
    server.stop()
    sink = MemorySink()
    with caplog.at_level(logging.WARNING):
        async with make_host({"url": server.url}, sinks=[sink]) as host:
            assert ["", ""] == [await run_turn(host), await run_turn(host)]
            assert "degraded" == host.health()["local"].state
            assert "trouble: store_refused" in await command(host, "status")
            lines = [record.getMessage().split()[0] for record in caplog.records]
            server.start()
            assert "memories: 0\ntrouble: none" == await command(host, "status")
            await write(host)
            assert STABLE in await run_turn(host)
            assert "ok" == host.health()["local"].state

    assert ["refused"] == troubles_of(sink)
    assert ["event=beaver_hooks.plugin_degraded"] == lines


@pytest.mark.campaign
async def test_a_server_that_is_killed(make_host, server):
    """Turns go on while the server is down, a write says that nothing was stored, and all is there afterwards."""
    sink = MemorySink()
    async with make_host({"url": server.url}, sinks=[sink]) as host:
        await write(host)
        server.kill()
        # The server's processes end one after the other.
        while await run_turn(host, session="s2"):
            pass
        assert ["", "", "", ""] == [await run_turn(host, session=f"s{number}") for number in range(4)]
        with pytest.raises(StoreError) as caught:
            await write(host, "Lost.")
        assert ("refused", "degraded") == (caught.value.category, host.health()["local"].state)
        assert not host.health()["local"].suspension.active
        server.start()
        assert STABLE in await run_turn(host, session="s9")
        assert "memories: 1\ntrouble: none" == await command(host, "status")
        await write(host, "Kept.")
        assert ("ok", "memories: 2\ntrouble: none") == (host.health()["local"].state, await command(host, "status"))

    assert 1 <= len(troubles_of(sink)) <= 2


async def test_a_server_that_does_not_answer(make_host):
    """A server that accepts a connection and says nothing costs a turn the bounded time to connect, once."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/d"
        async with make_host({"url": url, "connectSeconds": 1}) as host, asyncio.timeout(30):
            assert [""] * 20 == [await run_turn(host, session=f"s{number}") for number in range(20)]
            assert "degraded" == host.health()["local"].state


async def test_no_password_is_shown(make_host, tmp_path, caplog):
    """The password is in no log, event, health, answer or file."""
    canary = make_canary()
    sink = MemorySink()
    url = f"postgresql://u:{quote(canary.secret.reveal(), safe='')}@127.0.0.1:9/d"
    with caplog.at_level(logging.DEBUG):
        async with make_host({"url": url}, sinks=[sink]) as host:
            shown = [await run_turn(host), await command(host, "status"), host.health()]
            with pytest.raises(StoreError) as caught:
                await write(host)
    files = [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()]

    canary.assert_clean(repr([*shown, caught.value, sink.events, caplog.text, *files]))


# --- doctor -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ({"env": "MEMORY_URL"}, [("ok", "postgresql://db.example:5433/mem, tenant acme, project billing")]),
        ({"env": "UNSET"}, [("problem", "the environment variable UNSET is not set, so no memory can be read")]),
        (
            "postgresql://u:secretword@localhost/mem",
            [
                ("ok", "postgresql://localhost/mem, tenant acme, project billing"),
                ("warning", "the password is in the configuration file itself"),
            ],
        ),
        ("no address", [("problem", "its `url` is no address of a database")]),
    ],
)
def test_doctor(tmp_path, url, expected):
    """`beaver doctor` shows host, database and tenant, and never the user or the password."""
    store = {"postgres": {"url": url, "tenant": "acme"}}
    memory = {"mode": "curated", "local": {"enabled": True, "project": "billing", "store": store}}
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"memory": memory, "host": {"stateFolder": str(tmp_path / "state")}}))
    address = "postgresql://u:secretword@db.example:5433/mem?sslmode=verify-full"
    env = environment(BEAVER_CONFIG=config, MEMORY_URL=address, XDG_STATE_HOME=tmp_path / "xdg")
    ran = run_beaver("doctor", "--json", cwd=tmp_path, env=env)

    found = [(each["level"], each["text"]) for each in ran.json["findings"] if "memory.local.store" in each["subject"]]
    assert (expected, False) == (found, "secretword" in ran.out + ran.err)


# --- migrate ----------------------------------------------------------------------------------------------------


@pytest.mark.campaign
def test_migrate(tmp_path, database):
    """`beaver memory migrate` copies a memory once, and the same configuration with the server lists the same of its tenant."""
    config = tmp_path / "config.json"
    env = environment(BEAVER_CONFIG=config, MEMORY_URL=database["url"], XDG_STATE_HOME=tmp_path / "xdg", COLUMNS=120)

    def beaver(*words, stdin="", **store):
        given = WORDS | ({"store": {"postgres": {**store, "tenant": "acme"}}} if store else {})
        memory = {"mode": "curated", "local": given}
        config.write_text(json.dumps({"memory": memory, "host": {"stateFolder": str(tmp_path / "state")}}))
        return run_beaver("memory", "local", *words, cwd=tmp_path, env=env, stdin=stdin)

    lines = "".join(json.dumps({"title": f"Fact {number}."}) + "\n" for number in range(3))
    assert 0 == beaver("add", "--json-lines", stdin=lines).code
    place = ("migrate", "--tenant", "acme", "--schema", database["schema"], "--to")
    dry = beaver(*place, "env:MEMORY_URL", "--dry-run")
    ran = beaver(*place, "-", stdin=database["url"] + "\n")
    again = beaver(*place, "env:MEMORY_URL", "--json")

    held = "This memory holds 3 memories of 1 owner, 0 forgotten, 0 summaries.\n"
    assert (0, f"{held}Nothing was copied; without --dry-run 3 rows would be.\n") == (dry.code, dry.out)
    told = f"{held}Copied 3 rows.\nEvery memory was read from both stores: there is no difference.\n"
    assert (0, told) == (ran.code, ran.out)
    assert (0, []) == (again.json["copied"], again.json["differences"])
    listed, there = beaver("list", "--json").json, beaver("list", "--json", **database).json
    for memory in listed["memories"]:
        memory["owner"]["tenant"] = "acme"
    assert listed == there


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--to", "postgresql://u:pw@localhost/d"), "Other users can read a password on the command line"),
        (("--to", "postgresql://u@localhost/d?password=pw"), "Other users can read a password on the command line"),
        (("--to", "env:NO_SUCH_VARIABLE"), "The variable that --to names is not set."),
        (("--to", "nowhere"), "An option does not fit: must be an address like postgresql://user@host:5432/database"),
        (("--to", "postgresql://db.example/d"), "An option does not fit: `url` leads to another machine without TLS"),
    ],
)
def test_addresses_that_migrate_refuses(words, problem):
    """A password on the command line, and an address that does not fit, are refused before anything is opened."""
    ran = CliRunner().invoke(group, ["migrate", "--tenant", "acme", *words])

    assert (2, True, False) == (ran.exit_code, problem in ran.output, "pw" in ran.output)
