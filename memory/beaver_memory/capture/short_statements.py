"""Tells short statements that hold beyond the day from the small talk around them, and acknowledgements. Pure.

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

_LONGEST_ACKNOWLEDGEMENT = 200
_MOST_ACKNOWLEDGING = 6
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")

_ACKNOWLEDGING = frozenset(
    """
    ok okay okey k kk yes yep yeah yup y no nope nah n thanks thank you thx ty cheers great good nice cool perfect
    excellent awesome fine sure alright right correct exactly agreed got it understood done please lgtm worked works
    ja jo nein danke gut super prima passt klar genau richtig stimmt verstanden bitte alles einverstanden sehr schön
    好 好的 好吧 好啊 好啦 谢谢 謝謝 谢谢你 多谢 是 是的 对 對 对的 嗯 嗯嗯 行 可以
    明白 明白了 知道了 了解 不 不用 不用了
    没问题 沒問題 收到 very much so a lot really that this all well oh ah sounds looks
    """.split()  # noqa: SIM905 - words are read better as words
)

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


def acknowledges(text: str) -> bool:
    """Return whether a text acknowledges, and says nothing else."""
    if len(text) > _LONGEST_ACKNOWLEDGEMENT:
        return False
    words = _WORD.findall(text.casefold())
    return len(words) <= _MOST_ACKNOWLEDGING and {*words} <= _ACKNOWLEDGING
