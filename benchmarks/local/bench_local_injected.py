"""Measures what a turn is given: how much of it is evidence, how many tokens it takes, and how often it is nothing.

Each question is a turn of its own in a host with the default settings, words only and with e5-small:

- its own conversation, of LoCoMo and BEAM: the share of the given memories that are evidence, the share of the evidence
  that is found, also if six memories are always given, the tokens of the references and of the prompt index beside
  them, and how often a question is given nothing;
- another conversation of the same set, and one of the other set: how often a turn is given anything.

Then: the bytes of the system prompt that change between the turns of a session, the processor time of an idle host, and
the seconds to the first search of a new process. The benchmark uses no language model. It reads the folder that
`BEAVER_BENCH_DATA` names. `BEAVER_BENCH_VECTORS` may name a file `.npz`, in which
the vectors are kept for the next run.

    BEAVER_BENCH_DATA=... python benchmarks/local/bench_local_injected.py

`BEAVER_BENCH_CASES=2` takes the first two conversations of each set only.
"""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import numpy as np
from kit_beam import beam
from kit_data import Case, locomo, with_fields
from kit_engine import Remembering, e5_small
from kit_given import AlwaysSix, Given, Watched, changed_bytes, cold_seconds, idle_seconds, place, temporary
from kit_score import Targets, heading, interval, machine, row

CASES = int(os.environ.get("BEAVER_BENCH_CASES", "0")) or None
FOREIGN = 40
"""Questions of another conversation that each one is asked."""

VECTORS = os.environ.get("BEAVER_BENCH_VECTORS", "")
TOKENS, LOSS, SILENT, ANYTHING = 700, 0.02, 0.02, 0.10
IDLE = 10.0
WIDTH = 58


@attrs.frozen(kw_only=True)
class Figures:
    """Figures of turns.

    Attributes:
        precision, evidence: the share of the given memories that are evidence; of the evidence that is given.
        silent: whether a turn is given nothing.
        tokens, index: of the references, and of the prompt index beside them.
        counts: how many memories each turn is given.
    """

    precision: list[tuple[int, int]]
    evidence: list[float]
    silent: list[float]
    tokens: list[float]
    index: list[float]
    counts: list[float]

    @classmethod
    def of(cls, turns: Sequence[Given]) -> "Figures":
        """Return the figures of some turns."""
        right = [len({*each.evidence} & {*each.keys}) for each in turns]
        return cls(
            precision=[(count, len(each.keys)) for count, each in zip(right, turns, strict=True)],
            evidence=[count / max(1, len(each.evidence)) for count, each in zip(right, turns, strict=True)],
            silent=[float(not each.keys) for each in turns],
            tokens=[each.tokens for each in turns],
            index=[each.index for each in turns],
            counts=[float(len(each.keys)) for each in turns],
        )


@attrs.frozen(kw_only=True)
class Turns:
    """The turns of one set with one embedder.

    Attributes:
        own, six: of questions about their own conversation; if six memories are always given.
        foreign: by the name of the other conversations.
    """

    own: list[Given] = attrs.field(factory=list)
    six: list[Given] = attrs.field(factory=list)
    foreign: dict[str, list[Given]] = attrs.field(factory=dict)


def asked(cases: Sequence[Case], others: Mapping[str, Sequence[Case]], embedder: Remembering | None) -> Turns:
    """Ask each conversation its own questions and those of others."""
    found = Turns(foreign={name: [] for name in others})
    for number, case in enumerate(cases):
        with temporary() as folder:
            here = place(Path(folder), case, embedder)
            found.own.extend(here.asked(case.questions, Watched()))
            found.six.extend(here.asked(case.questions, AlwaysSix()))
            for name, cases_of in others.items() if len(cases) > 1 else ():
                foreign = cases_of[(number + 1) % len(cases_of)].questions[:FOREIGN]
                found.foreign[name].extend(here.asked([attrs.evolve(each, evidence=()) for each in foreign], Watched()))
    return found


