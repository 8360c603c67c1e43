"""The breaker of a gateway: its state in memory, and in a file that processes share.

No file is touched while searches succeed. Every change is a read, a step and a write under a lock, in a thread of the
breaker's own. Changes that come meanwhile are made together after it, so many failures at once cost no more than a few.
Where the lock or the file is not available soon, only the sharing is lost.

Only searches use it. A search that fails in a way that may pass without a fix counts; any answer closes the breaker,
even a refusal; refused credentials open it at once.
"""

import asyncio
import contextlib
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import NamedTuple

from beaver_hooks_gateway.errors import TRANSIENT, GatewayError
from beaver_hooks_gateway.settings import GatewaySettings
from beaver_hostspecs import Clock
from beaver_toolkit.breaker import CLOSED, BreakerPolicy, BreakerState, admit, after_failure, after_refusal
from beaver_toolkit.files import open_regular, replace
from beaver_toolkit.locks import locked
from beaver_toolkit.strict_json import InvalidJson, loads
from beaver_toolkit.workers import Workers

PATIENCE = 0.25
"""Seconds that a turn waits for the file at most."""

LOCK_SECONDS = 0.05
"""Seconds that a change waits for another process."""

Step = Callable[[BreakerState], tuple[bool, BreakerState]]
"""Makes the next state, and the answer for the caller."""

FILE = "breaker.json"
LOCK_FILE = ".breaker.lock"

REFUSED = "credentials_refused"
REASONS = TRANSIENT | {REFUSED}
"""Why a breaker can be open. The rest of the file is never shown, because any program may have written it."""

_MOST_BYTES = 4096


class _Call(NamedTuple):
    step: Step
    answer: asyncio.Future[bool]


class SharedBreaker:
    """Admits searches while the gateway answers.

    Args:
        folder: the folder of the state.
        policy: when it opens and for how long; `None` admits every search.
        clock: the source of time.
        whose: the gateway of the state, see `fingerprint`.
    """

    def __init__(self, folder: Path, policy: BreakerPolicy | None, clock: Clock, *, whose: str = "") -> None:
        self.state = CLOSED
        self.policy = policy
        self._folder, self._clock, self._whose = folder, clock, whose
        self._worker = Workers("beaver-gateway-breaker", threads=1, idle_seconds=0)
        self._waiting: list[_Call] = []
        self._busy = self._unreported = False

    async def load(self) -> None:
        """Take over the state that other processes left."""
        if self.policy is not None:
            reading = self._worker.run(partial(read, self._folder, whose=self._whose))
            await asyncio.wait([reading], timeout=PATIENCE)
            self.state = reading.result() if reading.done() else CLOSED

    async def refusal(self) -> str | None:
        """Return why no search may be made now, or `None` where one may: the breaker is closed, or it is the probe."""
        policy = self.policy
        if policy is None or self.state.until is None:
            return None
        admitted = await self._decide(lambda state: admit(state, policy, now=self.now()), PATIENCE)
        return None if admitted else self.state.reason or ""

    async def failed(self, error: GatewayError, *, seconds: float = PATIENCE) -> bool:
        """Count a search that failed; return whether that opened the breaker, as far as is known within `seconds`."""
        policy, now = self.policy, self.now()
        if policy is None:
            return False
        if not error.credentials and not error.transient:
            await self.answered()
            return False

        def step(before: BreakerState) -> tuple[bool, BreakerState]:
            if error.credentials:
                after = after_refusal(policy, reason=REFUSED, now=now)
            else:
                after = after_failure(before, policy, reason=error.category, now=now)
            return before.until is None and after.until is not None, after

        opened = await self._decide(step, seconds, opens=True)
        unreported, self._unreported = self._unreported, False
        return opened or unreported

    async def answered(self) -> None:
        """Close the breaker after a search that was answered."""
        if self.state != CLOSED or self._busy:
            await self._decide(lambda _: (True, CLOSED), PATIENCE)

    def now(self) -> float:
        """Return the seconds since 1970, which processes share."""
        return self._clock.now().timestamp()

    async def _decide(self, step: Step, seconds: float, *, opens: bool = False) -> bool:
        call = _Call(step=step, answer=asyncio.get_running_loop().create_future())
        self._waiting.append(call)
        if not self._busy:
            self._begin()
        await asyncio.wait([call.answer], timeout=max(0.0, seconds))
        if call.answer.done():
            return call.answer.result()
        if call in self._waiting:
            # An earlier change still waits for the file, so this process decides alone.
            self._waiting.remove(call)
            answer, self.state = call.step(self.state)
            return answer
        if opens:
            call.answer.add_done_callback(self._opened_late)
        return False

    def _opened_late(self, answer: asyncio.Future[bool]) -> None:
        """Let the next failed search report an opening, because the search that caused it waits no longer."""
        self._unreported |= answer.result()

    def _begin(self) -> None:
        calls, self._waiting = self._waiting, []
        self._busy = True
        steps = [call.step for call in calls]
        changing = self._worker.run(partial(change, self._folder, self.state, steps, whose=self._whose))
        changing.add_done_callback(partial(self._end, calls))

    def _end(self, calls: Sequence[_Call], changing: asyncio.Future[tuple[list[bool], BreakerState]]) -> None:
        self._busy = False
        answers, self.state = changing.result()
        for call, answer in zip(calls, answers, strict=True):
            call.answer.set_result(answer)
        if self._waiting:
            self._begin()


