"""Several processes on one queue: a killed process loses no committed turn, and no turn takes effect twice.

`BEAVER_QUEUE_KILLS` says how many times a process is killed in `make test-all`: 20 by default, 500 in `make faults`.
`BEAVER_QUEUE_SEEDS` says how many orders of writes are killed at each statement: 1 by default, 100 in `make faults`.
"""

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
import turn_queue_worker
from turn_queue_worker import captured_later, opened, put

KILLS = int(os.environ.get("BEAVER_QUEUE_KILLS", "20"))
SEEDS = int(os.environ.get("BEAVER_QUEUE_SEEDS", "1"))


def start(task, path, session):
    words = [sys.executable, turn_queue_worker.__file__, task, str(path), session]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def killed(worker, chance):
    """Kill a worker after some turns, at any step; return the turns that were durable."""
    lines = [worker.stdout.readline() for _ in range(chance.randrange(1, 5))]
    time.sleep(chance.random() * 0.02)
    worker.send_signal(signal.SIGKILL)
    with worker:
        # The last line may be torn.
        rest = worker.stdout.read().rpartition("\n")[0]
    return [line.strip() for line in (*lines, *rest.splitlines())]


@pytest.mark.campaign
@pytest.mark.parametrize("kills", [2, KILLS])
def test_kills(tmp_path, kills):
    """Each turn that was durable before a kill is captured by a later process, as one memory, mentioned once."""
    chance, durable = random.Random(18), []
    for number in range(kills):
        durable += killed(start("queue", tmp_path, f"w{number}"), chance)
        if number % 25 == 24:
            captured_later(tmp_path)
    waiting, rows, problems = captured_later(tmp_path)
    mentioned = Counter({re.search(r"box (\S+)", title)[1]: mentions for _, title, mentions in rows})
    origins = Counter(origin for origin, _, _ in rows)
    assert ([], []) == (waiting, problems)
    assert {} == {turn: mentioned[turn] for turn in durable if mentioned[turn] != 1}
    assert {} == {turn: origins[turn] for turn in durable if origins[turn] != 1}
    assert kills <= len(durable)


@pytest.mark.campaign
def test_a_kill_before_each_statement(tmp_path):
    """Killed before any statement of the database, a process leaves each turn that was durable to be captured once."""
    durable, memories, left = [], Counter(), []
    for seed in range(SEEDS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        durable += start("statements", folder, str(seed)).communicate()[0].split()
        while captured_later(folder)[0]:
            pass
        waiting, rows, problems = captured_later(folder)
        left += [*waiting, *problems]
        for _, title, mentions in rows:
            memories[re.search(r"box (\S+)", title)[1]] += mentions
    killed_at = {turn.rpartition("-")[0] for turn in durable}
    sys.stdout.write(f"{SEEDS} seeds, {len(killed_at)} kills, {len(durable)} turns, {len(memories)} memories\n")

    assert [] == left
    assert {} == {turn: memories[turn] for turn in durable if memories[turn] != 1}
    assert {1} == {*memories.values()}
    assert len(killed_at) > 50 * SEEDS


@pytest.mark.campaign
def test_workers_side_by_side(tmp_path):
    """Processes that capture the same session at once capture each turn once."""
    turns = [f"t{number}" for number in range(12)]
    with contextlib.closing(opened(tmp_path)) as operations:
        for turn in turns:
            put(operations, "s", turn)
    workers = [start("capture", tmp_path, "s") for _ in range(2)]
    told = [turn for worker in workers for turn in worker.communicate()[0].split()]
    waiting, rows, problems = captured_later(tmp_path)
    assert ([], []) == (waiting, problems)
    assert [sorted(turns)] * 2 == [sorted(told), sorted(origin for origin, _, _ in rows)]
