"""An embedder whose results stay in files, because the vectors of the tokens of a whole set take long to compute."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

import numpy as np
from kit_data import Case

from beaver_memory.embedding.protocol import Embedder, TokenEmbedder, TokenEmbedding
from beaver_memory.search.terms import passages

PLACE = Path(__file__).parents[2] / "build" / "bench-tokens"


class StoredTokens:
    """An embedder for the texts of one case: it reads them from a file, which it makes if it is missing.

    The vectors of tokens are stored in int8.

    Args:
        embedder: embeds the texts if the file is missing.
        case: the memories and questions.
    """

    has_tokens = True

    def __init__(self, embedder: Embedder, case: Case) -> None:
        self.identity = embedder.identity
        queries = [question.text for question in case.questions]
        texts = [passage for item in case.items for passage in passages(item.text)]
        self._places = {
            key: place for place, key in enumerate(dict.fromkeys([*_keys("q", queries), *_keys("p", texts)]))
        }
        digest = hashlib.sha256("\0".join([self.identity.key, *self._places]).encode()).hexdigest()[:24]
        self._file = PLACE / f"{digest}.npz"
        if not self._file.is_file():
            self._store(cast("TokenEmbedder", embedder))
        with np.load(self._file) as stored:
            self._vectors, self._tokens, self._ends = (stored[name] for name in ("vectors", "tokens", "ends"))

    def embed_query(self, text: str) -> np.ndarray:
        """Return the vector of a query."""
        return self.embed_query_tokens(text).vector

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of passages."""
        return np.stack([each.vector for each in self.embed_passage_tokens(texts)])

    def embed_query_tokens(self, text: str) -> TokenEmbedding:
        """Return a query and its tokens."""
        return self._embedding("q" + text)

    def embed_passage_tokens(self, texts: Sequence[str]) -> list[TokenEmbedding]:
        """Return passages and their tokens."""
        return [self._embedding(key) for key in _keys("p", texts)]

    def close(self) -> None:
        """Keep the arrays, because the next engine uses them too."""

    def _embedding(self, key: str) -> TokenEmbedding:
        place = self._places[key]
        first = self._ends[place - 1] if place else 0
        tokens = self._tokens[first : self._ends[place]].astype("f4")
        tokens /= np.linalg.norm(tokens, axis=1, keepdims=True)
        return TokenEmbedding(vector=self._vectors[place], tokens=tokens)

    def _store(self, embedder: TokenEmbedder) -> None:
        made = [
            embedder.embed_query_tokens(key[1:]) if key[0] == "q" else embedder.embed_passage_tokens([key[1:]])[0]
            for key in self._places
        ]
        PLACE.mkdir(parents=True, exist_ok=True)
        part = self._file.with_suffix(".part.npz")
        np.savez(
            part,
            vectors=np.stack([each.vector for each in made]),
            tokens=np.concatenate([_bytes(each.tokens) for each in made]),
            ends=np.cumsum([len(each.tokens) for each in made]),
        )
        part.replace(self._file)


def _keys(kind: str, texts: Iterable[str]) -> list[str]:
    return [kind + text for text in texts]


def _bytes(rows: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.rint(rows * (127 / np.abs(rows).max(axis=1, keepdims=True))).astype("i1")
    return found
