"""Backups while processes write and are killed: every restored backup is a moment that was.

Each writer makes numbered steps in every kind of state and acknowledges each. So a copy is a moment if it holds the first
steps of each writer without a gap, at least those that were acknowledged before the backup began.
"""

import contextlib
import itertools
import json
import random
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import apsw
import pytest
from processes import environment, run_beaver

from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.testing.store_cases.kit import looking

CONFIG = {
    "memory": {"mode": "curated", "local": {"enabled": True, "embedding": {"provider": "none"}}},
    "plugins": {"disabled": ["tally"]},
}
KINDS = ("curated", "memory", "session", "trail")
"""In the order in which a writer makes a step, and a backup copies them."""

WRITER = """
import asyncio, sys
from datetime import UTC, datetime
from pathlib import Path
from beaver_hooks.agent.sessions.store import SessionStore
from beaver_hooks.audit.events import AuditEvent
from beaver_hooks.audit.trail import Trail
from beaver_hooks_curated import CuratedSettings, MemoryService, Operation, Target
from beaver_hostspecs import Message
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.testing.store_cases.kit import NOW, new

async def main(folder, name):
    curated = MemoryService(folder / "plugins/curated", CuratedSettings(lock_seconds=60))
    (folder / "plugins/local").mkdir(parents=True, exist_ok=True)
    store = SqliteStore.open(folder / "plugins/local/memory.db")
    sessions, trail = SessionStore.open(folder), Trail.open(folder)
    await sessions.ensure(name)
    for number in range(100_000):
        text = f"{name}-{number}-"
        step = {"action": "replace", "old_text": f"{name}-{number - 1}-"} if number else {"action": "add"}
        curated.change(Target.MEMORY, [Operation(content=text, **step)])
        store.add([new(f"{text} {half}", narrative="filler " * (number % 50)) for half in "ab"], now=NOW)
        await sessions.append_exchange(name, [Message(role="user", text=text), Message(role="assistant", text=text)])
        trail.append(AuditEvent(name="step", at=datetime.now(UTC), facts={"step": text}))
        await asyncio.to_thread(trail.flush)
        print(number, flush=True)

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


class Writer:
    """A process that writes, and the number of steps that it has acknowledged as far as they were read."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name, self.steps = name, 0
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), name], stdout=subprocess.PIPE, text=True
        )

    def read(self, count: int) -> None:
        """Wait until it has acknowledged so many more steps."""
        for _ in range(count):
            self.steps = int(self.process.stdout.readline()) + 1

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        with self.process:
            lines = self.process.stdout.read().rpartition("\n")[0].splitlines()
        self.steps = int(lines[-1]) + 1 if lines else self.steps


def texts_in(state: Path) -> Mapping[str, list[str]]:
    """Return the texts of all steps that a restored state holds, by kind."""
    with contextlib.closing(SqliteStore.open(state / "plugins/local/memory.db")) as store:
        memories = sorted(each.title for each in store.recent(looking(), limit=10**6))
    with contextlib.closing(apsw.Connection(str(state / "sessions.db"))) as connection:
        messages = [text for (text,) in connection.execute("SELECT CAST(text AS TEXT) FROM messages ORDER BY number")]
    with contextlib.closing(apsw.Connection(str(state / "host.db"))) as connection:
        events = [json.loads(facts) for (facts,) in connection.execute("SELECT facts FROM audit ORDER BY seq")]
    # A writer keeps one entry there, with the number of its last step.
    last = [each.rsplit("-", 2) for each in (state / "plugins/curated/MEMORY.md").read_text().split("\n§\n")]
    assert [each.removesuffix(" b") for each in memories[1::2]] == [each.removesuffix(" a") for each in memories[::2]]
    assert messages[1::2] == messages[::2] or len(messages) == 2 * len({*messages})
    return {
        "curated": [f"{name}-{number}-" for name, step, _ in last for number in range(int(step) + 1)],
        "memory": [each.removesuffix(" a") for each in memories[::2]],
        "session": list(dict.fromkeys(messages)),
        "trail": [each["step"] for each in events if "step" in each],
    }


def steps_of(texts: list[str], name: str) -> int:
    """Return how many steps of a writer there are, which are the first ones without a gap."""
    found = sorted(int(match[1]) for text in texts if (match := re.fullmatch(rf"{name}-(\d+)-", text)))
    assert list(range(len(found))) == found
    return len(found)


def killed_backup(project: Path, env: dict[str, str], chance: random.Random) -> None:
    """Begin a backup and kill it somewhere."""
    words = [sys.executable, "-m", "beaver_hooks.cli", "backup", "--to", str(project.parent / "killed")]
    with subprocess.Popen(words, cwd=project, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0.3, 1.5))
        process.kill()


@pytest.mark.campaign
@pytest.mark.parametrize(("seed", "backups"), [(1, 2), (2, 25), (3, 25)])
def test_each_backup_is_a_moment(tmp_path, seed, backups):
    """Two processes write, one is killed after each backup, and backups are killed: each copy holds a gapless beginning."""
    chance, project = random.Random(seed), tmp_path / "project"
    state, env = project / ".beaver", environment(HOME=tmp_path, BEAVER_CONFIG=project / ".beaver" / "config.json")
    state.mkdir(parents=True)
    (state / "config.json").write_text(json.dumps(CONFIG))
    writers = [Writer(state, f"w{number}") for number in range(2)]
    acknowledged, taken = dict[str, int](), []
    try:
        for number in range(backups):
            for each in writers:
                each.read(chance.randrange(1, 6))
            before = acknowledged | {each.name: each.steps for each in writers}
            ran = run_beaver("backup", tmp_path / f"{number}.zip", cwd=project, env=env)
            taken.append((ran.code, ran.err, before))
            gone = writers.pop(chance.randrange(2))
            gone.kill()
            acknowledged[gone.name] = gone.steps
            writers.append(Writer(state, f"w{number + 2}"))
        killed_backup(project, env, chance)
    finally:
        for each in writers:
            each.kill()

    assert [(0, "")] * backups == [(code, err) for code, err, _ in taken]
    for number, (_, _, before) in enumerate(taken):
        restored = run_beaver(
            "restore", tmp_path / f"{number}.zip", "--to", tmp_path / str(number), "--json", cwd=project, env=env
        )
        texts = texts_in(tmp_path / str(number) / "project" / ".beaver")
        counts = {name: [steps_of(texts[kind], name) for kind in KINDS] for name in before}
        assert (0, []) == (restored.code, restored.json["problems"])
        assert {} == {name: found for name, found in counts.items() if min(found) < before[name]}
        # A later copy lacks at most the step that the writer was making when the earlier one was copied.
        assert all(later >= earlier - 1 for found in counts.values() for earlier, later in itertools.pairwise(found))
    for path in (tmp_path / "killed").glob("*.zip"):
        assert 0 == run_beaver("backup", "verify", path, cwd=project, env=env).code
