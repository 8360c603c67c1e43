"""Rules for the names that memories keep in every copy of them."""

import re
from datetime import timedelta

from beaver_memory.records import Kept, Owner
from beaver_memory.testing.store_cases.kit import NOW, OpenStore, agree, holds, looking, new, raises, titles, using

UID = "00112233445566778899aabbccddeeff"
LATER = NOW + timedelta(minutes=10)
ANN = Owner(user="ann")


def _uids(open_store: OpenStore, *owners: Owner) -> dict[int, str]:
    """Return the uids of all memories of owners by their ids, forgotten ones too, as an index sees them."""
    with using(open_store) as store:
        rows = [row for owner in owners or (Owner(),) for row in store.changed(owner, 0, limit=99)]
        live = {each.id: each.uid for each in store.recent(looking(owners=owners or (Owner(),)), limit=99)}
    agree(live, {row.id: row.uid.hex() for row in rows if not row.gone}, "in rows for an index")
    return {row.id: row.uid.hex() for row in rows}


def random_uids(open_store: OpenStore) -> None:
    """A memory without a uid gets a random one, which no change of it changes."""
    with using(open_store) as store:
        ids = store.add([new("one", uid=""), new("two", uid="")], now=NOW)
        ids += [each.id for each in store.remember([new("three", uid="")], now=NOW, mention=True)]
        first = {each.id: each.uid for each in store.get(ids, looking())}
        holds(all(re.fullmatch("[0-9a-f]{32}", uid) for uid in first.values()), "form of uids")
        agree(3, len({*first.values()}), "different uids")
        store.change(ids[0], looking(), event="PIN", now=LATER, pinned=True)
        raises(TypeError, lambda: store.change(ids[0], looking(), event="UPDATE", now=LATER, uid=UID))
    agree(first, _uids(open_store))


def a_known_uid(open_store: OpenStore) -> None:
    """A memory whose uid the owner has is the same one, whatever its words; no second one has the uid."""
    with using(open_store) as store:
        (id_,) = store.add([new("tea", uid=UID)], now=NOW)
        again = [new("coffee", uid=UID), new("milk", uid=UID)]
        agree([True, True], store.knows(again, now=LATER), "known")
        kept = store.remember(again, now=LATER, mention=True)
        agree([Kept(id=id_, outcome="duplicate", mentions=mentions) for mentions in (2, 3)], kept)
        agree(["tea"], titles(store.recent(looking(), limit=9)))
        (other,) = store.add([new("water", uid=UID)], now=LATER)
        holds(store.get([other], looking())[0].uid != UID, "`add` gives a new uid in place of a known one")
        agree([], store.check(None), "problems")
    agree(UID, _uids(open_store)[id_])


def a_uid_twice(open_store: OpenStore) -> None:
    """Of two memories of one call with one uid, the second one is the first."""
    with using(open_store) as store:
        agree([False, False], store.knows([new("a", uid=UID), new("b", uid=UID)], now=NOW))
        kept = store.remember([new("a", uid=UID), new("b", uid=UID), new("c")], now=NOW, mention=False)
        agree(["stored", "duplicate", "stored"], [each.outcome for each in kept])
        agree([kept[0].id, kept[0].id], [each.id for each in kept[:2]])
        agree(["c", "a"], titles(store.recent(looking(), limit=9)))
        added = store.get(store.add([new("d", uid="1" * 32), new("e", uid="1" * 32)], now=NOW), looking())
        agree([True, False], [each.uid == "1" * 32 for each in added], "`add` gives the second one a new uid")


def a_forgotten_uid(open_store: OpenStore) -> None:
    """A forgotten memory keeps its uid; who says it again under that uid gets another one."""
    with using(open_store) as store:
        (gone,) = store.add([new("tea", uid=UID)], now=NOW)
        store.forget([gone], looking(), now=LATER)
        agree([False], store.knows([new("tea", uid=UID)], now=LATER))
        (kept,) = store.remember([new("tea", uid=UID)], now=LATER, mention=True)
        agree(Kept(id=gone + 1, outcome="stored"), kept)
        agree([], store.check(None), "problems")
    found = _uids(open_store)
    agree((UID, False), (found[gone], found[kept.id] == UID))


def uids_of_others(open_store: OpenStore) -> None:
    """A uid of another owner's memory is replaced by a new one; each tenant may have the uid."""
    acme = Owner(tenant="acme", user="ann")
    with using(open_store) as store:
        (mine,) = store.add([new("tea", uid=UID)], now=NOW)
        kept = store.remember([new("tea", uid=UID, owner=owner) for owner in (ANN, acme)], now=NOW, mention=True)
        agree(["stored", "stored"], [each.outcome for each in kept])
    agree((UID, UID), (_uids(open_store)[mine], _uids(open_store, acme)[kept[1].id]))
    holds(_uids(open_store, ANN)[kept[0].id] != UID, "the other owner's memory has a uid of its own")


CASES = (random_uids, a_known_uid, a_uid_twice, a_forgotten_uid, uids_of_others)
