"""A process is killed while its host runs turns: all that it made durable is there later, once.

`BEAVER_HOST_KILLS` says how many processes are killed; 10 by default, 500 in `make faults`.
"""

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
import turn_worker
from processes import environment

KILLS = int(os.environ.get("BEAVER_HOST_KILLS", "10"))
NAMED = re.compile(r"The (shelf) (\S+) is empty\.|(?:Our client )?(\S+) (?:has its office|plays the piano) in")


@pytest.fixture
def worker(tmp_path):
    """Start the program that forks a process for each session."""
    words = [sys.executable, turn_worker.__file__, tmp_path]
    with subprocess.Popen(
        words, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        yield running
        running.stdin.close()


def killed(worker, session, chance):
    """Kill a process after some turns, at any step; return what it had told as durable: shelves and turns."""
    worker.stdin.write(f"{session}\n")
    worker.stdin.flush()
    pid = int(worker.stdout.readline())
    lines = [worker.stdout.readline() for _ in range(chance.randrange(1, 12))]
    time.sleep(chance.random() * 0.03)
    os.kill(pid, signal.SIGKILL)
    lines += iter(worker.stdout.readline, "ended\n")
    told = [line.split() for line in lines]
    assert {("stored", "shelf"), ("queued", "turn")} >= {(outcome, kind) for outcome, kind, _ in told}
    return [(kind, name) for _, kind, name in told]


def kept_of(title):
    """Return what a title is about: a shelf that the model wrote, or the turn in which the user said something."""
    shelf, named, turn = NAMED.match(title).groups()
    return (shelf, named) if shelf else ("turn", turn)


@pytest.mark.campaign
def test_kill_9_in_the_middle_of_turns(tmp_path, worker):
    """Each memory of a tool and each queued turn is one memory at the end, whenever its process was killed."""
    chance, durable, database = random.Random(85), [], tmp_path / "plugins/local"
    for number in range(KILLS):
        durable += killed(worker, turn_worker.name_of(number), chance)
        if number % 25 == 24:
            turn_queue_worker.captured_later(database)
    waiting, rows, problems = turn_queue_worker.captured_later(database)
    kept = Counter(kept_of(title) for _, title, _ in rows)
    sys.stdout.write(f"{KILLS} kills, {len(durable)} durable, {len(rows)} memories\n")

    assert ([], []) == (waiting, problems)
    assert {} == {what: kept[what] for what in durable if kept[what] != 1}
    assert {} == {what: count for what, count in kept.items() if count != 1}
    assert [] == [title for _, title, mentions in rows if mentions != 1]
    assert {"shelf", "turn"} == {kind for kind, _ in durable}
