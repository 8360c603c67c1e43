"""Index files: they make opening fast, and whatever is wrong with one, the answers are those of the store."""

import contextlib
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import apsw
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from letters import Letters, Traces

from beaver_memory.engine import DATABASE, INDEXES, MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.model_switch import model_of
from beaver_memory.query import Query
from beaver_memory.records import NewMemory, Owner
from beaver_memory.search import index_cache, index_file, snapshot, terms
from beaver_memory.search.vectors import FileRows
from beaver_memory.views import View

WHEN = datetime(2026, 3, 1, tzinfo=UTC)
LATER = datetime(2036, 3, 1, tzinfo=UTC)
ANN, BEN = Owner(user="ann"), Owner(user="ben")
WORDS = ("tea", "bike", "boat", "rain", "moon")


def memories(count, owner=ANN, first=0):
    """Return memories."""
    return [
        NewMemory(
            title=f"{WORDS[place % 5]} number{place} {WORDS[place // 5 % 5]}",
            owner=owner,
            session=f"s{place // 4}",
            created_at=WHEN,
        )
        for place in range(first, first + count)
    ]


def opened(folder, traces=None, **options):
    """Open an engine with an embedder."""
    return MemoryEngine.open(folder, trace=traces, **{"embedder": Letters(), **options})


def answers(engine, owner=ANN):
    """Return what some searches find."""
    which = Filters(view=View(owners=(owner,), now=LATER))
    asked = [
        engine.search(Query(text=text, filters=which, limit=5))
        for text in ("tea", "boat number7", "zebra", "bike rain")
    ]
    return [[(hit.memory.id, hit.memory.title, hit.score) for hit in answer.hits] for answer in asked]


def truth(folder):
    """Return what an engine without index files finds."""
    with opened(folder, indexes=None) as engine:
        return answers(engine)


def filled(folder, count=40):
    """Make a store with an index file."""
    with opened(folder) as engine:
        engine.add(memories(count))
        engine.embed(limit=count)
        engine.reindex()
    (path,) = (folder / INDEXES).glob("*.index")
    return path


def rebuilt(folder):
    """Return why indexes were made anew for answers that are those of an engine without index files."""
    traces = Traces()
    with opened(folder, traces) as engine:
        assert truth(folder) == answers(engine)
    return traces.rebuilt


@pytest.fixture
def folder(tmp_path):
    filled(tmp_path / "memory")
    return tmp_path / "memory"


def only(folder):
    """Return the one index file."""
    (path,) = (folder / INDEXES).glob("*.index")
    return path


def test_an_index_file_is_used(folder, monkeypatch):
    """With an index file a search reads only new rows from the store, and the answers stay the same."""
    expected, traces = truth(folder), Traces()
    with opened(folder, traces) as engine:
        changed, read = engine.store.changed, []
        monkeypatch.setattr(engine.store, "changed", lambda *a, **k: read.extend(found := changed(*a, **k)) or found)
        assert expected == answers(engine)
        # The one row that tells whether the history is the same.
        assert 1 == len(read)
        engine.add(memories(1, first=40))
        answers(engine)
        assert 2 == len(read)
    assert [] == traces.rebuilt


def test_the_vectors_of_large_blocks_stay_in_the_file(tmp_path, monkeypatch):
    """They are read when they are wanted, though the file has been replaced, and become writable when others come."""
    path = filled(tmp_path)
    expected = truth(tmp_path)
    for room in (index_file, index_cache):
        monkeypatch.setattr(room, "STAYING", 20)
    with opened(tmp_path) as engine:
        assert expected == answers(engine)
        data = [
            part.vectors.data for part in engine._own_layer._shelf.current([ANN], model_of(engine._embedder))[0].parts
        ]
        assert [(FileRows, 40)] == [(type(each), len(each)) for each in data]
        path.unlink()
        assert expected == answers(engine)
        engine.change(3, Filters(view=View(owners=(ANN,), now=LATER)), event="UPDATE", title="boat number7")
        engine.embed(limit=9)
        assert data[0][np.array([0, 39])].tolist() == data[0].whole()[[0, 39]].tolist()
        changed = answers(engine)
        engine.reindex()
        assert changed == answers(engine)
        (part,) = engine._own_layer._shelf.current([ANN], model_of(engine._embedder))[0].parts
        assert FileRows is type(part.vectors.data)
        stored = engine.store.vectors(ANN, Letters().identity.key, 0, limit=99)
        written = snapshot.with_vectors(engine._own_layer._shelf.current([ANN], model_of(engine._embedder))[0], stored)
        assert np.ndarray is type(written.parts[0].vectors.data)
        assert part.vectors.data.whole().tolist() == written.parts[0].vectors.data.tolist()
    assert changed == truth(tmp_path)


