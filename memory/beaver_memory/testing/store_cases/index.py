"""Rules for the questions of an index: changes, embeddings, versions."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from beaver_memory.records import Owner
from beaver_memory.store.protocol import Analysed, IndexRow, SingleStore
from beaver_memory.testing.store_cases.kit import NOW, OpenStore, agree, holds, last_vector, looking, new, using
from beaver_memory.testing.store_cases.memories import FULL
from beaver_memory.views import ALL_PROJECTS

ME = Owner()


def all_that_an_index_needs(open_store: OpenStore) -> None:
    """A row for an index holds terms, labels and the values for ranking."""
    with using(open_store) as store:
        (id_,) = store.add([Analysed(memory=FULL, terms=b"\0packed", length=4)], now=NOW)
        (found,) = store.changed(FULL.owner, 0, limit=9)
        labels = (
            *("store:social", "type:fact", "scope:session", "project:p", "session:s", "agent:a", "source:user"),
            *("tag:x", "tag:y", "person:ann", "file:src/a.py", "dir:src"),
        )
        wanted = IndexRow(
            id=id_,
            version=found.version,
            terms=b"\0packed",
            length=4,
            labels=found.labels,
            session="s",
            speaker="Ann",
            created=(NOW - timedelta(days=1, microseconds=1)).timestamp(),
            updated=NOW.timestamp(),
            expires=(NOW + timedelta(days=1)).timestamp(),
            valid_from=(NOW - timedelta(days=2)).timestamp(),
            valid_until=(NOW + timedelta(days=2)).timestamp(),
            importance=0.75,
            confidence=0.25,
            pinned=True,
            uid=bytes.fromhex(FULL.uid),
        )
        agree(wanted, found)
        agree(sorted(labels), sorted(found.labels), "labels")


def times_that_are_not_given(open_store: OpenStore) -> None:
    """A memory without a time of validity holds always."""
    with using(open_store) as store:
        store.add([new("x")], now=NOW)
        (row,) = store.changed(ME, 0, limit=9)
        always, never = float("-inf"), float("inf")
        agree((always, never, never), (row.valid_from, row.valid_until, row.expires))


def caught_up_in_steps(open_store: OpenStore) -> None:
    """An index that asks in steps gets every change once, in order, and then no more."""
    with using(open_store) as store:
        ids = store.add([new(f"m{number}") for number in range(5)], now=NOW)
        store.change(ids[1], looking(), event="PIN", now=NOW, pinned=True)
        store.forget([ids[3]], looking(), now=NOW)
        version, steps = 0, 0
        seen: list[int] = []
        while rows := store.changed(ME, version, limit=2):
            seen += [row.id for row in rows]
            version, steps = rows[-1].version, steps + 1
        agree(([ids[0], ids[2], ids[4], ids[1], ids[3]], 3), (seen, steps))
        agree(version, store.last_version(ME))


def versions_across_writers(open_store: OpenStore) -> None:
    """Several openings write at once: no version is given twice, and a reader that has caught up misses no change."""

    def write(number: int) -> None:
        with using(open_store) as store:
            for step in range(10):
                (id_,) = store.add([new(f"w{number} {step}")], now=NOW)
                store.put_vectors(ME, "m", [(id_, b"v")])
                store.change(id_, looking(), event="PIN", now=NOW, pinned=True)

    with using(open_store) as reader:
        with ThreadPoolExecutor(4) as threads:
            running = [threads.submit(write, number) for number in range(4)]
            seen = _caught_up(reader, lambda: all(each.done() for each in running))
            for each in running:
                each.result()
        rows = reader.changed(ME, 0, limit=100)
        versions = [row.version for row in rows]
        versions += [row.version for row in reader.vectors(ME, "m", 0, limit=100)]
        agree((40, 80), (len(rows), len(set(versions))))
        agree({row.id: row.version for row in rows}, seen, "what was seen while others wrote")


def _caught_up(reader: SingleStore, done: Callable[[], bool]) -> dict[int, int]:
    """Follow the changes until all are done and seen; return the last version seen of each memory."""
    version = 0
    seen: dict[int, int] = {}
    while True:
        finished = done()
        for row in reader.changed(ME, version, limit=7):
            version = seen[row.id] = row.version
        if finished and version == reader.last_version(ME):
            return seen


def embeddings_by_model(open_store: OpenStore) -> None:
    """Embeddings of two models coexist; another one by the same model replaces the first."""
    with using(open_store) as store:
        ids = store.add([new("a", at=1), new("b", at=3), new("c", at=2)], now=NOW)
        agree([(ids[1], "b"), (ids[2], "c")], store.unembedded(ME, "m", ALL_PROJECTS, limit=2), "newest first")
        store.put_vectors(ME, "m", [(ids[0], b"a1"), (ids[1], b"b1")])
        store.put_vectors(ME, "n", [(ids[0], b"other")])
        agree([(ids[2], "c")], store.unembedded(ME, "m", ALL_PROJECTS, limit=9))
        agree([ids[1], ids[2]], [id_ for id_, _ in store.unembedded(ME, "n", ALL_PROJECTS, limit=9)])
        first = store.vectors(ME, "m", 0, limit=1)
        agree([(ids[0], b"a1")], [(row.id, row.data) for row in first])
        store.put_vectors(ME, "m", [(ids[0], b"a2")])
        rows = store.vectors(ME, "m", first[0].version, limit=9)
        agree([(ids[1], b"b1"), (ids[0], b"a2")], [(row.id, row.data) for row in rows])
        agree(rows[-1].version, last_vector(store, ME, "m"))
        agree(2, store.drop_vectors("m"), "drop_vectors")
        agree(([], 0), (store.vectors(ME, "m", 0, limit=9), last_vector(store, ME, "m")))
        agree([b"other"], [row.data for row in store.vectors(ME, "n", 0, limit=9)])
        agree(3, len(store.unembedded(ME, "m", ALL_PROJECTS, limit=9)), "what the dropped model has to do")


def embeddings_of_new_memories(open_store: OpenStore) -> None:
    """A memory that is added while a model is in use waits for its embedding by that model."""
    with using(open_store) as store:
        agree([], store.unembedded(ME, "m", ALL_PROJECTS, limit=9))
        (id_,) = store.add([new("title", narrative="story", facts=("fact",), summary="no", keywords=("no",))], now=NOW)
        agree([(id_, "title\nstory\nfact")], store.unembedded(ME, "m", ALL_PROJECTS, limit=9))
        store.put_vectors(ME, "m", [(id_, b"1")])
        agree([], store.unembedded(ME, "m", ALL_PROJECTS, limit=9))


def embeddings_by_id(open_store: OpenStore) -> None:
    """Embeddings are read by the ids of memories of one tenant, of any length, until the memory is forgotten."""
    you, far = Owner(user="u"), Owner(tenant="t")
    long = bytes(range(256)) * 130
    with using(open_store) as store:
        mine, gone, bare = store.add([new("a"), new("b"), new("c")], now=NOW)
        (yours,) = store.add([new("d", owner=you)], now=NOW)
        (theirs,) = store.add([new("e", owner=far)], now=NOW)
        store.put_vectors(ME, "m/tokens", [(mine, long), (gone, b"\xff\xff!")])
        store.put_vectors(you, "m/tokens", [(yours, b"odd")])
        store.put_vectors(far, "m/tokens", [(theirs, b"far")])
        wanted = [mine, gone, bare, yours, 999, -1, 2**80]
        agree({mine: long, gone: b"\xff\xff!", yours: b"odd"}, store.vectors_of(wanted, "m/tokens", tenant=""), "by id")
        agree({theirs: b"far"}, store.vectors_of([theirs], "m/tokens", tenant="t"), "of another tenant")
        agree({}, store.vectors_of(wanted, "m", tenant=""), "another model")
        agree({}, store.vectors_of(wanted, "m/tokens", tenant="nowhere"), "an unknown tenant")
        store.forget([gone], looking(), now=NOW)
        agree([mine, yours], sorted(store.vectors_of(wanted, "m/tokens", tenant="")), "without the forgotten one")


def versions_of_owners(open_store: OpenStore) -> None:
    """One question returns each owner's newest change and newest embedding; 0 if there is none."""
    you = Owner(user="u")
    with using(open_store) as store:
        agree([], store.versions([]))
        agree([(0, 0), (0, 0)], store.versions([ME, you], "m"))
        mine, other = store.add([new("a"), new("b")], now=NOW)
        (yours,) = store.add([new("c", owner=you)], now=NOW)
        store.put_vectors(ME, "m", [(mine, b"1"), (other, b"2")])
        store.put_vectors(you, "n", [(yours, b"3")])
        mine_now, yours_now = store.last_version(ME), store.last_version(you)
        newest = store.vectors(ME, "m", 0, limit=9)[-1].version
        agree([(yours_now, 0), (mine_now, newest)], store.versions([you, ME], "m"))
        agree([(mine_now, 0), (yours_now, 0)], store.versions([ME, you]))
        store.change(other, looking(), event="UPDATE", now=NOW, title="d", terms=b"d", length=1)
        store.forget([yours], looking(owners=(you,)), now=NOW)
        holds(store.last_version(ME) > mine_now and store.last_version(you) > yours_now, "new versions")
        after = [(store.last_version(ME), store.vectors(ME, "m", 0, limit=9)[-1].version), (store.last_version(you), 0)]
        agree(after, store.versions([ME, you], "m"))


