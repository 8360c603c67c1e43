"""Uids of memories, hashes by which the store finds the same memory again, and keyed hashes of forgotten texts.

A uid is random, 16 bytes, the same in every copy of a memory and unique in a tenant.

A keyed hash tells whether an owner has forgotten the same words, and not which words. It depends on the owner, so that
equal texts of two owners have different ones. Without the key a guess cannot be tested; `sqlite/turn_queue.py` says
where the key of a file is.
"""

import hmac
import re
import secrets
import unicodedata
from collections.abc import Collection, Iterable
from hashlib import sha256

from beaver_memory.records import Owner
from beaver_memory.texts import cleaned, cleaned_all

LENGTH = 16
"""Bytes of a hash."""

_WORD = re.compile(r"\w+")

UID_LENGTH = 16

Named = tuple[int, bytes]
"""The number of a tenant, and a uid."""


def hash_of(title: str, facts: Iterable[str]) -> str:
    """Return the SHA-256 of title and facts, with NUL between them, in hexadecimal digits.

    No stored text holds NUL, so two memories with other titles or facts have different hashes.
    """
    return digest_of(cleaned(title), cleaned_all(facts)).hex()


def digest_of(title: str, facts: Iterable[str]) -> bytes:
    """Return the digest of cleaned title and facts, as bytes."""
    return sha256("\0".join((title, *facts)).encode()).digest()


def digests(key: bytes, owner: Owner, texts: Iterable[str]) -> dict[str, bytes]:
    """Return the hash of each text that has a word: the same for another case and other punctuation."""
    found = ((text, " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))) for text in texts)
    names = f"{cleaned(owner.tenant)}\0{owner.kind}\0{cleaned(owner.user)}\0"
    return {
        text: hmac.digest(key, f"{names}{words}".encode("utf-8", "replace"), "sha256")[:LENGTH]
        for text, words in found
        if words
    }


def new_uid() -> bytes:
    """Return a new uid."""
    return secrets.token_bytes(UID_LENGTH)


def free_uids(given: Iterable[Named], taken: Collection[Named]) -> list[bytes]:
    """Return a uid for each new memory: the given one, or a new one where there is none or another memory has it.

    Args:
        given: the tenants of the memories, with the given uids; empty bytes for none.
        taken: the uids of stored memories.
    """
    used, found = {*taken}, []
    for tenant, uid in given:
        free = new_uid() if not uid or (tenant, uid) in used else uid
        used.add((tenant, free))
        found.append(free)
    return found
