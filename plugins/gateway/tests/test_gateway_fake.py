"""The fake gateway is as strict as a gateway should be."""

import asyncio
import json

import httpx
import pytest

from beaver_hooks_gateway import GatewaySettings, GatewayUnreachable
from beaver_hooks_gateway.testing import FakeGateway, Fault, problem_of
from beaver_hooks_gateway.wire import add_body, encode, flush_body, search_body
from beaver_hostspecs import Secret
from beaver_hostspecs.testing import make_answer, make_turn

SETTINGS = GatewaySettings(user_id="u1", user_key=Secret("uk_of_the_fake"))
GOOD = {
    "search": json.loads(encode(search_body(SETTINGS, session="s1", query="a", top_k=8))),
    "add": json.loads(encode(add_body(SETTINGS, make_turn(), make_answer()))),
    "flush": json.loads(encode(flush_body(SETTINGS, session="s1"))),
}


@pytest.mark.parametrize("operation", GOOD)
def test_good_bodies(operation):
    """The client's bodies are accepted; one with a field too many or too few, or that is no object, is not."""
    good = GOOD[operation]
    assert None is problem_of(operation, good)
    assert "extra" == problem_of(operation, good | {"extra": 1})
    assert "not an object" == problem_of(operation, [good])
    for name in good:
        assert name == problem_of(operation, {key: value for key, value in good.items() if key != name})


@pytest.mark.shows("001-012")
@pytest.mark.parametrize(
    ("operation", "field", "value"),
    [
        ("search", "user_id", ""),
        ("search", "user_key", None),
        ("search", "conversation_id", "x" * 129),
        ("search", "query", " "),
        ("search", "query", 5),
        ("search", "scope", []),
        ("search", "scope", "resources"),
        ("search", "scope", ["everything"]),
        ("search", "scope", ["resources", "resources"]),
        ("search", "top_k", 0),
        ("search", "top_k", 101),
        ("search", "top_k", True),
        ("add", "session_id", "s1"),
        ("add", "session_id", "chat:"),
        ("add", "app_id", 5),
        ("add", "messages", []),
        ("add", "messages", None),
        ("add", "messages", ["a"]),
        ("add", "messages", GOOD["add"]["messages"][::-1]),
        ("add", "messages", [GOOD["add"]["messages"][0] | {"role": "tool"}]),
        ("add", "messages", [GOOD["add"]["messages"][0] | {"timestamp": 0}]),
        ("add", "messages", [GOOD["add"]["messages"][0] | {"timestamp": "1"}]),
        ("add", "messages", [GOOD["add"]["messages"][0] | {"content": ""}]),
        ("flush", "session_id", "chat:" + "x" * 124),
    ],
)
def test_bad_bodies(operation, field, value):
    """A field of another type or out of its bounds is named."""
    assert field == problem_of(operation, GOOD[operation] | {field: value})


@pytest.mark.shows("000-017", "001-012")
@pytest.mark.parametrize(
    ("path", "content", "kind", "expected"),
    [
        ("/memories/search", b"{}", "application/json", 422),
        ("/memories/search", b"{", "application/json", 422),
        ("/memories/search", b"{}", "text/plain", 415),
        ("/memories/users", b"{}", "application/json", 404),
        ("/elsewhere/search", b"{}", "application/json", 404),
        ("/memories/flush", encode(flush_body(SETTINGS, session="s1")), "application/json", 401),
    ],
)
async def test_refusals(gateway, path, content, kind, expected):
    """A request with another path, type, body or user is refused."""
    async with httpx.AsyncClient(trust_env=False) as client:
        response = await client.post(gateway.base_url + path, content=content, headers={"Content-Type": kind})

    assert expected == response.status_code


async def test_it_waits_as_long_as_it_is_told(gateway, make_client):
    """A delay comes before the answer to a search, and a client that leaves meanwhile is no trouble."""
    gateway.delay = 60.0
    asking = asyncio.create_task(make_client(gateway).search(session="s1", query="a", seconds=90.0))
    await gateway.arrived.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_broken_connections_end_the_idle_ones(gateway, make_client):
    """A stopped server refuses every request, also on a connection that was open before."""
    client = make_client(gateway)
    await client.search(session="s1", query="a", seconds=5.0)
    gateway.break_connections(Fault.REFUSED)
    with pytest.raises(GatewayUnreachable):
        await client.search(session="s1", query="a", seconds=5.0)

    assert 1 == len(gateway.received)


def test_it_must_be_entered():
    """Outside its `async with` there is no server."""
    with pytest.raises(RuntimeError, match="enter it with `async with`"):
        FakeGateway().break_connections(Fault.REFUSED)
