"""Measures the cost of searching, reading and appending in a store with 100,000 messages.

The benchmark draws the words of the messages by Zipf's law from a seeded vocabulary. Its most common words are
stop-words, as in any language; one message in ten is Chinese. The words of questions are drawn in the same way, so
most questions have common words. Every question is asked once, so only SQLite's own cache helps.
"""

import asyncio
import itertools
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from beaver_hooks.agent.sessions.database import SessionDatabase
from beaver_hooks.agent.sessions.query import STOP_WORDS
from beaver_hooks.agent.sessions.store import SessionStore
from beaver_hooks.agent.sessions.writes import add_messages, add_session
from beaver_hostspecs import Message, SystemClock

MESSAGES = 100_000
SESSIONS = 1000
QUESTIONS = 200
LONG, SHORT = 10_000, 50
TARGET_MS = 20.0
SCOPES: dict[str, dict[str, Any]] = {
    "one user": {"user_id": "user-1"},
    "one session": {"session_id": "s0"},
    "not session": {"exclude_session": "s0"},
}
Question = Callable[[], str]


class Language:
    """A vocabulary with Zipf's law."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        made = {self._word() for _ in range(30_000)} - STOP_WORDS
        self.words = sorted(STOP_WORDS) + sorted(made, key=lambda _: self.chance.random())
        self.signs = [chr(0x4E00 + number) for number in range(3000)]
        self._weights = [list(itertools.accumulate(1 / rank for rank in range(1, 30_200)))]

    def say(self, count: int) -> str:
        """Return a text of `count` words."""
        return " ".join(self._draw(self.words, count))

    def say_chinese(self, count: int) -> str:
        """Return a text of `count` Chinese characters."""
        return "".join(self._draw(self.signs, count))

    def _draw(self, values: list[str], count: int) -> list[str]:
        return self.chance.choices(values, cum_weights=self._weights[0][: len(values)], k=count)

    def _word(self) -> str:
        return "".join(self.chance.choices("abcdefghiklmnoprstuvw", k=self.chance.randint(1, 10)))


def fill(folder: Path, language: Language) -> None:
    """Store the messages: two long sessions of known length, and the rest spread evenly over others."""
    database, now = SessionDatabase(folder), SystemClock().now()
    sizes = [LONG, SHORT, *[(MESSAGES - LONG - SHORT) // (SESSIONS - 2)] * (SESSIONS - 2)]
    with database.writing() as connection:
        for number, size in enumerate(sizes):
            user = f"user-{number % 3}"
            row = add_session(connection, f"s{number}", user, now, now)
            add_messages(connection, row, user, [message(language, at) for at in range(size)], now)
    database.close()


def message(language: Language, number: int) -> Message:
    """Return one message of a typical length."""
    text = language.say_chinese(60) if number % 10 == 5 else language.say(language.chance.randint(10, 60))
    return Message(role="assistant" if number % 2 else "user", text=text)


async def measure(call: Callable[[], Awaitable[object]], rounds: int = QUESTIONS) -> tuple[float, float]:
    """Return the median and the 95th percentile of the milliseconds of a call."""
    spent = list[float]()
    for _ in range(rounds):
        started = time.perf_counter()
        await call()
        spent.append((time.perf_counter() - started) * 1000)
    return statistics.median(spent), statistics.quantiles(spent, n=20)[-1]


async def searches(store: SessionStore, language: Language) -> bool:
    """Measure the kinds of searches; return whether all of them are fast enough."""
    questions: dict[str, Question] = {
        "1 term": lambda: language.say(1),
        "3 terms": lambda: language.say(3),
        "8 terms": lambda: language.say(8),
        "40 terms": lambda: language.say(40),
        "commonest terms": lambda: " ".join(language.words[len(STOP_WORDS) :][:8]),
        "stop-words only": lambda: "the who are you",
        "CJK, 4 signs": lambda: language.say_chinese(4),
        "CJK, 1 sign": lambda: language.say_chinese(1),
        "1-2 letters": lambda: language.chance.choice("abcdefghik") + language.chance.choice(["", "l", "o"]),
    }
    met = [await report(name, partial(ask, store, question)) for name, question in questions.items()]
    for name, scope in SCOPES.items():
        met.append(await report(f"8 terms, {name}", partial(ask, store, questions["8 terms"], **scope)))
    return all(met)


async def ask(store: SessionStore, question: Question, **scope: Any) -> None:
    """Ask one question, with new words each time."""
    await store.search(question(), **scope)


async def report(name: str, call: Callable[[], Awaitable[object]]) -> bool:
    """Measure one kind of search and print it."""
    median, late = await measure(call)
    met = late <= TARGET_MS
    print(f"  {name:22} p50 {median:7.2f} ms   p95 {late:7.2f} ms   {'met' if met else 'MISSED'}")
    return met


async def main() -> int:
    """Measure, print, and return the exit code."""
    language = Language(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "state"
        store = SessionStore.open(folder)
        started = time.perf_counter()
        await asyncio.to_thread(fill, folder, language)
        size = (folder / "sessions.db").stat().st_size / 1e6
        print(
            f"{MESSAGES} messages in {SESSIONS} sessions, built in {time.perf_counter() - started:.1f} s, {size:.0f} MB"
        )
        print(f"search, {QUESTIONS} questions each, target p95 at most {TARGET_MS:.0f} ms:")
        met = await searches(store, language)
        print("history of the newest 50 messages:")
        for session, length in (("s0", LONG), ("s1", SHORT)):
            median, late = await measure(partial(store.history, session, 50))
            print(f"  session of {length:6}      p50 {median:7.2f} ms   p95 {late:7.2f} ms")
        median, late = await measure(lambda: store.append_exchange("s1", [message(language, 0), message(language, 1)]))
        print(f"append an exchange         p50 {median:7.2f} ms   p95 {late:7.2f} ms")
        started = time.perf_counter()
        await store.delete("s2")
        print(f"delete a session           {(time.perf_counter() - started) * 1000:.0f} ms")
        await store.close()
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
