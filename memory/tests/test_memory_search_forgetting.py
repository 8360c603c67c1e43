"""A forgotten memory is in no file: no word, no hash of one and no vector, whichever engine has the index open."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest
from letters import Letters, Traces
from selection import campaign

from beaver_memory.engine import INDEXES, MemoryEngine
from beaver_memory.errors import StoreError
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.records import NewMemory, Owner
from beaver_memory.search import index_cache, index_file
from beaver_memory.search.terms import Analyser
from beaver_memory.search.vectors import in_steps
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.views import View

ANN, BEN = Owner(user="ann"), Owner(user="ben")
SECRET = "Leukemia"
TEXT = f"{SECRET} was found"
NOW = datetime(2036, 1, 1, tzinfo=UTC)


def seen(owner=ANN):
    return Filters(view=View(owners=(owner,), now=NOW))


def opened(folder, model="letters", **options):
    return MemoryEngine.open(folder, embedder=Letters(model), **options)


def filled(engine, owner=ANN, count=20):
    """Add memories with a secret among them, embed and index them; return the secret's id."""
    *_, secret = engine.add([*(NewMemory(title=f"rain in town {each}", owner=owner) for each in range(count)),
                             NewMemory(title=TEXT, owner=owner)])  # fmt: skip
    engine.embed(limit=2 * count)
    engine.reindex(owners=[owner])
    return secret


def found(engine, owner=ANN):
    """Return what a search for the secret finds, and one for all else."""
    return [
        [hit.memory.id for hit in engine.search(Query(text=text, filters=seen(owner), limit=50)).hits]
        for text in (SECRET, "rain in town")
    ]


def holding(folder, owner=None):
    """Return the files that hold the secret in any way, those of one owner's index alone if that is wanted."""
    vector = Letters().embed_query(TEXT)
    needles = (
        Analyser().query(SECRET)[0].to_bytes(8, "little"), vector.astype("<f2").tobytes(),
        in_steps(vector).tobytes(), SECRET.encode(), SECRET.lower().encode(),
    )  # fmt: skip
    whose = "" if owner is None else index_file.Label(store="", tenant=owner.tenant, user=owner.user).whose
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.endswith("-shm")]
    return [
        path.name
        for path in paths
        if path.name.startswith(whose) and any(each in path.read_bytes() for each in needles)
    ]


def saved(folder):
    return [path.name for path in sorted((folder / INDEXES).glob("*.index"))]


@pytest.mark.shows("003-092", "003-118")
@pytest.mark.parametrize("staying", [5, 200_000])
def test_nothing_is_left_at_once_and_after_closing(tmp_path, monkeypatch, staying):
    """`forget` removes a memory from all files before it returns, and closing saves the index without it."""
    for room in (index_file, index_cache):
        monkeypatch.setattr(room, "STAYING", staying)
    with opened(tmp_path) as engine:
        secret = filled(engine)
        assert 2 <= len(holding(tmp_path))
        names = saved(tmp_path)
    with opened(tmp_path) as engine:
        before = found(engine)
        assert [secret] == engine.forget([secret], seen())
        assert ([], []) == (holding(tmp_path), saved(tmp_path))
        after = found(engine)
    assert ([], names) == (holding(tmp_path), saved(tmp_path))
    assert [[each for each in ids if each != secret] for ids in before] == after
    traces = Traces()
    with opened(tmp_path, trace=traces) as engine:
        assert after == found(engine)
    assert [] == traces


def test_without_a_search(tmp_path):
    """An engine that only opens and forgets saves its index when it closes."""
    with opened(tmp_path) as engine:
        secret = filled(engine)
    names = saved(tmp_path)
    with opened(tmp_path) as engine:
        engine.forget([secret], seen())
        assert [] == holding(tmp_path)
    assert ([], names) == (holding(tmp_path), saved(tmp_path))


def test_one_owner_among_several(tmp_path):
    """Forgetting deletes the owner's index files of every model, and keeps the files of other owners."""
    with opened(tmp_path, "other") as engine:
        secrets = [filled(engine)]
    with opened(tmp_path) as engine:
        secrets += [filled(engine), others := filled(engine, BEN)]
        (kept,) = holding(tmp_path / INDEXES, BEN)
        assert (3, 2) == (len(saved(tmp_path)), len(holding(tmp_path, ANN)))
        assert secrets[:2] == engine.forget(secrets, seen())
        assert ([kept], [kept], []) == (saved(tmp_path), holding(tmp_path, BEN), holding(tmp_path, ANN))
        assert others == found(engine, BEN)[0][0]
    assert (2, []) == (len(saved(tmp_path)), holding(tmp_path, ANN))


def test_somebody_else_has_the_index_open(tmp_path, monkeypatch):
    """An engine that still holds a forgotten memory in its index does not save it later."""
    with opened(tmp_path) as other, opened(tmp_path) as engine:
        secret = filled(engine)
        other.add([NewMemory(title=f"moon {each}", owner=ANN) for each in range(40)])
        assert secret == found(other)[0][0]
        engine.forget([secret], seen())
        monkeypatch.setattr(index_cache, "CHANGES", 1)
        other.close()
        assert (1, []) == (len(saved(tmp_path)), holding(tmp_path))


