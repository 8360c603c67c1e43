"""Reads beside writes that fail, on disks that cannot be written: each read is answered, and each write says why not.

`BEAVER_STORE_REFUSALS` says how many writes fail in each case of the campaign; `-s` prints the counts.
"""

import contextlib
import os
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from selection import campaign
from unwritable import a_folder, a_full_disk, a_read_only_disk, files

from beaver_memory.errors import StoreError
from beaver_memory.records import Owner
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.testing.store_cases.kit import NOW, looking, new, titles

REFUSALS = int(os.environ.get("BEAVER_STORE_REFUSALS", "400"))
READERS = 3
MEMORIES = [f"number {number}" for number in range(20)]
MORE = new("more", narrative="x" * 9_000)
DISKS = [(a_folder, "read_only"), (files, "read_only"), (a_read_only_disk, "read_only"), (a_full_disk, "disk_full")]


def make(path):
    """Make a store with memories."""
    with contextlib.closing(SqliteStore.open(path)) as store:
        store.add([new(title) for title in MEMORIES], now=NOW)


def answer(store):
    """Return `right` if a store returns its memories, else what it returns, or why it fails."""
    try:
        found = titles(store.recent(looking(), limit=99))
    except StoreError as error:
        return error.category
    return "right" if set(MEMORIES) == {*found} - {"more"} else str(found)


def outcome(store):
    """Return `written` after a write, or why it failed."""
    try:
        store.add([MORE], now=NOW)
    except StoreError as error:
        return error.category
    return "written"


def beside_reads(store, write):
    """Return what a function returns, and the answers to reads in several threads meanwhile."""
    ended = threading.Event()

    def read():
        found = Counter([answer(store)])
        while not ended.is_set():
            found[answer(store)] += 1
        return found

    with ThreadPoolExecutor(READERS) as threads:
        readers = [threads.submit(read) for _ in range(READERS)]
        try:
            written = write()
        finally:
            ended.set()
    return written, sum((each.result() for each in readers), Counter())


@pytest.mark.parametrize("refusals", [100, *campaign(REFUSALS)])
@pytest.mark.parametrize(
    ("disk", "category", "is_open_before"), [*((*each, False) for each in DISKS), (a_full_disk, "disk_full", True)]
)
def test_reads_beside_failing_writes(tmp_path, disk, category, is_open_before, refusals):
    """On a disk that cannot be written, every read is right, and every write says what hinders it."""
    path = tmp_path / "memory.db"
    with disk(tmp_path) as (hinder, _):
        make(path)
        if not is_open_before:
            hinder()
        with contextlib.closing(SqliteStore.open(path)) as store:
            if is_open_before:
                hinder()
            writes, reads = beside_reads(store, lambda: Counter(outcome(store) for _ in range(refusals)))
            problems = store.check(None)
    sys.stdout.write(
        f"\n{disk.__name__}: {refusals} failing writes {dict(writes)}, {reads.total()} reads {dict(reads)}"
    )

    assert ({category: refusals}, {"right": reads.total()}, []) == (writes, reads, problems)


@pytest.mark.parametrize("times", [2, *campaign(50)])
@pytest.mark.parametrize(("disk", "category"), DISKS)
def test_reads_while_writing_is_allowed_again(tmp_path, disk, category, times):
    """Every read is right while a disk becomes writable, and a write succeeds from then on."""
    with disk(tmp_path) as (hinder, allow):
        for number in range(times):
            path = tmp_path / f"{number}.db"
            make(path)
            hinder()
            with contextlib.closing(SqliteStore.open(path)) as store:
                writes, reads = beside_reads(store, lambda: (outcome(store), allow(), outcome(store), outcome(store)))
                assert ((category, None, "written", "written"), {"right": reads.total()}) == (writes, reads)
            path.unlink()


@pytest.mark.parametrize(
    ("disk", "why"), [(a_folder, "cannot_open"), (a_read_only_disk, "read_only"), (a_full_disk, "disk_full")]
)
def test_a_key_that_cannot_be_made(tmp_path, disk, why):
    """Forgetting, which needs a file for its key, says why a disk takes no file; nothing is forgotten."""
    with disk(tmp_path) as (hinder, _):
        make(tmp_path / "memory.db")
        hinder()
        with contextlib.closing(SqliteStore.open(tmp_path / "memory.db")) as store:
            with pytest.raises(StoreError) as failed:
                store.mark_forgotten(Owner(), ["a text"])
            assert (why, set()) == (failed.value.category, store.forgotten(Owner(), ["a text"]))
