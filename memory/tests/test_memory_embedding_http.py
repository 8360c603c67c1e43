"""Providers over HTTP, against a real server on this machine that misbehaves in every way there is."""

import contextlib
import gc
import gzip
import json
import logging
import socket
import struct
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat

import attrs
import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hostspecs.testing import make_canary
from beaver_memory.embedding import wire
from beaver_memory.embedding.client import RETRY, Endpoint, HttpEncoder
from beaver_memory.embedding.errors import EmbeddingError
from beaver_memory.embedding.factory import make_embedder
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.embedding.wire import WIRES, AnswerError
from beaver_toolkit.http import Reply
from beaver_toolkit.http_sync import SyncBoundedClient

TEXT = "the quick brown wombat"
"""The embedded text, which must not appear in errors, logs or traces."""
DIMENSIONS = 4
TIMEOUT = 0.5
"""Seconds for the faults that only a deadline ends."""
PATIENCE = 20.0
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@attrs.frozen(kw_only=True)
class Asked:
    path: str
    headers: dict
    body: dict


def plain(headers):
    """Headers as they were sent: the library reads them as Latin-1."""
    return {name: value.encode("latin-1").decode() for name, value in headers.items()}


def rows_for(texts):
    """One vector for each text, which says how long it is."""
    return [[float(len(text)), 1.0, 0.0, -1.0] for text in texts]


def shaped(provider, rows):
    """Rows as the provider would send them."""
    if provider in {"openai", "openai-compatible", "voyage"}:
        entries = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
        return {"object": "list", "data": entries[::-1]}
    return {"embeddings": {"float": rows}} if provider == "cohere" else {"embeddings": rows}


class Server(ThreadingHTTPServer):
    """Answers as a provider does, or as `misbehave` says."""

    daemon_threads = False
    block_on_close = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = []
        self.provider = "openai"
        self.faults: list[Callable] = []
        self.arrived = threading.Event()
        self.ending = threading.Event()
        self.gone = threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def misbehave(self, *faults):
        """Each answers one request, the last one all that follow."""
        self.faults = [*faults]

    def handle_error(self, request, client_address):
        """Clients leave in the middle; that is what the tests are about."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(Asked(path=self.path, headers=plain(self.headers), body=body))
        self.server.arrived.set()
        faults = self.server.faults
        if not faults:
            texts = body["texts" if self.server.provider == "cohere" else "input"]
            return self.answer(json.dumps(shaped(self.server.provider, rows_for(texts))).encode())
        fault = faults.pop(0) if len(faults) > 1 else faults[0]
        return fault(self)

    def answer(self, content, status=200, length=None, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


def status(code, **headers):
    """A refusal that repeats the request, as careless servers do."""
    return lambda handler: handler.answer(
        json.dumps([handler.server.asked[-1].body, handler.headers["Authorization"]]).encode(), code, **headers
    )


def content(value):
    return lambda handler: handler.answer(value if isinstance(value, bytes) else json.dumps(value).encode())


def vectors(*rows):
    return content(shaped("openai", [*rows]))


def silence(handler):
    """Nothing comes until the client leaves or the test ends."""
    handler.connection.settimeout(PATIENCE)
    handler.rfile.read(1)
    handler.close_connection = True
    handler.server.gone.set()


def drip(handler):
    """A byte now and then, for ever."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(10**9))
    handler.end_headers()
    while not handler.server.ending.wait(0.02):
        handler.wfile.write(b" ")


