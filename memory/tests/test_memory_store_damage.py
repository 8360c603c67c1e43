"""Flipped bits: a damaged memory is never shown as true, never missing without a word, and takes no other one with it."""

import asyncio
import contextlib
import random
import shutil
import struct
from datetime import timedelta

import apsw
import pytest
from selection import campaign

from beaver_hostspecs.testing import FrozenClock, RecordingReport
from beaver_memory import MemoryRuntime
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.errors import StoreError
from beaver_memory.filters import Filters
from beaver_memory.records import NewMemory, Owner, Store
from beaver_memory.runtime import requests
from beaver_memory.runtime.profile import Profile, RuntimeServices, SqliteLocation
from beaver_memory.store.checksums import CHECKED
from beaver_memory.store.protocol import Analysed
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.store.sqlite.versions import next_version
from beaver_memory.testing.store_cases.kit import NOW, looking, new
from beaver_memory.views import View

ANN, BOB = Owner(tenant="t", user="ann"), Owner(tenant="t", user="bob")
COUNT = 60
EMPTY_TEXT = 13
"""The type of an empty text in the header of a record; that of an empty blob is 12."""

PAGE, TABLE_LEAF = 4096, 13
COLUMNS = sorted({*CHECKED, "owner", "checksum"} - {"id", "pinned", "deleted_at"})


def full(number, owner):
    """Return a memory with a value of its own in every column."""
    name = f"{number:03}"
    moment = timedelta(minutes=number, microseconds=number)
    memory = NewMemory(
        title=f"the price is {name}9 euros", narrative=f"narrative {name} " * 5, facts=(f"fact {name}",),
        summary=f"summary {name}", owner=owner, store=[*Store][number % 3], type=f"type{name}", scope="project",
        project="p", session=f"s{name}", agent=f"a{name}", speaker=f"speaker {name}", tags=(f"tag{name}",),
        keywords=(f"key{name}",), related_files=(f"src/{name}.py",), related_people=(f"Person {name}",),
        source=f"source{name}", origin=f"origin {name}", confidence=0.001 * number + 0.01, importance=0.002 * number + 0.01,
        created_at=NOW - moment, expires_at=NOW + timedelta(days=900) + moment, valid_from=NOW - timedelta(days=90) - moment,
        valid_until=NOW + timedelta(days=800) + moment,
    )  # fmt: skip
    return Analysed(memory=memory, terms=f"terms of {name}".encode(), length=number)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A closed database, and the memories of two owners in it."""
    path = tmp_path_factory.mktemp("damage") / "memory.db"
    with contextlib.closing(SqliteStore.open(path)) as store:
        ids = store.add([full(number, (ANN, BOB)[number % 2]) for number in range(COUNT)], now=NOW)
        store.touch(ids, tenant="t", now=NOW + timedelta(minutes=1))
        truth = {memory.id: memory for memory in store.get(ids, looking(owners=(ANN, BOB)))}
    return path, truth


def bytes_of(path, id_, column):
    """Return the bytes of a column in the record of a memory; none for 0, 1 and NULL, which the record's head holds."""
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        value = connection.execute(f"SELECT {column} FROM observations WHERE id = ?", (id_,)).get  # noqa: S608
    if value in {None, 0, 1}:
        return b""
    if isinstance(value, float):
        return struct.pack(">d", value)
    if isinstance(value, int):
        size = next(size for size in (1, 2, 3, 4, 6, 8) if -(1 << 8 * size - 1) <= value < 1 << 8 * size - 1)
        return value.to_bytes(size, "big", signed=True)
    return value if isinstance(value, bytes) else value.encode()


def record_of(content, id_):
    """Return a part of the file that lies within the record of a memory, around its title."""
    title = content.index(f"the price is {id_ - 1:03}9 euros".encode())
    return title - 260, title + 260


def flipped(path, copy, chance, column, id_):
    """Flip a bit of a column of a memory in a copy of a database; return whether the column has one there."""
    shutil.copy(path, copy)
    content = bytearray(path.read_bytes())
    first, last = record_of(content, id_)
    needle = bytes_of(path, id_, column)
    at = content.find(needle, first, last) if needle else -1
    if at < 0:
        return False
    content[at + chance.randrange(len(needle))] ^= 1 << chance.randrange(8)
    copy.write_bytes(content)
    return True


