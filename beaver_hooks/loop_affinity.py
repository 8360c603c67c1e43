"""Where an open host may be used: in the process and on the event loop that opened it."""

import asyncio
import os

from beaver_hostspecs import ForkedHost, HostNotOpen, WrongLoop

FORKED = (
    "this host was opened before a fork and cannot be used in the child; spawn the child instead, and open a host there"
)


class Home:
    """The place that a host was opened in, until it is left."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()
        self._left = False

    def leave(self) -> None:
        """Let nobody use the host any more."""
        self._left = True

    def check(self) -> None:
        """Raise unless this is the place, and the host is open."""
        self.check_open()
        if self._loop is not _running_loop():
            raise WrongLoop(
                "a host can only be used in the event loop that opened it; without an event loop use"
                " beaver_hooks.SyncHost"
            )

    def check_open(self) -> None:
        """Raise unless the host is open in this process, for what any thread may use."""
        if self._left:
            raise not_open()
        self.check_process()

    def check_process(self) -> None:
        """Raise in a forked child."""
        if os.getpid() != self._process:
            raise ForkedHost(FORKED)


def not_open() -> HostNotOpen:
    """Return what a host says that is not open."""
    return HostNotOpen("this host is not open; enter it with `async with host:` or `await host.open()`")


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
