"""One peer in a process of its own, in the peers' own environment: JSON lines in, JSON lines out.

    {"do": "open", "folder", "dimensions"}              ->  {"peer": ..., "version": ...}
    {"do": "add", "user", "id", "text", "vector"}       ->  {"ms": ...}
    {"do": "search", "user", "text", "vector", "k"}     ->  {"ids": [...], "ms": ...}

Vectors are base64 of float32. A peer's embedder is a table of the vectors from the lines, so that embedding takes no
time. The time is that of the peer's call only, without reading and writing the lines.
"""

import base64
import importlib.metadata
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol


class Table:
    """Returns the stored vector of a text."""

    def __init__(self) -> None:
        self.vectors: dict[str, list[float]] = {}

    def put(self, text: str, vector: str) -> list[float]:
        """Store a vector, and return it."""
        import array

        # Some peers strip a text before they embed it.
        self.vectors[text] = self.vectors[text.strip()] = array.array("f", base64.b64decode(vector)).tolist()
        return self.vectors[text]

    def embed(self, text: str, *_: object, **__: object) -> list[float]:
        """Return a text's vector."""
        return self.vectors[text]

    def embed_batch(self, texts: list[str], *_: object, **__: object) -> list[list[float]]:
        """Return the vectors of texts."""
        return [self.vectors[text] for text in texts]


class Peer(Protocol):
    """The calls of a peer that are measured."""

    package: str

    def add(self, user: str, key: str, text: str) -> None:
        """Store a memory."""

    def search(self, user: str, text: str, k: int) -> Callable[[], list[str]]:
        """Search, and return a function that returns the found keys; the time of that function does not count."""


class Mem0:
    """mem0 with its local qdrant; texts are stored unchanged."""

    package = "mem0ai"

    def __init__(self, folder: Path, table: Table, dimensions: int) -> None:
        from mem0 import Memory
        from mem0.utils.factory import EmbedderFactory

        store = {"collection_name": "bench", "path": str(folder / "qdrant"), "embedding_model_dims": dimensions}
        EmbedderFactory.create = classmethod(lambda *_: table)
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": {**store, "on_disk": True}},
                "llm": {"provider": "openai", "config": {"api_key": "none", "openai_base_url": "http://127.0.0.1:9"}},
                "history_db_path": str(folder / "history.db"),
            }
        )

    def add(self, user: str, key: str, text: str) -> None:
        """Store a memory."""
        self._memory.add([{"role": "user", "content": text}], user_id=user, infer=False, metadata={"key": key})

    def search(self, user: str, text: str, k: int) -> Callable[[], list[str]]:
        """Search, without the threshold that would exclude results."""
        found = self._memory.search(text, top_k=k, filters={"user_id": user}, threshold=0.0)
        return lambda: [each["metadata"]["key"] for each in found["results"]]


class Langgraph:
    """SqliteStore of langgraph, with its index of vectors."""

    package = "langgraph-checkpoint-sqlite"

    def __init__(self, folder: Path, table: Table, dimensions: int) -> None:
        with_extensions()
        from langgraph.store.sqlite import SqliteStore

        # This version reads `text_fields`, and the documentation says `fields`, so both are given.
        index: Any = {"fields": ["text"], "dims": dimensions, "embed": table.embed_batch, "text_fields": ["text"]}
        self._context = SqliteStore.from_conn_string(str(folder / "store.db"), index=index)
        self._store = self._context.__enter__()
        self._store.setup()

    def add(self, user: str, key: str, text: str) -> None:
        """Store a memory."""
        self._store.put((user,), key, {"text": text})

    def search(self, user: str, text: str, k: int) -> Callable[[], list[str]]:
        """Search."""
        found = self._store.search((user,), query=text, limit=k)
        return lambda: [each.key for each in found]


class Yantrik:
    """yantrikdb, which ranks by vectors, words, entities and time."""

    package = "yantrikdb"

    def __init__(self, folder: Path, table: Table, dimensions: int) -> None:
        from yantrikdb import YantrikDB

        self._database = YantrikDB(str(folder / "memory.db"), embedding_dim=dimensions)
        self._table = table
        self._keys: dict[str, str] = {}

    def add(self, user: str, key: str, text: str) -> None:
        """Store a memory."""
        id_ = self._database.record(text, embedding=self._table.vectors[text], namespace=user)
        self._keys[id_] = key

    def search(self, user: str, text: str, k: int) -> Callable[[], list[str]]:
        """Search, without recording the search."""
        found = self._database.recall(
            query=text, query_embedding=self._table.vectors[text], top_k=k, namespace=user, skip_reinforce=True
        )
        return lambda: [self._keys[each["rid"]] for each in found if each["rid"] in self._keys]


def with_extensions() -> None:
    """Replace `sqlite3` by a module that loads extensions, if that of this Python does not."""
    import sqlite3

    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        import pysqlite3

        sys.modules["sqlite3"] = pysqlite3
        sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2


def only_here(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse connections and name lookups beyond this machine, as an audit hook of the interpreter."""
    if event == "socket.connect" and isinstance(arguments[1], tuple) and arguments[1][0] not in {"127.0.0.1", "::1"}:
        raise PermissionError("the benchmark lets nobody leave this machine")
    if event == "socket.getaddrinfo" and arguments[0] not in {"localhost", "127.0.0.1", "::1", None}:
        raise PermissionError("the benchmark lets nobody leave this machine")


PEERS: dict[str, Callable[[Path, Table, int], Peer]] = {"mem0": Mem0, "langgraph": Langgraph, "yantrikdb": Yantrik}


def main() -> None:
    """Serve one peer until the input ends."""
    # Peers print to stdout, which must carry only the lines for the caller.
    sys.addaudithook(only_here)
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    table = Table()
    peer: Peer | None = None
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["do"] == "open":
            peer = PEERS[sys.argv[1]](Path(asked["folder"]), table, asked["dimensions"])
            answer: dict[str, Any] = {"peer": peer.package, "version": importlib.metadata.version(peer.package)}
        else:
            assert peer is not None
            answer = served(peer, table, asked)
        out.write(json.dumps(answer) + "\n")


def served(peer: Peer, table: Table, asked: dict[str, Any]) -> dict[str, Any]:
    """Add or search, and return the milliseconds."""
    table.put(asked["text"], asked["vector"])
    began = time.perf_counter()
    if asked["do"] == "add":
        peer.add(asked["user"], asked["id"], asked["text"])
        return {"ms": (time.perf_counter() - began) * 1e3}
    name = peer.search(asked["user"], asked["text"], asked["k"])
    spent = (time.perf_counter() - began) * 1e3
    return {"ids": name(), "ms": spent}


if __name__ == "__main__":
    main()
