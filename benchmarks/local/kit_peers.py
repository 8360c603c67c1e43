"""The peers: their environment, and their processes."""

import base64
import hashlib
import json
import os
import select
import subprocess
import sys
import venv
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import numpy as np

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "peers.txt"
BUILD = HERE.parents[1] / "build"
PATIENCE = 120.0
"""The longest time for one answer, in seconds."""

QUIET = {
    "MEM0_TELEMETRY": "False",
    "ANONYMIZED_TELEMETRY": "False",
    "POSTHOG_DISABLED": "1",
    "LANGSMITH_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""Variables that turn telemetry off, as the peers document, and give each peer one thread."""


class PeerFailed(Exception):
    """A peer did not answer, or could not be started."""


def environment() -> Path | None:
    """Return the interpreter of the peers, after installing them; if that fails, print a line and return `None`."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    folder = BUILD / f"bench-peers-{sys.version_info.major}.{sys.version_info.minor}-{digest}"
    python, done = folder / "bin" / "python", folder / ".installed"
    if done.exists():
        return python
    print(f"Installing the peers of {REQUIREMENTS.name} into {folder.name}; this takes a while.", flush=True)
    venv.create(folder, with_pip=True, clear=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    made = subprocess.run([*install, "-r", str(REQUIREMENTS)], check=False, capture_output=True, text=True)
    if made.returncode:
        print(f"The peers are left out: pip failed. {made.stderr.strip().splitlines()[-1:]}")
        return None
    done.touch()
    return python


class PeerProcess:
    """A peer in a process of its own; use it as a context.

    Args:
        name: the name of the peer.
        python: the interpreter of the peers' environment.
        folder: the folder for the peer's data.
        dimensions: the length of the vectors that the peer gets.
    """

    def __init__(self, name: str, python: Path, folder: Path, dimensions: int) -> None:
        self.name = name
        self._dimensions = dimensions
        self._python = python
        self._folder = folder

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True)
        surroundings = {**os.environ, **QUIET, "HOME": str(self._folder), "MEM0_DIR": str(self._folder / "mem0")}
        surroundings.pop("PYTHONPATH", None)
        self._errors = (self._folder / "stderr.txt").open("w+", encoding="utf-8")
        self._process = subprocess.Popen(
            [str(self._python), str(HERE / "peer_worker.py"), self.name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, env=surroundings,
            cwd=self._folder,
        )  # fmt: skip
        try:
            answer = self._ask(do="open", folder=str(self._folder), dimensions=self._dimensions)
        except BaseException:
            self.__exit__()
            raise
        self.version = f"{answer['peer']} {answer['version']}"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        with suppress(OSError):
            self._process.communicate()
        self._errors.close()

    def add(self, user: str, key: str, text: str, vector: np.ndarray) -> float:
        """Store a memory; return the milliseconds."""
        return float(self._ask(do="add", user=user, id=key, text=text, vector=_plain(vector))["ms"])

    def search(self, user: str, text: str, vector: np.ndarray, k: int) -> tuple[tuple[str, ...], float]:
        """Search; return the keys and the milliseconds."""
        answer = self._ask(do="search", user=user, text=text, vector=_plain(vector), k=k)
        return tuple(answer["ids"]), float(answer["ms"])

    def _ask(self, **what: Any) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(json.dumps(what).encode() + b"\n")
            stdin.flush()
            ready = select.select([stdout], [], [], PATIENCE)[0]
            answer: dict[str, Any] = json.loads(stdout.readline()) if ready else {}
        except (OSError, ValueError) as error:
            raise PeerFailed(f"{self.name}: {self._said()}") from error
        if not answer:
            raise PeerFailed(f"{self.name}: no answer within {PATIENCE:g} seconds")
        return answer

    def _said(self) -> str:
        self._errors.flush()
        lines = (self._folder / "stderr.txt").read_text("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "it ended without a word"


def _plain(vector: np.ndarray) -> str:
    return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()
