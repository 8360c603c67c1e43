"""The early answers of `beaver mcp`, while its plugins load: real processes, and the limits of each caller's trust."""

import json
import os
import selectors
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

pytest.importorskip("mcp_types", reason="the extra `mcp` is not installed")

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from beaver_hooks.adapters.mcp_server import Identity, recorded_answers
from beaver_hooks.adapters.mcp_server.early_answers import EarlyAnswers, as_request
from beaver_hooks.adapters.mcp_server.recorded_answers import RecordedAnswers
from beaver_hooks.config import load_config

COMMAND = [sys.executable, "-m", "beaver_hooks.cli"]
SECONDS = 20
CLIENT = {"name": "c", "version": "1"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
CALL = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "anyone"}}
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}

SLOW = """
    import os
    from beaver_hostspecs import PluginInfo, Tool, Trust, hookimpl

    with open(os.environ["GATE"]) as gate:
        gate.read()  # of a FIFO it waits for whoever writes

    class Slow:
        @hookimpl
        def describe(self):
            return PluginInfo(version="1", contract="1.0", rules=("Mind the gate.",))

        @hookimpl
        def provide_tools(self):
            names = ("anyone", "owner", *os.environ.get("MORE", "").split())
            return tuple(
                Tool(name=name, description=f"for {name}", parameters={}, run=self.run, allows=self.may(name))
                for name in names
            )

        def may(self, name):
            return lambda caller: name != "owner" or caller.trust is Trust.FULL

        async def run(self, arguments, turn, report):
            return "It ran."
"""


@pytest.fixture
def site(tmp_path):
    """Install a plugin whose import waits at a gate, and return the folder of its code."""
    site = tmp_path / "site"
    info = site / "beaver_hooks_slow-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "installed_slow.py").write_text(textwrap.dedent(SLOW))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: beaver-hooks-slow\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[beaver_hooks]\nslow = installed_slow:Slow\n")
    return site


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "mine" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"plugins": {"disabled": ["gateway", "local", "tally"]}}))
    return path


