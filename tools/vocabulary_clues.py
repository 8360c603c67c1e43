"""Writes the clues of the vocabularies' expressions: sets of texts; every match of an expression holds one of each set.

    python tools/vocabulary_clues.py

The clues follow from the expression alone: of the texts that a match must hold, the sets with the longest texts, and
then the smallest ones. They have no blanks, so that a match keeps them when something is left out between its words.
Run this after a change of a vocabulary; without it, the changed expressions are tried on every text.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined] # the parser of `re` has no public name
from re import _parser as parser  # type: ignore[attr-defined] # the same
from typing import Any

import attrs

from beaver_memory.reconcile.vocabulary import expressions
from beaver_memory.reconcile.vocabulary.expressions import Expression, digest_of, in_lower_case
from beaver_memory.reconcile.vocabulary.reader import LANGUAGES, vocabulary

LONG = 4
"""Characters of a clue; a longer one is no better."""

SETS = 2
"""Sets of an expression."""

FEW = 8
"""Letters of a set that are tried one by one."""

_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)

Texts = frozenset[str]


def main() -> None:
    """Write the file."""
    path = Path(expressions.__file__).with_name(expressions.FILE)
    path.write_text(f"{json.dumps(made(), ensure_ascii=False, indent=0, sort_keys=True)}\n", "utf-8")


def made() -> dict[str, dict[str, list[str]]]:
    """Return the clues of each language by expression."""
    return {language: dict(_of_each(every_expression(vocabulary(language)))) for language in LANGUAGES}


def every_expression(part: object) -> Iterator[Expression]:
    """Yield the expressions of a vocabulary, or of a part of it."""
    if isinstance(part, Expression):
        yield part
    elif isinstance(part, tuple):
        for each in part:
            yield from every_expression(each)
    elif attrs.has(type(part)):
        for attribute in attrs.fields(type(part)):
            yield from every_expression(getattr(part, attribute.name))


def _of_each(found: Iterable[Expression]) -> Iterator[tuple[str, list[str]]]:
    for each in found:
        needed = {_fewest(texts) for texts in _needed(parser.parse(each.pattern, re.IGNORECASE))}
        if needed:
            best = sorted(needed, key=lambda texts: (_worth(texts), sorted(texts)), reverse=True)
            yield digest_of(each.pattern), [" ".join(sorted(texts)) for texts in best[:SETS]]


def _fewest(texts: Texts) -> Texts:
    """Return texts in lower case without those that hold another one."""
    plain = {in_lower_case(text) for text in texts}
    return frozenset(text for text in plain if not any(other in text for other in plain if other != text))


def _needed(sequence: Sequence[tuple[Any, Any]]) -> list[Texts]:
    """Return sets of texts: every match of a sequence holds one text of each set."""
    found, run = [], ""
    for code, value in sequence:
        if code is codes.LITERAL and not chr(value).isspace():
            run += chr(value)
            continue
        found += [frozenset({run}), *_of(code, value)]
        run = ""
    return [texts for texts in (*found, frozenset({run})) if texts and "" not in texts]


def _worth(texts: Texts) -> tuple[int, int]:
    return min(LONG, *map(len, texts)), -len(texts)


def _of(code: object, value: Any) -> list[Texts]:
    if code is codes.SUBPATTERN:
        return _needed(value[-1])
    if code in _REPEATS:
        least, _, body = value
        return _needed(body) if least else []
    if code is codes.BRANCH:
        each = [max(_needed(branch), key=_worth, default=frozenset()) for branch in value[1]]
        return [frozenset().union(*each)] if all(each) else []
    if code is codes.IN and len(value) <= FEW and all(kind is codes.LITERAL for kind, _ in value):
        letters = frozenset(chr(letter) for _, letter in value)
        return [] if any(map(str.isspace, letters)) else [letters]
    return []


if __name__ == "__main__":
    main()
