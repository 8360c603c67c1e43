"""Two tenants, two projects and two users at every public door, on every store: no caller meets another one's words.

Each combination plants words that occur nowhere else, in memories, sessions, names of people and waiting turns. Then each
one uses every door. A row of `DOORS` is one door; `-s` prints the figures of a run.
"""

import asyncio
import contextlib
import itertools
import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import attrs
import postgres_server
import psycopg
import pytest
from click.testing import CliRunner

from beaver_hooks import Host
from beaver_hooks.config import Config
from beaver_hooks.config.converter import structure
from beaver_hooks.config.model import Memory
from beaver_hooks_local import make_plugin
from beaver_hooks_local.cli import group
from beaver_hooks_local.settings import PATH, LocalSettings
from beaver_hooks_local.visibility import Visibility
from beaver_hostspecs import CommandContext, Scope, Services, Trust
from beaver_memory.dispatch.dispatcher import Dispatcher
from beaver_memory.dispatch.envelopes import RequestEnvelope, Source
from beaver_memory.runtime import requests
from beaver_memory.runtime.capture_records import PendingRequest
from beaver_memory.runtime.table import Caller

TENANTS, PROJECTS, USERS = ("acme", "globex"), ("billing", "web"), ("ann", "bob")
IDS, FEW = range(1, 36), range(1, 36, 4)
KINDS = ("fact", "liking", "person", "session", "captured", "waiting")
EVERYWHERE = frozenset({"liking"})
"""Words that their user meets in the other project too."""
REFUSALS = ("There is no memory", "Another project of this database has memory")


@attrs.frozen
class Cell:
    """A user in a project of a tenant."""

    tenant: str
    project: str
    user: str

    def canary(self, kind):
        return f"zq{self.tenant}{self.project}{self.user}{kind}"

    def sees(self, other, kind):
        same = (self.tenant, self.user) == (other.tenant, other.user)
        return same and (self.project == other.project or kind in EVERYWHERE)


CELLS = [Cell(*each) for each in itertools.product(TENANTS, PROJECTS, USERS)]
CANARIES = [(cell, kind, cell.canary(kind)) for cell in CELLS for kind in KINDS]


# --- One process for each project of a tenant -------------------------------------------------------------------------


