"""sqlite-vec as the search for the nearest vectors: the same answers as the index's own vectors, also without it."""

import os
import shutil
import subprocess
import sys
from base64 import urlsafe_b64encode
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import apsw
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from selection import campaign

from beaver_hostspecs.testing import FrozenClock, RecordingReport
from beaver_memory.embedding.protocol import Identity
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.engine import MemoryEngine
from beaver_memory.errors import StoreError
from beaver_memory.query import Query
from beaver_memory.records import NewMemory, Owner
from beaver_memory.runtime.factory import open_engine
from beaver_memory.runtime.profile import Profile, RuntimeServices, SqliteLocation
from beaver_memory.search import candidates, nearest
from beaver_memory.search.nearest import TableSearch
from beaver_memory.store.sqlite import SqliteStore, extension, sqlite_vec
from beaver_memory.store.sqlite.connections import Connector
from beaver_memory.store.sqlite.extension import VecError
from beaver_memory.store.sqlite.sqlite_vec import VecTables
from beaver_memory.testing.store_cases.kit import looking

WITH_IT = pytest.mark.skipif(find_spec("sqlite_vec") is None, reason="sqlite-vec is not installed")
WHEN = datetime(2026, 3, 1, tzinfo=UTC)
ANN, BOB = Owner(user="ann"), Owner(user="bob")
WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]
DIMENSIONS = 32
COUNT = "SELECT count(*) FROM {}"


class Hashed:
    """An embedder: each text has a direction of its own, and texts that share words are near to each other."""

    def __init__(self, model="one"):
        self.identity = Identity(provider="test", model=model, dimensions=DIMENSIONS)

    def embed_query(self, text):
        return self.embed_passages([text])[0]

    def embed_passages(self, texts):
        rows = np.array([sum(map(_direction, text.casefold().strip(".").split())) for text in texts], "f4")
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def close(self):
        """Nothing is open."""


def _direction(word):
    return np.random.default_rng([ord(each) for each in word]).normal(size=DIMENSIONS)


class Told(list):
    """Keeps the reports that it is given."""

    def __call__(self, trouble):
        self.append(trouble)


def seen(**fields):
    return looking(**{"owners": (ANN,), "now": datetime(2036, 1, 1, tzinfo=UTC)} | fields)


def opened(folder, told=None, library=None, model="one", table=True):
    """Open an engine over the store in a folder."""
    connector = Connector(folder / "memory.db")
    connector.open()
    told = Told() if told is None else told
    tables = VecTables(connector, library or extension.installed)
    search = TableSearch(tables, told) if table else None
    return MemoryEngine(SqliteStore(connector), embedder=Hashed(model), nearest=search)


def said(count, *, seed=1, **fields):
    """Return memories of random words, every few of another type, and some of several passages."""
    chosen = np.random.default_rng(seed).choice(WORDS, size=(count, 5))
    return [
        NewMemory(
            **{
                "title": f"{' '.join(words)}.",
                "narrative": " ".join([f"{words[0]}."] * 900) if place % 97 == 0 else "",
                "type": "fact" if place % 40 == 0 else "task",
                "owner": ANN,
                "created_at": WHEN + timedelta(seconds=place),
                **fields,
            }
        )
        for place, words in enumerate(chosen)
    ]


def filled(engine, memories):
    ids = engine.add(memories)
    while engine.embed(limit=500):
        pass
    return ids


def asked(engine, text, limit=10, **fields):
    """Return the ids of the hits."""
    return [hit.memory.id for hit in engine.search(Query(text=text, filters=seen(**fields), limit=limit)).hits]


def rows(folder):
    """Return the rows of the tables, counted from outside and without the extension."""
    connection = apsw.Connection(str(folder / "memory.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE name GLOB '*_rowids'")]
        return sum(connection.execute(COUNT.format(name)).get for name in names)
    finally:
        connection.close()


