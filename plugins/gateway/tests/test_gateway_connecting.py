"""Names are looked up where that disturbs nobody, and addresses tried in turn."""

import asyncio
import socket
import threading

import httpcore
import pytest

from beaver_hooks_gateway import GatewayTimedOut, GatewayUnreachable, connecting
from beaver_hooks_gateway.connecting import Backend, Resolver, first, look_up
from beaver_hooks_gateway.testing import FakeGateway


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


@pytest.fixture
def lookups(monkeypatch):
    made = Lookups(**{"gateway.example": ["127.0.0.1"], "two.example": ["127.0.0.2", "127.0.0.1", "127.0.0.2"]})
    monkeypatch.setattr(socket, "getaddrinfo", made)
    yield made
    made.going.set()


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
    """Who asks for a name that is being looked up waits for that lookup; the next one is a new one."""
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


async def test_the_next_address_is_tried(gateway, lookups, make_client):
    """An address where nobody listens costs nothing but its try; the name goes on being the name."""
    client = make_client(gateway, base_url=f"http://two.example:{gateway.port}", allow_insecure_http=True)
    await client.search(session="s1", query="a", seconds=5.0)

    assert f"two.example:{gateway.port}" == gateway.received[0].headers["host"]


async def test_an_address_that_takes_its_time(monkeypatch):
    """After a pause the next one is tried as well; the first that answers wins, and the others are closed."""
    monkeypatch.setattr(connecting, "PAUSE", 0.0)
    made, going = [], asyncio.Event()

    async def connect(address):
        try:
            if address == "slow":
                await going.wait()
        except asyncio.CancelledError:
            pass  # it was connected just then
        made.append(Stream(address))
        return made[-1]

    chosen = await first(["slow", "fast"], connect)

    assert [("fast", False), ("slow", True)] == [(each.address, each.closed) for each in made]
    assert "fast" == chosen.address


async def test_an_address_that_answers_after_another_has_failed(monkeypatch):
    """Where the last address fails, those before it may still answer."""
    monkeypatch.setattr(connecting, "PAUSE", 0.0)
    failed = asyncio.Event()

    async def connect(address):
        if address == "fails":
            failed.set()
            raise httpcore.ConnectError(address)
        await failed.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        return Stream(address)

    assert "slow" == (await first(["slow", "fails"], connect)).address


async def test_no_address_answers():
    """Where all fail it is the last one that says why."""

    async def connect(address):
        raise httpcore.ConnectError(address)

    with pytest.raises(httpcore.ConnectError, match=r"^b$"):
        await first(["a", "b"], connect)


async def test_a_lookup_that_hangs(lookups, make_client):
    """It costs a request its own deadline, and the loop's own threads are nobody else's."""
    async with FakeGateway() as gateway:
        client = make_client(gateway, base_url="https://hangs.example")
        calls = [client.search(session="s1", query="a", seconds=0.1) for _ in range(40)]
        errors = await asyncio.gather(*calls, return_exceptions=True)

        assert {GatewayTimedOut} == {type(each) for each in errors}
        assert (["hangs.example"], "free") == (lookups.asked, await asyncio.to_thread(lambda: "free"))


async def test_tls_is_checked_against_the_name(server_tls, ca_bundle, lookups, make_client):
    """A name whose address has a certificate for others is refused; one that the certificate names is not."""
    lookups.known["localhost"] = ["127.0.0.1"]
    async with FakeGateway(tls=server_tls) as gateway:
        for name in ("localhost", "localhost."):
            good = make_client(gateway, base_url=f"https://{name}:{gateway.port}", ca_bundle=ca_bundle)
            lookups.known[name] = ["127.0.0.1"]
            await good.search(session="s1", query="a", seconds=5.0)
        other = make_client(gateway, base_url=f"https://gateway.example:{gateway.port}", ca_bundle=ca_bundle)
        with pytest.raises(GatewayUnreachable) as caught:
            await other.search(session="s1", query="a", seconds=5.0)
        await good.close()

    assert ("tls", 2) == (caught.value.category, len(gateway.received))
