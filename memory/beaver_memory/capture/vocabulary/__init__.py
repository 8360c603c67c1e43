"""The words of each language by which rules find statements worth keeping: one TOML file for each language.

Expressions are verbose and ignore case. `parts` are expressions that others name in braces.
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import attrs

from beaver_memory.capture.records import Kind

Pattern = re.Pattern[str]

_IDEOGRAPH = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")

_MOST = 4_000
"""Characters of a text that tell its language."""

_LEAST_CHINESE = 0.3
"""The share of Chinese characters among the letters of a Chinese text."""

_PLAIN = frozenset({"name", "characters_per_word"})
"""Entries that are no expressions."""


@attrs.frozen(kw_only=True)
class Vocabulary:
    """The words and phrases of one language. Patterns ignore case.

    Attributes:
        name: of the language.
        word: finds words; in a script without spaces, characters.
        common: words that say nothing by themselves.
        own: the speaker speaks of themselves.
        second: the speaker speaks to the listener.
        moment: a time at which something happens.
        event: something that a person did, or that happened.
        amount: a number in words or digits.
        name_: a name of a person, a place, a product; `None` where the script does not tell names apart.
        praise: praise, thanks, greetings: talk that carries no fact.
        vague: words of feelings and advice.
        request: where a request begins that follows a statement in one sentence.
        questions: a sentence that asks begins with a word of a question, so no statement is before it.
        asked: the user asks for the rest to be remembered.
        instructs: the sentence tells the agent how to behave.
        kinds: the phrases of each kind, the strongest kind first.
        profile: the speaker says what they are, have, do or where they live.
        lasting: what a person, a team or a project is, has, or does in general.
        standing: an instruction that holds beyond the task at hand.
        passing: the sentence is about the moment, or about the text or the task at hand.
        doubt: the speaker is not certain.
        hypothetical: the sentence tells what would be.
        story: the message tells a story, or asks for one.
        task_text: the message gives a text to work on, for example to translate.
        reports: someone else says the rest of the sentence.
        characters_per_word: how many matches of `word` make a word.
    """

    name: str
    word: Pattern
    common: frozenset[str]
    own: Pattern
    second: Pattern
    moment: Pattern
    event: Pattern
    amount: Pattern
    praise: Pattern
    vague: Pattern
    request: Pattern
    questions: Pattern
    asked: Pattern
    instructs: Pattern
    kinds: Mapping[Kind, Pattern]
    profile: Pattern
    lasting: Pattern
    standing: Pattern
    passing: Pattern
    doubt: Pattern
    hypothetical: Pattern
    story: Pattern
    task_text: Pattern
    reports: Pattern
    name_: Pattern | None = None
    characters_per_word: float = 1.0


def vocabulary_of(text: str) -> Vocabulary:
    """Return the vocabulary of a text's language; English unless the text is plainly another one."""
    text = text[:_MOST]
    ideographs = 0 if text.isascii() else len(_IDEOGRAPH.findall(text))
    if ideographs and ideographs > _LEAST_CHINESE * sum(map(str.isalpha, text)):
        return _vocabulary("zh")
    english, german = _vocabulary("en"), _vocabulary("de")
    words = [word.casefold() for word in english.word.findall(text)]
    is_german = sum(word in german.common for word in words) > sum(word in english.common for word in words)
    return german if is_german else english


@cache
def _vocabulary(language: str) -> Vocabulary:
    given = tomllib.loads(files(__package__).joinpath(f"{language}.toml").read_text("utf-8"))
    parts, kinds, common = given.pop("parts", {}), given.pop("kinds"), given.pop("common")

    def pattern(text: str) -> Pattern:
        for name, part in parts.items():
            text = text.replace(f"{{{name}}}", part)
        return re.compile(text, re.IGNORECASE | re.VERBOSE)

    entries: dict[str, Any] = {name: value if name in _PLAIN else pattern(value) for name, value in given.items()}
    kinds = {kind: pattern(text) for kind, text in kinds.items()}
    return Vocabulary(common=frozenset(common.split()), kinds=kinds, **entries)
