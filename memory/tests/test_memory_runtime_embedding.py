"""Embedding and recovery through `MemoryRuntime`, with a provider on the loopback interface."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import attrs
import pytest

from beaver_hostspecs.testing import FrozenClock, RecordingReport
from beaver_memory import MemoryRuntime
from beaver_memory.dispatch.dispatcher import Dispatcher
from beaver_memory.dispatch.envelopes import RequestEnvelope, Source
from beaver_memory.embedding.errors import EmbedderRefused
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.errors import OperationUnavailable
from beaver_memory.filters import Filters
from beaver_memory.records import NewMemory, Owner
from beaver_memory.runtime.memory_runtime import Capability
from beaver_memory.runtime.profile import Profile, RuntimeServices, SqliteLocation
from beaver_memory.runtime.reports import EmbedReport, RecoverReport
from beaver_memory.runtime.requests import EmbedRequest, RecoverRequest, WriteRequest
from beaver_memory.runtime.table import Caller
from beaver_memory.views import View

ANN, BOB = Owner(user="ann"), Owner(user="bob")
NAME = "openai-compatible m, 2 dimensions"


class Provider(ThreadingHTTPServer):
    """Embeds any text, or refuses with `status`."""

    daemon_threads = True
    status = 200

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def settings(self):
        url = f"http://127.0.0.1:{self.server_port}"
        return EmbeddingSettings(provider="openai-compatible", model="m", dimensions=2, base_url=url)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        rows = [{"index": number, "embedding": [1.0, 2.0]} for number, _ in enumerate(body["input"])]
        answer = json.dumps({"data": rows, "model": "m"}).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        """Say nothing."""


class Place:
    """A folder in which memories are opened."""

    def __init__(self, folder):
        self.folder, self.clock = folder, FrozenClock()

    async def open(self, embedding):
        report = RecordingReport()
        services = RuntimeServices(report=report, clock=self.clock)
        runtime = await MemoryRuntime.open(
            Profile(embedding=embedding), SqliteLocation(state_folder=self.folder), services
        )
        # Upkeep reports its first round; it then sleeps until this runtime writes.
        for _ in range(2_000):
            if report.recoveries or report.degradations:
                break
            await asyncio.sleep(0.01)
        return runtime

    def source(self, owner, **more):
        seen = Filters(view=View(owners=(owner,), now=self.clock.now()))
        return Source(caller=Caller.HOST, visible=seen, own=seen, owner=owner, **more)


@pytest.fixture
def provider():
    server = Provider()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.fixture
async def runtime(place, provider):
    """A runtime with an embedder; two memories of Ann and three of Bob, of another process, wait for it."""
    made = await place.open(provider.settings)
    other = await place.open(EmbeddingSettings(provider="none"))
    new = [NewMemory(title=f"Tea {number}.", owner=ANN if number < 2 else BOB) for number in range(5)]
    await other.write(WriteRequest(memories=new))
    await other.close()
    yield made
    await made.close()


async def test_some_memories_are_embedded(runtime):
    """`embed` embeds as many memories as the request allows, and counts those that wait."""
    reports = [await runtime.embed(EmbedRequest(limit=limit)) for limit in (0, 3, 3, 3)]

    assert [(0, 5), (3, 2), (2, 0), (0, 0)] == [(each.embedded, each.pending) for each in reports]
    assert {NAME} == {each.embedder for each in reports}


@pytest.mark.shows("004-045")
async def test_the_memories_of_other_owners_are_not_embedded(runtime):
    """`embed` and `recover` embed the memories of the owners in the request."""
    ann = await runtime.embed(EmbedRequest(owners=(ANN,)))
    bob = await runtime.recover(RecoverRequest(owners=(BOB,)))
    nobody = await runtime.recover(RecoverRequest())

    assert EmbedReport(embedded=2, pending=0, embedder=NAME) == ann
    assert (RecoverReport(trigger="operator", embedded=3), RecoverReport(trigger="operator")) == (bob, nobody)


@pytest.mark.parametrize("operation", ["embed", "recover"])
async def test_a_source_embeds_its_own_memories(place, runtime, operation):
    """By name, a source embeds what it sees; one that may name other owners may ask for all."""
    dispatcher = Dispatcher(runtime)

    async def ask(request, **source):
        envelope = RequestEnvelope(operation=operation, request=request, source=place.source(ANN, **source))
        return await dispatcher.dispatch(envelope)

    own, named = await ask({}), await ask({"owners": None})
    waiting = (await runtime.embed(EmbedRequest(limit=0))).pending
    every = await ask({"owners": None}, every_owner=True)

    assert ("done", 2, 3) == (own.status, own.report["embedded"], waiting)
    assert ("invalid", ["owners"]) == (named.status, [each.field for each in named.problems])
    assert ("done", 3) == (every.status, every.report["embedded"])


async def test_a_recovery_of_an_owner_builds_its_index(runtime):
    """A recovery of one owner builds the index of that owner alone."""
    report = await runtime.recover(RecoverRequest(owners=(ANN,), embed=False, reindex=True))

    assert RecoverReport(trigger="operator", reindexed=2) == report


@pytest.mark.shows("004-163", "004-233")
async def test_without_an_embedder_there_is_no_embed(place):
    """A memory without an embedder does not offer `embed`, and says why."""
    runtime = await place.open(EmbeddingSettings(provider="none"))
    with pytest.raises(OperationUnavailable) as caught:
        await runtime.embed(EmbedRequest())
    found = runtime.capabilities().embed
    await runtime.close()

    reason = "it needs an embedder, and none is configured"
    assert (f"`embed` is not available: {reason}.", Capability(visible=False, reason=reason)) == (
        str(caught.value),
        found,
    )


@pytest.mark.shows("004-233")
async def test_an_unavailable_embedder_is_told_from_none(place):
    """A memory whose configured embedder cannot be made says so in the catalogue."""
    runtime = await place.open(EmbeddingSettings(provider="openai", model="m", dimensions=2))
    found = runtime.capabilities().embed
    await runtime.close()

    reason = "it needs an embedder, and the configured one is unavailable (missing_key)"
    assert Capability(visible=False, reason=reason) == found


@pytest.mark.shows("004-159")
@pytest.mark.parametrize("operation", ["embed", "recover"])
async def test_a_failing_embedder_is_a_fault(place, runtime, provider, operation):
    """A provider that refuses is an error of embedding for a caller of the method, and a failure by name."""
    provider.status = 401
    method, request = getattr(runtime, operation), {"embed": EmbedRequest, "recover": RecoverRequest}[operation]()
    with pytest.raises(EmbedderRefused):
        await method(request)
    response = await Dispatcher(runtime).dispatch(RequestEnvelope(operation=operation, source=place.source(BOB)))

    assert ("failed", {}) == (response.status, response.report)
    assert ["The memory cannot do its work (refused); try again later."] == [
        each.sentence for each in response.problems
    ]


async def test_a_record_that_cannot_be_written_is_a_fault(place, runtime):
    """A recovery that cannot record its embedder fails by name as a store does; the memories are embedded."""
    (place.folder / "embedder.json").unlink()
    (place.folder / "embedder.json").mkdir()
    source = attrs.evolve(place.source(ANN), every_owner=True)
    envelope = RequestEnvelope(operation="recover", request={"owners": None}, source=source)
    response = await Dispatcher(runtime).dispatch(envelope)

    assert ("failed", "io_error") == (response.status, response.problems[0].code)
    assert 0 == (await runtime.embed(EmbedRequest(limit=0))).pending
