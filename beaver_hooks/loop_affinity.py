"""Restricts the use of an open host to the process and the event loop that opened it."""

import asyncio
import os

from beaver_hostspecs import ForkedHost, HostNotOpen, WrongLoop

FORKED = (
    "this host was opened before a fork and cannot be used in the child; spawn the child instead, and open a host there"
)


class LoopAffinity:
    """The process and event loop that opened a host, until the host is closed."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()
        self._left = False

    def leave(self) -> None:
        """Refuse every later use of the host."""
        self._left = True

    def check(self) -> None:
        """Raise unless the host is open, and this is its process and event loop."""
        self.check_open()
        if self._loop is not _running_loop():
            raise WrongLoop(
                "a host can only be used in the event loop that opened it; without an event loop use"
                " beaver_hooks.SyncHost"
            )

    def check_open(self) -> None:
        """Raise unless the host is open in this process; for methods that any thread may call."""
        if self._left:
            raise not_open()
        self.check_process()

    def check_process(self) -> None:
        """Raise in a forked child."""
        if os.getpid() != self._process:
            raise ForkedHost(FORKED)


def not_open() -> HostNotOpen:
    """Return the error for a host that is not open."""
    return HostNotOpen("this host is not open; enter it with `async with host:` or `await host.open()`")


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
