"""Measures late interaction, `recall.reranker = "tokens"`: what it finds, and what it costs.

LoCoMo and BEAM are read from the folder that `BEAVER_BENCH_DATA` names; a missing set is left out. The vectors of their
tokens take long to compute, once: they stay in `build/bench-tokens`.

1. frac@10 with and without the option, of each set, with the noise of the difference.
2. The weight of tokens, chosen on one half of each set and measured on the other, and the reverse.
3. What a search costs with the model e5-small, both ways in turn: of all processor time and of the clock.
4. Bytes and seconds for a thousand memories.

    BEAVER_BENCH_DATA=... python benchmarks/local/bench_local_tokens.py
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import attrs
import numpy as np
from kit_beam import beam
from kit_data import Case, locomo, with_fields
from kit_engine import OWNER, Filled, bare_e5_small, filled
from kit_score import Ranking, Targets, flat, frac_at, heading, machine, row
from kit_tokens import StoredTokens

from beaver_memory.embedding.protocol import Embedder
from beaver_memory.engine import MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.layers import Batch
from beaver_memory.query import Query
from beaver_memory.reranker import RerankerName
from beaver_memory.search.late_interaction import MODEL, WEIGHT
from beaver_memory.views import View

WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
LEAST: Mapping[str, float] = {"LoCoMo": 0.83, "BEAM": 0.75}
TIMED = 150
"""Searches that are timed, of one case."""

WRITTEN = 60
"""Memories whose embedding is timed, of one case."""


@attrs.frozen(kw_only=True)
class Ready:
    """A case whose memories have embeddings and the vectors of tokens."""

    filled: Filled
    embedder: StoredTokens

    def ask(self, reranker: RerankerName, weight: float = WEIGHT) -> list[Ranking]:
        """Return the ranking of each question."""
        query = Query(filters=Filters(view=View(owners=(OWNER,), now=self.filled.now)), limit=10)
        options = {"embedder": self.embedder, "reranker": reranker, "token_weight": weight}
        with MemoryEngine.open(self.filled.folder, **options) as engine:
            found = []
            for question in self.filled.case.questions:
                answer = engine.search(attrs.evolve(query, text=question.text))
                found.append((question.evidence, tuple(self.filled.ids[hit.memory.id] for hit in answer.hits)))
        return found


def ready(folder: Path, case: Case, model: Embedder) -> Ready:
    """Return a filled store of a case, with the vectors of tokens."""
    embedder = StoredTokens(model, case)
    store = filled(folder, case, [embedder])
    with MemoryEngine.open(folder, embedder=embedder, reranker="tokens") as engine:
        while engine.embed(limit=1_000):
            pass
    return Ready(filled=store, embedder=embedder)


# --- Quality --------------------------------------------------------------------------------------------------------


def quality(name: str, cases: Sequence[Ready], targets: Targets) -> None:
    """Print frac@10 with and without the option, and with weights chosen on the other half."""
    by_weight = {weight: [each.ask("tokens", weight) for each in cases] for weight in WEIGHTS}
    without = [each.ask("none") for each in cases]
    questions = sum(map(len, without))
    heading(f"{name}: n = {questions} questions of {len(cases)} cases", ("frac@6", "frac@10", "change +-"))
    row("without", [frac_at(flat(without), 6), frac_at(flat(without), 10), ""])
    for weight, found in by_weight.items():
        cells = [frac_at(flat(found), 6), frac_at(flat(found), 10), noise_of_difference(flat(without), flat(found))]
        row(f"tokens, weight {weight:g}" + (" (default)" if weight == WEIGHT else ""), cells)
    for title, here, there in (("odd cases", 0, 1), ("even cases", 1, 0)):
        best = max(WEIGHTS, key=lambda weight: frac_at(flat(by_weight[weight][here::2]), 10))
        cells = [frac_at(flat(found[there::2]), 10) for found in (without, by_weight[best], by_weight[WEIGHT])]
        figures = "without {:.3f}, that weight {:.3f}, default {:.3f}".format(*cells)
        print(f"  chosen on the {title}: {best:g}; on the others: {figures}")
    targets.least(f"{name} with the tokens: frac@10", frac_at(flat(by_weight[WEIGHT]), 10), LEAST[name])


def noise_of_difference(one: Sequence[Ranking], other: Sequence[Ranking]) -> float:
    """Return half of the 95 % interval of the difference of frac@10, question by question."""
    each = [frac_at([after], 10) - frac_at([before], 10) for before, after in zip(one, other, strict=True)]
    return float(1.96 * np.std(each) / len(each) ** 0.5)


# --- Costs ----------------------------------------------------------------------------------------------------------


def search_costs(name: str, case: Ready, model: Embedder) -> None:
    """Print what a search costs both ways, each question in turn, with the model."""
    spent: dict[RerankerName, list[tuple[float, float]]] = {"none": [], "tokens": []}
    query = Query(filters=Filters(view=View(owners=(OWNER,), now=case.filled.now)), limit=10)
    with ExitStack() as stack:
        engines = {
            reranker: stack.enter_context(
                MemoryEngine.open(case.filled.folder, embedder=_Open(model), reranker=reranker)
            )
            for reranker in spent
        }
        for number, question in enumerate(case.filled.case.questions[:TIMED]):
            for reranker in list(spent) if number % 2 else reversed(list(spent)):
                asked = attrs.evolve(query, text=question.text)
                spent[reranker].append(timed(lambda engine=engines[reranker], asked=asked: engine.search(asked)))
    size = len(case.filled.case.items)
    columns = ("cpu p50", "cpu p95", "ms p50", "ms p95")
    heading(f"{name}: a search of {size} memories, with the model, in milliseconds; n = {len(spent['none'])}", columns)
    for reranker, each in spent.items():
        cells = [percentile(kind, part) for kind in zip(*each, strict=True) for part in (50, 95)]
        row(reranker, [f"{1000 * cell:.2f}" for cell in cells])


def writing_costs(name: str, cases: Sequence[Ready], model: Embedder) -> None:
    """Print what the tokens of a thousand memories take: bytes of all cases, and seconds of a sample."""
    sizes = [size for each in cases for size in token_bytes(each)]
    heading(f"{name}: a thousand memories", ("MB", "cpu s"))
    sample = cases[0].filled.case
    step = max(1, len(sample.items) // WRITTEN)
    small = attrs.evolve(sample, items=sample.items[::step][:WRITTEN], questions=())
    spent: dict[bool, list[float]] = {False: [], True: []}
    for tokens in (False, True, True, False):
        spent[tokens].append(embedding_seconds(small, model, tokens=tokens) * 1000 / len(small.items))
    for tokens, title in ((False, "embeddings alone"), (True, "with tokens")):
        megabytes = sum(sizes) / len(sizes) / 1000 if tokens else ""
        row(title, [megabytes, f"{statistics.median(spent[tokens]):.1f}"])
    largest = max(sizes)
    print(f"  the tokens of the largest memory take {largest / 1000:.0f} KB")


def embedding_seconds(case: Case, model: Embedder, *, tokens: bool) -> float:
    """Return the processor time in which the memories of a case are embedded."""
    with tempfile.TemporaryDirectory() as folder:
        store = filled(Path(folder), case, [])
        with MemoryEngine.open(store.folder) as engine:
            batch = Batch(engine.store, model, OWNER, tokens=tokens)  # type: ignore[arg-type]  # it is a single store
            began = time.process_time()
            while batch.embed(32):
                pass
            return time.process_time() - began


def token_bytes(case: Ready) -> list[int]:
    """Return the size of each memory's tokens."""
    key = case.embedder.identity.key + MODEL
    with MemoryEngine.open(case.filled.folder) as engine:
        return [len(data) for data in engine.store.vectors_of([*case.filled.ids], key, tenant=OWNER.tenant).values()]


