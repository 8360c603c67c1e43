"""The command of each hook in Claude Code: hands the event to the resident process, and prints its answer.

Run by its path, as `python -I -S client.py [--seconds=N] [--start] [OPTION...]`, with the event on stdin. It imports
few modules, because a user waits for it. It always exits with 0 and writes only whole answers to stdout: Claude Code
treats another exit code as an error, and passes any other text to the model.

Other programs run the entries of Claude Code's settings files, too, and cannot use this output. Their events are
dropped; a file beside the socket names these programs for `beaver hooks status`.

`--seconds` is the client's time limit, `--start` starts a resident process if none answers. Every other option belongs
to the resident (see `resident`); its `--config` names the configuration.
"""

# Importing pathlib takes longer than the whole client.
# ruff: noqa: PTH100, PTH102, PTH109, PTH112, PTH117, PTH118, PTH119, PTH120

import hashlib
import os
import socket
import sys
from collections.abc import Mapping, Sequence

MAGIC = b"BEAVER1 "
"""The start of a message; the length of its body in decimal digits, a newline, and the body follow."""

MOST_REQUEST = 16 * 1024 * 1024
"""The largest event that the client hands on, in bytes."""

MOST_ANSWER = 65_000
"""The largest answer, in bytes. It fits into a pipe in one write, so the client never prints half an answer."""

MOST_PATH = 100
"""The longest path of a Unix socket; every system allows a little more."""

KIND, DIRECTORY, OTHERS = 0o170000, 0o040000, 0o077
"""Parts of a file's mode: the mask of its kind, the kind of a folder, and the permissions of other users."""

RESIDENT = "beaver_hooks.coding_agents.claude_code.resident"
STATUS = "beaver_status"
"""The name of the event that asks for the resident's status."""

SECONDS, START, CONFIG, FOLDER = "--seconds=", "--start", "--config=", "--folder="
PAUSE = 0.02
BRIEF = 0.3
"""Seconds for a resident that was late the last time; its next answer clears the mark."""

LATE = b'{"systemMessage": "Beaver Hooks: memory did not answer in time; `beaver hooks status` says more"}\n'
OFF = b'{"systemMessage": "Beaver Hooks: memory is off: its process cannot start; `beaver hooks status` says more"}\n'


TRANSCRIPT, CAMEL = "transcript_path", "hookEventName"
"""A field that Claude Code sends with every event, and one that it never sends."""

PROGRAMS = (("GROK_HOOK_EVENT", "Grok"), ("COPILOT_CLI", "Copilot"))
"""Other programs by the environment variable that they set for their hooks."""

UNKNOWN = "a program without a known name"


class Unsafe(OSError):
    """Other users can access the folder of the sockets."""


class NotStarted(OSError):
    """The resident process ended before it listened."""


class TooLarge(Exception):
    """An event exceeds `MOST_REQUEST`."""


def split(arguments: Sequence[str]) -> tuple[float, bool, list[str]]:
    """Return the time limit, whether to start a resident, and the options of the resident."""
    seconds = next((float(each[len(SECONDS) :]) for each in arguments if each.startswith(SECONDS)), 2.0)
    passed = [each for each in arguments if not each.startswith(SECONDS) and each != START]
    return seconds, START in arguments, passed


