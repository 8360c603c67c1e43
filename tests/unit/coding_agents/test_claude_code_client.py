"""The client as the process that it is: whatever it meets, it exits with 0, and says nothing but a whole answer."""

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

from beaver_hooks.adapters import claude_code as earlier
from beaver_hooks.coding_agents.claude_code import client

COMMON = {"session_id": "s", "transcript_path": "/t.jsonl", "cwd": "/p"}
EVENT = json.dumps({**COMMON, "hook_event_name": "UserPromptSubmit", "prompt": "Hi."}).encode()
STARTING = json.dumps({**COMMON, "hook_event_name": "SessionStart"}).encode()
ANSWER = b'{"hookSpecificOutput": {}}\n'
TIMEOUT = 30


@pytest.fixture
def path(environment):
    """Where the client looks for a resident, in a folder that is private."""
    path = Path(client.socket_path([], environment))
    path.parent.mkdir(mode=0o700)
    return path


@pytest.fixture
def run(environment):
    """Return what runs the client; it gives exit code, stdout and stderr."""

    def run(*options, said=EVENT, **more):
        command = [sys.executable, "-I", "-S", client.__file__, *options]
        ran = subprocess.run(
            command, input=said, env=environment, capture_output=True, timeout=TIMEOUT, check=False, **more
        )
        return ran.returncode, ran.stdout, ran.stderr

    return run


@contextlib.contextmanager
def listening(path, answer):
    """Give the requests that come to a socket; `answer` does something with each connection."""
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
    """What is framed is found again; no beginning of it, and nothing longer, is taken for a message."""
    message = client.framed(body)

    assert body == client.body_of(message)
    assert {None} == {client.body_of(message[:end]) for end in range(len(message))}
    assert None is client.body_of(message + b"x")


@given(st.binary(max_size=60) | st.binary(max_size=30).map(lambda each: client.MAGIC + each))
def test_any_message(message):
    """Whatever comes, it is nothing, or exactly a message."""
    body = client.body_of(message)

    assert body is None or client.framed(body) == message


# --- What it says -----------------------------------------------------------------------------------------------


def test_an_answer(run, path):
    """What the resident answers is printed as it is; it gets the event as it is."""
    with listening(path, lambda connection: connection.sendall(client.framed(ANSWER))) as requests:
        ran = run()

    assert ((0, ANSWER, b""), [EVENT]) == (ran, requests)


def test_a_large_event(run, path):
    """An event that is larger than what a socket takes at once arrives whole."""
    event = json.dumps({**COMMON, "hook_event_name": "UserPromptSubmit", "prompt": "x" * 3_000_000}).encode()
    with listening(path, lambda connection: connection.sendall(client.framed(b""))) as requests:
        ran = run(said=event)

    assert ((0, b"", b""), [event]) == (ran, requests)


def test_an_event_that_is_too_large(run, path):
    """An event beyond all bounds is handed on to nobody, which is said where Claude Code shows it on demand."""
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
    """What is no whole answer is not printed, and is no reason for another exit code."""

    def say(connection):
        with contextlib.suppress(OSError):
            connection.sendall(answer)

    with listening(path, say):
        assert (0, b"") == run("--seconds=2")[:2]


# --- What is not there ------------------------------------------------------------------------------------------


def test_nobody(run):
    """Where there is no resident, nothing is said."""
    assert (0, b"", b"") == run()


def test_a_dead_socket(run, path):
    """Where a resident was killed, its socket lies about, and nothing is said."""
    with listening(path, lambda _: None):
        pass

    assert path.is_socket()
    assert (0, b"", b"") == run()


def test_a_file_in_place_of_the_socket(run, path):
    """Where something else lies, nothing is said."""
    path.write_text("x")

    assert (0, b"", b"") == run()


def test_a_resident_that_is_killed_in_between(run, path):
    """Where the resident goes without an answer and nobody else comes, nothing is said."""
    with listening(path, lambda connection: connection.close()):
        assert (0, b"", b"") == run()


def test_a_slow_resident(run, path):
    """A resident that is too slow costs the time that is set, once; whoever starts a session is told."""
    released = threading.Event()
    with listening(path, lambda _: released.wait(TIMEOUT)):
        ran = [run("--seconds=0.3"), run(f"--seconds={TIMEOUT * 2}"), run("--seconds=0.3", said=STARTING)]
        released.set()

    late = b"beaver hooks: TimeoutError\n"
    assert [(0, b"", late), (0, b"", late), (0, client.LATE, late)] == ran
    assert ["systemMessage"] == list(json.loads(client.LATE))


