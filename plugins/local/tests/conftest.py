"""The factories of an open local memory, with a frozen clock and without a host."""

import pytest

from beaver_hooks_local.memory import LocalMemory
from beaver_hooks_local.settings import LocalSettings
from beaver_hostspecs.testing import FrozenClock, RecordingReport
from beaver_memory.engine import MemoryEngine
from beaver_memory.runtime.operations import Operations
from beaver_memory.runtime.profile import Profile, RuntimeServices, SqliteLocation


@pytest.fixture
def make_operations(tmp_path):
    """Return a function that opens the operations of a memory; they are closed after the test."""
    made = []

    def make(*, embedder=None, formula="context", trace=lambda *_, **__: None):
        folder, clock = tmp_path / str(len(made)), FrozenClock()
        engine = MemoryEngine.open(folder, clock=clock, embedder=embedder)
        services = RuntimeServices(report=RecordingReport(), clock=clock, trace=trace)
        profile = Profile(formula=formula)
        made.append(Operations(engine, embedder, profile, SqliteLocation(state_folder=folder), services))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def memory(make_operations):
    """Return an open memory without an embedder."""
    return LocalMemory(make_operations(), LocalSettings(enabled=True))
