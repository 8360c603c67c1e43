"""The models of the package fastembed, which downloads them on first use."""

import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaver_memory.embedding.errors import EmbeddingError, failure
from beaver_memory.embedding.protocol import Purpose

PROVIDER = "fastembed"
MODEL = "BAAI/bge-small-en-v1.5"
DIMENSIONS = 384
BATCH = 32
"""The default number of passages in a batch."""

PAUSE = 300.0
"""Seconds before a model that could not be loaded is tried again: without a network the package takes most of a minute
to fail."""


class FastembedEncoder:
    """An `Encoder` with a model of fastembed, loaded on first use.

    Args:
        model: the package's name of the model.
        threads: how many threads it may use.
        batch: how many passages it takes at a time.
        monotonic: a clock in seconds.

    Raises:
        EmbedderMissing: the package is not installed.
    """

    def __init__(
        self, model: str, *, threads: int = 1, batch: int = BATCH, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        if find_spec("fastembed") is None:
            raise failure(
                PROVIDER,
                "missing_package",
                "The package fastembed is not installed",
                "Install beaver-hooks-local[fastembed], or choose another memory.local.embedding.provider.",
            )
        self._model = model
        self._threads = threads
        self._batch = batch
        self._lock = threading.Lock()
        self._monotonic = monotonic
        self._next = float("-inf")
        self._loaded: Any = None

    def encode(self, texts: Sequence[str], purpose: Purpose) -> NDArray[Any]:
        """Return the vectors of the texts; see `Encoder`."""
        # The lock is held throughout: the package does not say whether several threads may use it.
        with self._lock:
            model = self._load()
            try:
                rows = (
                    model.query_embed([*texts])
                    if purpose == "query"
                    else model.passage_embed([*texts], batch_size=self._batch)
                )
                return np.stack([*rows])
            except Exception as error:
                raise failure(
                    PROVIDER,
                    "malformed",
                    f"The embedding model {self._model} failed in fastembed",
                    "Choose another memory.local.embedding.model.",
                ) from error

    def close(self) -> None:
        """Release the model."""
        with self._lock:
            self._loaded = None

    def _load(self) -> Any:
        if self._loaded is None:
            if self._monotonic() < self._next:
                raise self._unloadable()
            try:
                kind = import_module("fastembed").TextEmbedding
                self._loaded = kind(model_name=self._model, threads=self._threads)
            except Exception as error:
                # The package raises errors of many libraries: for an unknown name, a missing network, a full disk.
                self._next = self._monotonic() + PAUSE
                raise self._unloadable() from error
        return self._loaded

    def _unloadable(self) -> EmbeddingError:
        return failure(
            PROVIDER,
            "missing_model",
            f"fastembed cannot load the embedding model {self._model}",
            "Check memory.local.embedding.model, and the network: fastembed downloads a model when it is first used.",
        )
