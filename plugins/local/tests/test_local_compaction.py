"""The plugin answers a compaction only after what the session said is durable."""

import asyncio
import contextlib

import apsw
import pytest

from beaver_hooks import CompactionReport, Host
from beaver_hooks.config import Config
from beaver_hooks.config.model import HostSettings, Memory
from beaver_hooks_local import make_plugin
from beaver_hooks_local.capture import turn_capture
from beaver_hostspecs import CommandContext, Services
from beaver_memory.errors import StoreError
from beaver_memory.records import Owner
from beaver_memory.runtime.captures import Captures
from beaver_memory.runtime.turn_captures import TurnCaptures
from beaver_memory.views import ALL_PROJECTS

SISTER = "My sister Anna lives in Lisbon with her two kids."
BROTHER = "My brother Tom lives in Oslo and works as a nurse."
ANN = {"session": "s1", "user": "ann", "trust": "full"}
CONFIRMED = CompactionReport(confirmed=("local",))


@pytest.fixture
def make_host(tmp_path):
    """Makes hosts with the plugin and nothing else, on one state folder."""

    def make(services=None, settings=None, **section):
        section = {"enabled": True, "embedding": {"provider": "none"}, **section}
        config = Config(host=HostSettings(**(settings or {})), memory=Memory(sections={"local": section}))
        return Host({"local": make_plugin()}, config=config, state_folder=tmp_path / "state", services=services)

    return make


@pytest.fixture
def stored(tmp_path):
    """Reads the titles that are stored now, over a connection of its own."""

    def read():
        with contextlib.closing(apsw.Connection(str(_database(tmp_path)))) as connection:
            return [title for (title,) in connection.execute("SELECT title FROM observations")]

    return read


def _database(tmp_path):
    return tmp_path / "state" / "plugins" / "local" / "memory.db"


@contextlib.contextmanager
def written_elsewhere(tmp_path):
    """Hold the lock for writers, as another process does while it writes."""
    with contextlib.closing(apsw.Connection(str(_database(tmp_path)))) as connection:
        connection.set_busy_timeout(10_000)
        connection.execute("BEGIN IMMEDIATE")
        yield


async def say(host, prompt=SISTER, **fields):
    async with host.turn(prompt, **{**ANN, **fields}) as turn:
        await turn.commit("Noted.")


async def test_what_the_session_said_is_durable_when_the_plugin_answers(make_host, stored, tmp_path):
    """A confirmed compaction leaves the session's words in the database; while they cannot be written, none is."""
    async with make_host(settings={"deadline_cap_seconds": 1.0}) as host:
        await say(host)
        await host.drain()
        waiting = stored()
        report = await host.before_compaction(**ANN)
        found = stored()
        await say(host, BROTHER)
        with written_elsewhere(tmp_path):
            behind = await host.before_compaction(**ANN)

    assert ([], CONFIRMED, [SISTER]) == (waiting, report, found)
    assert CompactionReport(unconfirmed={"local": "behind"}) == behind


class GatedModel:
    """A small model that answers when its gate is open."""

    def __init__(self):
        self.asked, self.gate, self.gated = asyncio.Event(), asyncio.Event(), True

    async def complete(self, prompt, *, max_tokens):
        self.asked.set()
        if self.gated:
            await self.gate.wait()
        return "no JSON"


async def test_words_that_a_capture_has_taken(make_host, stored):
    """While another capture of the session works on its words, they are durable in the queue: the plugin answers."""
    model = GatedModel()
    async with make_host(services=Services(small_model=model), capture={"extractor": "model"}) as host:
        await say(host)
        await host.drain()
        flushed = asyncio.create_task(host.plugin("local").flush())
        await model.asked.wait()
        report, before = await host.before_compaction(**ANN), stored()
        model.gate.set()
        await flushed

    assert (CONFIRMED, [], [SISTER]) == (report, before, stored())


async def test_words_that_a_flush_has_not_reached(make_host, stored):
    """While a flush is busy with another session, the words of this one are durable before the plugin answers."""
    model = GatedModel()
    async with make_host(services=Services(small_model=model), capture={"extractor": "model"}) as host:
        await say(host, session="s0")
        await host.drain()
        await say(host, BROTHER)
        await host.drain()
        flushed = asyncio.create_task(host.plugin("local").flush())
        await model.asked.wait()
        model.gated = False
        report, found = await host.before_compaction(**ANN), stored()
        model.gate.set()
        await flushed

    assert (CONFIRMED, [BROTHER]) == (report, found)


@pytest.mark.parametrize(
    ("caller", "captured"),
    [
        ({"session": "s2"}, False),
        ({"user": "bob"}, False),
        ({"user": None}, False),
        ({"trust": "public"}, False),
        ({"trust": "inner"}, False),
        ({}, True),
    ],
)
async def test_whose_words_are_captured(make_host, stored, caller, captured):
    """Only words of the caller's own session, user and at most its trust are captured by its compaction."""
    async with make_host() as host:
        await say(host)
        await host.before_compaction(**{**ANN, **caller})
        found = stored()

    assert ([SISTER] if captured else []) == found


async def test_more_trust_covers_less(make_host, stored):
    """A compaction at full trust captures what the same user said in the session at less trust."""
    async with make_host() as host:
        await say(host, trust="inner")
        report = await host.before_compaction(**ANN)

        assert (CONFIRMED, [SISTER]) == (report, stored())


async def test_a_capture_that_fails(make_host, monkeypatch):
    """Where the capture of queued words fails, they stay durable: the compaction is confirmed, and an event says why."""
    async with make_host() as host:
        await say(host)
        await host.drain()
        monkeypatch.setattr(Captures, "found", lambda *_: 1 / 0)
        report = await host.before_compaction(**ANN)
        (waiting,) = host.plugin("local").runtime.operations.engine.store.queue.waiting(
            Owner(user="ann"), ALL_PROJECTS, limit=9
        )

    assert (CONFIRMED, 1, "ZeroDivisionError") == (report, waiting.attempts, waiting.error)


async def test_words_that_were_lost(make_host, monkeypatch):
    """Where the store took no turns for too long, the next compaction is not confirmed, and the one after it is."""
    monkeypatch.setattr(turn_capture, "MOST_UNQUEUED", 1)
    async with make_host() as host:
        with monkeypatch.context() as broken:
            broken.setattr(TurnCaptures, "put", refused)
            for prompt in (SISTER, BROTHER):
                await say(host, prompt)
                await host.drain()
            behind = await host.before_compaction(**ANN)
        reports = [await host.before_compaction(**ANN) for _ in range(2)]
        listed = await host.run_command("local", "list", (), CommandContext(session="s1", user="ann", trust="full"))

    assert (CompactionReport(unconfirmed={"local": "raised"}), CONFIRMED) == (reports[0], reports[1])
    assert ({"local": "raised"}, False, True) == (dict(behind.unconfirmed), SISTER in listed, BROTHER in listed)


def refused(*_):
    """Stand in for a store on a full disk."""
    raise StoreError("memory.db", "disk_full")


async def test_nothing_waits(make_host):
    """A session without words, and one whose capture is off, are confirmed at once."""
    async with make_host() as host:
        reports = [await host.before_compaction(**ANN)]
    async with make_host(capture={"enabled": False}) as host:
        await say(host)
        reports.append(await host.before_compaction(**ANN))

    assert [CONFIRMED] * 2 == reports
