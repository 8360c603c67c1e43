"""The gate of writes: every text that becomes a memory passes it, whatever the entrance."""

from collections.abc import Iterable, Iterator

import attrs

from beaver_hostspecs import holds_secret
from beaver_memory.records import NewMemory
from beaver_memory.runtime.reports import Refusal
from beaver_toolkit.redaction.redactor import HELD, Redactor

TEXTS = (
    "title", "narrative", "summary", "evidence", "facts", "type", "keywords", "tags", "related_files", "related_people",
)  # fmt: skip
"""The fields in which rules look for secrets. The others are names and ids, which may look random."""

NAMES = ("project", "agent", "speaker")
"""Names in which rules look for secrets, but not for those of `_NUMBERS`, which a name may be."""

_NUMBERS = frozenset({"card number", "account number", "e-mail address", "phone number"})

_APART = "\n" * 8


class WriteGate:
    """Refuses memories with a credential, or with other texts that the policy calls secret. Thread-safe.

    Args:
        redactor: finds secrets.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def refusal(self, memory: NewMemory) -> Refusal | None:
        """Return why a memory must not be stored, or `None`."""
        kinds = self._kinds(memory, TEXTS) or [each for each in self._kinds(memory, NAMES) if each not in _NUMBERS]
        if not kinds and any(map(holds_secret, _texts(memory, attrs.fields_dict(NewMemory)))):
            kinds = [HELD]
        return _refusal(kinds) if kinds else None

    def _kinds(self, memory: NewMemory, names: Iterable[str]) -> list[str]:
        return [each.kind for each in self._redactor.find(_APART.join(_texts(memory, names)))]

    def first_refusal(self, memories: Iterable[NewMemory]) -> Refusal | None:
        """Return why a write of several memories is refused, or `None`."""
        return next((refusal for memory in memories if (refusal := self.refusal(memory)) is not None), None)


def _refusal(kinds: list[str]) -> Refusal:
    """Return a sentence with the kinds of the secrets, and never with their texts."""
    return Refusal(
        code="secret",
        sentence=f"The text holds a secret ({', '.join(kinds)}); leave it out, or name the place where it is kept. "
        "Secrets are never remembered.",
    )


def _texts(memory: NewMemory, names: Iterable[str]) -> Iterator[str]:
    for value in (getattr(memory, name) for name in names):
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple):
            yield from value
