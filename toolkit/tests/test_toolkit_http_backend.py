"""Names are looked up without delaying other calls, and addresses tried in turn."""

import asyncio
import socket

import httpcore
import name_lookups
import pytest

from beaver_toolkit import http
from beaver_toolkit.dns import Resolver, look_up
from beaver_toolkit.http import Backend, connect_first

lookups = pytest.fixture(name="lookups")(name_lookups.patched)


class Stream(httpcore.AsyncNetworkStream):
    def __init__(self, address):
        self.address, self.closed = address, False

    async def aclose(self):
        self.closed = True


async def test_addresses(lookups):
    """A name is looked up, each of its addresses counts once, and an address is no name."""
    resolver = Resolver()

    assert ["127.0.0.2", "127.0.0.1"] == await resolver.addresses("two.example", 80)
    assert [["127.0.0.1"], ["::1"]] == [await resolver.addresses(each, 80) for each in ("127.0.0.1", "::1")]
    assert ["two.example"] == lookups.asked


async def test_one_lookup_at_a_time(lookups):
    """Callers share a lookup of the name that runs; the next one is a new one."""
    resolver = Resolver()
    found = await asyncio.gather(*[resolver.addresses("gateway.example", 80) for _ in range(20)])

    assert ([["127.0.0.1"]] * 20, 1) == (found, len(lookups.asked))
    await resolver.addresses("gateway.example", 80)
    assert 2 == len(lookups.asked)


@pytest.mark.parametrize("name", ["unknown.example", f"{'a' * 64}.example"])
async def test_a_name_without_an_address(lookups, name):
    """What the system does not know, or cannot be asked for, is an error of the lookup."""
    with pytest.raises(socket.gaierror):
        await Resolver().addresses(name, 80)
    with pytest.raises(httpcore.ConnectError):
        await Backend(Resolver()).connect_tcp(name, 80)


def test_a_name_that_cannot_be_written():
    """A name that the system's codec refuses has no address."""
    assert [] == look_up(f"{'a' * 64}.example", 80)


async def test_an_address_that_takes_its_time(monkeypatch):
    """After a pause the next one is tried as well; the first that answers wins, and the others are closed."""
    monkeypatch.setattr(http, "PAUSE", 0.0)
    made, going = [], asyncio.Event()

    async def connect(address):
        try:
            if address == "slow":
                await going.wait()
        except asyncio.CancelledError:
            pass  # it was connected just then
        made.append(Stream(address))
        return made[-1]

    chosen = await connect_first(["slow", "fast"], connect)

    assert [("fast", False), ("slow", True)] == [(each.address, each.closed) for each in made]
    assert "fast" == chosen.address


async def test_an_address_that_answers_after_another_has_failed(monkeypatch):
    """Where the last address fails, those before it may still answer."""
    monkeypatch.setattr(http, "PAUSE", 0.0)
    failed = asyncio.Event()

    async def connect(address):
        if address == "fails":
            failed.set()
            raise httpcore.ConnectError(address)
        await failed.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        return Stream(address)

    assert "slow" == (await connect_first(["slow", "fails"], connect)).address


async def test_no_address_answers():
    """Where all fail it is the last one that says why."""

    async def connect(address):
        raise httpcore.ConnectError(address)

    with pytest.raises(httpcore.ConnectError, match=r"^b$"):
        await connect_first(["a", "b"], connect)


async def test_a_name_that_hangs_delays_no_other(lookups):
    """A lookup that hangs keeps its own thread: another name is looked up meanwhile, and the loop's threads are free."""
    resolver = Resolver()
    hanging = [asyncio.create_task(resolver.addresses("hangs.example", 80)) for _ in range(40)]
    await asyncio.sleep(0)

    assert ["127.0.0.1"] == await resolver.addresses("gateway.example", 80)
    assert (["hangs.example", "gateway.example"], "free") == (
        lookups.asked, await asyncio.to_thread(lambda: "free"),
    )  # fmt: skip
    for task in hanging:
        task.cancel()
    assert {asyncio.CancelledError} == {type(each) for each in await asyncio.gather(*hanging, return_exceptions=True)}


async def test_a_lookup_that_cannot_begin(lookups):
    """Where too many lookups wait, the next one fails like a name without an address."""
    resolver = Resolver()
    resolver._workers.shut()
    with pytest.raises(httpcore.ConnectError, match="the name cannot be resolved"):
        await Backend(resolver).connect_tcp("gateway.example", 80)
