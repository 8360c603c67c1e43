"""What a query asks for beside its words: about whom, a time, a number. Pure."""

from collections.abc import Sequence

import attrs
import numpy as np

from beaver_memory.search.trait_words import HOW_MANY, WHEN


@attrs.frozen(kw_only=True, eq=False)
class Intent:
    """What a query asks for.

    Attributes:
        names: its words, as names; the asker's too if it speaks in the first person.
        asker: the name of who asks.
        when: whether it asks for a time.
        how_many: whether it asks for a number.
    """

    names: np.ndarray = attrs.field(factory=lambda: np.empty(0, "u8"))
    asker: int = 0
    when: bool = False
    how_many: bool = False


def intent_of(text: str, names: Sequence[int], asker: int) -> Intent:
    """Return what the text of a query asks for, with the names in it."""
    small = text.lower()
    return Intent(
        names=np.array(names, "u8"), asker=asker, when=bool(WHEN.search(small)), how_many=bool(HOW_MANY.search(small))
    )
