"""A process that queues turns or captures them: `turn_queue_worker.py queue|capture|statements FOLDER SESSION`."""

import contextlib
import itertools
import os
import random
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw

from beaver_hostspecs.testing import FrozenClock, RecordingReport
from beaver_memory.capture.gates.budget import Budget
from beaver_memory.capture.records import Utterance
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.records import Owner, QueuedSession
from beaver_memory.runtime.factory import open_engine
from beaver_memory.runtime.operations import Operations
from beaver_memory.runtime.profile import CaptureProfile, Profile, RuntimeServices, SqliteLocation
from beaver_memory.views import ALL_PROJECTS

ANN = Owner(user="ann")


def opened(folder, **services):
    """Open the operations of a memory in SQLite."""
    budget = Budget(per_day=100_000, per_turn=20)
    profile = Profile(embedding=EmbeddingSettings(provider="none"), capture=CaptureProfile(budget=budget))
    location = SqliteLocation(state_folder=folder, database_path=folder / "memory.db")
    services = RuntimeServices(report=RecordingReport(), **services)
    made = open_engine(profile, location, services)
    return Operations(made.engine, made.embedder, profile, location, services)


def put(operations, session, turn):
    """Queue a turn in which the user asks to remember something."""
    said = Utterance(text=f"Remember that box {turn} holds the {turn} papers.", turn=turn)
    operations.turns.put(QueuedSession(owner=ANN, session=session), turn, [said])


def captured_later(folder):
    """Capture the turns that are left, as a process does that begins after all claims have ended; return the memories by turn."""
    clock = FrozenClock(datetime.now(UTC) + timedelta(minutes=20))
    with contextlib.closing(opened(folder, clock=clock)) as operations:
        operations.engine.serve_home()
        for place in operations.turns.due(clock.now()):
            operations.turns.capture(place, limit=2)
        store = operations.engine.store
        waiting = [
            each for owner in store.queue.owners(None) for each in store.queue.waiting(owner, ALL_PROJECTS, limit=9)
        ]
        with store._connector.reading() as connection:
            rows = connection.execute("SELECT origin, title, mention_count FROM observations").fetchall()
        return waiting, rows, store.check(None)


def queue(folder, session):
    """Queue turns, print each one that is durable, and capture two at a time."""
    operations = opened(folder)
    for number in range(10_000):
        put(operations, session, f"{session}-{number}")
        sys.stdout.write(f"{session}-{number}\n")
        sys.stdout.flush()
        if number % 2:
            operations.turns.capture(QueuedSession(owner=ANN, session=session), limit=2)


def capture(folder, session):
    """Capture the turns of a session one by one, and print those that this process has captured."""
    with contextlib.closing(opened(folder)) as operations:
        reports = operations.turns.capture(QueuedSession(owner=ANN, session=session), limit=1)
        sys.stdout.write(" ".join(item.turn for report in reports for item in report.items))


def statements(folder, seed):
    """Fork processes that queue and capture; each is killed one statement later than the one before; print as `queue`."""
    chance, code = random.Random(seed), -signal.SIGKILL
    steps = ["put", *chance.choices(["put", "put", "again", "capture"], k=4), "capture"]
    limit = chance.randrange(1, 4)
    # What the first capture of a process prepares is prepared for all of them.
    with contextlib.closing(opened(folder)) as operations:
        run(operations, f"{seed}-whole", steps, limit)
    for number in itertools.count():
        if code == 0:
            break
        if not (child := os.fork()):
            operations = opened(folder)
            count_statements(operations, number)
            run(operations, f"{seed}-{number}", steps, limit)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run(operations, session, steps, limit):
    """Queue turns of a session, some twice, print each one that is durable, and capture."""
    turn = ""
    for number, step in enumerate(steps):
        if step == "capture":
            operations.turns.capture(QueuedSession(owner=ANN, session=session), limit=limit)
        else:
            turn = f"{session}-{number}" if step == "put" else turn
            put(operations, session, turn)
            os.write(1, f"{turn}\n".encode())


def count_statements(operations, left):
    """End this process before a statement of the database."""

    def counted(*_):
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    apsw.connection_hooks.append(lambda connection: connection.set_exec_trace(counted))
    with operations.engine.store._connector.alone() as writer:
        writer.set_exec_trace(counted)


if __name__ == "__main__":
    {"queue": queue, "capture": capture, "statements": statements}[sys.argv[1]](Path(sys.argv[2]), sys.argv[3])