def holding(folder, text):
    """Return the files that hold the vector of a text, as the embeddings or as the tables keep it."""
    vector = Hashed().embed_query(text)
    needles = (vector.astype("<f2").tobytes(), vector.astype("<f2").astype("<f4").tobytes())
    return [
        path.name for path in sorted(folder.glob("memory.db*")) if any(each in path.read_bytes() for each in needles)
    ]


QUERIES = ("bal bel bil", "gon", "ket kit kor", "dum das", "fit bal kor gon", "nothing of that")


@WITH_IT
@pytest.mark.parametrize("few", [100_000, *campaign(10)])
def test_the_same_is_found(tmp_path, monkeypatch, few):
    """Whatever the filters, a search by the tables finds what a search by the index's own vectors does."""
    monkeypatch.setattr(nearest, "FEW", few)
    narrowed = [{}, {"types": ("fact",)}, {"after": WHEN + timedelta(seconds=390)}, {"types": ("none",)}]
    narrowed += [{"owners": (ANN, BOB)}, {"owners": (BOB,)}, {"lapsed": True}]
    with opened(tmp_path, table=False) as engine:
        filled(engine, said(400))
        filled(engine, said(30, seed=2, owner=BOB))
        filled(engine, said(50, seed=3, expires_at=WHEN + timedelta(days=1)))
        wanted = [asked(engine, text, **each) for text in QUERIES for each in narrowed]
    told = Told()
    with opened(tmp_path, told) as engine:
        engine.embed()
        monkeypatch.setattr(candidates.vectors_of, "search", None)
        found = [asked(engine, text, **each) for text in QUERIES for each in narrowed]

    assert wanted == found
    assert [] == told


@WITH_IT
def test_more_is_asked_for_until_enough_is_left(tmp_path, monkeypatch):
    """A search asks the table for more rows until enough of them are visible."""
    monkeypatch.setattr(nearest, "FEW", 10)
    with opened(tmp_path) as engine:
        filled(engine, [NewMemory(title="bal bel bil.", owner=ANN, type="task") for _ in range(1_500)])
        far = filled(engine, said(300, seed=5, type="fact"))
        monkeypatch.setattr(candidates.vectors_of, "search", None)
        found = engine.search(Query(text="bal bel bil", filters=seen(types=("fact",), lapsed=True), limit=200))

    assert {hit.memory.id for hit in found.hits} <= {*far}
    assert 120 <= found.total


@WITH_IT
def test_what_is_written_since_is_found(tmp_path):
    """The table takes over vectors of other engines and of changed texts."""
    with opened(tmp_path) as engine, opened(tmp_path, table=False) as other:
        (first,) = filled(engine, [NewMemory(title="bal bel.", owner=ANN)])
        (second,) = filled(other, [NewMemory(title="kor kos.", owner=ANN)])
        found = [asked(engine, text)[0] for text in ("bel bal", "kos kor")]
        engine.change(first, seen(lapsed=True), event="UPDATE", title="dum dus.")
        engine.embed()
        after = asked(engine, "dus dum")[0]

    assert ([first, second], first, 2) == (found, after, rows(tmp_path))


@WITH_IT
def test_forgetting_erases_the_copies(tmp_path):
    """Forgetting removes a vector from the table and the file, and keeps the others."""
    with opened(tmp_path) as engine:
        gone, left = filled(engine, [NewMemory(title=title, owner=ANN) for title in ("bal bel.", "kor kos.")])
        before = holding(tmp_path, "bal bel."), rows(tmp_path)
        engine.forget([gone], seen(lapsed=True))
        found = asked(engine, "kos kor")

    assert ((True, 2), 1, left) == ((bool(before[0]), before[1]), rows(tmp_path), found[0])
    assert ([], ["memory.db"]) == (holding(tmp_path, "bal bel."), holding(tmp_path, "kor kos."))


