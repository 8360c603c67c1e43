"""The breaker of a plugin: its state in memory, and in a file that other processes share.

While nothing is wrong no file is touched. Every change is a read, a step and a write under a lock, off the event loop.
A file that cannot be read counts as closed. Where the lock or the file cannot be had, only the sharing is lost.
"""

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import attrs

from beaver_hooks_gateway import breaker
from beaver_hooks_gateway.breaker import CLOSED, Policy, State
from beaver_hooks_gateway.errors import GatewayError
from beaver_hostspecs import Clock

FILE = "breaker.json"
LOCK_FILE = ".breaker.lock"
_MOST_BYTES = 4096
_TRIES, _PAUSE = 20, 0.005

Step = Callable[[State], State]


@attrs.frozen(kw_only=True)
class Verdict:
    """Whether a search may be made.

    Attributes:
        reason: why it may not.
    """

    admitted: bool
    reason: str = ""


class Gate:
    """Lets searches through while the gateway answers.

    Args:
        folder: where the state is kept.
        policy: how patient it is, or `None` to let everything through.
        clock: where time comes from.
    """

    def __init__(self, folder: Path, policy: Policy | None, clock: Clock) -> None:
        self.state = CLOSED
        self._folder = folder
        self._policy = policy
        self._clock = clock

    async def load(self) -> None:
        """Take over what other processes have found out."""
        if self._policy is not None:
            self.state = await asyncio.to_thread(read, self._folder)

    async def admit(self) -> Verdict:
        """Say whether a search may be made now; after a while of refusing, one may."""
        if self._policy is None or self.state.until is None:
            return Verdict(admitted=True)
        admitted = await asyncio.to_thread(self._probe, self._policy)
        return Verdict(admitted=admitted, reason=self.state.reason or "")

    async def failed(self, error: GatewayError) -> bool:
        """Take note of a search that failed; return whether the gate has opened by it."""
        policy, now = self._policy, self._now()
        if policy is None:
            return False
        if error.credentials:
            return await self._move(lambda _: breaker.after_refusal(policy, now=now))
        if not error.transient:
            await self.answered()
            return False
        return await self._move(partial(breaker.after_failure, policy=policy, category=error.category, now=now))

    async def answered(self) -> None:
        """Take note of a search that was answered."""
        if self.state != CLOSED:
            await self._move(lambda _: CLOSED)

    async def _move(self, step: Step) -> bool:
        before = self.state
        await asyncio.to_thread(self._change, step)
        return before.until is None and self.state.until is not None

    def _probe(self, policy: Policy) -> bool:
        verdicts: list[bool] = []

        def step(state: State) -> State:
            admitted, after = breaker.admit(state, policy, now=self._now())
            verdicts.append(admitted)
            return after

        self._change(step)
        return verdicts[-1]

    def _change(self, step: Step) -> None:
        with locked(self._folder) as held:
            # Where nothing can be shared, this process still knows what it knows.
            before = read(self._folder, default=self.state) if held else self.state
            self.state = step(before)
            if held and self.state != before:
                write(self._folder, self.state)

    def _now(self) -> float:
        return self._clock.now().timestamp()


def read(folder: Path, default: State = CLOSED) -> State:
    """Return the state that is kept in `folder`; `default` where there is none."""
    try:
        with (folder / FILE).open("rb") as file:
            text = file.read(_MOST_BYTES)
    except OSError:
        return default
    try:
        return breaker.from_json(json.loads(text))
    except (ValueError, RecursionError):
        return CLOSED


def write(folder: Path, state: State) -> None:
    """Keep the state. In place, as it is no promise to anybody: what is torn counts as closed."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder / FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps(breaker.to_json(state)).encode("utf-8"))


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Hold the lock of `folder`, or say `False` where it cannot be had soon: a process that hangs holds up nobody."""
    try:
        descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        yield False
        return
    try:
        yield _waited(descriptor)
    finally:
        os.close(descriptor)


def _waited(descriptor: int) -> bool:
    """Return whether the lock was had in time."""
    for _ in range(_TRIES):
        if _taken(descriptor):
            return True
        time.sleep(_PAUSE)
    return False


def _taken(descriptor: int) -> bool:
    try:
        import fcntl  # noqa: PLC0415 - Windows lacks it; there, two processes may probe at once
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
