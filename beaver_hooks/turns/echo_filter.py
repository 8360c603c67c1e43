"""Detects texts that the host injected recently, so that a memory does not learn its own recall.

A text is compared by its words: NFKC, case folded, without invisible characters, punctuation, bullets and
the numbers of lists, so that reflowed and quoted copies count as copies. Scripts without spaces (Chinese,
Japanese, Thai and similar) have no visible words; there every three characters in a row count as one.
Then:

- Four words in a row make a gram. A text of eight words or more was injected when at least half of its
  grams are among those of the session's last turns. A shorter one needs all of them.
- A text of three words was injected when exactly these three stood in a row. A shorter one never was.

Paraphrases may go undetected. Grams of several injected texts add up, so that an answer combined from them
is found, and so are texts that consist of the same stock phrases. A short quotation inside a long answer
does not make the answer a copy.

Limits in characters: 32,768 per turn, the first 65,536 of a checked text, 16 million for all sessions
together; the least recently used sessions are forgotten first. `remember` only stores the texts; the first
check replaces them by hashes, at most 8,192 per turn.
"""

import re
import threading
import unicodedata
from array import array
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice

import attrs
from attrs import field

from beaver_hostspecs.clock import Clock
from beaver_hostspecs.neutralising import neutralise
from beaver_toolkit.words import SIGNS, SPACELESS

_GRAM = 4
_SHORTEST = 3
_SHORT = 8
"""Of a text with fewer words all grams must be found."""
_SHARE = 0.5
_CHARACTERS_PER_TURN = 32_768
_CHARACTERS_ASKED = 65_536
_CHARACTERS_HELD = 16_000_000
_HASHES_PER_TURN = 8_192
_CHARACTERS_PER_WORD = 3
"""The characters of one word in a script without spaces."""


class InjectedMemory:
    """Remembers the texts injected in the last turns of each session. Safe to use from any thread.

    Args:
        turns: the number of remembered turns per session; a turn without injected texts does not count.
        sessions: the number of remembered sessions.
        idle_seconds: how long a session must be unused before `sweep` forgets it.
        clock: the source of the time.
    """

    def __init__(self, *, turns: int = 8, sessions: int = 1000, idle_seconds: float = 3600, clock: Clock) -> None:
        self._turns = turns
        self._sessions = sessions
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._lock = threading.Lock()
        # The least recently used session comes first.
        self._held: OrderedDict[str, _Session] = OrderedDict()
        self._characters = 0

    def __len__(self) -> int:
        """The number of remembered sessions."""
        return len(self._held)

    def remember(self, session: str, turn_id: str, texts: Iterable[str]) -> None:
        """Remember that `texts` were injected in this turn; a second call for the turn adds to the first."""
        kept = tuple(text for text in texts if text)
        if not kept:
            return
        with self._lock:
            held = self._held.setdefault(session, _Session())
            before = held.characters
            held.add(turn_id, kept, self._turns)
            self._characters += held.characters - before
            self._touch(session, held)
            while len(self._held) > self._sessions or self._characters > _CHARACTERS_HELD:
                self._drop(next(iter(self._held)))

    def was_injected(self, session: str, text: str) -> bool:
        """Whether `text` largely consists of texts injected in the last turns of this session."""
        with self._lock:
            held = self._held.get(session)
            if held is None:
                return False
            self._touch(session, held)
            turns = tuple(held.turns.values())
        # Outside the lock: hashing takes long, and `remember` must never wait for it.
        return _found(_words(text[:_CHARACTERS_ASKED]), turns)

    def forget(self, session: str) -> None:
        """Forget this session; does nothing for an unknown session."""
        with self._lock:
            if session in self._held:
                self._drop(session)

    def sweep(self) -> None:
        """Forget the sessions that were unused for longer than `idle_seconds`."""
        latest = self._clock.monotonic() - self._idle_seconds
        with self._lock:
            idle = [session for session, held in self._held.items() if held.used < latest]
            for session in idle:
                self._drop(session)

    def _touch(self, session: str, held: "_Session") -> None:
        held.used = self._clock.monotonic()
        self._held.move_to_end(session)

    def _drop(self, session: str) -> None:
        self._characters -= self._held.pop(session).characters