def header_drip(handler):
    """A header that never ends."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Endless: ")
    while not handler.server.ending.wait(0.02):
        handler.wfile.write(b"a")


def cut(handler):
    handler.answer(b'{"data": [', length=1000)
    handler.close_connection = True


def reset(handler):
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def huge(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", str(2**30))
    handler.end_headers()
    for part in repeat(b" " * 2**16, 2**14):
        handler.wfile.write(part)


def bomb(handler):
    handler.answer(gzip.compress(b" " * 2**22), Content_Encoding="gzip")


@pytest.fixture
def server():
    """A provider on this machine."""
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.ending.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def canary():
    return make_canary()


@pytest.fixture
def told():
    """Return a list that collects traces."""
    return []


@pytest.fixture
def make(server, canary, told):
    """Makes embedders that ask the server, and closes them before it ends."""
    made = []

    def make(provider="openai", *, url=None, seconds=PATIENCE, **given):
        server.provider = provider
        fields = {"model": "m1", "dimensions": DIMENSIONS, "base_url": url or server.url, "timeout_seconds": seconds}
        settings = EmbeddingSettings(provider=provider, **(fields | given))
        names = ("OPENAI_API_KEY", "VOYAGE_API_KEY", "COHERE_API_KEY")
        made.append(
            make_embedder(
                settings,
                state_folder=None,
                environment=dict.fromkeys(names, canary.reveal()),
                trace=lambda event, **facts: told.append((event, facts)),
            )
        )
        return made[-1]

    yield make
    for embedder in made:
        embedder.close()


@pytest.fixture
def shown(canary, caplog, capfd):
    """Return a check that neither credential nor text is in the given texts, the log or the output."""
    caplog.set_level(logging.DEBUG)

    def check(*texts):
        everything = [*texts, caplog.text, *capfd.readouterr()]
        canary.assert_clean(*everything)
        assert [] == [each for each in everything if TEXT in each]

    return check


FAULTS = {
    "401": (status(401), "refused", 401),
    "403": (status(403), "refused", 403),
    "404": (status(404), "refused", 404),
    "422": (status(422), "refused", 422),
    "429": (status(429, Retry_After="0"), "unavailable", 429),
    "500": (status(500, Retry_After="0"), "unavailable", 500),
    "503": (status(503, Retry_After="0"), "unavailable", 503),
    "redirect": (status(307, Location="http://127.0.0.1:9/elsewhere"), "refused", 307),
    "204": (lambda handler: handler.answer(b"", 204), "refused", 204),
    "silence": (silence, "timeout", None),
    "drip": (drip, "timeout", None),
    "header drip": (header_drip, "timeout", None),
    "cut": (cut, "unavailable", None),
    "reset": (reset, "unavailable", None),
    "huge": (huge, "malformed", None),
    "bomb": (bomb, "malformed", None),
    "empty": (content(b""), "malformed", None),
    "html": (content(b"<html>It works!</html>"), "malformed", None),
    "no utf-8": (content(b'{"data": "\xff"}'), "malformed", None),
    "deep": (content(b"[" * 100_000), "malformed", None),
    "list": (content([1]), "malformed", None),
    "no data": (content({"data": {"0": 1}}), "malformed", None),
    "no entries": (content({"data": [[1.0] * 4]}), "malformed", None),
    "too few": (vectors(), "malformed", None),
    "too many": (vectors([1.0] * 4, [1.0] * 4), "malformed", None),
    "strange index": (content({"data": [{"index": 7, "embedding": [1.0] * 4}]}), "malformed", None),
    "no vector": (vectors("abcd"), "malformed", None),
    "texts": (vectors(["1", "2", "3", "4"]), "malformed", None),
    "truths": (vectors([True, 1.0, 1.0, 1.0]), "malformed", None),
    "short": (vectors([1.0] * 3), "wrong_dimension", None),
    "long": (vectors([1.0] * 5), "wrong_dimension", None),
    "nan": (vectors([float("nan"), 1.0, 1.0, 1.0]), "not_finite", None),
    "infinite": (vectors([float("inf"), 1.0, 1.0, 1.0]), "not_finite", None),
    "null": (vectors([None, 1.0, 1.0, 1.0]), "not_finite", None),
    "gigantic": (vectors([10**400, 1.0, 1.0, 1.0]), "not_finite", None),
    "zero": (vectors([0.0] * 4), "not_finite", None),
}
HANGING = {"silence", "drip", "header drip"}


@pytest.mark.shows("002-108", "002-110")
@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_an_error_that_names_provider_and_remedy_and_nothing_else(name, server, make, told, shown):
    """Whatever the provider does, there is one error of the right category, without the text and the credential."""
    fault, category, code = FAULTS[name]
    server.misbehave(fault)
    embedder = make(seconds=TIMEOUT if name in HANGING else PATIENCE)

    with pytest.raises(EmbeddingError) as caught:
        embedder.embed_query(TEXT)

    error = caught.value
    assert ("openai", category, code) == (error.provider, error.category, error.status)
    assert "openai" in str(error)
    assert "memory.local.embedding" in str(error) or "Try again" in str(error) or "Wait" in str(error)
    assert ("embedding_failed", category) == (told[-1][0], told[-1][1]["category"])
    shown("".join(traceback.format_exception(error)), repr(error), repr(told))


def test_an_error_holds_no_request(server, make, canary):
    """An error has no cause or context of the HTTP library that leads to the credential."""
    server.misbehave(cut)
    with pytest.raises(EmbeddingError) as caught:
        make().embed_query(TEXT)
    assert (None, None) == (caught.value.__cause__, caught.value.__context__)
    gc.collect()
    canary.assert_clean(repr([each for each in gc.get_referents(caught.value) if isinstance(each, str | bytes)]))


def test_nobody_listens(server, make):
    """A port without a listener makes the provider unavailable."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(EmbeddingError) as caught:
            make(url=url).embed_query(TEXT)
    assert "unavailable" == caught.value.category
    assert (
        "The embedding provider openai cannot be reached. Check memory.local.embedding.baseUrl, the network, and that the server runs."
    ) == str(caught.value)


