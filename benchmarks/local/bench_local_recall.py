"""Measures recall of the default configuration on two shapes of conversation, by words alone and with e5-small.

LoCoMo has short turns of two people, and questions that name them: frac@10. BEAM has short messages of a user beside
long ones of an assistant, and questions of the user: rec@10, which is the same measure. Both are the mean share of the
evidence among the first ten memories.

Then each weight of speaker and traits is chosen on one half of both sets together, and measured on the other halves:
on conversations that chose nothing. The default weights stand beside it.

The benchmark reads the sets from the folder that `BEAVER_BENCH_DATA` names, and skips a missing one. Embedding BEAM
takes many minutes; `BEAVER_BENCH_VECTORS` names a file that keeps the vectors for the next run.

    BEAVER_BENCH_DATA=... BEAVER_BENCH_VECTORS=build/vectors.npz python benchmarks/local/bench_local_recall.py
"""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import attrs
import numpy as np
from kit_beam import beam
from kit_data import Case, locomo, with_fields
from kit_engine import VECTORS, Filled, Remembering, asked, e5_small, stores
from kit_score import Ranking, Targets, flat, frac_at, heading, machine, noise, row

from beaver_memory.search.formulas import Weights

LEAST = {("LoCoMo", "words only"): 0.785, ("LoCoMo", "e5-small"): 0.815,
         ("BEAM", "words only"): 0.645, ("BEAM", "e5-small"): 0.735}  # fmt: skip
DEFAULT = Weights()
TRIED: Mapping[str, tuple[float, ...]] = {
    "speaker": (0.2, 0.4),
    "first_person": (0.0, 0.2),
    "statement": (0.0, 0.1, 0.3),
    "rule": (0.0, 0.1, 0.3),
    "before": (0.0, 0.2),
    "answer": (0.0, 0.2),
    "time": (0.0, 0.1),
    "when": (0.0, 0.3),
    "number": (0.0, 0.2),
    "size": (0.0, 0.1),
}
"""Values beside the default of each weight."""

Sets = Mapping[str, Sequence[Filled]]
Rankings = Mapping[str, Sequence[Sequence[Ranking]]]


def sets() -> dict[str, tuple[Case, ...]]:
    """Return the sets that are here, and print their hashes."""
    found: dict[str, tuple[Case, ...]] = {}
    talks, chats = locomo(), beam()
    if talks is not None:
        found["LoCoMo"] = tuple(map(with_fields, talks[0]))
        print(f"LoCoMo: {len(talks[0])} conversations, categories 1-4, sha256 {talks[1]}")
    if chats is not None:
        found["BEAM"] = chats[0]
        print(f"BEAM: {len(chats[0])} chats, questions with evidence, sha256 {chats[1]}")
    return found


def half(rankings: Sequence[Sequence[Ranking]], which: int) -> list[Ranking]:
    """Return the rankings of every other conversation."""
    return flat(rankings[which::2])


def crossed(filled: Sets, embedder: Remembering | None) -> dict[str, float]:
    """Return the figure of each set by weights that are chosen on one half of all sets and measured on the other."""
    known = {value: ranked(filled, embedder, attrs.evolve(DEFAULT, **dict([value]))) for value in _values()}
    plain = ranked(filled, embedder, DEFAULT)
    found: dict[str, list[Ranking]] = {name: [] for name in filled}
    for which in (0, 1):
        chosen = {}
        for name, values in TRIED.items():
            every = {getattr(DEFAULT, name): plain} | {value: known[name, value] for value in values}
            best = max(every, key=lambda value: (_both(every[value], which), value == getattr(DEFAULT, name)))
            chosen[name] = best
        print(f"    chosen on half {which + 1}: " + ", ".join(f"{name} {value:g}" for name, value in chosen.items()))
        for name, each in ranked(filled, embedder, attrs.evolve(DEFAULT, **chosen)).items():
            found[name] += half(each, 1 - which)
    return {name: frac_at(each, 10) for name, each in found.items()}


def _values() -> list[tuple[str, float]]:
    return [(name, value) for name, values in TRIED.items() for value in values]


def _both(rankings: Rankings, which: int) -> float:
    """Return the mean of the sets' figures on one half, rounded so that chance chooses less."""
    return round(float(np.mean([frac_at(half(each, which), 10) for each in rankings.values()])), 3)


def ranked(filled: Sets, embedder: Remembering | None, weights: Weights) -> dict[str, list[list[Ranking]]]:
    """Return the rankings of each store of each set."""
    return {name: asked(each, embedder, weights=weights) for name, each in filled.items()}


def measure(filled: Sets, embedders: Mapping[str, Remembering | None], targets: Targets) -> None:
    """Print the figures of each set and embedder."""
    columns = ("n", "@10", "+-", "half 1", "half 2", "crossed")
    heading("Mean share of the evidence among the first ten (frac@10, rec@10)", columns)
    for name, embedder in embedders.items():
        plain = ranked(filled, embedder, DEFAULT)
        chosen = crossed(filled, embedder)
        for which, each in plain.items():
            every = flat(each)
            halves = (frac_at(half(each, 0), 10), frac_at(half(each, 1), 10))
            row(f"{which}, {name}", (str(len(every)), frac_at(every, 10), noise(every), *halves, chosen[which]))
            targets.least(f"{which}, {name}", frac_at(every, 10), LEAST[which, name])


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    targets = Targets()
    print(machine("numpy", "onnxruntime", "tokenizers"))
    e5, cases = e5_small(), sets()
    kept = Path(os.environ[VECTORS]) if os.environ.get(VECTORS) else None
    if e5 is not None and kept is not None:
        e5.load(kept)
    embedders: dict[str, Remembering | None] = {"words only": None}
    if e5 is not None:
        embedders["e5-small"] = e5
    with ExitStack() as stack:
        filled = {name: stack.enter_context(stores(each, list(embedders.values()))) for name, each in cases.items()}
        if e5 is not None and kept is not None:
            e5.save(kept)
        if filled:
            measure(filled, embedders, targets)
    return int(bool(targets.missed))


if __name__ == "__main__":
    sys.exit(main())