class Embeddings(ThreadingHTTPServer):
    """A provider of embeddings that keeps the texts that it was sent, by the model's name."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Embedding)
        self.texts = {}


class _Embedding(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.texts.setdefault(body["model"], []).extend(body["input"])
        rows = [{"index": number, "embedding": [1.0, 2.0]} for number, _ in enumerate(body["input"])]
        answer = json.dumps({"data": rows, "model": body["model"]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        """Say nothing."""


class SmallModel:
    """Finds nothing, and keeps what it was asked."""

    def __init__(self):
        self.asked = []

    async def complete(self, prompt, *, max_tokens):
        del max_tokens
        self.asked.append(prompt)
        return "{}"


class Process:
    """A host with the plugin, of one project of one tenant."""

    def __init__(self, world, tenant, project):
        self.tenant, self.project, self.model = tenant, project, SmallModel()
        self.scope = world.scope(tenant)
        self.embedder = f"{tenant}-{project}"
        section = {
            "enabled": True,
            "embedding": {
                "provider": "openai-compatible",
                "model": self.embedder,
                "dimensions": 2,
                "baseUrl": world.url,
            },
            "capture": {"extractor": "model", "minTurnMessages": 50},
            **world.place(tenant, project),
        }
        structure(LocalSettings, section, PATH, environment={})
        self.plugin = make_plugin()
        self.host = Host(
            {"local": self.plugin},
            config=Config(memory=Memory(sections={"local": section})),
            state_folder=world.folder / self.embedder,
            person_folder=world.folder / "person",
            services=Services(small_model=self.model),
        )

    def sight(self, cell):
        return Visibility.of_command(
            CommandContext(user=cell.user, scope=self.scope, session=cell.canary("session"), trust=Trust.FULL),
            self.plugin.memory.home,
        )

    @contextlib.asynccontextmanager
    async def turn(self, cell, prompt, **more):
        fields = {"session": cell.canary("session"), "user": cell.user, "trust": "full", "scope": self.scope}
        async with self.host.turn(prompt, **fields | more) as turn:
            yield turn

    async def tool(self, cell, name, /, where=None, **arguments):
        place = {} if where is None else {"session": where}
        async with self.turn(cell, "Use a tool.", **place) as turn:
            answer = await self.host.run_tool(turn.id, name, arguments)
            await turn.drop("abandoned")
        return str(answer)

    async def operate(self, operation, request):
        return str(await getattr(self.plugin.runtime, operation)(request))

    # The shell of the command line.

    def call(self, function):
        return asyncio.run_coroutine_threadsafe(function(self.plugin), self.loop).result()

    async def command_line(self, *words):
        self.loop = asyncio.get_running_loop()
        ran = await asyncio.to_thread(CliRunner().invoke, group, [*map(str, words)], obj=self)
        assert ran.exit_code in {0, 1} or any(each in ran.output for each in REFUSALS), ran.output
        return ran.output

    def quoting_sessions(self, *_, **__):
        return 0


@attrs.frozen(kw_only=True)
class World:
    """Where the processes keep their memories."""

    folder: object
    url: str
    store: str
    schema: dict

    def place(self, tenant, project):
        if self.store == "postgres":
            return {"project": project, "store": {"postgres": {**self.schema, "tenant": tenant}}}
        return {"project": project, "databasePath": str(self.folder / "memory.db")} if self.store == "file" else {}

    def scope(self, tenant):
        # A file has no tenant of its own: one is named by the turns, and one is that of turns that name none.
        return Scope() if self.store == "postgres" or tenant == TENANTS[0] else Scope(tenant=tenant)


@pytest.fixture(params=["files", "file", "postgres"])
def world(request, tmp_path):
    server = Embeddings()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    schema = {}
    if request.param == "postgres":
        schema = {"url": postgres_server.shared(), "schema": f"beaver_{uuid.uuid4().hex}"}
    made = World(folder=tmp_path, url=f"http://127.0.0.1:{server.server_port}", store=request.param, schema=schema)
    yield made, server
    server.shutdown()
    server.server_close()
    thread.join()
    if schema:
        with psycopg.connect(schema["url"], autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {schema['schema']} CASCADE")


# --- Planting ---------------------------------------------------------------------------------------------------------


async def plant(process, cell):
    """Plant the words of a cell: by the model's tool, by a captured turn and by one that waits."""
    note = {
        "title": f"The codeword of the harbour is {cell.canary('fact')}.",
        "related_people": [cell.canary("person")],
    }
    await process.tool(cell, "memory_write", **note)
    liking = {"title": f"I like tea of {cell.canary('liking')}.", "type": "preference"}
    await process.tool(cell, "memory_write", where="tea", **liking)
    async with process.turn(cell, f"Remember that the mill is called {cell.canary('captured')}.") as turn:
        await turn.commit("Noted.")
    await process.host.drain()
    async with process.turn(cell, f"We decided to call the depot {cell.canary('waiting')}.") as turn:
        await turn.commit("Good.")
    await process.host.drain()


# --- The doors --------------------------------------------------------------------------------------------------------


async def hook(process, cell, prompt, **more):
    async with process.turn(cell, prompt, **more) as turn:
        text = " ".join(each.text for each in turn.references) + turn.system_prompt("")
        await turn.drop("abandoned")
    return text


async def command(process, cell, name, *words):
    context = CommandContext(user=cell.user, scope=process.scope, session=cell.canary("session"), trust=Trust.FULL)
    return await process.host.run_command("local", name, words, context)


