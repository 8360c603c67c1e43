"""Hashes by which the store finds the same memory again."""

from collections.abc import Iterable
from hashlib import sha256

from beaver_memory.texts import cleaned, cleaned_all


def hash_of(title: str, facts: Iterable[str]) -> str:
    """Return the SHA-256 of title and facts, with NUL between them, in hexadecimal digits.

    No stored text holds NUL, so two memories with other titles or facts have different hashes.
    """
    return digest_of(cleaned(title), cleaned_all(facts)).hex()


def digest_of(title: str, facts: Iterable[str]) -> bytes:
    """Return the digest of cleaned title and facts, as bytes."""
    return sha256("\0".join((title, *facts)).encode()).digest()
