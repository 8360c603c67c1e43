"""The client and the name of the gateway: looked up without delaying others, and checked by TLS."""

import asyncio

import name_lookups
import pytest

from beaver_hooks_gateway import GatewayTimedOut, GatewayUnreachable
from beaver_hooks_gateway.testing import FakeGateway

lookups = pytest.fixture(name="lookups")(name_lookups.patched)


async def test_the_next_address_is_tried(gateway, lookups, make_client):
    """An address that refuses connections costs its try alone; the header names the host and not the address."""
    client = make_client(gateway, base_url=f"http://two.example:{gateway.port}", allow_insecure_http=True)
    await client.search(session="s1", query="a", seconds=5.0)

    assert f"two.example:{gateway.port}" == gateway.received[0].headers["host"]


async def test_a_lookup_that_hangs(lookups, make_client):
    """It costs a request its own deadline, and the loop's own threads stay free."""
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
