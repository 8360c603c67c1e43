"""What stands in the conversation already. Pure: nobody needs to be reminded of what was just said."""

from collections.abc import Iterable
from typing import Protocol

from beaver_hostspecs import Turn
from beaver_memory.records import Memory

MOST_MESSAGES = 100
MOST_CHARACTERS = 200_000
SHORTEST = 12
"""Characters: of shorter texts it says nothing that they occur somewhere."""


class Opened(Protocol):
    """A memory with its first line, as `opening` returns it."""

    @property
    def memory(self) -> Memory:
        """The memory."""

    @property
    def opening(self) -> str:
        """Its first line."""


class Conversation:
    """The last messages of a turn's history, with its prompt.

    Args:
        texts: what was said, oldest first.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        last, room = [], MOST_CHARACTERS
        for text in reversed(list(texts)[-MOST_MESSAGES:]):
            if room <= 0:
                break
            last.append(text[:room])
            room -= len(text)
        self._text = plain("\n".join(reversed(last)))

    @classmethod
    def of(cls, turn: Turn) -> "Conversation":
        """Return the conversation of a turn."""
        return cls([*(message.text for message in turn.history), turn.prompt])

    def holds(self, memory: Memory) -> bool:
        """Whether a memory stands in it word for word."""
        # Most are not there by their first line, and the whole need not be looked at.
        return self._opens(opening(memory)) and self._has(memory)

    def shows(self, row: Opened) -> bool:
        """Whether a memory whose first line is known stands in it word for word."""
        return self._opens(row.opening) and self._has(row.memory)

    def _opens(self, line: str) -> bool:
        return line in self._text

    def _has(self, memory: Memory) -> bool:
        text = plain(memory.text[:MOST_CHARACTERS])
        return len(text) >= SHORTEST and text in self._text


def opening(memory: Memory) -> str:
    """Return what the first line of a memory would be in a conversation."""
    return plain(memory.title[:MOST_CHARACTERS])


def plain(text: str) -> str:
    """Return a text without what changes when it is wrapped or quoted."""
    return " ".join(text.replace("\n> ", "\n").casefold().split())
