"""What makes two memories of one owner the same."""

from collections.abc import Iterable
from hashlib import sha256

from beaver_hooks_local.store.texts import cleaned


def hash_of(title: str, facts: Iterable[str]) -> str:
    """Return the SHA-256 of title and facts, with NUL between them, in hexadecimal digits.

    No text that is stored holds NUL: two different memories have different hashes.
    """
    parts = (cleaned(part) for part in (title, *facts))
    return sha256("\0".join(parts).encode()).hexdigest()
