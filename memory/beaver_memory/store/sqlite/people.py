"""Reads people, and reads and writes summaries of sessions."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

import apsw

from beaver_memory.filters import Filters
from beaver_memory.records import Owner, Person, SessionSummary
from beaver_memory.store.bounds import bounded
from beaver_memory.store.checksums import texts_checksum
from beaver_memory.store.people import PERSON, Spelling, folded, mentions, ranked, summary_of
from beaver_memory.store.queries import queries_of
from beaver_memory.store.sqlite.owners import OwnerKey, TenantOwners
from beaver_memory.store.sqlite.rows import fetched, people_in, rows_of, whole_rows
from beaver_memory.store.sqlite.sql_filters import Conditions, conditions
from beaver_memory.texts import cleaned, micros, moment, packed, unpacked

_SQL = queries_of("sqlite", "people")
_UNTIL = PERSON[:-1] + chr(ord(PERSON[-1]) + 1)


_Known = dict[OwnerKey, dict[str, Spelling]]
"""The spellings of the people of owners, by their folded names."""


def people(connection: apsw.Connection, owners: TenantOwners, filters: Filters, query: str, limit: int) -> list[Person]:
    """Return people that visible memories are related to, most mentioned first; note damaged rows of people.

    Only memories that mention the people to be returned, or those next in order, are read whole and verified.
    """
    which, limit = conditions(filters), bounded(limit)
    known: _Known = {}
    order = _order(_counts(connection, owners, which, known), known, query)
    found: list[Person] = []
    shown: list[Person] = []
    for first in range(0, len(order), limit) if limit else ():
        wanted = {key for *_, key in order[first : first + limit]}
        for owner, names, at in _verified(connection, owners, which, wanted):
            found += (each for each in mentions(names, at, known[owner]) if folded(each.name) in wanted)
        shown = ranked(found, query, limit)
        # A memory that fails its checksum lowers a count, so that another person may come before.
        rest = order[first + limit :]
        if len(shown) == limit and rest and rest[0][:2] > (-shown[-1].mention_count, shown[-1].name):
            break
    return shown


def _counts(connection: apsw.Connection, owners: TenantOwners, which: Conditions, known: _Known) -> Counter[str]:
    """Return how many visible memories have the label of each person, not verified; fill in their spellings."""
    counts: Counter[str] = Counter()
    for owner in owners:
        sql = _SQL["mentions"].format(conditions=which.sql)
        rows = fetched(connection, owners, sql, (*which.params, *owner, PERSON, _UNTIL))
        known[owner] = _known(connection, owners, owner, {key: count for key, count, _ in rows})
        counts.update({key.decode(errors="replace"): visible for key, _, visible in rows})
    return counts


def _order(counts: Mapping[str, int], known: _Known, query: str) -> list[tuple[int, str, str]]:
    """Return the people that fit a query in the order of their counts: negative count, name and folded name."""
    order: list[tuple[int, str, str]] = []
    for key, count in counts.items():
        spellings = [names[key] for names in known.values() if key in names]
        aliases = (folded(alias) for _, each in spellings for alias in each)
        if any(folded(query) in name for name in (key, *aliases)):
            order.append((-count, spellings[0][0] if spellings else key, key))
    return sorted(order)


def _verified(
    connection: apsw.Connection, owners: TenantOwners, which: Conditions, wanted: Iterable[str]
) -> Iterator[tuple[OwnerKey, tuple[str, ...], datetime]]:
    """Yield names and moments of visible memories with the labels of some people, for each owner in order of ids.

    The names are those in memories that have their checksums: a label has none.
    """
    labels = json.dumps([PERSON + key for key in wanted])
    sql = _SQL["memories_of_people"].replace("{conditions}", which.sql)
    for owner in owners:
        rows = rows_of(connection, owners, sql, (owner[1], *which.params, owner[0], *owner, labels))
        for row in whole_rows(rows, owners.names, owners.damaged):
            if row[-1]:
                names, at = people_in(row)
                yield owner, unpacked(names), moment(at)


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
