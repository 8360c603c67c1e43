"""Measures how long a database of the version before tenants came first in every key takes to be brought to this one.

Args: the number of memories (default 1,000,000) and of embeddings of them (default none; 384 dimensions).

It prints the rows, the seconds of the copy and of the migration, and the longest time without progress.
"""

import itertools
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from beaver_memory.records import NewMemory
from beaver_memory.search.terms import Analyser
from beaver_memory.store.protocol import Analysed
from beaver_memory.store.rows import new_row
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.store.sqlite.connections import Connector
from beaver_memory.store.sqlite.preparation import PACKAGE
from beaver_toolkit.sqlite.migrations import read_migrations

OLD = 2
OWNERS = 20
TARGET_SECONDS = 120.0
TARGET_GAP = 10.0
ADD = """
INSERT INTO observations (
    owner, version, store, type, scope, project, session, agent, source, speaker, origin, pinned, confidence,
    importance, created_at, expires_at, valid_from, valid_until, added_at, updated_at, token_count, hash, length,
    terms, tags, keywords, related_files, related_people, title, summary, facts, narrative
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


def rows(count: int) -> Iterator[tuple[Any, ...]]:
    """Yield memories of about 50 words for several owners; texts repeat, rows differ."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghiklmnoprstuvw", k=chance.randrange(3, 9))) for _ in range(20_000)]
    made, analyser = [], Analyser()
    for _ in range(2_000):
        new = NewMemory(title=" ".join(chance.choices(words, k=50)), tags=("tag",), session="s")
        terms, length = analyser.pack([new.title])
        made.append(new_row(Analysed(memory=new, terms=terms, length=length), 1, 1, 0))
    for number, row in zip(range(1, count + 1), itertools.cycle(made)):
        yield 1 + number % OWNERS, number, *row[2:14], 1_700_000_000_000_000 + number, *row[15:]


def fill(path: Path, count: int, vectors: int) -> None:
    """Make the old database."""
    connector = Connector(path, read_migrations(PACKAGE)[:OLD])
    connector.open()
    with connector.writing() as connection:
        for number in range(1, OWNERS + 1):
            live = len(range(1 + (number - 2) % OWNERS, count + 1, OWNERS))
            owner = (number, f"tenant {number % 3}", f"user {number}", live)
            connection.execute("INSERT INTO owners VALUES (?, ?, ?, ?)", owner)
        connection.executemany(ADD, rows(count))
        connection.execute("INSERT INTO observation_labels SELECT owner, 'tag:tag', created_at, id FROM observations")
        if vectors:
            connection.execute("INSERT INTO models VALUES (1, 'm')")
            connection.execute(
                "INSERT INTO observation_embeddings SELECT id + ?, id, 1, owner, randomblob(768) FROM observations"
                " WHERE id <= ?",
                (count, vectors),
            )
            connection.execute(
                "INSERT INTO unembedded SELECT 1, owner, created_at, id FROM observations WHERE id > ?", (vectors,)
            )
        connection.execute("UPDATE counter SET value = ?", (count + vectors,))
    connector.empty_log()
    connector.close()


def migrated(path: Path) -> tuple[float, float, int]:
    """Return the seconds, the longest time without progress, and the number of rows."""
    moments, totals = [time.perf_counter()], {0}

    def told(_: Path, __: int, total: int) -> None:
        moments.append(time.perf_counter())
        totals.add(total)

    SqliteStore.open(path, migrating=told).close()
    moments.append(time.perf_counter())
    return moments[-1] - moments[0], max(b - a for a, b in itertools.pairwise(moments)), max(totals)


def whole(path: Path) -> list[str]:
    """Return the problems of the database that the quick rules find."""
    with apsw.Connection(str(path)) as connection:
        live = connection.execute("SELECT sum(live) FROM owners").get
        there = connection.execute("SELECT count(*) FROM observations WHERE deleted_at IS NULL").get
        return [] if live == there else [f"{live} memories are counted, {there} are there"]


def main(count: int, vectors: int) -> int:
    """Print the figures; return 1 if a target is missed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        fill(path, count, vectors)
        size = path.stat().st_size / 1e6
        seconds, gap, total = migrated(path)
        problems = whole(path)
        after = sum(each.stat().st_size for each in Path(folder).iterdir()) / 1e6
    bad = bool(problems) or seconds > TARGET_SECONDS * max(1, count / 1e6) or gap > TARGET_GAP
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"{total:,} rows, {size:,.0f} MB: {seconds:.1f} s with the copy (target {TARGET_SECONDS:g} s for 1,000,000),"
          f" longest without progress {gap:.1f} s (target {TARGET_GAP:g} s), {after:,.0f} MB on disk afterwards,"
          f" {memory:,.0f} MB of memory at most  {'MISSED' if bad else 'met'}", *problems)  # fmt: skip
    return int(bad)


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    sys.exit(main(*(given + [1_000_000, 0][len(given) :])))
