"""What curated memory costs: a snapshot, a write through the tool, and the scan of hostile text.

Floor of the write: the same bytes into a temporary file, fsync, rename, fsync of the folder, in the same run and the
same folder, alternating. The write is the whole call in a host, through `host.run_tool`: lock, merge, history, file,
audit event, receipt. What was written is asserted to be in the file, in the history and in the audit trail.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from beaver_hooks import Host
from beaver_hooks.audit.memory import MemorySink
from beaver_hooks_curated import Curated, MemoryService, Operation, Target
from beaver_hooks_curated.scanning import LONGEST, scan

SNAPSHOT_TARGET = 0.001
WRITE_TARGET = 3.0
SCAN_TARGET = 0.020
ROUNDS = 60
HOSTILE = {
    "one letter": "a",
    "verbs": "ignore all the ",
    "spaced": "i g n o r e ",
    "shell": "curl | curl $ ",
    "markup": "<!-- ![ <| ",
    "orders": "whenever run ",
    "accents": "é",
    "emoji": "\U0001f469\u200d",
    "chinese": "忽略",
    "images": "<img src=",
    "ligatures": "\ufdfa",
    "squares": "\u3300",
}


def best(call: Callable[[], object], rounds: int = 15) -> float:
    """Return the median seconds of a call."""
    samples = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        samples.append(time.perf_counter() - started)
    return statistics.median(samples)


def floor(folder: Path, content: bytes) -> float:
    """Return the seconds of one synced atomic rename."""
    started = time.perf_counter()
    temporary = folder / "floor.tmp"
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / "floor")
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
    return time.perf_counter() - started


def fill(service: MemoryService) -> None:
    """Fill both files to their limits."""
    for target, count, length in ((Target.MEMORY, 10, 216), (Target.USER, 10, 134)):
        steps = [Operation(action="add", content=f"{number} {'word ' * 50}"[:length]) for number in range(count)]
        service.change(target, steps)


async def write(host: Host, turn: str, number: int) -> float:
    """Return the seconds of one call of the tool that replaces an entry of a full file."""
    arguments = {"action": "replace", "target": "memory", "content": f"0 {number:03} " + "w" * 200}
    arguments["old_text"] = "0 w" if number == 0 else f"0 {number - 1:03} "
    started = time.perf_counter()
    answer = await host.run_tool(turn, "memory", arguments)
    spent = time.perf_counter() - started
    assert isinstance(answer, dict), answer
    assert answer["success"], answer
    return spent


async def compare(folder: Path) -> tuple[float, float, float]:
    """Return the medians of snapshot, write and floor."""
    audit = MemorySink()
    async with Host(entry_points=["curated"], state_folder=folder, sinks=[audit]) as host:
        plugin = host.plugin("curated")
        assert isinstance(plugin, Curated)
        fill(plugin.service)
        snapshot = best(plugin.service.snapshot, 200)
        content = (plugin.service.folder / "MEMORY.md").read_bytes()
        writes, floors = [], []
        async with host.turn("bench", session="bench") as turn:
            for number in range(ROUNDS):
                writes.append(await write(host, turn.turn.id, number))
                floors.append(floor(plugin.service.folder, content))
        assert sum(event.name == "curated_changed" for event in audit.events) == ROUNDS
        assert sum(change.action == "replace" for change in plugin.service.history()) == ROUNDS
    return snapshot, statistics.median(writes), statistics.median(floors)


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        snapshot, written, bare = asyncio.run(compare(Path(folder) / "state"))
    print(f"snapshot and render, full files: {snapshot * 1e3:.3f} ms (target {SNAPSHOT_TARGET * 1e3:.0f})")
    print(f"tool write: {written * 1e3:.2f} ms, synced rename: {bare * 1e3:.2f} ms")
    print(f"ratio: {written / bare:.2f} (target {WRITE_TARGET})")
    missed = snapshot > SNAPSHOT_TARGET or written > WRITE_TARGET * bare
    for name, unit in HOSTILE.items():
        text = (unit * LONGEST).encode()[:LONGEST].decode("utf-8", "ignore")
        seconds = best(partial(scan, text))
        print(f"scan of 64 KB, {name}: {seconds * 1e3:.1f} ms (target {SCAN_TARGET * 1e3:.0f})")
        missed = missed or seconds > SCAN_TARGET
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