def make_breaker(settings: GatewaySettings, folder: Path, clock: Clock) -> SharedBreaker:
    """Return the breaker of the gateway that the settings name."""
    patience = settings.breaker
    policy = BreakerPolicy(failures=patience.failures, seconds=patience.seconds) if patience.enabled else None
    return SharedBreaker(folder, policy, clock, whose=fingerprint(settings))


def fingerprint(settings: GatewaySettings) -> str:
    """Return a hash of address, user and key: with another one of them the breaker starts closed."""
    key = "" if settings.user_key is None else settings.user_key.reveal()
    whose = json.dumps([settings.base_url, settings.user_id, key])
    return hashlib.sha256(whose.encode("utf-8")).hexdigest()


def change(
    folder: Path, known: BreakerState, steps: Sequence[Step], *, whose: str = ""
) -> tuple[list[bool], BreakerState]:
    """Take steps from the state in `folder`, or from `known` without it; return the answers and the last state."""
    try:
        with locked(folder / LOCK_FILE, seconds=LOCK_SECONDS):
            before = read(folder, default=known, whose=whose)
            answers, after = _take(steps, before)
            if after != before:
                write(folder, after, whose=whose)
            return answers, after
    except OSError:
        return _take(steps, known)


def _take(steps: Sequence[Step], state: BreakerState) -> tuple[list[bool], BreakerState]:
    answers: list[bool] = []
    for step in steps:
        answer, state = step(state)
        answers.append(answer)
    return answers, state


def read(folder: Path, default: BreakerState = CLOSED, *, whose: str = "") -> BreakerState:
    """Return the state in `folder`; `default` without a file, and `CLOSED` for a damaged one or another gateway's."""
    try:
        with open_regular(folder / FILE, follow_links=False) as file:
            text = file.read(_MOST_BYTES)
    except OSError:
        return default
    try:
        value = loads(text)
    except InvalidJson:
        return CLOSED
    return from_json(value) if isinstance(value, dict) and value.get("gateway") == whose else CLOSED


def write(folder: Path, state: BreakerState, *, whose: str = "") -> None:
    """Replace the state in `folder`. Where that fails, only the sharing is lost."""
    with contextlib.suppress(OSError):
        replace(folder / FILE, json.dumps({"gateway": whose, **asdict(state)}).encode("utf-8"))


def from_json(value: Mapping[str, object]) -> BreakerState:
    """Return the state that `write` wrote; `CLOSED` for anything else."""
    failures, until, reason = value.get("failures", 0), value.get("until"), value.get("reason")
    if not isinstance(failures, int) or failures < 0:
        return CLOSED
    if until is not None and not (isinstance(until, float) and math.isfinite(until)):
        return CLOSED
    if reason is not None and not (isinstance(reason, str) and reason in REASONS):
        return CLOSED
    return BreakerState(failures=failures, until=until, reason=reason)
