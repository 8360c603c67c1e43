"""The loader: everything that an agent runs on, or an error that leaves nothing open."""

import asyncio
import importlib
import json
import os
import re
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import apsw
import pytest
from cancellation import CancelledAt
from integration.openai_server import serve, whole

from beaver_hooks.agent.errors import StorageError
from beaver_hooks.agent.factory import EngineLoader, skill_folders
from beaver_hooks.agent.loop import AgentLoop
from beaver_hooks.agent.providers.offline import NOTHING as KNOWS_NOTHING
from beaver_hooks.agent.sessions.database import DATABASE
from beaver_hooks.agent.sessions.store import SessionStore
from beaver_hooks.audit.memory_sink import MemorySink
from beaver_hooks.config import load_config
from beaver_hooks.receipts.health import Health
from beaver_hooks_curated import Curated
from beaver_hostspecs import (
    CommandContext,
    ConfigurationError,
    ConfigurationNotTrusted,
    PluginFailed,
    PluginMissing,
    SystemClock,
    Trust,
)
from beaver_hostspecs.distributions import install_command
from beaver_hostspecs.testing import Fault, FaultPlugin, FrozenClock, RecordingPlugin
from beaver_hostspecs.testing.factories import NOON

GATEWAY = """
import attrs
from beaver_hostspecs import PluginInfo, hookimpl

@attrs.frozen(kw_only=True)
class Settings:
    base_url: str = "none"

class Gateway:
    @hookimpl
    def describe(self):
        return PluginInfo(version="1", contract="1.0", settings=Settings, settings_path="memory.gateway")
"""
MEMORIES = ("curated", "gateway")
OWNER = CommandContext(trust=Trust.FULL)


class Case:
    """A folder with a configuration file, and the resources that an agent loaded from it may leave open."""

    def __init__(self, folder):
        self.folder = folder
        self.path = folder / "config.json"
        self.state = folder / "state"
        self.threads = self.threads_now()

    def write(self, **config):
        """Write the configuration, which disables the other plugin that this environment has installed."""
        plugins = {"disabled": ["tally"]} | config.pop("plugins", {})
        host = {"stateFolder": "state", "blockedAfterSeconds": 60} | config.pop("host", {})
        self.path.write_text(json.dumps({"plugins": plugins, "host": host, **config}))
        return self

    async def load(self, **options):
        return await EngineLoader(self.path, environment={}, **options).load()

    @staticmethod
    def threads_now():
        """The threads beyond the pool of the event loop."""
        return {each for each in threading.enumerate() if not each.name.startswith("asyncio")}

    def left_open(self):
        """Return all remaining tasks, threads, open files of the state folder, and locks on its databases."""
        found = [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]
        found += self.threads_now() - self.threads
        descriptors = Path("/proc/self/fd")
        for each in descriptors.iterdir() if descriptors.is_dir() else ():
            try:
                target = str(each.readlink())
            except FileNotFoundError:
                continue
            found += [target] * target.startswith(str(self.state))
        return found + [name for name in ("sessions.db", "host.db") if self.is_locked(self.state / name)]

    @staticmethod
    def is_locked(path):
        if not path.is_file() or not path.read_bytes().startswith(b"SQLite"):
            return False
        connection = apsw.Connection(str(path))
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except apsw.BusyError:
            return True
        finally:
            connection.close()
        return False


@pytest.fixture
def case(tmp_path):
    return Case(tmp_path).write()


def announce(folder, monkeypatch, points):
    """Install the distribution of the gateway: first on the path, it hides another one of its name."""
    info = folder / "beaver_hooks_gateway-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: beaver-hooks-gateway\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(folder)
    importlib.invalidate_caches()


@pytest.fixture
def no_gateway(tmp_path, monkeypatch):
    """No plugin `gateway` is installed."""
    announce(tmp_path / "nothing", monkeypatch, "[beaver_hooks]\n")


@pytest.fixture
def gateway(tmp_path, monkeypatch):
    """An installed distribution that announces a plugin `gateway`; returns its module's name."""
    module = f"fake_gateway_{os.urandom(6).hex()}"
    announce(tmp_path / "site", monkeypatch, f"[beaver_hooks]\ngateway = {module}:Gateway\n")
    (tmp_path / "site" / f"{module}.py").write_text(GATEWAY)
    yield module
    sys.modules.pop(module, None)


def states(engine):
    return {name: engine.status[name].state for name in MEMORIES if name in engine.status}


def shown(error):
    """All text of an error that a user or a log could see."""
    return "".join(traceback.TracebackException.from_exception(error, capture_locals=False).format())


