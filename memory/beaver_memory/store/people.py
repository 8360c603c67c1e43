"""Joins and ranks the people whom memories mention."""

from collections.abc import Iterable

from beaver_memory.records import Person
from beaver_memory.store.bounds import bounded
from beaver_memory.store.labels import folded


def ranked(people: Iterable[Person], limit: int) -> list[Person]:
    """Return people, those of one name joined, most mentioned first."""
    found: dict[str, Person] = {}
    for person in people:
        key = folded(person.name)
        found[key] = _together(found[key], person) if key in found else person
    ordered = sorted(found.values(), key=lambda person: (-person.mention_count, person.name))
    return ordered[: bounded(limit)]


def _together(one: Person, other: Person) -> Person:
    return Person(
        name=one.name,
        aliases=tuple(dict.fromkeys((*one.aliases, *other.aliases))),
        mention_count=one.mention_count + other.mention_count,
        last_mentioned=max(one.last_mentioned, other.last_mentioned),
    )
