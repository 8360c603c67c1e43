r"""The private texts of a turn, its messages and the ids of its participants, which no fact may reveal.

Texts are compared by their words: NFKC, case folded, with escapes (`\n`, `\u00e9`, `%20`) undone, and without
punctuation and invisible characters. In scripts without spaces each character counts as a word. A text reveals a
private text if

1. it shares three words in a row with a message, or is an excerpt of 20 characters or more of one;
2. it is the prompt or an id of a person, or holds one of six characters or more, or has a shorter id as a word;
3. it has a word of more than 64 characters, as such a word could hide anything.

Of a message, `HORIZON` characters count at either end; of the visible history, as many in all, the latest first.
Single words of a longer prompt are not recognised.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Self

import attrs

from beaver_hostspecs import Message, Turn, scrub
from beaver_hostspecs.scrubbing import MASK
from beaver_toolkit.words import SPACELESS

HORIZON = 20_000
RUN = 3
SHORTEST_EXCERPT = 20
SHORTEST_PART = 6
SHORTEST_WORD = 3
"""An id of fewer characters is matched as a whole text only: `u1` could be anything."""

LONGEST_WORD = 64

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U(00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|[abfnrtv])")
_PERCENT = re.compile(r"(?:%[0-9a-fA-F]{2})+")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_WORD = re.compile(rf"[{SPACELESS}]|[^\W_{SPACELESS}]+")


def words_of(text: str) -> list[str]:
    """Return the words of `text`, in the form that is compared."""
    if "\\" in text:
        text = _ESCAPE.sub(_unescaped, text)
    if "%" in text:
        text = _PERCENT.sub(_decoded, text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    return _WORD.findall(text.casefold())


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    return chr(int(code, 16)) if code else " "


def _decoded(escapes: re.Match[str]) -> str:
    return bytes.fromhex(escapes[0].replace("%", "")).decode("utf-8", "replace")


@attrs.frozen(kw_only=True)
class _Quotable:
    """The runs of words and the letters of the messages; `count` is the number of messages they come from."""

    count: int
    runs: frozenset[tuple[str, ...]]
    letters: str


@attrs.define(eq=False)
class PrivateTexts:
    """The texts that no fact may reveal. Analysed only when a text is checked; safe to use from any thread.

    Args:
        prompt: the user's prompt.
        ids: ids that could identify a person.
        said: the other messages.
    """

    _prompt: str = attrs.field(default="", repr=False)
    _ids: tuple[str, ...] = attrs.field(default=(), repr=False)
    _said: list[str] = attrs.field(factory=list, repr=False)
    _known: _Quotable | None = attrs.field(default=None, init=False, repr=False)

    @classmethod
    def of(cls, turn: Turn, *ids: str) -> Self:
        """Return the private texts of a turn, with further ids."""
        actors = turn.actors
        named = (turn.session, turn.conversation, turn.user, actors.speaker, actors.subject, *ids)
        return cls(turn.prompt, tuple(each for each in named if each), [turn.prompt, *_latest(turn.history)])

    def hear(self, text: str) -> None:
        """Add a later message."""
        self._said.append(text)

    def is_in(self, text: str) -> bool:
        """Whether `text` reveals a private text."""
        words = words_of(text)
        letters = "".join(words)
        if (letters or text.strip()) in self._wholes or not self._short.isdisjoint(words):
            return True
        if any(part in letters or part in text for part in self._parts) or any(
            len(word) > LONGEST_WORD for word in words
        ):
            return True
        return (len(words) >= RUN or len(letters) >= SHORTEST_EXCERPT) and self._quotes(words, letters)

    def _quotes(self, words: list[str], letters: str) -> bool:
        known = self._quotable()
        if len(letters) >= SHORTEST_EXCERPT and letters in known.letters:
            return True
        return not known.runs.isdisjoint(_runs(words))

    def _quotable(self) -> _Quotable:
        # No lock: two threads at once build the same result, and `count` shows that a later message is missing.
        if (known := self._known) is None or known.count != len(self._said):
            said = tuple(self._said)
            pieces = [words_of(scrub(piece)) for text in said for piece in _ends(text)]
            runs = frozenset(run for words in pieces for run in _runs(words))
            letters = " ".join("".join(words) for words in pieces if len(words) >= RUN)
            self._known = known = _Quotable(count=len(said), runs=runs, letters=letters)
        return known

    @cached_property
    def _wholes(self) -> frozenset[str]:
        return frozenset(_letters((self._prompt, *self._ids)))

    @cached_property
    def _parts(self) -> tuple[str, ...]:
        return tuple(each for each in self._wholes if len(each) >= SHORTEST_PART)

    @cached_property
    def _short(self) -> frozenset[str]:
        return frozenset(each for each in _letters(self._ids) if SHORTEST_WORD <= len(each) < SHORTEST_PART)


def _letters(texts: Iterable[str]) -> Iterator[str]:
    """Yield the letters of each text, or the text itself if it has none; skip a text that is a secret or too long."""
    for text in texts:
        if len(text) <= HORIZON and (masked := scrub(text).strip()) not in ("", MASK):
            yield "".join(words_of(masked)) or masked


def _runs(words: list[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(RUN)), strict=False)


def _ends(text: str) -> tuple[str, ...]:
    return (text,) if len(text) <= 2 * HORIZON else (text[:HORIZON], text[-HORIZON:])


def _latest(history: tuple[Message, ...]) -> Iterator[str]:
    """Yield the visible messages, the latest first, as far as they count."""
    left = HORIZON
    for message in reversed(history):
        if left <= 0:
            return
        yield message.text[:left]
        left -= len(message.text)
