"""Rows that fail their checksums: they are not shown, and the store tells of them once."""

import threading
from collections.abc import Callable
from functools import partial

DamageTold = Callable[[int], object]
"""Receives the number of rows that were found damaged since the store was opened."""


class Damage:
    """Keeps which rows were found damaged since the store was opened. Thread-safe.

    Args:
        told: called for each damaged row that was not known.
    """

    def __init__(self, told: DamageTold = bool) -> None:
        self._told = told
        self._lock = threading.Lock()
        self._rows: set[tuple[str, int, int | str]] = set()

    def note(self, kind: str, tenant: int, id_: int | str) -> None:
        """Note a damaged row: its table, the number of its tenant, and the id of its memory or its name."""
        row = (kind, tenant, id_)
        if row in self._rows:
            return
        with self._lock:
            new, count = row not in self._rows, len(self._rows) + 1
            self._rows.add(row)
        if new:
            self._told(count)

    def of(self, tenant: int) -> "TenantDamage":
        """Return a function that notes damaged memories of a tenant."""
        return partial(self.note, "memory", tenant)


TenantDamage = Callable[[int], None]
"""Notes a damaged memory by its id."""