def test_nobody_takes_the_connection(make):
    """A machine that neither accepts nor refuses is given up within the deadline."""
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.settimeout(0)
            with contextlib.suppress(BlockingIOError):
                waiting.connect(full.getsockname())
        with pytest.raises(EmbeddingError) as caught:
            make(url=f"http://127.0.0.1:{full.getsockname()[1]}", seconds=TIMEOUT).embed_query(TEXT)
    assert (
        "timeout",
        "The embedding provider openai refuses connections. Check memory.local.embedding.baseUrl, and that the server runs.",
    ) == (caught.value.category, str(caught.value))


def test_plain_text_on_a_tls_port(server, make):
    """A server that speaks no TLS has no certificate to trust."""
    with pytest.raises(EmbeddingError) as caught:
        make(url=server.url.replace("http:", "https:")).embed_query(TEXT)
    assert ("unavailable", "certificate" in str(caught.value)) == (caught.value.category, True)


EXPECTED = {
    "openai": ("/v1/embeddings", {"model": "m1", "encoding_format": "float"}, {}, "input"),
    "openai-compatible": ("/v1/embeddings", {"model": "m1", "encoding_format": "float"}, {}, "input"),
    "voyage": ("/v1/embeddings", {"model": "m1", "input_type": "query"}, {"input_type": "document"}, "input"),
    "cohere": (
        "/v1/embed",
        {"model": "m1", "embedding_types": ["float"], "truncate": "END", "input_type": "search_query"},
        {"input_type": "search_document"},
        "texts",
    ),
    "ollama": ("/v1/api/embed", {"model": "m1", "truncate": True}, {}, "input"),
}


@pytest.mark.shows("002-016", "002-103", "002-104", "002-105", "002-106")
@pytest.mark.parametrize("provider", EXPECTED)
def test_each_provider_gets_what_it_wants(provider, server, make, canary):
    """Path, body and credential are the provider's own, and so is where the vectors are looked for."""
    path, body, for_passages, field = EXPECTED[provider]
    keyed = {} if provider != "openai-compatible" else {"api_key": canary.secret}
    embedder = make(provider, **keyed)

    query = embedder.embed_query("four")
    passages = embedder.embed_passages(["one", "three"])

    def unit(length):
        row = np.array([length, 1, 0, -1])
        return (row / np.linalg.norm(row)).astype(np.float32)

    np.testing.assert_allclose(unit(4), query, rtol=1e-6)
    np.testing.assert_allclose([unit(3), unit(5)], passages, rtol=1e-6)
    first, second = server.asked
    assert (path, body | {field: ["four"]}) == (first.path, first.body)
    assert body | for_passages | {field: ["one", "three"]} == second.body
    keys = [each.headers.get("Authorization") for each in server.asked]
    assert [None if provider == "ollama" else f"Bearer {canary.reveal()}"] * 2 == keys


COMPATIBLE = {"base_url": "https://models.example/v1/", "api_key_env": "COMPATIBLE_API_KEY"}