def test_files_are_private(folder):
    """Index files are their owner's only, and their names say nothing."""
    assert ("0o600", "0o700") == tuple(oct(path.stat().st_mode & 0o777) for path in (only(folder), only(folder).parent))
    assert "ann" not in only(folder).name


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_byte_that_is_changed(folder, data):
    """An index file with a changed byte is not loaded, unless the byte is padding."""
    path = only(folder)
    good = path.read_bytes()
    label = index_file.Label(
        store=_identity(folder), tenant="", user="ann", model=Letters().identity.key, dimensions=26
    )
    place = data.draw(st.integers(0, len(good) - 1))
    mask = data.draw(st.integers(1, 255))
    try:
        path.write_bytes(good[:place] + bytes([good[place] ^ mask]) + good[place + 1 :])
        state, why = index_file.load(path.parent, label)
        # Between the arrays there are bytes that mean nothing.
        assert state is None or _is_padding(good, place)
        assert bool(why) == (state is None)
    finally:
        path.write_bytes(good)


def _identity(folder):
    with opened(folder) as engine:
        return engine.store.identity


def _is_padding(good, place):
    header = int.from_bytes(good[8:16], "little")
    described = json.loads(good[32 : 32 + header])
    start = index_file._aligned(32 + header)
    inside = any(
        start + first <= place < start + first + int(np.prod(shape)) * np.dtype(kind).itemsize
        for kind, shape, first in described["arrays"].values()
    )
    return place >= 32 + header and not inside


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-9]), "corrupt"),
        (lambda path: path.write_bytes(path.read_bytes()[:40]), "corrupt"),
        (lambda path: path.write_bytes(b""), "corrupt"),
        (lambda path: path.write_bytes(b"\0" * 5000), "corrupt"),
        (lambda path: path.write_bytes(path.read_bytes() + b"more"), "corrupt"),
        (lambda path: (path.unlink(), path.mkdir()), "unreadable"),
        (lambda path: path.unlink(), None),
    ],
)
def test_a_file_that_cannot_be_read(folder, harm, why):
    """A damaged or unreadable index file is not used and a trace says why; a missing one is no fault."""
    harm(only(folder))
    assert ([] if why is None else [why]) == rebuilt(folder)


def test_files_of_two_owners_are_swapped(tmp_path):
    """An index file of another owner under this owner's name is not used."""
    with opened(tmp_path) as engine:
        engine.add([*memories(20), *memories(20, owner=BEN, first=50)])
        engine.reindex()
        expected = [answers(engine, owner) for owner in (ANN, BEN)]
    one, other = sorted((tmp_path / INDEXES).glob("*.index"))
    kept = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(kept)
    traces = Traces()
    with opened(tmp_path, traces) as engine:
        assert expected == [answers(engine, owner) for owner in (ANN, BEN)]
    assert ["another_user", "another_user"] == traces.rebuilt


def test_a_file_of_another_store(folder, tmp_path):
    """A file of another store is not used, though owner and model are the same."""
    other = filled(tmp_path / "other", 25)
    shutil.copy(other, only(folder))
    assert ["another_store"] == rebuilt(folder)


def test_a_file_of_another_model(folder):
    """The vectors of one model are not taken for those of another one."""
    turned = Letters("turned", fault=lambda rows: rows[:, ::-1])
    with opened(folder, embedder=turned) as engine:
        engine.embed(limit=99)
        expected = answers(engine)
        wanted = index_file.Label(
            store=engine.store.identity, tenant="", user="ann", model=turned.identity.key, dimensions=26
        )
    only(folder).rename(folder / INDEXES / wanted.name)
    traces = Traces()
    with opened(folder, traces, embedder=turned) as engine:
        assert expected == answers(engine)
    assert ["another_model"] == traces.rebuilt


def test_a_file_of_another_analyser(folder):
    """Terms of two analysers are not mixed."""
    with patch.object(index_file, "ANALYSER", terms.ANALYSER + "x"):
        assert ["another_analyser"] == rebuilt(folder)


def backup(folder, name):
    """Copy the database while it is closed."""
    shutil.copy(folder / DATABASE, folder / name)


def restore(folder, name):
    """Put a copy in the database's place."""
    for path in folder.glob(f"{DATABASE}*"):
        path.unlink()
    shutil.copy(folder / name, folder / DATABASE)


def test_an_older_store_under_a_newer_file(folder):
    """An index file that is newer than a restored store is not used."""
    backup(folder, "old")
    with opened(folder) as engine:
        engine.add(memories(30, first=40))
        engine.reindex()
    restore(folder, "old")
    assert ["newer_than_store"] == rebuilt(folder)


@pytest.mark.parametrize("more", [30, 31, 45])
def test_another_history_under_a_file(folder, more):
    """An index file is not used over a restored store with another history, even at the same version."""
    backup(folder, "old")
    with opened(folder) as engine:
        engine.add(memories(30, first=40))
        engine.reindex()
    restore(folder, "old")
    with opened(folder, indexes=None) as engine:
        engine.add(memories(more, first=500))
    assert ["another_history"] == rebuilt(folder)


