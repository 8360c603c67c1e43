"""Bounded HTTP, with and without an event loop, against pytest-httpx and a server of raw bytes."""

import asyncio
import contextlib
import logging
import socket
import ssl
import threading

import httpx
import pytest

from beaver_toolkit.http import BoundedClient, BoundedTransport, PlainClient, Reply, tls_context
from beaver_toolkit.http_sync import SyncBoundedClient

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
SECONDS = 20.0


class Server:
    """Answers each connection with the given parts; `None` means silence until the client leaves."""

    def __init__(self, *parts, greeting=b""):
        self.greeting, self.parts, self.received, self.tasks = greeting, parts, [], []

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_):
        self._server.close()
        await asyncio.gather(*self.tasks)

    async def _serve(self, reader, writer):
        self.tasks.append(asyncio.current_task())
        writer.write(self.greeting)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if b"ontent-" in line and b"ength" in line)  # fmt: skip
                self.received.append((head.split(b"\r\n")[0].decode(), await reader.readexactly(length)))
                for part in self.parts:
                    if part is None:
                        await reader.read(1)
                        break
                    writer.write(part)
                    await writer.drain()
                if self.parts[-1] is not OK:
                    break
        writer.close()


async def ask(kind, url):
    """Post with the client for event loops, or with the one for threads."""
    if kind == "async":
        client = BoundedClient(PlainClient(BoundedTransport(context=tls_context(url))))
        try:
            return await client.post(httpx.URL(url), b"hello", headers={}, seconds=SECONDS, most_bytes=100)
        finally:
            await client.aclose()
    sync = SyncBoundedClient(tls_context(url))
    try:
        return await asyncio.to_thread(sync.post, url, b"hello", headers={}, seconds=SECONDS, most_bytes=100)
    finally:
        sync.close()


both = pytest.mark.parametrize("kind", ["async", "sync"])


@both
async def test_pytest_httpx_intercepts(kind, httpx_mock):
    """A test of a user of httpx sees the requests of both clients: none reaches the network unnoticed."""
    httpx_mock.add_response(201, json={"a": 1})

    assert Reply(status=201, body=b'{"a":1}') == await ask(kind, "http://127.0.0.1:9/path")
    (request,) = httpx_mock.get_requests()
    assert ("POST", "http://127.0.0.1:9/path", b"hello") == (request.method, str(request.url), request.content)


@both
async def test_over_the_network(kind):
    """Without a mock, the request reaches the server."""
    async with Server(OK) as server:
        assert Reply(status=200, body=b"{}") == await ask(kind, f"{server.url}/path")

    assert [("POST /path HTTP/1.1", b"hello")] == server.received


@both
@pytest.mark.parametrize(
    ("parts", "reply"),
    [
        ((b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 999\r\n\r\n", None),
         Reply(status=503, retry_after="7")),
        ((b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 999\r\n\r\n", None),
         Reply(status=200, failure="encoded")),
        ((b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n", b" " * 101, None), Reply(status=200, failure="too_large")),
        ((b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{",), Reply(status=200, failure="truncated")),
        ((b"nonsense\r\n\r\n",), Reply(failure="connection")),
        ((b"",), Reply(failure="connection")),
    ],
)  # fmt: skip
async def test_replies(kind, parts, reply):
    """Every end of an exchange is a reply, and the body of a refusal or compressed answer is not read."""
    async with Server(*parts) as server:
        assert reply == await ask(kind, server.url)


@both
async def test_failures_before_an_answer(kind, monkeypatch):
    """A port that refuses, a name without an address and a server without TLS have a category each."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        refused = await ask(kind, f"http://127.0.0.1:{closed.getsockname()[1]}")
    async with Server(None, greeting=b"no TLS here at all") as server:
        insecure = await ask(kind, f"https://127.0.0.1:{server.port}")

    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    nameless = await ask(kind, "http://unknown.example")

    assert [Reply(failure="connection"), Reply(failure="tls"), Reply(failure="dns")] == [refused, insecure, nameless]


def test_no_cookies(httpx_mock):
    """A cookie of a reply does not come back to the server in the next request of the client for threads."""
    httpx_mock.add_response(302, headers={"Set-Cookie": "a=b"}, is_reusable=True)
    with contextlib.closing(SyncBoundedClient(tls_context())) as client:
        url = "http://127.0.0.1:9"
        replies = [client.post(url, b"", headers={}, seconds=SECONDS, most_bytes=9) for _ in range(2)]

    assert [Reply(status=302)] * 2 == replies
    assert [False, False] == ["cookie" in each.headers for each in httpx_mock.get_requests()]


@both
async def test_the_log_of_httpx(kind, httpx_mock, caplog):
    """The client's address is in no log line, the logger's level stays, and requests of other clients are logged."""
    httpx_mock.add_response(is_reusable=True)
    caplog.set_level(logging.INFO, logger="httpx")
    level = logging.getLogger("httpx").level
    await ask(kind, "http://127.0.0.1:9/secret-path")
    async with httpx.AsyncClient() as other:
        await other.get("http://127.0.0.1:9/other")

    assert ['HTTP Request: GET http://127.0.0.1:9/other "HTTP/1.1 200 OK"'] == caplog.messages
    assert level == logging.getLogger("httpx").level


@both
async def test_other_errors_get_out(kind, httpx_mock):
    """An error that does not come from HTTP is not taken for a failure of the server."""
    httpx_mock.add_exception(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        await ask(kind, "http://127.0.0.1:9")


async def test_each_thread_has_its_own_deadline():
    """A thread with a short deadline takes no time from another one that uses the same client."""
    async with Server(OK) as server, Server(None) as hanging:
        client, replies = SyncBoundedClient(tls_context()), {}

        def post(url, seconds):
            replies[url] = client.post(url, b"", headers={}, seconds=seconds, most_bytes=9)

        threads = [threading.Thread(target=post, args=each) for each in ((hanging.url, 0.1), (server.url, SECONDS))]
        for thread in threads:
            thread.start()
        await asyncio.to_thread(lambda: [thread.join() for thread in threads])
        client.close()

        assert {hanging.url: Reply(failure="timeout"), server.url: Reply(status=200, body=b"{}")} == replies


def test_certificates(tmp_path):
    """Certificates are loaded only for https, and a file without certificates is an error."""
    (tmp_path / "ca.pem").write_text("nothing")

    assert [0, True] == [
        len(tls_context("http://a.example").get_ca_certs()),
        len(tls_context("http://a.example", "https://b.example").get_ca_certs()) > 0,
    ]
    with pytest.raises(ssl.SSLError):
        tls_context("https://a.example", ca_bundle=tmp_path / "ca.pem")
