"""Rules for memories that end in favour of a newer one."""

from datetime import timedelta
from typing import Any

import attrs

from beaver_memory.records import Change, Kept, Owner, Store
from beaver_memory.testing.store_cases.kit import NOW, OpenStore, agree, as_stored, looking, new, titles, using

AT = NOW + timedelta(minutes=5)
LATER = NOW + timedelta(minutes=10)


def supersession(open_store: OpenStore) -> None:
    """The newer memory and the ends of the older ones are stored together, and each of these names the newer one."""
    with using(open_store) as store:
        items = [new("Leeds", at=0), new("York", at=0), new("tea", at=0)]
        leeds, york, tea = store.add(items, now=NOW)
        kept = store.supersede(new("Bonn", at=5), [york, leeds, york], looking(now=LATER), at=AT, now=LATER)
        agree(Kept(id=tea + 1, outcome="stored", superseded=(york, leeds)), kept, "what is returned")
        ends: dict[str, Any] = {"valid_until": AT, "superseded_by": kept.id, "updated_at": LATER}
        wanted = [attrs.evolve(as_stored(items[place].memory, id_), **ends) for place, id_ in ((0, leeds), (1, york))]
        agree(wanted, store.get([leeds, york], looking(lapsed=True)), "what is stored")
        agree(["Bonn", "tea"], titles(store.recent(looking(), limit=9)), "what holds")
        agree(["tea", "York", "Leeds"], titles(store.recent(looking(as_of=NOW), limit=9)), "what held")
        old: dict[str, Any] = {"valid_until": None, "superseded_by": None}
        entry = Change(event="DELETE", at=LATER, old=old, new={"valid_until": AT, "superseded_by": kept.id})
        agree([Change(event="ADD", at=NOW), entry], store.history(leeds, looking(lapsed=True)), "history")
        agree([tea, kept.id, york, leeds], [row.id for row in store.changed(Owner(), 0, limit=9)], "new versions")
        agree([], store.check(None), "problems")


def supersession_by_a_known_memory(open_store: OpenStore) -> None:
    """A newer memory that the store has already is mentioned once more, and does not end itself."""
    with using(open_store) as store:
        leeds, bonn = store.add([new("Leeds"), new("Bonn")], now=NOW)
        kept = store.supersede(new("Bonn"), [bonn, leeds], looking(now=LATER), at=AT, now=LATER)
        agree(Kept(id=bonn, outcome="duplicate", mentions=2, superseded=(leeds,)), kept)
        agree(["Bonn"], titles(store.recent(looking(), limit=9)), "what holds")


def supersession_of_others(open_store: OpenStore) -> None:
    """A memory of another owner, of a hidden store, that has ended or that does not exist stays as it is."""
    with using(open_store) as store:
        items = [new("hers", owner=Owner(user="eve")), new("hidden", store=Store.PRIVATE), new("over", valid_until=NOW)]
        ids = store.add(items, now=NOW)
        both = (Owner(), Owner(user="eve"))
        seen = looking(owners=both, stores=(Store.SHARED,))
        before = store.get(ids, looking(owners=both, lapsed=True))
        kept = store.supersede(new("new", store=Store.SHARED), [*ids, 99, 0], seen, at=AT, now=LATER)
        agree((), kept.superseded)
        agree(before, store.get(ids, looking(owners=both, lapsed=True)))
        agree((), store.supersede(new("newer", owner=Owner(user="eve")), ids, looking(), at=AT, now=LATER).superseded)
        agree((), store.supersede(new("newest"), ids, looking(stores=()), at=AT, now=LATER).superseded)


def forgotten_successor(open_store: OpenStore) -> None:
    """A memory whose successor is forgotten stays ended, names none any more, and says so in its history."""
    with using(open_store) as store:
        leeds, york = store.add([new("Leeds"), new("York", store=Store.SOCIAL)], now=NOW)
        bonn = store.supersede(new("Bonn"), [leeds, york], looking(now=LATER), at=AT, now=LATER).id
        rome = store.supersede(new("Rome"), [bonn], looking(now=LATER), at=LATER, now=LATER).id
        agree([bonn], store.forget([bonn], looking(stores=(Store.PRIVATE,), lapsed=True), now=LATER))
        found = store.get([leeds, york], looking(lapsed=True))
        agree([(AT, None), (AT, None)], [(each.valid_until, each.superseded_by) for each in found])
        entry = Change(event="UPDATE", at=LATER, old={"superseded_by": bonn}, new={"superseded_by": None})
        agree(entry, store.history(leeds, looking(lapsed=True))[-1])
        agree(["Rome"], titles(store.recent(looking(), limit=9)), "what holds")
        agree([leeds, york, rome], store.forget([leeds, york, rome], looking(lapsed=True), now=LATER))
        agree([], store.check(None), "problems")


def doubt(open_store: OpenStore) -> None:
    """A memory keeps the newer one that doubts it, with its history and in its row for an index, and still holds."""
    with using(open_store) as store:
        items = [new("Leeds", at=0), new("York", at=1)]
        leeds, york = store.add(items, now=NOW)
        store.change(leeds, looking(), event="UPDATE", now=LATER, doubted_by=york)
    with using(open_store) as store:
        wanted = attrs.evolve(as_stored(items[0].memory, leeds), doubted_by=york, updated_at=LATER)
        agree([wanted], store.get([leeds], looking()), "what is stored")
        agree(["York", "Leeds"], titles(store.recent(looking(), limit=9)), "what holds")
        entry = Change(event="UPDATE", at=LATER, old={"doubted_by": None}, new={"doubted_by": york})
        agree([Change(event="ADD", at=NOW), entry], store.history(leeds, looking()), "history")
        agree([None, york], [row.doubted_by for row in store.changed(Owner(), 0, limit=9)], "in rows for an index")
        agree([], store.check(None), "problems")


def forgotten_doubt(open_store: OpenStore) -> None:
    """A memory whose doubt is forgotten is doubted no more; a forgotten memory keeps nothing of its own doubt."""
    with using(open_store) as store:
        leeds, york, bonn, rome = store.add([new("Leeds"), new("York"), new("Bonn"), new("Rome")], now=NOW)
        for old, newer in ((leeds, york), (bonn, rome)):
            store.change(old, looking(), event="UPDATE", now=NOW, doubted_by=newer)
        agree([york, bonn], store.forget([york, bonn], looking(), now=LATER))
        agree([None, None], [each.doubted_by for each in store.get([leeds, rome], looking())])
        agree([None] * 4, [row.doubted_by for row in store.changed(Owner(), 0, limit=9)], "in rows for an index")
        entry = Change(event="UPDATE", at=LATER, old={"doubted_by": york}, new={"doubted_by": None})
        agree(entry, store.history(leeds, looking())[-1], "history")
        agree([], store.check(None), "problems")


CASES = (
    supersession,
    supersession_by_a_known_memory,
    supersession_of_others,
    forgotten_successor,
    doubt,
    forgotten_doubt,
)