def test_another_history_of_vectors(folder):
    """Vectors that a restored store has lost are not used from the index file."""
    with opened(folder, indexes=None) as engine:
        engine.add(memories(10, first=40))
    backup(folder, "old")
    with opened(folder) as engine:
        engine.embed(limit=99)
        engine.reindex()
    restore(folder, "old")
    assert truth(folder) == _answers(folder)
    with opened(folder, indexes=None) as engine:
        engine.change(41, Filters(view=View(owners=(ANN,), now=LATER)), event="UPDATE", title="boat number7")
        engine.embed(limit=99)
    assert truth(folder) == _answers(folder)


def _answers(folder):
    with opened(folder) as engine:
        return answers(engine)


def test_a_newer_store_under_an_older_file(folder):
    """Changes after an index file was saved are read from the store."""
    kept = only(folder).read_bytes()
    with opened(folder) as engine:
        engine.add(memories(30, first=40))
        engine.forget([3, 4], Filters(view=View(owners=(ANN,), now=LATER)))
        engine.change(5, Filters(view=View(owners=(ANN,), now=LATER)), event="UPDATE", title="tea zebra")
        engine.embed(limit=50)
    only(folder).write_bytes(kept)
    assert [] == rebuilt(folder)


def test_rows_that_vanished(folder):
    """An index with another number of memories than the store is rebuilt."""
    with contextlib.closing(apsw.Connection(str(folder / DATABASE))) as connection:
        connection.execute("UPDATE owners SET live = live - 1")
        connection.execute("UPDATE observations SET deleted_at = 1 WHERE id = 3")
    assert ["another_count"] == rebuilt(folder)


def test_it_is_saved_when_enough_has_changed(tmp_path, monkeypatch):
    """An index is saved only after enough changes."""
    monkeypatch.setattr(index_cache, "CHANGES", 30)
    with opened(tmp_path) as engine:
        engine.add(memories(29))
        answers(engine)
    assert [] == [*tmp_path.glob("*/*.index")]
    traces = Traces()
    with opened(tmp_path, traces) as engine:
        engine.add(memories(1, first=29))
        answers(engine)
    assert [("index_saved", {"memories": 30, "blocks": 1})] == [each for each in traces if each[0] == "index_saved"]
    stamp = only(tmp_path).stat().st_mtime_ns
    with opened(tmp_path) as engine:
        answers(engine)
    assert stamp == only(tmp_path).stat().st_mtime_ns


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    """An index that cannot be saved is traced, and searching and reindexing go on."""
    monkeypatch.setattr(index_cache, "CHANGES", 1)
    (tmp_path / INDEXES).write_text("in the way")
    traces = Traces()
    with opened(tmp_path, traces) as engine:
        engine.add(memories(3))
        assert answers(engine)[0]
        del traces[:]
        assert 3 == engine.reindex()
    assert {("index_not_saved", "FileExistsError")} == {
        (event, facts["why"]) for event, facts in traces if event == "index_not_saved"
    }


def test_leftovers_are_swept(folder):
    """What a writer left that was killed is gone after the next save."""
    left = folder / INDEXES / f".{only(folder).name}-abc"
    left.write_bytes(b"half")
    with opened(folder) as engine:
        assert 40 == engine.reindex()
    assert not left.exists()


def test_reindexing_tells_how_far_it_is(tmp_path, monkeypatch):
    """Progress comes in memories done, of how many."""
    monkeypatch.setattr("beaver_memory.search.owner_index.PAGE", 15)
    with opened(tmp_path) as engine:
        engine.add(memories(40))
        told = []
        assert 40 == engine.reindex(progress=lambda done, of: told.append((done, of)))
    assert [(15, 40), (30, 40), (40, 40)] == told


def test_many_owners(tmp_path, monkeypatch):
    """The indexes in memory are bounded, and those that had to go are read again."""
    monkeypatch.setattr(index_cache, "MOST_OWNERS", 2)
    with opened(tmp_path) as engine:
        owners = [Owner(user=f"u{number}") for number in range(5)]
        for owner in owners:
            engine.add(memories(3, owner=owner))
        assert [3] * 5 == [len(answers(engine, owner)[0]) for owner in owners for _ in (1,)]
        assert 2 == len(engine._own_layer._shelf.owners())
        assert 3 == len(answers(engine, owners[0])[0])


def test_paths_that_are_text(tmp_path):
    """A folder may be given as a text."""
    with MemoryEngine.open(str(tmp_path / "new")) as engine:
        assert [1] == engine.add(NewMemory(title="tea"))
    assert Path(tmp_path / "new" / DATABASE).exists()
