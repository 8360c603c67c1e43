"""The system's lookup of names, replaced by one that knows two names and hangs over a third."""

import socket
import threading
from collections.abc import Iterator

import pytest


class Lookups:
    """A system that knows some names and hangs over others."""

    def __init__(self, **known):
        self.known, self.asked, self.going = known, [], threading.Event()

    def __call__(self, host, port, *_, **__):
        self.asked.append(host)
        if host == "hangs.example":
            self.going.wait()
        if host not in self.known:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in self.known[host]]


def patched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lookups]:
    """Put the lookups in place, for a fixture; those that hang end with it."""
    made = Lookups(**{"gateway.example": ["127.0.0.1"], "two.example": ["127.0.0.2", "127.0.0.1", "127.0.0.2"]})
    monkeypatch.setattr(socket, "getaddrinfo", made)
    yield made
    made.going.set()
