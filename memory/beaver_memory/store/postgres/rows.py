"""Converts memories to rows of the tables, with their salted terms, and rows to memories."""

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import attrs
import numpy as np

from beaver_hostspecs.tokens import estimate_tokens
from beaver_memory.errors import DamagedRow
from beaver_memory.patterns import words_in
from beaver_memory.records import Memory, NewMemory, Owner
from beaver_memory.store.checksums import CHECKED, memory_checksum
from beaver_memory.store.fingerprint import digest_of
from beaver_memory.store.people import narrow_labels
from beaver_memory.store.postgres.owners import OwnerKey
from beaver_memory.store.protocol import Analysed
from beaver_memory.store.rows import COLUMNS as SHOWN
from beaver_memory.store.rows import memory_of, stored, text_of
from beaver_memory.texts import cleaned, cleaned_all, folded, micros, micros_or_none, packed

TEXTS = ("title", "summary", "facts", "narrative", "keywords", "evidence")
"""Columns of the table `texts`, which hold a field of the memory."""

_WRITTEN = re.compile(r"\w+")
_WORDS = ("type", "scope", "project", "session", "agent", "source", "speaker", "origin")
_SHOWN = tuple(name.partition(".")[2] for name in SHOWN.split(", "))
_READ = (*CHECKED, "owner", "checksum")
_TERMS, _LENGTH = _READ.index("terms"), _READ.index("length")
_ORDER = tuple(_READ.index(name) for name in _SHOWN)

COLUMNS = ", ".join(f"{'t' if name in TEXTS else 'o'}.{name}" for name in _READ)
"""Columns that `memories_of` reads, of `observations AS o` and `texts AS t`."""

OBSERVATION = (
    *("tenant", "id", "owner", "version", "created_at", "updated_at", "added_at", "expires_at", "valid_from"),
    *("valid_until", "deleted_at", "last_accessed_at", "confidence", "importance", "mention_count", "token_count"),
    *("length", "checksum", "pinned", "store", *_WORDS, "tags", "related_files", "related_people"),
    *("labels", "uid", "hash", "terms", "words", "superseded_by", "doubted_by"),
)
"""Columns of a new row of `observations`."""

OBSERVATION_TYPES = (
    *("int8", "int8", "int4", *["int8"] * 9, "float8", "float8", *["int8"] * 4, "int2", *["text"] * 12),
    *("text[]", "bytea", "bytea", "bytea", "int8[]", "int8", "int8"),
)

TEXT = ("tenant", "id", *TEXTS, "folded")
"""Columns of a new row of `texts`."""

TEXT_TYPES = ("int8", "int8", *["text"] * 7)

_HEAD = struct.Struct("<H")
_PASSAGE = struct.Struct("<II")
_BYTES = 9
"""Of a hash and its count."""


def words_of(key: OwnerKey, packed: bytes) -> list[int]:
    """Return the distinct words of packed terms, none for bytes that are no packed terms."""
    try:
        hashes = _hashes(packed)
    except (struct.error, ValueError):
        return []
    return _salted(key, np.unique(np.concatenate(hashes))) if hashes else []


def salted(key: OwnerKey, terms: Iterable[int]) -> list[int]:
    """Return the words of terms."""
    return _salted(key, np.fromiter(terms, "<u8"))


def _salted(key: OwnerKey, hashes: np.ndarray) -> list[int]:
    return [int(word) for word in (hashes ^ np.uint64(_salt(key))).view("<i8").tolist()]


@lru_cache(maxsize=10_000)
def _salt(key: OwnerKey) -> int:
    return int.from_bytes(blake2b(f"{key.tenant} {key.owner}".encode(), digest_size=8).digest(), "little")


def _hashes(packed: bytes) -> list[np.ndarray]:
    (number,) = _HEAD.unpack_from(packed)
    place, found = _HEAD.size, []
    for _ in range(number):
        size, _length = _PASSAGE.unpack_from(packed, place)
        place += _PASSAGE.size
        found.append(np.frombuffer(packed, "<u8", size, place))
        place += size * _BYTES
    return found


@attrs.frozen
class Stored:
    """A memory with its terms, as a row holds them."""

    memory: Memory
    terms: bytes = attrs.field(repr=False)
    length: int


