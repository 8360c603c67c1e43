"""Measures the quality of local memory: with and without models, by every formula, without each signal, and in a host.

The benchmark uses no language model. It reads LoCoMo from the folder that `BEAVER_BENCH_DATA` names, and skips it if
the file is missing. It installs the model e5-small into `BEAVER_BENCH_MODEL_HOME`, or into `build/`. It measures
one configuration on all sets, which have different forms:

1. Turns `[date] speaker: text`, with session, speaker and time as fields; the same line alone; the text alone with the
   id of its session; parts of sessions of about 2,000 characters; and all conversations as those of one user.
2. Made-up sets: facts among similar facts, code identifiers, dates, Chinese, and passing remarks.

Then it measures the effect of the minimum score, the value of each signal, the effect of other weights, weights chosen
on two conversations and measured on the other three (and the reverse), and the same questions as turns of a host.

    BEAVER_BENCH_DATA=... python benchmarks/local/bench_local_quality.py
"""

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack

import attrs
from kit_data import FORMS, Case, Conversation, digest, locomo, together, with_fields
from kit_engine import Filled, Remembering, asked, e5_small, static, stores
from kit_hooks import Hooked, hooked
from kit_made_up import made_up
from kit_score import METRICS, Ranking, Targets, any_at, flat, frac_at, heading, machine, noise, row

from beaver_memory.search.formulas import Weights

FORMULAS = ("context", "seed-002", "seed-003", "rrf")
FIELDS = "turns with fields"
FLOOR = 0.2
"""A least score of each memory."""

FRAC_WITH_E5, ANY_WITH_E5, FRAC_BY_WORDS = 0.78, 0.85, 0.73
DEFAULT = Weights()
TRIED: Mapping[str, tuple[float, ...]] = {
    "semantic": (0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.6),
    "neighbour": (0.0, 0.2, 0.4, 0.5, 0.6, 0.8),
    "session": (0.0, 0.4, 0.6, 0.8, 1.0),
    "speaker": (0.0, 0.1, 0.2, 0.3, 0.4),
}
"""The weights of the default formula that are chosen on data, and the round numbers to try."""

Embedders = Mapping[str, Remembering | None]


def with_weight(weights: Weights, name: str, value: float) -> Weights:
    """Return the weights with one of them changed; the sum of the two channels stays 1."""
    if name == "semantic":
        return attrs.evolve(weights, semantic=value, lexical=round(1 - value, 6))
    return attrs.evolve(weights, **{name: value})


# --- Methods --------------------------------------------------------------------------------------------------------


def methods(title: str, cases: Sequence[Case], embedders: Embedders) -> None:
    """Print the quality of each embedder with each formula."""
    with stores(cases, list(embedders.values())) as filled:
        questions = sum(len(case.questions) for case in cases)
        sizes = ", ".join(f"{len(case.items)}" for case in cases)
        heading(f"{title}: n = {questions} questions; memories: {sizes}", list(METRICS))
        for name, embedder in embedders.items():
            for formula in FORMULAS:
                found = flat(asked(filled, embedder, formula=formula))
                row(f"{name}, {formula}", [metric(found) for metric in METRICS.values()])


def made_up_sets(embedders: Embedders) -> None:
    """Print the quality on the made-up sets."""
    cases = made_up()
    print(f"\nMade-up sets; sha256 {digest(cases)[:16]}")
    with stores(cases, list(embedders.values())) as filled:
        for each in filled:
            heading(
                f"{each.case.name}: n = {len(each.case.questions)}, {len(each.case.items)} memories",
                ("any@1", "any@10"),
            )
            for name, embedder in embedders.items():
                for formula in FORMULAS:
                    found = each.ask(embedder, formula=formula)
                    row(f"{name}, {formula}", (any_at(found, 1), any_at(found, 10)))


# --- Signals and weights --------------------------------------------------------------------------------------------


