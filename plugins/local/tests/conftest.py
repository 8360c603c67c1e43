"""A memory over an engine, as the tools and commands get it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from beaver_hooks_local.health import Troubles
from beaver_hooks_local.memory import LocalMemory, Surroundings
from beaver_hooks_local.settings import LocalSettings
from beaver_hostspecs.testing import FrozenClock, RecordingReport
from beaver_memory.embedding.protocol import Embedder
from beaver_memory.engine import MemoryEngine


@pytest.fixture
def make_memory(tmp_path: Path) -> Iterator[Callable[..., LocalMemory]]:
    """Makes memories in one folder, and closes them."""
    made: list[LocalMemory] = []

    def make(embedder: Embedder | None = None) -> LocalMemory:
        clock = FrozenClock()
        here = Surroundings(
            state_folder=tmp_path, environment={}, clock=clock, trace=lambda *_, **__: None, troubles=Troubles(),
            report=RecordingReport(),
        )  # fmt: skip
        engine = MemoryEngine.open(tmp_path, clock=clock, embedder=embedder)
        made.append(LocalMemory(engine, LocalSettings(enabled=True), here))
        return made[-1]

    yield make
    for memory in made:
        memory.close()


@pytest.fixture
def memory(make_memory: Callable[..., LocalMemory]) -> LocalMemory:
    return make_memory()