@pytest.mark.shows("002-016", "002-103", "002-104", "002-105", "002-106")
@pytest.mark.parametrize(
    ("provider", "given_settings", "address"),
    [
        ("openai", {}, "https://api.openai.com/v1/embeddings"),
        ("voyage", {}, "https://api.voyageai.com/v1/embeddings"),
        ("cohere", {}, "https://api.cohere.com/v2/embed"),
        ("ollama", {}, "http://localhost:11434/api/embed"),
        ("openai-compatible", COMPATIBLE, "https://models.example/v1/embeddings"),
    ],
)
def test_each_provider_has_its_address(provider, given_settings, address, monkeypatch):
    """A request goes to the provider's own address or the configured one, with the credential of the right variable."""
    keys = {f"{name.upper()}_API_KEY": f"sk-of-{name}-4711" for name in ("openai", "voyage", "cohere", "compatible")}
    asked = []

    def refuse(_client, url, _content, *, auth, **_):
        request = auth(httpx.Request("POST", url))
        asked.append((url, request.headers.get("Authorization")))
        return Reply(status=401)

    monkeypatch.setattr(SyncBoundedClient, "post", refuse)
    settings = EmbeddingSettings(provider=provider, model="m1", dimensions=DIMENSIONS, **given_settings)
    embedder = make_embedder(settings, state_folder=None, environment=keys)
    with pytest.raises(EmbeddingError):
        embedder.embed_query(TEXT)
    embedder.close()

    name = provider.rpartition("-")[2]
    assert [(address, None if name == "ollama" else f"Bearer sk-of-{name}-4711")] == asked


@pytest.mark.parametrize(
    ("provider", "model", "field"),
    [
        ("openai", "text-embedding-3-small", "dimensions"),
        ("openai", "text-embedding-ada-002", None),
        ("voyage", "voyage-3.5-lite", "output_dimension"),
        ("voyage", "voyage-law-2", None),
        ("cohere", "embed-v4.0", "output_dimension"),
        ("cohere", "embed-english-v3.0", None),
        ("ollama", "nomic-embed-text", None),
    ],
)
def test_only_models_that_can_resize_are_asked_to(provider, model, field):
    """The wanted length is sent to the models that take it, and to no other."""
    sent = json.loads(wire.body(WIRES[provider], model, ["x"], "query", 256))
    found = {name: value for name, value in sent.items() if name in {"dimensions", "output_dimension"}}
    assert ({} if field is None else {field: 256}) == found


@pytest.mark.shows("002-120")
def test_many_texts_go_in_batches(server, make, told):
    """No request has more texts than allowed, and the rows come back in order, as one trace of counts."""
    texts = [f"{'x' * at}." for at in range(1, 8)]
    rows = make(batch_size=3).embed_passages(texts)
    assert [3, 3, 1] == [len(each.body["input"]) for each in server.asked]
    assert [*range(2, 9)] == [round(float(row[0] / row[1])) for row in rows]
    ((event, facts),) = told
    assert "embedded" == event
    facts.pop("milliseconds")
    assert {
        "provider": "openai", "model": "m1", "purpose": "passage", "count": 7, "characters": 35, "dimensions": 4,
    } == facts  # fmt: skip


def test_a_batch_is_never_larger_than_the_provider_takes(server, make):
    """Cohere takes 96 texts, whatever the settings say."""
    make("cohere", batch_size=2000).embed_passages(["x"] * 100)
    assert [96, 4] == [len(each.body["texts"]) for each in server.asked]


@pytest.mark.parametrize("code", [429, 500, 502, 503])
def test_a_busy_provider_is_asked_again(code, server, make, told):
    """After a refusal that may pass the provider is asked again, and the trace says so."""
    server.misbehave(status(code, Retry_After="0"), status(code, Retry_After="0"), vectors([1.0, 0.0, 0.0, 0.0]))
    assert [1.0, 0.0, 0.0, 0.0] == make().embed_query(TEXT).tolist()
    assert 3 == len(server.asked)
    repeated = ("embedding_repeated", {"provider": "openai", "status": code, "seconds": 0.0})
    assert [repeated, repeated] == told[:2]


