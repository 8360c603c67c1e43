"""Each store against a dictionary: whatever is done in whatever order, both hold the same, and no tenant sees another.

`BEAVER_STORE_RUNS` says how many times the machine runs, and `BEAVER_STORE_STEPS` how many steps each run has.
"""

import contextlib
import itertools
import os
import re
import sys
from datetime import timedelta

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule, run_state_machine_as_test
from memory_stores import NAMES, STORES
from selection import campaign

from beaver_memory.patterns import Pattern
from beaver_memory.records import Owner
from beaver_memory.testing.store_cases.kit import NOW, as_stored, looking, new
from beaver_memory.testing.store_cases.reference import may_be_seen

RUNS = int(os.environ.get("BEAVER_STORE_RUNS", settings.default.max_examples // 4))
STEPS = int(os.environ.get("BEAVER_STORE_STEPS", "25"))
TENANTS = (("acme", ("a", "b")), ("beta", ("a",)))
OWNERS = tuple(Owner(tenant=tenant, user=user) for tenant, users in TENANTS for user in users)
# Python and SQLite disagree whether unassigned and private characters belong to a word.
TITLES = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs", "Cn", "Co"]), min_size=1, max_size=20
).filter(lambda text: text.strip())
TAGS = st.lists(st.sampled_from(["x", "y", "z"]), max_size=3).map(tuple)
ITEMS = st.builds(
    new,
    TITLES,
    at=st.integers(-50, 50),
    owner=st.sampled_from(OWNERS),
    store=st.sampled_from(["private", "shared", "social"]),
    tags=TAGS,
    related_people=st.lists(st.sampled_from(["Ann", "ANN", "Bob"]), max_size=2),
    related_files=st.lists(st.sampled_from(["a/b", "a/c", "/a"]), max_size=2),
    expires_at=st.none() | st.integers(1, 100).map(lambda hours: NOW + timedelta(hours=hours)),
)
VIEWS = st.builds(
    looking,
    owners=st.sampled_from([(), OWNERS[:1], OWNERS[:2], OWNERS[2:]]),
    stores=st.lists(st.sampled_from(["private", "shared", "social"])),
    tags=TAGS,
    people=st.sampled_from([(), ("ann",), ("bob", "ann")]),
    file=st.sampled_from(["", "a", "a/b", "/"]),
    now=st.integers(1, 60).map(lambda hours: NOW + timedelta(hours=hours)),
)


class Stores(RuleBasedStateMachine):
    """Adds, changes, forgets and asks; reopens now and then; an index follows it all.

    The dictionary names a memory by its tenant and its id, as each tenant counts its own ids.
    """

    ids = Bundle("ids")

    def __init__(self, name):
        super().__init__()
        self.data = contextlib.ExitStack()
        self.open_store = self.data.enter_context(STORES[name]())
        self.store = self.open_store()
        self.model, self.vectors, self.version = {}, {}, dict.fromkeys(OWNERS, 0)
        self.index = {owner: {} for owner in OWNERS}

    def teardown(self):
        problems = self.store.check(None)
        self.store.close()
        self.data.close()
        assert [] == problems

    def seen_in(self, view):
        """Return the memories that a view lets through, by id."""
        return {id_: memory for (_, id_), memory in self.model.items() if may_be_seen(memory, view)}

    @rule(target=ids, items=st.lists(ITEMS, max_size=4))
    def add(self, items):
        ids = self.store.add(items, now=NOW)
        keys = [(item.memory.owner.tenant, id_) for id_, item in zip(ids, items, strict=True)]
        assert not {*keys} & self.model.keys()
        assert len(keys) == len({*keys})
        self.model |= {key: as_stored(item.memory, key[1]) for key, item in zip(keys, items, strict=True)}
        return multiple(*ids)

    @rule(id_=ids, view=VIEWS, tags=TAGS, pinned=st.booleans(), at=st.none() | st.integers(-50, 50))
    def change(self, id_, view, tags, pinned, at):
        fields = {"tags": tags, "pinned": pinned}
        if at is not None:
            fields["created_at"] = NOW + timedelta(minutes=at)
        wanted, old = None, self.seen_in(view).get(id_)
        if old is not None:
            wanted = attrs.evolve(old, **fields)
            if wanted != old:
                wanted = attrs.evolve(wanted, updated_at=view.view.now)
            self.model[view.view.tenant, id_] = wanted
        assert wanted == self.store.change(id_, view, event="UPDATE", now=view.view.now, **fields)

    @rule(id_=ids, newer=ids, view=VIEWS)
    def doubt(self, id_, newer, view):
        visible = self.seen_in(view)
        if {id_, newer} <= visible.keys() and visible[id_].owner == visible[newer].owner:
            wanted = visible[id_]
            if wanted.doubted_by != newer:
                wanted = attrs.evolve(wanted, doubted_by=newer, updated_at=view.view.now)
            self.model[view.view.tenant, id_] = wanted
            assert wanted == self.store.change(id_, view, event="UPDATE", now=view.view.now, doubted_by=newer)

    @rule(ids_=st.lists(ids, max_size=3), view=VIEWS)
    def forget(self, ids_, view):
        visible = self.seen_in(view)
        gone = [id_ for id_ in dict.fromkeys(ids_) if id_ in visible]
        assert gone == self.store.forget(ids_, view, now=view.view.now)
        for id_ in gone:
            self.model[view.view.tenant, id_] = attrs.evolve(visible[id_], deleted_at=view.view.now)
            self.vectors.pop((view.view.tenant, id_), None)
        for key, memory in self.model.items():
            if key[0] == view.view.tenant and memory.deleted_at is None and memory.doubted_by in gone:
                self.model[key] = attrs.evolve(memory, doubted_by=None, updated_at=view.view.now)

    @rule(id_=ids, owner=st.sampled_from(OWNERS), data=st.binary(min_size=1, max_size=4))
    def embed(self, id_, owner, data):
        self.store.put_vectors(owner, "m", [(id_, data)])
        memory = self.model.get((owner.tenant, id_))
        if memory is not None and memory.owner == owner and memory.deleted_at is None:
            self.vectors[owner.tenant, id_] = data

    @rule(view=VIEWS)
    def matching(self, view):
        found = self.store.matching([Pattern(text="a")], view, limit=99)
        visible = self.seen_in(view)
        wanted = {id_ for id_, memory in visible.items() if re.search(r"(?i)(?<!\w)a(?!\w)", memory.title)}
        assert wanted <= {*found} <= {*visible}

    @rule(view=VIEWS, limit=st.integers(0, 5))
    def recent(self, view, limit):
        wanted = [*self.seen_in(view).values()]
        wanted.sort(key=lambda memory: (memory.created_at, memory.id), reverse=True)
        assert wanted[:limit] == self.store.recent(view, limit=limit)

    @rule(view=VIEWS, ids_=st.lists(ids, max_size=5))
    def get(self, view, ids_):
        visible = self.seen_in(view)
        wanted = [visible[id_] for id_ in dict.fromkeys(ids_) if id_ in visible]
        assert wanted == self.store.get(ids_, view)

    @rule()
    def reopen(self):
        self.store.close()
        self.store = self.open_store()

    @rule(owner=st.sampled_from(OWNERS), limit=st.integers(1, 3))
    def catch_up(self, owner, limit):
        index = self.index[owner]
        while rows := self.store.changed(owner, self.version[owner], limit=limit):
            assert all(row.version > self.version[owner] for row in rows)
            self.version[owner] = rows[-1].version
            index |= {row.id: row for row in rows}
        assert self.version[owner] == self.store.last_version(owner)
        live = {memory.id: memory for memory in self.live() if memory.owner == owner}
        assert {*live} == {id_ for id_, row in index.items() if not row.gone}
        every = {memory.id: bytes.fromhex(memory.uid) for memory in self.model.values() if memory.owner == owner}
        assert every == {id_: row.uid for id_, row in index.items()}
        for id_, memory in live.items():
            assert memory.doubted_by == index[id_].doubted_by
            tags = {label for label in index[id_].labels if label.startswith("tag:")}
            assert {f"tag:{tag}" for tag in memory.tags} == tags

    def live(self):
        return [memory for memory in self.model.values() if memory.deleted_at is None]

    @invariant()
    def numbers(self):
        counts = {owner: sum(memory.owner == owner for memory in self.live()) for owner in OWNERS}
        assert counts == {owner: self.store.count(owner) for owner in OWNERS}
        vectors = {
            (owner.tenant, row.id): row.data for owner in OWNERS for row in self.store.vectors(owner, "m", 0, limit=999)
        }
        assert self.vectors == vectors


@pytest.mark.parametrize("name", [*(name for name in NAMES if name != "postgres"), *campaign("postgres")])
def test_stores(name):
    """A store and a dictionary agree after every step, and the store is whole at the end."""
    long, runs = settings(max_examples=RUNS, stateful_step_count=STEPS), itertools.count()

    def machine():
        next(runs)
        return Stores(name)

    run_state_machine_as_test(machine, settings=long)
    sys.stdout.write(f"{name}: {next(runs)} runs of at most {STEPS} steps\n")


@pytest.mark.parametrize("name", NAMES)
def test_the_machine_asks_real_questions(name):
    """The reference that the machine trusts hides what the store hides."""
    with STORES[name]() as open_store, contextlib.closing(open_store()) as store:
        item = new("x", store="social")
        (id_,) = store.add([item], now=NOW)
        (memory,) = store.get([id_], looking())
        assert (True, False) == (may_be_seen(memory, looking()), may_be_seen(memory, looking(stores=("shared",))))