@WITH_IT
@pytest.mark.parametrize("old", [True, False])
def test_forgetting_without_the_extension(tmp_path, monkeypatch, old):
    """Forgetting without a usable extension empties the tables, and the next engine with the extension fills them."""
    with opened(tmp_path) as engine:
        gone, left = filled(engine, [NewMemory(title=title, owner=ANN) for title in ("bal bel.", "kor kos.")])
        other = filled(engine, [NewMemory(title="dum dus.", owner=BOB)])
    with monkeypatch.context() as patch, opened(tmp_path, table=False) as engine:
        if old:
            patch.setattr(extension, "OLDEST", (99,))
        else:
            patch.setitem(sys.modules, "sqlite_vec", None)
        engine.forget([gone], seen(lapsed=True))
        emptied = rows(tmp_path)
    with opened(tmp_path) as engine:
        engine.embed()
        found = asked(engine, "kos kor")[0], asked(engine, "dum dus", owners=(BOB,))[0]

    assert (0, (left, *other), 2) == (emptied, found, rows(tmp_path))
    assert [] == holding(tmp_path, "bal bel.")


@WITH_IT
def test_a_table_that_is_far_behind_is_filled_beside(tmp_path, monkeypatch):
    """A search copies at most one batch into a table; the index's own vectors answer until the table is complete."""
    monkeypatch.setattr(sqlite_vec, "BATCH", 3)
    with opened(tmp_path, table=False) as engine:
        ids = filled(engine, said(8))
        wanted = asked(engine, "bal bel bil")
    with opened(tmp_path) as engine:
        found, copied = asked(engine, "bal bel bil"), rows(tmp_path)
        engine.embed()

    assert (wanted, True, True) == (found, copied < len(ids), rows(tmp_path) >= len(ids))


@WITH_IT
def test_another_model_has_another_table(tmp_path):
    """Each model has a table of its own, which is emptied with the model's embeddings."""
    with opened(tmp_path) as engine:
        filled(engine, [NewMemory(title="bal bel.", owner=ANN)])
        engine.store.drop_vectors(Hashed().identity.key)
    gone = rows(tmp_path)
    with opened(tmp_path, model="two") as engine:
        engine.embed()
        found = asked(engine, "bel bal")

    assert (0, 1, [1]) == (gone, rows(tmp_path), found)


@WITH_IT
def test_a_store_without_the_extension_is_whole(tmp_path):
    """A store with tables of the extension can be checked and searched without the extension."""
    with opened(tmp_path) as engine:
        filled(engine, said(5))
    with opened(tmp_path, table=False) as engine:
        assert ([], True) == (engine.store.check(None), len(asked(engine, "bal")) > 0)


def none_there():
    raise VecError("not_installed")


@pytest.fixture
def libraries(tmp_path):
    """Return functions that find no usable extension: none, a broken file, another library, and a missing file."""
    broken = tmp_path / "vec0.so"
    broken.write_bytes(b"\x7fELF no library")
    return {
        "not_installed": none_there,
        "broken": lambda: str(broken),
        "another": lambda: str(Path(np._core._multiarray_umath.__file__)),
        "gone": lambda: str(tmp_path / "gone.so"),
    }


@pytest.mark.shows("002-003", "002-064", "003-007")
@pytest.mark.parametrize("which", ["not_installed", "broken", "another", "gone"])
def test_an_extension_that_cannot_be_loaded(tmp_path, libraries, which):
    """An extension that cannot be loaded is tried and reported once, and the index's own vectors answer."""
    told, tried = Told(), []

    def library():
        tried.append(which)
        return libraries[which]()

    with opened(tmp_path, table=False) as engine:
        filled(engine, said(20))
        wanted = [asked(engine, text) for text in QUERIES]
    with opened(tmp_path, told, library) as engine:
        engine._own_layer._nearest.begin()
        engine.embed()
        found = [asked(engine, text) for text in QUERIES]

    category = "not_installed" if which == "not_installed" else "not_loadable"
    assert ([category], wanted, [which]) == (told, found, tried)


def test_a_library_that_is_another_extension(tmp_path, monkeypatch):
    """A library that loads but is another extension is not used."""
    monkeypatch.setattr(extension, "_load", lambda *_: None)
    told = Told()
    with opened(tmp_path, told, lambda: "x") as engine:
        engine._own_layer._nearest.begin()

    assert ["not_loadable"] == told


