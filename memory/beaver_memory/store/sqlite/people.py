"""Reads people, and reads and writes summaries of sessions."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import apsw

from beaver_memory.filters import Filters
from beaver_memory.records import Owner, Person, SessionSummary
from beaver_memory.store.bounds import bounded
from beaver_memory.store.checksums import texts_checksum
from beaver_memory.store.labels import PERSON
from beaver_memory.store.people import Spelling, mentions, ranked, summary_of
from beaver_memory.store.sqlite.owners import OwnerKey, TenantOwners
from beaver_memory.store.sqlite.queries import sqlite_queries
from beaver_memory.store.sqlite.rows import FAILS
from beaver_memory.store.sqlite.sql_filters import Conditions, conditions
from beaver_memory.store.sqlite.unreadable import fetched
from beaver_memory.texts import cleaned, micros, moment, packed, unpacked

_SQL = sqlite_queries("people")
_UNTIL = PERSON[:-1] + chr(ord(PERSON[-1]) + 1)


def people(connection: apsw.Connection, owners: TenantOwners, filters: Filters, query: str, limit: int) -> list[Person]:
    """Return people that visible memories are related to, most mentioned first; note damaged rows of people."""
    which = conditions(filters)
    found = (person for owner in owners for person in _mentioned(connection, owners, owner, which))
    return ranked(found, query, limit)


def _mentioned(
    connection: apsw.Connection, owners: TenantOwners, owner: OwnerKey, which: Conditions
) -> Iterator[Person]:
    """Yield a person for each mention in an owner's visible memories, the oldest memory first.

    The names are those in memories that have their checksums. The row of a person gives its spelling and its aliases.
    """
    sql = _SQL["mentions"].format(conditions=which.sql, fails=FAILS)
    rows = fetched(connection, owners, sql, (*which.params, *owner, PERSON, _UNTIL))
    known = _known(connection, owners, owner, Counter(key for key, *_ in rows))
    visible: dict[int, tuple[int, bytes]] = {}
    for _, id_, at, names, is_visible, fails in rows:
        if fails:
            owners.damaged(id_)
        elif is_visible:
            visible[id_] = at, names
    for _, (at, names) in sorted(visible.items()):
        yield from mentions(unpacked(names.decode()), moment(at), known)


def _known(
    connection: apsw.Connection, owners: TenantOwners, owner: OwnerKey, counts: Mapping[bytes, int]
) -> dict[str, Spelling]:
    """Return the spellings of an owner's people by their folded names.

    A row is noted if it fails its checksum, is missing, or has another count than memories that mention the person.
    """
    name = owners.names[owner[1]]
    found: dict[str, Spelling] = {}
    wrong = {*counts}
    for key, *texts, count, checksum in connection.execute(_SQL["people_of_owner"], owner):
        if counts.get(key) == count:
            wrong.discard(key)
        if person_is_whole(name, (key, *texts), checksum):
            found[key.decode()] = texts[0].decode(), unpacked(texts[1].decode())
        else:
            wrong.add(key)
    for key in wrong:
        owners.damage.note("person", owner[0], shown(key))
    return found


def person_is_whole(owner: Owner | None, texts: Sequence[Any], checksum: int) -> bool:
    """Return whether folded name, name and aliases of a person have their checksum."""
    return owner is not None and texts_checksum(owner, *texts) == checksum


def summaries(connection: apsw.Connection, owners: TenantOwners, limit: int) -> list[SessionSummary]:
    """Return the newest summaries of an owner's sessions; note those that fail their checksums."""
    return [*islice(_whole_summaries(connection, owners), bounded(limit))]


def _whole_summaries(connection: apsw.Connection, owners: TenantOwners) -> Iterator[SessionSummary]:
    (key,) = owners
    for *row, checksum in connection.execute(_SQL["summaries"], key):
        found = summary_of(owners.names[key[1]], row, checksum)
        if found is None:
            owners.damage.note("summary", key[0], shown(row[1]))
        else:
            yield found


def shown(text: bytes) -> str:
    """Return a text of a damaged row as one that is safe to show."""
    return ascii(text.decode(errors="backslashreplace"))


def summarise(connection: apsw.Connection, key: OwnerKey, owner: Owner, summary: SessionSummary) -> None:
    """Store the summary of an agent's session in place of an earlier one."""
    values = (
        cleaned(summary.agent),
        cleaned(summary.session),
        cleaned(summary.request),
        cleaned(summary.outcome),
        packed(summary.decisions),
        packed(summary.open_items),
        summary.observation_count,
        micros(summary.created_at),
    )
    connection.execute(_SQL["set_summary"], (*key, *values, texts_checksum(owner, *values)))


def drop_summaries(connection: apsw.Connection, key: OwnerKey, sessions: Collection[str] | None) -> int:
    """Erase the summaries of sessions, of all sessions if `None`; return their number."""
    named = None if sessions is None else json.dumps([*map(cleaned, sessions)])
    connection.execute(_SQL["drop_summaries"], (*key, named))
    return connection.changes()