@pytest.fixture
def environment(tmp_path, site, config):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BEAVER_", "XDG_"))}
    search = os.pathsep.join(filter(None, [str(site), kept.get("PYTHONPATH")]))
    own = {"HOME": str(tmp_path), "BEAVER_CONFIG": str(config), "PYTHONPATH": search, "GATE": os.devnull}
    # No byte code: a file may be edited twice in the time that its date distinguishes.
    return {**kept, **own, "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture
def places(environment, config, site):
    """Return the places that decide the answers."""
    return {"environment": environment, "config": config, "site": site}


class Server:
    """A running `beaver mcp`."""

    def __init__(self, folder, environment, *words):
        self.process = subprocess.Popen(
            [*COMMAND, "mcp", *words], cwd=folder, env=environment, bufsize=0,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def say(self, *messages):
        for message in messages:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")

    def hear(self, number=1):
        """Return the next messages; fail if one does not come in time."""
        heard = []
        with selectors.DefaultSelector() as ready:
            ready.register(self.process.stdout, selectors.EVENT_READ)
            for _ in range(number):
                assert ready.select(SECONDS), f"after {heard} there came nothing"
                heard.append(json.loads(self.process.stdout.readline()))
        return heard

    def end(self):
        """Return the messages after the last one that `hear` returned."""
        out, _ = self.process.communicate(timeout=SECONDS)
        return [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def start(tmp_path, environment):
    """Return a function that starts a server; the servers are killed after the test."""
    servers = []

    def run(*words, **more):
        servers.append(Server(tmp_path, environment | more, *words))
        return servers[-1]

    yield run
    for server in servers:
        server.process.kill()
        server.process.communicate(timeout=SECONDS)


def first_answers(server):
    """Return the first answers of a connection, and the messages that follow unasked."""
    server.say(HELLO, READY, LIST)
    answers = server.hear(2)
    return answers, server.end()


def listed(answer):
    """Return the names of the listed tools, without that of the curated memory."""
    return [tool["name"] for tool in answer["result"]["tools"] if tool["name"] != "memory"]


# --- Before anything is loaded -----------------------------------------------------------------------------------


@pytest.mark.parametrize("client", [CLIENT, {"name": "c", "version": "2"}], ids=["the same", "a newer one"])
def test_the_first_answers_wait_for_no_plugin(start, tmp_path, client):
    """While the import of a plugin hangs, a client gets the answers of the last run, and a call waits for the host."""
    before, _ = first_answers(start())
    os.mkfifo(gate := tmp_path / "gate")
    server = start(GATE=str(gate))
    server.say({**HELLO, "params": {**HELLO["params"], "clientInfo": client}}, READY, LIST, CALL)
    early = server.hear(2)
    gate.write_text("")
    (called,) = server.hear()

    assert before == early
    assert (["anyone", "owner"], True) == (listed(early[1]), "Mind the gate." in early[0]["result"]["instructions"])
    assert (3, [{"type": "text", "text": "It ran."}]) == (called["id"], called["result"]["content"])
    assert [] == server.end()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_real_client(environment, tmp_path, mode):
    """A client gets the same answers from a first run and from a recorded one, in both eras of the protocol."""
    server = StdioServerParameters(command=sys.executable, args=[*COMMAND[1:], "mcp"], env=environment, cwd=tmp_path)
    heard = []
    for _ in range(2):
        async with Client(server, mode=mode) as client:
            tools = (await client.list_tools()).tools
            called = (await client.call_tool("owner")).content[0].text
            heard.append((client.instructions, tools, called))

    assert heard[0] == heard[1]
    assert (True, "It ran.") == ("Mind the gate." in heard[0][0], heard[0][2])


def test_a_list_that_has_changed_is_announced(start):
    """If a plugin's tools differ from the record, the client is notified, lists again, and the next run knows them."""
    first_answers(start())
    server = start(MORE="late")
    server.say(HELLO, READY, LIST)
    _, early, told = server.hear(3)
    server.say({**LIST, "id": 3})
    (again,) = server.hear()
    server.end()
    (hello, third), after = first_answers(start(MORE="late"))

    assert (["anyone", "owner"], CHANGED) == (listed(early), told)
    assert (["anyone", "owner", "late"],) * 2 == (listed(again), listed(third))
    assert ({"listChanged": True}, []) == (hello["result"]["capabilities"]["tools"], after)


# --- No more than the caller may know ----------------------------------------------------------------------------


def less_trust(**_):
    return ["--trust", "public"]


def another_user(environment, **_):
    subprocess.run([*COMMAND, "memory", "off", "--user", "anna"], env=environment, check=True, capture_output=True)
    return ["--user", "anna"]


def memory_off(environment, **_):
    subprocess.run([*COMMAND, "memory", "off"], env=environment, check=True, capture_output=True)
    return []


def another_configuration(config, **_):
    config.write_text(json.dumps({"plugins": {"disabled": ["gateway", "local", "tally", "slow"]}}))
    return []


def stricter_code(site, **_):
    path = site / "installed_slow.py"
    dates = path.stat()
    path.write_text(path.read_text().replace("Trust.FULL", "None      "))  # neither its size nor its date tells
    os.utime(path, ns=(dates.st_atime_ns, dates.st_mtime_ns))
    return []


def uninstalled(site, **_):
    (site / "beaver_hooks_slow-1.0.dist-info" / "entry_points.txt").unlink()
    (site / "beaver_hooks_slow-1.0.dist-info" / "METADATA").unlink()
    (site / "beaver_hooks_slow-1.0.dist-info").rmdir()
    return []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (less_trust, ["anyone"]),
        (another_user, []),
        (memory_off, []),
        (another_configuration, []),
        (stricter_code, ["anyone"]),
        (uninstalled, []),
    ],
)
def test_no_tool_is_listed_that_is_not_for_the_caller(start, places, change, expected):
    """After a change that removes tools, the first list lacks them, whatever was recorded."""
    before, _ = first_answers(start())
    words = change(**places)
    (_, answer), after = first_answers(start(*words))

    assert (["anyone", "owner"], expected, []) == (listed(before[1]), listed(answer), after)


def test_a_tool_that_is_not_for_the_caller_is_not_run(start):
    """The host refuses a call of a listed tool that the caller may no longer use."""
    first_answers(start("--trust", "full"))
    server = start("--trust", "public")
    server.say(HELLO, READY, {**CALL, "params": {"name": "owner"}})
    _, refused = server.hear(2)

    assert "there is no such tool; the tools are: anyone" == refused["error"]["message"]


# --- The configuration of a client -------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [[], ["--config", "other/config.json"]], ids=["variable", "option"])
async def test_a_variable_names_the_configuration(environment, tmp_path, words):
    """BEAVER_CONFIG in a client's `env` works like `--config`, which wins over it."""
    mine, other, elsewhere = (tmp_path / name for name in ("mine", "other", "elsewhere"))
    for folder in (other, elsewhere):
        folder.mkdir()
    for folder in (mine, other):
        (folder / "config.json").write_text(json.dumps({"plugins": {"disabled": ["slow", "tally"]}}))
    words = [str(tmp_path / word) if "/" in word else word for word in words]
    server = StdioServerParameters(
        command=sys.executable, args=[*COMMAND[1:], "mcp", *words], env=environment, cwd=elsewhere
    )
    async with Client(server) as client:
        await client.call_tool("memory", {"target": "memory", "action": "add", "content": "Where I am."})

    kept = [str(each.relative_to(tmp_path)) for each in tmp_path.rglob("MEMORY.md")]
    assert [f"{'other' if words else 'mine'}/.beaver/plugins/curated/MEMORY.md"] == kept
    assert [] == [*elsewhere.iterdir()]


# --- The record --------------------------------------------------------------------------------------------------


@pytest.fixture
def record(tmp_path, config):
    """Return a function that opens the record of a user, as a run does at its start."""

    def of(user="anna", started=None):
        environment = {"HOME": str(tmp_path)}
        loaded = load_config(config, environment=environment, cwd=tmp_path)
        record = RecordedAnswers.of(loaded, Identity(user=user), environment)
        record.started = time.time_ns() if started is None else started
        return record

    return of


def saved(record, answer="answer"):
    record.keep("request", answer)
    news = record.is_news
    record.save()
    return news, record.is_news


def test_an_answer_is_recorded_once(record):
    """Saving the same answer again is no news, another answer is, and saving `None` forgets it."""
    news = [saved(record()), saved(record()), saved(record(), "other")]
    known = record().get("request")
    forgetting = saved(record(), None)

    assert [(True, False), (False, False), (True, False)] == news
    assert ("other", (True, False), None) == (known, forgetting, record().get("request"))


def test_the_first_answer_of_a_run_counts(record):
    """The first answer of a run is recorded, and later ones are not."""
    this = record()
    this.keep("request", "first")
    saved(this, "second")

    assert "first" == record().get("request")


def test_a_retired_record_answers_no_more(record):
    """A retired record answers no request, and keeps the packages of the plugins."""
    saved(record())
    this = record()
    known = this.get("request")
    this.retire({"beaver_hooks_curated"})

    assert ("answer", None, True) == (known, this.get("request"), "beaver_hooks_curated" in this.packages)


def test_nothing_is_recorded_of_code_that_is_newer_than_the_run(record):
    """No answer is recorded if the code has changed since the run began."""
    saved(record(started=0))

    assert None is record().get("request")


def test_nothing_is_recorded_once_the_configuration_has_changed(record, config):
    """A run whose configuration has changed records no answer, neither for the old nor for the new one."""
    this, before = record(), config.read_text()
    config.write_text("{}")
    saved(this)
    now = record().get("request")
    config.write_text(before)

    assert (None, None) == (now, record().get("request"))


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"{}", b'{"version": 0}', b"[" * 100_000], ids=repr)
def test_a_damaged_record_knows_nothing(record, damage):
    """A damaged record is empty, and the next answer replaces it."""
    saved(record())
    (path,) = record().folder.iterdir()
    path.write_bytes(damage)
    known = record().get("request")
    saved(record())

    assert (None, "answer") == (known, record().get("request"))


