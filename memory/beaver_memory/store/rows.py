"""Converts memories to rows, and rows to memories."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from beaver_hostspecs.tokens import estimate_tokens
from beaver_memory.errors import DamagedRow
from beaver_memory.records import Memory, Owner, Store
from beaver_memory.store.checksums import CHECKED, TEXTS, memory_checksum
from beaver_memory.store.fingerprint import digest_of
from beaver_memory.store.people import labels_of
from beaver_memory.store.protocol import Analysed, IndexRow
from beaver_memory.texts import (
    cleaned,
    cleaned_all,
    is_clean,
    micros,
    micros_or_none,
    moment,
    moment_or_none,
    packed,
    seconds,
    unpacked,
)

_TEXTS = ("store", "type", "scope", "project", "session", "agent", "source", "speaker", "origin")
_LISTS = ("facts", "tags", "keywords", "related_files", "related_people")
_PROSE = ("title", "summary", "narrative", "evidence")
_NUMBERS = ("confidence", "importance", "mention_count", "token_count")
_MOMENTS = ("created_at", "updated_at")
_MAYBE_MOMENTS = ("expires_at", "valid_from", "valid_until", "last_accessed_at", "deleted_at")

_READ = (*(name for name in CHECKED if name not in {"length", "terms"}), "owner")
COLUMNS = ", ".join(f"o.{name}" for name in _READ)
"""Columns that `memory_of` reads."""

_TEXT_FIELDS = frozenset({"title", "narrative", "facts", "keywords"})
SEARCHED = _TEXT_FIELDS | {"tags", "related_people"}
"""Fields that the word index holds."""
EMBEDDED = _TEXT_FIELDS - {"keywords"}
"""Fields from which an embedding is made."""
ANALYSED = _TEXT_FIELDS
"""Fields from which terms are made."""

_STORES = {str(each): each for each in Store}
_KINDS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_LISTS, unpacked),
    **dict.fromkeys(_MOMENTS, moment),
    **dict.fromkeys(_MAYBE_MOMENTS, moment_or_none),
    "store": _STORES.__getitem__,
    "pinned": bool,
}


def memory_of(row: Iterable[Any], owners: Mapping[int, Owner]) -> Memory:
    """Return the memory that a row of `COLUMNS` holds.

    Raises:
        DamagedRow: the row does not hold a memory.
    """
    # The store checks a memory when it writes it; a second check here would cost ten times as much as reading.
    memory = Memory.__new__(Memory)
    values = memory.__dict__
    values.update(zip(_READ, row, strict=True))
    try:
        for name in _MOMENTS:
            values[name] = moment(values[name])
        for name in _MAYBE_MOMENTS:
            if values[name] is not None:
                values[name] = moment(values[name])
        for name in _LISTS:
            values[name] = () if values[name] == "[]" else unpacked(values[name])
        values["pinned"] = values["pinned"] == 1
        values["uid"] = values["uid"].hex()
        values["hash"] = values["hash"].hex()
        values["store"] = _STORES[values["store"]]
        values["owner"] = owners[values["owner"]]
    except (ValueError, KeyError, OverflowError) as error:
        raise DamagedRow("a row that is not a memory") from error
    return memory


def clean(memory: Memory) -> Memory:
    """Return a memory whose texts and moments every database can hold; moments are in UTC."""
    changed: dict[str, Any] = {name: cleaned(getattr(memory, name)) for name in (*_TEXTS[1:], *_PROSE)}
    changed |= {name: cleaned_all(getattr(memory, name)) for name in _LISTS}
    moments = {name: getattr(memory, name) for name in (*_MOMENTS, *_MAYBE_MOMENTS)}
    changed |= {name: moment_or_none(micros_or_none(value)) for name, value in moments.items()}
    return attrs.evolve(memory, **{name: value for name, value in changed.items() if value != getattr(memory, name)})


def text_of(title: str, narrative: str, facts: Sequence[str]) -> str:
    """Return the whole text of a memory; as `Memory.text`."""
    return "\n".join(part for part in (title, narrative, *facts) if part)


def new_row(item: Analysed, owner: int, version: int, now: int, uid: bytes) -> tuple[Any, ...]:
    """Return the values of the statement `add_memory` for a new memory."""
    new = item.memory
    title, narrative, facts = cleaned(new.title), cleaned(new.narrative), new.facts and cleaned_all(new.facts)
    words = (new.type, new.scope, new.project, new.session, new.agent, new.source, new.speaker, new.origin)
    created = now if new.created_at is None else micros(new.created_at)
    return (
        owner,
        version,
        new.store.value,
        *(words if is_clean("".join(words)) else map(cleaned, words)),
        int(new.pinned),
        float(new.confidence),
        float(new.importance),
        created,
        new.expires_at and micros(new.expires_at),
        new.valid_from and micros(new.valid_from),
        new.valid_until and micros(new.valid_until),
        now,
        now,
        estimate_tokens(text_of(title, narrative, facts) if narrative or facts else title),
        uid,
        digest_of(title, facts),
        item.length,
        item.terms,
        packed(new.tags),
        packed(new.keywords),
        packed(new.related_files),
        packed(new.related_people),
        title,
        cleaned(new.summary),
        packed(facts),
        narrative,
        cleaned(new.evidence),
    )


def checksum_of_new(owner: Owner, id_: int, row: Sequence[Any]) -> int:
    """Return the checksum of a new memory with the values of `new_row`."""
    numbers = (id_, row[11], *row[14:18], None, row[19], 1, row[20], None, None, row[23], row[12], row[13], None)
    return memory_checksum(owner, (*numbers, *row[21:23], row[24], *row[2:11], *row[25:]))


def checksum_of(memory: Memory, length: int, terms: bytes) -> int:
    """Return the checksum of a stored memory with its terms and their number."""
    more = {"length": length, "terms": terms}
    values = [more[name] if name in more else stored(name, getattr(memory, name)) for name in CHECKED]
    return memory_checksum(memory.owner, values)


def checksum_of_forgotten(owner: Owner, id_: int, uid: bytes, created: int, now: int) -> int:
    """Return the checksum of the row of a memory that was forgotten at a moment."""
    numbers = (id_, 0, created, None, None, None, now, now, 1, 0, None, None, 0, 0.0, 0.0, None)
    return memory_checksum(owner, (*numbers, uid, b"", b"", *("[]" if name in _LISTS else "" for name in TEXTS)))


def stored(name: str, value: Any) -> Any:
    """Return the column value for a value of a field."""
    if name in _LISTS:
        return packed(value)
    if name in _MOMENTS or name in _MAYBE_MOMENTS:
        return micros_or_none(value)
    if name in {"hash", "uid"}:
        return bytes.fromhex(value)
    if name == "pinned":
        return int(value)
    return str(value) if name == "store" else value


def told(fields: Mapping[str, Any]) -> str:
    """Return fields of a memory as JSON, for its history."""
    return json.dumps({name: _plain(stored(name, value)) for name, value in fields.items()}, ensure_ascii=False)


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def retold(text: str) -> dict[str, Any]:
    """Return the fields that `told` converted to JSON.

    Raises:
        DamagedRow: the text holds something else.
    """
    try:
        return {name: _given(_KINDS.get(name), value) for name, value in json.loads(text).items()}
    except (ValueError, OverflowError) as error:
        raise DamagedRow("an entry that is not a history entry") from error


def _given(kind: Any, value: Any) -> Any:
    return value if kind is None or value is None else kind(value)


def index_row_of(row: Sequence[Any]) -> IndexRow:
    """Return the index row of the memory that a row of the statement `changed_memories` holds."""
    id_, version, deleted, terms, length, store, type_, scope, project, session, agent, source, speaker = row[:13]
    if deleted is not None:
        return IndexRow(id=id_, version=version, uid=row[25], gone=True, updated=seconds(deleted, 0.0))
    tags, files, people, created, updated, expires, valid_from, valid_until = row[13:21]
    columns = (store, type_, scope, project, session, agent, source)
    return IndexRow(
        id=id_,
        version=version,
        terms=terms,
        length=length,
        labels=labels_of(columns, unpacked(tags), unpacked(files), unpacked(people)),
        session=session,
        speaker=speaker,
        created=seconds(created, 0.0),
        updated=seconds(updated, 0.0),
        expires=seconds(expires, float("inf")),
        valid_from=seconds(valid_from, float("-inf")),
        valid_until=seconds(valid_until, float("inf")),
        mentions=row[21],
        importance=row[22],
        confidence=row[23],
        pinned=bool(row[24]),
        uid=row[25],
        doubted_by=row[26],
    )