def pending_by_model(open_store: OpenStore) -> None:
    """The memories of an owner without an embedding are counted; by an unused model all are without."""
    you = Owner(user="u")
    with using(open_store) as store:
        ids = store.add([new("a"), new("b")], now=NOW)
        store.add([new("c", owner=you)], now=NOW)
        each = (ME, you, Owner(user="nobody"))
        agree([2, 1, 0], [store.pending(owner, "m", ALL_PROJECTS) for owner in each])
        store.put_vectors(ME, "m", [(ids[0], b"1")])
        agree([1, 1, 0], [store.pending(owner, "m", ALL_PROJECTS) for owner in each])
        agree(2, store.pending(ME, "n", ALL_PROJECTS), "another model")
        store.change(ids[0], looking(), event="UPDATE", now=NOW, title="d", terms=b"d", length=1)
        store.forget([ids[1]], looking(), now=NOW)
        agree(
            [1, 1, 0], [store.pending(owner, "m", ALL_PROJECTS) for owner in each], "a new text, and one that is gone"
        )
        store.drop_vectors("m")
        agree(1, store.pending(ME, "m", ALL_PROJECTS), "a model that was dropped")


def embeddings_of_a_project(open_store: OpenStore) -> None:
    """A project embeds its own memories and the global ones; outside of any project only these are embedded."""
    with using(open_store) as store:
        mine, theirs = (new(f"of {name}", scope="project", project=name) for name in ("mine", "theirs"))
        ids = store.add([mine, theirs, new("everywhere")], now=NOW)
        wanted = {"mine": ["everywhere", "of mine"], "theirs": ["everywhere", "of theirs"], None: ["everywhere"]}
        for project, texts in wanted.items():
            agree(texts, sorted(text for _, text in store.unembedded(ME, "m", project, limit=9)), f"of {project}")
            agree(len(texts), store.pending(ME, "m", project), f"pending of {project}")
        agree(3, len(store.unembedded(ME, "m", ALL_PROJECTS, limit=9)), "of all projects")
        store.put_vectors(ME, "m", [(ids[0], b"1"), (ids[2], b"3")])
        agree([0, 1, 0], [store.pending(ME, "m", project) for project in wanted], "what is left")


