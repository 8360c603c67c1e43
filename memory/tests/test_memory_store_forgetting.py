"""A forgotten memory is gone from the files, byte by byte."""

import contextlib
import random
import stat
import string

import pytest
from selection import campaign

from beaver_memory.errors import StoreError
from beaver_memory.patterns import Pattern
from beaver_memory.records import Owner
from beaver_memory.store.fingerprint import digests
from beaver_memory.store.protocol import Analysed
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.testing.store_cases.kit import NOW, looking, new


def canary(chance):
    return "".join(chance.choices(string.ascii_lowercase, k=16))


def loaded(chance, words):
    """Return a memory that says a secret in every field."""
    filler = " ".join(chance.choices(words, k=chance.randrange(5, 300)))
    secret = {name: canary(chance) for name in ("narrative", "summary", "project", "session", "agent", "speaker")}
    secret |= {name: canary(chance) for name in ("source", "origin", "type")}
    lists = {name: (canary(chance), canary(chance)) for name in ("facts", "tags", "keywords", "related_people")}
    title, terms, path = f"{canary(chance)} {filler}", canary(chance), f"{canary(chance)}/{canary(chance)}"
    memory = new(title, **(secret | {"narrative": f"{secret['narrative']} {filler}"}), **lists, related_files=(path,))
    texts = [*secret.values(), *(text for each in lists.values() for text in each), *path.split("/"), terms]
    texts.append(title.split(maxsplit=1)[0])
    return Analysed(memory=memory.memory, terms=terms.encode(), length=1), texts


def content(folder):
    """Return all bytes of the store's files."""
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()) if not path.name.endswith("-shm"))


