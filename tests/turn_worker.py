"""Forks a process for each line of stdin, a session, in which a host runs turns until it is killed: `turn_worker.py FOLDER`.

Each process prints its id, then what is durable; `ended` follows its end.
"""

import asyncio
import os
import sys
from pathlib import Path

from fork_server import fill_caches, import_everything

from beaver_hooks import Host
from beaver_hooks.config import Config
from beaver_hooks.config.model import Memory
from beaver_hooks_local import make_plugin

SECTION = {
    "enabled": True,
    "embedding": {"provider": "none"},
    "capture": {"perDay": 10_000, "perTurn": 20, "minTurnMessages": 6},
}
LATER, AT_ONCE = "Our client {0} has its office in {0}town.", "Remember that {0} plays the piano in {0}town."
"""What the user says: a fact for which capture waits for more messages, and one that is captured in its turn."""

_LETTERS = dict(zip("0123456789", ("ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ru"), strict=True))


def name_of(number):
    """Return a number as a name without digits: statements that differ in numbers alone may end each other."""
    return "".join(_LETTERS[each] for each in str(number)).capitalize()


async def run_turns(folder, session):
    """Let the model write a memory and the user say something in each turn; print what is durable."""
    config = Config(memory=Memory(sections={"local": SECTION}))
    async with Host({"local": make_plugin()}, config=config, state_folder=folder) as host:
        for number in range(10_000):
            name = f"{session}x{name_of(number)}"
            said = (LATER if number % 4 else AT_ONCE).format(name)
            async with host.turn(said, session=session, user="ann", trust="full") as turn:
                answer = await host.run_tool(turn.id, "memory_write", {"title": f"The shelf {name} is empty."})
                tell(answer["outcome"], "shelf", name)
                await turn.commit("Yes.")
            await host.drain()
            # A machine that is too busy for the hook's deadline tells nothing of the turn.
            if str(host.health()["local"]) == "ok":
                tell("queued", "turn", name)


def tell(*words):
    """Print a line in one write, which a kill does not tear."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def main(folder):
    """Fork for each session."""
    import_everything()
    fill_caches()
    for line in sys.stdin:
        child = os.fork()
        if not child:
            tell(os.getpid())
            asyncio.run(run_turns(folder, line.strip()))
        os.waitpid(child, 0)
        tell("ended")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
