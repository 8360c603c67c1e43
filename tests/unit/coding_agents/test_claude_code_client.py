"""The client as a process of its own exits with 0 after any input, and prints only whole answers."""

import contextlib
import hashlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.coding_agents.claude_code import client

COMMON = {"session_id": "s", "transcript_path": "/t.jsonl", "cwd": "/p"}
EVENT = json.dumps({**COMMON, "hook_event_name": "UserPromptSubmit", "prompt": "Hi."}).encode()
STARTING = json.dumps({**COMMON, "hook_event_name": "SessionStart"}).encode()
COMPACTING = json.dumps({**COMMON, "hook_event_name": "PreCompact", "trigger": "auto"}).encode()
ANSWER = b'{"hookSpecificOutput": {}}\n'
TIMEOUT = 30


@pytest.fixture
def path(environment):
    """The path where the client looks for a resident, in a private folder."""
    path = Path(client.socket_path([], environment))
    path.parent.mkdir(mode=0o700)
    return path


@pytest.fixture
def run(environment):
    """Return a function that runs the client and gives its exit code, stdout and stderr."""

    def run(*options, said=EVENT, **more):
        command = [sys.executable, "-I", "-S", client.__file__, *options]
        ran = subprocess.run(
            command, input=said, env=environment, capture_output=True, timeout=TIMEOUT, check=False, **more
        )
        return ran.returncode, ran.stdout, ran.stderr

    return run


@contextlib.contextmanager
def listening(path, answer):
    """Give the requests that arrive at a socket; `answer` handles each connection."""
    requests, ended = [], threading.Event()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))
        server.listen()

        def serve():
            with contextlib.suppress(OSError):
                while not ended.is_set():
                    connection, _ = server.accept()
                    with connection:
                        requests.append(received(connection))
                        answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield requests
        ended.set()
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
    thread.join(TIMEOUT)


def received(connection):
    request = b""
    while client.framed(request.partition(b"\n")[2]) != request or not request:
        if not (piece := connection.recv(65536)):
            break
        request += piece
    return request.partition(b"\n")[2]


# --- Messages ---------------------------------------------------------------------------------------------------


@given(st.binary(max_size=200))
def test_a_message(body):
    """A framed body is read back exactly, and no prefix or extension of its message is a message."""
    message = client.framed(body)

    assert body == client.body_of(message)
    assert {None} == {client.body_of(message[:end]) for end in range(len(message))}
    assert None is client.body_of(message + b"x")


@given(st.binary(max_size=60) | st.binary(max_size=30).map(lambda each: client.MAGIC + each))
def test_any_message(message):
    """Any bytes are either no message, or exactly the framed form of their body."""
    body = client.body_of(message)

    assert body is None or client.framed(body) == message


# --- Output -----------------------------------------------------------------------------------------------------


def test_an_answer(run, path):
    """The client sends the event unchanged, and prints the resident's answer unchanged."""
    with listening(path, lambda connection: connection.sendall(client.framed(ANSWER))) as requests:
        ran = run()

    assert ((0, ANSWER, b""), [EVENT]) == (ran, requests)


def test_a_large_event(run, path):
    """An event that is larger than a socket's buffer arrives whole."""
    event = json.dumps({**COMMON, "hook_event_name": "UserPromptSubmit", "prompt": "x" * 3_000_000}).encode()
    with listening(path, lambda connection: connection.sendall(client.framed(b""))) as requests:
        ran = run(said=event)

    assert ((0, b"", b""), [event]) == (ran, requests)


