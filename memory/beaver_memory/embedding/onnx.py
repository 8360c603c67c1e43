"""An ONNX model with its tokenizer, from files on this machine."""

import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaver_memory.embedding.errors import failure
from beaver_memory.embedding.models import INSTALL, Installed
from beaver_memory.embedding.protocol import Purpose

PROVIDER = "onnx"

_PACKAGES = ("onnxruntime", "tokenizers")
_ERRORS_ONLY = 3


class OnnxEncoder:
    """An `Encoder` with an installed model, loaded on first use.

    Texts are embedded one at a time: the batch size is fixed in the file. Text beyond the model's last token is cut
    off. An embedding is the mean of the last layer over the tokens.

    Args:
        installed: the model.
        threads: how many threads one text may use.

    Raises:
        EmbedderMissing: a package is not installed.
    """

    def __init__(self, installed: Installed, *, threads: int = 1) -> None:
        if missing := [name for name in _PACKAGES if find_spec(name) is None]:
            raise failure(
                PROVIDER,
                "missing_package",
                f"The package {missing[0]}, which runs the embedding model {installed.known.name}, is not installed",
                "Install beaver-hooks-local[onnx].",
            )
        self._installed = installed
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any, frozenset[str]] | None = None

    def encode(self, texts: Sequence[str], purpose: Purpose) -> NDArray[Any]:
        """Return the vectors of the texts; see `Encoder`."""
        return np.stack([vector for vector, _ in self.encode_tokens(texts, purpose, skip=0)])

    def encode_tokens(
        self,
        texts: Sequence[str],
        purpose: Purpose,  # noqa: ARG002 - told by the prefix
        *,
        skip: int,
    ) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """Return the vectors of the texts and of their tokens; see `TokenEncoder`."""
        session, tokenizer, inputs = self._load()
        try:
            return [_vectors(session, inputs, tokenizer.encode(text), skip) for text in texts]
        except Exception as error:
            # The runtime raises bare exceptions; none of them holds the text.
            raise failure(
                PROVIDER, "malformed", f"The embedding model {self._installed.known.name} failed", self._remedy
            ) from error

    def close(self) -> None:
        """Release the model."""
        with self._lock:
            self._loaded = None

    @property
    def _remedy(self) -> str:
        name = self._installed.known.name
        return f"Remove it and install it again: beaver memory embedder remove {name}; {INSTALL} {name}."

    def _load(self) -> tuple[Any, Any, frozenset[str]]:
        with self._lock:
            if self._loaded is None:
                try:
                    self._loaded = self._read()
                except Exception as error:
                    # Bare exceptions again, for incomplete files.
                    name = self._installed.known.name
                    raise failure(
                        PROVIDER, "missing_model", f"The embedding model {name} cannot be loaded", self._remedy
                    ) from error
            return self._loaded

    def _read(self) -> tuple[Any, Any, frozenset[str]]:
        tokenizer = import_module("tokenizers").Tokenizer.from_file(str(self._installed.tokenizer))
        tokenizer.no_padding()
        tokenizer.enable_truncation(self._installed.known.most_tokens)
        runtime = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        options.log_severity_level = _ERRORS_ONLY
        session = runtime.InferenceSession(str(self._installed.model), options, providers=["CPUExecutionProvider"])
        return session, tokenizer, frozenset(each.name for each in session.get_inputs())


def _vectors(session: Any, inputs: frozenset[str], encoding: Any, skip: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the mean of the last layer, and its rows for the words behind the first characters."""
    ids = np.array([encoding.ids], dtype=np.int64)
    mask = np.array([encoding.attention_mask], dtype=np.int64)
    given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    last = session.run(None, {name: value for name, value in given.items() if name in inputs})[0]
    weights = mask[0].astype(np.float32)
    said = [not special for special in encoding.special_tokens_mask]
    words = np.array(said) & (np.array(encoding.offsets)[:, 0] >= skip)
    # A text may have no token of its own.
    return weights @ last[0] / weights.sum(), last[0][words] if words.any() else last[0]
