"""Reads beside writes that fail, on disks that cannot be written: each read is answered, and each write says why not.

`BEAVER_STORE_REFUSALS` says how many writes fail on each disk in the campaign; `-s` prints the counts.
"""

import contextlib
import os
import subprocess
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from privileges import without_override
from selection import campaign

from beaver_memory.errors import StoreError
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.testing.store_cases.kit import NOW, looking, new, titles

REFUSALS = int(os.environ.get("BEAVER_STORE_REFUSALS", "20000"))
READERS = 3
MEMORIES = [f"number {number}" for number in range(20)]
ROOM = 2 * 2**20
"""Bytes of a small disk; the store needs less than half of it."""


def make(path):
    """Make a store with memories."""
    with contextlib.closing(SqliteStore.open(path)) as store:
        store.add([new(title) for title in MEMORIES], now=NOW)


@contextlib.contextmanager
def a_folder(folder):
    """Yield a store in a folder that may only be read."""
    make(folder / "memory.db")
    folder.chmod(0o500)
    try:
        with without_override(), contextlib.closing(SqliteStore.open(folder / "memory.db")) as store:
            yield store
    finally:
        folder.chmod(0o700)


@contextlib.contextmanager
def a_file(folder):
    """Yield a store whose file may only be read, in a folder that can be written."""
    path = folder / "memory.db"
    make(path)
    path.chmod(0o400)
    with without_override(), contextlib.closing(SqliteStore.open(path)) as store:
        yield store


@contextlib.contextmanager
def small_disk(folder):
    """Mount a small disk; skip the test where that is not allowed."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", folder], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting a disk is not allowed here")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(folder):
    """Leave no room on a disk."""
    with (folder / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


@contextlib.contextmanager
def a_read_only_disk(folder):
    """Yield a store on a disk that is mounted for reading alone."""
    with small_disk(folder):
        make(folder / "memory.db")
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        with contextlib.closing(SqliteStore.open(folder / "memory.db")) as store:
            yield store


@contextlib.contextmanager
def a_full_disk(folder):
    """Yield a store on a disk that was full before it was opened."""
    with small_disk(folder):
        make(folder / "memory.db")
        fill(folder)
        with contextlib.closing(SqliteStore.open(folder / "memory.db")) as store:
            yield store


@contextlib.contextmanager
def a_filled_disk(folder):
    """Yield a store whose disk became full while it was open."""
    with small_disk(folder):
        make(folder / "memory.db")
        with contextlib.closing(SqliteStore.open(folder / "memory.db")) as store:
            fill(folder)
            yield store


DISKS = {
    a_folder: "read_only",
    a_file: "read_only",
    a_read_only_disk: "read_only",
    a_full_disk: "disk_full",
    a_filled_disk: "disk_full",
}


def outcome(call):
    """Return what a call returns, or the category of its error."""
    try:
        return call()
    except StoreError as error:
        return error.category


def reads_beside(store, write):
    """Return the outcomes of reads in several threads while a function writes, and what it returns."""
    ended = threading.Event()

    def read():
        found = Counter()
        while not ended.is_set():
            answer = outcome(lambda: titles(store.recent(looking(), limit=99)))
            found["right" if sorted(answer) == sorted(MEMORIES) else str(answer)] += 1
        return found

    with ThreadPoolExecutor(READERS) as threads:
        readers = [threads.submit(read) for _ in range(READERS)]
        try:
            written = write()
        finally:
            ended.set()
    return sum((each.result() for each in readers), Counter()), written


@pytest.mark.parametrize("refusals", [200, *campaign(REFUSALS)])
@pytest.mark.parametrize("disk", DISKS, ids=lambda disk: disk.__name__)
def test_reads_beside_failing_writes(tmp_path, disk, refusals):
    """On a disk that cannot be written, every read is right, and every write says what hinders it."""
    with disk(tmp_path) as store:
        reads, writes = reads_beside(
            store,
            lambda: Counter(
                outcome(lambda: store.add([new("more", narrative="x" * 9_000)], now=NOW)) for _ in range(refusals)
            ),
        )
        problems = store.check()
    print(f"\n{disk.__name__}: {refusals:,} failing writes {dict(writes)}, {reads.total():,} reads {dict(reads)}")  # noqa: T201

    assert ({DISKS[disk]: refusals}, {"right": reads.total()}, []) == (writes, reads, problems)