def tool(name, **arguments):
    return lambda process, cell: process.tool(cell, name, **arguments)


def slash(name, *words):
    return lambda process, cell: command(process, cell, name, *words)


def typed(*words):
    """A command of the command line; it takes the tenant of the settings, which a file has none of."""

    async def ran(process, cell):
        if process.scope.tenant is not None:
            return ""
        given = [cell.user if word == "USER" else word for word in words]
        return await process.command_line(*given)

    return ran


def each(door, ids=IDS):
    """A door that is asked for each id."""

    async def ran(process, cell):
        return "".join([await door(id_)(process, cell) for id_ in ids])

    return ran


def visible(process, cell, **more):
    return process.sight(cell).filters(process.plugin.memory.clock.now(), **more)


def operation(name, request):
    return lambda process, cell: process.operate(name, request(process, cell))


def sent(name, **fields):
    """An operation by its name; its source is the caller."""

    async def ran(process, cell):
        seen, sight = visible(process, cell), process.sight(cell)
        source = Source(caller=Caller.OWNER, visible=seen, own=seen, owner=sight.owner)
        envelope = RequestEnvelope(operation=name, request=fields, source=source)
        return str(await Dispatcher(process.plugin.runtime).dispatch(envelope))

    return ran


async def queue(process, cell):
    sight = process.sight(cell)
    return str(await process.plugin.serve(lambda memory: memory.operations.turns.waiting(sight.owner, sight.project)))


async def asked_to_forget(process, cell):
    found = []
    for id_ in IDS:
        with contextlib.suppress(Exception):
            found.append(await command(process, cell, "forget", str(id_)))
    return "".join(found)


PHRASES = ("codeword harbour", '"codeword of the harbour"', "zq*", '"the mill is"', "depot", "tea", "")

DOORS = {
    "hook: recall": lambda process, cell: hook(process, cell, "What is the codeword of the harbour?"),
    "hook: recall by name": lambda process, cell: hook(process, cell, "Which mill, which depot, and which tea?"),
    "hook: index": lambda process, cell: hook(process, cell, "Hello there.", session="another"),
    **{f"tool: search {words}": tool("memory_search", query=words) for words in PHRASES},
    "tool: get": tool("memory_get", ids=[*IDS][:20]),
    "tool: timeline": each(lambda id_: tool("memory_timeline", anchor=id_)),
    "tool: history": each(lambda id_: tool("memory_history", observation_id=id_)),
    "tool: people": tool("memory_people"),
    "tool: sessions": tool("memory_sessions"),
    **{f"slash: {name}": slash(name) for name in ("list", "active", "recent", "overview", "why", "pending", "status")},
    "slash: search": slash("search", "zq*"),
    "slash: forget": asked_to_forget,
    "line: list": typed("list", "--user", "USER", "--json"),
    "line: search": typed("search", "codeword harbour mill depot tea", "--user", "USER", "--json"),
    "line: search by prefix": typed("search", "zq*", "--user", "USER", "--json"),
    "line: show": each(lambda id_: typed("show", id_, "--user", "USER"), FEW),
    "line: explain": typed("explain", "codeword harbour", "--user", "USER"),
    "line: project": typed("project", "codeword harbour mill", "--user", "USER"),
    "line: timeline": each(lambda id_: typed("timeline", id_, "--user", "USER"), FEW),
    "line: history": each(lambda id_: typed("history", id_, "--user", "USER"), FEW),
    "line: people": typed("people", "--user", "USER"),
    "line: sessions": typed("sessions", "--user", "USER"),
    "line: queue": typed("queue", "--user", "USER", "--json"),
    "line: export": typed("export", "--user", "USER"),
    "line: forget": typed("forget", "--all", "--user", "USER", "--dry-run"),
    "line: stats": typed("stats", "--user", "USER", "--json"),
    "line: check": typed("check", "--json"),
    "runtime: recall": operation("recall", lambda *who: requests.RecallRequest(query="harbour", visible=visible(*who))),
    "runtime: project": operation(
        "project", lambda *who: requests.ProjectionRequest(user_query="mill depot tea harbour", visible=visible(*who))
    ),
    "runtime: get": operation("get", lambda *who: requests.GetRequest(ids=IDS, visible=visible(*who))),
    "runtime: list": operation("list", lambda *who: requests.ListRequest(visible=visible(*who, lapsed=True))),
    "runtime: people": operation("people", lambda *who: requests.PeopleRequest(visible=visible(*who))),
    "runtime: export": operation("export", lambda *who: requests.ExportRequest(visible=visible(*who, lapsed=True))),
    "runtime: damaged": operation("damaged", lambda *who: requests.DamagedRequest(visible=visible(*who))),
    "runtime: pending": operation("pending", lambda *who: PendingRequest(own=visible(*who))),
    "runtime: queue": queue,
    "dispatch: recall": sent("recall", query="zq*", operators=True),
    "dispatch: list": sent("list"),
    "dispatch: export": sent("export"),
    "dispatch: another project": sent("list", visible={"project": PROJECTS[0]}),
    "dispatch: every project": sent("list", visible={"project": ""}),
    "dispatch: forget": sent("forget", every=True, dry_run=True),
}