def folder_for(passed: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the working folder of a resident.

    If the installation named a configuration, this is the folder of the configuration, and all projects share one
    resident; otherwise it is the project's folder, and no two projects share memory.
    """
    for each in passed:
        if each.startswith(FOLDER):
            return each[len(FOLDER) :]
        if each.startswith(CONFIG):
            folder = os.path.dirname(os.path.abspath(each[len(CONFIG) :]))
            return os.path.dirname(folder) if os.path.basename(folder) == ".beaver" else folder
    return os.path.realpath(environment.get("CLAUDE_PROJECT_DIR") or os.getcwd())


def socket_path(passed: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the socket path of the resident for these options: one per folder, configuration and set of options."""
    options = sorted(each for each in passed if not each.startswith(FOLDER))
    parts = [folder_for(passed, environment), environment.get("BEAVER_CONFIG", ""), *options]
    name = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:20] + ".sock"
    for base in (environment.get("XDG_RUNTIME_DIR", ""), environment.get("TMPDIR", "")):
        path = os.path.join(base, _own(), name)
        # After `su` the variables may still name the folders of the user before.
        usable = os.path.isabs(base) and os.path.isdir(base) and os.access(base, os.W_OK | os.X_OK)
        if usable and len(os.fsencode(path)) <= MOST_PATH:
            return path
    return os.path.join("/tmp", _own(), name)  # noqa: S108 - in a folder of our own there, which is checked


def late_path(path: str) -> str:
    """Return the file that marks the resident at `path` as late."""
    return path.removesuffix(".sock") + ".late"


def others_path(path: str) -> str:
    """Return the file that names the other programs that sent events to the resident at `path`."""
    return path.removesuffix(".sock") + ".others"


def is_claude_code(request: bytes) -> bool:
    """Whether an event is one of Claude Code's, by the fields that it has.

    Copilot names no transcript before the answer; Grok has each field in camel case, too.
    """
    # A quote inside a text of JSON is escaped: these bytes are a whole key or a whole value.
    if b'"%s"' % TRANSCRIPT.encode() in request and b'"%s"' % CAMEL.encode() not in request:
        return True
    import json  # noqa: PLC0415 - Claude Code's events are seldom in doubt

    try:
        event = json.loads(request)
    except (ValueError, RecursionError):
        return False
    return isinstance(event, dict) and TRANSCRIPT in event and CAMEL not in event


def digests(environment: Mapping[str, str]) -> bytes:
    """Return a line for each variable: a digest of its value, a space, and its name."""
    pairs = ((hashlib.sha256(os.fsencode(value)).hexdigest(), name) for name, value in environment.items())
    return b"\n".join(os.fsencode(f"{digest} {name}") for digest, name in pairs)


def check_private(folder: str) -> None:
    """Raise `Unsafe` unless `folder` is a real folder that this user owns and no other user can access."""
    found = os.lstat(folder)
    if found.st_mode & (KIND | OTHERS) != DIRECTORY or found.st_uid != os.getuid():
        raise Unsafe("the folder of the sockets is not private; remove it")


def ask(path: str, request: bytes, seconds: float | None = None) -> bytes | None:
    """Send a request to the resident at `path`; return the body of the answer, or `None` if the answer is malformed.

    Raises:
        OSError: no process listens or answers, the folder is not private, or the time is over.
    """
    check_private(os.path.dirname(path))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(seconds)
        try:
            connection.connect(path)
        except BlockingIOError:  # the queue of the socket is full
            raise TimeoutError from None
        connection.sendall(framed(request))
        answer = bytearray()
        while len(answer) <= MOST_ANSWER and (piece := connection.recv(65536)):
            answer += piece
    if not answer:
        # A resident that ends meanwhile closes the connection without an answer; the next one may answer.
        raise ConnectionResetError
    return body_of(bytes(answer))


def framed(body: bytes) -> bytes:
    """Return a message."""
    return MAGIC + b"%d\n" % len(body) + body


def body_of(message: bytes) -> bytes | None:
    """Return the body of a whole message, or `None`."""
    head, newline, body = message.partition(b"\n")
    whole = newline and head == MAGIC + b"%d" % len(body) and len(message) <= MOST_ANSWER
    return body if whole else None


