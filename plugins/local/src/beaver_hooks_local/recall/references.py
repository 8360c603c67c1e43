"""Turns hits into references, within a bound of tokens. Pure."""

from collections.abc import Sequence

import attrs
from attrs import field

from beaver_hooks_local.recall.excerpts import excerpt
from beaver_hooks_local.recall.selection import NO_ROOM, Selection
from beaver_hostspecs import Reference
from beaver_hostspecs.tokens import estimate_tokens
from beaver_memory.query import Hit
from beaver_memory.runtime.hit_texts import in_line

PROVENANCE = 50
"""Tokens that a host spends on the provenance of a reference, approximately."""

FRAME = 100
"""Tokens that a host spends on the frame around all references of a plugin, at most."""


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
