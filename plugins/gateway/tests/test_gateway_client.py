"""The client as a user of httpx sees it: what it sends where, and what it makes of each answer. No connection is made."""

import asyncio
import gc
import logging

import httpx
import pytest

from beaver_hooks_gateway import (
    GatewayClient,
    GatewayError,
    GatewayMalformed,
    GatewayRefused,
    GatewaySettings,
    GatewayTimedOut,
    GatewayUnknown,
    GatewayUnreachable,
)
from beaver_hooks_gateway.errors import PATHS
from beaver_hooks_gateway.wire import RecalledMemory, Result, add_body, encode, flush_body, search_body
from beaver_hostspecs import BeaverError, ConfigurationError
from beaver_hostspecs.testing import make_answer, make_turn

BASE = "http://127.0.0.1:9"
TURN, ANSWER = make_turn(session="s1"), make_answer()


@pytest.fixture
async def make(canary):
    """Makes clients of a gateway that does not exist, and closes them."""
    made = []

    def make(factory=None, **given):
        identity = {"base_url": BASE, "user_id": "u1", "user_key": canary.secret}
        made.append(GatewayClient(GatewaySettings(**{**identity, **given}), factory=factory))
        return made[-1]

    yield make
    for client in made:
        await client.close()


async def perform(client, operation, seconds=5.0):
    if operation == "search":
        return await client.search(session="s1", query=TURN.prompt, seconds=seconds)
    if operation == "add":
        return await client.add(TURN, ANSWER, seconds=seconds)
    return await client.flush(session="s1", seconds=seconds)


async def error_of(client, operation, seconds=5.0):
    with pytest.raises(GatewayError) as caught:
        await perform(client, operation, seconds)
    return caught.value


@pytest.mark.shows("000-003", "000-022", "000-024", "000-025", "000-057", "000-061", "000-093", "000-094", "000-131")
@pytest.mark.shows("001-008", "001-013", "001-015", "001-016", "001-023", "001-045", "001-071", "001-091", "001-100")
async def test_paths_and_bodies(make, httpx_mock):
    """Each operation goes to its own path with exactly its own body, byte for byte."""
    httpx_mock.add_response(json={"results": [{"text": "a"}]}, is_reusable=True)
    client = make(top_k=3, app_id="a1", project_id="p1")

    assert [RecalledMemory(results=(Result(text="a"),), total=1), 2, None] == [
        await perform(client, each) for each in PATHS
    ]
    assert [
        ("POST", f"{BASE}/memories/search",
         encode(search_body(client._settings, session="s1", query=TURN.prompt, top_k=3))),
        ("POST", f"{BASE}/memories/add", encode(add_body(client._settings, TURN, ANSWER))),
        ("POST", f"{BASE}/memories/flush", encode(flush_body(client._settings, session="s1"))),
    ] == [(each.method, str(each.url), each.content) for each in httpx_mock.get_requests()]  # fmt: skip


@pytest.mark.shows("000-061", "000-119", "001-048", "001-091")
async def test_headers(make, httpx_mock):
    """A request says what it is, asks for no compression, and holds no credential outside its body."""
    httpx_mock.add_response(json={"results": []}, is_reusable=True)
    client = make()
    for operation in PATHS:
        await perform(client, operation)

    common = {"accept": "application/json", "accept-encoding": "identity", "content-type": "application/json",
              "host": "127.0.0.1:9", "user-agent": "beaver-hooks-gateway"}  # fmt: skip
    requests = httpx_mock.get_requests()
    expected = [common, {**common, "connection": "close"}, common]
    lengths = [{"content-length": str(len(each.content))} for each in requests]
    assert [{**one, **length} for one, length in zip(expected, lengths, strict=True)] == [
        dict(each.headers) for each in requests
    ]


@pytest.mark.shows("000-057")
@pytest.mark.parametrize("slash", ["", "/", "//"])
async def test_a_path_before_ours_is_kept(slash, make, httpx_mock):
    """A gateway may be under a path, given with or without a slash at its end."""
    httpx_mock.add_response(json={"results": []}, is_reusable=True)
    client = make(base_url=f"{BASE}/some/path{slash}")
    for operation in PATHS:
        await perform(client, operation)

    assert [f"{BASE}/some/path{path}" for path in PATHS.values()] == [
        str(each.url) for each in httpx_mock.get_requests()
    ]


async def test_a_factory_of_clients(make, httpx_mock):
    """A factory is asked for one client per operation; those are used as they are, and closed."""
    httpx_mock.add_response(json={"results": []}, is_reusable=True)
    made, seen = {}, []

    async def note(request):
        seen.append(request.url.path)

    def factory(operation):
        made[operation] = httpx.AsyncClient(event_hooks={"request": [note]})
        return made[operation]

    client = make(factory)
    for operation in (*PATHS, *PATHS):
        await perform(client, operation)
    await client.close()

    assert ([*PATHS], [*PATHS.values()] * 2) == ([*made], seen)
    assert {True} == {each.is_closed for each in made.values()}


async def test_a_factory_cannot_loosen_a_request(make, httpx_mock):
    """Whatever a client is made for: redirects are not followed, and no header or credential of it is sent."""
    httpx_mock.add_response(307, headers={"Location": "http://127.0.0.1:9/elsewhere"})
    options = {"follow_redirects": True, "headers": {"X-Extra": "1"}, "auth": ("user", "word")}
    error = await error_of(make(lambda _: httpx.AsyncClient(**options)), "search")

    (request,) = httpx_mock.get_requests()
    assert ("redirected", None, None) == (
        error.category, request.headers.get("X-Extra"), request.headers.get("Authorization"),
    )  # fmt: skip


