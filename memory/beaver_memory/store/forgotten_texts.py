"""Keyed hashes of forgotten texts: they tell whether an owner has forgotten the same words, and not which words.

A hash depends on the owner, so that equal texts of two owners have different ones. Without the key a guess cannot be
tested; `sqlite/forgotten_key.py` says where the key of a file is.
"""

import hmac
import re
import unicodedata
from collections.abc import Iterable

from beaver_memory.records import Owner
from beaver_memory.texts import cleaned

LENGTH = 16
"""Bytes of a hash."""

_WORD = re.compile(r"\w+")


def digests(key: bytes, owner: Owner, texts: Iterable[str]) -> dict[str, bytes]:
    """Return the hash of each text that has a word: the same for another case and other punctuation."""
    found = ((text, " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))) for text in texts)
    names = f"{cleaned(owner.tenant)}\0{owner.kind}\0{cleaned(owner.user)}\0"
    return {
        text: hmac.digest(key, f"{names}{words}".encode("utf-8", "replace"), "sha256")[:LENGTH]
        for text, words in found
        if words
    }
