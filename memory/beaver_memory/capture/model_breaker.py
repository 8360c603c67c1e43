"""Pauses a small model that fails: meanwhile it is not asked, so that no capture waits for it."""

import re
import threading

from beaver_hostspecs import Clock
from beaver_memory.capture.gates.budget import Ask, BudgetSpentError
from beaver_toolkit.breaker import CLOSED, BreakerPolicy, BreakerState, admit, after_failure

POLICY = BreakerPolicy(failures=1, seconds=60.0, longest=600.0)
"""One failure pauses a model for a minute; each further one in a row for twice as long, up to ten minutes."""

_CATEGORY = re.compile(r"[a-z_]{1,40}")


class ModelPausedError(Exception):
    """The model was not asked, because it failed a while ago.

    Attributes:
        category: of that failure.
    """

    def __init__(self, category: str) -> None:
        self.category = category
        super().__init__(f"the model is paused ({category})")


def category_of(error: Exception) -> str:
    """Return why a model did not answer, in one word without content: the error's own `category`, if it has one."""
    category = getattr(error, "category", None)
    if isinstance(category, str) and _CATEGORY.fullmatch(category):
        return category
    return "timeout" if isinstance(error, TimeoutError) else "error"


class ModelBreaker:
    """The breaker of one model. Thread-safe.

    Args:
        clock: the source of time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._state: BreakerState = CLOSED

    def guarded(self, ask: Ask) -> Ask:
        """Return a function that asks the model unless it is paused.

        Raises of the function:
            ModelPausedError: the model is paused.
        """

        def asked(prompt: str) -> object:
            is_probe = self._admitted()
            try:
                answer = ask(prompt)
            except BudgetSpentError:
                raise
            except Exception as error:
                self._failed(category_of(error), is_probe=is_probe)
                raise
            with self._lock:
                self._state = CLOSED
            return answer

        return asked

    def _admitted(self) -> bool:
        """Return whether the call that begins is a probe."""
        with self._lock:
            is_probe = self._state != CLOSED
            admitted, self._state = admit(self._state, POLICY, now=self._clock.monotonic())
            if not admitted:
                raise ModelPausedError(self._state.reason or "error")
            return is_probe

    def _failed(self, category: str, *, is_probe: bool) -> None:
        with self._lock:
            now = self._clock.monotonic()
            self._state = after_failure(self._state, POLICY, reason=category, now=now, probe=is_probe)
