"""Finds the lines of a conversation that share most words with a question, with their sources. Pure.

Sources: the blocks in the system prompt, the reference messages of memory plugins, and the history. The score is the
number of shared words, without weights. Chinese, Japanese and Korean characters count as words of their own.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from beaver_hooks.agent.messages import ChatMessage
from beaver_toolkit.words import HANGUL, SPACELESS

MOST_LINES = 3
_NEWEST = 200
"""The most messages of the history that are searched; the next one is the most characters of each."""
_LONGEST = 20_000
_LONGEST_LINE = 500

_REFERENCES = re.compile(r'Reference data recalled by the memory plugin "(?P<plugin>[^"\n]*)"')
_BAR = "| "
_OWN = ("From ", "The tool ", "I was given nothing", "I have no memory tool")
"""The beginnings of the offline provider's answers: quoting them would quote quotations."""

_CJK = SPACELESS + HANGUL
_WORD = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]{{2,}}")
_COMMON_WORDS = """
about all also am an and any are as at be been but by can could did do does for from had has have he her him his how if
in into is it its know me my not of on or our please said say she should so tell than that the their them then there
they this to us was we were what when where which who whom whose why will with would you your
aber als am an auch auf aus bei bin bist das dass dein deine dem den der des die dir du ein eine einem einen einer er es
haben hat habe ich ihr im in ist kann man mein meine mich mir mit nicht oder sie sind und uns von war warum was weisst
welche welcher welches wer wie wir wo zu zum zur
"""
"""Stop words in English and German."""
_COMMON = frozenset(_COMMON_WORDS.split())

Found = tuple[str, str]
"""The source of a line, and the line."""


def best_lines(question: str, given: Sequence[ChatMessage]) -> list[Found]:
    """Return at most three lines that share most words with `question`, in the order of `given`; or none.

    Args:
        question: the user's question.
        given: every message before it, the system prompt first.
    """
    asked = words(question)
    scored = [(len(asked & words(line)), source, line) for source, line in _lines(given)] if asked else []
    best = max((score for score, _, _ in scored), default=0)
    found = dict.fromkeys((source, line) for score, source, line in scored if score == best and best)
    return list(islice(found, MOST_LINES))


def words(text: str) -> frozenset[str]:
    """Return the distinctive words of a text, or of its beginning, without case and plural."""
    found = {*_WORD.findall(text[:_LONGEST].casefold())}
    return frozenset(_singular(word) for word in found - _COMMON)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > len("abc") and word.endswith("s") else word


def _lines(given: Sequence[ChatMessage]) -> Iterator[Found]:
    spoken = [message for message in given if message.role in {"user", "assistant"}]
    newest = {id(message) for message in spoken[-_NEWEST:]}
    for message in given:
        if message.role == "system":
            yield from _of("the blocks in the system prompt", message.text)
        elif id(message) in newest or _REFERENCES.match(message.text):
            yield from _spoken(message)


def _spoken(message: ChatMessage) -> Iterator[Found]:
    found = _REFERENCES.match(message.text) if message.role == "user" else None
    if found is not None:
        quoted = (line.removeprefix(_BAR) for line in message.text.splitlines() if line.startswith(_BAR))
        yield from _of(f'the references of the memory plugin "{found["plugin"]}"', "\n".join(quoted))
    elif not message.text.startswith(_OWN):
        # An earlier question is no answer.
        yield from ((source, line) for source, line in _of("the history", message.text) if not line.endswith("?"))


def _of(source: str, text: str) -> Iterator[Found]:
    for line in text[:_LONGEST].splitlines():
        shown = line.strip()[:_LONGEST_LINE]
        if shown:
            yield source, shown
