"""`beaver mcp` over standard input and output: real processes, and the SDK's real client."""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import textwrap

import pytest

pytest.importorskip("mcp_types", reason="the extra `mcp` is not installed")

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from beaver_hooks.coding_agents.claude_code import client as hook

COMMAND = [sys.executable, "-m", "beaver_hooks.cli"]
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
SECONDS = 20

NOISY = """
    import os, subprocess, sys
    import anyio
    from beaver_hostspecs import PluginInfo, Secret, Tool, hookimpl

    print("imported")
    CANARY = Secret(os.environ["CANARY"])

    class Noisy:
        @hookimpl
        def describe(self):
            return PluginInfo(version="1", contract="1.0", rules=("Mind the noise.",))

        @hookimpl
        async def start(self):
            print("started", flush=True)

        @hookimpl
        async def stop(self):
            print("stopped")
            sys.stderr.write("stop was called\\n")

        @hookimpl
        def provide_tools(self):
            return (
                Tool(name="print", description="prints", parameters={}, run=self.prints),
                Tool(name="fail", description="fails", parameters={}, run=self.fails),
                Tool(name="hang", description="hangs", parameters={}, run=self.hangs),
            )

        async def prints(self, arguments, turn, report):
            print("printed")
            os.write(1, b"written\\n")
            subprocess.run([sys.executable, "-c", "import sys; print('child', repr(sys.stdin.read()))"], check=True)
            return {"session": turn.session, "user": turn.user, "trust": turn.trust, "secret": CANARY.reveal()}

        async def fails(self, arguments, turn, report):
            raise ValueError(f"no {CANARY.reveal()}")

        async def hangs(self, arguments, turn, report):
            sys.stderr.write("it hangs\\n")
            sys.stderr.flush()
            await anyio.sleep_forever()
"""


@pytest.fixture
def environment(tmp_path, monkeypatch, canary):
    """Install a plugin that prints, and return an environment whose state and configuration are in a scratch folder."""
    site = tmp_path / "site"
    info = site / "beaver_hooks_noisy-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "installed_noisy.py").write_text(textwrap.dedent(NOISY))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: beaver-hooks-noisy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[beaver_hooks]\nnoisy = installed_noisy:Noisy\n")
    config = tmp_path / "config.json"
    sections = {"memory": {"mode": "curated"}, "host": {"stateFolder": ".beaver"}}
    config.write_text(json.dumps({**sections, "plugins": {"disabled": ["tally"]}}))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BEAVER_", "XDG_"))}
    search = os.pathsep.join(filter(None, [str(site), kept.get("PYTHONPATH")]))
    more = {"HOME": str(tmp_path), "BEAVER_CONFIG": str(config), "PYTHONPATH": search, "CANARY": canary.reveal()}
    return {**kept, **more}


@pytest.fixture
def start(environment, tmp_path):
    """Return a function that starts `beaver mcp`; the processes are killed after the test."""
    started = []

    def run(*words):
        process = subprocess.Popen(
            [*COMMAND, "mcp", *words], cwd=tmp_path, env=environment, bufsize=0,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait(SECONDS)
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()


def say(process, *messages):
    for message in messages:
        process.stdin.write(json.dumps(message).encode() + b"\n")


def hear(process):
    return json.loads(process.stdout.readline())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_conversation_with_the_real_client(environment, tmp_path, mode, canary):
    """Tools, prompts and health work over the pipes, plugins' output goes to stderr, and the secret is nowhere."""
    arguments = [*COMMAND[1:], "mcp", "--user", "u", "--session", "s"]
    parameters = StdioServerParameters(command=sys.executable, args=arguments, env=environment, cwd=tmp_path)
    with (tmp_path / "stderr").open("w+") as errors:
        async with Client(stdio_client(parameters, errlog=errors), mode=mode) as asking:
            tools = [each.name for each in (await asking.list_tools()).tools]
            (printed,) = (await asking.call_tool("print")).content
            failed = await asking.call_tool("fail")
            entry = {"target": "user", "action": "add", "content": "The user likes tea."}
            added = await asking.call_tool("memory", entry)
            shown = (await asking.get_prompt("memory_curated_show")).messages[0].content.text
            health = json.loads((await asking.read_resource("beaver://health")).contents[0].text)
            instructions = asking.instructions
        errors.seek(0)
        said = errors.read()

    assert {"memory", "print", "fail", "hang"} == {*tools}
    assert {"session": "s", "user": "u", "trust": "full", "secret": "[secret]"} == json.loads(printed.text)
    assert (True, "ValueError: no [secret]", False) == (failed.is_error, failed.content[0].text, added.is_error)
    assert ("| 1. The user likes tea." in shown, "Mind the noise." in instructions) == (True, True)
    assert ("ok", "degraded") == (health["plugins"]["curated"]["state"], health["plugins"]["noisy"]["state"])
    assert set() == {"imported", "started", "printed", "written", "child ''", "stop was called"} - {*said.splitlines()}
    canary.assert_clean(said, printed.text, failed.content[0].text, json.dumps(health), instructions)


def test_the_end_of_stdin_ends_it(start):
    """The end of stdin closes the host and exits with 0, and stdout holds only the protocol."""
    process = start()
    say(process, HELLO)
    answer = hear(process)
    out, errors = process.communicate(timeout=SECONDS)

    assert ("beaver", 1) == (answer["result"]["serverInfo"]["name"], answer["id"])
    assert (0, b"", True) == (process.returncode, out, b"stop was called" in errors)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=str
)
def test_a_signal_ends_it(start, number, code):
    """A signal while a tool hangs closes the host, and the open call gets the error "Connection closed"."""
    process = start()
    say(process, HELLO, READY, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "hang"}})
    hear(process)
    while b"it hangs" not in process.stderr.readline():
        pass
    process.send_signal(number)
    code_seen = process.wait(SECONDS)

    errors = process.stderr.read()
    (last,) = [json.loads(line) for line in process.stdout.read().splitlines()]
    assert (code, 2, "Connection closed") == (code_seen, last["id"], last["error"]["message"])
    assert (True, True, False) == (b"stop was called" in errors, b"Interrupted." in errors, b"Traceback" in errors)


