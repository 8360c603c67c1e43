"""Campaigns of faults: killed writers, many writers, damaged files, full and read-only disks.

`BEAVER_FAULTS` is `sampled` in `make test-all`, and `whole` in `make faults`.
"""

import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from beaver_hooks_curated import (
    CuratedError,
    CuratedSettings,
    MemoryService,
    MemoryUnreadable,
    MemoryUnwritable,
    Operation,
    Target,
)
from beaver_hooks_curated.entries import parse

LENGTHS = {"": (2, 3, 12), "sampled": (8, 12, 60), "whole": (500, 100, 500)}
KILLS, EDITS, CORRUPTIONS = LENGTHS[os.environ.get("BEAVER_FAULTS", "")]
CAMPAIGN = Path(__file__).with_name("campaign.py")
SETTINGS = CuratedSettings(memory_char_limit=1_000_000, lock_seconds=30)


def start(*words):
    return subprocess.Popen([sys.executable, CAMPAIGN, *map(str, words)], stdout=subprocess.PIPE, text=True)


def kept(lines):
    return [
        line.removeprefix("kept ").rstrip("\n") for line in lines if line.startswith("kept ") and line.endswith("\n")
    ]


def test_killed_writers(tmp_path):
    """After a writer is killed, every acknowledged write is there, no entry is torn, and no temporary file is left."""
    dice, acknowledged = random.Random(7), 0
    for number in range(KILLS):
        folder = tmp_path / str(number // 25)
        process = start("write", folder, f"run{number}")
        wanted = dice.randrange(1, 12)
        lines = [process.stdout.readline() for _ in range(wanted)]
        # Somewhere in the middle of the next write.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(dice.random() * 0.004)
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()
        process.wait()
        process.stdout.close()

        service = MemoryService(folder, SETTINGS)
        service.sweep()
        entries = service.page(Target.MEMORY).entries
        assert set() == {*kept(lines)} - {*entries}
        assert all(len(entry.split(" ")[2]) == int(entry.split(" ")[1]) for entry in entries)
        assert [] == [*folder.glob(".*.tmp")]
        acknowledged += len(kept(lines))
    assert acknowledged >= KILLS


@pytest.mark.campaign
def test_many_writers(tmp_path):
    """Seven processes and an editor without a lock: every edit survives, or is refused with a reason."""
    processes = [start("edit", tmp_path, f"process{number}", EDITS) for number in range(7)]
    processes.append(start("hand", tmp_path, "hand", EDITS))
    said = [process.communicate()[0].splitlines(keepends=True) for process in processes]

    service = MemoryService(tmp_path, SETTINGS)
    service.snapshot()
    entries = {*parse((tmp_path / "MEMORY.md").read_text())}
    written = [entry for lines in said for entry in kept(lines)]
    refused = [line for lines in said for line in lines if line.startswith("refused ")]
    assert 8 * EDITS == len(written) + len(refused)
    assert set() == {*written} - entries


@pytest.mark.parametrize("seed", range(4))
def test_random_corruptions(tmp_path, seed):
    """A damaged file is read as an edit by hand or refused unchanged, and never loses all entries silently."""
    dice = random.Random(seed)
    for number in range(CORRUPTIONS // 4):
        service = MemoryService(tmp_path / str(number), CuratedSettings())
        for text in ("first fact", "zweite Tatsache: Größe", "第三个事实", "4️⃣ 👩‍👩‍👧"):
            service.change(Target.MEMORY, [Operation(action="add", content=text)])
        path = service.folder / "MEMORY.md"
        damaged = corrupted(path.read_bytes(), dice)
        path.write_bytes(damaged)
        try:
            taken = service.snapshot()
        except MemoryUnreadable:
            assert damaged == path.read_bytes()
            continue
        # The damaged file counts as an edit by hand, so the history holds the entries from before.
        known = {entry for change in service.history() for entry in change.after}
        assert "first fact" in known
        assert taken.snapshot.blocks or [()] == [change.after for change in taken.outside]


def corrupted(content, dice):
    """Return the bytes with one random damage."""
    place = dice.randrange(len(content))
    end = dice.randrange(place, len(content)) + 1
    return dice.choice(
        [
            content[:place],
            content[place:],
            content[:place] + b"\0" * (end - place) + content[end:],
            content[:place] + dice.randbytes(end - place) + content[end:],
            bytes([*content[:place], content[place] ^ (1 << dice.randrange(8)), *content[place + 1 :]]),
            b"",
            b"\0" * len(content),
        ]
    )


@pytest.fixture
def small_files():
    """Sets how large a file this process may write."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))

    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [0, 1, 100, 300, 700, 1500])
def test_full_disk(tmp_path, small_files, size):
    """A write on a full disk succeeds or raises; the file keeps the last written entries, without temporary files."""
    service = MemoryService(tmp_path, CuratedSettings())
    known = service.change(Target.MEMORY, [Operation(action="add", content="first")]).page.entries
    small_files(size)
    for number in range(12):
        with contextlib.suppress(MemoryUnwritable):
            step = Operation(action="add", content=f"{number} {'x' * 50}")
            known = service.change(Target.MEMORY, [step]).page.entries
    small_files(resource.RLIM_INFINITY)

    assert (known, []) == (
        MemoryService(tmp_path, CuratedSettings()).page(Target.MEMORY).entries,
        [*tmp_path.glob(".*.tmp")],
    )


@pytest.mark.parametrize("content", ["Ein Satz.", "x" * 500])
def test_full_disk_for_the_file_alone(tmp_path, small_files, content):
    """A write that fails on a full disk after its history leaves the file unchanged."""
    service = MemoryService(tmp_path, CuratedSettings())
    service.change(Target.MEMORY, [Operation(action="add", content=content)])
    path = tmp_path / "MEMORY.md"
    (tmp_path / ".MEMORY.md.history.jsonl").write_text("")
    path.write_text("y" * 1200)
    small_files(1100)
    with pytest.raises(CuratedError):
        service.change(Target.MEMORY, [Operation(action="replace", old_text="yyy", content=content)])
    small_files(resource.RLIM_INFINITY)

    assert "y" * 1200 == path.read_text()


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to root")
def test_read_only_folder(tmp_path):
    """A read-only folder is readable, and refuses writes."""
    service = MemoryService(tmp_path, CuratedSettings())
    service.change(Target.MEMORY, [Operation(action="add", content="one")])
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(MemoryUnwritable):
            service.change(Target.MEMORY, [Operation(action="add", content="two")])
        assert ("one",) == service.page(Target.MEMORY).entries
    finally:
        tmp_path.chmod(0o700)
