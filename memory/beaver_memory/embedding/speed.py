"""Measures the speed of an installed model on this machine."""

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from beaver_memory.embedding.catalog import KNOWN, KnownModel
from beaver_memory.embedding.factory import onnx_identity
from beaver_memory.embedding.models import Progress, check_model, no_progress
from beaver_memory.embedding.onnx import OnnxEncoder
from beaver_memory.embedding.protocol import Embedder
from beaver_memory.embedding.vector_checks import CheckedEmbedder

QUERIES = 200
_WARM = 3
_SUBJECTS = ("the release", "my sister", "that restaurant", "the database", "our last meeting", "the red bicycle")
_ASKED = ("When did we talk about", "Who decided on", "What was wrong with", "How long did it take to plan")


@attrs.frozen(kw_only=True)
class Bench:
    """The results of a measurement.

    Attributes:
        load_seconds: the time of the first text, which loads the model and its runtime.
        query_p50_ms: the time that half of the queries took at most.
        query_p95_ms: the time that nearly all of them took at most.
        passages_per_second: the rate for passages of about 200 characters.
        peak_mb: the peak memory of the whole process; `None` if the system does not report it.
    """

    load_seconds: float
    query_p50_ms: float
    query_p95_ms: float
    passages_per_second: float
    peak_mb: float | None


def bench_model(
    name: str,
    state_folder: Path,
    *,
    queries: int = QUERIES,
    threads: int = 1,
    progress: Progress = no_progress,
    models: Mapping[str, KnownModel] = KNOWN,
) -> Bench:
    """Measure an installed model.

    Args:
        name: the model.
        state_folder: the folder of the plugin's state.
        queries: the number of queries, and of passages.
        threads: how many threads one text may use.
        progress: receives the number of texts that are done.
        models: the models that can be installed.

    Raises:
        EmbeddingError: the model cannot be used.
    """
    installed = check_model(name, state_folder, models=models)
    encoder = OnnxEncoder(installed, threads=threads)
    embedder = CheckedEmbedder(encoder, onnx_identity(installed.known))
    try:
        return bench(embedder, queries=queries, progress=progress)
    finally:
        embedder.close()


def bench(
    embedder: Embedder,
    *,
    queries: int = QUERIES,
    progress: Progress = no_progress,
    seconds: Callable[[], float] = time.perf_counter,
) -> Bench:
    """Measure an embedder that has not been used yet."""
    asked = [f"{_ASKED[at % 4]} {_SUBJECTS[at % 6]}, number {at}?" for at in range(max(queries, 2))]
    load = _timed(embedder, asked[0], seconds)
    for text in asked[:_WARM]:
        embedder.embed_query(text)
    spent = _each(embedder, asked, seconds, progress)
    passages = [f"{text} We went through it again, and wrote down what was said. " * 3 for text in asked]
    began = seconds()
    embedder.embed_passages(passages)
    # A clock that is too coarse shows no time at all.
    passed = max(seconds() - began, 1e-9)
    return Bench(
        load_seconds=round(load, 3),
        query_p50_ms=round(statistics.median(spent) * 1000, 3),
        query_p95_ms=round(statistics.quantiles(spent, n=20)[-1] * 1000, 3),
        passages_per_second=round(len(passages) / passed, 1),
        peak_mb=peak_mb(),
    )


def peak_mb() -> float | None:
    """Return the peak memory of this process in megabytes, or `None` if the system does not report it."""
    try:
        import resource  # noqa: PLC0415 - Windows lacks it
    except ImportError:
        return None
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)


def _each(embedder: Embedder, asked: Sequence[str], seconds: Callable[[], float], progress: Progress) -> list[float]:
    spent = []
    for done, text in enumerate(asked, 1):
        spent.append(_timed(embedder, text, seconds))
        progress(done, len(asked), "embedding queries")
    return spent


def _timed(embedder: Embedder, text: str, seconds: Callable[[], float]) -> float:
    began = seconds()
    embedder.embed_query(text)
    return seconds() - began