def reads(store):
    """Return what each way of reading shows of both owners, and what it raises."""
    filters = looking(owners=(ANN, BOB))
    yield lambda: store.get(range(1, COUNT + 1), filters)
    yield lambda: store.recent(filters, limit=COUNT)
    yield lambda: store.get([*store.ids(ANN), *store.ids(BOB)], filters)
    yield lambda: [
        memory
        for owner in (ANN, BOB)
        for row in store.changed(owner, 0, limit=COUNT)
        for memory in store.get([row.id], filters)
    ]


def verdict(path, truth):
    """Return how many memories were shown wrongly, how many were missing without a word, and the share that was shown."""
    wrong = silent = shown = asked = 0
    for number in range(4):
        told = []
        try:
            with contextlib.closing(SqliteStore.open(path, damaged=told.append)) as store:
                found = [*reads(store)][number]()
        except StoreError:
            asked += len(truth)
            continue
        asked += len(truth)
        wrong += sum(truth.get(memory.id) != memory for memory in found)
        here = {memory.id for memory in found}
        shown += len(here)
        silent += len(truth.keys() - here) if not told else 0
    return wrong, silent, shown / asked


@pytest.mark.parametrize(("seed", "count"), [(1, 20), *campaign((2, 400))])
def test_flipped_bits(whole, tmp_path, seed, count):
    """Bits flipped in every shown column give no wrong memory, none that is missing silently, and cost no other one."""
    path, truth = whole
    chance, done, results = random.Random(seed), [], []
    copy = tmp_path / "memory.db"
    while len(done) < count:
        column = COLUMNS[(seed * 7 + len(done)) % len(COLUMNS)]
        if flipped(path, copy, chance, column, chance.randrange(1, COUNT + 1)):
            results.append((column, *verdict(copy, truth)))
        done.append(column)
    assert [] == [each for each in results if each[1] or each[2]]
    assert len(results) > count * 0.6
    intact = sum(each[3] for each in results) / len(results)
    assert intact >= 0.99 * (COUNT - 1) / COUNT


def varint(content, at):
    """Return a number of SQLite's file format, and where it ends."""
    value = 0
    for end in range(at, at + 9):
        value = value << 7 | content[end] & 127
        if content[end] < 128:
            return value, end + 1
    raise AssertionError("no small number")


def cells(content):
    """Return where the cell of each memory begins, its record, the end of the record's head, and its end."""
    found = {}
    for page in range(0, len(content), PAGE):
        if content[page] != TABLE_LEAF:
            continue
        for place in range(int.from_bytes(content[page + 3 : page + 5], "big")):
            (at,) = struct.unpack_from(">H", content, page + 8 + 2 * place)
            size, after = varint(content, page + at)
            id_, record = varint(content, after)
            cell = content[record : record + size]
            if f"the price is {id_ - 1:03}9 euros".encode() in cell and f"type{id_ - 1:03}".encode() in cell:
                found[id_] = (page + at, record, record + varint(content, record)[0], record + size)
    return found


@pytest.mark.parametrize(("seed", "count"), [(1, 20), *campaign((2, 400))])
def test_flipped_bits_of_whole_records(whole, tmp_path, seed, count):
    """Bits flipped anywhere in a cell, in its sizes and types too, give nothing wrong or silently missing, and cost one memory."""
    path, truth = whole
    content, chance, results = path.read_bytes(), random.Random(seed), []
    places = cells(content)
    assert truth.keys() == places.keys()
    copy = tmp_path / "memory.db"
    for number in range(count):
        start, record, body, end = places[chance.randrange(1, COUNT + 1)]
        at = chance.randrange(*((start, record), (record, body), (body, end))[number % 3])
        damaged = bytearray(content)
        damaged[at] ^= 1 << chance.randrange(8)
        copy.write_bytes(damaged)
        results.append((at, *verdict(copy, truth)))
    assert [] == [each for each in results if each[1] or each[2]]
    # A damaged number of a row breaks the order of its page, so that SQLite may not find the rows beside it either.
    assert sum(each[3] for each in results) / count >= 0.99 * (COUNT - 1) / COUNT


