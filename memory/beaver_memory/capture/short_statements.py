"""Tells short statements that hold beyond the day from the small talk around them. Pure.

A message of a few words has too few features to be worth keeping, and may still be what matters most: an allergy, a
name, a deadline. So a short sentence is kept if it has an attribute that reconciliation knows, for example a residence
or a date, or a phrase for what people and projects are, have or do in general. A sentence about the moment, the
listener or the task at hand is not kept.
"""

import re

from beaver_memory.capture.features import content_words
from beaver_memory.capture.sentences import Sentence
from beaver_memory.capture.vocabulary import Vocabulary
from beaver_memory.reconcile.claims import claims_of

MOST_WORDS = 16
"""Words of a short sentence."""

MOST_CHARACTERS = 160
"""Characters of a short sentence."""

UNSPECIFIC = "other"
"""The attribute that nearly any sentence with "is" has."""

_VALUE = re.compile(r"\d|(?<=\w )(?!I\b)[A-Z]")


def lasts(sentence: Sentence, words: Vocabulary) -> bool:
    """Return whether a sentence is short, and states what holds beyond the day.

    Args:
        sentence: the sentence.
        words: of its language.
    """
    text = sentence.text
    if _states(sentence, words) and words.standing.search(text):
        return True
    return _stands_alone(sentence, words) and (words.lasting.search(text) is not None or _has_attribute(text, words))


def may_change(sentence: Sentence, words: Vocabulary) -> bool:
    """Return whether a sentence is short, and marks a change or an end, or gives a value that a memory may hold."""
    marked = (each.changes or each.ends or each.perfect or each.attributes for each in claims_of(sentence.text))
    return _stands_alone(sentence, words) and any(marked)


def _stands_alone(sentence: Sentence, words: Vocabulary) -> bool:
    """Return whether a sentence is a short statement that is not about the moment, the listener or the task at hand."""
    text = sentence.text
    return _states(sentence, words) and not (words.passing.search(text) or words.second.search(text))


def _states(sentence: Sentence, words: Vocabulary) -> bool:
    text = sentence.text
    return not sentence.is_question and _is_short(text, words) and bool(content_words(text, words))


def _is_short(text: str, words: Vocabulary) -> bool:
    return len(text) <= MOST_CHARACTERS and len(words.word.findall(text)) <= MOST_WORDS * words.characters_per_word


def _has_attribute(text: str, words: Vocabulary) -> bool:
    """Return whether a sentence states an attribute that reconciliation knows, of someone or with a definite value."""
    claims = [each for each in claims_of(text) if each.attributes and not each.planned]
    if any(each.search(text) for each in (_VALUE, words.moment, words.amount)):
        return bool(claims)
    return any((each.own or each.kin or each.language == "zh") and {*each.attributes} - {UNSPECIFIC} for each in claims)