async def upkeep(process):
    """Capture the turns that are due, embed the memories that wait, and index all of them."""
    operations, turns = process.plugin.memory.operations, process.plugin.memory.operations.turns
    for place in await asyncio.to_thread(turns.due, process.plugin.memory.clock.now()):
        await asyncio.to_thread(turns.capture, place, limit=10)
    while await asyncio.to_thread(operations.embed_some):
        pass
    await process.plugin.runtime.recover(requests.RecoverRequest(embed=False, reindex=True))


# --- The suite --------------------------------------------------------------------------------------------------------


def crossed(door, text, may):
    """Return what of a text its reader must not meet."""
    return [(door, canary) for cell, kind, canary in CANARIES if canary in text and not may(cell, kind)]


def of_process(process, cell, kind):
    return cell.tenant == process.tenant and (cell.project == process.project or kind in EVERYWHERE)


async def test_no_words_cross(world):
    """No door, no model and no embedder gets words of another project, user or tenant; each caller gets its own."""
    place, embeddings = world
    calls, found, seen = 0, [], set()
    async with contextlib.AsyncExitStack() as opened:
        processes = []
        for tenant, project in itertools.product(TENANTS, PROJECTS):
            process = Process(place, tenant, project)
            await opened.enter_async_context(process.host)
            processes.append(process)
            for cell in CELLS:
                if (cell.tenant, cell.project) == (tenant, project):
                    await plant(process, cell)
        for process in [*processes, *processes]:
            # The second time, each finds what the others have left.
            await upkeep(process)
        for process, cell in itertools.product(processes, CELLS):
            if (cell.tenant, cell.project) != (process.tenant, process.project):
                continue
            for name, door in DOORS.items():
                text = await door(process, cell)
                calls += 1
                seen |= {canary for _, _, canary in CANARIES if canary in text}
                found += crossed(f"{name} of {cell}", text, cell.sees)
        for process in processes:
            told = {"embedder": embeddings.texts.get(process.embedder, []), "small model": process.model.asked}
            for name, texts in told.items():
                calls += 1
                may = lambda cell, kind, process=process: of_process(process, cell, kind)  # noqa: E731
                found += crossed(f"{name} of {process.embedder}", " ".join(texts), may)
    doors = sorted({door.partition(" of ")[0] for door, _ in found})
    print(f"{place.store}: {len(CANARIES)} canaries, {calls} calls of doors, {len(found)} crossed")  # noqa: T201
    print(f"  at {', '.join(doors) or 'no door'}")  # noqa: T201

    assert found == []
    assert {canary for _, _, canary in CANARIES} <= seen
