"""Several processes, one session store: no half turn shows, no acknowledged turn is lost, whichever process is killed.

`BEAVER_SESSION_KILLS` says how many times a process is killed; 4 by default, 20 in `make test-all`, 500 in `make faults`.
"""

import os
import random
import signal
import subprocess
import sys

import pytest

from beaver_hooks.agent.sessions.store import SessionStore

KILLS = int(os.environ.get("BEAVER_SESSION_KILLS", "4"))
AT_ONCE = 2
WRITER = """
import asyncio, sys
from pathlib import Path
from beaver_hooks.agent.sessions.store import SessionStore
from beaver_hostspecs import Message

async def main():
    store, name, number = SessionStore.open(Path(sys.argv[1])), sys.argv[2], 0
    await store.ensure("shared")
    while True:
        number += 1
        turn = f"{name}-{number}"
        filler = f" filler{number % 97}" * (number % 50)
        messages = [Message(role="user", text=f"ask {turn}{filler}"), Message(role="assistant", text=f"say {turn}{filler}")]
        await store.append_exchange("shared", messages)
        print(turn, flush=True)

asyncio.run(main())
"""


def start(folder, name):
    return subprocess.Popen([sys.executable, "-c", WRITER, str(folder), name], stdout=subprocess.PIPE, text=True)


def killed(writer, chance):
    """Let a writer work for a while, kill it, and return the turns that it had acknowledged."""
    lines = [writer.stdout.readline() for _ in range(chance.randrange(1, 25))]
    writer.send_signal(signal.SIGKILL)
    with writer:
        # The last line may be torn.
        rest = writer.stdout.read().rpartition("\n")[0]
    return [line.strip() for line in lines] + rest.splitlines()


@pytest.mark.campaign
@pytest.mark.parametrize("seed", [1])
async def test_kill_9_in_the_middle_of_turns(tmp_path, seed):
    """Two processes append to one session and are killed again and again: it is intact, whole, and complete."""
    chance, acknowledged = random.Random(seed), []
    writers = [start(tmp_path, f"w{number}") for number in range(AT_ONCE)]
    for number in range(AT_ONCE, KILLS):
        acknowledged += killed(writers.pop(chance.randrange(AT_ONCE)), chance)
        writers.append(start(tmp_path, f"w{number}"))
    for writer in writers:
        acknowledged += killed(writer, chance)

    store = SessionStore.open(tmp_path)
    shown = await store.show("shared")
    texts = [(message.role, *message.text.split()[:2]) for message in shown.messages]
    turns = [turn for _, _, turn in texts[::2]]
    hits = await store.search("filler7", 10)
    problems = await store.integrity()
    await store.close()
    sys.stdout.write(f"{KILLS} kills, {len(acknowledged)} turns acknowledged, {len(turns)} stored\n")

    assert () == problems
    assert [("user", "ask", turn) for turn in turns] == texts[::2]
    assert [("assistant", "say", turn) for turn in turns] == texts[1::2]
    assert len(turns) == len({*turns}) == shown.info.messages // 2
    assert set() == {*acknowledged} - {*turns}
    assert len(acknowledged) >= KILLS
    assert hits
