"""Turns hits into references, within a bound of tokens. Pure."""

from collections.abc import Sequence

import attrs
from attrs import field

from beaver_hostspecs import Reference
from beaver_hostspecs.tokens import estimate_tokens
from beaver_memory.query import Hit
from beaver_memory.runtime.hit_texts import in_line, text_of

PROVENANCE = 50
"""Tokens that a host spends on the provenance of a reference, approximately."""

FRAME = 100
"""Tokens that a host spends on the frame around all references of a plugin, at most."""


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
        text=f"{in_line(memory.speaker)}: {text_of(hit)}" if memory.speaker else text_of(hit),
        kind=memory.type or "memory",
        id=str(memory.id),
        score=round(hit.score, 4),
        source=memory.source or None,
        scope=memory.scope,
        session=memory.session or None,
        when=memory.created_at,
    )
