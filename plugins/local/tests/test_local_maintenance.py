"""Work beside turns, with a real provider on the loopback interface that fails on demand."""

import asyncio
import contextlib
import json
import stat
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import numpy as np
import pytest

from beaver_hooks_local import plugin as plugin_module
from beaver_hooks_local.plugin import Local
from beaver_hooks_local.settings import LocalSettings
from beaver_hostspecs import Setup
from beaver_hostspecs.testing import FrozenClock, RecordingReport, Signal, make_canary, make_turn
from beaver_memory.embedding.breaker import PROBE
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.runtime.embedders import RECORD
from beaver_memory.runtime.maintenance import Upkeep
from beaver_toolkit.workers import Workers


class Told(RecordingReport):
    """A report with a signal that tests wait for."""

    def __init__(self):
        super().__init__()
        self.signal = Signal()

    def event(self, name, /, **facts):
        super().event(name, **facts)
        self.signal.notify()

    def recovered(self):
        super().recovered()
        self.signal.notify()

    def degraded(self, category, /):
        super().degraded(category)
        self.signal.notify()


class Provider(ThreadingHTTPServer):
    """Embeds any text; `status` is what it answers, `held` what its answers wait for."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = 200
        self.broken = ()
        self.held = threading.Event()
        self.held.set()
        self.asked = []
        self.heard = Signal()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        self.server.asked += [(body["model"], text) for text in texts]
        self.server.held.wait(30)
        data = [{"index": number, "embedding": vector(body["model"], text)} for number, text in enumerate(texts)]
        answer = json.dumps({"data": data, "model": body["model"]}).encode()
        self.send_response(401 if body["model"] in self.server.broken else self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # the client may have gone away
            self.wfile.write(answer)
        self.server.heard.notify()

    def log_message(self, *_):
        """Say nothing."""


def vector(model, text):
    seed = abs(hash((model, "tea" in text)))
    return np.random.default_rng(seed).normal(size=8).tolist()


@pytest.fixture
def provider():
    server = Provider()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield server
    server.held.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
async def start(tmp_path, provider):
    """Starts plugins on one state folder, and stops them."""
    started = []

    async def begin(model="one", clock=None):
        report = Told()
        plugin = Local(environment={}, clock=clock)
        embedding = EmbeddingSettings(
            provider="openai-compatible",
            model=model,
            dimensions=8,
            base_url=provider.url,
            api_key=make_canary().secret,
            timeout_seconds=2.0,
        )
        settings = LocalSettings(enabled=True, embedding=embedding)
        plugin.configure(Setup(settings=settings, state_folder=tmp_path, report=report))
        await plugin.start()
        started.append(plugin)
        return plugin, report

    yield begin
    for plugin in started:
        await plugin.stop()


async def write(plugin, title, turn=None):
    (tool,) = [each for each in plugin.provide_tools() if each.name == "memory_write"]
    return await tool.run({"title": title}, turn or make_turn(user="ann", trust="full"), RecordingReport())


async def wait_for(signal, condition):
    async with asyncio.timeout(20):
        await signal.wait_until(condition)


async def until(condition):
    """Wait for a condition that sends no signal."""
    await asyncio.to_thread(look_for, condition, time.monotonic() + 20)


def look_for(condition, latest):
    while not condition():
        assert time.monotonic() < latest
        time.sleep(0.01)


def embedded(plugin):
    return sum(dict(plugin.memory.operations.engine.stats()["embeddings"]).values())


@pytest.mark.shows("002-005", "002-020")
async def test_written_is_embedded(start, provider):
    """The plugin embeds a new memory in the background, and keeps a batch that is under way when it stops."""
    plugin, _ = await start()
    await write(plugin, "Ann likes tea.")
    await wait_for(provider.heard, lambda: ("one", "Ann likes tea.") in provider.asked)
    await plugin.stop()
    plugin, _ = await start()

    assert 1 == embedded(plugin)


async def test_what_was_left_is_embedded_at_the_start(start, provider):
    """A memory that an earlier process could not embed is embedded by the next process."""
    provider.status = 401
    first, _ = await start()
    await write(first, "Ann likes tea.")
    await first.stop()
    provider.status, provider.asked[:] = 200, []
    await start()
    await wait_for(provider.heard, lambda: provider.asked == [("one", "Ann likes tea.")])


@pytest.mark.shows("003-111")
async def test_failure_and_recovery(start, provider):
    """A failing provider degrades the health once and is reported, and the next write ends the trouble."""
    plugin, report = await start()
    provider.status = 401
    await write(plugin, "Ann likes tea.")
    await wait_for(report.signal, lambda: bool(report.degradations))
    recall = await plugin.before_prompt(make_turn(prompt="Who likes tea?", user="ann", trust="full"), told := Told())
    provider.status = 200
    await write(plugin, "Bob likes coffee.")
    await wait_for(report.signal, lambda: report.recoveries > 0)

    assert ("memory_embedding_failed", {"provider": "openai-compatible", "category": "refused"}) == (
        report.events[0][0],
        dict(report.events[0][1]),
    )
    assert ["embedding_refused"] == report.degradations
    assert "Ann likes tea." in recall.references[0].text
    assert ["memory_recall_keyword_only"] == [name for name, _ in told.events if "keyword" in name]


@pytest.mark.shows("003-111")
async def test_a_provider_that_hangs(start, provider):
    """While the provider hangs only two turns ask it, and every turn is given the memories that words find."""
    plugin, _ = await start(clock=FrozenClock())
    await write(plugin, "Ann likes tea.")
    await until(lambda: embedded(plugin) == 1)
    provider.held.clear()
    turns = [make_turn(prompt=f"Who likes tea {n}?", session=str(n), user="ann", trust="full") for n in range(12)]
    told = [RecordingReport() for _ in turns]
    asked = [plugin.before_prompt(turn, report) for turn, report in zip(turns, told, strict=True)]
    recalls = [*await asyncio.gather(*asked[:10]), await asked[10], await asked[11]]

    assert ["Ann likes tea."] * 12 == [recall.references[0].text for recall in recalls]
    assert [{"category": "timeout"}] * 12 == [
        dict(facts) for report in told for name, facts in report.events if name == "memory_recall_keyword_only"
    ]
    assert 2 == sum("Who" in text for _, text in provider.asked)


async def test_a_probe_beside_the_turns(start, provider):
    """The plugin probes a failed provider between turns, and an answer ends the trouble."""
    clock = FrozenClock()
    plugin, report = await start(clock=clock)
    await write(plugin, "Ann likes tea.")
    await until(lambda: embedded(plugin) == 1)
    provider.status = 500

    async def ask(prompt):
        turn = make_turn(prompt=prompt, user="ann", trust="full")
        await plugin.before_prompt(turn, told := RecordingReport())
        return [name for name, _ in told.events if "keyword" in name]

    first = await ask("Who likes tea?")
    provider.status, provider.asked[:] = 200, []
    recovered = report.recoveries
    clock.advance(3.0)
    second = await ask("And who likes coffee?")
    await wait_for(report.signal, lambda: report.recoveries > recovered)
    third = await ask("And who likes milk?")

    assert [["memory_recall_keyword_only"]] * 2 + [[]] == [first, second, third]
    assert [PROBE, "And who likes milk?"] == [text for _, text in provider.asked]


async def test_many_are_embedded_in_batches(start, provider):
    """All of many new memories are embedded."""
    plugin, report = await start()
    for number in range(70):
        await write(plugin, f"Tea number {number}.")
    await wait_for(provider.heard, lambda: len(provider.asked) >= 70)
    await wait_for(report.signal, lambda: report.recoveries > 0)
    await plugin.stop()

    assert {f"Tea number {number}." for number in range(70)} <= {text for _, text in provider.asked}


async def test_another_model(start, provider, tmp_path):
    """After a change of the model queries use the old model until the new one has embedded every memory."""
    question = make_turn(prompt="Who likes tea?", user="ann", trust="full")
    plugin, _ = await start("one")
    await write(plugin, "Ann likes tea.")
    await until(lambda: (tmp_path / RECORD).exists() and embedded(plugin) == 1)
    await plugin.stop()
    provider.broken = ("two",)
    plugin, report = await start("two")
    await wait_for(report.signal, lambda: bool(report.degradations))
    before = await plugin.before_prompt(question, RecordingReport())
    asked = provider.asked[-1]
    provider.broken = ()
    await write(plugin, "Bob likes coffee.")
    await until(lambda: '"two"' in (tmp_path / RECORD).read_text())
    after = await plugin.before_prompt(question, RecordingReport())

    assert [("one", "Who likes tea?"), ("two", "Who likes tea?")] == [asked, provider.asked[-1]]
    assert ["Ann likes tea."] * 2 == [each.references[0].text for each in (before, after)]
    assert "Canary" not in (tmp_path / RECORD).read_text()
    assert 0o600 == stat.S_IMODE((tmp_path / RECORD).stat().st_mode)


@pytest.mark.parametrize(
    "text", ["", "no json", "[]", '{"provider": "nobody"}', '{"provider": 1}', '{"provider": ["static"]}', "{}"]
)
async def test_a_record_that_cannot_be_read(start, provider, tmp_path, text):
    """The memory opens and recalls whatever the record of the last embedder contains."""
    (tmp_path / RECORD).write_text(text)
    plugin, _ = await start()
    await write(plugin, "Ann likes tea.")
    recall = await plugin.before_prompt(make_turn(prompt="Who likes tea?", user="ann", trust="full"), RecordingReport())

    assert "Ann likes tea." in recall.references[0].text


async def test_upkeep_that_fails(start, tmp_path):
    """A failing upkeep reports an event and degrades the health, and recall goes on."""
    (tmp_path / RECORD).mkdir()
    plugin, report = await start()
    await wait_for(report.signal, lambda: "upkeep_IsADirectoryError" in report.degradations)
    await write(plugin, "Ann likes tea.")
    recall = await plugin.before_prompt(make_turn(prompt="Who likes tea?", user="ann", trust="full"), RecordingReport())

    assert ("memory_upkeep_failed", {"error": "IsADirectoryError"}) == (report.events[0][0], dict(report.events[0][1]))
    assert "Ann likes tea." in recall.references[0].text


async def test_a_call_that_hangs_at_the_end(start, monkeypatch):
    """Stopping the plugin ends while a call still hangs, and reports that the call goes on."""
    monkeypatch.setattr(plugin_module, "STOP_SECONDS", 0.05)
    plugin, report = await start()
    hang, entered = threading.Event(), threading.Event()
    hanging = asyncio.ensure_future(plugin.serve(lambda _: entered.set() or hang.wait(30)))
    await asyncio.to_thread(entered.wait, 5)
    await plugin.stop()

    assert ["memory_stop_incomplete"] == [name for name, _ in report.events]
    hang.set()
    assert await hanging


@pytest.mark.parametrize(
    ("retry", "probe", "expected"),
    [(None, None, None), (60.0, None, 60.0), (None, 0.0, 0.0), (60.0, 3.0, 3.0), (60.0, 0.0, 1.0)],
)
def test_a_failure_is_not_followed_at_once(retry, probe, expected):
    """The upkeep pauses until the next probe is due, and waits after a failed round, so that it never spins."""
    upkeep = Upkeep(SimpleNamespace(probe_in=lambda: probe), Workers("none"), RecordingReport())

    assert expected == upkeep._pause(retry)
