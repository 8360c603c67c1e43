"""Reads people, and reads and writes summaries of sessions."""

from collections.abc import Collection
from itertools import islice
from typing import Any

from beaver_memory.records import Owner, Person, SessionSummary
from beaver_memory.store.bounds import bounded
from beaver_memory.store.checksums import texts_checksum
from beaver_memory.store.people import mentions, ranked, summary_of
from beaver_memory.store.postgres.owners import OwnerKey
from beaver_memory.store.postgres.rows import COLUMNS, memories_of
from beaver_memory.store.postgres.sql_filters import Seen
from beaver_memory.store.queries import queries_of
from beaver_memory.texts import cleaned, micros, packed

_SQL = queries_of("postgres", "people")


def people(connection: Any, seen: Seen, query: str, limit: int) -> list[Person]:
    """Return people that visible memories are related to, most mentioned first."""
    if not seen.owners:
        return []
    sql = _SQL["people"].format(columns=COLUMNS, conditions=seen.which.sql)
    rows = connection.execute(sql, seen.params(), binary=True)
    found = (
        person
        for memory in memories_of(rows, seen.owners)
        for person in mentions(memory.related_people, memory.created_at or memory.updated_at)
    )
    return ranked(found, query, limit)


def summaries(connection: Any, key: OwnerKey, owner: Owner, limit: int) -> list[SessionSummary]:
    """Return the newest summaries of an owner's sessions, without those that fail their checksums."""
    rows = connection.execute(_SQL["summaries"], {"tenant": key.tenant, "owner": key.owner}, binary=True)
    whole = (found for row in rows if (found := whole_summary(owner, row)) is not None)
    return [*islice(whole, bounded(limit))]


def whole_summary(owner: Owner, row: Any) -> SessionSummary | None:
    """Return the summary that a row holds, whose last value is its checksum; `None` if it fails that."""
    return summary_of(owner, [each.encode() if isinstance(each, str) else each for each in row[:-1]], row[-1])


def summarise(connection: Any, key: OwnerKey, owner: Owner, summary: SessionSummary) -> None:
    """Store the summary of an agent's session in place of an earlier one."""
    values = {name: cleaned(getattr(summary, name)) for name in ("agent", "session", "request", "outcome")}
    values |= {name: packed(getattr(summary, name)) for name in ("decisions", "open_items")}
    numbers = {"count": summary.observation_count, "created_at": micros(summary.created_at)}
    checksum = texts_checksum(owner, *values.values(), *numbers.values())
    given = {"tenant": key.tenant, "owner": key.owner, "checksum": checksum} | values | numbers
    connection.execute(_SQL["set_summary"], given)


def drop_summaries(connection: Any, key: OwnerKey, sessions: Collection[str] | None) -> int:
    """Erase the summaries of sessions, of all sessions if `None`; return their number."""
    named = None if sessions is None else [*map(cleaned, sessions)]
    given = {"tenant": key.tenant, "owner": key.owner, "sessions": named}
    return int(connection.execute(_SQL["drop_summaries"], given).rowcount)