# --- The loaded parts ---------------------------------------------------------------------------------------------


async def test_everything_is_there(case):
    """Host, sessions, tools, skills, provider and settings are open; a turn works; closing leaves nothing."""
    plugin, sink = RecordingPlugin(), MemorySink()
    case.write(agent={"systemPrompt": "Be brief.", "toolOutputCharacters": 100})
    async with await case.load(plugins={"p": plugin}, sinks=[sink], clock=FrozenClock()) as engine:
        result = await AgentLoop(engine).run("What is the capital of France?", "s")
        found = (
            engine.plugin("p") is plugin,
            type(engine.plugin("curated")),
            engine.plugin("gateway"),
            engine.settings.system_prompt,
            [*engine.tools.offered(OWNER)],
            engine.skills.list().skills,
            engine.loaded.path,
            engine.clock.now(),
        )

    expected = (True, Curated, None, "Be brief.", ["session_search", "memory"], (), case.path, NOON)
    assert (expected, KNOWS_NOTHING) == (found, result.text)
    # Closing drained: the plugin learned all turns before `close` returned.
    assert (
        1 == len(plugin.calls_of("after_prompt")) == len(plugin.calls_of("stop")) == len(sink.named("turn_committed"))
    )
    assert [] == case.left_open()


@pytest.mark.shows("000-029", "000-045", "000-056", "000-126", "001-041", "001-042", "001-043")
@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        (None, {"curated": "ok", "gateway": "ok"}),
        ({}, {"curated": "ok", "gateway": "ok"}),
        ({"mode": "hybrid", "gateway": {"baseUrl": "x"}}, {"curated": "ok", "gateway": "ok"}),
        ({"mode": "curated"}, {"curated": "ok", "gateway": "disabled"}),
        ({"mode": "memory_gateway"}, {"curated": "disabled", "gateway": "ok"}),
    ],
    ids=["no section", "implicit", "hybrid", "curated", "memory_gateway"],
)
async def test_every_mode(case, gateway, memory, expected):
    """The mode decides which memories load; `session_search` is always offered; blocked plugins are never imported."""
    case.write(**({} if memory is None else {"memory": memory}))
    async with await case.load() as engine:
        there = {name: engine.plugin(name) is not None for name in MEMORIES}
        tools = set(engine.tools.offered(OWNER))

        assert expected == states(engine)
        assert {name: state == "ok" for name, state in expected.items()} == there
        assert {"session_search", *(["memory"] if there["curated"] else [])} == tools
        assert there["gateway"] == (gateway in sys.modules)


@pytest.mark.shows("000-156", "001-120")
async def test_loading_again_changes_the_mode(case, gateway):
    """Close, change the file, load: other plugins, the same sessions."""
    case.write(memory={"mode": "curated"})
    seen = []
    for mode in ("memory_gateway", "hybrid", None):
        async with await case.load() as engine:
            await AgentLoop(engine).run(f"before {mode}", "s")
            seen.append([name for name in MEMORIES if engine.plugin(name) is not None])
            count = (await engine.sessions.show("s")).info.messages
        case.write(memory={"mode": mode})

    assert ([["curated"], ["gateway"], ["curated", "gateway"]], 6) == (seen, count)
    assert [] == case.left_open()


async def test_a_plugin_that_cannot_be_had_has_a_status(case, gateway):
    """The loader leaves out an optional plugin that fails to load; its status says why, and the plugin is `None`."""
    (case.folder / "site" / f"{gateway}.py").write_text("raise RuntimeError('broken')")
    async with await case.load() as engine:
        status = engine.status["gateway"]
        expected = Health(state="unavailable", since=status.since, reason=status.reason)

        assert (None, expected) == (engine.plugin("gateway"), status)
        assert "could not be loaded" in status.reason
        assert {"curated": "ok", "gateway": "unavailable"} == states(engine)


async def test_where_the_configuration_comes_from(case, monkeypatch):
    """The configuration is a path, a loaded configuration, a file that the environment names, or the defaults."""
    case.write(agent={"systemPrompt": "mine"})
    monkeypatch.chdir(case.folder)
    loaders = [
        EngineLoader(case.path),
        EngineLoader(load_config(case.path)),
        EngineLoader(environment={"BEAVER_CONFIG": "config.json"}),
        EngineLoader(environment={"HOME": str(case.folder)}),
    ]
    seen = []
    for loader in loaders:
        async with await loader.load() as engine:
            seen.append((engine.settings.system_prompt == "mine", engine.loaded.path, engine.loaded.state_folder))
            clock = engine.clock

    given = (True, case.path, case.state)
    assert [given, given, given, (False, None, case.folder / ".beaver")] == seen
    assert isinstance(clock, SystemClock)


