"""The client over real connections: one request per call, on the right connection, within its deadline."""

import asyncio
import contextlib
import gc

import pytest

from beaver_hooks_gateway import GatewayError, GatewayRefused, GatewayTimedOut, GatewayUnknown, GatewayUnreachable
from beaver_hooks_gateway.client import Sending
from beaver_hooks_gateway.errors import PATHS
from beaver_hooks_gateway.testing import FakeGateway, Fault, Reply
from beaver_hooks_gateway.wire import RecalledMemory
from beaver_hostspecs import ConfigurationError
from beaver_hostspecs.testing import make_answer, make_turn
from beaver_toolkit.http import CONNECTIONS, IDLE_CONNECTIONS

TURN, ANSWER = make_turn(session="s1"), make_answer()


async def all_three(client, *, seconds=5.0):
    found = await client.search(session="s1", query=TURN.prompt, seconds=seconds)
    count = await client.add(TURN, ANSWER, seconds=seconds)
    await client.flush(session="s1", seconds=seconds)
    return found, count


async def test_https_with_a_certificate_of_ones_own(server_tls, ca_bundle, make_client):
    """A gateway whose certificate is in the configured file is trusted."""
    async with FakeGateway(tls=server_tls) as gateway:
        client = make_client(gateway, ca_bundle=ca_bundle)
        assert 2 == (await all_three(client))[1]
        await client.close()


async def test_https_with_a_certificate_that_is_not_trusted(server_tls, make_client):
    """A certificate that is not trusted ends the connection before anything is sent."""
    async with FakeGateway(tls=server_tls) as gateway:
        client = make_client(gateway)
        with pytest.raises(GatewayUnreachable) as caught:
            await client.search(session="s1", query="a", seconds=5.0)
        await client.close()

    assert ("tls", [], True) == (caught.value.category, gateway.received, caught.value.transient)


@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_a_file_without_certificates(content, tmp_path, gateway, make_client):
    """A file of certificates that cannot be used fails loading and names the setting."""
    if content is not None:
        (tmp_path / "ca.pem").write_text(content)
    with pytest.raises(ConfigurationError) as caught:
        make_client(gateway, ca_bundle=tmp_path / "ca.pem")

    assert ("memory.gateway.caBundle", None) == (caught.value.path, caught.value.__context__)


async def test_add_uses_no_idle_connection(gateway, make_client):
    """Searches share one connection, and every add has its own, which no other request uses."""
    client = make_client(gateway)
    for _ in range(3):
        await all_three(client)

    used = {name: [each.connection for each in gateway.received if each.operation == name] for name in PATHS}
    assert (1, 3, 1) == tuple(len({*used[name]}) for name in PATHS)
    assert set() == {*used["add"]} & {*used["search"], *used["flush"]}


async def test_an_idle_connection_that_was_closed_is_no_failure(gateway, make_client):
    """A server that closes idle connections between two searches costs nothing."""
    client = make_client(gateway)
    gateway.keep_alive = False
    for _ in range(3):
        await client.search(session="s1", query="a", seconds=5.0)

    assert 3 == gateway.connections


async def test_a_redirect_is_not_followed(gateway, make_client, canary):
    """A redirect is not followed, so the body with the key goes only to the configured address."""
    async with FakeGateway(user_key=canary.secret) as elsewhere:
        gateway.elsewhere = elsewhere.base_url + "/memories/search"
        gateway.misbehave("search", Fault.REDIRECT)
        with pytest.raises(GatewayRefused) as caught:
            await make_client(gateway).search(session="s1", query="a", seconds=5.0)

    assert ("redirected", 307) == (caught.value.category, caught.value.status)
    assert ([], 0) == (elsewhere.received, elsewhere.connections)