@attrs.define
class Bench:
    """The stores of the conversations in each form, and a cache of their answers."""

    filled: dict[str, list[Filled]]
    embedders: Embedders
    known: dict[tuple[str, str, Weights], list[list[Ranking]]] = attrs.field(factory=dict)

    def ask(self, form: str, embedder: str, weights: Weights) -> list[list[Ranking]]:
        """Return the rankings of each store."""
        key = (form, embedder, weights)
        if key not in self.known:
            self.known[key] = asked(self.filled[form], self.embedders[embedder], weights=weights)
        return self.known[key]

    def cells(self, weights: Weights) -> list[float]:
        """Return the figure of each form and embedder."""
        return [
            frac_at(flat(self.ask(form, name, weights)), _depth(form))
            for form in self.filled
            for name in self.embedders
        ]

    @property
    def columns(self) -> list[str]:
        """The names of the cells: a form, and the first letter of an embedder."""
        short = dict(zip(FORMS, ("fields", "line", "text", "long"), strict=True))
        return [f"{short[form]}/{name[0]}" for form in self.filled for name in self.embedders]


def _depth(form: str) -> int:
    # A case has fewer than a hundred long memories, and frac@10 on them shows no differences.
    return 3 if form.startswith("long") else 10


def without_each(bench: Bench) -> None:
    """Print the quality without each signal."""
    heading("Without each signal: frac@10, of long memories frac@3", bench.columns)
    row("all of them", bench.cells(DEFAULT))
    for name in ("neighbour", "session", "speaker", "recency"):
        row(f"without {name}", bench.cells(with_weight(DEFAULT, name, 0.0)))
    none = attrs.evolve(DEFAULT, neighbour=0.0, session=0.0, speaker=0.0)
    row("without any of the first three", bench.cells(none))


def flatness(bench: Bench) -> None:
    """Print the quality with other weights, one at a time."""
    heading("How flat the optimum is: one weight changed at a time, the same figures", bench.columns)
    for name, values in TRIED.items():
        for value in values:
            mark = " (default)" if value == getattr(DEFAULT, name) else ""
            row(f"{name} {value:g}{mark}", bench.cells(with_weight(DEFAULT, name, value)))


def carried_over(bench: Bench, embedder: str) -> None:
    """Print the quality on some conversations with weights chosen on the others."""
    first, second = slice(0, 2), slice(2, None)
    heading(
        f"Chosen on some conversations, measured on the others: {embedder}, {FIELDS}, frac@10",
        ("chosen on", "others", "default"),
    )
    for title, here, there in (
        ("1-2, measured on the rest", first, second),
        ("the rest, measured on 1-2", second, first),
    ):
        weights = _chosen(bench, embedder, here)
        values = [_figure(bench, embedder, weights, here), _figure(bench, embedder, weights, there)]
        row(title, [*values, _figure(bench, embedder, DEFAULT, there)])
        print("    chosen: " + ", ".join(f"{name} {_said(getattr(weights, name))}" for name in TRIED))


def _said(value: float | None) -> str:
    return "the model's own" if value is None else f"{value:g}"


def _chosen(bench: Bench, embedder: str, where: slice) -> Weights:
    """Return the best weights, chosen one after the other, beginning at the defaults; ties keep the earlier value."""
    weights = DEFAULT
    for name, values in TRIED.items():
        for value in values:
            tried = with_weight(weights, name, value)
            if _figure(bench, embedder, tried, where) > _figure(bench, embedder, weights, where) + 1e-9:
                weights = tried
    return weights


def _figure(bench: Bench, embedder: str, weights: Weights, where: slice) -> float:
    return frac_at(flat(bench.ask(FIELDS, embedder, weights)[where]), 10)


# --- What a score means -----------------------------------------------------------------------------------------------


def floors(filled: Mapping[str, Sequence[Filled]], embedders: Embedders) -> None:
    """Print the number of hits that the minimum score excludes, if questions are asked of another conversation."""
    least = FLOOR
    heading(
        f"The least score of {least:g}, six memories; questions of their own conversation, and of another one",
        ("frac@6", "all kept", "kept none", "others", "of 6", "all of 6"),
    )
    for form, stores_of in filled.items():
        others = [stores_of[place - 1].case.questions for place in range(len(stores_of))]
        for name, embedder in embedders.items():
            every = flat(asked(stores_of, embedder, limit=6))
            own = flat(asked(stores_of, embedder, limit=6, minimum_score=least))
            plain, foreign = (
                flat([each.ask(embedder, limit=6, minimum_score=minimum, questions=questions)
                      for each, questions in zip(stores_of, others, strict=True)])
                for minimum in (0.0, least)
            )  # fmt: skip
            given = [len(found) for _, found in foreign]
            cells = (frac_at(own, 6), frac_at(every, 6), _share(not found for _, found in own))
            mean = sum(given) / len(given)
            row(f"{form}, {name}", (*cells, _share(given), mean, sum(len(found) for _, found in plain) / len(plain)))