def test_an_empty_text_of_another_type(whole, tmp_path):
    """An empty text that one flipped bit makes an empty blob is not shown, although both are empty in the checksum."""
    path, truth = whole
    content, copy = path.read_bytes(), tmp_path / "memory.db"
    _, record, body, _ = cells(content)[1]
    # The evidence is the only empty text: a memory of `full` has all others.
    (at,) = [at for at in range(record + 1, body) if content[at] == EMPTY_TEXT]
    copy.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    assert (0, 0) == verdict(copy, truth)[:2]


def test_an_owner_whose_row_is_gone(whole, tmp_path):
    """Versions of an owner whom another program removed under a write are an error that the store names."""
    copy = shutil.copy(whole[0], tmp_path / "memory.db")
    with contextlib.closing(apsw.Connection(str(copy))) as connection, pytest.raises(apsw.CorruptError):
        next_version(connection, (1, 99))


def test_a_vanished_row_is_noticed(whole, tmp_path):
    """The rows that an index is built from are counted: one that has vanished without a trace is noted."""
    copy, told = tmp_path / "memory.db", []
    shutil.copy(whole[0], copy)
    with contextlib.closing(apsw.Connection(str(copy))) as connection:
        connection.execute("DELETE FROM observations WHERE id = 7")
    with contextlib.closing(SqliteStore.open(copy, damaged=told.append)) as store:
        assert {7} == whole[1].keys() - {row.id for owner in (ANN, BOB) for row in store.changed(owner, 0, limit=COUNT)}
    assert [1] == told


@pytest.mark.parametrize("index", ["observations_by_time", "observations_by_version"])
def test_a_row_that_vanished_from_an_index_is_noticed(whole, tmp_path, index):
    """Where a page of an index has lost a row, loading an owner's memories notes it, and `check` names the index."""
    copy, told = tmp_path / "memory.db", []
    with contextlib.closing(apsw.Connection(str(whole[0]))) as connection:
        page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (index,)).get
    content = bytearray(whole[0].read_bytes())
    cells = (page - 1) * PAGE + 3
    content[cells : cells + 2] = (int.from_bytes(content[cells : cells + 2]) - 1).to_bytes(2)
    copy.write_bytes(content)
    with contextlib.closing(SqliteStore.open(copy, damaged=told.append)) as store:
        for owner in (ANN, BOB):
            store.changed(owner, 0, limit=COUNT)
        problems = store.check(None)

    assert [1] == told
    assert any(index in problem for problem in problems)


def test_the_health_of_a_memory_with_a_damaged_row(tmp_path):
    """The first damaged row that is met is an event, and the memory's health is degraded; others stay visible."""
    report = RecordingReport()
    services = RuntimeServices(report=report, clock=FrozenClock(NOW))
    location = SqliteLocation(state_folder=tmp_path)

    async def titles_there():
        runtime = await MemoryRuntime.open(Profile(embedding=EmbeddingSettings(provider="none")), location, services)
        found = await runtime.list(requests.ListRequest(visible=Filters(view=View(now=NOW)), limit=9))
        await runtime.close()
        return [memory.title for memory in found.memories]

    with contextlib.closing(SqliteStore.open(tmp_path / "memory.db")) as store:
        store.add([new(f"{number}000 euros", at=number) for number in range(3)], now=NOW - timedelta(days=1))
    with contextlib.closing(apsw.Connection(str(tmp_path / "memory.db"))) as connection:
        connection.execute("UPDATE observations SET title = '9000 euros' WHERE id = 2")

    assert ["2000 euros", "0000 euros"] == asyncio.run(titles_there())
    assert [("memory_rows_damaged", {})] == report.events
    assert ["damaged_rows"] == report.degradations