def told(title: str, turns: Turns, targets: Targets, least: float) -> None:
    """Print the figures of a set."""
    figures, six = Figures.of(turns.own), Figures.of(turns.six)
    loss = [one - other for one, other in zip(six.evidence, figures.evidence, strict=True)]
    together = [one + other for one, other in zip(figures.tokens, figures.index, strict=True)]
    heading(f"{title}, own questions, n = {len(turns.own)}", ("value", "from", "to"), WIDTH)
    _share("share of the given memories that are evidence", figures.precision)
    _share("the same, if six are always given", six.precision)
    _mean("share of the evidence that is given", figures.evidence)
    _mean("the same, if six are always given", six.evidence)
    _mean("loss against always six", loss)
    _mean("turns that are given nothing", figures.silent)
    _mean("memories of a turn, mean", figures.counts)
    _middle("tokens of the references of a turn, p50", figures.tokens)
    _middle("tokens of the references and the prompt index, p50", together)
    right, total = map(sum, zip(*figures.precision, strict=True))
    targets.least(f"{title}: evidence among the given", right / max(1, total), least)
    targets.most(f"{title}: tokens of a turn, p50", float(np.median(figures.tokens)), TOKENS)
    targets.most(f"{title}: loss against always six", float(np.mean(loss)), LOSS)
    targets.most(f"{title}: answerable questions that are given nothing", float(np.mean(figures.silent)), SILENT)
    for name, foreign in turns.foreign.items():
        _foreign(f"{title}, questions of {name}", Figures.of(foreign), targets)


def _foreign(title: str, figures: Figures, targets: Targets) -> None:
    heading(f"{title}, n = {len(figures.silent)}", ("value", "from", "to"), WIDTH)
    given = [1 - each for each in figures.silent]
    _mean("turns that are given anything", given)
    _mean("memories of a turn, mean", figures.counts)
    targets.most(f"{title}: turns that are given anything", float(np.mean(given)), ANYTHING)


def _mean(name: str, values: Sequence[float]) -> None:
    row(name, (float(np.mean(values)), *interval(values, lambda some: some.mean(axis=-1))), WIDTH)


def _middle(name: str, values: Sequence[float]) -> None:
    row(name, (float(np.median(values)), *interval(values, lambda some: np.median(some, axis=-1))), WIDTH)


def _share(name: str, values: Sequence[tuple[int, int]]) -> None:
    right, total = map(sum, zip(*values, strict=True))
    bounds = interval(values, lambda some: some[:, :, 0].sum(axis=1) / np.maximum(1, some[:, :, 1].sum(axis=1)))
    row(name, (right / max(1, total), *bounds), WIDTH)


def measured(
    name: str, embedder: Remembering | None, short: Sequence[Case], long: Sequence[Case], targets: Targets
) -> None:
    """Measure with one embedder."""
    sets = {"LoCoMo": (short, long, 0.30), "BEAM": (long, short, 0.0)}
    for title, (cases, others, least) in sets.items():
        if cases:
            foreign = {"another conversation": cases} | ({"the other set": others} if others else {})
            told(f"{name}, {title}", asked(cases, foreign, embedder), targets, least)


def costs(case: Case, embedder: Remembering | None, targets: Targets) -> None:
    """Print what a host costs beside its turns."""
    heading(f"A host with the {len(case.items)} memories of a conversation", ("value",), WIDTH)
    with temporary() as folder:
        here = place(Path(folder), case, embedder)
        changed = changed_bytes(here.asked(case.questions[:20], Watched()))
        row("bytes of the system prompt that change between turns", (float(changed),), WIDTH)
        row("processor time of an idle host, seconds in a minute", (idle_seconds(here, IDLE),), WIDTH)
        clock, processor = cold_seconds(here, case.questions[0].text)
        row("seconds to the first search of a new process", (clock,), WIDTH)
        row("the same, processor time", (processor,), WIDTH)
    targets.most("bytes of the system prompt that change", changed, 0)


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    began, targets = time.perf_counter(), Targets()
    print(machine("numpy", "apsw", "onnxruntime", "tokenizers", "beaver-hooks-local"))
    found, chats = locomo(), beam()
    short = [with_fields(each) for each in found[0]][:CASES] if found else []
    long = [*chats[0]][:CASES] if chats else []
    for title, cases, loaded in (("LoCoMo", short, found), ("BEAM", long, chats)):
        if loaded:
            print(f"{title}: {len(cases)} conversations, sha256 {loaded[1]}")
    e5 = e5_small()
    if e5 is not None and VECTORS:
        e5.load(Path(VECTORS))
    for name, embedder in {"words only": None, **({"e5-small": e5} if e5 else {})}.items():
        measured(name, embedder, short, long, targets)
    if short:
        costs(short[0], e5, targets)
    if e5 is not None and VECTORS:
        e5.save(Path(VECTORS))
    print(f"\n{time.perf_counter() - began:.0f} seconds; missed: {', '.join(targets.missed) or 'nothing'}")
    return int(bool(targets.missed))


if __name__ == "__main__":
    sys.exit(main())