def test_an_environment(run, path, environment):
    """When a session starts, the resident is told which variables there are, and no value of them."""
    environment["CANARY"] = "a value"
    with listening(path, lambda connection: connection.sendall(client.framed(ANSWER))) as requests:
        run(said=STARTING)

    event, _, digests = requests[0].partition(b"\0")
    lines = dict(reversed(each.split(b" ", 1)) for each in digests.splitlines())
    assert (STARTING, hashlib.sha256(b"a value").hexdigest().encode()) == (event, lines[b"CANARY"])
    assert b"a value" not in requests[0]


def test_a_folder_of_somebody_elses(run, path):
    """A folder that others can use is not used: whoever listens there could be anybody."""
    path.parent.chmod(0o755)
    with listening(path, lambda connection: connection.sendall(client.framed(ANSWER))) as requests:
        ran = run("--start")

    assert ((0, b"", b"beaver hooks: Unsafe\n"), []) == (ran, requests)
    assert (0, client.OFF, b"beaver hooks: Unsafe\n") == run("--start", said=STARTING)


def test_a_link_in_place_of_the_folder(run, path, runtime):
    """A link to a folder of ours is not a folder of ours."""
    path.parent.rename(runtime / "other")
    path.parent.symlink_to(runtime / "other")

    assert (0, b"", b"beaver hooks: Unsafe\n") == run("--start")


def test_a_resident_that_cannot_be_started(environment, tmp_path):
    """Where the resident cannot be imported nobody waits for it; the person is told once a session, the log says why."""
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
    """Where the one that was started has left for another one, and that one is gone too, the next one is started."""
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
    """One that takes nobody is late, also where there is no room to wait for it."""
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
    """A variable that still names the folder of the user before `su` costs nobody the memory."""
    monkeypatch.setattr(os, "access", lambda path, _: path != str(runtime))

    assert not client.socket_path([], environment).startswith(str(runtime))


# --- What is closed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", [b"", b"\x00\xff", b"[]"])
def test_any_stdin(run, path, said):
    """Whatever is on stdin, or nothing, is no reason for another exit code."""
    with listening(path, lambda connection: connection.sendall(client.framed(b""))):
        assert (0, b"", b"") == run(said=said)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_closed_streams(path, environment, closed):
    """Where streams are closed, the exit code is the same."""
    line = f'"$0" -I -S "$1" {closed}; echo "code $?" >"$2"'
    with (
        tempfile.NamedTemporaryFile() as out,
        listening(path, lambda connection: connection.sendall(client.framed(ANSWER))),
    ):
        command = ["sh", "-c", line, sys.executable, client.__file__, out.name]
        subprocess.run(command, input=EVENT, env=environment, timeout=TIMEOUT, check=True, capture_output=True)

        assert b"code 0\n" == Path(out.name).read_bytes()


def test_a_stdin_that_never_ends(path, environment):
    """A stdin that nobody closes costs the time that is set."""
    command = [sys.executable, "-I", "-S", client.__file__, "--seconds=0.3"]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert (0, b"") == (process.wait(TIMEOUT), process.stdout.read())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals(path, environment, number):
    """Whoever ends it gets the same exit code."""
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
    """An option that was mistyped is no reason for another exit code."""
    assert (0, b"") == run(option)[:2]


def test_it_imports_next_to_nothing(environment):
    """None of what makes an interpreter slow to start is imported: not the host, nor pathlib, json or subprocess."""
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


# --- Where it looks ---------------------------------------------------------------------------------------------


def test_one_resident_per_project(tmp_path, runtime):
    """Two projects, two configurations, or two ways to trust have two residents; with a named one all share one."""
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
    """A resident works in the project, or where a named configuration has its state."""
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
    """Where there is no runtime folder, or its path is too long for a socket, they are in the one for temporary files."""
    expected = f"/tmp/beaver-hooks-{os.getuid()}"  # noqa: S108 - it is what is shown

    assert expected == str(Path(client.socket_path([], {"CLAUDE_PROJECT_DIR": "/p", **places})).parent)


def test_hooks_of_an_earlier_version_run_the_client(environment, path):
    """The command of a hook that an earlier version has installed names a file at another place, which runs the client."""
    command = [sys.executable, "-I", "-S", Path(earlier.__file__).parent / "client.py", f"--seconds={TIMEOUT}"]
    with listening(path, lambda connection: connection.sendall(client.framed(ANSWER))) as requests:
        ran = subprocess.run(command, input=EVENT, env=environment, capture_output=True, timeout=TIMEOUT, check=False)

    assert (0, ANSWER, b"", [EVENT]) == (ran.returncode, ran.stdout, ran.stderr, requests)
