"""Checksums of stored rows, equal in every store. They detect accidents and do not defend against an attacker.

The checksum of a memory is the CRC-32 of these bytes, with `last_accessed_at` combined into it afterwards:

1. the numbers of `NUMBERS`, little-endian: integers of eight bytes, shares as float64; -2^63 in place of `None`. The
   lengths of `hash` and of `terms` follow, as integers of eight bytes.
2. tenant and user of the owner, then the texts of `TEXTS`, in UTF-8, with NUL between all of them. No stored text holds
   NUL.
3. the bytes of `uid`, `hash` and `terms`.

Values have their stored form (`rows.stored`): moments in microseconds, lists as JSON texts, an empty list as `[]`. A
CRC-32 detects every change of up to 32 bits in a row, and misses one of 2^32 other changes.
"""

import struct
from collections.abc import Sequence
from typing import Any
from zlib import crc32

from beaver_memory.errors import DamagedRow
from beaver_memory.records import Owner
from beaver_memory.texts import cleaned

NUMBERS = (
    "id",
    "pinned",
    "created_at",
    "expires_at",
    "valid_from",
    "valid_until",
    "deleted_at",
    "updated_at",
    "mention_count",
    "token_count",
    "superseded_by",
    "doubted_by",
    "length",
    "confidence",
    "importance",
)
TEXTS = (
    "store",
    "type",
    "scope",
    "project",
    "session",
    "agent",
    "source",
    "speaker",
    "origin",
    "tags",
    "keywords",
    "related_files",
    "related_people",
    "title",
    "summary",
    "facts",
    "narrative",
    "evidence",
)
BLOBS = ("uid", "hash", "terms")
CHECKED = (*NUMBERS, "last_accessed_at", *BLOBS, *TEXTS)
"""The columns of a memory in the order in which `memory_checksum` takes their values."""

_HEAD = struct.Struct("<13q2d2q")
_NONE = -(2**63)
_ACCESS = len(NUMBERS)
_FIRST_TEXT = _ACCESS + 1 + len(BLOBS)
_PAIR = struct.Struct("<2q")


def memory_checksum(owner: Owner, values: Sequence[Any]) -> int:
    """Return the checksum of a memory, a signed integer of 64 bits.

    Args:
        owner: the owner of the memory.
        values: the values of the columns `CHECKED`, in their order and stored form. Texts may be their UTF-8 bytes.

    Raises:
        DamagedRow: a value has a type that its column never has.
    """
    try:
        texts = values[_FIRST_TEXT:]
        joined = b"\0".join(texts) if isinstance(texts[0], bytes) else "\0".join(texts).encode()
        found = crc_of(values[:_ACCESS], owner_part(owner), joined, values[_ACCESS + 1 : _FIRST_TEXT])
    except (struct.error, TypeError, ValueError, AttributeError) as error:
        raise DamagedRow("a value of another type") from error
    return found ^ access_part(values[_ACCESS])


def access_part(moment: int | None) -> int:
    """Return the part of a checksum that stands for `last_accessed_at`.

    The part is combined by exclusive or, so that a recall changes the checksum without reading the memory: new
    checksum = old checksum ^ old part ^ new part. A checksum that was wrong before stays wrong.
    """
    return 0 if moment is None else 2 * moment + 1


def vector_checksum(id_: int, model: str, data: bytes) -> int:
    """Return the checksum of an embedding: the CRC-32 of the id in eight bytes, the model, NUL, and the values."""
    return crc32(data, crc32(model.encode() + b"\0", crc32(id_.to_bytes(8, "little", signed=True))))


def change_checksum(id_: int, event: str, at: int, old: str, new: str) -> int:
    """Return the checksum of an entry in a memory's history: the CRC-32 of id, moment, event, old and new values.

    Id and moment have eight bytes each; NUL stands between the texts.
    """
    return crc32(f"{event}\0{old}\0{new}".encode(), crc32(_PAIR.pack(id_, at)))


def texts_checksum(owner: Owner, *values: str | bytes | int) -> int:
    """Return the checksum of a person or of a summary of a session.

    It is the CRC-32 of tenant, kind and name of the owner, then of the values, with NUL between all of them. Texts are
    UTF-8, numbers decimal.
    """
    parts = (each if isinstance(each, bytes) else str(each).encode() for each in values)
    return crc32(owner_part(owner) + b"\0".join(parts))


def owner_part(owner: Owner) -> bytes:
    """Return the bytes of an owner in the checksums of its memories."""
    return f"{cleaned(owner.tenant)}\0{owner.kind}\0{cleaned(owner.user)}\0".encode()


def crc_of(numbers: Sequence[Any], owner: bytes, texts: bytes, blobs: Sequence[bytes]) -> int:
    """Return the CRC-32 of a memory, for a reader that has the parts of its row: see `memory_checksum`.

    Args:
        numbers: the values of the columns `NUMBERS`.
        owner: the result of `owner_part`.
        texts: the texts in UTF-8, with NUL between them.
        blobs: the values of the columns `BLOBS`.

    Raises:
        struct.error, TypeError: a value has a type that its column never has.
    """
    id_, pinned, created, expires, start, end, deleted, updated, mentions, tokens, successor, doubt, *rest = numbers
    head = _HEAD.pack(
        id_,
        pinned,
        created,
        _NONE if expires is None else expires,
        _NONE if start is None else start,
        _NONE if end is None else end,
        _NONE if deleted is None else deleted,
        updated,
        mentions,
        tokens,
        _NONE if successor is None else successor,
        _NONE if doubt is None else doubt,
        *rest,
        len(blobs[1]),
        len(blobs[2]),
    )
    return crc32(b"".join((head, owner, texts, *blobs)))