def test_a_package_without_its_library(tmp_path, monkeypatch):
    """A package of that name without a library counts as not installed."""
    monkeypatch.setitem(sys.modules, "sqlite_vec", SimpleNamespace())
    told = Told()
    with opened(tmp_path, told) as engine:
        engine._own_layer._nearest.begin()

    assert ["not_installed"] == told


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"whole", None), (b"who", "not_loadable"), (b"whale", "not_loadable"), (None, "not_loadable")],
)
def test_a_library_that_is_not_as_it_was_installed(tmp_path, monkeypatch, content, said):
    """A library that differs from the package's list of files is not loaded: half a library kills the process."""
    if content is not None:
        (tmp_path / "vec0.so").write_bytes(content)
    package = tmp_path / "sqlite_vec-0.1.9.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: sqlite-vec\nVersion: 0.1.9\n")
    wanted = urlsafe_b64encode(sha256(b"whole").digest()).decode().rstrip("=")
    (package / "RECORD").write_text(f"sqlite_vec/__init__.py,,\nvec0.so,sha256={wanted},5\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "sqlite_vec", SimpleNamespace(loadable_path=lambda: str(tmp_path / "vec0")))

    if said is None:
        assert str(tmp_path / "vec0") == extension.installed()
    else:
        with pytest.raises(VecError) as error:
            extension.installed()
        assert said == error.value.category


@pytest.mark.parametrize("files", [None, []])
def test_a_package_that_does_not_say_what_is_in_it(monkeypatch, files):
    """Where nothing says how the library was, it is tried."""

    def found(_name):
        if files is None:
            raise PackageNotFoundError
        return SimpleNamespace(files=None)

    monkeypatch.setattr(extension, "distribution", found)
    monkeypatch.setitem(sys.modules, "sqlite_vec", SimpleNamespace(loadable_path=lambda: "vec0"))

    assert "vec0" == extension.installed()


@WITH_IT
def test_half_a_library_for_real(tmp_path):
    """A process whose installed library was cut off goes on, says so, and finds."""
    package = tmp_path / "site"
    for folder in ("sqlite_vec", f"sqlite_vec-{version('sqlite-vec')}.dist-info"):
        shutil.copytree(Path(str(distribution("sqlite-vec").locate_file(folder))), package / folder)
    for library in (package / "sqlite_vec").glob("vec0.*"):
        library.write_bytes(library.read_bytes()[:5_000])
    code = (
        "from beaver_memory.store.sqlite.extension import VecError, installed\n"
        "try: installed()\nexcept VecError as error: print(error.category)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(package)}, capture_output=True, check=True
    )

    assert b"not_loadable" == done.stdout.strip()


@WITH_IT
def test_nobody_has_nothing(tmp_path):
    """A table of an owner without embeddings is up to date and returns no rows."""
    with opened(tmp_path) as engine:
        table = engine.store.vec_tables().of(ANN, Hashed().identity.key, DIMENSIONS)

        assert (True, []) == (table.catch_up(), table.near(Hashed().embed_query("bal"), 5))


@WITH_IT
def test_two_that_catch_up_at_once(tmp_path):
    """Several threads that fill a table at once copy each vector once."""
    with opened(tmp_path, table=False) as engine:
        filled(engine, said(3)[1:])
        table = engine.store.vec_tables().of(ANN, Hashed().identity.key, DIMENSIONS)
        with ThreadPoolExecutor(4) as pool:
            done = list(pool.map(lambda _: table.catch_up(), range(8)))

    assert ([True] * 8, 2) == (done, rows(tmp_path))


@WITH_IT
def test_an_old_extension_is_not_used(tmp_path, monkeypatch):
    """An extension that is too old to erase what it deletes is refused and reported once."""
    monkeypatch.setattr(extension, "OLDEST", (99, 0, 0))
    told = Told()
    with opened(tmp_path, told) as engine:
        ids = filled(engine, said(3))
        found = asked(engine, "bal", limit=9)

    assert (["too_old"], {*ids}) == (told, {*found})


@WITH_IT
def test_a_broken_table(tmp_path):
    """A failing extension is reported once, the index's own vectors answer, and writes go on."""
    told = Told()
    with opened(tmp_path) as engine:
        ids = filled(engine, said(20))
        wanted = asked(engine, "bal bel bil")
    connection = apsw.Connection(str(tmp_path / "memory.db"))
    name = connection.execute("SELECT name FROM sqlite_schema WHERE name GLOB 'observations_vec_*_chunks'").get
    connection.execute(f"ALTER TABLE {name} RENAME TO elsewhere")
    connection.close()
    with opened(tmp_path, told) as engine:
        found = [asked(engine, "bal bel bil") for _ in range(2)]
        engine.add(said(1, seed=9))

    assert (["failed"], [wanted] * 2, 20) == (told, found, len(ids))


def test_a_store_that_is_locked_is_tried_again():
    """A locked store is reported, and so is its recovery."""
    told, answers = Told(), [StoreError(Path("x"), "locked"), True]

    class Table:
        def catch_up(self):
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

    class Tables:
        def of(self, *_):
            return Table()

    search = TableSearch(Tables(), told)
    for _ in range(2):
        search.catch_up(ANN, nearest.Model(key="m", dimensions=8))

    assert (["locked", None], []) == (told, answers)


@WITH_IT
@settings(max_examples=settings.default.max_examples // 10, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "change", "forget", "embed", "pin", "tag"]), st.integers(0, 9)), max_size=25
    )
)
def test_it_is_in_step(tmp_path_factory, steps):
    """Whatever is done, in whatever order, both ways find the same."""
    folder = tmp_path_factory.mktemp("vec")
    with opened(folder) as engine, opened(folder, table=False) as plain:
        ids = filled(engine, said(5))
        for number, (what, which) in enumerate(steps):
            chosen, who = ids[which % len(ids)], (engine, plain)[number % 2]
            match what:
                case "add":
                    ids += who.add(said(1, seed=number + 50))
                case "change":
                    who.change(chosen, seen(), event="UPDATE", title=f"{WORDS[which]} {WORDS[number]}.")
                case "forget":
                    who.forget([chosen], seen())
                case "pin":
                    who.change(chosen, seen(), event="PIN", pinned=True)
                case "tag":
                    who.change(chosen, seen(), event="UPDATE", tags=(WORDS[number % len(WORDS)],))
                case "embed":
                    who.embed()
        both = [[asked(who, text) for text in QUERIES] for who in (engine, plain)]

    assert both[0] == both[1]


