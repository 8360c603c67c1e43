"""Helpers of the cases: a host with a probe in it, and common demands."""

from collections.abc import Mapping

from beaver_hostspecs.conformance.cards import Card
from beaver_hostspecs.conformance.harness import ECHO, Ask, CallTool, HostHarness, ModelCall, Say, Step, Way
from beaver_hostspecs.conformance.probes import RECALLED, Probe

PROMPT = "What did we decide?"
ANSWER = "We decided to wait until Thursday."
ECHOED = "thursday-echo"


async def with_probe(harness: HostHarness, others: Mapping[str, object] | None = None) -> Probe:
    """Open a host with a probe, and with `others` after it."""
    probe = Probe()
    await harness.open({"probe": probe, **(others or {})})
    return probe


def simple(prompt: str = PROMPT, answer: str = ANSWER, **more: object) -> Ask:
    """Return a prompt that the model answers at once."""
    steps: tuple[Step, ...] = (Say(text=answer),)
    return Ask(**{"prompt": prompt, "steps": steps, **more})  # type: ignore[arg-type]


def with_tool(
    prompt: str = PROMPT, answer: str = ANSWER, *, echoed: str = ECHOED, call: str = "call-1", **more: object
) -> Ask:
    """Return a prompt that the model answers after one call of a tool."""
    steps: tuple[Step, ...] = (CallTool(tool=ECHO, arguments={"text": echoed}, id=call), Say(text=answer))
    return Ask(**{"prompt": prompt, "steps": steps, **more})  # type: ignore[arg-type]


def ways(card: Card) -> tuple[Way, ...]:
    """Return the ways in which the host gives a whole answer."""
    able: dict[Way, bool] = {"whole": True, "stream": card.streaming, "sync": card.sync}
    return tuple(way for way, can in able.items() if can)


def same(expected: object, actual: object, what: str) -> None:
    """Demand that two values are equal."""
    if expected != actual:
        raise AssertionError(f"{what}: expected {expected!r}, got {actual!r}")


def demand(met: object, sentence: str) -> None:
    """Demand that a condition is met."""
    if not met:
        raise AssertionError(sentence)


def recalled(call: ModelCall) -> tuple[str, ...]:
    """Return the messages of a model call that hold a text of the probe."""
    return tuple(message.text for message in call.messages if RECALLED in message.text)


def apart(harness: HostHarness) -> None:
    """Demand that no step's system prompt holds a recalled text."""
    demand(not any(RECALLED in call.system for call in harness.calls), "recalled text stands in the system prompt")


async def fails(harness: HostHarness, ask: Ask) -> BaseException:
    """Run a prompt that must not be answered; return the error."""
    try:
        answer = await harness.run(ask)
    except Exception as error:  # noqa: BLE001 - the framework chooses the type
        return error
    raise AssertionError(f"the turn was to fail, and it answered {answer!r}")
