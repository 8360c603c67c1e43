"""`beaver mcp --http`: a real process, the SDK's real client, and refused callers."""

import asyncio
import json
import os
import re
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("mcp_types", reason="the extra `mcp` is not installed")

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from beaver_hostspecs.testing import make_canary

COMMAND = [sys.executable, "-m", "beaver_hooks.cli", "mcp", "--http", "--port", "0"]
LISTENING = re.compile(r"^Listening at (?P<url>http://\S+/mcp); the token is (?P<source>.+)\.$")
SECONDS = 20
CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": CLIENT}
ACCEPT = {"accept": "application/json, text/event-stream"}


LOOKING = """
    from beaver_hostspecs import PluginInfo, Tool, hookimpl

    class Looking:
        @hookimpl
        def describe(self):
            return PluginInfo(version="1", contract="1.0")

        @hookimpl
        def provide_tools(self):
            return (Tool(name="look", description="says who asks", parameters={}, run=self.look),)

        async def look(self, arguments, turn, report):
            return {"session": turn.session, "user": turn.user, "trust": turn.trust}
"""


@pytest.fixture
def environment(tmp_path):
    """Install a plugin that returns its caller; state and configuration are in a scratch folder."""
    config = tmp_path / "config.json"
    sections = {"memory": {"mode": "curated"}, "host": {"stateFolder": ".beaver"}}
    config.write_text(json.dumps({**sections, "plugins": {"disabled": ["tally"]}}))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BEAVER_", "XDG_"))}
    site = tmp_path / "site"
    info = site / "beaver_hooks_looking-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "installed_looking.py").write_text(textwrap.dedent(LOOKING))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: beaver-hooks-looking\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[beaver_hooks]\nlooking = installed_looking:Looking\n")
    search = os.pathsep.join(filter(None, [str(site), kept.get("PYTHONPATH")]))
    return {**kept, "HOME": str(tmp_path), "BEAVER_CONFIG": str(config), "PYTHONPATH": search}


class Running:
    """A server that listens."""

    def __init__(self, process):
        self.process = process
        self.before = []
        while not (found := LISTENING.match(line := process.stderr.readline().rstrip("\n"))):
            assert line, "it ended before it listened: " + "\n".join(self.before)
            self.before.append(line)
        self.url, self.source = found["url"], found["source"]

    @property
    def token(self):
        return Path(self.source.removeprefix("in ")).read_text().strip()

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        code = self.process.wait(SECONDS)
        return code, self.process.stdout.read(), self.process.stderr.read()