def test_the_health_is_degraded_until_a_check_finds_the_memory_whole(tmp_path):
    """Damage that one process met degrades the health of the next, which met none, until it is mended and checked."""
    location = SqliteLocation(state_folder=tmp_path)

    async def troubles(*, check=False, look=False):
        services = RuntimeServices(report=RecordingReport(), clock=FrozenClock(NOW))
        profile = Profile(embedding=EmbeddingSettings(provider="none"))
        async with await MemoryRuntime.open(profile, location, services) as runtime:
            if look:
                await runtime.list(requests.ListRequest(visible=Filters(view=View(now=NOW)), limit=9))
            if check:
                await runtime.inspect(requests.InspectionRequest(owners=(), figures=False, check=True))
            return services.troubles.now, services.report.degradations

    with contextlib.closing(SqliteStore.open(tmp_path / "memory.db")) as store:
        store.add([new("1000 euros")], now=NOW - timedelta(days=1))
    change = "UPDATE observations SET title = '{}000 euros'"
    with contextlib.closing(apsw.Connection(str(tmp_path / "memory.db"))) as connection:
        connection.execute(change.format(9))
        met, next_, checked = (asyncio.run(troubles(**asked)) for asked in ({"look": True}, {}, {"check": True}))
        connection.execute(change.format(1))
        mended, after = asyncio.run(troubles(check=True)), asyncio.run(troubles(look=True))
    degraded = (("damaged_rows",), ["damaged_rows"])
    assert [degraded] * 3 == [met, next_, checked]
    assert (((), ["damaged_rows"]), ((), [])) == (mended, after)


@pytest.mark.parametrize("column", ["title", "created_at", "store", "tags"])
def test_a_damaged_memory_is_forgotten(whole, tmp_path, column):
    """A reader of all stores can forget a damaged memory, and the store is whole afterwards; a lesser one cannot."""
    path, truth = whole
    copy, chance = tmp_path / "memory.db", random.Random(3)
    id_ = next(id_ for id_ in range(2, COUNT) if flipped(path, copy, chance, column, id_))
    owner = truth[id_].owner
    with contextlib.closing(SqliteStore.open(copy)) as store:
        assert [] == store.forget([id_], looking(owners=(owner,), stores=("social", "shared")), now=NOW)
        assert [] == store.forget([id_], looking(owners=(Owner(tenant="t", user="other"),)), now=NOW)
        assert [id_] == store.forget([id_], looking(owners=(owner,)), now=NOW)
        assert [] == store.check(None)
        assert COUNT // 2 - 1 == store.count(owner) == len(store.recent(looking(owners=(owner,)), limit=COUNT))


def test_a_damaged_memory_loses_the_excerpt_of_a_turn(tmp_path):
    """An excerpt is erased from a memory that fails its checksum too, and its other columns stay as they are."""
    path = tmp_path / "memory.db"
    turn = {"owner": ANN, "origin": "t1", "evidence": "said so"}
    with contextlib.closing(SqliteStore.open(path)) as store:
        store.add([new("damaged", **turn), new("whole", **turn)], now=NOW)
        with contextlib.closing(apsw.Connection(str(path))) as connection:
            connection.execute("UPDATE observations SET title = 'other' WHERE id = 1")
            dropped = store.drop_evidence(ANN, ["t1"], now=NOW)
            rows = connection.execute("SELECT title, evidence FROM observations ORDER BY id").fetchall()

    assert (2, [("other", ""), ("whole", "")]) == (dropped, rows)


def test_an_unreadable_memory_keeps_no_other_excerpt(tmp_path):
    """If SQLite cannot read a memory, the excerpts of its turn are erased from the other memories, and it is noted."""
    path, noted = tmp_path / "memory.db", []
    turn = {"owner": ANN, "origin": "t1", "evidence": "said so"}
    with contextlib.closing(SqliteStore.open(path)) as store:
        store.add([new("long", **turn, narrative=f"{'a' * 9000}END{'z' * 9000}"), new("whole", **turn)], now=NOW)
    content = bytearray(path.read_bytes())
    content[content.index(b"END" + b"z" * 50) // PAGE * PAGE] ^= 0x80
    path.write_bytes(content)
    with contextlib.closing(SqliteStore.open(path, damaged=noted.append)) as store:
        dropped = store.drop_evidence(ANN, ["t1"], now=NOW)
        left = store.get([2], looking(owners=(ANN,)))

    assert (1, [""], True) == (dropped, [each.evidence for each in left], bool(noted))
