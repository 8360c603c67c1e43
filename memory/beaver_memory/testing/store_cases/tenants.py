"""Rules for several tenants in one store: the same id names another memory, and no write of one shows to another."""

from datetime import timedelta

from beaver_memory.filters import Filters
from beaver_memory.patterns import Pattern
from beaver_memory.records import Memory, Owner, SessionSummary
from beaver_memory.store.protocol import Analysed, SingleStore
from beaver_memory.testing.store_cases.kit import NOW, OpenStore, agree, last_vector, looking, new, titles, using
from beaver_memory.views import ALL_PROJECTS

ACME, BETA, CORP = (Owner(tenant=name, user="ann") for name in ("acme", "beta", "corp"))
BOB = Owner(tenant="acme", user="bob")
LATER = NOW + timedelta(minutes=5)


def ids_and_versions_of_a_tenant(open_store: OpenStore) -> None:
    """Ids and versions of a tenant are the same whether or not other tenants write in between."""
    with using(open_store) as store:
        among_others = _life(store, ACME, between=BETA)
        alone = _life(store, CORP)
        agree(alone, among_others)
        agree([], store.check(None))


def versions_of_an_owner(open_store: OpenStore) -> None:
    """Versions of an owner do not change when another owner of the same tenant writes."""
    with using(open_store) as store:
        (id_,) = store.add([new("one", owner=ACME)], now=NOW)
        store.put_vectors(ACME, "m", [(id_, b"v")])
        before = store.versions([ACME], "m")
        ids = store.add([new(f"b{number}", owner=BOB) for number in range(3)], now=NOW)
        store.put_vectors(BOB, "m", [(ids[0], b"v")])
        store.change(ids[1], looking(owners=(BOB,)), event="PIN", now=NOW, pinned=True)
        store.forget([ids[2]], looking(owners=(BOB,)), now=NOW)
        agree(before, store.versions([ACME], "m"))
        agree([], store.changed(ACME, before[0][0], limit=9))


def vectors_and_changes_share_a_counter(open_store: OpenStore) -> None:
    """Each change and each embedding of an owner has a greater version than those before it."""
    with using(open_store) as store:
        first, second = store.add([new("one", owner=ACME), new("two", owner=ACME)], now=NOW)
        seen = [store.last_version(ACME)]
        store.put_vectors(ACME, "m", [(first, b"v")])
        seen.append(last_vector(store, ACME, "m"))
        store.change(first, looking(owners=(ACME,)), event="PIN", now=NOW, pinned=True)
        seen.append(store.last_version(ACME))
        store.put_vectors(ACME, "n", [(first, b"v"), (second, b"w")])
        seen.append(last_vector(store, ACME, "n"))
        store.forget([second], looking(owners=(ACME,)), now=NOW)
        seen.append(store.last_version(ACME))
        agree(sorted({*seen}), seen)


def the_same_id_in_two_tenants(open_store: OpenStore) -> None:
    """Reads by id, by time and by words return the memory of the tenant that asks."""
    with using(open_store) as store:
        id_, next_ = _two_each(store)
        for owner in (ACME, BETA):
            mine, name = looking(owners=(owner,)), owner.tenant
            agree([f"{name} one", f"{name} two"], titles(store.get([id_, next_], mine)), "get")
            agree([f"{name} two", f"{name} one"], titles(store.recent(mine, limit=9)), "recent")
            agree([f"{name} one", f"{name} two"], titles(store.timeline(id_, mine, before=9, after=9)), "timeline")
            around = store.neighbours(NOW, id_, mine, before=9, after=9)
            agree([f"{name} two"], titles([*around[0], *around[1]]), "neighbours")
            agree([id_], store.matching([Pattern(text=f"{name} one")], mine, limit=9), "matching")
            agree([], store.matching([Pattern(text="acme one"), Pattern(text="beta one")], mine, limit=9), "matching")
            agree([f"{name} one"], titles(store.recent(looking(owners=(owner,), tags=(name,)), limit=9)), "tags")
            agree([], store.recent(looking(owners=(owner,), tags=(_other(owner).tenant,)), limit=9), "other tags")
            agree([name], [person.name for person in store.people(mine, query="", limit=9)], "people")
            agree([id_, next_], store.ids(owner), "ids")
            agree(2, store.count(owner), "count")
            agree([id_, next_], [row.id for row in store.changed(owner, 0, limit=9)], "changed")


def writes_with_the_id_of_two_tenants(open_store: OpenStore) -> None:
    """Changes, recalls and forgetting by an id leave the other tenant's memory of that id alone."""
    with using(open_store) as store:
        id_, next_ = _two_each(store)
        theirs = looking(owners=(BETA,))
        before = _all_of(store, BETA, id_)
        store.change(id_, looking(owners=(ACME,)), event="PIN", now=LATER, pinned=True, tags=("else",))
        store.touch([id_, next_], tenant="acme", now=LATER)
        agree([LATER, LATER], [each.last_accessed_at for each in store.get([id_, next_], looking(owners=(ACME,)))])
        agree(["ADD", "PIN"], [each.event for each in store.history(id_, looking(owners=(ACME,)))])
        agree([id_], store.forget([id_], looking(owners=(ACME,)), now=LATER), "forget")
        agree([], store.get([id_], looking(owners=(ACME,))), "what was forgotten")
        agree(before, _all_of(store, BETA, id_), "the other tenant")
        agree([None, None], [each.last_accessed_at for each in store.get([id_, next_], theirs)], "recalls")
        agree(["beta"], [person.name for person in store.people(theirs, query="", limit=9)])
        agree([], store.people(looking(owners=(ACME,)), query="", limit=9))
        agree([], store.check(None))