async def test_skill_folders_belong_to_the_file(case, monkeypatch, tmp_path):
    """Skill folders are relative to the configuration, include the state folder's, and the first one wins."""
    for folder, name in (("mine", "a"), ("mine", "b"), ("state/skills", "b"), ("state/skills", "c")):
        (case.folder / folder / name).mkdir(parents=True)
        text = f"---\nname: {name}\ndescription: in {folder}\n---\nDo it.\n"
        (case.folder / folder / name / "SKILL.md").write_text(text)
    case.state.chmod(0o700)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    case.write(agent={"skillFolders": ["mine"]})
    async with await case.load() as engine:
        listed = engine.skills.list().skills
    case.write(agent={"skillFolders": ["state/skills"]})

    assert [("a", "in mine"), ("b", "in mine"), ("c", "in state/skills")] == [(e.name, e.description) for e in listed]
    assert (case.state / "skills",) == skill_folders(load_config(case.path))


# --- Refused configurations, and no remains -----------------------------------------------------------------------

INSTALL = "the plugin `gateway` is needed by the memory mode `{}`, but is not installed; run: " + install_command(
    "beaver-hooks-gateway"
)


@pytest.mark.usefixtures("no_gateway")
@pytest.mark.parametrize("mode", ["hybrid", "memory_gateway"])
async def test_a_plugin_that_the_mode_needs(case, mode):
    """Loading fails with the command that installs it, and leaves nothing open."""
    case.write(memory={"mode": mode})
    with pytest.raises(PluginMissing) as caught:
        await case.load()

    assert (INSTALL.format(mode), []) == (str(caught.value), case.left_open())


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"provider": {"kind": "openai", "model": "m", "baseUrl": "https://{}@h/v1"}}, "provider.baseUrl"),
        ({"provider": {"kind": "openai", "model": "m", "apiKey": ["{}"]}}, "provider.apiKey"),
        ({"agent": {"maxToolRounds": "{}"}}, "agent.maxToolRounds"),
        ({"memory": {"mode": "{}"}}, "memory.mode"),
        ({"memory": {"curated": {"overflow": "{}"}}}, "memory.curated.overflow"),
        ({"memory": {"gatway": {"userKey": "{}"}}}, "memory.gatway"),
        ({"plugins": {"tally": {"recallLimit": "{}"}, "disabled": []}}, "plugins.tally.recallLimit"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_wrong_configuration(case, canary, config, path):
    """The error is one sentence that names the field, never its value, and leaves nothing open."""
    text = json.dumps(config).replace("{}", "CANARY")
    case.write(**json.loads(text.replace("CANARY", canary.reveal().replace("\\", "").replace('"', ""))))
    with pytest.raises(ConfigurationError) as caught:
        await case.load()

    assert path == caught.value.path
    canary.assert_clean(str(caught.value), shown(caught.value))
    assert [] == case.left_open()


async def test_a_plugin_object_that_does_not_start(case):
    """Loading fails if a given plugin object does not start, closes all open parts, and works the next time."""
    with pytest.raises(PluginFailed):
        await case.load(plugins={"p": FaultPlugin(Fault.RAISE, "start")})
    left = case.left_open()
    async with await case.load() as engine:
        await AgentLoop(engine).run("hello")

    assert ([], []) == (left, case.left_open())


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (lambda state: state.write_text(""), "is not a folder; move it"),
        (lambda state: (state.mkdir(0o700), (state / DATABASE).write_bytes(b"no database" * 500)), "is damaged"),
        (lambda state: (state.mkdir(0o700), (state / DATABASE).mkdir()), "cannot be opened; check who owns it"),
        (lambda state: state.symlink_to("/proc"), "symbolic link"),
    ],
    ids=["file", "damaged", "folder", "link"],
)
async def test_a_state_folder_that_cannot_be_used(case, harm, sentence):
    """Loading with an unusable state folder fails with the remedy and leaves nothing open."""
    harm(case.state)
    with pytest.raises(StorageError, match=sentence):
        await case.load()

    assert [] == case.left_open()


@pytest.mark.parametrize("there", [True, False], ids=["on disk", "in the index alone"])
@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal"])
async def test_conversations_that_git_lists(case, end, there):
    """Loading refuses conversations that git lists, names the remedy, and leaves nothing open."""
    case.state.mkdir()
    path = case.state / f"{DATABASE}{end}"
    path.touch()
    for words in (["init", "-q"], ["add", "-f", case.state]):
        await asyncio.to_thread(subprocess.run, ["git", *words], cwd=case.folder, check=True)
    if not there:
        path.unlink()
    with pytest.raises(StorageError, match=f"`git rm --cached {re.escape(str(path))}`"):
        await case.load()

    assert [] == case.left_open()


