"""Leaves a failing embedder alone for a while: meanwhile queries are answered by words, without waiting for it.

`beaver_toolkit.breaker` decides when the breaker opens and closes. This module adds places and probes, for queries in
threads.

1. One query that fails opens it, unless the embedder refuses it: a refusal costs no time, and may be about that text.
2. While it is open a query gets the same error at once. It stays open a few seconds at first, and twice as long after
   each probe that fails, up to a minute.
3. Then one call probes, for as long as it takes, while the others are refused as before. An answer closes it.
4. A background probe comes a little before the queries, so that no query has to wait.
5. A limited number of queries is with the embedder at once. A query that waits too long for a place counts as a
   failure: an embedder that hangs must not hold all the threads of its callers.

Passages are never refused and open nothing: a failed batch says little about a query. An answered one closes it.
"""

import contextlib
import math
import threading
from collections.abc import Iterator, Sequence
from typing import cast

from beaver_hostspecs import Clock
from beaver_memory.embedding.errors import Category, EmbeddingError, failure
from beaver_memory.embedding.protocol import Embedder, Identity, TokenEmbedder, TokenEmbedding, Vector, with_tokens
from beaver_toolkit.breaker import CLOSED, BreakerPolicy, BreakerState, admit, after_failure

AT_ONCE = 8
"""Queries that are with an embedder at once."""

PATIENCE = 1.0
"""Seconds that a query waits for a place."""

FIRST, LONGEST = 4.0, 60.0
"""Seconds that the breaker stays open, at first and at most."""

LEAD = 1.0
"""Seconds by which a background probe comes before the queries."""

PROBE = "Does it answer?"


POLICY = BreakerPolicy(failures=1, seconds=FIRST, longest=LONGEST, lease=math.inf)


class Breaker:
    """An `Embedder` that calls another one, by the rules above. Thread-safe.

    Args:
        embedder: makes the vectors; closed with this.
        clock: the source of time.
        at_once: how many queries are with the embedder at once.
        patience: how many seconds a query waits for a place.
    """

    def __init__(self, embedder: Embedder, clock: Clock, *, at_once: int = AT_ONCE, patience: float = PATIENCE) -> None:
        self._embedder, self._clock = embedder, clock
        self._at_once, self._patience = at_once, patience
        self._changed = threading.Condition()
        self._state: BreakerState = CLOSED
        self._asking = 0

    @property
    def identity(self) -> Identity:
        """The identity of the inner embedder."""
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

    @property
    def has_tokens(self) -> bool:
        """Whether the inner embedder returns the vectors of tokens."""
        return with_tokens(self._embedder) is not None

    def embed_query_tokens(self, text: str) -> TokenEmbedding:
        """Return a query and its tokens; see `TokenEmbedder`."""
        with self._asked():
            return cast("TokenEmbedder", self._embedder).embed_query_tokens(text)

    def embed_passage_tokens(self, texts: Sequence[str]) -> list[TokenEmbedding]:
        """Return passages and their tokens; see `TokenEmbedder`."""
        found = cast("TokenEmbedder", self._embedder).embed_passage_tokens(texts)
        self._answered()
        return found

    def probe(self) -> bool:
        """Probe, if the breaker is open and a probe is due; return whether the embedder answered."""
        if self.probe_in() != 0.0:
            return False
        with contextlib.suppress(EmbeddingError), self._asked(lead=LEAD):
            # Not a query: its answer may be cached.
            self._embedder.embed_passages([PROBE])
            return True
        return False

    def probe_in(self) -> float | None:
        """Return in how many seconds a probe is due; `None` while the breaker is closed."""
        until = self._state.until
        if until is None:
            return None
        return FIRST if until == math.inf else max(0.0, until - LEAD - self._clock.monotonic())

    def close(self) -> None:
        """Close the embedder."""
        self._embedder.close()

    @contextlib.contextmanager
    def _asked(self, *, lead: float = 0.0) -> Iterator[None]:
        probe = self._enter(lead)
        trouble: Category | None = "unavailable"
        try:
            yield
            trouble = None
            self._answered()
        except EmbeddingError as error:
            trouble = error.category
            raise
        finally:
            self._leave(trouble, probe=probe)

    def _enter(self, lead: float) -> bool:
        """Take a place; return whether the call is a probe. Rules 2, 3 and 5."""
        with self._changed:
            if not self._changed.wait_for(self._may_enter, self._patience):
                self._failed("timeout")
            probe = self._state != CLOSED
            admitted, self._state = admit(self._state, POLICY, now=self._clock.monotonic() + lead)
            if not admitted:
                raise self._refusal()
            self._asking += 1
            return probe

    def _may_enter(self) -> bool:
        """Return whether a call need not wait: a place is free, or the call is refused anyway."""
        return self._state != CLOSED or self._asking < self._at_once

    def _refusal(self) -> EmbeddingError:
        provider = self.identity.provider
        problem = f"The embedder {provider} has failed, so it is not called for a while"
        return failure(provider, cast("Category", self._state.reason), problem, "It is called again within a minute.")

    def _leave(self, trouble: Category | None, *, probe: bool) -> None:
        with self._changed:
            self._asking -= 1
            if trouble is not None:
                self._failed(trouble, probe=probe)
            self._changed.notify_all()

    def _answered(self) -> None:
        with self._changed:
            self._state = CLOSED

    def _failed(self, category: Category, *, probe: bool = False) -> None:
        """Apply rule 1. A call that began before the breaker opened changes nothing."""
        if not probe and (category == "refused" or self._state != CLOSED):
            return
        now = self._clock.monotonic()
        self._state = after_failure(self._state, POLICY, reason=category, now=now, probe=probe)
        self._changed.notify_all()
