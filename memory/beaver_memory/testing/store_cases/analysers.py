"""Rules for the terms of analysers: a store has the terms of one analyser at a time."""

from beaver_memory.errors import StoreError
from beaver_memory.records import NewMemory, Owner
from beaver_memory.store.protocol import Analysed, SingleStore
from beaver_memory.testing.store_cases.kit import NOW, OpenStore, agree, looking, new, raises, using

MANY = 2_500


def analysed_by(version: int) -> Analysed:
    """Return the result of an analyser of that version."""
    return Analysed(memory=NewMemory(title="any"), terms=b"by %d" % version, length=version)


def terms_of(store: SingleStore, owner: Owner) -> set[tuple[bytes, int]]:
    """Return the terms that an owner's memories have."""
    return {(row.terms, row.length) for row in store.changed(owner, 0, limit=MANY) if not row.gone}


def terms_of_an_older_analyser(open_store: OpenStore) -> None:
    """Terms of an older analyser are made anew, for all owners and any number; nothing else of a memory changes."""
    owners = (Owner(user="a"), Owner(user="b"))
    with using(open_store) as store:
        for owner in owners:
            ids = store.add([new(f"m{number}", owner=owner) for number in range(MANY // 2)], now=NOW)
        store.forget(ids[:1], looking(owners=owners), now=NOW)
        before = store.recent(looking(owners=owners), limit=MANY)
        store.settle(7, lambda _: analysed_by(7))
        agree([{(b"by 7", 7)}] * 2, [terms_of(store, owner) for owner in owners])
        agree(before, store.recent(looking(owners=owners), limit=MANY))


def terms_of_the_same_analyser(open_store: OpenStore) -> None:
    """Terms of the same analyser stay as they are when the store is opened again."""
    with using(open_store) as store:
        store.settle(7, lambda _: analysed_by(7))
        store.add([new("kept")], now=NOW)
    with using(open_store) as store:
        store.settle(7, lambda _: analysed_by(7))
        agree({(b"kept", 1)}, terms_of(store, Owner()))


def terms_of_a_newer_analyser(open_store: OpenStore) -> None:
    """Terms of a newer analyser are refused, on opening and for a store that is open; nothing is added to them."""
    with using(open_store) as old, using(open_store) as newer:
        old.settle(7, lambda _: analysed_by(7))
        (id_,) = old.add([new("one")], now=NOW)
        newer.settle(8, lambda _: analysed_by(8))
        raises(StoreError, lambda: old.add([new("two")], now=NOW))
        raises(StoreError, lambda: old.change(id_, looking(), event="PIN", now=NOW, pinned=True))
        raises(StoreError, lambda: old.changed(Owner(), 0, limit=9))
        raises(StoreError, lambda: old.settle(7, lambda _: analysed_by(7)))
        agree({(b"by 8", 8)}, terms_of(newer, Owner()))


CASES = (terms_of_an_older_analyser, terms_of_the_same_analyser, terms_of_a_newer_analyser)