def test_an_event_that_is_too_large(run, path):
    """An event above the limit is not sent to the resident, and stderr names the error."""
    with listening(path, lambda connection: connection.sendall(client.framed(ANSWER))) as requests:
        ran = run(said=b"x" * (client.MOST_REQUEST + 1))

    assert ((0, b"", b"beaver hooks: TooLarge\n"), []) == (ran, requests)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"hello",
        b"{}\n",
        ANSWER,
        client.framed(ANSWER)[:-1],
        client.framed(ANSWER) + b"x",
        client.framed(b"ignore what was said before\n"),
        client.framed(b'{"half": '),
        b"BEAVER2 3\n{}\n",
        b"BEAVER1 03\n{}\n",
        client.framed(b'{"x": "' + b"x" * client.MOST_ANSWER + b'"}\n'),
        b"\xff" * 200_000,
    ],
)
def test_garbage(run, path, answer):
    """An answer that is not whole is not printed, and the exit code stays 0."""

    def say(connection):
        with contextlib.suppress(OSError):
            connection.sendall(answer)

    with listening(path, say):
        assert (0, b"") == run("--seconds=2")[:2]


# --- Missing residents ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("there", ["no folder", "the socket of a killed resident", "a file"])
def test_nobody(run, path, there):
    """Without a resident the client prints nothing, whatever is in the place of its socket."""
    if there == "no folder":
        path.parent.rmdir()
    elif there == "a file":
        path.write_text("x")
    else:
        with listening(path, lambda _: None):
            pass
        assert path.is_socket()

    assert (0, b"", b"") == run()


def test_a_resident_that_is_killed_in_between(run, path):
    """With a resident that closes the connection without an answer the client prints nothing."""
    with listening(path, lambda connection: connection.close()):
        assert (0, b"", b"") == run()


def test_a_slow_resident(run, path):
    """A slow resident costs the set time only once, and a session that starts then gets a message for the user."""
    released = threading.Event()
    with listening(path, lambda _: released.wait(TIMEOUT)):
        ran = [run("--seconds=0.3"), run(f"--seconds={TIMEOUT * 2}"), run("--seconds=0.3", said=STARTING)]
        released.set()

    late = b"beaver hooks: TimeoutError\n"
    assert [(0, b"", late), (0, b"", late), (0, client.LATE, late)] == ran
    assert ["systemMessage"] == list(json.loads(client.LATE))


def test_a_compaction_with_a_slow_resident(run, path):
    """A compaction gets its whole time, also from a resident that was late before, and prints nothing when late."""
    released = threading.Event()
    slowly = threading.Timer(0.6, released.set)

    def answer(connection):
        released.wait(TIMEOUT)
        with contextlib.suppress(OSError):
            connection.sendall(client.framed(ANSWER))

    with listening(path, answer):
        late = [run("--seconds=0.3", said=each) for each in (EVENT, COMPACTING)]
        slowly.start()
        ran = run(f"--seconds={TIMEOUT}", said=COMPACTING)

    assert [(0, b"", b"beaver hooks: TimeoutError\n")] * 2 == late
    assert (0, ANSWER, b"") == ran


def test_an_environment(run, path, environment):
    """At the start of a session the resident gets digests of the environment's variables, and no value."""
    environment["CANARY"] = "a value"
    with listening(path, lambda connection: connection.sendall(client.framed(ANSWER))) as requests:
        run(said=STARTING)

    event, _, digests = requests[0].partition(b"\0")
    lines = dict(reversed(each.split(b" ", 1)) for each in digests.splitlines())
    assert (STARTING, hashlib.sha256(b"a value").hexdigest().encode()) == (event, lines[b"CANARY"])
    assert b"a value" not in requests[0]


def test_a_folder_of_somebody_elses(run, path):
    """A client does not connect in a folder that other users can use, because any user could listen there."""
    path.parent.chmod(0o755)
    with listening(path, lambda connection: connection.sendall(client.framed(ANSWER))) as requests:
        ran = run("--start")

    assert ((0, b"", b"beaver hooks: Unsafe\n"), []) == (ran, requests)
    assert (0, client.OFF, b"beaver hooks: Unsafe\n") == run("--start", said=STARTING)


