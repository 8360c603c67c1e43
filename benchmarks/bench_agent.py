"""Measures the cost of an agent's turn without its model, and whether a long session makes it slower.

The benchmark runs the whole loop: `AgentLoop.run` with three active plugins (curated, tally and one that recalls and
learns), the offline provider, audit, sessions on disk. It measures the provider's own time inside the same runs and
subtracts it; the background work is not timed. Two sessions of 50 and 10,000 messages alternate in one process. The
single parts of a turn alternate too, so that the output shows the time of each part.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from beaver_hooks.agent.factory import EngineLoader, EngineLoadResult
from beaver_hooks.agent.loop import AgentLoop
from beaver_hooks.agent.messages import ChatMessage, Completion, OnDelta, Provider
from beaver_hooks.config import Config
from beaver_hooks.config.loader import LoadedConfig
from beaver_hooks.config.model import Memory
from beaver_hostspecs import Contribution, Message, Reference, Scope, SystemClock, Trust, hookimpl

ROUNDS = 300
WARM_UP = 20
SESSIONS = {"50 messages": 50, "10000 messages": 10_000}
TARGET_MS = 5.0
TARGET_RATIO = 2.0
PROMPT = "What did we decide about the database?"
CONTRIBUTION = Contribution(
    blocks=("The user writes British English.",),
    references=tuple(Reference(text=f"Note {n}: we met at noon and chose number {n}.", id=f"n{n}") for n in range(5)),
)


class Notes:
    """Recalls five notes in each turn, and stores every answer."""

    def __init__(self) -> None:
        self.kept: list[str] = []

    @hookimpl
    async def before_prompt(self, turn: object) -> Contribution:  # noqa: ARG002 - the names are the hook's
        """Recall the notes."""
        return CONTRIBUTION

    @hookimpl
    async def after_prompt(self, turn: object, answer: Any) -> None:  # noqa: ARG002
        """Store the answer."""
        self.kept.append(answer.text)


class Timed:
    """A provider that measures the seconds of another provider.

    Attributes:
        spent: the seconds since the last reading.
        asked: the number of messages of the last request.
    """

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self.spent = 0.0
        self.asked = 0

    async def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        on_delta: OnDelta | None = None,
    ) -> Completion:
        """Call the other provider."""
        started = time.perf_counter()
        answer = await self._provider.complete(messages, tools=tools, on_delta=on_delta)
        self.spent += time.perf_counter() - started
        self.asked = len(messages)
        return answer

    async def close(self) -> None:
        """Close nothing."""


class Bench:
    """An agent with filled sessions, and a method for each measurement."""

    def __init__(self, engine: EngineLoadResult) -> None:
        self._engine = engine
        self._loop = AgentLoop(engine)
        self.provider = engine.provider = Timed(engine.provider)

    async def fill(self) -> None:
        """Store the sessions, each in one transaction, and a curated entry."""
        # The agent adds the entry itself: the offline provider calls the tool `memory`.
        await self._loop.run("Remember that we decided to keep the database.", "first", trust="full")
        for session, count in SESSIONS.items():
            await self._engine.sessions.ensure(session)
            await self._engine.sessions.append_exchange(session, _messages(session, count))

    async def turn(self, session: str) -> float:
        """Return the seconds of one run without those of the provider."""
        self.provider.spent = 0.0
        started = time.perf_counter()
        result = await self._loop.run(PROMPT, session, trust="full")
        spent = time.perf_counter() - started - self.provider.spent
        assert result.status == "completed"
        return spent

    async def host(self) -> float:
        """Return the seconds of opening and committing a turn."""
        started = time.perf_counter()
        turn = await self._engine.host.open_turn(PROMPT, session="part", scope=Scope())
        await turn.commit("We keep it.")
        return time.perf_counter() - started

    async def reading(self) -> float:
        """Return the seconds of reading the history."""
        started = time.perf_counter()
        await self._engine.sessions.begin("50 messages", trust=Trust.FULL)
        return time.perf_counter() - started

    async def storing(self) -> float:
        """Return the seconds of storing an exchange, durably."""
        now = SystemClock().now()
        exchange = [Message(role="user", text=PROMPT, when=now), Message(role="assistant", text="Yes.", when=now)]
        started = time.perf_counter()
        await self._engine.sessions.append_exchange("first", exchange)
        return time.perf_counter() - started

    async def settle(self) -> None:
        """Wait for the background work, so that it does not slow the other side."""
        await self._engine.host.drain()
        await self._engine.events.flush()
        await asyncio.to_thread(self._engine.host.trail.flush)


def _messages(session: str, count: int) -> list[Message]:
    # Of an exchange, sessions keep every message of the user, and one of the assistant.
    text, now = f"Message of {session}: about the weather. " * 3, SystemClock().now()
    return [Message(role="user", text=f"{number}. {text}", when=now) for number in range(count)]


async def measure(bench: Bench) -> dict[str, float]:
    """Return the median milliseconds of each side; the sides alternate."""
    sides: dict[str, Callable[[], Awaitable[float]]] = {
        "turn, 50 messages": lambda: bench.turn("50 messages"),
        "turn, 10000 messages": lambda: bench.turn("10000 messages"),
        "host: open and commit": bench.host,
        "sessions: read history": bench.reading,
        "sessions: store exchange": bench.storing,
    }
    samples: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(WARM_UP + ROUNDS):
        for name, side in sides.items():
            spent = await side()
            if name.startswith("turn"):
                # The system prompt, at most two reference messages, fifty messages of the history, and the prompt.
                assert 52 <= bench.provider.asked <= 54, bench.provider.asked
            await bench.settle()
            if number >= WARM_UP:
                samples[name].append(spent * 1000)
    return {name: statistics.median(values) for name, values in samples.items()}


def loaded(folder: Path) -> LoadedConfig:
    """Return a configuration with the mode `curated`, which loads every installed plugin except the gateway."""
    memory = Memory(mode="curated", explicit=True)
    return LoadedConfig(config=Config(memory=memory), path=None, trusted_by=None, state_folder=folder / "state")


async def main() -> int:
    """Measure, print, and return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        notes = Notes()
        loader = EngineLoader(loaded(Path(folder)), plugins={"notes": notes}, environment={})
        async with await loader.load() as engine:
            active = sorted(engine.host.plugins)
            assert active == ["curated", "notes", "tally"], f"other plugins are active: {active}"
            bench = Bench(engine)
            await bench.fill()
            medians = await measure(bench)
            assert {health.state for health in engine.status.values()} <= {"ok", "disabled"}
            assert (engine.events.lost, len(notes.kept)) == (0, 1 + 3 * (WARM_UP + ROUNDS))
    return report(medians)


def report(medians: Mapping[str, float]) -> int:
    """Print the medians, and return the exit code."""
    short, long = medians["turn, 50 messages"], medians["turn, 10000 messages"]
    print(f"{ROUNDS} rounds, Python {sys.version.split()[0]}, medians, the provider's time taken off:")
    for name, milliseconds in medians.items():
        print(f"  {name:26} {milliseconds:7.3f} ms")
    met = (short <= TARGET_MS, long <= TARGET_RATIO * short)
    verdicts = ["met" if each else "MISSED" for each in met]
    print(f"target: a turn at most {TARGET_MS:g} ms: {short:.2f} ms, {verdicts[0]}")
    print(f"target: 10,000 messages at most {TARGET_RATIO:g} x 50: {long / short:.2f} x, {verdicts[1]}")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
