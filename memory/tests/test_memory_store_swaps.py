"""Files of a store that are removed or replaced under running processes: no acknowledged memory is lost silently.

`BEAVER_LOCAL_SWAPS` says how often each way is tried: once by default, 8 times in the campaign.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from selection import campaign

from beaver_memory.errors import StoreError
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.testing.store_cases.kit import NOW, looking, new
from beaver_toolkit.sqlite.losses import accept_losses

SWAPS = int(os.environ.get("BEAVER_LOCAL_SWAPS", "8"))
PATIENCE = 60
REFUSALS = 100
"""Errors in a row after which a writer counts as one that hears of the damage with every write."""

WRITER = """
import sys, time
from pathlib import Path
from beaver_memory.errors import StoreError
from beaver_memory.testing.store_cases.kit import NOW, looking, new
from beaver_memory.store.sqlite import SqliteStore

path, name, store, number = Path(sys.argv[1]), sys.argv[2], None, 0
while True:
    number += 1
    try:
        if store is None:
            store = SqliteStore.open(path)
        ids = store.add([new(f"{name} {number}", narrative="filler " * (number % 50))], now=NOW)
        store.recent(looking(), limit=1)
        print("kept", *ids, number, flush=True)
    except StoreError as error:
        print("error", error.category, number, flush=True)
        time.sleep(0.01)
