"""Turns hits into references, within a bound of tokens. Pure."""

import re
from collections.abc import Sequence

import attrs
from attrs import field

from beaver_hooks_local.recall.selection import NO_ROOM, Selection
from beaver_hostspecs import Reference
from beaver_hostspecs.tokens import estimate_tokens
from beaver_memory.query import Hit
from beaver_memory.runtime.hit_texts import in_line, passage_of, telling, text_of
from beaver_toolkit.words import SPACELESS, pairs

PROVENANCE = 50
"""Tokens that a host spends on the provenance of a reference, approximately."""

FRAME = 100
"""Tokens that a host spends on the frame around all references of a plugin, at most."""

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


@attrs.frozen(kw_only=True)
class Picked:
    """The hits that a turn is given.

    Attributes:
        selection: the hits with their reasons; those that did not fit are not given.
        references: the given ones as references.
        tokens: of all of them.
        left_out: how many hits did not fit.
    """

    selection: Selection = field(factory=Selection)
    references: tuple[Reference, ...] = field(default=(), repr=False)
    tokens: int = 0
    left_out: int = 0


def pick(selected: Selection, prompt: str = "", *, max_tokens: int) -> Picked:
    """Return the selected hits that fit; one that is too long does not keep a shorter one out."""
    chosen: list[tuple[Hit, Reference]] = []
    spent = 0
    for hit in selected.hits:
        made = reference(hit, prompt)
        cost = estimate_tokens(made.text) + PROVENANCE
        if spent + cost <= max_tokens:
            chosen.append((hit, made))
            spent += cost
    hits = tuple(hit for hit, _ in chosen)
    return Picked(
        selection=_fitting(selected, hits),
        references=tuple(made for _, made in chosen),
        tokens=spent,
        left_out=len(selected.hits) - len(hits),
    )


def _fitting(selected: Selection, hits: Sequence[Hit]) -> Selection:
    lost = {hit.memory.id for hit in selected.hits} - {hit.memory.id for hit in hits}
    return selected.without(lost, NO_ROOM)


def reference(hit: Hit, prompt: str = "") -> Reference:
    """Return a hit as a host renders it; a long memory is shortened to what fits the prompt."""
    memory = hit.memory
    text = excerpt(hit, prompt)
    if memory.valid_until is not None:
        text = f"(true until {memory.valid_until:%Y-%m-%d}) {text}"
    return Reference(
        text=f"{in_line(memory.speaker)}: {text}" if memory.speaker else text,
        kind=memory.type or "memory",
        id=str(memory.id),
        score=round(hit.score, 4),
        source=memory.source or None,
        scope=memory.scope,
        session=memory.session or None,
        when=memory.created_at,
    )