def test_a_client_that_is_gone_ends_it(start):
    """The process ends without waiting for a client that has closed its output."""
    process = start()
    say(process, HELLO)
    hear(process)
    process.stdout.close()
    say(process, {"jsonrpc": "2.0", "id": 2, "method": "ping"})
    code = process.wait(SECONDS)

    assert (0, True) == (code, b"stop was called" in process.stderr.read())


def test_a_client_that_does_not_read_keeps_nobody(start):
    """A full pipe does not keep the process from ending on a signal."""
    process = start()
    say(process, HELLO, READY)
    hear(process)
    for number in range(400):
        say(process, {"jsonrpc": "2.0", "id": number + 2, "method": "tools/list"})
    process.send_signal(signal.SIGTERM)

    assert (143, True) == (process.wait(SECONDS), b"stop was called" in process.stderr.read())


def test_garbage_on_stdin_harms_nobody(start):
    """Garbage on stdin does not stop the server, which answers the next request."""
    process = start()
    for line in (b"", b"   ", b"{", b"\xff\xfe", b"[]", b"7", b'{"jsonrpc":"2.0","id":null}', b"{" * 10_000):
        process.stdin.write(line + b"\n")
    say(process, HELLO)
    answers = [hear(process)]
    while answers[-1].get("id") != 1:
        answers.append(hear(process))

    assert "beaver" == answers[-1]["result"]["serverInfo"]["name"]


def test_input_may_be_a_file(start, environment, tmp_path):
    """The server reads requests from a file too."""
    path = tmp_path / "in"
    path.write_text(json.dumps(HELLO) + "\n")
    with path.open() as stdin:
        done = subprocess.run(
            [*COMMAND, "mcp"],
            stdin=stdin,
            capture_output=True,
            timeout=SECONDS,
            cwd=tmp_path,
            env=environment,
            check=True,
        )

    assert [1] == [json.loads(line)["id"] for line in done.stdout.splitlines()]


def test_a_wrong_configuration(environment, tmp_path):
    """A wrong configuration prints one line on stderr and exits with 3."""
    (tmp_path / "config.json").write_text('{"memory": {"mode": "nonsense"}}')
    done = subprocess.run(
        [*COMMAND, "mcp"], input=b"", capture_output=True, timeout=SECONDS, cwd=tmp_path, env=environment, check=False
    )

    assert (3, b"", 1) == (done.returncode, done.stdout, len(done.stderr.splitlines()))


async def test_two_clients_at_once(environment, tmp_path):
    """Two processes over one state folder keep the entries of both."""

    async def add(content):
        parameters = StdioServerParameters(
            command=sys.executable, args=[*COMMAND[1:], "mcp"], env=environment, cwd=tmp_path
        )
        with (tmp_path / f"{content}.stderr").open("w") as errors:
            async with Client(stdio_client(parameters, errlog=errors)) as asking:
                entry = {"target": "memory", "action": "add", "content": content}
                return (await asking.call_tool("memory", entry)).is_error

    answers = await asyncio.gather(add("one"), add("two"))

    kept = (tmp_path / ".beaver" / "plugins" / "curated" / "MEMORY.md").read_text()
    assert ([False, False], True, True) == ([*map(bool, answers)], "one" in kept, "two" in kept)


# --- Beside the hooks of Claude Code ----------------------------------------------------------------------------


async def test_what_is_kept_here_is_what_a_hook_says(tmp_path, environment):
    """An entry that the tool kept is shown by the hook with the same configuration, in another folder."""
    path = tmp_path / "mine" / ".beaver" / "config.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"memory": {"mode": "curated"}, "plugins": {"disabled": ["tally", "noisy"]}}))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    server = StdioServerParameters(
        command=sys.executable, args=[*COMMAND[1:], "--config", str(path), "mcp"], cwd=elsewhere, env=environment
    )
    async with Client(server) as client:
        await client.call_tool("memory", {"target": "user", "action": "add", "content": "Anna drinks tea."})
    event = {
        "hook_event_name": "UserPromptSubmit", "session_id": "s", "transcript_path": "/t.jsonl", "prompt": "Tea?",
        "prompt_id": "p",
    }  # fmt: skip

    assert "Anna drinks tea." in hooked(event, f"--config={path}", environment, tmp_path)
    assert [] == list(elsewhere.iterdir())


def hooked(event, option, environment, tmp_path):
    """Return the output of the hook for an event, and end the resident that it starts."""
    with tempfile.TemporaryDirectory(prefix="bt-") as runtime:  # short enough for a socket
        given = environment | {"XDG_RUNTIME_DIR": runtime, "CLAUDE_PROJECT_DIR": str(tmp_path)}
        command = [sys.executable, "-I", "-S", hook.__file__, "--seconds=20", "--start", option]
        ran = subprocess.run(command, input=json.dumps(event).encode(), env=given, capture_output=True, check=True)
        said = hook.ask(hook.socket_path([option], given), b'{"hook_event_name": "beaver_status"}', SECONDS)
        ended = os.pidfd_open(json.loads(said)["pid"])
        signal.pidfd_send_signal(ended, signal.SIGTERM)
        select.select([ended], [], [], SECONDS)
        os.close(ended)
    return ran.stdout.decode()
