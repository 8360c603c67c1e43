"""Acknowledged memories that are missing after a crash, because the log was damaged: noticed, told, accepted."""

import asyncio
import contextlib
import os
import random
import shutil
import sys

import pytest
from selection import campaign

from beaver_hostspecs.testing import FrozenClock, RecordingReport
from beaver_memory import MemoryRuntime
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.errors import StoreError
from beaver_memory.filters import Filters
from beaver_memory.runtime import requests
from beaver_memory.runtime.profile import Profile, RuntimeServices, SqliteLocation
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.testing.store_cases.kit import NOW, looking, new
from beaver_memory.views import View
from beaver_toolkit.sqlite.losses import accept_losses

COUNT = 30
ANN = new("any").memory.owner
FILES = ("memory.db", "memory.db-wal", ".memory.db.commits")


@pytest.fixture(scope="module")
def crashed(tmp_path_factory):
    """The files of a store with memories in its log, as a killed process leaves them."""
    path, copy = tmp_path_factory.mktemp("open") / "memory.db", tmp_path_factory.mktemp("crashed")
    with contextlib.closing(SqliteStore.open(path)) as store:
        for number in range(COUNT):
            store.add([new(f"title {number}", narrative="text " * 80)], now=NOW)
        for name in FILES:
            shutil.copyfile(path.with_name(name), copy / name)
    return copy


def flipped(crashed, to, chance):
    """Return a copy of the files with one flipped bit in the log."""
    shutil.copytree(crashed, to, dirs_exist_ok=True)
    log = to / "memory.db-wal"
    flip(log, chance.randrange(32, log.stat().st_size), chance.randrange(8))
    return to / "memory.db"


def flip(log, place, bit):
    with log.open("r+b") as file:
        byte = os.pread(file.fileno(), 1, place)[0]
        os.pwrite(file.fileno(), bytes([byte ^ 1 << bit]), place)


@pytest.mark.parametrize(("seed", "count"), [(1, 12), *campaign((2, 400))])
def test_flipped_bits_of_a_log_after_a_crash(crashed, tmp_path, seed, count):
    """However a log is damaged that a killed process left, each memory is right, or missing and counted."""
    chance, results = random.Random(seed), []
    for number in range(count):
        path, told = flipped(crashed, tmp_path / f"{number}", chance), []
        with contextlib.closing(SqliteStore.open(path, lost=told.append)) as store:
            there = [memory.title for memory in store.recent(looking(), limit=COUNT)]
            problems = store.check(None)
        wrong = [title for title in there if title not in {f"title {number}" for number in range(COUNT)}]
        results.append((COUNT - len(there), sum(told), len(problems), wrong))
        shutil.rmtree(path.parent)
    silent = [each for each in results if each[0] != each[1] or each[2] != (1 if each[0] else 0) or each[3]]

    sys.stdout.write(f"{count} flips of a log, {sum(each[0] for each in results)} memories missing, 0 silently\n")
    assert [] == silent


def seen(path, told):
    """Return the memories that another process finds by each way of reading; `None` where it is refused."""
    filters, found = looking(), []
    ways = (
        lambda store: store.get(range(1, COUNT + 1), filters),
        lambda store: store.recent(filters, limit=COUNT),
        lambda store: store.get([row.id for row in store.changed(ANN, 0, limit=COUNT)], filters),
    )
    for way in ways:
        try:
            with contextlib.closing(SqliteStore.open(path, damaged=told.append, lost=told.append)) as store:
                # As an index is loaded before any search.
                store.changed(ANN, 0, limit=COUNT)
                found.append({(memory.id, memory.title, memory.narrative) for memory in way(store)})
        except StoreError:
            told.append("refused")
    return found


@pytest.mark.parametrize(("seed", "count"), [(3, 10), *campaign((4, 400))])
def test_flipped_bits_of_a_log_in_use(crashed, tmp_path, seed, count):
    """However the log of an open database is damaged, another process shows no wrong memory, and misses none silently."""
    chance, results, shown = random.Random(seed), [], 0
    truth = {(number + 1, f"title {number}", "text " * 80) for number in range(COUNT)}
    for number in range(count):
        to, told = tmp_path / f"{number}", []
        shutil.copytree(crashed, to)
        log = to / "memory.db-wal"
        with contextlib.closing(SqliteStore.open(to / "memory.db")) as store:
            store.count(ANN)
            flip(log, chance.randrange(32, log.stat().st_size), chance.randrange(8))
            found = seen(to / "memory.db", told)
        shown += sum(map(len, found))
        results += [
            (number, each - truth, truth - each) for each in found if each - truth or (truth - each and not told)
        ]
        shutil.rmtree(to)

    sys.stdout.write(f"{count} flips of a log in use, {shown} of {3 * COUNT * count} memories shown\n")
    assert [] == results


def test_the_health_of_a_memory_that_lost_commits(crashed, tmp_path):
    """The loss is an event and a degraded health each time that the memory opens, until the user accepts it."""
    path = flipped(crashed, tmp_path / "memory", random.Random(4))
    location = SqliteLocation(state_folder=path.parent)

    async def reported():
        report = RecordingReport()
        services = RuntimeServices(report=report, clock=FrozenClock(NOW))
        runtime = await MemoryRuntime.open(Profile(embedding=EmbeddingSettings(provider="none")), location, services)
        found = await runtime.list(requests.ListRequest(visible=Filters(view=View(now=NOW)), limit=COUNT))
        await runtime.close()
        return COUNT - len(found.memories), report.events, report.degradations

    lost, events, degradations = asyncio.run(reported())
    told = [("memory_commits_missing", {"commits": lost})]

    assert lost
    assert (told, ["commits_missing"]) == (events, degradations)
    assert (lost, told, ["commits_missing"]) == asyncio.run(reported())
    accept_losses(path)
    assert (lost, [], []) == asyncio.run(reported())


def test_forgetting_erases_the_damaged_log(crashed, tmp_path):
    """A forgotten memory does not stay in the copy of a damaged log; the notice of the loss stays."""
    path = flipped(crashed, tmp_path / "memory", random.Random(4))
    with contextlib.closing(SqliteStore.open(path)) as store:
        assert 1 == len([*path.parent.glob("*.damaged-*")])
        store.forget([1], looking(), now=NOW)
        (problem,) = store.check(None)

    assert [] == [*path.parent.glob("*.damaged-*")]
    assert problem.endswith(f"accept the loss with `beaver doctor --accept-loss {path}`.")