def _share(values: Iterable[object]) -> float:
    found = [bool(each) for each in values]
    return sum(found) / len(found)


# --- In a host ------------------------------------------------------------------------------------------------------


def in_a_host(cases: Sequence[Case], e5: Remembering | None, targets: Targets) -> None:
    """Print the quality of the memories in a host's turns, and whether they meet the targets."""
    heading(
        "In a host, by the receipts of the turns; one configuration",
        ("frac@6", "frac@10", "any@10", "ms p50", "ms p95", "tokens"),
    )
    kept: dict[str, Hooked] = {}
    for name, embedder in (("words only", None), ("e5-small", e5)):
        if name == "e5-small" and e5 is None:
            continue
        for how, more in (("default settings", False), ("ten memories", True)):
            found = hooked(cases, embedder, more=more)
            deep = [frac_at(found.rankings, 10), any_at(found.rankings, 10)] if more else ["", ""]
            tokens = sum(found.tokens) / len(found.tokens)
            row(f"{name}, {how}", [frac_at(found.rankings, 6), *deep, *found.spread, f"{tokens:.0f}"])
            kept[name] = found
    words = kept["words only"].rankings
    print(f"  n = {len(words)}, +- {noise(words):.3f} (half of the 95 % interval)")
    targets.least("words only, in a host: frac@10", frac_at(words, 10), FRAC_BY_WORDS)
    if "e5-small" in kept:
        targets.least("e5-small, in a host: frac@10", frac_at(kept["e5-small"].rankings, 10), FRAC_WITH_E5)
        targets.least("e5-small, in a host: any@10", any_at(kept["e5-small"].rankings, 10), ANY_WITH_E5)


# --- All measurements -----------------------------------------------------------------------------------------------


def embedders_here() -> Iterator[tuple[str, Remembering | None]]:
    """Yield the available embedders."""
    yield "words only", None
    for name, made in (("static", static()), ("e5-small", e5_small())):
        if made is not None:
            yield name, made


def conversations(found: Sequence[Conversation], embedders: Embedders, targets: Targets) -> None:
    """Run all measurements on LoCoMo."""
    in_a_host([with_fields(each) for each in found], embedders.get("e5-small"), targets)
    for form, make in FORMS.items():
        methods(form, [make(each) for each in found], embedders)
    everything = together(tuple(with_fields(each) for each in found), "all")
    methods("turns with fields, all conversations as one user's", [everything], embedders)
    kept = {form: [make(each) for each in found] for form, make in FORMS.items() if form != "turns, line only"}
    real = list(embedders.values())
    with ExitStack() as stack:
        filled = {form: stack.enter_context(stores(cases, real)) for form, cases in kept.items()}
        floors(filled, embedders)
        bench = Bench(filled, embedders)
        without_each(bench)
        flatness(bench)
        for name in embedders:
            carried_over(bench, name)


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    began, targets = time.perf_counter(), Targets()
    print(machine("numpy", "apsw", "onnxruntime", "tokenizers", "wordllama", "beaver-hooks-local"))
    embedders = dict(embedders_here())
    found = locomo()
    if found is not None:
        print(f"LoCoMo: {len(found[0])} conversations, categories 1-4, sha256 {found[1]}")
        conversations(found[0], embedders, targets)
    made_up_sets(embedders)
    print(f"\n{time.perf_counter() - began:.0f} seconds; missed: {', '.join(targets.missed) or 'nothing'}")
    return int(bool(targets.missed))


if __name__ == "__main__":
    sys.exit(main())
