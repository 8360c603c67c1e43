"""Makes memories of fields and of JSON lines. Pure.

An error names the line and the field, and never repeats the value.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import attrs

from beaver_hooks_local.memory import default_scope
from beaver_hooks_local.visibility import Visibility
from beaver_hostspecs import scrub
from beaver_hostspecs.neutralising import neutralise
from beaver_memory.records import Memory, NewMemory, Owner
from beaver_memory.runtime.reports import Refusal
from beaver_memory.views import tenant_within

BATCH = 500
"""Memories that are stored in one call."""

LONGEST_NAME, MOST_NAMED = 40, 3
"""Characters of an unknown field's name, and number of such names, that an error shows."""

LONGEST_LINE = 16 * 1024 * 1024

_TRAILING_COMMA = re.compile(rb",\s*(?:[}\]]|$)")

_FIELDS = frozenset(attrs.fields_dict(NewMemory)) - {"owner"}
_GIVEN_BY_STORE = frozenset(attrs.fields_dict(Memory)) - _FIELDS - {"owner"}
"""Fields that the store sets itself; an export has them too."""

_TIMES = frozenset({"created_at", "expires_at", "valid_from", "valid_until"})


class InvalidMemory(ValueError):
    """The input is not a memory that can be stored."""


RefusalOf = Callable[[NewMemory], Refusal | None]
"""Returns why a memory must not be stored."""


def from_fields(fields: Mapping[str, Any], sight: Visibility, refusal_of: RefusalOf) -> NewMemory:
    """Return a memory.

    Args:
        fields: its fields, by the names of `NewMemory`.
        sight: of its writer: its owner, and its project unless the fields name one.
        refusal_of: returns why the memory must not be stored.

    Raises:
        InvalidMemory: a field does not fit, or the memory must not be stored.
    """
    if not isinstance(fields.get("title"), str) or not fields["title"].replace("\0", "").strip():
        raise InvalidMemory("`title` is missing or empty; it holds the text to remember.")
    try:
        new = NewMemory(**{"project": sight.place, **fields}, owner=sight.owner)
    except (TypeError, ValueError) as error:
        raise InvalidMemory(f"`{_culprit(fields)}` has a wrong type or value.") from error
    if "scope" not in fields:
        new = attrs.evolve(new, scope=default_scope(new.type, new.project))
    if (refusal := refusal_of(new)) is not None:
        raise InvalidMemory(refusal.sentence)
    return new


def read_lines(
    lines: Iterable[bytes],
    given: Mapping[str, Any],
    sight: Visibility,
    refusal_of: RefusalOf,
    *,
    every_owner: bool,
) -> Iterator[list[NewMemory]]:
    """Yield the memories of JSON lines in batches; those before a wrong line come before the error.

    Args:
        lines: the lines; blank ones are skipped.
        given: values of fields that a line leaves out.
        sight: of their writer.
        refusal_of: returns why a memory must not be stored.
        every_owner: whether each line names its own owner, within the tenant of the writer.

    Raises:
        InvalidMemory: a line is wrong; says which.
    """
    batch: list[NewMemory] = []
    for number, content in enumerate(lines, 1):
        try:
            batch += _of_line(content, given, sight, refusal_of, every_owner=every_owner)
        except InvalidMemory as error:
            yield batch
            raise InvalidMemory(f"Line {number} is not a memory: {error}") from error
        if len(batch) >= BATCH:
            yield batch
            batch = []
    yield batch


def _of_line(
    content: bytes, given: Mapping[str, Any], sight: Visibility, refusal_of: RefusalOf, *, every_owner: bool
) -> list[NewMemory]:
    if not content.strip():
        return []
    fields = _parsed(content)
    owner = fields.pop("owner", None)
    whose = attrs.evolve(sight, owner=_owner(owner, sight.owner.tenant)) if every_owner else sight
    if unknown := fields.keys() - _FIELDS - _GIVEN_BY_STORE:
        named = ", ".join(f"`{scrub(neutralise(name))[:LONGEST_NAME]}`" for name in sorted(unknown)[:MOST_NAMED])
        fields_there = ", ".join(sorted({*_FIELDS, "owner"}))
        raise InvalidMemory(f"unknown field{'s' * (len(unknown) > 1)} {named}. The fields are: {fields_there}.")
    known = {name: _value(name, value) for name, value in fields.items() if name in _FIELDS and value is not None}
    if known.get("project") == "":
        # As `export` writes the project in which it runs.
        del known["project"]
    return [from_fields({**given, **known}, whose, refusal_of)]


def _parsed(content: bytes) -> dict[str, Any]:
    if len(content) > LONGEST_LINE:
        raise InvalidMemory("it is too long; split it into several memories.")
    try:
        parsed = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        comma = _TRAILING_COMMA.search(content) is not None
        raise InvalidMemory(f"it is not JSON in UTF-8{'; there is a trailing comma' if comma else ''}.") from None
    if not isinstance(parsed, dict):
        raise InvalidMemory("it is not a JSON object.")
    return parsed


def _owner(value: Any, tenant: str) -> Owner:
    if value is None:
        return Owner(tenant=tenant)
    try:
        found = Owner(**value)
        return attrs.evolve(found, tenant=tenant_within(tenant, found.tenant))
    except (TypeError, ValueError):
        raise InvalidMemory("`owner` must be an object with `tenant` and `user`.") from None


def _value(name: str, value: object) -> object:
    if name not in _TIMES:
        return value
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        found = None
    if found is None:
        raise InvalidMemory(f"`{name}` must be an ISO date and time such as 2026-11-18T09:30:00+00:00.")
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


def _culprit(fields: Mapping[str, Any]) -> str:
    """Return the first field that does not fit by itself."""
    for name, value in fields.items():
        try:
            NewMemory(**{"title": "x", name: value})
        except (TypeError, ValueError):
            return name
    return "title"
