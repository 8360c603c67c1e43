"""Looks up host names in threads of its own, for an event loop: a lookup that hangs delays no other call.

A lookup cannot be ended, and the loop's own threads are shared by the whole process. So each lookup has a daemon
thread, which the end of the process does not wait for.
"""

import asyncio
import ipaddress
import socket
from functools import partial

from beaver_toolkit.workers import Workers

THREADS = 4
"""Lookups that run at once; a further name waits only while all of them hang."""


class Resolver:
    """Looks up names for one event loop, one lookup of a name at a time: callers that need it meanwhile share it."""

    def __init__(self) -> None:
        self._workers = Workers("beaver-names", threads=THREADS, idle_seconds=0)
        self._lookups: dict[str, asyncio.Future[list[str]]] = {}

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host, at least one. An address is its own and needs no lookup.

        Raises:
            socket.gaierror: the host has none.
            Overloaded: too many lookups of other names wait.
        """
        if _is_address(host):
            return [host]
        if host not in self._lookups:
            lookup = self._lookups[host] = self._workers.run(partial(look_up, host, port))
            lookup.add_done_callback(lambda _: self._lookups.pop(host))
        found = await asyncio.shield(self._lookups[host])
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "the name has no address")
        return found


def look_up(host: str, port: int) -> list[str]:
    """Return the addresses that the system has for a host, each once; an empty list where it has none. It may block."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [*dict.fromkeys(str(address[0]) for *_, address in found)]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
