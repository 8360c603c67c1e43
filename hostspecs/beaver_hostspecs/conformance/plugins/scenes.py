"""Helpers of the cases: facts to learn, questions, and common demands."""

from collections.abc import Iterable

from beaver_hostspecs.conformance.cases import Excused
from beaver_hostspecs.conformance.plugins.driver import Driven, texts_of
from beaver_hostspecs.conformance.plugins.harness import PluginHarness
from beaver_hostspecs.contributions import Contribution

QUESTION = "What do we know about the heron at the weir, and when does it come?"
MOST_POINTS = 12
"""The most awaits at which a call is interrupted."""


def fact(marker: str) -> str:
    """Return a unique sentence to learn."""
    return f"The heron at the weir comes on Thursday at dawn, and the keeper calls it {marker}."


def need(harness: PluginHarness, *flags: str) -> None:
    """Go on with a case only if the card says all of `flags`."""
    for flag in flags:
        if not harness.card.can(flag):
            raise Excused(flag)


def demand(met: object, sentence: str) -> None:
    """Demand that a condition is met."""
    if not met:
        raise AssertionError(sentence)


def same(expected: object, actual: object, what: str) -> None:
    """Demand that two values are equal."""
    if expected != actual:
        raise AssertionError(f"{what}: expected {expected!r}, got {actual!r}")


def shows(contribution: Contribution | None, marker: str) -> bool:
    """Whether a contribution holds a text with this marker."""
    return any(marker in text for text in texts_of(contribution))


def not_shown(contributions: Iterable[Contribution | None], marker: str, sentence: str) -> None:
    """Demand that no contribution holds a text with this marker."""
    demand(not any(shows(each, marker) for each in contributions), sentence)


async def teach(harness: PluginHarness, driven: Driven, marker: str, **fields: object) -> None:
    """Say a fact in a turn that is answered."""
    await driven.run(harness.saying(fact(marker)), **fields)  # type: ignore[arg-type]
