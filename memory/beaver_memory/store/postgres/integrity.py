"""Counts the contents of a store, and finds damage in it."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from beaver_memory.records import DamagedEntry, Owner
from beaver_memory.store.checksums import CHECKED, change_checksum, vector_checksum
from beaver_memory.store.damaged_entries import RESTORE, SUMMARY, broken_rule, damaged_memory, entry_of, wrong_count
from beaver_memory.store.postgres.embeddings import data_of
from beaver_memory.store.postgres.owners import OwnerKey, all_owners
from beaver_memory.store.postgres.people import whole_summary
from beaver_memory.store.postgres.rows import COLUMNS, folded_of, is_whole, labels_of, stored_of, words_of
from beaver_memory.store.queries import queries_of
from beaver_toolkit.queries import Queries

_SQL = queries_of("postgres", "integrity")

AT_ONCE = 2_000
"""Rows that are read at once."""

_RULES = (
    ("wrong_counts_of_owners", "owners have wrong counts of terms"),
    ("wrong_versions", "memories have versions that do not exist yet"),
    ("wrong_twins", "versions are used twice"),
    ("wrong_ids", "memories have ids that no process has taken"),
    ("wrong_successors", "memories name successors that do not exist"),
    ("wrong_doubts", "memories are doubted by memories that do not exist"),
    ("wrong_texts", "memories have no texts, or texts no memory"),
    ("wrong_embeddings", "embeddings do not belong to their memories"),
    ("wrong_counts_of_embeddings", "owners have wrong counts of embeddings"),
    ("wrong_history", "entries of the history do not belong to a memory"),
)


def stats(connection: Any, statements: Queries = _SQL, given: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Return the counts of the store by name, or what other statements count with the given values."""
    counts = partial(_counts, connection, statements=statements, given=given)
    number = partial(_number, connection, statements=statements, given=given)
    by_store = counts("count_by_store")
    return {
        "memories": sum(by_store.values()),
        "forgotten": number("count_forgotten"),
        "owners": number("count_owners"),
        "stores": by_store,
        "types": counts("count_by_type"),
        "embeddings": counts("count_by_model"),
        "bytes": number("count_bytes"),
    }


def problems(connection: Any) -> list[str]:
    """Return the problems of the store, one sentence each."""
    counts = ((_number(connection, rule), what) for rule, what in _RULES)
    tenants = connection.execute(_SQL["tenants"]).fetchall()
    return [*(broken_rule(count, what) for count, what in counts if count), *damage(connection, tenants)]


def damage(connection: Any, tenants: Iterable[tuple[int, str]]) -> Iterator[str]:
    """Yield the rows of tenants that have vanished, fail their checksums, or differ from what they are made of."""
    for tenant, name in tenants:
        for user, kind, counted, there in connection.execute(_SQL["miscounted_owners"], {"tenant": tenant}).fetchall():
            yield wrong_count(Owner(tenant=name, user=user, kind=kind), counted, there)
        owners = all_owners(connection, tenant)
        of = f" of tenant {name}" if name else ""
        yield from _damaged_memories(connection, tenant, owners, of)
        yield from _damaged_others(connection, tenant, of)
        yield from _damaged_summaries(connection, tenant, owners, of)


def _damaged_memories(connection: Any, tenant: int, owners: dict[int, Owner], of: str) -> Iterator[str]:
    sql = _SQL["memories_after"].format(columns=COLUMNS)
    for id_, owner, labels, words, folded, *row in _pages(connection, sql, tenant):
        found = stored_of(row, owners) if is_whole(row, owners) else None
        if found is None:
            yield damaged_memory(id_, of)
        elif (
            set(labels) != set(labels_of(found.memory))
            or folded != folded_of(found.memory)
            or words != words_of(OwnerKey(tenant, owner), found.terms)
        ):
            yield f"Memory {id_}{of} has wrong labels or words: {RESTORE}."


def _damaged_others(connection: Any, tenant: int, of: str) -> Iterator[str]:
    for id_, event, at, old, new, checksum in connection.execute(_SQL["histories"], {"tenant": tenant}, binary=True):
        if change_checksum(id_, event, at, old, new) != checksum:
            yield f"An entry in the history of memory {id_}{of} fails its checksum and is not shown: {RESTORE}."
    for id_, model, half, raw, checksum in connection.execute(_SQL["vectors"], {"tenant": tenant}, binary=True):
        if vector_checksum(id_, model, data_of(half, raw)) != checksum:
            yield f"An embedding of memory {id_}{of} fails its checksum: the memory is found by its words only."


def _damaged_summaries(connection: Any, tenant: int, owners: dict[int, Owner], of: str) -> Iterator[str]:
    for number, *row in connection.execute(_SQL["summaries"], {"tenant": tenant}, binary=True):
        if number not in owners or whole_summary(owners[number], row) is None:
            yield f"The summary of session {row[1]!a}{of} fails its checksum and is not shown: {RESTORE}."


def damaged_rows(connection: Any, key: OwnerKey, owner: Owner) -> Iterator[DamagedEntry]:
    """Yield the rows of an owner that fail their checksums, as far as they can be read."""
    given, owners, ids = {"tenant": key.tenant}, {key.owner: owner}, set[int]()
    for id_, number, _, _, _, *row in _pages(connection, _SQL["memories_after"].format(columns=COLUMNS), key.tenant):
        if number == key.owner:
            ids.add(id_)
            if not is_whole(row, owners):
                yield entry_of("memory", id_, owner, dict(zip(CHECKED, row, strict=False)))
    for id_, event, at, old, new, checksum in connection.execute(_SQL["histories"], given, binary=True):
        if id_ in ids and change_checksum(id_, event, at, old, new) != checksum:
            yield entry_of("history", id_, owner, {"event": event, "at": at, "old": old, "new": new})
    for id_, model, half, raw, checksum in connection.execute(_SQL["vectors"], given, binary=True):
        if id_ in ids and vector_checksum(id_, model, data_of(half, raw)) != checksum:
            yield entry_of("embedding", id_, owner, {"model": model, "data": data_of(half, raw)})
    for number, *row in connection.execute(_SQL["summaries"], given, binary=True):
        if number == key.owner and whole_summary(owner, row) is None:
            yield entry_of("summary", ascii(row[1]), owner, dict(zip(SUMMARY, row, strict=False)))


def _pages(connection: Any, sql: str, tenant: int) -> Iterator[Any]:
    after = 0
    while rows := connection.execute(sql, {"tenant": tenant, "after": after, "limit": AT_ONCE}, binary=True).fetchall():
        yield from rows
        after = rows[-1][0]


def _counts(
    connection: Any, query: str, statements: Queries = _SQL, given: Mapping[str, int] | None = None
) -> dict[str, int]:
    return {str(name): int(count) for name, count in connection.execute(statements[query], given)}


def _number(connection: Any, query: str, statements: Queries = _SQL, given: Mapping[str, int] | None = None) -> int:
    return int(connection.execute(statements[query], given).fetchone()[0])
