"""The words of a memory in the word index: its terms, salted with the owner.

The salt keeps the memories of other owners out of the lists that a question reads. Packed terms are those of
`search/terms.py`: a number of passages in two bytes; of each passage the number of terms n in four bytes, length and
traits in four bytes together, n hashes of eight bytes, n counts of one byte.
"""

import struct
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from beaver_memory.store.postgres.owners import OwnerKey

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