@pytest.mark.parametrize(("code", "after"), [(429, "25"), *((code, "0") for code in (400, 401, 403, 404, 307))])
def test_a_refusal_that_stays_is_not_repeated(code, after, server, make):
    """A refusal that outlasts the deadline, or will not pass, is asked for once, and a redirect is not followed."""
    server.misbehave(status(code, Location=server.url, Retry_After=after))
    with pytest.raises(EmbeddingError):
        make().embed_query(TEXT)
    assert 1 == len(server.asked)


def test_closing_ends_a_wait(server, make):
    """Closing an embedder ends a request that waits for its next attempt with an error."""
    server.misbehave(status(503, Retry_After="15"))
    embedder = make()
    caught = []

    def ask():
        try:
            embedder.embed_query(TEXT)
        except EmbeddingError as error:
            caught.append(error.category)

    thread = threading.Thread(target=ask)
    thread.start()
    assert server.arrived.wait(PATIENCE)
    embedder.close()
    thread.join(PATIENCE / 2)
    assert (False, ["unavailable"]) == (thread.is_alive(), caught)


def test_the_environment_has_no_say(server, make, monkeypatch):
    """No proxy and no credential of the environment is used."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (DIMENSIONS,) == make("ollama").embed_query(TEXT).shape
    assert None is server.asked[0].headers.get("Authorization")


def test_threads_share_an_embedder(server, make):
    """Several threads get each their own answer, and each keeps its own deadline."""
    embedder, lengths = make(), range(1, 17)
    with ThreadPoolExecutor(len(lengths)) as threads:
        rows = threads.map(embedder.embed_query, ["y" * length for length in lengths])
        assert [*lengths] == [round(float(row[0] / row[1])) for row in rows]


def test_a_closed_embedder_says_so(server, make):
    """A closed embedder raises an error and sends no request, also after a second close."""
    embedder = make()
    embedder.close()
    embedder.close()
    with pytest.raises(EmbeddingError, match="is closed"):
        embedder.embed_query(TEXT)
    assert [] == server.asked


def test_a_slow_answer_frees_the_server(server, make):
    """An embedder that gives up on a slow answer closes its connection."""
    server.misbehave(silence)
    with pytest.raises(EmbeddingError):
        make(seconds=TIMEOUT).embed_query(TEXT)
    assert server.gone.wait(PATIENCE)


def test_an_endpoint_shows_no_key(canary):
    """What a debugger prints of a client's endpoint hides the credential."""
    endpoint = Endpoint(
        provider="openai", wire=WIRES["openai"], base_url="https://example.org", key=canary.secret, model="m",
        dimensions=4, seconds=1.0, batch=1,
    )  # fmt: skip
    encoder = HttpEncoder(endpoint)
    canary.assert_clean(repr(endpoint), repr(encoder), repr(vars(encoder)))
    encoder.close()


@pytest.mark.parametrize(
    ("code", "header", "attempt", "expected"),
    [
        (429, None, 0, 0.25),
        (500, None, 1, 0.5),
        (429, str(int(RETRY.longest) + 1), 0, None),
        (429, "0", RETRY.most, None),
        (404, "0", 0, None),
        (301, "0", 0, None),
    ],
)
def test_how_long_to_wait(code, header, attempt, expected):
    """Busy and failing providers are asked again within the bounds, after a wait that grows where they ask for none."""
    assert expected == RETRY.wait(code, header, attempt=attempt, now=NOW)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(["data", "embedding", "index", "embeddings", "float"]), inner, max_size=4
    ),
    max_leaves=20,
)  # fmt: skip


@given(st.sampled_from(sorted(WIRES)), JSON.map(json.dumps).map(str.encode) | st.binary(), st.integers(1, 3))
def test_any_answer_is_vectors_or_an_error(provider, answer, count):
    """Parsing any answer gives an array of the right shape or an error with its category."""
    try:
        rows = wire.parse(WIRES[provider], answer, count=count, dimensions=2)
    except AnswerError as error:
        rows, category = None, error.category
    else:
        category = "none"
    assert (rows is None) == (category in {"malformed", "wrong_dimension", "not_finite"})
    assert rows is None or ((count, 2), np.float64) == (rows.shape, rows.dtype)
