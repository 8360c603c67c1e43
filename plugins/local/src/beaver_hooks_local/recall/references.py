"""Turns hits into references, within a bound of tokens. Pure."""

from collections.abc import Sequence

import attrs
from attrs import field

from beaver_hostspecs import Reference
from beaver_hostspecs.tokens import estimate_tokens
from beaver_memory.query import Hit
from beaver_memory.records import Memory
from beaver_memory.search.terms import passages

PROVENANCE = 50
"""Tokens that a host spends on the provenance of a reference, approximately."""

FRAME = 100
"""Tokens that a host spends on the frame around all references of a plugin, at most."""

WHOLE = 400
"""Tokens up to which a memory is shown whole; a longer one is shown by its best passage."""


@attrs.frozen(kw_only=True)
class Picked:
    """The hits that a turn is given.

    Attributes:
        hits: the best first.
        references: the same as references.
        tokens: of all of them.
        left_out: how many hits did not fit.
    """

    hits: tuple[Hit, ...] = ()
    references: tuple[Reference, ...] = field(default=(), repr=False)
    tokens: int = 0
    left_out: int = 0


def pick(hits: Sequence[Hit], *, limit: int, max_tokens: int) -> Picked:
    """Return the best hits that fit, at most `limit`; one that is too long does not keep a shorter one out."""
    chosen: list[tuple[Hit, Reference]] = []
    spent = 0
    for hit in hits[:limit]:
        made = reference(hit)
        cost = estimate_tokens(made.text) + PROVENANCE
        if spent + cost <= max_tokens:
            chosen.append((hit, made))
            spent += cost
    return Picked(
        hits=tuple(hit for hit, _ in chosen),
        references=tuple(made for _, made in chosen),
        tokens=spent,
        left_out=min(len(hits), limit) - len(chosen),
    )


def reference(hit: Hit) -> Reference:
    """Return a hit as a host renders it."""
    memory = hit.memory
    return Reference(
        text=f"{in_line(memory.speaker)}: {said(hit)}" if memory.speaker else said(hit),
        kind=memory.type or "memory",
        id=str(memory.id),
        score=round(hit.score, 4),
        source=memory.source or None,
        scope=memory.scope,
        session=memory.session or None,
        when=memory.created_at,
    )


def said(hit: Hit) -> str:
    """Return the text of a memory, or the passage of it that the search found, under its title."""
    memory = hit.memory
    if memory.token_count <= WHOLE:
        return memory.text
    cut = passages(memory.text)
    passage = cut[min(hit.passage, len(cut) - 1)]
    return passage if hit.passage == 0 else f"{heading(memory)}\n[...] {passage}"


def heading(memory: Memory, longest: int = 80) -> str:
    """Return the summary or the title of a memory in one line."""
    return in_line(memory.summary or memory.title, longest)


def in_line(text: str, longest: int = 80) -> str:
    """Return a text as a part of one line: nothing in it begins another one."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 3]}..."
