"""Finds the secrets that this process holds, in every shape in which they usually escape."""

import threading
from typing import TYPE_CHECKING

from beaver_hostspecs.scrubbing import SCRUBBER, Scrubber

if TYPE_CHECKING:
    from ahocorasick_rs import BytesAhoCorasick


class HeldSecrets:
    """Searches a text for all secrets of a scrubber in one pass, by Aho and Corasick. Thread-safe.

    Args:
        scrubber: knows the secrets; that of the process unless given.
    """

    def __init__(self, scrubber: Scrubber = SCRUBBER) -> None:
        self._scrubber = scrubber
        self._lock = threading.Lock()
        self._known = 0
        self._automaton: BytesAhoCorasick | None = None

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        """Return where secrets are in a text in UTF-8."""
        automaton = self._current()
        if automaton is None:
            return []
        return [(start, end) for _, start, end in automaton.find_matches_as_indexes(data, overlapping=True)]

    def _current(self) -> "BytesAhoCorasick | None":
        """Return the automaton of the secrets that are known now; `None` without any."""
        known = self._scrubber.known
        if known == self._known:
            return self._automaton
        # Imported late: a process without secrets does not need it.
        from ahocorasick_rs import BytesAhoCorasick  # noqa: PLC0415

        with self._lock:
            needles = [each.encode("utf-8", "surrogatepass") for each in self._scrubber.needles()]
            self._automaton, self._known = BytesAhoCorasick(needles), known
            return self._automaton


HELD_SECRETS = HeldSecrets()
"""Those of the process. Redactors share them, as an automaton takes milliseconds to build."""
