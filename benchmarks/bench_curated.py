"""Measures the cost of curated memory (snapshot, write through the tool, scan of hostile text), and the scan's recall.

The floor of the write puts the same bytes into a temporary file, syncs it, renames it, and syncs the folder, in the
same run and the same folder, alternating. The write is the whole call in a host, through `host.run_tool`: lock, merge,
history, file, audit event, receipt. The benchmark asserts that each write is in the file, in the history and in the
audit trail.

The rules of the scan were written with half A of the corpus `wider` and with the corpus `tuning`, without half B. A
text is in half A if the first byte of its SHA-256 is even.
"""

import asyncio
import hashlib
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from pathlib import Path

from beaver_hooks import Host
from beaver_hooks.audit.memory_sink import MemorySink
from beaver_hooks_curated import Curated, CuratedSettings, MemoryService, Operation, Target
from beaver_hooks_curated.threat_scan import LONGEST, scan

SNAPSHOT_TARGET = 0.001
WRITE_TARGET = 3.0
SCAN_TARGET = 0.020
RECALL_TARGET = 0.85
MANY_TARGET = 0.5
MANY = 60_000
ROUNDS = 60
CORPORA = Path(__file__).parents[1] / "plugins" / "curated" / "tests" / "data"
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
    "lines": "ignore\n",
    "leetspeak": "1gn0r3 4ll th3 ",
    "look-alikes": "ign\u043ere \u0430ll ",
    "letters apart": "a.b.c.d-",
    "broken words": "a-\nb",
    "emphasis": "**a**__b__",
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
    """Return the seconds of one tool call that replaces an entry of a full file."""
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
        async with host.turn("bench", session="bench", trust="full") as turn:
            for number in range(ROUNDS):
                writes.append(await write(host, turn.turn.id, number))
                floors.append(floor(plugin.service.folder, content))
        assert sum(event.name == "curated_changed" for event in audit.events) == ROUNDS
        assert sum(change.action == "replace" for change in plugin.service.history()) == ROUNDS
    return snapshot, statistics.median(writes), statistics.median(floors)


def many_words() -> str:
    """Return many different words."""
    dice = random.Random(1)
    return " ".join("".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(LONGEST // 7))


def vocabulary() -> str:
    """Return the scan's own words in random order, which take longer than any ordinary text."""
    classes = json.loads(files("beaver_hooks_curated").joinpath("threats.json").read_text("utf-8"))["classes"]
    dice, stems = random.Random(1), [stem.removeprefix("=") for stem in " ".join(classes.values()).split()]
    text = " ".join(dice.choice(stems) + dice.choice(("", ".", "")) for _ in range(LONGEST // 4))
    return text.encode()[:LONGEST].decode("utf-8", "ignore")


def corpus(name: str, half: str) -> list[str]:
    """Return the texts of a corpus, or of one half of it."""
    texts = [json.loads(line)["text"] for line in (CORPORA / f"{name}.jsonl").read_text("utf-8").splitlines()]
    return [text for text in texts if not half or "AB"[hashlib.sha256(text.encode()).digest()[0] % 2] == half]


def recall() -> bool:
    """Print the recall of the scan, and return whether it misses the target on half B."""
    short = False
    for prefix, half in (("", ""), ("tuning_", ""), ("wider_", "A"), ("wider_", "B")):
        hostile, legitimate = (corpus(prefix + name, half) for name in ("hostile", "legitimate"))
        found, alarms = (sum(bool(scan(text)) for text in texts) for texts in (hostile, legitimate))
        share = found / len(hostile)
        name = f"{prefix.rstrip('_') or 'first'} {half}".strip()
        print(
            f"corpus {name}: {found} of {len(hostile)} found ({share:.1%}), {alarms} of {len(legitimate)} false alarms"
        )
        if half == "B":
            short = share < RECALL_TARGET or alarms > 0
    return short


def many_entries(folder: Path) -> float:
    """Return the seconds of the first snapshot of a file with very many entries."""
    folder.mkdir()
    (folder / "MEMORY.md").write_text("\n\u00a7\n".join(f"entry {number}" for number in range(MANY)))
    service = MemoryService(folder, CuratedSettings(memory_char_limit=1_000_000))
    return best(service.snapshot, 1)


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        snapshot, written, bare = asyncio.run(compare(Path(folder) / "state"))
        many = many_entries(Path(folder) / "many")
    print(f"snapshot and render, full files: {snapshot * 1e3:.3f} ms (target {SNAPSHOT_TARGET * 1e3:.0f})")
    print(f"tool write: {written * 1e3:.2f} ms, synced rename: {bare * 1e3:.2f} ms")
    print(f"ratio: {written / bare:.2f} (target {WRITE_TARGET})")
    missed = snapshot > SNAPSHOT_TARGET or written > WRITE_TARGET * bare
    print(f"first snapshot of {MANY:,} entries: {many:.2f} s (target {MANY_TARGET})")
    missed = recall() or many > MANY_TARGET or missed
    texts = {name: (unit * LONGEST).encode()[:LONGEST].decode("utf-8", "ignore") for name, unit in HOSTILE.items()}
    for name, text in {**texts, "many words": many_words()}.items():
        seconds = best(partial(scan, text))
        print(f"scan of 64 KB, {name}: {seconds * 1e3:.1f} ms (target {SCAN_TARGET * 1e3:.0f})")
        missed = missed or seconds > SCAN_TARGET
    print(f"scan of 64 KB, its own vocabulary: {best(partial(scan, vocabulary())) * 1e3:.1f} ms (no target)")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
