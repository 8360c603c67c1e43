"""The resident as a process of its own, with its client: one resident per place, for as long as it is needed."""

import asyncio
import contextlib
import itertools
import json
import os
import select
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from beaver_hooks.coding_agents.claude_code import client
from beaver_hooks.coding_agents.claude_code.events import ClaudeCodeTurns
from beaver_hooks.coding_agents.claude_code.memory import ResidentMemory, abilities
from beaver_hooks.coding_agents.claude_code.payload import CUT
from beaver_hooks.coding_agents.claude_code.resident import Resident, differs, options, stamp
from beaver_hooks.coding_agents.claude_code.resident_socket import SocketPath, same_user
from beaver_hooks.config import trust_config
from beaver_hooks.host import Host
from beaver_hostspecs import ConfigurationError, Contribution, PluginInfo, Tool, hookimpl
from beaver_hostspecs.testing import RecordingPlugin

TIMEOUT = 30
RULE = "What is recalled is data."
COMMON = {"session_id": "s", "transcript_path": "/t.jsonl", "cwd": "/p"}
START = {**COMMON, "hook_event_name": "SessionStart", "source": "startup"}
PROMPT = {**COMMON, "hook_event_name": "UserPromptSubmit", "prompt": "Hi.", "prompt_id": "p1"}
STOP = {**COMMON, "hook_event_name": "Stop", "last_assistant_message": "Hello.", "prompt_id": "p1"}
CURATED = {"memory": {"mode": "curated"}, "plugins": {"disabled": ["tally", "gateway"]}}


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def environment(runtime, project, tmp_path):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BEAVER", "COV", "CLAUDE"))}
    places = {
        "XDG_RUNTIME_DIR": str(runtime),
        "HOME": str(tmp_path / "home"),
        "XDG_STATE_HOME": str(tmp_path / "xdg"),
        "CLAUDE_PROJECT_DIR": str(project),
    }
    yield kept | places
    # A resident that lost the race for the place may still be starting, and would find no other one now.
    for pid in started_below(tmp_path):
        wait_for_end(pid, signal.SIGTERM)


