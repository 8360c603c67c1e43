"""The engine filled with the sets, and embedders that cache their vectors for the run."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs
import numpy as np
from kit_data import Case, Item
from kit_score import Ranking

from beaver_memory.embedding.errors import EmbeddingError
from beaver_memory.embedding.factory import make_embedder
from beaver_memory.embedding.installer import install_model
from beaver_memory.embedding.models import is_there
from beaver_memory.embedding.protocol import Embedder
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.engine import MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.records import NewMemory, Owner
from beaver_memory.search.formulas import Weights
from beaver_memory.views import View

MODEL = "e5-small"
MODEL_HOME = "BEAVER_BENCH_MODEL_HOME"
VECTORS = "BEAVER_BENCH_VECTORS"
USER = "u"
OWNER = Owner(user=USER)
EARLY = datetime(2022, 1, 1, tzinfo=UTC)


class Calendar:
    """A clock that shows the time set in `time`."""

    def __init__(self) -> None:
        self.time = EARLY

    def now(self) -> datetime:
        """Return the time that was set."""
        return self.time

    def monotonic(self) -> float:
        """Return the time that was set, in seconds."""
        return self.time.timestamp()


class Remembering:
    """An embedder that embeds each text once in a run."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.identity = embedder.identity
        self._queries: dict[str, np.ndarray] = {}
        self._passages: dict[str, np.ndarray] = {}

    def load(self, file: Path) -> None:
        """Take the vectors that `save` has written, if the file exists."""
        if file.is_file():
            with np.load(file) as kept:
                self._queries |= zip(kept["queries_texts"].tolist(), kept["queries"], strict=True)
                self._passages |= zip(kept["passages_texts"].tolist(), kept["passages"], strict=True)

    def save(self, file: Path) -> None:
        """Write all vectors to a file."""
        arrays = {}
        for known, name in ((self._queries, "queries"), (self._passages, "passages")):
            arrays |= {f"{name}_texts": np.array(list(known)), name: np.array(list(known.values()))}
        np.savez(file, **arrays)

    def embed_query(self, text: str) -> np.ndarray:
        """Return the vector of a query."""
        if text not in self._queries:
            self._queries[text] = self._embedder.embed_query(text)
        return self._queries[text]

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of passages."""
        for text in texts:
            if text not in self._passages:
                self._passages[text] = self._embedder.embed_passages([text])[0]
        return np.stack([self._passages[text] for text in texts])

    def close(self) -> None:
        """Keep the model open, because the next engine uses it too."""


def model_home() -> Path:
    """Return the folder of the installed models."""
    return Path(os.environ.get(MODEL_HOME) or Path(__file__).parents[2] / "build" / "bench-models")


def e5_small() -> Remembering | None:
    """Return the model with a cache, or `None`, with a printed line, if it is unavailable."""
    made = bare_e5_small()
    return None if made is None else Remembering(made)


def bare_e5_small() -> Embedder | None:
    """Return the model, and install it if it is missing; if it is unavailable, print a line and return `None`."""
    try:
        if not is_there(MODEL, model_home()):
            print(f"Installing {MODEL} into {model_home()}.", flush=True)
            install_model(MODEL, model_home())
        return make_embedder(EmbeddingSettings(provider="onnx"), state_folder=model_home(), environment={})
    except EmbeddingError as error:
        print(f"{MODEL} is left out: {error}")
        return None


def static() -> Remembering | None:
    """Return the static model, or `None`, with a printed line, if it is not installed."""
    try:
        made = make_embedder(EmbeddingSettings(provider="static"), state_folder=model_home(), environment={})
    except EmbeddingError as error:
        print(f"static is left out: {error}")
        return None
    return None if made is None else Remembering(made)


@attrs.frozen(kw_only=True)
class Filled:
    """A store with the memories of a case."""

    folder: Path
    case: Case
    ids: dict[int, str]
    now: datetime

    def ask(
        self,
        embedder: Embedder | None = None,
        *,
        weights: Weights | None = None,
    ) -> list[Ranking]:
        """Return the ranking of each question of the case."""
        query = Query(filters=Filters(view=View(owners=(OWNER,), now=self.now)), limit=10)
        with MemoryEngine.open(self.folder, embedder=embedder, weights=weights) as engine:
            found = []
            for question in self.case.questions:
                answer = engine.search(attrs.evolve(query, text=question.text))
                found.append((question.evidence, tuple(self.ids[hit.memory.id] for hit in answer.hits)))
        return found


def memory(item: Item) -> NewMemory:
    """Return an item as a new memory."""
    return NewMemory(
        title=item.text,
        session=item.session,
        speaker=item.speaker,
        keywords=item.keywords,
        created_at=item.when,
        owner=OWNER,
        type="event",
    )


def filled(folder: Path, case: Case, embedders: Sequence[Embedder]) -> Filled:
    """Return a store with the memories of a case, each added at its time, and their vectors by each embedder."""
    clock = Calendar()
    ids: dict[int, str] = {}
    with MemoryEngine.open(folder, clock=clock) as engine:
        for batch in _at_once(case.items):
            clock.time = max(clock.time, batch[-1].when or clock.time)
            ids |= zip(engine.add([memory(item) for item in batch]), (item.key for item in batch), strict=True)
    for embedder in embedders:
        with MemoryEngine.open(folder, clock=clock, embedder=embedder) as engine:
            while engine.embed(limit=1_000):
                pass
    return Filled(folder=folder, case=case, ids=ids, now=clock.time + timedelta(days=1))


def _at_once(items: Sequence[Item]) -> Iterator[list[Item]]:
    """Return batches of consecutive items of one session."""
    batch: list[Item] = []
    for item in items:
        if batch and (item.session, item.when is None) != (batch[-1].session, batch[-1].when is None):
            yield batch
            batch = []
        batch.append(item)
    if batch:
        yield batch


@contextmanager
def stores(cases: Sequence[Case], embedders: Sequence[Embedder | None]) -> Iterator[list[Filled]]:
    """Return a filled store for each case, and delete the stores afterwards."""
    real = [embedder for embedder in embedders if embedder is not None]
    with tempfile.TemporaryDirectory() as folder:
        yield [filled(Path(folder) / str(place), case, real) for place, case in enumerate(cases)]


def asked(
    filled_stores: Sequence[Filled],
    embedder: Embedder | None = None,
    *,
    weights: Weights | None = None,
) -> list[list[Ranking]]:
    """Return the rankings of each store."""
    return [each.ask(embedder, weights=weights) for each in filled_stores]
