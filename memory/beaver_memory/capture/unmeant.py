"""Recognises statements that their speaker does not make: conditions, stories, quotations, texts to work on. Pure."""

import re
from typing import Literal

from beaver_memory.capture.sentences import sentences
from beaver_memory.capture.vocabulary import Vocabulary, vocabulary_of

Reason = Literal["", "task_text", "story", "hypothetical", "quoted"]

_QUOTES = re.compile(
    r"[\"\u201c\u201e\u00ab\u300c\u300e][^\"\u201c\u201d\u00ab\u00bb\u300d\u300f]{8,}"
    r"(?:[\"\u201c\u201d\u00bb\u300d\u300f]|$)"
)
"""Spans in quotation marks; shorter ones are titles and names."""


def unmeant(text: str, message: str) -> Reason:
    """Return why a text is no statement of its speaker, in one word; empty if it is one.

    Args:
        text: the statement.
        message: the whole message that it comes from.
    """
    words = vocabulary_of(message)
    if words.task_text.search(message):
        return "task_text"
    if words.story.search(message):
        return "story"
    found = [_of_sentence(each.text, words) for each in sentences(text)]
    return found[0] if found and all(found) else ""


def _of_sentence(sentence: str, words: Vocabulary) -> Reason:
    if words.hypothetical.search(sentence):
        return "hypothetical"
    outside = _QUOTES.sub(" ", sentence)
    is_quoted = outside != sentence and not (words.own.search(outside) and not words.reports.search(outside))
    return "quoted" if is_quoted else ""