def test_a_record_of_a_module_that_is_gone_knows_nothing(record):
    """A record that names a missing file answers nothing."""
    saved(record())
    (path,) = record().folder.iterdir()
    content = json.loads(path.read_text())
    files = {"/nowhere/installed.py": [1, 2, 3, 4]}
    path.write_text(json.dumps({**content, "files": {**content["files"], **files}}))

    assert None is record().get("request")


def test_a_record_that_cannot_be_written_is_logged(record, tmp_path, caplog):
    """A record that cannot be written is logged, and the answer is kept for the connection."""
    (tmp_path / ".local").write_text("no folder")
    caplog.set_level("INFO", "beaver_hooks")
    news = saved(record())

    assert ((True, False), True) == (news, "mcp_answers_not_recorded error=NotADirectoryError" in caplog.text)


def test_the_records_that_are_used_last_are_kept(record, monkeypatch):
    """Only the records that were used last are kept, and the oldest is deleted."""
    monkeypatch.setattr(recorded_answers, "MOST_RECORDS", 2)
    for number, user in enumerate(("anna", "ben")):
        saved(record(user))
        os.utime(record(user).folder / f"{record(user).begun}.json", (number, number))
    record("anna")
    saved(record("carl"))

    assert ["answer", None, "answer"] == [record(user).get("request") for user in ("anna", "ben", "carl")]


