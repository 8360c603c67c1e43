"""Turns of a host while their store cannot take them: each is kept, and captured once when the fault is over."""

import contextlib
import resource
from datetime import timedelta

import apsw
import pytest

from beaver_hooks import Host
from beaver_hooks.config import Config
from beaver_hooks.config.model import Memory
from beaver_hooks_local import make_plugin
from beaver_hostspecs.testing import FrozenClock
from beaver_memory.records import Owner
from beaver_memory.views import ALL_PROJECTS

TEXTS = ("My sister Anna lives in Lisbon with her two kids.", "My brother Tom lives in Oslo and works as a nurse.")
SECTION = {"enabled": True, "embedding": {"provider": "none"}}


@pytest.fixture
def make_host(tmp_path):
    """Makes hosts with the plugin and nothing else, on one state folder."""

    def make(**options):
        config = Config(memory=Memory(sections={"local": SECTION}))
        return Host({"local": make_plugin()}, config=config, state_folder=tmp_path, **options)

    return make


async def say(host, prompt):
    async with host.turn(prompt, session="s", user="ann", trust="full") as turn:
        await turn.commit("A long answer. " * 2_000)
    await host.drain()


async def on_store(host, work):
    return await host.plugin("local").serve(lambda memory: work(memory.operations.engine.store))


async def waiting(host):
    return await on_store(host, lambda store: store.queue.waiting(Owner(user="ann"), ALL_PROJECTS, limit=9))


def titles(tmp_path):
    with contextlib.closing(apsw.Connection(str(tmp_path / "plugins/local/memory.db"))) as connection:
        return sorted(connection.execute("SELECT title, mention_count FROM observations"))


@contextlib.contextmanager
def no_page(store):
    """The database has no room for another page."""
    with store._connector.alone() as connection:
        pages = connection.pragma("page_count")
        connection.pragma("max_page_count", pages)
    yield
    with store._connector.alone() as connection:
        connection.pragma("max_page_count", 2**30)


@contextlib.contextmanager
def no_log(store):
    """The log has no room: no file of the process grows."""
    store._connector.empty_log()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@contextlib.contextmanager
def locked(store):
    """Another process writes for longer than a writer waits."""
    with store._connector.alone() as connection:
        connection.set_busy_timeout(1)
    with contextlib.closing(apsw.Connection(str(store._connector.path))) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@pytest.mark.parametrize("fault", [no_page, no_log, locked])
async def test_a_store_that_takes_no_turn(make_host, tmp_path, fault):
    """Health reports a turn that the store refuses, and the next turn queues it, once."""
    async with make_host() as host:
        with fault(await on_store(host, lambda store: store)):
            await say(host, TEXTS[0])
            told = str(host.health()["local"]).rpartition("UTC: ")[2], await waiting(host)
        await say(host, TEXTS[1])
        queued = [each.attempts for each in await waiting(host)]
    assert (("after_prompt: raised", []), [(text, 1) for text in sorted(TEXTS)]) == (told, titles(tmp_path))
    assert [] == queued


async def test_a_clock_that_goes_back(make_host, tmp_path):
    """A turn that was claimed before the clock went back by a day is captured by the next process, once."""
    clock = FrozenClock()
    async with make_host(clock=clock) as host:
        await say(host, TEXTS[0])
        (turn,) = await waiting(host)
        await on_store(host, lambda store: store.queue.claim(turn.place, clock.now(), limit=9))
    async with make_host(clock=FrozenClock(clock.now() - timedelta(days=1))) as host:
        await say(host, TEXTS[1])
    assert [(text, 1) for text in sorted(TEXTS)] == titles(tmp_path)
