"""Measures whether German and Chinese are recalled as well as English, by one made-up set in three languages.

The set is the project's own: two users, each with 100 questions and over 330 memories, who tell the same facts in each
language; see `kit_languages.py`. frac@10 is the mean share of the evidence among the first ten memories. *relation* is
that of a language divided by that of English, with half of its 95 % interval over the questions, which are paired.

`BEAVER_BENCH_VECTORS` names a file that keeps the vectors of e5-small for the next run.

    python benchmarks/local/bench_local_languages.py
"""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from kit_data import digest
from kit_engine import VECTORS, Filled, Remembering, asked, e5_small, static, stores
from kit_languages import LANGUAGES, conversations
from kit_score import Ranking, Targets, flat, frac_at, heading, interval, machine, noise, row

LEAST = 0.95
PLAIN = "English"
TARGETS = ("words only", "e5-small")
"""The embedders with a target; another one is shown for information."""

Sets = Mapping[str, Sequence[Filled]]


def shares(rankings: Sequence[Ranking]) -> np.ndarray:
    """Return frac@10 of each question."""
    return np.array([frac_at([each], 10) for each in rankings])


def relation(own: Sequence[Ranking], english: Sequence[Ranking]) -> tuple[float, float]:
    """Return frac@10 of a language divided by that of English, and half the width of its 95 % interval."""
    both = np.stack([shares(own), shares(english)], axis=1)
    low, high = interval(list(both), lambda drawn: drawn[..., 0].mean(1) / drawn[..., 1].mean(1))
    return float(both[:, 0].mean() / both[:, 1].mean()), (high - low) / 2


def measure(filled: Sets, embedders: Mapping[str, Remembering | None], targets: Targets) -> None:
    """Print the figures of each language and embedder."""
    heading("Mean share of the evidence among the first ten", ("n", "@10", "+-", "half 1", "half 2", "relation", "+-"))
    for name, embedder in embedders.items():
        found = {language: asked(each, embedder) for language, each in filled.items()}
        english = flat(found[PLAIN])
        for language, halves in found.items():
            every = flat(halves)
            ratio, width = relation(every, english)
            figures = (frac_at(every, 10), noise(every), *(frac_at(each, 10) for each in halves), ratio, width)
            row(f"{language}, {name}", (str(len(every)), *figures))
            if name in TARGETS and language != PLAIN:
                targets.least(f"{language}, {name}, relative to English", ratio, LEAST)


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    targets = Targets()
    print(machine("numpy", "onnxruntime", "tokenizers"))
    cases = {language: conversations(language) for language in LANGUAGES}
    for language, each in cases.items():
        memories = sum(len(case.items) for case in each)
        print(f"{language}: {len(each)} users, {memories} memories, sha256 {digest(each)}")
    e5, wordllama = e5_small(), static()
    kept = Path(os.environ[VECTORS]) if os.environ.get(VECTORS) else None
    if e5 is not None and kept is not None:
        e5.load(kept)
    made = {"e5-small": e5, "static": wordllama}
    embedders = {"words only": None} | {name: each for name, each in made.items() if each is not None}
    with ExitStack() as stack:
        filled = {name: stack.enter_context(stores(each, list(embedders.values()))) for name, each in cases.items()}
        measure(filled, embedders, targets)
        if e5 is not None and kept is not None:
            e5.save(kept)
    return int(bool(targets.missed))


if __name__ == "__main__":
    sys.exit(main())