def test_a_search_path_may_have_what_is_no_folder(record, monkeypatch, tmp_path):
    """Answers are recorded with a search path that holds a missing archive or an empty name."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "none.zip"), ""])
    saved(record())

    assert "answer" == record().get("request")


# --- Messages between the client and the SDK ---------------------------------------------------------------------


class Out:
    """Collects the messages that are sent to the client."""

    def __init__(self):
        self.sent = []

    def send(self, text):
        self.sent.append(json.loads(text))

    async def write(self, text):
        self.send(text)

    async def flush(self):
        pass


async def passed(record, *messages):
    """Return the messages that a client gets for these requests and messages of the SDK."""
    out = Out()
    early = EarlyAnswers(out, record)
    for side, message in messages:
        if side == "client":
            early.arrived(json.dumps(message))
        else:
            await early.write(f"{json.dumps(message)}\n")
            await early.flush()
    return out.sent


def answer(number, result):
    return {"jsonrpc": "2.0", "id": number, "result": result}


async def test_requests_of_the_server_pass(record):
    """A request of the SDK passes to the client, even with the number of a pending answer."""
    asked, ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}, {"jsonrpc": "2.0", "method": "notifications/message"}
    sent = await passed(record(), ("client", LIST), ("sdk", asked), ("sdk", ping), ("sdk", answer(2, {"tools": []})))

    assert [asked, ping, answer(2, {"tools": []})] == sent


async def test_a_number_that_is_used_twice(record):
    """A second request with the number of a pending one gets no early answer."""
    await passed(record(), ("client", LIST), ("sdk", answer(2, {"tools": []})))

    assert [answer(2, {"tools": []})] == await passed(record(), ("client", LIST), ("client", LIST))


@pytest.mark.parametrize(("opening", "told"), [(HELLO, [CHANGED]), ({**HELLO, "method": "server/discover"}, [])])
async def test_only_a_client_that_shakes_hands_is_told(record, opening, told):
    """Only a client that made a handshake is notified that a list has changed."""
    await passed(record(), ("client", opening), ("client", LIST), ("sdk", answer(1, {})), ("sdk", answer(2, {"a": 1})))
    failed = {"jsonrpc": "2.0", "id": 2, "error": {"code": 1, "message": "no"}}
    sent = await passed(record(), ("client", opening), ("client", LIST), ("sdk", answer(1, {"b": 1})), ("sdk", failed))

    assert [answer(1, {}), answer(2, {"a": 1}), *told] == sent
    assert [answer(1, {"b": 1})] == await passed(record(), ("client", opening), ("client", LIST))


META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": CLIENT}


@pytest.mark.parametrize(
    ("params", "other", "same"),
    [
        ({"clientInfo": CLIENT}, {"clientInfo": {"name": "d", "version": "2"}}, True),
        ({"clientInfo": CLIENT}, {"clientInfo": {"name": "d"}}, False),
        ({"clientInfo": "c"}, {"clientInfo": "d"}, False),
        ({"_meta": META}, {"_meta": {**META, "progressToken": 7}}, True),
        ({"_meta": META}, {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "1"}}, False),
        ({"cursor": "a"}, {"cursor": "b"}, False),
        ({}, None, False),
    ],
)
def test_which_requests_are_the_same(params, other, same):
    """Two requests are the same if they differ only in the client's name or the progress token."""
    one, two = (as_request(json.dumps({**LIST, "params": each})) for each in (params, other))

    assert same is (one == two)


@pytest.mark.parametrize(
    "line",
    [
        '{"id": 1, "method": "ping"}',
        '"initialize"',
        '{"id": true, "method": "initialize"}',
        '{"id": null, "method": "initialize"}',
        '{"id": 1, "method": ["initialize"], "to": "tools/list"}',
        '{"method": "initialize"',
        '"initialize"' + "[" * 100_000,
    ],
    ids=lambda line: line[:40],
)
def test_other_lines_are_left_to_the_sdk(line):
    """Other lines are not requests for an early answer."""
    assert None is as_request(line)


def test_the_record_is_private(record):
    """The record's file and folder can be read by their user only."""
    saved(record())
    (path,) = record().folder.iterdir()

    assert (0o600, 0o700) == (path.stat().st_mode & 0o777, Path(path.parent).stat().st_mode & 0o777)
