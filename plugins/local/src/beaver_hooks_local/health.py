"""What is wrong with the local memory now: it is well again only when all of it is."""

import threading

from beaver_hostspecs import Report


class Troubles:
    """Keeps what is wrong, by a name for each, and tells a report. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: dict[str, str] = {}
        self._well = False

    def began(self, name: str, category: str, report: Report) -> None:
        """Say that something is wrong, unless that is known."""
        with self._lock:
            known, self._names[name] = self._names.get(name), category
            self._well = False
        if known != category:
            report.degraded(f"{name}_{category}")

    def ended(self, name: str, report: Report) -> None:
        """Say that it is well, unless something else is wrong, or that was said before.

        What an earlier process left behind ends with the first success of this one.
        """
        with self._lock:
            self._names.pop(name, None)
            said, self._well = self._well, not self._names
        if self._well and not said:
            report.recovered()

    @property
    def now(self) -> tuple[str, ...]:
        """What is wrong, in a word each."""
        with self._lock:
            return tuple(f"{name}_{category}" for name, category in self._names.items())
