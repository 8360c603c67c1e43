"""What the campaigns of faults run in processes of their own.

`python campaign.py write FOLDER SEED` writes until it is killed, and prints each entry once it is acknowledged.
`python campaign.py edit FOLDER NAME COUNT` makes so many additions and prints the acknowledged ones.
`python campaign.py hand FOLDER NAME COUNT` does the same as an editor does: reads the file, waits, rewrites it.
"""

import random
import sys
import time
from pathlib import Path

from beaver_hooks_curated import CuratedError, CuratedSettings, MemoryService, Operation, Target
from beaver_hooks_curated.entries import join, parse

SETTINGS = CuratedSettings(memory_char_limit=1_000_000, lock_seconds=30)


def say(*words: str) -> None:
    """Tell the test, at once."""
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


def add(service: MemoryService, entry: str) -> None:
    """Add an entry and say so, or say why not."""
    try:
        service.change(Target.MEMORY, [Operation(action="add", content=entry)])
    except CuratedError as error:
        say("refused", type(error).__name__)
    else:
        say("kept", entry)


def write(service: MemoryService, seed: str) -> None:
    """Add entries of many sizes for ever."""
    dice = random.Random(seed)
    for number in range(1_000_000):
        length = dice.randrange(1, 2000)
        add(service, f"{seed}-{number} {length} {'x' * length}")


def edit(service: MemoryService, name: str, count: int) -> None:
    """Add so many entries."""
    for number in range(count):
        add(service, f"{name}-{number}")


def hand(path: Path, name: str, count: int) -> None:
    """Rewrite the whole file so many times, without any lock."""
    dice = random.Random(name)
    for number in range(count):
        entries = parse(path.read_text("utf-8")) if path.exists() else ()
        time.sleep(dice.random() * 0.01)
        mine = path.with_name(f"{path.name}.{name}~")
        mine.write_text(join((*entries, f"{name}-{number}")), "utf-8")
        mine.replace(path)
        say("kept", f"{name}-{number}")
        time.sleep(dice.random() * 0.02)


def main(what: str, folder: str, name: str, count: str = "0") -> None:
    """Do what the command line says."""
    service = MemoryService(Path(folder), SETTINGS)
    if what == "write":
        write(service, name)
    elif what == "edit":
        edit(service, name, int(count))
    else:
        hand(Path(folder) / "MEMORY.md", name, int(count))


if __name__ == "__main__":
    main(*sys.argv[1:])