def stored_of(row: Sequence[Any], owners: Mapping[int, Owner]) -> Stored | None:
    """Return the memory and the terms of a row of `COLUMNS`, `None` if the row fails its checksum."""
    memory = _memory_of(row, owners)
    return None if memory is None else Stored(memory, bytes(row[_TERMS]), row[_LENGTH])


def values_of(found: Stored) -> dict[str, Any]:
    """Return the values that the checksum of a memory covers."""
    values = {name: stored(name, getattr(found.memory, name)) for name in CHECKED if name not in {"terms", "length"}}
    return values | {"terms": found.terms, "length": found.length}


def memories_of(rows: Iterable[Sequence[Any]], owners: Mapping[int, Owner]) -> list[Memory]:
    """Return the memories that rows of `COLUMNS` hold, without those that fail their checksum."""
    return [memory for row in rows if (memory := _memory_of(row, owners)) is not None]


def _memory_of(row: Sequence[Any], owners: Mapping[int, Owner]) -> Memory | None:
    if not is_whole(row, owners):
        return None
    return memory_of([row[place] for place in _ORDER], owners)


def is_whole(row: Sequence[Any], owners: Mapping[int, Owner]) -> bool:
    """Return whether a row of `COLUMNS` has the checksum that was stored with it."""
    try:
        return memory_checksum(owners[row[-2]], row[: len(CHECKED)]) == int(row[-1])
    except (DamagedRow, KeyError):
        return False


def new_values(item: Analysed, key: OwnerKey, id_: int, now: int, uid: bytes) -> dict[str, Any]:
    """Return the values of a new memory by column, but its version and its checksum."""
    new = item.memory
    title, narrative, facts = cleaned(new.title), cleaned(new.narrative), cleaned_all(new.facts)
    return {
        **{name: cleaned(getattr(new, name)) for name in _WORDS},
        **{name: packed(getattr(new, name)) for name in ("tags", "keywords", "related_files", "related_people")},
        **{name: micros_or_none(getattr(new, name)) for name in ("expires_at", "valid_from", "valid_until")},
        "tenant": key.tenant,
        "id": id_,
        "owner": key.owner,
        "created_at": now if new.created_at is None else micros(new.created_at),
        "updated_at": now,
        "added_at": now,
        "deleted_at": None,
        "last_accessed_at": None,
        "confidence": float(new.confidence),
        "importance": float(new.importance),
        "mention_count": 1,
        "token_count": estimate_tokens(text_of(title, narrative, facts)),
        "length": item.length,
        "pinned": int(new.pinned),
        "store": new.store.value,
        "labels": labels_of(new),
        "uid": uid,
        "hash": digest_of(title, facts),
        "terms": item.terms,
        "words": words_of(key, item.terms),
        "title": title,
        "summary": cleaned(new.summary),
        "facts": packed(facts),
        "narrative": narrative,
        "evidence": cleaned(new.evidence),
        "superseded_by": None,
        "doubted_by": None,
        "folded": folded_of(new),
    }


def with_checksum(owner: Owner, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a memory with their checksum."""
    return values | {"checksum": memory_checksum(owner, [values[name] for name in CHECKED])}


def row_of(values: Mapping[str, Any], columns: Sequence[str]) -> tuple[Any, ...]:
    """Return values in the order of columns."""
    return tuple(values[name] for name in columns)


def labels_of(memory: NewMemory) -> list[str]:
    """Return the labels of a memory in its row."""
    return narrow_labels(memory.tags, memory.related_files, memory.related_people)


def folded_of(memory: NewMemory) -> str:
    """Return the words of all texts that phrases are compared with, in each way in which a text is read."""
    lists = (memory.facts, memory.tags, memory.keywords, memory.related_people)
    texts = (memory.title, memory.narrative, *(text for texts in lists for text in texts))
    return "\n".join(f" {line} " for text in texts for line in readings(text))


def readings(text: str) -> list[str]:
    """Return the words of a text as the caller compares them, and as they are written if that differs."""
    clean = cleaned(text)
    ways = (words_in(folded(clean)), _WRITTEN.findall(clean.casefold()))
    return [line for line in dict.fromkeys(" ".join(words) for words in ways) if line]
