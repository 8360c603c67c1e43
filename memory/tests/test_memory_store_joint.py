"""The database of a project and that of the person as one store: what every store must do, and which one holds what."""

import contextlib
from datetime import timedelta

import attrs
import pytest
from selection import campaign

from beaver_memory.records import Kept
from beaver_memory.store.joint import PERSONAL_IDS, JointStore
from beaver_memory.store.personal import PersonalStore
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.testing.store_cases import index
from beaver_memory.testing.store_cases.kit import NOW, looking, new
from beaver_memory.testing.stores import STORE_CASES

LATER = NOW + timedelta(minutes=10)
OF_INDEXES = {check.__name__ for check in index.CASES}
CASES = [case for case in STORE_CASES if case.name not in OF_INDEXES]
LONG = {"filters_alone_and_in_pairs", "terms_of_an_older_analyser"}
"""Cases that each database passes by itself, at length."""


class Asked(JointStore):
    """Answers what an index asks as well: of the person's database, where the memories of the suite are."""

    def __init__(self, folder):
        self.person = PersonalStore(folder / "person.db")
        super().__init__(SqliteStore.open(folder / "project.db"), self.person)

    def versions(self, owners, model=None):
        return self.person.made().versions(owners, model)

    def knows(self, items, *, now):
        return self.person.made().knows(items, now=now)

    def neighbours(self, at, id_, filters, *, before, after):
        found = self.person.made().neighbours(at, id_ - PERSONAL_IDS, filters, before=before, after=after)
        return tuple([*map(shown, each)] for each in found)

    def last_version(self, owner):
        return self.person.made().last_version(owner)

    def changed(self, owner, after, *, limit):
        rows = [shown(row) for row in self.person.made().changed(owner, after, limit=limit)]
        return [attrs.evolve(row, doubted_by=row.doubted_by and PERSONAL_IDS + row.doubted_by) for row in rows]

    def vectors(self, owner, model, after, *, limit):
        return [shown(row) for row in self.person.made().vectors(owner, model, after, limit=limit)]

    def unembedded(self, owner, model, project, *, limit):
        return [
            (PERSONAL_IDS + id_, text)
            for id_, text in self.person.made().unembedded(owner, model, project, limit=limit)
        ]

    def pending(self, owner, model, project):
        return self.person.made().pending(owner, model, project)

    def put_vectors(self, owner, model, vectors):
        self.person.made().put_vectors(owner, model, [(id_ - PERSONAL_IDS, data) for id_, data in vectors])


def shown(row):
    return attrs.evolve(row, id=PERSONAL_IDS + row.id)


@pytest.mark.parametrize(
    "case",
    [*(case for case in CASES if case.name not in LONG), *campaign(*(case for case in CASES if case.name in LONG))],
    ids=lambda case: case.name,
)
def test_two_databases_conform(case, tmp_path):
    """Each case of the suite that is not about indexes holds, and leaves two databases that are whole."""
    case.run(lambda: Asked(tmp_path))

    with contextlib.closing(Asked(tmp_path)) as store:
        assert [] == store.check(None)


def test_supersession_across_databases(tmp_path):
    """A global memory ends the person's memories, which name it, and the project's, which name no successor."""
    with contextlib.closing(
        JointStore(SqliteStore.open(tmp_path / "project.db"), PersonalStore(tmp_path / "person.db"))
    ) as store:
        leeds, york = store.add([new("Leeds", at=0, scope="project"), new("York", at=1)], now=NOW)
        kept = store.supersede(new("Bonn", at=5), [leeds, york], looking(), at=LATER, now=LATER)
        found = store.get([leeds, york], looking(lapsed=True))
        history = store.history(york, looking(lapsed=True))
        problems = store.check(None)

    assert (1, PERSONAL_IDS + 1) == (leeds, york)
    assert kept == Kept(id=PERSONAL_IDS + 2, outcome="stored", superseded=(leeds, york))
    assert [(each.valid_until, each.superseded_by) for each in found] == [(LATER, None), (LATER, kept.id)]
    assert [dict(each.new) for each in history] == [{}, {"valid_until": LATER, "superseded_by": kept.id}]
    assert problems == []
