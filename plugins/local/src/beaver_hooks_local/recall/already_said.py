"""Finds memories that the conversation already contains, so that recall does not repeat them. Pure."""

from collections.abc import Iterable
from typing import Protocol

from beaver_hostspecs import Turn
from beaver_memory.records import Memory

MOST_MESSAGES = 100
MOST_CHARACTERS = 200_000
SHORTEST = 12
"""Characters of the shortest text that counts as repeated: shorter texts occur by chance."""


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
        texts: the messages, oldest first.
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
        """Whether the conversation contains a memory word for word."""
        # The first word rules most memories out, and then the first line, without a search for the whole text.
        return self._begins(memory.title) and self._opens(opening(memory)) and self._has(memory)

    def shows(self, row: Opened) -> bool:
        """Whether the conversation contains a memory, whose first line is known, word for word."""
        return self._opens(row.opening) and self._has(row.memory)

    def _begins(self, title: str) -> bool:
        word = title.split(None, 1)[:1]
        # A quoted line begins with a mark that `plain` leaves out.
        return "\n" in title or (word[0].casefold() if word else "") in self._text

    def _opens(self, line: str) -> bool:
        return line in self._text

    def _has(self, memory: Memory) -> bool:
        text = plain(memory.text[:MOST_CHARACTERS])
        return len(text) >= SHORTEST and text in self._text


def opening(memory: Memory) -> str:
    """Return the first line of a memory in the form that `plain` gives a conversation."""
    return plain(memory.title[:MOST_CHARACTERS])


def plain(text: str) -> str:
    """Return a text without the differences that wrapping, quoting and letter case make."""
    return " ".join(text.replace("\n> ", "\n").casefold().split())
