"""Joins and ranks the people whom memories mention, and reads the rows of summaries."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from beaver_memory.records import Owner, Person, SessionSummary
from beaver_memory.store.bounds import bounded
from beaver_memory.store.checksums import texts_checksum
from beaver_memory.store.labels import folded
from beaver_memory.texts import moment, unpacked

Spelling = tuple[str, tuple[str, ...]]
"""The name of a person, and its aliases."""

_NONE: Mapping[str, Spelling] = MappingProxyType({})


def mentions(names: Iterable[str], at: datetime, known: Mapping[str, Spelling] = _NONE) -> Iterator[Person]:
    """Yield each person that one memory names.

    Args:
        names: the names in the memory.
        at: its moment.
        known: spellings by folded name; others are spelled as the memory does.
    """
    for key, name in {folded(name): name for name in names}.items():
        written, aliases = known.get(key, (name, ()))
        yield Person(name=written, aliases=aliases, last_mentioned=at)


def ranked(people: Iterable[Person], query: str, limit: int) -> list[Person]:
    """Return people whose name or alias contains a query, those of one name joined, most mentioned first."""
    found: dict[str, Person] = {}
    for person in people:
        key = folded(person.name)
        found[key] = _together(found[key], person) if key in found else person
    wanted = folded(query)
    fitting = [each for key, each in found.items() if any(wanted in name for name in (key, *map(folded, each.aliases)))]
    return sorted(fitting, key=lambda person: (-person.mention_count, person.name))[: bounded(limit)]


def summary_of(owner: Owner, row: Sequence[Any], checksum: int | None) -> SessionSummary | None:
    """Return the summary of a session that a row holds, its texts as UTF-8; `None` if it fails its checksum.

    Args:
        owner: the owner.
        row: agent, session, request, outcome, decisions, open items, count of memories, moment.
        checksum: the checksum of the row.
    """
    if texts_checksum(owner, *row) != checksum:
        return None
    agent, session, request, outcome, decisions, open_items = (text.decode() for text in row[:6])
    return SessionSummary(
        agent=agent,
        session=session,
        request=request,
        outcome=outcome,
        decisions=unpacked(decisions),
        open_items=unpacked(open_items),
        observation_count=row[6],
        created_at=moment(row[7]),
    )


def _together(one: Person, other: Person) -> Person:
    return Person(
        name=one.name,
        aliases=tuple(dict.fromkeys((*one.aliases, *other.aliases))),
        mention_count=one.mention_count + other.mention_count,
        last_mentioned=max(one.last_mentioned, other.last_mentioned),
    )