CHOSEN = Profile(vectors="sqlite-vec", embedding=EmbeddingSettings(provider="none"))


@pytest.fixture
def here():
    return RuntimeServices(clock=FrozenClock(), report=RecordingReport())


@pytest.mark.shows("003-007")
@pytest.mark.parametrize("there", [pytest.param(True, marks=WITH_IT), False])
def test_chosen_in_the_settings(tmp_path, monkeypatch, here, there):
    """`memory.local.vectors` chooses it; where it cannot be used, that is audited, and the health says so."""
    if not there:
        monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    engine = open_engine(CHOSEN, SqliteLocation(state_folder=tmp_path), here).engine
    engine.add(said(1))
    engine.close()
    events = [(name, dict(facts)) for name, facts in here.report.events]
    trouble = [("memory_sqlite_vec_unavailable", {"category": "not_installed"})]

    assert ([] if there else trouble, () if there else ("sqlite_vec_not_installed",)) == (events, here.troubles.now)


def test_the_health_recovers(tmp_path, monkeypatch, here):
    """A locked store degrades the health, which recovers when the store answers again."""
    answers = [StoreError(tmp_path, "locked")]

    def ensure(_):
        if answers:
            raise answers.pop()

    monkeypatch.setattr(VecTables, "ensure", ensure)
    engine = open_engine(CHOSEN, SqliteLocation(state_folder=tmp_path), here).engine
    troubles = here.troubles.now
    engine._own_layer._nearest.begin()
    engine.close()

    assert (("sqlite_vec_locked",), (), 1) == (troubles, here.troubles.now, here.report.recoveries)
