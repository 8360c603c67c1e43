"""Keeps facts content-free: flat, short, scrubbed, and without names of persons."""

import re
from collections.abc import Callable, Mapping
from math import isfinite

from beaver_hooks.receipts.private_texts import HORIZON, PrivateTexts
from beaver_hostspecs import Fact, Personal, scrub
from beaver_hostspecs.naming import type_name

LONGEST = 500
"""Characters of a string fact; a longer text is content."""

MOST_ITEMS = 50
"""Items of a list fact, and facts of an event."""

_INTEGERS = (-(2**63), 2**63 - 1)
"""The integers that every sink can store; the time to print a larger number has no limit."""

Identify = Callable[[str], str]
"""Returns the keyed hash of a value."""


def clean(facts: Mapping[str, object], *, private: PrivateTexts, identify: Identify) -> dict[str, Fact | list[Fact]]:
    """Return `facts` in the form that may be recorded."""
    some = list(facts.items())[:MOST_ITEMS]
    return {
        clean_name(key, private=private, identify=identify): _clean(value, private, identify) for key, value in some
    }


def clean_name(name: str, *, private: PrivateTexts, identify: Identify) -> str:
    """Return the name of an event or a fact in a form that fits every log format and every query."""
    return re.sub(r"\W+", "_", clean_text(name, private=private, identify=identify)) or "_"


def _clean(value: object, private: PrivateTexts, identify: Identify) -> Fact | list[Fact]:
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean_one(item, private, identify) for item in list(value)[:MOST_ITEMS]]
    return _clean_one(value, private, identify)


def _clean_one(value: object, private: PrivateTexts, identify: Identify) -> Fact:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, Personal):
        return pseudonym(value.value, identify)
    if isinstance(value, str):
        return clean_text(value, private=private, identify=identify)
    return type_name(value)


def _number(value: float) -> Fact:
    # A subclass, an enum for example, may print as anything; keep the plain number.
    if isinstance(value, int):
        plain = int.__int__(value)
        return plain if _INTEGERS[0] <= plain <= _INTEGERS[1] else "int"
    number = float.__float__(value)
    return number if isfinite(number) else str(number)


def clean_text(text: str, *, private: PrivateTexts, identify: Identify) -> str:
    """Return `text` scrubbed, on one line and short; its keyed hash and length if it reveals anything private."""
    plain = str.__str__(text)
    # Masked before it is cut: half a secret is not recognised. The limit bounds the time for a huge text.
    line = " ".join(scrub(plain[: 8 * LONGEST]).split())
    return pseudonym(plain, identify) if private.is_in(line[: 2 * LONGEST]) else line[:LONGEST].rstrip()


def pseudonym(value: str, identify: Identify) -> str:
    """Return the keyed hash of `value` (of its beginning, if it is huge) and its length."""
    return f"{identify(value[:HORIZON])}/{len(value)}"
