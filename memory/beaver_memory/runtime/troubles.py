"""The current troubles of a memory, which has recovered only when all of them have ended."""

import threading

from beaver_hostspecs import Report

COMMITS = "commits"
"""While the user has not accepted that acknowledged commits are missing; it lasts until the memory is opened again."""

DAMAGE = "damaged"
"""While rows of the database fail their checksums, or vanished; it lasts until a check finds the database whole."""

EMBEDDER = "embedder"
"""While the configured embedder is unavailable; it lasts until the memory is opened again."""

EMBEDDING = "embedding"
"""While queries or memories cannot be embedded."""

INDEX = "index"
"""While no index can be built."""

RERANKER = "reranker"
"""While memories cannot be ranked again by their tokens; it lasts until the memory is opened again."""

SQLITE_VEC = "sqlite_vec"
"""While the configured extension cannot be used."""

PERSONAL = "personal_memory"
"""While the database of the person cannot be read; only the memories of the project are found then."""

QUEUE = "queue"
"""While turns that could not be captured wait for the user."""

STORE = "store"
"""While the database on a server cannot be used; nothing is found or stored then."""

UPKEEP = "upkeep"
"""While upkeep fails, but for the embedder."""


class Troubles:
    """Keeps the current troubles by name, and reports changes. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: dict[str, str] = {}
        self._well = False

    def began(self, name: str, category: str, report: Report) -> None:
        """Add a trouble, and report it unless it is known."""
        with self._lock:
            known, self._names[name] = self._names.get(name), category
            self._well = False
        if known != category:
            report.degraded(f"{name}_{category}")

    def ended(self, name: str, report: Report) -> None:
        """Remove a trouble; report recovery if none is left, unless that is reported already.

        The first success of a process also ends troubles that an earlier process reported.
        """
        with self._lock:
            self._names.pop(name, None)
            recovered = not self._names and not self._well
            self._well = not self._names
        if recovered:
            report.recovered()

    def last(self, name: str) -> bool:
        """Return whether a trouble has begun and not ended."""
        with self._lock:
            return name in self._names

    @property
    def now(self) -> tuple[str, ...]:
        """The current troubles, one word each."""
        with self._lock:
            return tuple(f"{name}_{category}" for name, category in self._names.items())