def embeddings_of_two_tenants(open_store: OpenStore) -> None:
    """Embeddings of memories with the same id stay apart, and so does what waits to be embedded."""
    with using(open_store) as store:
        id_, next_ = _two_each(store)
        agree([2, 2], [len(store.unembedded(owner, "m", ALL_PROJECTS, limit=9)) for owner in (ACME, BETA)])
        store.put_vectors(ACME, "m", [(id_, b"acme")])
        store.put_vectors(BETA, "m", [(id_, b"beta"), (next_, b"next")])
        agree([1, 0], [store.pending(owner, "m", ALL_PROJECTS) for owner in (ACME, BETA)], "pending")
        store.forget([id_], looking(owners=(BETA,)), now=LATER)
        agree([(id_, b"acme")], _vectors(store, ACME))
        agree([(next_, b"next")], _vectors(store, BETA))
        agree([(next_, "acme two")], store.unembedded(ACME, "m", ALL_PROJECTS, limit=9))
        agree([], store.check(None))


def the_same_text_in_two_tenants(open_store: OpenStore) -> None:
    """What one tenant has stored is no duplicate for another, and sessions of the same name stay apart."""
    with using(open_store) as store:
        for owner in (ACME, BETA):
            item = new("the same", owner=owner)
            agree([False], store.knows([item], now=NOW), "knows")
            agree(["stored"], [each.outcome for each in store.remember([item], now=NOW, mention=True)])
            store.summarise(owner, SessionSummary(session="s", outcome=owner.tenant, created_at=NOW))
        (kept,) = store.remember([new("the same", owner=ACME)], now=NOW, mention=True)
        agree(("duplicate", 2), (kept.outcome, kept.mentions))
        mentions = [each.mention_count for owner in (ACME, BETA) for each in store.recent(_of(owner), limit=9)]
        agree([2, 1], mentions)
        agree(["acme", "beta"], [store.summaries(owner, limit=9)[0].outcome for owner in (ACME, BETA)])


def several_tenants_at_once(open_store: OpenStore) -> None:
    """Memories of several tenants that are added together have the ids that each tenant would have given."""
    with using(open_store) as store:
        owners = (ACME, BETA, ACME, BOB, BETA)
        ids = store.add([new(f"m{number}", owner=owner) for number, owner in enumerate(owners)], now=NOW)
        agree(ids[:2], [ids[0], ids[0]], "the first of each")
        agree([ids[0], ids[2], ids[3]], sorted({ids[0], ids[2], ids[3]}), "of one tenant")
        for owner in (ACME, BETA, BOB):
            mine = [id_ for id_, whose in zip(ids, owners, strict=True) if whose == owner]
            agree(mine, store.ids(owner))
        agree({ACME, BETA, BOB}, {*store.owners(None)})
        agree(5, store.stats(None)["memories"])


def _life(store: SingleStore, owner: Owner, between: Owner | None = None) -> list[object]:
    """Return the ids and versions that an owner sees while another one writes `between` its own writes."""
    seen: list[object] = []
    filters = _of(owner)
    for step in range(3):
        (id_,) = store.add([new(f"step {step}", owner=owner)], now=NOW)
        if between is not None:
            others = store.add([new(f"other {step} {number}", owner=between) for number in range(5)], now=NOW)
            store.put_vectors(between, "m", [(others[0], b"x")])
            store.forget(others[1:2], _of(between), now=NOW)
        store.put_vectors(owner, "m", [(id_, b"v")])
        store.change(id_, filters, event="PIN", now=NOW, pinned=True)
        seen += [id_, store.versions([owner], "m")]
    return seen


def _two_each(store: SingleStore) -> tuple[int, int]:
    """Add two memories for each of two tenants, with the same ids; return the ids."""
    found = [store.add([_named(owner, "one", 0), _named(owner, "two", 1)], now=NOW) for owner in (ACME, BETA)]
    agree(found[0], found[1], "the ids of both tenants")
    return found[0][0], found[0][1]


def _named(owner: Owner, what: str, at: int) -> Analysed:
    labels = {"tags": (owner.tenant,), "related_people": (owner.tenant,)} if at == 0 else {}
    return new(f"{owner.tenant} {what}", owner=owner, at=at, **labels)


def _all_of(store: SingleStore, owner: Owner, id_: int) -> tuple[list[Memory], object, object, object]:
    filters = _of(owner)
    return (
        store.recent(filters, limit=9),
        store.history(id_, filters),
        store.versions([owner]),
        store.changed(owner, 0, limit=9),
    )


def _vectors(store: SingleStore, owner: Owner) -> list[tuple[int, bytes]]:
    return [(row.id, row.data) for row in store.vectors(owner, "m", 0, limit=9)]


def _of(owner: Owner) -> Filters:
    return looking(owners=(owner,))


def _other(owner: Owner) -> Owner:
    return BETA if owner == ACME else ACME


CASES = (
    ids_and_versions_of_a_tenant,
    versions_of_an_owner,
    vectors_and_changes_share_a_counter,
    the_same_id_in_two_tenants,
    writes_with_the_id_of_two_tenants,
    embeddings_of_two_tenants,
    the_same_text_in_two_tenants,
    several_tenants_at_once,
)
