"""The plugin's memory of prompts: pure, bounded, and lost with the process."""

from collections import OrderedDict, deque
from datetime import datetime

import attrs

from beaver_hostspecs import Trust

MOST_PROMPTS = 100
"""Prompts kept per session; the oldest are dropped."""

MOST_SESSIONS = 1_000
"""Sessions kept; those that were idle longest are dropped."""


@attrs.frozen(kw_only=True)
class Prompt:
    """One remembered prompt.

    Attributes:
        number: the number of its turn in the session, from 1.
        text: the prompt.
        when: the time of the prompt.
        trust: the trust of the turn.
    """

    number: int
    text: str = attrs.field(repr=False)
    when: datetime
    trust: Trust


@attrs.define(kw_only=True, eq=False)
class _Page:
    turns: int = 0
    prompts: deque[Prompt] = attrs.field(factory=lambda: deque(maxlen=MOST_PROMPTS))


class Ledger:
    """Counts turns and keeps prompts, by session."""

    def __init__(self) -> None:
        self._pages: OrderedDict[str, _Page] = OrderedDict()

    def turns(self, session: str) -> int:
        """Return how many turns of the session were counted."""
        return self._pages[session].turns if session in self._pages else 0

    def last(self, session: str, limit: int, trust: Trust) -> list[Prompt]:
        """Return the session's last prompts that a user of this trust may see, the newest first."""
        prompts = self._pages[session].prompts if session in self._pages else ()
        return [each for each in reversed(prompts) if trust.reaches(each.trust)][:limit]

    def count(self, session: str) -> int:
        """Count a turn and return how many there are."""
        page = self._pages.setdefault(session, _Page())
        self._pages.move_to_end(session)
        if len(self._pages) > MOST_SESSIONS:
            self._pages.popitem(last=False)
        page.turns += 1
        return page.turns

    def keep(self, session: str, text: str, when: datetime, trust: Trust) -> bool:
        """Keep the prompt of the turn that was counted last; `False` if the session has it already."""
        page = self._pages[session]
        if any(prompt.text == text for prompt in page.prompts):
            return False
        page.prompts.append(Prompt(number=page.turns, text=text, when=when, trust=trust))
        return True

    def forget(self, session: str, trust: Trust) -> int:
        """Forget what a user of this trust may see of a session; return the number of forgotten prompts."""
        page = self._pages.pop(session, _Page())
        kept = [each for each in page.prompts if not trust.reaches(each.trust)]
        if kept:
            self._pages[session] = _Page(turns=page.turns, prompts=deque(kept, maxlen=MOST_PROMPTS))
        return len(page.prompts) - len(kept)
