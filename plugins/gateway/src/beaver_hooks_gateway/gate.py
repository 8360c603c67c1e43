"""The breaker of a plugin: its state in memory, and in a file that other processes share.

While nothing is wrong no file is touched. Every change is a read, a step and a write under a lock, in a thread of the
gate's own. What comes while that one works is done in one go after it, so many failures at once cost no more than a
few. A file that cannot be read counts as closed, and so does one about another gateway. Where the lock or the file
cannot be had soon, only the sharing is lost.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import attrs

from beaver_hooks_gateway import breaker
from beaver_hooks_gateway.breaker import CLOSED, Policy, State
from beaver_hooks_gateway.errors import GatewayError
from beaver_hooks_gateway.kept import locked, read, write
from beaver_hooks_gateway.settings import GatewaySettings
from beaver_hostspecs import Clock
from beaver_toolkit.workers import Workers

PATIENCE = 0.25
"""Seconds that a turn waits for the file at most."""

Step = Callable[[State], tuple[bool, State]]
"""What becomes of a state, and whether whoever asked is told yes."""


@attrs.frozen(kw_only=True)
class Verdict:
    """Whether a search may be made.

    Attributes:
        reason: why it may not.
    """

    admitted: bool
    reason: str = ""


@attrs.frozen(kw_only=True, eq=False)
class _Asked:
    step: Step
    opening: bool
    answer: asyncio.Future[bool]


class Gate:
    """Lets searches through while the gateway answers.

    Args:
        folder: where the state is kept.
        policy: how patient it is, or `None` to let everything through.
        clock: where time comes from.
        whose: what the state is about, see `judged`.
    """

    def __init__(self, folder: Path, policy: Policy | None, clock: Clock, *, whose: str = "") -> None:
        self.state = CLOSED
        self._folder = folder
        self._policy = policy
        self._clock = clock
        self._whose = whose
        self._worker = Workers("beaver-gateway-breaker", threads=1, idle_seconds=0)
        self._waiting: list[_Asked] = []
        self._busy = False
        self._unsaid = False

    async def load(self) -> None:
        """Take over what other processes have found out."""
        if self._policy is not None:
            reading = self._worker.run(partial(read, self._folder, whose=self._whose))
            await asyncio.wait([reading], timeout=PATIENCE)
            self.state = reading.result() if reading.done() else CLOSED

    async def admit(self) -> Verdict:
        """Say whether a search may be made now; after a while of refusing, one may."""
        policy = self._policy
        if policy is None or self.state.until is None:
            return Verdict(admitted=True)
        admitted = await self._decide(lambda state: breaker.admit(state, policy, now=self._now()), PATIENCE)
        return Verdict(admitted=admitted, reason=self.state.reason or "")

    async def failed(self, error: GatewayError, *, seconds: float = PATIENCE) -> bool:
        """Take note of a search that failed; return whether the gate has opened by it, as far as is known by then."""
        policy, now = self._policy, self._now()
        if policy is None:
            return False
        if error.credentials:
            return await self._opened(lambda _: breaker.after_refusal(policy, now=now), seconds)
        if not error.transient:
            await self.answered()
            return False
        after = partial(breaker.after_failure, policy=policy, category=error.category, now=now)
        return await self._opened(after, seconds)

    async def answered(self) -> None:
        """Take note of a search that was answered."""
        if self.state != CLOSED or self._busy:
            await self._decide(lambda _: (True, CLOSED), PATIENCE)

    async def _opened(self, move: Callable[[State], State], seconds: float) -> bool:
        """Return whether a move has opened the gate, or an earlier one of which nobody was there any more to hear."""

        def step(before: State) -> tuple[bool, State]:
            after = move(before)
            return before.until is None and after.until is not None, after

        opened = await self._decide(step, seconds, opening=True)
        unsaid, self._unsaid = self._unsaid, False
        return opened or unsaid

    async def _decide(self, step: Step, seconds: float, *, opening: bool = False) -> bool:
        asked = _Asked(step=step, opening=opening, answer=asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        if not self._busy:
            self._begin()
        await asyncio.wait([asked.answer], timeout=max(0.0, seconds))
        if asked.answer.done():
            return asked.answer.result()
        return self._alone(asked)

    def _alone(self, asked: _Asked) -> bool:
        """Decide without the file, unless that is being done."""
        if asked not in self._waiting:
            asked.answer.add_done_callback(partial(self._late, opening=asked.opening))
            return False
        self._waiting.remove(asked)
        answer, self.state = asked.step(self.state)
        return answer

    def _late(self, answer: asyncio.Future[bool], *, opening: bool) -> None:
        self._unsaid |= opening and answer.result()

    def _begin(self) -> None:
        asked, self._waiting = self._waiting, []
        self._busy = True
        steps = [each.step for each in asked]
        changing = self._worker.run(partial(change, self._folder, self.state, steps, whose=self._whose))
        changing.add_done_callback(partial(self._end, asked))

    def _end(self, asked: Sequence[_Asked], changing: asyncio.Future[tuple[list[bool], State]]) -> None:
        self._busy = False
        answers, self.state = changing.result()
        for each, answer in zip(asked, answers, strict=True):
            each.answer.set_result(answer)
        if self._waiting:
            self._begin()

    def _now(self) -> float:
        return self._clock.now().timestamp()


def judged(settings: GatewaySettings) -> str:
    """Return what a breaker's state is about: a hash of the address, the user and the key, so that a new one counts."""
    key = "" if settings.user_key is None else settings.user_key.reveal()
    whose = json.dumps([settings.base_url, settings.user_id, key])
    return hashlib.sha256(whose.encode("utf-8")).hexdigest()


def change(folder: Path, known: State, steps: Sequence[Step], *, whose: str = "") -> tuple[list[bool], State]:
    """Take steps from the state in `folder`, from `known` where that cannot be had; return the answers and the end."""
    answers: list[bool] = []
    with locked(folder) as held:
        # Where nothing can be shared, this process still knows what it knows.
        state = before = read(folder, default=known, whose=whose) if held else known
        for step in steps:
            answer, state = step(state)
            answers.append(answer)
        if held and state != before:
            write(folder, state, whose=whose)
    return answers, state