@attrs.define(eq=False)
class _Turn:
    """The texts of one turn until the first check, and their hashes afterwards."""

    characters: int = 0
    texts: deque[str] = field(factory=deque)
    hashes: "array[int]" = field(factory=lambda: array("q"))
    hashing: threading.Lock = field(factory=threading.Lock)

    def add(self, texts: tuple[str, ...]) -> None:
        for text in texts:
            piece = text[: _CHARACTERS_PER_TURN - self.characters]
            self.texts.append(piece)
            self.characters += len(piece)

    def fingerprint(self) -> "array[int]":
        """Return the hashes; compute them for new texts."""
        # One thread at a time takes texts out; a text that is added meanwhile waits in the deque.
        with self.hashing:
            made = dict.fromkeys(self.hashes)
            while self.texts:
                made.update(dict.fromkeys(_hashes(_words(self.texts.popleft()))))
            if len(made) > len(self.hashes):
                self.hashes = array("q", islice(made, _HASHES_PER_TURN))
            return self.hashes


@attrs.define(eq=False)
class _Session:
    """The last turns of one session, the oldest first."""

    used: float = 0.0
    characters: int = 0
    turns: OrderedDict[str, _Turn] = field(factory=OrderedDict)

    def add(self, turn_id: str, texts: tuple[str, ...], limit: int) -> None:
        turn = self.turns.setdefault(turn_id, _Turn())
        turn.add(texts)
        while len(self.turns) > limit:
            self.turns.popitem(last=False)
        self.characters = sum(each.characters for each in self.turns.values())


def _found(words: list[str], turns: Iterable[_Turn]) -> bool:
    grams = list(_grams(words, min(_GRAM, max(len(words), _SHORTEST))))
    if not grams:
        return False
    asked, known = set(grams), set[int]()
    for turn in turns:
        known |= asked.intersection(turn.fingerprint())
    found = sum(gram in known for gram in grams)
    return found >= len(grams) * (_SHARE if len(words) >= _SHORT else 1)


def _hashes(words: list[str]) -> Iterator[int]:
    for size in range(_SHORTEST, _GRAM + 1):
        yield from _grams(words, size)


def _grams(words: list[str], size: int) -> Iterator[int]:
    # `hash` differs between processes, but the hashes never outlive the process. Too few words give no grams.
    return map(hash, zip(*(words[start:] for start in range(size)), strict=False))


def _words(text: str) -> list[str]:
    patterns = _patterns()
    folded = unicodedata.normalize("NFKC", neutralise(text)).casefold()
    plain = patterns.list_number.sub("", patterns.joiner.sub("", folded))
    if plain.isascii():
        return patterns.word.findall(plain)
    words: list[str] = []
    spaceless = ""
    for word in patterns.word.findall(plain):
        if patterns.spaceless.match(word):
            # A line break or a comma inside such a script does not separate words: copies place them elsewhere.
            spaceless += word
            continue
        words.extend(_pieces(spaceless))
        words.append(word)
        spaceless = ""
    return [*words, *_pieces(spaceless)]


def _pieces(run: str) -> list[str]:
    """Return the overlapping pieces of a run without spaces, which count as its words."""
    if not run:
        return []
    last = max(1, len(run) - _CHARACTERS_PER_WORD + 1)
    return [run[start : start + _CHARACTERS_PER_WORD] for start in range(last)]


@attrs.frozen(kw_only=True)
class _Patterns:
    joiner: re.Pattern[str]
    list_number: re.Pattern[str]
    spaceless: re.Pattern[str]
    word: re.Pattern[str]


@cache
def _patterns() -> _Patterns:
    return _Patterns(
        joiner=re.compile("[\u200c\u200d\ufe0e\ufe0f]"),
        list_number=re.compile(r"^[ \t>|*•\-]*\d{1,3}[.)][ \t]+", re.MULTILINE),
        spaceless=re.compile(f"[{SPACELESS}]"),
        word=re.compile(f"[{SPACELESS}]+|(?:[^\\W_{SPACELESS}]|[{SIGNS}])+"),
    )
