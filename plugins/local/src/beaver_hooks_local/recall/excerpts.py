"""Shortens a long memory to the stretch that fits the prompt best. Pure."""

import re
from collections.abc import Sequence

from beaver_hostspecs.tokens import estimate_tokens
from beaver_memory.query import Hit
from beaver_memory.runtime.hit_texts import passage_of, telling, text_of
from beaver_toolkit.words import SPACELESS, pairs

WHOLE = 80
"""Tokens up to which a memory is shown whole."""

EXCERPT = 45
"""Tokens of the excerpt of a longer one, about."""

LINE = 300
"""Characters at which a text without sentences is cut."""

_RUN = re.compile(rf"(?P<unspaced>[{SPACELESS}]+)|[^\W{SPACELESS}]+")
_UNSPACED = "\u3002\uff01\uff1f"
"""The ends of sentences that no space follows."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])|\n+")


def excerpt(hit: Hit, prompt: str) -> str:
    """Return the text of a short memory, or the sentences of the found passage that have most words of the prompt.

    A shortened text says so, and names the tool that shows the whole memory.
    """
    memory = hit.memory
    if memory.token_count <= WHOLE:
        return text_of(hit)
    sentences = _sentences(passage_of(hit))
    first, end = _best(sentences, telling(_words(prompt)))
    before = "[...] " if first or hit.passage else ""
    found = "".join(f"{each}{'' if each[-1] in _UNSPACED else ' '}" for each in sentences[first:end])
    return f"{before}{found.rstrip()} [... memory_get {memory.id}]"


def _sentences(text: str) -> list[str]:
    whole = [sentence.strip() for sentence in _SENTENCE.split(text) if sentence.strip()]
    return [each[place : place + LINE] for each in whole for place in range(0, len(each), LINE)]


def _words(text: str) -> frozenset[str]:
    """Return the words of a text; of a text without spaces, as Chinese, its pairs of characters."""
    runs = _RUN.finditer(text.casefold())
    return frozenset(piece for run in runs for piece in ((run["unspaced"] and pairs(run[0])) or [run[0]]))


def _best(sentences: Sequence[str], wanted: frozenset[str]) -> tuple[int, int]:
    """Return the bounds of the stretch within the tokens that has most of the words; of equal ones the first."""
    best, bounds = -1, (0, 1)
    found = [_words(sentence) & wanted for sentence in sentences]
    costs = [estimate_tokens(sentence) for sentence in sentences]
    for first in range(len(sentences)):
        end, spent = first + 1, costs[first]
        while end < len(sentences) and spent + costs[end] <= EXCERPT:
            spent += costs[end]
            end += 1
        count = len(frozenset().union(*found[first:end]))
        if count > best:
            best, bounds = count, (first, end)
    return bounds