async def test_a_state_folder_where_nothing_can_be_made(case):
    """In a folder that even root cannot write to, loading fails with the remedy."""
    case.write(host={"stateFolder": "/proc/state"})
    with pytest.raises(StorageError, match=r"make it writable, or set `host\.stateFolder` to another one"):
        await case.load()

    assert [] == case.left_open()


async def test_loading_cancelled_at_any_point(case, monkeypatch):
    """The cancellation comes out, and nothing stays open, not even a store that a thread opens after it."""
    opened, opening = [], SessionStore.open

    def spy(*args, **options):
        opened.append(opening(*args, **options))
        return opened[-1]

    monkeypatch.setattr(SessionStore, "open", spy)
    for point in range(1, 50):

        async def driven(point=point):
            return await CancelledAt(case.load(plugins={"p": RecordingPlugin()}), point)

        task = asyncio.create_task(driven())
        await asyncio.wait([task])
        if not task.cancelled():
            await task.result().close()
        assert [] == case.left_open()
        if not task.cancelled():
            break
    await asyncio.get_running_loop().shutdown_default_executor()

    assert (point, [True] * point) == (len(opened), [each._executor._shutdown for each in opened])
    assert point > 3


# --- A configuration that merely lies there -----------------------------------------------------------------------


async def test_a_configuration_that_nobody_trusts(case, monkeypatch, tmp_path):
    """Loading contacts, imports and makes nothing before the user confirms the file; then it loads like any other."""
    folder = tmp_path / "cloned" / ".beaver"
    folder.mkdir(parents=True, mode=0o700)
    monkeypatch.chdir(folder.parent)
    environment = {"XDG_STATE_HOME": str(tmp_path / "xdg"), "KEY": "sk-0123456789"}
    asked = []

    def answer(yes):
        return lambda summary: (asked.append(summary), yes)[1]

    async with serve(whole("hello")) as server:
        hostile = {
            "provider": {"kind": "openai", "baseUrl": server.base_url, "model": "m", "apiKey": {"env": "KEY"}},
            "plugins": {"disabled": ["tally"]},
        }
        (folder / "config.json").write_text(json.dumps(hostile))
        for confirm in (None, answer(False)):
            with pytest.raises(ConfigurationNotTrusted):
                await EngineLoader(confirm=confirm, environment=environment).load()
        refused = (server.connections, [each.name for each in folder.iterdir()], case.left_open())
        async with await EngineLoader(confirm=answer(True), environment=environment).load() as engine:
            before = server.connections
            result = await AgentLoop(engine).run("hi")

    assert ((0, ["config.json"], []), 0, "hello", 2) == (refused, before, result.text, len(asked))
    assert ["Bearer sk-0123456789"] == [each.headers["authorization"] for each in server.requests]


# --- Closing ------------------------------------------------------------------------------------------------------


async def test_closing_again_does_nothing(case):
    """Closing twice stops the plugins once."""
    plugin = RecordingPlugin()
    engine = await case.load(plugins={"p": plugin})
    await engine.close()
    await engine.close()

    assert (1, []) == (len(plugin.calls_of("stop")), case.left_open())


async def test_what_the_host_says_last_is_in_the_session(case):
    """An event during the final draining is a hidden event of the session too."""
    async with await case.load(plugins={"p": FaultPlugin(Fault.RAISE, "after_prompt")}) as engine:
        await AgentLoop(engine).run("hello", "s")
    async with await case.load() as engine:
        events = await engine.sessions.events("s")

    assert ["turn_committed", "plugin_failed"] == [each.name for each in events][-2:]


async def test_events_that_cannot_be_stored_do_not_keep_it_from_closing(case, caplog):
    """Closing logs the number of lost events, and closes all other parts."""
    plugin = RecordingPlugin()
    engine = await case.load(plugins={"p": plugin})
    await AgentLoop(engine).run("hello", "s")
    turn = await engine.host.open_turn("never answered", session="s")
    await engine.events.flush()
    engine.events.register(turn.id, "s")
    await engine.sessions.close()
    await engine.close()

    lines = [each.getMessage() for each in caplog.records if "session_events_lost" in each.getMessage()]
    assert ["error=StorageError", "count=1"] == [each.split(" ")[1] for each in lines]
    assert (1, []) == (len(plugin.calls_of("stop")), case.left_open())