@pytest.mark.parametrize("status", [200, 201, 202])
async def test_any_success_with_an_object_confirms(make, httpx_mock, status):
    """A 2xx with a JSON object is a confirmation."""
    httpx_mock.add_response(status, json={})

    assert 2 == await perform(make(), "add")


@pytest.mark.parametrize(
    ("status", "category", "transient"),
    [(302, "redirected", False), (418, "http_error", False), (429, "rate_limited", True), (599, "server_error", True)],
)
async def test_statuses(make, httpx_mock, status, category, transient):
    """A status that is no success is a refusal with a category, a sentence and a remedy, to an add too."""
    httpx_mock.add_response(status, text="whatever", is_reusable=True)
    client = make()
    for operation in PATHS:
        error = await error_of(client, operation)

        assert (GatewayRefused, category, status, transient) == (
            type(error), error.category, error.status, error.transient,
        )  # fmt: skip
        assert 2 == str(error).rstrip(".").count(". ") + 1
        assert isinstance(error, BeaverError)


@pytest.mark.shows("001-049")
async def test_wrong_credentials(make, httpx_mock, canary):
    """A gateway that does not know the key says so; the error names no key, even where the gateway repeats it."""
    httpx_mock.add_response(401, text=canary.reveal())
    error = await error_of(make(), "search")

    expected = (
        "Memory Gateway search: the gateway refused it: unauthorised (HTTP 401)."
        " Set memory.gateway.userId and userKey to valid credentials."
    )
    assert (expected, True) == (str(error), error.credentials)
    canary.assert_clean(repr(error))


@pytest.mark.parametrize(
    ("answer", "category"),
    [
        ({"content": b""}, "invalid_json"),
        ({"content": b"<html>"}, "invalid_json"),
        ({"content": b'{"results": NaN}'}, "invalid_json"),
        ({"json": []}, "invalid_shape"),
        ({"json": {"results": []}, "headers": {"Content-Encoding": "x-other"}}, "encoded"),
        ({"content": b'{"results": []}'.ljust(2049)}, "too_large"),
    ],
)
async def test_malformed_answers(make, httpx_mock, answer, category):
    """An answer that cannot be used is malformed; to an add it confirms nothing, and the outcome is unknown."""
    httpx_mock.add_response(**answer, is_reusable=True)
    client = make(max_bytes=2048)
    errors = [await error_of(client, operation) for operation in PATHS]

    assert [(GatewayMalformed, category), (GatewayUnknown, "unknown"), (GatewayMalformed, category)] == [
        (type(error), error.category) for error in errors
    ]


async def test_a_body_at_the_limit(make, httpx_mock):
    """An answer may have exactly so many bytes."""
    httpx_mock.add_response(content=b'{"results":[]}'.ljust(2048))

    assert RecalledMemory(results=(), total=0) == await perform(make(max_bytes=2048), "search")


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (httpx.ConnectError("no"), (GatewayUnreachable, "connection")),
        (httpx.RemoteProtocolError("no"), (GatewayUnreachable, "connection")),
        (httpx.ConnectTimeout("slow"), (GatewayTimedOut, "timeout")),
        (httpx.ReadTimeout("slow"), (GatewayTimedOut, "timeout")),
    ],
)
async def test_no_answer(make, httpx_mock, canary, raised, expected):
    """Errors of httpx become the client's own, which lead to no request; an add that was sent is unknown."""
    httpx_mock.add_exception(raised, is_reusable=True)
    client = make()
    errors = [await error_of(client, operation) for operation in PATHS]

    assert [expected, (GatewayUnknown, "unknown"), expected] == [(type(error), error.category) for error in errors]
    assert [(None, None)] * 3 == [(error.__cause__, error.__context__) for error in errors]
    assert [] == [each for error in errors for each in gc.get_referents(error) if isinstance(each, httpx.Request)]
    canary.assert_clean(repr([vars(error) for error in errors]))


async def test_cookies_are_not_kept(make, httpx_mock):
    """A gateway cannot mark its callers."""
    httpx_mock.add_response(json={"results": []}, headers={"Set-Cookie": "a=b"}, is_reusable=True)
    client = make()
    for _ in range(2):
        await perform(client, "search")

    assert [False, False] == ["cookie" in each.headers for each in httpx_mock.get_requests()]


async def test_the_log_is_quiet(make, httpx_mock, caplog):
    """Httpx logs no line for these requests, with the user's own levels, and goes on logging those of others."""
    httpx_mock.add_response(json={"results": []}, is_reusable=True)
    caplog.set_level(logging.DEBUG)
    await perform(make(), "search")
    async with httpx.AsyncClient() as other:
        await asyncio.gather(perform(make(), "add"), other.get("http://127.0.0.1:9/other"))

    lines = [each.getMessage() for each in caplog.records if each.name == "httpx"]
    assert ['HTTP Request: GET http://127.0.0.1:9/other "HTTP/1.1 200 OK"'] == lines


async def test_after_closing(make, httpx_mock):
    """A client that was closed makes new connections: a plugin may be stopped and started again."""
    httpx_mock.add_response(json={"results": []}, is_reusable=True)
    client = make()
    for _ in range(2):
        await perform(client, "search")
        await client.close()

    assert 2 == len(httpx_mock.get_requests())


async def test_a_host_that_is_none(make):
    """A name that stands for nothing fails loading and names the setting."""
    with pytest.raises(ConfigurationError) as caught:
        make(base_url="https://xn--zzzzzzzzzzz99")

    assert ("memory.gateway.baseUrl", None) == (caught.value.path, caught.value.__context__)
