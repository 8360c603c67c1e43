"""A process that queues turns or captures them: `turn_queue_worker.py queue|capture FOLDER SESSION`."""

import contextlib
import sys
from pathlib import Path

from beaver_hostspecs.testing import RecordingReport
from beaver_memory.capture.gates.budget import Budget
from beaver_memory.capture.records import Utterance
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.records import Owner, QueuedSession
from beaver_memory.runtime.factory import open_engine
from beaver_memory.runtime.operations import Operations
from beaver_memory.runtime.profile import CaptureProfile, Profile, RuntimeServices, SqliteLocation

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


if __name__ == "__main__":
    {"queue": queue, "capture": capture}[sys.argv[1]](Path(sys.argv[2]), sys.argv[3])