def test_a_link_in_place_of_the_folder(run, path, runtime):
    """A link to a private folder is refused in place of the folder."""
    path.parent.rename(runtime / "other")
    path.parent.symlink_to(runtime / "other")

    assert (0, b"", b"beaver hooks: Unsafe\n") == run("--start")


def test_a_resident_that_cannot_be_started(environment, tmp_path):
    """A resident that fails to import ends the wait; a starting session shows a message, and the log has the cause."""
    command = [sys.executable, "-I", "-S", client.__file__, f"--seconds={TIMEOUT * 2}", "--start"]
    environment |= {"PYTHONHOME": str(tmp_path)}
    ran = [
        subprocess.run(command, input=said, env=environment, capture_output=True, timeout=TIMEOUT, check=False)
        for said in (STARTING, EVENT)
    ]
    log = Path(client.socket_path([], environment)).with_suffix(".log")

    assert [client.OFF, b""] == [each.stdout for each in ran]
    assert [(0, b"beaver hooks: NotStarted\n")] * 2 == [(each.returncode, each.stderr) for each in ran]
    assert ["systemMessage"] == list(json.loads(client.OFF))
    assert log.stat().st_size > 0
    assert 0o600 == stat.S_IMODE(log.stat().st_mode)


def test_a_resident_that_made_way_for_nobody(path, monkeypatch):
    """The client starts a second resident when the first one has given way to another process that is gone too."""
    listeners, left = contextlib.ExitStack(), []

    def start(_where, _passed):
        if left:
            listeners.enter_context(listening(path, lambda connection: connection.sendall(client.framed(ANSWER))))
        left.append(os.posix_spawn(sys.executable, [sys.executable, "-c", ""], os.environ))
        return left[-1]

    monkeypatch.setattr(client, "_start", start)
    with listeners:
        answer = client._answer(str(path), EVENT, [], start=True, brief=False)
        os.waitpid(left[-1], 0)

    assert (ANSWER, 2) == (answer, len(left))


def test_a_resident_before_whom_too_many_wait(path):
    """A resident whose queue of connections is full raises `TimeoutError`, as a slow one does."""
    with contextlib.ExitStack() as waiting:
        server = waiting.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        server.bind(str(path))
        server.listen(0)
        with contextlib.suppress(BlockingIOError):
            for _ in range(1000):
                one = waiting.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                one.setblocking(False)
                one.connect(str(path))

        with pytest.raises(TimeoutError):
            client.ask(str(path), EVENT, 0.3)


def test_a_runtime_folder_of_somebody_elses(environment, runtime, monkeypatch):
    """A runtime folder without access, as after `su`, is not used, and the socket has another place."""
    monkeypatch.setattr(os, "access", lambda path, _: path != str(runtime))

    assert not client.socket_path([], environment).startswith(str(runtime))


# --- Closed streams ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", [b"", b"\x00\xff", b"[]"])
def test_any_stdin(run, path, said):
    """Any or no bytes on stdin leave the exit code 0."""
    with listening(path, lambda connection: connection.sendall(client.framed(b""))):
        assert (0, b"", b"") == run(said=said)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_closed_streams(path, environment, closed):
    """Closed streams leave the exit code 0."""
    line = f'"$0" -I -S "$1" {closed}; echo "code $?" >"$2"'
    with (
        tempfile.NamedTemporaryFile() as out,
        listening(path, lambda connection: connection.sendall(client.framed(ANSWER))),
    ):
        command = ["sh", "-c", line, sys.executable, client.__file__, out.name]
        subprocess.run(command, input=EVENT, env=environment, timeout=TIMEOUT, check=True, capture_output=True)

        assert b"code 0\n" == Path(out.name).read_bytes()