def main(arguments: Sequence[str]) -> None:
    """Hand the event on and print the answer, within the time."""
    seconds, start, passed = split(arguments)
    _set_end(seconds)
    path = socket_path(passed, os.environ)
    request = _read(0)
    if len(request) > MOST_REQUEST:
        raise TooLarge
    if not request:
        return
    if not is_claude_code(request):
        _note_other(path)
        return
    # The user sees the message once a session, not at each prompt. The start of a session and a compaction, during
    # which the user waits anyway, get the whole time limit.
    starts, compacts = b'"SessionStart"' in request, b'"PreCompact"' in request
    if starts:
        request += b"\0" + digests(os.environ)
    try:
        answer = _answer(path, request, passed, start=start, brief=not (starts or compacts))
    except TimeoutError:
        if starts:
            os.write(1, LATE)
        os.close(os.open(late_path(path), os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        raise
    except OSError:
        if starts:
            os.write(1, OFF)
        raise
    if answer and answer.startswith(b"{") and answer.endswith(b"}\n"):
        os.write(1, answer)


def _answer(path: str, request: bytes, passed: Sequence[str], *, start: bool, brief: bool) -> bytes | None:
    """Ask until a resident answers. Start another resident only if the last one ended without an error.

    Raises:
        TimeoutError: the time is over, or, with `brief`, a resident that was late before is late again.
        OSError: no resident can be started.
    """
    import time  # noqa: PLC0415 - used only if no resident answers

    started = 0
    while True:
        try:
            return ask(path, request, BRIEF if brief and os.path.lexists(late_path(path)) else None)
        except (Unsafe, TimeoutError):
            raise
        except OSError:
            if not start:
                return None
        if not started:
            started = _start(path, passed)
        else:
            ended, error = os.waitpid(started, os.WNOHANG)
            if error:
                raise NotStarted
            # The started resident found another one, which may have ended for a third one since.
            started = 0 if ended else started
        time.sleep(PAUSE)


def _start(path: str, passed: Sequence[str]) -> int:
    """Start the resident process in a session of its own; it inherits only a log for its stderr."""
    _make_private(os.path.dirname(path))
    if pid := os.fork():
        return pid
    try:
        os.setsid()
        os.closerange(3, 256)
        null = os.open(os.devnull, os.O_RDWR)
        log = os.open(path.removesuffix(".sock") + ".log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for number, target in ((null, 0), (null, 1), (log, 2)):
            os.dup2(number, target)
        where = folder_for(passed, os.environ)
        os.chdir(where)
        options = [each for each in passed if not each.startswith(FOLDER)]
        # `-P`: a module in the user's project must not shadow a module of Beaver Hooks.
        os.execv(sys.executable, [sys.executable, "-P", "-m", RESIDENT, FOLDER + where, *options])  # noqa: S606 - ours
    finally:
        os._exit(1)


def _note_other(path: str) -> None:
    """Record, once, the program whose event was dropped."""
    name = next((each for variable, each in PROGRAMS if variable in os.environ), UNKNOWN).encode() + b"\n"
    _make_private(os.path.dirname(path))
    file = os.open(others_path(path), os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    if name not in os.read(file, 4096):
        os.write(file, name)
    os.close(file)


def _make_private(folder: str) -> None:
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        check_private(folder)


def _set_end(seconds: float) -> None:
    """Raise `TimeoutError` when the time is over; exit with 0 on a signal to end."""
    import signal  # noqa: PLC0415 - callers that only look up a socket do not need it

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: os._exit(0))
    signal.signal(signal.SIGALRM, _be_late)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _be_late(*_: object) -> None:
    raise TimeoutError


def _read(number: int) -> bytes:
    """Return the content of stdin; of an event that is too large, only a little more than `MOST_REQUEST`."""
    pieces, length = [], 0
    while piece := os.read(number, 1 << 20):
        length += len(piece)
        if length <= MOST_REQUEST + (1 << 20):
            pieces.append(piece)
    return b"".join(pieces)


def _own() -> str:
    return f"beaver-hooks-{os.getuid()}"


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BaseException as error:  # noqa: BLE001 - no error stops the user's turn; Claude Code shows it on demand
        sys.stderr.write(f"beaver hooks: {type(error).__name__}\n")
        sys.stderr.flush()
    finally:
        os._exit(0)