def embeddings_of_texts_that_have_changed(open_store: OpenStore) -> None:
    """An embedding of an earlier text is not stored, and the memory waits for another one."""
    with using(open_store) as store:
        ids = store.add([new("a"), new("b", narrative="long"), new("c")], now=NOW)
        texts = dict(store.unembedded(ME, "m", ALL_PROJECTS, limit=9))
        with using(open_store) as other:
            other.change(ids[0], looking(), event="UPDATE", now=NOW, title="d", terms=b"d", length=1)
            other.change(ids[1], looking(), event="PIN", now=NOW, pinned=True)
        store.put_vectors(ME, "m", [(id_, b"v") for id_ in ids[:2]], texts=texts)
        agree([ids[1]], [row.id for row in store.vectors(ME, "m", 0, limit=9)], "what says the same is kept")
        agree({ids[0]: "d", ids[2]: "c"}, dict(store.unembedded(ME, "m", ALL_PROJECTS, limit=9)))


def embeddings_of_other_terms(open_store: OpenStore) -> None:
    """If only the terms of a memory change, its embedding stays, and is new to a reader that has read it already."""
    with using(open_store) as store:
        ids = store.add([new("a"), new("b")], now=NOW)
        store.put_vectors(ME, "m", [(id_, b"v") for id_ in ids])
        store.put_vectors(ME, "n", [(ids[0], b"w")])
        known = [last_vector(store, ME, model) for model in "mn"]
        store.change(ids[1], looking(), event="PIN", now=NOW, pinned=True)
        agree(known, [last_vector(store, ME, model) for model in "mn"], "what has the same terms")
        store.change(ids[0], looking(), event="UPDATE", now=NOW, tags=("x",), terms=b"x", length=1)
        newer = [store.vectors(ME, model, version, limit=9) for model, version in zip("mn", known, strict=True)]
        agree([[(ids[0], b"v")], [(ids[0], b"w")]], [[(row.id, row.data) for row in rows] for rows in newer])
        agree([1, 0], [len(store.unembedded(ME, model, ALL_PROJECTS, limit=9)) for model in "nm"], "what waits")
        agree([], store.check(None))


def identity_and_numbers(open_store: OpenStore) -> None:
    """A store has one identity for ever, counts its contents, and is whole."""
    with using(open_store) as store:
        identity = store.identity
        ids = store.add([new("a", type="fact"), new("b", store="shared"), new("c", owner=Owner(user="u"))], now=NOW)
        store.put_vectors(ME, "m", [(ids[0], b"1")])
        store.forget([ids[1]], looking(), now=NOW)
        found = dict(store.stats(None))
        holds(found.pop("bytes") > 0)
        wanted = {
            "memories": 2,
            "forgotten": 1,
            "owners": 2,
            "stores": {"private": 2},
            "types": {"fact": 1, "discovery": 1},
            "embeddings": {"m": 1},
        }
        agree(wanted, found)
        agree([], store.check(None))
    with using(open_store) as store:
        agree((identity, 2, [ME, Owner(user="u")]), (store.identity, store.stats(None)["memories"], store.owners(None)))
        store.close()
        store.close()


CASES = (
    all_that_an_index_needs,
    times_that_are_not_given,
    caught_up_in_steps,
    versions_across_writers,
    embeddings_by_model,
    embeddings_by_id,
    embeddings_of_new_memories,
    embeddings_of_texts_that_have_changed,
    embeddings_of_other_terms,
    versions_of_owners,
    pending_by_model,
    embeddings_of_a_project,
    identity_and_numbers,
)