@pytest.mark.parametrize("when", ["before", "after"])
def test_forgotten_while_somebody_saves(tmp_path, monkeypatch, when):
    """A memory forgotten while another engine saves the index is not in the saved file."""
    with opened(tmp_path) as other, opened(tmp_path) as engine:
        secret = filled(engine)
        save = index_file.save

        def saving(*given):
            monkeypatch.setattr(index_file, "save", save)
            if when == "after":
                save(*given)
            engine.store.forget([secret], seen(), now=NOW)
            if when == "before":
                save(*given)

        monkeypatch.setattr(index_file, "save", saving)
        other.reindex()
        assert [] == holding(tmp_path)
    assert (1, []) == (len(saved(tmp_path)), holding(tmp_path))


def test_forgotten_while_it_is_written(tmp_path, monkeypatch):
    """A file that is written during `forget` is deleted too, and closing saves the index without the memory."""
    with opened(tmp_path) as engine:
        secret = filled(engine)
        (path,) = (tmp_path / INDEXES).glob("*.index")
        path.unlink()
        write = index_file._write

        def writing(*given):
            write(*given)
            if [secret] == engine.forget([secret], seen()):
                assert [] == holding(tmp_path)

        monkeypatch.setattr(index_file, "_write", writing)
        engine.reindex()
        assert [] == saved(tmp_path)
    assert (1, []) == (len(saved(tmp_path)), holding(tmp_path))


KILLED = """
import os, signal, sys
from datetime import UTC, datetime
from beaver_memory.engine import MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.search.index_cache import IndexShelf
from beaver_memory.records import Owner
from beaver_memory.views import View
if sys.argv[3] == "at once":
    IndexShelf.forget = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
engine = MemoryEngine.open(sys.argv[1])
engine.forget([int(sys.argv[2])], Filters(view=View(owners=[Owner(user="ann")], now=datetime(2036, 1, 1, tzinfo=UTC))))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("moment", "left"), [("at once", 1), *campaign(("later", 0))])
def test_killed_after_forgetting(tmp_path, moment, left):
    """After a process was killed while forgetting, the next search deletes its files, and closing saves the index."""
    with opened(tmp_path) as engine:
        secret = filled(engine)
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(secret), moment], check=False)
    assert left == len(holding(tmp_path))
    with opened(tmp_path) as engine:
        assert [20, 20] == list(map(len, found(engine)))
        assert ([], []) == (holding(tmp_path), saved(tmp_path))
    assert (left, []) == (len(saved(tmp_path)), holding(tmp_path))


def test_all_of_somebody_is_forgotten(tmp_path):
    """Forgetting every memory leaves nothing of them in the files, and a memory added later is found."""
    with opened(tmp_path) as engine:
        filled(engine)
        engine.forget(range(1, 22), seen())
    assert [] == holding(tmp_path)
    with opened(tmp_path) as engine:
        assert [[], []] == found(engine)
        (id_,) = engine.add(NewMemory(title="rain", owner=ANN))
        assert [[], [id_]] == found(engine)


def test_a_file_that_cannot_be_deleted(tmp_path):
    """An index file that cannot be deleted is traced, and the memory is forgotten."""
    traces = Traces()
    with opened(tmp_path, trace=traces) as engine:
        secret = filled(engine)
        (tmp_path / INDEXES / f"{saved(tmp_path)[0][:-7]}x.index").mkdir()
        del traces[:]
        assert [secret] == engine.forget([secret], seen())
        assert ["index_not_erased"] == [event for event, _ in traces]


def test_copies_of_older_versions(tmp_path):
    """Forgetting a memory deletes the copy of the database from before a migration."""
    copy = tmp_path / "memory.db.v1.bak"
    with opened(tmp_path) as engine:
        secret = filled(engine)
        copy.write_bytes(TEXT.encode())
        engine.forget([99], seen())
        assert copy.exists()
        engine.forget([secret], seen())
        assert not copy.exists()


def test_copies_of_a_database_with_a_name_like_a_pattern(tmp_path):
    """Forgetting deletes the copies of a database whose name looks like a pattern, and no copy of another database."""
    own, other = tmp_path / "mem[1].db.v1.bak", tmp_path / "mem1.db.v1.bak"
    with MemoryEngine(SqliteStore.open(tmp_path / "mem[1].db")) as engine:
        (secret,) = engine.add(NewMemory(title=TEXT, owner=ANN))
        own.touch()
        other.touch()
        engine.forget([secret], seen())

    assert (False, True) == (own.exists(), other.exists())


def test_a_copy_that_cannot_be_deleted(tmp_path):
    """While a copy cannot be deleted `forget` raises an error and forgets nothing, and it succeeds afterwards."""
    copy = tmp_path / "memory.db.v1.bak"
    copy.mkdir()
    with opened(tmp_path, indexes=None) as engine:
        secret = filled(engine)
        with pytest.raises(StoreError):
            engine.forget([secret], seen())
        copy.rmdir()
        assert [secret] == engine.forget([secret], seen())