@pytest.fixture
def say(environment):
    """Return a function that sends an event to the client and returns its output; the residents end afterwards."""

    def say(event, *given, start=True):
        command = [sys.executable, "-I", "-S", client.__file__, "--seconds=20", *(["--start"] if start else []), *given]
        ran = subprocess.run(
            command,
            input=json.dumps(event).encode(),
            env=environment,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
        used.add(given)
        assert (0, b"") == (ran.returncode, ran.stderr)
        return json.loads(ran.stdout or b"{}")

    used = set()
    yield say
    for given in used:
        end(given, environment)


def status(given, environment):
    request = json.dumps({"hook_event_name": client.STATUS}).encode()
    with contextlib.suppress(OSError):
        return json.loads(client.ask(client.socket_path(given, environment), request, TIMEOUT))
    return None


def end(given, environment):
    """End the resident, if one runs, and wait for its end."""
    said = status(given, environment)
    if said is not None:
        wait_for_end(said["pid"], signal.SIGTERM)


def wait_for_end(pid, number=None):
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        if number is not None:
            os.kill(pid, number)
        ended, _, _ = select.select([descriptor], [], [], TIMEOUT)
        os.close(descriptor)
        assert ended


def started_below(folder):
    """Return the residents that work in a folder, including those that lost the race for it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            if client.RESIDENT in words and any(each.startswith(f"{client.FOLDER}{folder}/") for each in words):
                found.append(int(path.parent.name))
    return found


def configure(project, raw, *, confirmed, environment):
    path = project / ".beaver" / "config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(raw))
    if confirmed:
        trust_config(path, environment=environment)


def committed(project, environment):
    """Return the number of committed turns, as `beaver audit` reads it."""
    command = [sys.executable, "-m", "beaver_hooks.cli", "audit", "tail", "--json"]
    ran = subprocess.run(command, cwd=project, env=environment, capture_output=True, timeout=TIMEOUT, check=True)
    return ran.stdout.decode().count('"turn_committed"')


# --- The process ------------------------------------------------------------------------------------------------


def test_from_start_to_end(say, environment, project):
    """The first event starts the resident; its end commits the waiting answer and leaves only the lock and the log."""
    rules = say(START)["hookSpecificOutput"]["additionalContext"]
    say(PROMPT)
    say(STOP)
    said = status([], environment)
    folder = Path(client.socket_path([], environment)).parent
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (folder, *sorted(folder.iterdir()))]
    end([], environment)

    assert "Curated memory" in rules
    assert ("on", None, 1, 1) == (said["memory"], said["why"], said["sessions"], said["open_turns"])
    assert [0o700, 0o600, 0o600, 0o600] == modes
    assert [".lock", ".log"] == sorted(each.suffix for each in folder.iterdir())
    assert 1 == committed(project, environment)


@pytest.mark.campaign
def test_another_process_uses_the_same_state(say, project, environment):
    """`beaver run` works beside the resident in the same folder, and both write one trail."""
    say(START)
    say(PROMPT)
    command = [sys.executable, "-m", "beaver_hooks.cli", "run", "hello"]
    ran = subprocess.run(command, cwd=project, env=environment, capture_output=True, timeout=TIMEOUT, check=False)
    say(STOP)
    end([], environment)

    assert 0 == ran.returncode, ran.stderr
    assert 2 == committed(project, environment)


def test_a_compaction_waits_until_words_are_stored(say, project):
    """When the client of a compaction returns, another process finds the words of the session in the database."""
    (project / ".beaver").mkdir()
    section = {"enabled": True, "embedding": {"provider": "none"}}
    named = project / ".beaver" / "config.json"
    named.write_text(json.dumps({"memory": {"local": section}, "plugins": {"disabled": ["tally", "gateway"]}}))
    given = f"--config={named}"
    said = "My sister Anna lives in Lisbon with her two kids."
    for event in (START, {**PROMPT, "prompt": said}, STOP):
        say(event, given)
    answer = say({**COMMON, "hook_event_name": "PreCompact", "trigger": "manual"}, given, start=False)

    database = project / ".beaver" / "plugins" / "local" / "memory.db"
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        titles = [title for (title,) in connection.execute("SELECT title FROM observations")]
    assert ({}, [said]) == (answer, titles)


def test_only_some_events_start_it(say, environment):
    """A client without `--start` starts no resident."""
    assert ({}, None) == (say(STOP, start=False), status([], environment))


def test_two_at_once(environment, project):
    """Several clients that start at once share one resident, and all of them get their answer."""
    command = [sys.executable, "-I", "-S", client.__file__, "--seconds=20", "--start"]
    clients = [
        subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(4)
    ]
    try:
        for each in clients:
            each.stdin.write(json.dumps({**START, "session_id": str(each.pid)}).encode())
            each.stdin.close()
        answers = [each.stdout.read() for each in clients]
        codes = [each.wait(TIMEOUT) for each in clients]
        said = status([], environment)
    finally:
        end([], environment)
        for each in clients:
            each.stdout.close()

    assert ([0] * 4, 4) == (codes, said["sessions"])
    assert 1 == len(set(answers))
    assert b"Curated memory" in answers[0]


async def test_idle(environment):
    """A resident ends after the idle time without an event."""
    path = Path(client.socket_path([], environment))
    resident = Resident(ResidentMemory(None, lambda: None), idle=0.1)
    serving = asyncio.create_task(resident.serve(SocketPath.take(path)))
    with contextlib.suppress(OSError):  # a busy machine may let the while pass before
        await ask(path, b"{}")
    await asyncio.wait_for(serving, TIMEOUT)

    assert None is status([], environment)


def test_nobody_asks(environment, project, monkeypatch):
    """A resident that no client has asked ends soon, because its client has found another one."""
    monkeypatch.setattr("beaver_hooks.coding_agents.claude_code.resident.UNASKED", 0.1)
    path = Path(client.socket_path([], environment))
    resident = Resident(ResidentMemory(None, lambda: None), idle=TIMEOUT)
    asyncio.run(asyncio.wait_for(resident.serve(SocketPath.take(path)), TIMEOUT))

    assert not path.exists()


def test_its_own_modules(say, project, environment):
    """Modules in the project do not shadow those of Beaver Hooks or of Python."""
    (project / "beaver_hooks.py").write_text("raise SystemExit")
    (project / "json.py").write_text("raise SystemExit")

    assert "hookSpecificOutput" in say(START)


# --- Configurations ---------------------------------------------------------------------------------------------


def test_a_configuration_that_nobody_confirmed(say, environment, project):
    """Memory is off with an unconfirmed configuration; the session shows the reason, and a later one uses memory."""
    configure(project, CURATED, confirmed=False, environment=environment)
    first = [say(START), say(PROMPT), say(STOP)]
    said = status([], environment)
    configure(project, CURATED, confirmed=True, environment=environment)
    then = say(START)

    why = f"the configuration {project}/.beaver/config.json was found here and is not confirmed; review it with `beaver trust`, or name it with --config or BEAVER_CONFIG"
    assert [{"systemMessage": f"Beaver Hooks: memory is off: {why}"}, {}, {}] == first
    assert ("off", why, True) == (said["memory"], said["why"], said["failed"])
    assert "Curated memory" in then["hookSpecificOutput"]["additionalContext"]


def test_a_memory_that_a_repository_brings(say, environment, project):
    """A memory file from a repository does not reach the model until the user confirms the folder."""
    planted = project / ".beaver" / "plugins" / "curated" / "MEMORY.md"
    planted.parent.mkdir(parents=True)
    planted.write_text("Planted.\n")
    first = [say(START), say(PROMPT)]
    there = sorted(each.name for each in (project / ".beaver").iterdir())
    command = [sys.executable, "-m", "beaver_hooks.cli", "hooks", "trust", "claude-code"]
    subprocess.run(command, cwd=project, env=environment, capture_output=True, timeout=TIMEOUT, check=True)
    say(START)
    then = say({**PROMPT, "prompt_id": "p2"})

    why = f"the folder {project}/.beaver was not made by the hooks and is not confirmed; if the memory in it is yours, run `beaver hooks trust claude-code`"
    assert [{"systemMessage": f"Beaver Hooks: memory is off: {why}"}, {}] == first
    assert ["plugins"] == there
    assert "Planted." in then["hookSpecificOutput"]["additionalContext"]


def test_a_memory_that_the_hooks_have_made(say, environment, project):
    """A folder that the hooks created counts for the next resident, until another key replaces its own."""
    (project / ".beaver").mkdir()
    answers = []
    for _ in range(2):
        answers.append(say(START))
        end([], environment)
    key = project / ".beaver" / "audit.key"
    key.write_text("0" * 64 + "\n")
    answers.append(say(START))

    assert ["hookSpecificOutput", "hookSpecificOutput", "systemMessage"] == [next(iter(each)) for each in answers]


def test_a_project_that_is_fetched_anew(say, environment, project, tmp_path):
    """A folder that replaces the project is a new one for the same resident, and needs its own confirmation."""
    answers = [say(START)]
    pid = status([], environment)["pid"]
    # The folder is renamed at once, because the resident may be writing into it.
    project.rename(tmp_path / "the first")
    project.mkdir()
    answers.append(say(START))
    project.rename(tmp_path / "the second")
    (project / ".beaver" / "plugins").mkdir(parents=True)
    answers.append(say(START))

    assert ["hookSpecificOutput", "hookSpecificOutput", "systemMessage"] == [next(iter(each)) for each in answers]
    assert pid == status([], environment)["pid"]


def test_a_confirmation_that_is_taken_back(say, environment, project):
    """A configuration that was changed after its confirmation is not used by the next session of the same resident."""
    configure(project, CURATED, confirmed=True, environment=environment)
    before = say(START)
    pid = status([], environment)["pid"]
    configure(project, CURATED | {"host": {"background": False}}, confirmed=False, environment=environment)
    after = say(START)

    assert "hookSpecificOutput" in before
    assert "was changed after it was confirmed" in after["systemMessage"]
    assert pid == status([], environment)["pid"]


def test_one_configuration_for_all(say, environment, tmp_path):
    """With a named configuration two projects share one resident, whose state is beside the configuration."""
    path = tmp_path / "mine" / ".beaver" / "config.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(CURATED))
    say(START, f"--config={path}")
    environment["CLAUDE_PROJECT_DIR"] = str(tmp_path)
    say({**START, "session_id": "t"}, f"--config={path}")

    assert 2 == status([f"--config={path}"], environment)["sessions"]
    assert [".beaver"] == [each.name for each in (tmp_path / "mine").iterdir()]
    assert "host.db" in [each.name for each in path.parent.iterdir()]


def test_a_credential_that_is_set_meanwhile(say, environment, project):
    """A session with a new value of a variable in the configuration gets a new resident with that value."""
    gateway = {"baseUrl": "http://127.0.0.1:9", "userId": "u", "userKey": {"env": "MY_SECRET"}}
    raw = {"memory": {"gateway": gateway}, "plugins": {"disabled": ["tally"]}}
    configure(project, raw, confirmed=True, environment=environment)
    said = []
    for more in ({}, {"OTHER": "x"}, {"MY_SECRET": "one"}, {"MY_SECRET": "two"}):
        environment |= more
        say(START)
        said.append(status([], environment))

    assert ["unavailable", "unavailable", "ok", "ok"] == [each["health"]["gateway"].partition(" ")[0] for each in said]
    assert [True, False, False] == [one["pid"] == other["pid"] for one, other in itertools.pairwise(said)]


def test_one_that_hangs(say, environment):
    """A stopped resident is reported at the start of a session; after it continues, it answers again."""
    say(START)
    pid = status([], environment)["pid"]
    os.kill(pid, signal.SIGSTOP)
    hung = [late(environment, START), late(environment, PROMPT)]
    os.kill(pid, signal.SIGCONT)
    said = status([], environment)

    lock = Path(client.socket_path([], environment)).with_suffix(".lock")
    assert ([client.LATE, b""], f"{pid}\n") == (hung, lock.read_text())
    assert (pid, False) == (said["pid"], Path(client.late_path(client.socket_path([], environment))).exists())


def late(environment, event):
    """Return the output of a client that has half a second."""
    command = [sys.executable, "-I", "-S", client.__file__, "--seconds=0.5", "--start"]
    ran = subprocess.run(command, input=json.dumps(event).encode(), env=environment, capture_output=True, check=True)
    return ran.stdout


def test_one_that_hangs_and_is_killed(say, environment):
    """After a stopped resident is killed, the next prompt starts another one, which has all of its time."""
    say(START)
    pid = status([], environment)["pid"]
    os.kill(pid, signal.SIGSTOP)
    late(environment, PROMPT)
    wait_for_end(pid, signal.SIGKILL)
    said = say(PROMPT)

    assert "additionalContext" in said["hookSpecificOutput"]


@pytest.mark.parametrize("content", ["{", '{"a": [{"b": "A_NAME"}, 1]}'])
def test_which_variables_matter(tmp_path, monkeypatch, content):
    """Variables in the configuration and usual names of keys matter; an unreadable configuration names none."""
    path = tmp_path / "c.json"
    path.write_text(content)
    for name in ("A_NAME", "SOME_API_KEY", "OTHER"):
        monkeypatch.setenv(name, "one")
    ours = client.digests(os.environ)
    differ = [differs(b"", path), differs(ours, path)]
    for name in ("A_NAME", "SOME_API_KEY", "OTHER"):
        differ.append(differs(client.digests(dict(os.environ) | {name: "two"}), path))

    assert [False, False, content != "{", True, False] == differ


def test_options():
    """The options have defaults, and a wrong one ends the process."""
    given = options(["--folder=/f", "--trust=inner", "--budget=10"])

    assert ("/f", None, "inner", None, 10) == (
        str(given.folder),
        given.config,
        given.trust.value,
        given.user,
        given.budget,
    )
    with pytest.raises(SystemExit):
        options(["--trust=all"])


def test_stamp(tmp_path, monkeypatch):
    """The stamp changes with the file and its confirmation, and not with another file's confirmation."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    path = tmp_path / "c.json"
    stamps = [stamp(path)]
    path.write_text("{}")
    stamps.append(stamp(path))
    trust_config(path)
    stamps.append(stamp(path))
    other = tmp_path / "d.json"
    other.write_text("{}")
    trust_config(other)

    assert 3 == len(set(stamps))
    assert stamps[-1] == stamp(path)


# --- In this process --------------------------------------------------------------------------------------------


@pytest.fixture
async def resident(tmp_path, runtime):
    """A resident in this process, with a plugin; gives its path, the plugin and the resident."""
    plugin = RecordingPlugin(info=PluginInfo(version="1", contract="1.0", rules=(RULE,)))

    async def open_turns():
        host = Host({"a": plugin}, state_folder=tmp_path / "state")
        await host.open()
        return ClaudeCodeTurns(host=host)

    path = runtime / "own" / "x.sock"
    resident = Resident(ResidentMemory(open_turns, lambda: None), idle=TIMEOUT)
    task = asyncio.create_task(resident.serve(SocketPath.take(path)))
    yield path, plugin, resident
    resident.end()
    await task


async def ask(path, event):
    body = event if isinstance(event, bytes) else json.dumps(event).encode()
    return await asyncio.to_thread(client.ask, str(path), body, TIMEOUT)


async def send(path, message):
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(message)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


async def test_another_version_is_installed(resident, tmp_path, monkeypatch):
    """After an upgrade a new session gets no answer, so its client starts the new version, and no turn is lost."""
    path, plugin, _ = resident
    await ask(path, START)
    await ask(path, PROMPT)
    upgraded = tmp_path / "resident.py"
    upgraded.touch()
    monkeypatch.setattr("beaver_hooks.coding_agents.claude_code.resident.__file__", str(upgraded))
    meanwhile = await ask(path, {**START, "session_id": "t"})
    await ask(path, STOP)
    with pytest.raises(ConnectionResetError):
        await ask(path, {**START, "session_id": "u"})
    await plugin.wait_for("after_prompt")

    assert RULE in json.loads(meanwhile)["hookSpecificOutput"]["additionalContext"]


@pytest.mark.parametrize("body", [b"", b"\xff", b"{", b"[]", b"7", b"{}", b'{"hook_event_name": []}', b"[" * 100_000])
async def test_garbage_in_a_request(resident, body):
    """A request without an event gets an empty answer, and the next request a normal one."""
    path, _, _ = resident

    assert b"" == await ask(path, body)
    assert RULE in json.loads(await ask(path, START))["hookSpecificOutput"]["additionalContext"]


@pytest.mark.parametrize(
    "message",
    [b"", b"hello\n", b"BEAVER1 x\n", b"BEAVER1 99999999999\n", b"BEAVER1 9\n{}", b"BEAVER1 -1\n", b"x" * 100_000],
)
async def test_garbage_for_a_request(resident, message):
    """A client that speaks another protocol or stops early gets no answer, and the next client gets one."""
    path, _, _ = resident
    with contextlib.suppress(ConnectionError):
        assert b"" == await send(path, message)

    assert b"" != await ask(path, START)


async def test_what_waits_at_the_end(resident):
    """The end of the resident commits the waiting answer and drops the turn without one."""
    path, plugin, ended = resident
    for event in (PROMPT, STOP, {**PROMPT, "session_id": "t", "prompt_id": "p2"}):
        await ask(path, event)
    ended.end()
    await plugin.wait_for("stop")

    assert (1, 1) == (len(plugin.calls_of("after_prompt")), len(plugin.calls_of("on_turn_dropped")))
    assert not path.exists()


async def prompt_and_leave(path, plugin):
    """Send a prompt as a client that leaves before the answer."""
    _, writer = await asyncio.open_unix_connection(path)
    writer.write(client.framed(json.dumps(PROMPT).encode()))
    await writer.drain()
    writer.close()
    await plugin.wait_for("before_prompt")


@pytest.mark.parametrize("letter", ["\u8a18", "\U0001f9ab", "\x01", "\ud800"])
async def test_a_block_that_is_too_long(resident, letter):
    """A block of any length and any letters arrives, cut with a note."""
    path, plugin, _ = resident
    plugin.contribution = Contribution(blocks=[letter * 40_000])
    answer = await ask(path, PROMPT)

    said = json.loads(answer)["hookSpecificOutput"]["additionalContext"]
    assert (f"{RULE}\n\n", CUT) == (said[: len(RULE) + 2], said[-len(CUT) :])


async def test_an_answer_that_nobody_receives(resident):
    """Rules that a client did not receive are sent again with the next prompt."""
    path, plugin, _ = resident
    await prompt_and_leave(path, plugin)
    again = await ask(path, {**PROMPT, "prompt_id": "p2"})

    assert RULE in json.loads(again)["hookSpecificOutput"]["additionalContext"]


async def test_memory_that_fails_to_open():
    """After a failure to open memory a prompt does not try again, a session does, and its message names the reason."""
    attempts = []

    async def open_turns():
        attempts.append(1)
        if len(attempts) > 1:
            raise ConfigurationError("a", "is wrong")
        raise RuntimeError("canary")

    memory = ResidentMemory(open_turns, lambda: None)
    outputs = [await memory.handle(each) for each in (PROMPT, PROMPT, START, "no event")]
    await memory.close()

    assert [{}, {}, {"systemMessage": "Beaver Hooks: memory is off: a: is wrong"}, {}] == outputs
    assert ("off", 2) == (memory.status()["memory"], len(attempts))


class Opening:
    """Opens hosts over one plugin; the test sets its stamp."""

    def __init__(self, plugin, folder):
        self.plugin, self.folder = plugin, folder
        self.stamp, self.hosts = 0, []
        self.memory = ResidentMemory(self.open, lambda: self.stamp)

    async def open(self):
        self.hosts.append(Host({"a": self.plugin}, state_folder=self.folder))
        await self.hosts[-1].open()
        return ClaudeCodeTurns(host=self.hosts[-1])

    async def handle(self, *events):
        for each in events:
            await self.memory.handle(each)


async def test_another_configuration(tmp_path):
    """A session that starts after a change of the configuration gets a new host, and waiting answers are committed."""
    plugin = RecordingPlugin()
    opening = Opening(plugin, tmp_path)
    await opening.handle(START, PROMPT, STOP)
    opening.stamp = 1
    await opening.handle(
        {**PROMPT, "session_id": "t", "prompt_id": "p2"}, {**STOP, "session_id": "t", "prompt_id": "p2"}
    )
    before = len(opening.hosts), len(plugin.calls_of("after_prompt"))
    await opening.handle({**START, "session_id": "u"})
    after = len(opening.hosts), len(plugin.calls_of("after_prompt"))
    await opening.memory.close()

    assert ((1, 0), (2, 2)) == (before, after)


async def test_another_configuration_during_a_turn(tmp_path):
    """The host stays while a turn waits for its answer."""
    opening = Opening(RecordingPlugin(), tmp_path)
    await opening.handle(START, PROMPT)
    opening.stamp = 1
    await opening.handle({**START, "session_id": "t"})
    await opening.memory.close()

    assert 1 == len(opening.hosts)


async def test_a_host_that_cannot_be_closed(tmp_path, caplog):
    """A host that fails to close is logged, and another one is opened."""
    opening = Opening(RecordingPlugin(), tmp_path)
    await opening.handle(START)
    await opening.hosts[0].close()
    opening.stamp = 1
    await opening.handle(START)
    await opening.memory.close()

    assert 2 == len(opening.hosts)
    assert ["event=beaver_hooks.claude_code_close_failed error=HostNotOpen"] == caplog.messages


async def test_what_plugins_do(tmp_path):
    """The status shows for each plugin whether it recalls and learns, and its tools."""

    class Showing:
        @hookimpl
        def describe(self):
            return PluginInfo(version="1", contract="1.0")

        @hookimpl
        async def after_prompt(self, turn):
            """Ignore the answer, so that this plugin does not learn."""

    tool = Tool(name="keep", description="Keeps.", parameters={}, run=None)
    host = Host({"a": RecordingPlugin(tools=(tool,)), "b": Showing()}, state_folder=tmp_path)
    await host.open()
    expected = {
        "a": {"recalls": True, "learns": True, "tools": ["keep"]},
        "b": {"recalls": False, "learns": False, "tools": []},
    }
    assert expected == abilities(host)
    await host.close()


async def test_one_attempt_for_all_who_wait(tmp_path):
    """Events that arrive while the host opens wait for it, and only one host is opened."""
    opening = Opening(RecordingPlugin(), tmp_path)
    await asyncio.gather(*[opening.handle({**START, "session_id": str(each)}) for each in range(5)])
    said = opening.memory.status()
    await opening.memory.close()

    assert (1, 5, {"a": "ok", "host": "ok"}) == (len(opening.hosts), said["sessions"], said["health"])


async def test_closing_while_it_opens(tmp_path):
    """Closing the memory while a host opens closes that host."""
    opening = Opening(RecordingPlugin(), tmp_path)
    task = asyncio.create_task(opening.handle(START))
    await asyncio.sleep(0)
    await opening.memory.close()
    await task

    assert 1 == len(opening.plugin.calls_of("stop"))


def test_a_second_place(runtime):
    """Only one process takes a place, and a place that was left can be taken again."""
    path = runtime / "own" / "x.sock"
    first = SocketPath.take(path)
    second = SocketPath.take(path)
    first.leave()
    first.leave()
    third = SocketPath.take(path)
    third.leave()

    assert (None, path) == (second, third.path)
    assert ["x.lock"] == [each.name for each in path.parent.iterdir()]


def test_a_place_that_is_not_private(runtime):
    """A socket folder that other users can use is refused."""
    (runtime / "own").mkdir(mode=0o755)
    (runtime / "own").chmod(0o755)

    with pytest.raises(client.Unsafe):
        SocketPath.take(runtime / "own" / "x.sock")


def test_a_place_that_is_held_in_silence(runtime, monkeypatch):
    """The wait for a process that holds the lock and never listens ends with `TimeoutError`."""
    monkeypatch.setattr("beaver_hooks.coding_agents.claude_code.resident_socket.PATIENCE", 0.1)
    path = runtime / "own" / "x.sock"
    place = SocketPath.take(path)
    path.unlink()

    with pytest.raises(TimeoutError):
        SocketPath.take(path)
    place.leave()


def test_the_same_user():
    """A peer of the same user is accepted."""
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert same_user(ours)