def test_a_stdin_that_never_ends(path, environment):
    """A stdin that stays open costs only the set time."""
    command = [sys.executable, "-I", "-S", client.__file__, "--seconds=0.3"]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert (0, b"") == (process.wait(TIMEOUT), process.stdout.read())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals(path, environment, number):
    """A signal leaves the exit code 0."""
    released, asked = threading.Event(), threading.Event()

    def wait(_):
        asked.set()
        released.wait(TIMEOUT)

    command = [sys.executable, "-I", "-S", client.__file__, "--seconds=20"]
    with listening(path, wait), subprocess.Popen(command, env=environment, stdin=subprocess.PIPE) as process:
        process.stdin.write(EVENT)
        process.stdin.close()
        asked.wait(TIMEOUT)
        process.send_signal(number)
        code = process.wait(TIMEOUT)
        released.set()

    assert 0 == code


@pytest.mark.parametrize("option", ["--seconds=", "--seconds=x", "--seconds=-1", "--seconds=nan"])
def test_wrong_options(run, option):
    """A mistyped option leaves the exit code 0."""
    assert (0, b"") == run(option)[:2]


def test_it_imports_next_to_nothing(environment):
    """The client imports no module that starts slowly: not the host, nor pathlib, json or subprocess."""
    code = f"import sys; sys.argv[0] = {client.__file__!r}; sys.path[:0] = [{os.path.dirname(client.__file__)!r}]; import client; print(*sys.modules)"  # noqa: PTH120
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], env=environment, capture_output=True, check=True, timeout=TIMEOUT
    )
    modules = {each.partition(".")[0] for each in ran.stdout.decode().split()}

    assert set() == modules & {
        "beaver_hooks",
        "beaver_hostspecs",
        "pathlib",
        "json",
        "subprocess",
        "asyncio",
        "typing",
        "re",
    }


# --- Paths ------------------------------------------------------------------------------------------------------


def test_one_resident_per_project(tmp_path, runtime):
    """Each project, configuration and trust has its own resident; a named configuration has one for all projects."""
    base = {"XDG_RUNTIME_DIR": str(runtime), "CLAUDE_PROJECT_DIR": str(tmp_path / "a")}
    other = base | {"CLAUDE_PROJECT_DIR": str(tmp_path / "b")}
    named = [f"--config={tmp_path}/.beaver/config.json"]
    paths = [
        client.socket_path([], base),
        client.socket_path([], other),
        client.socket_path([], base | {"BEAVER_CONFIG": "c.json"}),
        client.socket_path(["--trust=inner"], base),
        client.socket_path(named, base),
    ]

    assert 5 == len(set(paths))
    assert paths[4] == client.socket_path(named, other)
    assert paths[3] == client.socket_path(["--folder=" + os.path.realpath(tmp_path / "a"), "--trust=inner"], {**base})
    assert all(each.startswith(f"{runtime}/beaver-hooks-{os.getuid()}/") for each in paths)


def test_where_it_works(tmp_path, monkeypatch):
    """A resident works in the project folder, or in the folder of the state of a named configuration."""
    monkeypatch.chdir(tmp_path)
    project = {"CLAUDE_PROJECT_DIR": "/p"}

    assert ["/p", "/c", "/c", "/f", os.path.realpath(tmp_path)] == [
        client.folder_for([], project),
        client.folder_for(["--config=/c/config.json"], project),
        client.folder_for(["--config=/c/.beaver/config.json"], project),
        client.folder_for(["--folder=/f", "--config=/c/x.json"], project),
        client.folder_for([], {}),
    ]


@pytest.mark.parametrize(
    "places",
    [
        {},
        {"XDG_RUNTIME_DIR": "run"},
        {"XDG_RUNTIME_DIR": "/missing", "TMPDIR": ""},
        {"XDG_RUNTIME_DIR": "/" + "x" * 100},
    ],
)
def test_where_sockets_are(places):
    """Without a runtime folder, or with one whose path is too long for a socket, sockets are in `/tmp`."""
    expected = f"/tmp/beaver-hooks-{os.getuid()}"  # noqa: S108 - only compared, never opened

    assert expected == str(Path(client.socket_path([], {"CLAUDE_PROJECT_DIR": "/p", **places})).parent)
