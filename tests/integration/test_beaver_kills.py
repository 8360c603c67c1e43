"""`beaver run`, killed at any moment, two at a time on one state folder: no half turn is seen, nothing printed is lost.

`BEAVER_RUN_KILLS` says how many runs are killed; 3 by default, 10 in `make test-all`, 200 in `make faults`.
"""

import os
import random
import subprocess
import sys
import time

import pytest

from beaver_hooks.agent.sessions.store import SessionStore
from beaver_hooks.audit.reader import TrailReader

KILLS = int(os.environ.get("BEAVER_RUN_KILLS", "3"))
AT_ONCE = 2
WHOLE_RUN = 0.5
"""Seconds within which most kills come: a run takes about as long."""


def start(folder, number):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BEAVER", "COV"))}
    return subprocess.Popen(
        [sys.executable, "-m", "beaver_hooks.cli", "run", f"Remember that ticket-{number} is open.", "--session", "s"],
        cwd=folder, env={**kept, "XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def ended(process, seconds):
    """Kill a run after some time, if it is not over by then; return whether it had printed its answer."""
    try:
        out, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, _ = process.communicate()
    return "\n" in out


def campaign(folder):
    """Kill runs at random moments; return the numbers of those that had printed their answer."""
    chance, printed = random.Random(4711), []
    running = {number: start(folder, number) for number in range(AT_ONCE)}
    for number in range(AT_ONCE, KILLS + AT_ONCE):
        victim = chance.choice([*running])
        printed += [victim] * ended(running.pop(victim), chance.uniform(0.0, WHOLE_RUN))
        running[number] = start(folder, number)
    for number, process in running.items():
        printed += [number] * ended(process, 30)
    return printed


@pytest.mark.campaign
async def test_kill_9_in_the_middle_of_runs(tmp_path):
    """Databases and chain are whole, every prompt in the session has its answer, and every printed answer is there."""
    started = time.perf_counter()
    printed = campaign(tmp_path)

    state = tmp_path / ".beaver"
    store = SessionStore.open(state)
    messages = (await store.show("s")).messages
    problems = await store.integrity()
    await store.close()
    trail = TrailReader(state)
    prompts = [message.text for message in messages[::2]]
    sys.stdout.write(
        f"{KILLS} runs killed in {time.perf_counter() - started:.0f} s, {len(printed)} had answered,"
        f" {len(prompts)} exchanges stored\n"
    )

    assert ((), [], True) == (problems, trail.integrity(), trail.verify().ok)
    assert ["user", "assistant"] * len(prompts) == [message.role for message in messages]
    assert len(prompts) == len({*prompts})
    assert set() == {f"Remember that ticket-{number} is open." for number in printed} - {*prompts}
    assert printed