@pytest.mark.shows("003-092", "003-108", "003-118")
@pytest.mark.parametrize("indexed", [0.5, *campaign(0.0, 1.0)])
@pytest.mark.parametrize(("seed", "count"), [(1, 1), (2, 30), *campaign((3, 300))])
def test_nothing_of_it_is_left(tmp_path, seed, count, indexed):
    """No file keeps a text, term, label, vector or old version of a forgotten memory, however far the word index is."""
    chance = random.Random(seed)
    words = [canary(chance)[:8] for _ in range(2000)]
    with contextlib.closing(SqliteStore.open(tmp_path / "memory.db")) as store:
        made = [loaded(chance, words) for _ in range(count)]
        ids = []
        for place, (item, _) in enumerate(made):
            ids += store.add([item], now=NOW)
            if place == round(indexed * count) - 1:
                assert [] == store.matching([Pattern(text="nothing")], looking(), limit=1)
        secrets = dict(zip(ids, (texts for _, texts in made), strict=True))
        for id_ in ids:
            vector, title = canary(chance), canary(chance)
            store.put_vectors(Owner(), "m", [(id_, vector.encode())])
            changed = {"title": title, "terms": title.encode(), "length": 1}
            store.change(id_, looking(), event="UPDATE", now=NOW, **changed)
            store.put_vectors(Owner(), "m", [(id_, vector.encode() * 2)])
            secrets[id_] += [vector, title]
        before = content(tmp_path)
        gone = chance.sample(ids, max(count // 3, 1))
        for start in range(0, len(gone), 7):
            store.forget(gone[start : start + 7], looking(), now=NOW)
        after = content(tmp_path)
        assert [] == store.check(None)
        known = {memory.id: memory.facts for memory in store.get(ids, looking())}
    # The bytes would have shown it.
    assert all(any(secret.encode() in before for secret in secrets[id_]) for id_ in gone)
    left = [secret for id_ in gone for secret in secrets[id_] if secret.encode() in after]
    assert [] == left
    stems = [secret for id_ in gone for secret in secrets[id_] if secret[:12].encode() in after]
    assert [] == stems
    assert {*ids} - {*gone} == known.keys()
    assert all({*facts} <= {*secrets[id_]} for id_, facts in known.items())


@pytest.mark.shows("003-092")
def test_that_it_was_forgotten_is_known(tmp_path):
    """The file still tells that a memory was forgotten, when, and what happened to it, without content."""
    with contextlib.closing(SqliteStore.open(tmp_path / "memory.db")) as store:
        (id_,) = store.add([new("secret", tags=("t",))], now=NOW)
        store.change(id_, looking(), event="PIN", now=NOW, pinned=True)
        store.forget([id_], looking(), now=NOW)
        with store._connector.reading() as connection:
            entries = connection.execute("SELECT event, old, new FROM observation_history ORDER BY row").fetchall()
        assert [("PIN", "{}", "{}"), ("FORGET", "{}", "{}")] == entries
        assert 1 == store.stats(None)["forgotten"]


def test_a_log_that_somebody_reads(tmp_path):
    """While another reader holds the log, forgetting succeeds; the next one to forget empties it."""
    with contextlib.closing(SqliteStore.open(tmp_path / "memory.db")) as store:
        first, second = store.add([new("qqqqqqqqqqqq"), new("zzzzzzzzzzzz")], now=NOW)
        with store._connector.reading() as reader:
            assert 2 == reader.execute("SELECT count(*) FROM observations").get
            assert [first] == store.forget([first], looking(), now=NOW)
            assert [second] == [memory.id for memory in store.recent(looking(), limit=9)]
        assert [second] == store.forget([second], looking(), now=NOW)
        assert (False, False) == (b"qqqqqqq" in content(tmp_path), b"zzzzzzz" in content(tmp_path))


# --- The key of the hashes of forgotten texts -----------------------------------------------------------------------

ULM = "I live in Ulm."


def test_a_guess_cannot_be_tested_without_the_key(tmp_path):
    """The key is a private file beside the database; without it, or with another one, the database knows no text."""
    path, key = tmp_path / "memory.db", tmp_path / "memory.db.key"
    with contextlib.closing(SqliteStore.open(path)) as store:
        store.add([new("left")], now=NOW)
        assert (set(), False) == (store.forgotten(Owner(), [ULM]), key.exists())
        store.mark_forgotten(Owner(), [ULM])
    made, mode = key.read_bytes(), stat.S_IMODE(key.stat().st_mode)
    with contextlib.closing(SqliteStore.open(path)) as store:
        known = [store.forgotten(Owner(), [ULM])]
        for other in (None, bytes(32), made):
            key.unlink(missing_ok=True)
            if other is not None:
                key.write_bytes(other)
            known.append(store.forgotten(Owner(), [ULM]))
        store.mark_forgotten(Owner(), ["another"])
        identity = store.identity

    assert [{ULM}, set(), set(), {ULM}] == known
    assert (32, made) == (len(made), key.read_bytes())
    guesses = [digests(each, Owner(), [ULM])[ULM] for each in (made, identity.encode(), b"")]
    assert [True, False, False] == [each in content(tmp_path) for each in guesses]
    assert 0o600 == mode
    assert 3 == len({digests(made, owner, [ULM])[ULM] for owner in (Owner(), Owner(user="a"), Owner(tenant="a"))})


@pytest.mark.parametrize(
    ("spoil", "category"),
    [
        (lambda key: key.write_bytes(b"short"), "corrupt"),
        (lambda key: key.mkdir(), "cannot_open"),
        (lambda key: key.symlink_to("elsewhere"), "cannot_open"),
    ],
)
def test_a_key_that_cannot_be_used_is_an_error(tmp_path, spoil, category):
    """A key file that is cut off, or no file, is refused, so that no text counts as never forgotten."""
    key = tmp_path / "memory.db.key"
    spoil(key)
    with contextlib.closing(SqliteStore.open(tmp_path / "memory.db")) as store:
        for ask in (store.forgotten, store.mark_forgotten):
            with pytest.raises(StoreError) as raised:
                ask(Owner(), [ULM])
            assert (key, category) == (raised.value.place, raised.value.category)


def test_a_key_that_cannot_be_made_is_an_error(tmp_path, monkeypatch):
    """If the disk takes no key file, nothing is marked, and the error names the file."""

    def full(*_):
        raise OSError(28, "No space left on device")

    with contextlib.closing(SqliteStore.open(tmp_path / "memory.db")) as store:
        monkeypatch.setattr("beaver_memory.store.sqlite.turn_queue.create_once", full)
        with pytest.raises(StoreError, match=r"memory\.db\.key"):
            store.mark_forgotten(Owner(), [ULM])
