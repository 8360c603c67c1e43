"""Gates: each one looks at a memory before it is stored, and gives a reason if it must not be."""

from collections.abc import Callable, Iterable

import attrs

from beaver_hostspecs import holds_secret
from beaver_memory.records import NewMemory
from beaver_memory.runtime.reports import Refusal

Gate = Callable[[NewMemory], Refusal | None]


def no_secret(memory: NewMemory) -> Refusal | None:
    """Refuse a memory with a credential that this process knows."""
    if any(map(holds_secret, _texts(memory))):
        return Refusal(
            code="secret", sentence="The text holds a credential; leave it out. Credentials are never remembered."
        )
    return None


GATES: tuple[Gate, ...] = (no_secret,)


def first_refusal(memories: Iterable[NewMemory]) -> Refusal | None:
    """Return why a write is refused, or `None`."""
    return next((refusal for memory in memories for gate in GATES if (refusal := gate(memory))), None)


def _texts(memory: NewMemory) -> Iterable[str]:
    for value in attrs.asdict(memory, recurse=False).values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple):
            yield from value
