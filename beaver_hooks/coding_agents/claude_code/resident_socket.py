"""The place where a resident listens: a socket in a private folder, and the lock that keeps a second one away."""

import contextlib
import importlib.util
import os
import socket
import struct
import time
from pathlib import Path
from typing import Self

import attrs

from beaver_hooks.coding_agents.claude_code.client import check_private, late_path
from beaver_toolkit.locks import LockTimeout, locked

UNSUPPORTED = "the hooks need Unix sockets and POSIX file locks, which Python lacks on this system; use `beaver mcp`"

PATIENCE = 10.0
"""Seconds that a resident waits for one that has the lock and does not listen: that one is starting or ending."""

PAUSE = 0.02
BACKLOG = 64


@attrs.define(eq=False)
class SocketPath:
    """A socket on which only this process listens.

    Attributes:
        path: the path of the socket.
        listening: the socket.
    """

    path: Path
    listening: socket.socket
    _taken: contextlib.ExitStack

    @classmethod
    def take(cls, path: Path) -> Self | None:
        """Listen at `path`, or return `None` where another process does.

        Raises:
            OSError: the folder is not private, or cannot be used.
            TimeoutError: another process has the place and does not listen.
        """
        with contextlib.suppress(FileExistsError):
            path.parent.mkdir(mode=0o700)
        check_private(str(path.parent))
        with contextlib.ExitStack() as stack:
            if not _locked(stack, path):
                return None
            Path(late_path(str(path))).unlink(missing_ok=True)
            listening = _listen(path)
            stack.callback(listening.close)
            stack.callback(path.unlink, missing_ok=True)
            return cls(path, listening, stack.pop_all())

    def be_in_time(self) -> None:
        """Clear the mark that this resident was late."""
        Path(late_path(str(self.path))).unlink(missing_ok=True)

    def leave(self) -> None:
        """Take the socket away and let another process listen. The lock goes last, or it would lose its socket."""
        self._taken.close()


def is_supported() -> bool:
    """Whether a resident can listen on this system."""
    return hasattr(socket, "AF_UNIX") and importlib.util.find_spec("fcntl") is not None


def same_user(connection: socket.socket) -> bool:
    """Whether this user runs the client, as far as the system tells; the folder keeps other users out anyway."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    return bool(user == os.getuid())


def _locked(stack: contextlib.ExitStack, path: Path) -> bool:
    """Wait for the lock; `False` once another process listens."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            stack.enter_context(locked(path.with_suffix(".lock"), seconds=0, on_acquired=_write_process))
        except LockTimeout:
            if _listens(path):
                return False
        else:
            return True
        if time.monotonic() >= end:
            raise TimeoutError("another resident process holds the lock of this folder and does not answer")
        time.sleep(PAUSE)


def _write_process(lock: int) -> None:
    """Name this process in its lock file, so that the user can find one that does not answer."""
    os.ftruncate(lock, 0)
    os.write(lock, b"%d\n" % os.getpid())


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(PAUSE)
        try:
            connection.connect(str(path))
        except OSError:
            return False
    return True


def _listen(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Bound under another name: once clients see the socket, they can connect to it, and its mode is right.
        temporary = path.with_suffix(".new")
        temporary.unlink(missing_ok=True)
        listening.bind(str(temporary))
        temporary.chmod(0o600)
        listening.listen(BACKLOG)
        listening.settimeout(0)
        temporary.replace(path)
    except BaseException:
        listening.close()
        raise
    return listening
