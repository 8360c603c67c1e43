"""Labels of memories, people whom memories mention, joined and ranked, and rows of summaries."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from beaver_memory.records import Owner, Person, SessionSummary
from beaver_memory.store.bounds import bounded
from beaver_memory.store.checksums import texts_checksum
from beaver_memory.texts import cleaned, moment, unpacked

Spelling = tuple[str, tuple[str, ...]]
"""The name of a person, and its aliases."""

_NONE: Mapping[str, Spelling] = MappingProxyType({})

PERSON = "person:"
_COLUMNS = ("store", "type", "scope", "project", "session", "agent", "source")


def folded(name: str) -> str:
    """Return a name without the differences of its spellings."""
    return cleaned(name).casefold()


def trimmed(path: str) -> str:
    """Return a path without slashes at its end."""
    return cleaned(path).rstrip("/") or "/"


def folders(path: str) -> list[str]:
    """Return each folder above a path, innermost first."""
    path, found = trimmed(path), []
    end = path.rfind("/")
    while end > 0:
        found.append(trimmed(path[:end]))
        end = path.rfind("/", 0, end)
    if path.startswith("/") and path != "/":
        found.append("/")
    return list(dict.fromkeys(found))


def tag_label(tag: str) -> str:
    """Return the label of a tag in the side table."""
    return f"tag:{cleaned(tag)}"


def person_label(name: str) -> str:
    """Return the label of a person in the side table."""
    return PERSON + folded(name)


def path_label(path: str) -> str:
    """Return the label of a path in the side table: a memory has one for each file and each folder above it."""
    return f"path:{trimmed(path)}"


def narrow_labels(tags: Iterable[str], files: Iterable[str], people: Iterable[str]) -> list[str]:
    """Return the labels of a memory in the side table: a filter by file is one label there."""
    found = [tag_label(tag) for tag in tags]
    found += [person_label(name) for name in people]
    for path in files:
        found += map(path_label, (path, *folders(path)))
    return list(dict.fromkeys(found))


def labels_of(
    columns: tuple[str, ...], tags: Iterable[str], files: Iterable[str], people: Iterable[str]
) -> tuple[str, ...]:
    """Return all labels of a memory, for an index.

    Args:
        columns: its store, type, scope, project, session, agent and source. A memory without a project, session or
            agent has the label `project:`, `session:` or `agent:`.
        tags: its tags.
        files: its related files.
        people: its related people.
    """
    found = [f"{name}:{value}" for name, value in zip(_COLUMNS, columns, strict=True)]
    found += [tag_label(tag) for tag in tags]
    found += [person_label(name) for name in people]
    for path in files:
        found.append(f"file:{trimmed(path)}")
        found += [f"dir:{folder}" for folder in folders(path)]
    return tuple(dict.fromkeys(found))


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