"""


class Writer:
    """A process that adds memories, with what it has said about each."""

    def __init__(self, path, name):
        self.name = name
        self.said = []
        self._heard = threading.Condition()
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name], stdout=subprocess.PIPE, text=True
        )
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def _listen(self):
        for line in self.process.stdout:
            if line.endswith("\n"):
                with self._heard:
                    self.said.append(tuple(line.split()))
                    self._heard.notify_all()

    def goes_on(self, count):
        """Wait until it has kept some more memories, or hears with every write that the file is damaged."""
        with self._heard:
            wanted = len(self.kept()) + count
            ended = self._heard.wait_for(lambda: len(self.kept()) >= wanted or self.is_refused(), PATIENCE)
            assert ended, self.said[-3:]

    def is_refused(self):
        """Return whether it has heard with each of its last writes that the file is damaged."""
        last = [each[:2] for each in self.said[-REFUSALS:]]
        return last == [("error", "corrupt")] * REFUSALS

    def kept(self):
        return [each for each in self.said if each[0] == "kept"]

    def errors(self):
        return [each[1] for each in self.said if each[0] == "error"]

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._listener.join()
        self.process.stdout.close()

    def lost(self, titles):
        """Return the memories that were acknowledged, are gone, and were not followed by an error.

        The error must come before the acknowledgement of the next memory that is there.
        """
        lost, unheard = [], []
        for each in self.said:
            if each[0] == "error":
                unheard = []
            elif f"{self.name} {each[2]}" in titles:
                lost, unheard = [*lost, *unheard], []
            else:
                unheard.append(each)
        return [*lost, *unheard]

    def missing(self, titles):
        """Return what it was told is kept, and is not there."""
        return [each for each in self.kept() if f"{self.name} {each[2]}" not in titles]


@contextlib.contextmanager
def writers(path, names):
    """Run some writers for a block, until all of them have kept something after it."""
    started = [Writer(path, name) for name in names]
    try:
        for each in started:
            each.goes_on(2)
        yield started
        for each in started:
            each.goes_on(3)
    finally:
        for each in started:
            each.kill()


def remove(path, copy):
    path.unlink()


def replace_by_older(path, copy):
    shutil.copyfile(copy, copy.with_name("fresh"))
    copy.with_name("fresh").replace(path)


def replace_by_nothing(path, copy):
    copy.with_name("fresh").write_bytes(b"")
    copy.with_name("fresh").replace(path)


def remove_for_a_while(path, copy):
    path.unlink()
    shutil.copyfile(copy, copy.with_name("fresh"))
    copy.with_name("fresh").rename(path)


def overwrite(path, content):
    """Write over a file in place, as `cp` does; the file keeps its inode."""
    with path.open("r+b") as file:
        file.truncate()
        file.write(content)


def overwrite_by_older(path, copy):
    overwrite(path, copy.read_bytes())


def empty(path, copy):
    os.truncate(path, 0)


def cut(path, copy):
    os.truncate(path, path.stat().st_size // 2)


LOG_WAYS = [(ending, way) for ending in ("-wal", "-shm") for way in (remove, replace_by_older, replace_by_nothing)]
ALL_WAYS = [*LOG_WAYS, ("", replace_by_older), ("", remove_for_a_while)]
IN_PLACE = [("", overwrite_by_older), ("-wal", overwrite_by_older), ("-wal", cut), ("-wal", empty)]
"""Without the index of the log: the system kills a process that reads an index which was cut."""


def prepared(path):
    """Make a store with a memory, and copies of its three files."""
    with contextlib.closing(SqliteStore.open(path)) as store:
        store.add([new("the first")], now=NOW)
        for ending in ("", "-wal", "-shm"):
            shutil.copyfile(f"{path}{ending}", path.with_name(f"copy{ending}"))


def swap(path, ending, way, running):
    """Swap one file, and wait until both writers have kept something again."""
    way(Path(f"{path}{ending}"), path.with_name(f"copy{ending}"))
    for each in running:
        each.goes_on(2)


def titles_in(path):
    with contextlib.closing(SqliteStore.open(path)) as store:
        accept_losses(path)
        assert [] == store.check(None)
        return {memory.title for memory in store.recent(looking(), limit=10**6)}


def is_damaged(path):
    try:
        with contextlib.closing(SqliteStore.open(path)) as store:
            accept_losses(path)
            return bool(store.check(None))
    except StoreError:
        return True


def two_writers(path, ways):
    prepared(path)
    with writers(path, ["a", "b"]) as running:
        for ending, way in ways:
            # A file that was written over in place may be no database any more; both processes hear it.
            if all(each.is_refused() for each in running):
                break
            swap(path, ending, way, running)
    return running


@pytest.mark.parametrize("ending", ["-wal", *campaign("-shm")])
def test_a_log_that_is_removed_under_two_writers(tmp_path, ending):
    """Both writers hear of it, go on afterwards, and lose no memory."""
    path = tmp_path / "memory.db"
    running = two_writers(path, [(ending, remove)])
    titles = titles_in(path)

    assert [[], []] == [each.missing(titles) for each in running]
    assert {"log_removed", "in_use"} >= {error for each in running for error in each.errors()}
    assert all("log_removed" in each.errors() for each in running)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", [1, 2])
def test_logs_that_are_swapped_under_two_writers(tmp_path, seed):
    """However often the log or its index is removed or replaced, no acknowledged memory is lost."""
    ways = LOG_WAYS * SWAPS
    random.Random(seed).shuffle(ways)
    running = two_writers(tmp_path / "memory.db", ways)
    titles = titles_in(tmp_path / "memory.db")

    sys.stdout.write(f"{len(ways)} swaps, {sum(len(each.kept()) for each in running)} acknowledged\n")
    assert [[], []] == [each.missing(titles) for each in running]


@pytest.mark.campaign
@pytest.mark.parametrize("seed", [1, 2])
def test_files_that_are_swapped_under_two_writers(tmp_path, seed):
    """Where the database itself is removed or replaced, each process whose memories are lost hears an error."""
    ways = ALL_WAYS * SWAPS
    random.Random(seed).shuffle(ways)
    running = two_writers(tmp_path / "memory.db", ways)
    titles = titles_in(tmp_path / "memory.db")

    sys.stdout.write(f"{len(ways)} swaps, {sum(len(each.kept()) for each in running)} acknowledged\n")
    assert [[], []] == [each.lost(titles) for each in running]


@pytest.mark.parametrize(("ending", "way"), [IN_PLACE[0], *campaign(*IN_PLACE[1:])])
def test_a_file_that_is_overwritten_under_two_writers(tmp_path, ending, way):
    """Each process whose memories are lost hears an error, and the store is sound afterwards."""
    path = tmp_path / "memory.db"
    running = two_writers(path, [(ending, way)])
    titles = titles_in(path)

    assert [[], []] == [each.lost(titles) for each in running]


@pytest.mark.campaign
@pytest.mark.parametrize("seed", [1, 2])
def test_files_that_are_overwritten_under_two_writers(tmp_path, seed):
    """However often files are overwritten, removed and replaced, each process whose memories are lost hears an error."""
    ways = (IN_PLACE * 2 + ALL_WAYS) * ((SWAPS + 1) // 2)
    random.Random(seed).shuffle(ways)
    running = two_writers(tmp_path / "memory.db", ways)

    sys.stdout.write(f"{len(ways)} swaps, {sum(len(each.kept()) for each in running)} acknowledged\n")
    # A file that was written over in place may be no database any more: the next opening or the check names the damage.
    if not is_damaged(tmp_path / "memory.db"):
        titles = titles_in(tmp_path / "memory.db")
        assert [[], []] == [each.lost(titles) for each in running]


def come_and_go(path, chance, count):
    """Kill writers, and open and close the store, so that SQLite makes, resets and removes its log."""
    with writers(path, ["a", "b"]) as running:
        for number in range(count):
            with contextlib.closing(SqliteStore.open(path)) as store:
                store.add([new(f"visit {number}")], now=NOW)
                store._connector.empty_log()
            place = chance.randrange(2)
            running[place].kill()
            running[1 - place].kill() if number % 3 == 0 else running[1 - place].goes_on(1)
            gone = [*running] if number % 3 == 0 else [running[place]]
            yield gone
            for each in gone:
                running[running.index(each)] = Writer(path, f"{each.name}{number}")
            for each in running:
                each.goes_on(1)
        yield running


@pytest.mark.campaign
@pytest.mark.parametrize("count", [2, 40])
def test_the_usual_life_of_the_files(tmp_path, count):
    """Processes that are killed, or close the store as the last one, cause no error in any other."""
    path = tmp_path / "memory.db"
    seen = {each.name: each for group in come_and_go(path, random.Random(1), count) for each in group}
    titles = titles_in(path)

    assert [] == [error for each in seen.values() for error in each.errors()]
    assert [] == [what for each in seen.values() for what in each.missing(titles)]
