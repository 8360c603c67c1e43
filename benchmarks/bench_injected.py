"""Measures the accuracy of `was_injected`: the rate of found copies, and of unrelated texts taken for copies.

The benchmark generates a synthetic corpus: sentences from templates with a shared vocabulary, so that unrelated texts
have many words in common. If `BEAVER_BENCH_DATA` names a folder with `locomo-dev.json`, the benchmark also measures
conversations: it injects eight random turns of a conversation, and its other turns are the candidates for false
positives.

Run: `python benchmarks/bench_injected.py`
"""

import hashlib
import json
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from beaver_hooks.turns.echo_filter import InjectedMemory
from beaver_hostspecs import SystemClock

SEED = 20261118
SYNTHETIC = 3_000
ROUNDS = 200
INJECTED = 8

Case = tuple[list[str], list[str]]
"""Injected texts, and other texts."""
Template = Sequence[Sequence[str]]

PHRASES = (
    ("I", "My sister", "Our team", "The customer", "Marta", "My neighbour", "The new colleague", "Dad"),
    ("wants to book", "would like to move", "has cancelled", "is looking for", "still remembers", "paid for"),
    ("the flight to Lisbon", "a smaller flat", "the weekly meeting", "a vegetarian menu", "the blue bicycle"),
    (
        "on Monday morning",
        "before the end of the month",
        "next summer",
        "because of the weather",
        "since May",
    ),
    ("and asked me to remember it", "but nobody has answered yet", "so please take care of it", "I think"),
)
"""Stock phrases: two texts made of them share many grams although their meanings differ."""

WORDS = (
    ["I", "we", "they", "Marta", "Tom", "Aisha", "Jonas", "grandma", "everybody", "nobody"],
    ["often", "never", "always", "sometimes", "rarely", "usually", "still", "already"],
    ["books", "moves", "cancels", "wants", "remembers", "prefers", "sells", "repairs"],
    ["the", "a", "another", "every", "this", "that", "our", "their"],
    ["small", "blue", "weekly", "new", "old", "cheap", "quiet", "broken", "heavy", "favourite"],
    ["flight", "flat", "meeting", "menu", "bicycle", "ticket", "garden", "novel", "printer"],
    ["in", "near", "after", "before", "without", "behind", "for", "from"],
    ["the", "our", "that", "their"],
    ["Lisbon", "spring", "office", "holidays", "station", "kitchen", "concert", "winter"],
)
"""Single words: all texts have the same vocabulary, in the same order of parts."""


def _sentence(dice: random.Random, template: Template) -> str:
    return " ".join(dice.choice(part) for part in template) + "."


def _text(dice: random.Random, template: Template) -> str:
    return " ".join(_sentence(dice, template) for _ in range(dice.randint(1, 3)))


def _halves(text: str) -> str:
    words = text.split()
    return " ".join(words[: (len(words) + 1) // 2])


def _reflowed(text: str) -> str:
    words = text.split()
    return "\n".join("- " + " ".join(words[start : start + 7]) for start in range(0, len(words), 7))


def _quoted(text: str) -> str:
    return "As you said:\n> " + re.sub(r"([.!?]) ", r"\1\n> ", text) + "\nIs that still so?"


def _recased(text: str) -> str:
    return re.sub(r"[,.!?;:]", " -", text).upper()


CHANGES: dict[str, Callable[[str], str]] = {
    "verbatim": str,
    "reflowed as bullets": _reflowed,
    "quoted, 7 words around it": _quoted,
    "upper case, other punctuation": _recased,
    "first half only": _halves,
}


def _rate(hits: int, total: int) -> str:
    return f"{hits:>6} / {total:<6} {100 * hits / total:6.2f} %" if total else "     0 / 0           -"


def _measure(title: str, cases: list[Case], digest: str) -> None:
    print(f"\n{title}\n  n = {len(cases)} sets of {INJECTED} injected texts, sha256 {digest}")
    found = dict.fromkeys(CHANGES, 0)
    copies = wrong = candidates = 0
    for injected, others in cases:
        memory = InjectedMemory(clock=SystemClock())
        memory.remember("session", "turn", injected)
        for text in injected:
            copies += 1
            for name, change in CHANGES.items():
                found[name] += memory.was_injected("session", change(text))
        wrong += sum(memory.was_injected("session", text) for text in others)
        candidates += len(others)
    for name, hits in found.items():
        print(f"  true positives   {name:<32} {_rate(hits, copies)}")
    print(f"  false positives  {'unrelated texts':<32} {_rate(wrong, candidates)}")


def _synthetic(template: Template) -> tuple[list[Case], str]:
    dice = random.Random(SEED)
    cases = []
    for _ in range(SYNTHETIC // INJECTED):
        injected = [_text(dice, template) for _ in range(INJECTED)]
        cases.append((injected, [_text(dice, template) for _ in range(INJECTED)]))
    return cases, hashlib.sha256(json.dumps(cases).encode()).hexdigest()


def _conversations(path: Path) -> Iterator[list[str]]:
    for entry in json.loads(path.read_bytes()):
        conversation = entry["conversation"]
        yield [
            turn["text"] for name, turns in conversation.items() if re.fullmatch(r"session_\d+", name) for turn in turns
        ]


def _locomo(path: Path, fewest_words: int) -> list[Case]:
    dice = random.Random(SEED)
    cases = []
    for texts in _conversations(path):
        for _ in range(ROUNDS // 5):
            chosen = set(
                dice.sample([i for i, text in enumerate(texts) if len(text.split()) >= fewest_words], INJECTED)
            )
            injected = [texts[i] for i in sorted(chosen)]
            others = [text for i, text in enumerate(texts) if i not in chosen and len(text.split()) >= fewest_words]
            cases.append((injected, others))
    return cases


def _cost() -> None:
    dice = random.Random(SEED)
    texts = [_text(dice, WORDS) for _ in range(60)]
    memory = InjectedMemory(clock=SystemClock())
    start = time.perf_counter()
    for number in range(INJECTED):
        memory.remember("session", str(number), texts)
    remembered = time.perf_counter()
    memory.was_injected("session", texts[0])
    first = time.perf_counter()
    memory.was_injected("session", texts[0])
    second = time.perf_counter()
    size = sum(map(len, texts))
    print(f"\nCost with {INJECTED} turns of {size} characters")
    print(f"  remember, per turn    {1e6 * (remembered - start) / INJECTED:9.1f} us")
    print(f"  first was_injected    {1e6 * (first - remembered):9.1f} us")
    print(f"  each further one      {1e6 * (second - first):9.1f} us")


def main() -> None:
    """Print the rates."""
    for title, template in (("single words", WORDS), ("stock phrases, the worst case", PHRASES)):
        _measure(f"Synthetic, from templates of {title}", *_synthetic(template))
    folder = os.environ.get("BEAVER_BENCH_DATA")
    path = Path(folder or ".") / "locomo-dev.json"
    if folder and path.is_file():
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        _measure("LoCoMo, every turn", _locomo(path, 1), digest)
        _measure("LoCoMo, turns of 8 words or more", _locomo(path, 8), digest)
    else:
        print(f"\nLoCoMo skipped: BEAVER_BENCH_DATA names no folder with {path.name}.")
    _cost()


if __name__ == "__main__":
    main()