class _Open:
    """An embedder that stays open when an engine closes it."""

    has_tokens = True

    def __init__(self, model: Embedder) -> None:
        self.identity = model.identity
        for name in ("embed_query", "embed_passages", "embed_query_tokens", "embed_passage_tokens"):
            setattr(self, name, getattr(model, name))

    def close(self) -> None:
        """Leave the model open."""


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the processor time and the clock's time of a call, in seconds."""
    cpu, clock = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - clock


def percentile(values: Sequence[float], part: int) -> float:
    """Return a percentile."""
    return float(np.percentile(values, part))


# --- All measurements -----------------------------------------------------------------------------------------------


def sets() -> Iterator[tuple[str, list[Case]]]:
    """Yield the available sets."""
    if (found := locomo()) is not None:
        print(f"LoCoMo: sha256 {found[1]}")
        yield "LoCoMo", [with_fields(each) for each in found[0]]
    if (chats := beam()) is not None:
        print(f"BEAM: sha256 {chats[1]}")
        yield "BEAM", [*chats[0]]


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    began, targets = time.perf_counter(), Targets()
    print(machine("numpy", "simsimd", "onnxruntime", "tokenizers", "beaver-hooks-local"))
    model = bare_e5_small()
    if model is None:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        for name, cases in sets():
            made = [ready(Path(folder) / name / case.name, case, model) for case in cases]
            quality(name, made, targets)
            search_costs(name, made[0], model)
            writing_costs(name, made, model)
    print(f"\n{time.perf_counter() - began:.0f} seconds; missed: {', '.join(targets.missed) or 'nothing'}")
    return int(bool(targets.missed))


if __name__ == "__main__":
    sys.exit(main())