@pytest.mark.shows("000-118", "001-090")
async def test_the_environment_has_no_say(gateway, make_client, monkeypatch):
    """Requests ignore the proxies of the environment."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    await all_three(make_client(gateway))

    assert ["search", "add", "flush"] == gateway.operations


async def test_a_proxy_that_is_configured(gateway, make_client):
    """A proxy gets the requests, with the whole address of the gateway."""
    client = make_client(gateway, base_url="http://localhost:1/prefix", proxy=gateway.base_url)
    await all_three(client)

    assert [f"http://localhost:1/prefix{path}" for path in PATHS.values()] == [each.path for each in gateway.received]


@pytest.mark.shows("000-060", "000-132", "001-047", "001-101")
@pytest.mark.parametrize("secure", [False, True])
async def test_the_deadline_is_total(secure, server_tls, ca_bundle, make_client):
    """Neither silence nor a slow drip extends the deadline, with and without TLS, and the connection is closed."""
    async with FakeGateway(tls=server_tls if secure else None) as gateway:
        client = make_client(gateway, ca_bundle=ca_bundle)
        for fault in (Fault.READ_TIMEOUT, Fault.SLOW_DRIP):
            gateway.misbehave("search", fault)
            gateway.gone.clear()
            async with asyncio.timeout(5):
                with pytest.raises(GatewayTimedOut) as caught:
                    await client.search(session="s1", query="a", seconds=0.1)
            assert ("timeout", None) == (caught.value.category, caught.value.status)
            await gateway.gone.wait()
        await client.close()


@pytest.mark.shows("000-063", "000-092", "001-050")
@pytest.mark.parametrize("fault", [Fault.RESET_BEFORE_HEADERS, Fault.READ_TIMEOUT, Fault.STATUS_500, Fault.TRUNCATED])
async def test_nothing_is_sent_twice(gateway, make_client, fault):
    """Each call sends exactly one request, also when it fails."""
    client = make_client(gateway)
    for operation in PATHS:
        gateway.misbehave(operation, fault)
    for call in (
        client.search(session="s1", query="a", seconds=0.2),
        client.add(TURN, ANSWER, seconds=0.2),
        client.flush(session="s1", seconds=0.2),
    ):
        with pytest.raises(GatewayError):
            await call

    assert ["search", "add", "flush"] == gateway.operations


async def test_an_add_that_was_sent_and_not_answered(gateway, make_client):
    """The outcome of an add is unknown once its body was sent, and failed before that."""
    client = make_client(gateway)
    gateway.misbehave("add", Fault.READ_TIMEOUT)
    sending = Sending()
    with pytest.raises(GatewayUnknown):
        await client.add(TURN, ANSWER, seconds=0.1, sending=sending)
    assert Sending(begun=True) == sending

    sending = Sending()
    with pytest.raises(GatewayTimedOut):
        await client.add(TURN, ANSWER, seconds=0.0, sending=sending)
    assert Sending(begun=False) == sending


@pytest.mark.shows("000-012", "000-059", "001-046")
async def test_more_requests_than_connections(gateway, make_client):
    """Requests beyond the limit wait for a connection, and all are answered."""
    gateway.delay = 0.001
    client = make_client(gateway)
    await asyncio.gather(*[client.search(session="s1", query="a", seconds=30.0) for _ in range(3 * CONNECTIONS)])

    assert (3 * CONNECTIONS, True) == (len(gateway.received), gateway.most_open <= CONNECTIONS + IDLE_CONNECTIONS)


@pytest.mark.shows("000-059", "001-046")
async def test_cancelling_closes_the_connection(gateway, make_client):
    """Cancelling a search raises `CancelledError` and closes the connection."""
    gateway.misbehave("search", Fault.READ_TIMEOUT)
    asking = asyncio.create_task(make_client(gateway).search(session="s1", query="a", seconds=30.0))
    await gateway.arrived.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await gateway.gone.wait()


async def test_closing_leaves_nothing_open(gateway, make_client):
    """After closing no connection is left."""
    client = make_client(gateway)
    await all_three(client)
    await client.close()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(5):
            await asyncio.gather(*filter(None, gateway._open))

    assert 0 == gateway.open


async def test_refusals_leave_no_connection(gateway, make_client):
    """Refusals close their connections, and a search works afterwards."""
    client = make_client(gateway)
    gateway.misbehave("search", Reply(status=500, parts=(b"{}",), length=2))
    gc.disable()
    try:
        for _ in range(CONNECTIONS + 20):
            with pytest.raises(GatewayRefused):
                await client.search(session="s1", query="a", seconds=5.0)
        await asyncio.gather(*filter(None, [*gateway._open]))
    finally:
        gc.enable()
    assert 0 == gateway.open
    gateway.behave()

    assert RecalledMemory(results=(), total=0) == await client.search(session="s1", query="a", seconds=5.0)


async def test_waiting_for_a_connection_is_within_the_deadline(gateway, make_client):
    """A request that waits for a connection ends at its own deadline."""
    client = make_client(gateway)
    gateway.misbehave("search", Fault.READ_TIMEOUT)
    hanging = [asyncio.create_task(client.search(session="s1", query="a", seconds=60.0)) for _ in range(CONNECTIONS)]
    while len(gateway.received) < CONNECTIONS:
        gateway.arrived.clear()
        await gateway.arrived.wait()
    with pytest.raises(GatewayTimedOut):
        async with asyncio.timeout(20):
            await client.search(session="s1", query="a", seconds=0.1)
    for task in hanging:
        task.cancel()
    ended = await asyncio.gather(*hanging, return_exceptions=True)

    assert {asyncio.CancelledError} == {type(each) for each in ended}