@pytest.fixture
def start(environment, tmp_path):
    """Return a function that starts a server and waits until it listens; the servers are killed after the test."""
    started = []

    def run(*words, **more):
        process = subprocess.Popen(
            [*COMMAND, *words], cwd=tmp_path, env={**environment, **more}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        started.append(process)
        return Running(process)

    yield run
    for process in started:
        process.kill()
        process.communicate()


def bearer(token):
    return {"authorization": f"Bearer {token}"}


def knock(url, headers, content=HELLO, method="POST"):
    with httpx2.Client() as http:
        return http.request(method, url, headers={**ACCEPT, **headers}, json=content)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_conversation_with_the_real_client(start, mode):
    """Tools, prompts and health over HTTP, with the token from the file."""
    running = start("--user", "u", "--trust", "full")
    async with (
        httpx2.AsyncClient(headers=bearer(running.token)) as http,
        Client(streamable_http_client(running.url, http_client=http), mode=mode) as asking,
    ):
        tools = [each.name for each in (await asking.list_tools()).tools]
        entry = {"target": "user", "action": "add", "content": "The user likes tea."}
        added = await asking.call_tool("memory", entry)
        shown = (await asking.get_prompt("memory_curated_show")).messages[0].content.text
        health = json.loads((await asking.read_resource("beaver://health")).contents[0].text)
        assert ({"memory", "look"}, False, True) == (
            {*tools},
            bool(added.is_error),
            "| 1. The user likes tea." in shown,
        )
        assert ("ok", True) == (health["plugins"]["curated"]["state"], "Curated memory" in asking.instructions)

    code, out, errors = running.end()

    assert (143, "", ["Interrupted."]) == (code, out, [line for line in errors.splitlines() if line])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
async def test_a_signal_ends_it_whoever_is_connected(start, tmp_path, number, code):
    """A signal ends the server in spite of an open stream, with the signal's exit code and one line on stderr."""
    running = start()
    headers = bearer(running.token)
    async with httpx2.AsyncClient(headers={**headers, **ACCEPT}) as http:
        answer = await http.post(running.url, json=HELLO)
        session = {"mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
        async with http.stream("GET", running.url, headers=session) as stream:
            assert 200 == stream.status_code
            ended = running.end(number)

    assert (code, "", ["Interrupted."]) == (ended[0], ended[1], [line for line in ended[2].splitlines() if line])


def test_the_token_is_made_once(start):
    """The token is made once, in a private file; the server prints the file's path and never the token."""
    first = start()
    token, path = first.token, first.source.removeprefix("in ")
    _, _, errors = first.end()
    second = start()

    assert (0o600, True, token) == (stat.S_IMODE(Path(path).stat().st_mode), len(token) > 40, second.token)
    assert token not in "\n".join([*first.before, errors, first.source, *second.before])


def test_the_token_of_the_environment(start, tmp_path):
    """The token of BEAVER_MCP_TOKEN is used first, and no file is created."""
    token = "t" * 16
    running = start(BEAVER_MCP_TOKEN=f" {token}\n")

    assert ("the one in BEAVER_MCP_TOKEN", 200) == (running.source, knock(running.url, bearer(token)).status_code)
    assert [] == [*tmp_path.rglob("mcp.token")]


def test_strangers_stay_outside(start):
    """A request without the one right token, from a foreign page or under a foreign host name is refused."""
    running = start()
    token = running.token
    right = bearer(token)

    def status(headers, **more):
        return knock(running.url, headers, **more).status_code

    assert 200 == status(right)
    wrong = [
        {},
        bearer("nope"),
        bearer("-"),
        bearer(token[:-1]),
        bearer(f"{token}x"),
        bearer("é"),
        {"authorization": token},
    ]
    wrong += [{"authorization": f"Basic {token}"}, {"x-token": token}]
    assert [401] * len(wrong) == [status({k: v.encode() for k, v in each.items()}) for each in wrong]
    assert [401, 401] == [status({}, method=each) for each in ("GET", "DELETE")]
    assert 403 == status({**right, "origin": "http://evil.example"})
    assert 421 == status({**right, "host": "evil.example"})
    assert 421 == status({**right, "host": "127.0.0.1.evil.example"})
    port = running.url.split(":")[2].split("/")[0]
    assert 200 == status({**right, "host": f"localhost:{port}", "origin": f"http://localhost:{port}"})
    assert 404 == knock(running.url.replace("/mcp", "/other"), right).status_code
    with httpx2.Client() as http:
        twice = http.post(running.url, headers=[("authorization", f"Bearer {token}")] * 2, json=HELLO)
    assert 401 == twice.status_code
    _, out, errors = running.end()
    assert ("", False, False) == (out, token in errors, "Traceback" in errors)


def test_an_answer_to_a_stranger_says_what_is_wanted(start):
    """A refused request names the required header and nothing about the server."""
    answer = knock(start().url, {})

    said = "This server wants its token: `Authorization: Bearer TOKEN`.\n"
    assert (said, "Bearer") == (answer.text, answer.headers["www-authenticate"])
    assert {"date", "content-type", "content-length", "www-authenticate"} == {*answer.headers}


def test_garbage_harms_nobody(start):
    """Garbage gets an error of the client's, and the next request is served."""
    running = start()
    right = {**bearer(running.token), **ACCEPT, "content-type": "application/json"}
    with httpx2.Client(headers=right) as http:
        bodies = [
            b"",
            b"{",
            b"[]",
            b"7",
            b"\xff",
            b"[" * 100_000,
            b"x" * 5_000_000,
            json.dumps({"method": "x"}).encode(),
        ]
        codes = [http.post(running.url, content=each).status_code for each in bodies]
        last = http.post(running.url, json=HELLO).status_code

    assert ({True}, 200) == ({400 <= each < 500 for each in codes}, last)
    assert "Traceback" not in running.end()[2]


async def asked(running, mode):
    """Return the callers that the plugin saw in two calls of one connection."""
    async with (
        httpx2.AsyncClient(headers=bearer(running.token)) as http,
        Client(streamable_http_client(running.url, http_client=http), mode=mode) as asking,
    ):
        return [json.loads((await asking.call_tool("look")).content[0].text) for _ in range(2)]


async def test_each_session_of_the_protocol_is_one(start):
    """Each legacy session has its own id, calls without one share an id, and all have public trust by default."""
    running = start()
    (first, again), (other, _) = await asked(running, "legacy"), await asked(running, "legacy")
    (newest, _), (too, _) = await asked(running, "auto"), await asked(running, "auto")

    assert (first, newest) == (again, too)
    assert 3 == len({each["session"] for each in (first, other, newest)})
    assert {(None, "public")} == {(each["user"], each["trust"]) for each in (first, other, newest)}


async def test_who_speaks_is_said_once_for_all(start):
    """User, session and trust of the command line apply to every connection."""
    running = start("--user", "u", "--session", "s", "--trust", "inner")

    said = {"session": "s", "user": "u", "trust": "inner"}
    assert [said] * 4 == [*await asked(running, "legacy"), *await asked(running, "auto")]


def test_what_is_audited(start, environment, tmp_path):
    """Each call of a tool is audited, without the session's id."""
    running = start()
    (first, _) = asyncio.run(asked(running, "legacy"))
    running.end()
    done = subprocess.run(
        [sys.executable, "-m", "beaver_hooks.cli", "audit", "tail", "--json"],
        cwd=tmp_path, capture_output=True, text=True, env=environment, check=True,
    )  # fmt: skip

    assert (2, 0) == (done.stdout.count('"tool_used"'), done.stdout.count(first["session"]))


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--host", "192.0.2.1"], 2, "`192.0.2.1` is open to other machines; use 127.0.0.1, or give the names by which they call this machine: --name HOST."),
        (["--host", "192.0.2.1", "--name", "here.example"], 1, "port 0 of `192.0.2.1` cannot be listened on (Cannot assign requested address); use another one."),
    ],
)  # fmt: skip
def test_where_it_does_not_listen(environment, tmp_path, words, code, said):
    """Listening for other machines needs an option, and an address that is not available is an error."""
    done = subprocess.run(
        [*COMMAND, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )

    assert (code, "", f"Error: {said}") == (done.returncode, done.stdout, done.stderr.splitlines()[-1])


def test_a_name_lets_others_in(start):
    """Requests under the given name are served, and requests under an unknown name are refused."""
    running = start("--name", "here.example")
    port = running.url.split(":")[2].split("/")[0]
    hosts = ["here.example", f"here.example:{port}", f"127.0.0.1:{port}", "there.example"]

    codes = [knock(running.url, {**bearer(running.token), "host": each}).status_code for each in hosts]

    assert [200, 200, 200, 421] == codes


@pytest.mark.parametrize("token", ["short", "with blanks in it, and long", "ümlaut-is-no-token-at-all"])
def test_a_token_that_is_none(environment, tmp_path, token):
    """A malformed token is refused without being shown, and the server does not start."""
    done = subprocess.run(
        COMMAND, cwd=tmp_path, env={**environment, "BEAVER_MCP_TOKEN": token}, capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip

    said = "Error: BEAVER_MCP_TOKEN: a token has 16 to 512 letters, digits and `-._~+/=`."
    assert (3, "", said) == (done.returncode, done.stdout, done.stderr.strip())


def test_the_secret_is_in_no_log(start):
    """The token does not appear on stderr, even in a header that is refused."""
    canary = make_canary()
    token = re.sub(r"[^A-Za-z0-9]", "x", canary.reveal())
    running = start(BEAVER_MCP_TOKEN=token, BEAVER_LOG_LEVEL="debug")
    for headers in (
        {},
        bearer(token),
        {**bearer(token), "origin": f"http://{token}"},
        {**bearer(token), "host": token},
    ):
        knock(running.url, headers)
    _, _, errors = running.end()

    assert (True, False) == ("Invalid Origin header: http://[secret]" in errors, token in errors)
