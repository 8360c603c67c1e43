"""The static model inside the package wordllama: one vector for each piece of a word, and their mean.

Its files are read, and its code does not run: importing it would set up the logging of the whole process, and would
look for missing files on the network.
"""

import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaver_memory.embedding.errors import failure
from beaver_memory.embedding.protocol import Purpose

PROVIDER = "static"
MODEL = "l2_supercat_256"
DIMENSIONS = 256

_PACKAGES = ("wordllama", "tokenizers", "safetensors")
_FILES = ("weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json")
_TENSOR = "embedding.weight"
_REMEDY = "Install beaver-hooks-local[static]."


def is_installed() -> bool:
    """Return whether the model is installed. Imports none of its packages."""
    return _folder() is not None


class StaticEncoder:
    """An `Encoder` with the static model, loaded on first use.

    Raises:
        EmbedderMissing: the model is not installed.
    """

    def __init__(self) -> None:
        folder = _folder()
        if folder is None:
            raise failure(PROVIDER, "missing_package", "The static embedding model is not installed", _REMEDY)
        self._folder = folder
        self._lock = threading.Lock()
        self._loaded: tuple[Any, NDArray[Any]] | None = None

    def encode(self, texts: Sequence[str], purpose: Purpose) -> NDArray[Any]:  # noqa: ARG002 - both are the same here
        """Return the mean vector of the pieces of each text; see `Encoder`."""
        tokenizer, weights = self._load()
        # One by one: whole batches would start the tokenizer's threads, which a fork would break.
        ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
        return np.stack([_mean(weights, each) for each in ids])

    def close(self) -> None:
        """Release the model."""
        with self._lock:
            self._loaded = None

    def _load(self) -> tuple[Any, NDArray[Any]]:
        with self._lock:
            if self._loaded is None:
                self._loaded = _read(self._folder)
            return self._loaded


def _mean(weights: NDArray[Any], ids: list[int]) -> NDArray[Any]:
    if not ids:
        return np.zeros(weights.shape[1], dtype=np.float32)
    mean: NDArray[Any] = weights[ids].mean(axis=0, dtype=np.float32)
    return mean


def _read(folder: Path) -> tuple[Any, NDArray[Any]]:
    weights, tokenizer = (folder / name for name in _FILES)
    try:
        loaded = import_module("tokenizers").Tokenizer.from_file(str(tokenizer))
        loaded.no_padding()
        loaded.no_truncation()
        with import_module("safetensors").safe_open(str(weights), framework="np") as file:
            return loaded, file.get_tensor(_TENSOR)
    except Exception as error:
        # The libraries raise bare exceptions for incomplete files.
        raise failure(
            PROVIDER, "missing_model", "The static embedding model cannot be loaded", f"{_REMEDY[:-1]} anew."
        ) from error


def _folder() -> Path | None:
    """Return the folder of the package, if all files are there. Does not import the package."""
    specs = [find_spec(name) for name in _PACKAGES]
    places = [] if None in specs or specs[0] is None else [*(specs[0].submodule_search_locations or ())]
    folders = (Path(place) for place in places)
    return next((each for each in folders if all((each / name).is_file() for name in _FILES)), None)
