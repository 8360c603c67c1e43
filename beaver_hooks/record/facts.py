"""Keeps facts content-free: flat, short, scrubbed, and without what names a person."""

import re
from collections.abc import Callable, Iterable, Mapping
from math import isfinite

from beaver_hostspecs import Fact, Personal, Turn, scrub
from beaver_hostspecs.naming import type_name
from beaver_hostspecs.scrubbing import MASK

LONGEST = 500
"""Characters of a string fact; what needs more is content."""

MOST_ITEMS = 50
"""Items of a list fact, and facts of an event."""

SHORTEST_PERSONAL = 6
"""Shorter ids are looked for as a whole only: `u1` is part of many words."""

SHORTEST_EXCERPT = 20
"""A text of at least so many characters that is part of a prompt or an id is an excerpt of it, not a fact."""

_INTEGERS = (-(2**63), 2**63 - 1)
"""What every sink can store; printing a number of any size takes any time."""

Identify = Callable[[str], str]
"""Returns the keyed hash of a value."""


def personal_values(turn: Turn) -> tuple[str, ...]:
    """Return what in a turn is content or could identify a person, longest first.

    Each value also as it looks once secrets are masked, and on one line: that is how it turns up in facts.
    """
    actors = turn.actors
    values = {
        turn.prompt, turn.session, turn.conversation, turn.user, actors.speaker, actors.subject,
    }  # fmt: skip
    masked = {value: scrub(value) for value in values if value}
    shapes = {*masked, *masked.values(), *(" ".join(each.split()) for each in masked.values())} - {"", MASK}
    return tuple(sorted(shapes, key=lambda shape: (-len(shape), shape)))


def clean(facts: Mapping[str, object], *, personal: Iterable[str], identify: Identify) -> dict[str, Fact | list[Fact]]:
    """Return `facts` as they may be recorded."""
    personal = tuple(personal)
    some = list(facts.items())[:MOST_ITEMS]
    return {
        clean_name(key, personal=personal, identify=identify): _clean(value, personal, identify) for key, value in some
    }


def clean_name(name: str, *, personal: Iterable[str], identify: Identify) -> str:
    """Return `name`, of an event or a fact, as any log format and any query can take it."""
    return re.sub(r"\W+", "_", clean_text(name, personal=personal, identify=identify)) or "_"


def _clean(value: object, personal: tuple[str, ...], identify: Identify) -> Fact | list[Fact]:
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean_one(item, personal, identify) for item in list(value)[:MOST_ITEMS]]
    return _clean_one(value, personal, identify)


def _clean_one(value: object, personal: tuple[str, ...], identify: Identify) -> Fact:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, Personal):
        return pseudonym(value.value, identify)
    if isinstance(value, str):
        return clean_text(value, personal=personal, identify=identify)
    return type_name(value)


def _number(value: float) -> Fact:
    # A subclass, an enum for example, may print as anything; what is kept is the plain number.
    if isinstance(value, int):
        plain = int.__int__(value)
        return plain if _INTEGERS[0] <= plain <= _INTEGERS[1] else "int"
    number = float.__float__(value)
    return number if isfinite(number) else str(number)


def clean_text(text: str, *, personal: Iterable[str], identify: Identify) -> str:
    """Return `text` scrubbed, without anything personal, on one line and short."""
    text = scrub(str.__str__(text))
    for value in personal:
        if value == text or (len(text) >= SHORTEST_EXCERPT and text in value):
            text = pseudonym(value, identify)
        elif len(value) >= SHORTEST_PERSONAL and value in text:
            text = text.replace(value, pseudonym(value, identify))
    return " ".join(text[:LONGEST].split())


def pseudonym(value: str, identify: Identify) -> str:
    """Return the keyed hash of `value` and its length."""
    return f"{identify(value)}/{len(value)}"
