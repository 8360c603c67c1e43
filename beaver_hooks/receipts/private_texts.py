r"""What was said in a turn and who took part in it: what no fact may give away.

Texts are compared by their words: NFKC, case folded, with escapes (`\n`, `\u00e9`, `%20`) undone, and without
punctuation and invisible characters. In scripts without spaces each character counts as a word. Then a text gives
something away if

1. it has three words in a row with something that was said, or is 20 characters or more out of the middle of it;
2. it is the prompt or an id of a person, or holds one of six characters or more, or has a shorter id as a word;
3. it has a word of more than 64 characters: nobody can tell what is in there.

Of a text that was said, `HORIZON` characters count at either end; of the visible history, as many in all, the latest
first. Single words out of a longer prompt are not recognised.
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
"""An id of fewer characters is looked for as a whole only: `u1` could be anything."""

LONGEST_WORD = 64

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U(00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|[abfnrtv])")
_PERCENT = re.compile(r"(?:%[0-9a-fA-F]{2})+")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_WORD = re.compile(rf"[{SPACELESS}]|[^\W_{SPACELESS}]+")


def words_of(text: str) -> list[str]:
    """Return the words of `text`, as they are compared."""
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
    """Everything that was said: its runs of words, and its letters alone. `count` tells whether more was said since."""

    count: int
    runs: frozenset[tuple[str, ...]]
    letters: str


@attrs.define(eq=False)
class Private:
    """What no fact may give away. Looked at only when there is a text to check, from any thread.

    Args:
        prompt: what the user said.
        ids: ids that could identify a person.
        said: what else was said.
    """

    _prompt: str = attrs.field(default="", repr=False)
    _ids: tuple[str, ...] = attrs.field(default=(), repr=False)
    _said: list[str] = attrs.field(factory=list, repr=False)
    _known: _Quotable | None = attrs.field(default=None, init=False, repr=False)

    @classmethod
    def of(cls, turn: Turn, *ids: str) -> Self:
        """Return what is private in a turn, and in further ids."""
        actors = turn.actors
        named = (turn.session, turn.conversation, turn.user, actors.speaker, actors.subject, *ids)
        return cls(turn.prompt, tuple(each for each in named if each), [turn.prompt, *_latest(turn.history)])

    def hear(self, text: str) -> None:
        """Add something that was said later."""
        self._said.append(text)

    def is_in(self, text: str) -> bool:
        """Whether `text` gives any of it away."""
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
        # Not a lock: two threads that come at once make the same, and what was said meanwhile is seen by its count.
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
    """Yield the letters of each text; the text itself where it has none, nothing where it is one secret or too long."""
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
