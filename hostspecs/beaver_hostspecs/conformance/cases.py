"""Cases, verdicts, and the examination of a case, for hosts and plugins alike."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

import attrs
from attrs import field

from beaver_hostspecs.conformance.cards import Card
from beaver_hostspecs.scrubbing import scrub

SECONDS = 30.0
"""How long one case may take."""

LONGEST_REASON = 2_000
"""Characters of a reason; the expected and the actual value may be of any length."""


class Closing(Protocol):
    """The subject of an examination, which can be closed."""

    async def close(self) -> None:
        """Close it."""


H = TypeVar("H", bound=Closing)


class Outcome(StrEnum):
    """How a case ended."""

    PASSED = "passed"
    EXCUSED = "excused"
    """The card says that the host cannot do it; the demands on every host have passed."""
    FAILED = "failed"


class Excused(Exception):
    """Ends a case whose rest the card excuses."""

    def __init__(self, flag: str) -> None:
        self.flag = flag
        super().__init__(flag)


@attrs.frozen(kw_only=True)
class Case(Generic[H]):
    """One demand.

    Attributes:
        name: a few words.
        shows: one sentence.
        flags: the fields of the card that may excuse it, or the rest of it.
        run: raises `AssertionError` where the demand is not met, `Excused` where the card excuses it.
    """

    name: str
    shows: str
    flags: tuple[str, ...] = ()
    run: Callable[[H], Awaitable[None]] = field(repr=False)

    def __str__(self) -> str:
        return self.name


@attrs.frozen(kw_only=True)
class Verdict:
    """The result of the examination of one case.

    Attributes:
        case: the name of the case.
        outcome: how it ended.
        flag: which field of the card excused it.
        reason: the failure, or the card's note on the flag.
    """

    case: str
    outcome: Outcome
    flag: str = ""
    reason: str = ""


def require(card: Card, *flags: str) -> None:
    """Go on with a case only if the host can do all of `flags`."""
    for flag in flags:
        if not card.can(flag):
            raise Excused(flag)


async def examine(case: Case[H], make: Callable[[], H], *, seconds: float = SECONDS) -> Verdict:
    """Examine one case with a fresh harness; raise only cancellation and interruption."""
    try:
        async with asyncio.timeout(seconds) as limit:
            harness = make()
            await _run(case, harness)
    except Excused as excuse:
        return _excused(case, excuse.flag, harness)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # A `SystemExit` or `CancelledError` that a host lets out of a plugin must not end the examination.
        if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
            raise
        return Verdict(case=case.name, outcome=Outcome.FAILED, reason=_told(error, seconds))
    if limit.expired():  # The code under test caught the cancellation of the case, and went on.
        return Verdict(case=case.name, outcome=Outcome.FAILED, reason=_told(TimeoutError(), seconds))
    return Verdict(case=case.name, outcome=Outcome.PASSED)


async def examine_all(
    cases: Collection[Case[H]], make: Callable[[], H], *, seconds: float = SECONDS
) -> tuple[Verdict, ...]:
    """Examine cases one after the other."""
    return tuple([await examine(case, make, seconds=seconds) for case in cases])


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _run(case: Case[H], harness: H) -> None:
    try:
        await case.run(harness)
    finally:
        await harness.close()


def _excused(case: Case[Any], flag: str, harness: object) -> Verdict:
    if flag not in case.flags:
        reason = f"the case is excused by `{flag}`, which it does not name"
        return Verdict(case=case.name, outcome=Outcome.FAILED, reason=reason)
    card: Card = harness.card  # type: ignore[attr-defined]  # only a harness with a card is excused
    return Verdict(case=case.name, outcome=Outcome.EXCUSED, flag=flag, reason=card.notes.get(flag, ""))


def _told(error: BaseException, seconds: float) -> str:
    if isinstance(error, TimeoutError):
        return f"it took longer than {seconds:g} seconds, or something in it timed out"
    told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    # A plugin may leak its credential, which the report must not print.
    return scrub(told)[:LONGEST_REASON]
