"""Leaves an embedder that fails alone for a while, so that nobody waits for it: queries are found by words meanwhile.

1. Closed: everybody asks. A query that fails opens it, unless it is refused: that is said at once, and may be about its
   text alone.
2. Open: whoever would ask gets the same error at once. It lasts a few seconds at first, and twice as long after each
   probe that fails, up to a minute.
3. Then one call asks, as a probe, while the others go on being refused. An answer closes it.
4. Who probes beside the queries comes a little before them, so that none of them has to wait.
5. So many queries are with an embedder at once. Who waits too long for a place takes that for a failure: an embedder
   that hangs must not hold all the threads of those who ask.

Passages are never refused and open nothing: a batch that fails says little of a query. One that is answered closes it.
"""

import contextlib
import threading
from collections.abc import Iterator, Sequence

import attrs

from beaver_hooks_local.embedding.errors import Category, EmbeddingError, failure
from beaver_hooks_local.embedding.protocol import Embedder, Identity, Vector
from beaver_hostspecs import Clock

AT_ONCE = 8
"""Queries that are with an embedder at once, unless said otherwise."""

PATIENCE = 1.0
"""How many seconds a query waits for a place."""

FIRST, LONGEST = 4.0, 60.0
"""How many seconds it is open, at first and at most."""

LEAD = 1.0
"""How many seconds a probe beside the queries comes before them."""

PROBE = "Does it answer?"


@attrs.frozen(kw_only=True)
class _Open:
    """Why it is open, for how long and until when, and whether somebody probes."""

    category: Category
    seconds: float
    until: float
    probed: bool = False


class Breaker:
    """An `Embedder` that asks another one, by the rules above. Thread-safe.

    Args:
        embedder: who is asked; closed with this.
        clock: where time comes from.
        at_once: how many queries are with it at once.
        patience: how many seconds a query waits for a place.
    """

    def __init__(self, embedder: Embedder, clock: Clock, *, at_once: int = AT_ONCE, patience: float = PATIENCE) -> None:
        self._embedder, self._clock = embedder, clock
        self._at_once, self._patience = at_once, patience
        self._changed = threading.Condition()
        self._open: _Open | None = None
        self._asking = 0

    @property
    def identity(self) -> Identity:
        """The identity of the embedder that is asked."""
        return self._embedder.identity

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query; see `Embedder`."""
        with self._asked():
            return self._embedder.embed_query(text)

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """Return the vectors of passages; see `Embedder`."""
        vectors = self._embedder.embed_passages(texts)
        self._answered()
        return vectors

    def probe(self) -> bool:
        """Ask, if it is open and time for a probe; return whether there was an answer."""
        if self.probe_in() != 0.0:
            return False
        with contextlib.suppress(EmbeddingError), self._asked(lead=LEAD):
            # No query: an answer to one may have been kept.
            self._embedder.embed_passages([PROBE])
            return True
        return False

    def probe_in(self) -> float | None:
        """Return in how many seconds it is time for a probe; `None` while it is closed."""
        now_open = self._open
        if now_open is None:
            return None
        return FIRST if now_open.probed else max(0.0, now_open.until - LEAD - self._clock.monotonic())

    def close(self) -> None:
        """Close the embedder."""
        self._embedder.close()

    @contextlib.contextmanager
    def _asked(self, *, lead: float = 0.0) -> Iterator[None]:
        self._enter(lead)
        trouble: Category | None = "unavailable"
        try:
            yield
            trouble = None
            self._answered()
        except EmbeddingError as error:
            trouble = error.category
            raise
        finally:
            self._leave(trouble)

    def _enter(self, lead: float) -> None:
        """Take a place. Rules 2, 3 and 5."""
        with self._changed:
            if not self._changed.wait_for(self._may_enter, self._patience):
                self._failed("timeout")
            if self._open is not None:
                self._begin_probe(self._open, lead)
            self._asking += 1

    def _may_enter(self) -> bool:
        """Whether nobody needs to wait for a place; nobody does for being refused."""
        return self._open is not None or self._asking < self._at_once

    def _begin_probe(self, now_open: _Open, lead: float) -> None:
        if now_open.probed or self._clock.monotonic() < now_open.until - lead:
            provider = self.identity.provider
            said = f"The embedder {provider} has failed, so it is not called for a while"
            raise failure(provider, now_open.category, said, "It is called again within a minute.")
        self._open = attrs.evolve(now_open, probed=True)

    def _leave(self, trouble: Category | None) -> None:
        with self._changed:
            self._asking -= 1
            if trouble is not None:
                self._failed(trouble)
            self._changed.notify_all()

    def _answered(self) -> None:
        with self._changed:
            self._open = None

    def _failed(self, category: Category) -> None:
        """Open it. Who had asked before it opened changes nothing. Rule 1."""
        before = self._open
        if before is None and category == "refused":
            return
        if before is None or before.probed:
            seconds = FIRST if before is None else min(LONGEST, 2 * before.seconds)
            self._open = _Open(category=category, seconds=seconds, until=self._clock.monotonic() + seconds)
            self._changed.notify_all()
