import pytest

from beaver_hooks_curated import CuratedSettings, MemoryService, MemoryStore, Operation, Target
from beaver_hooks_curated.edits import apply, prepare
from beaver_hostspecs.testing import FrozenClock


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
def make_store(tmp_path, clock):
    """Makes stores over one folder: several of them are several processes."""

    def make(*, lock_seconds=2.0, limit=2200, folder=None):
        limits = dict.fromkeys(Target, limit)
        return MemoryStore(folder or tmp_path / "store", limits, lock_seconds=lock_seconds, clock=clock)

    return make


@pytest.fixture
def store(make_store):
    return make_store()


@pytest.fixture
def make_service(tmp_path, clock):
    """Makes services over one folder, with settings as given."""

    def make(**settings):
        return MemoryService(tmp_path / "memory", CuratedSettings(**settings), clock=clock)

    return make


@pytest.fixture
def service(make_service):
    return make_service()


@pytest.fixture
def add():
    """Adds one entry to a store."""

    def added(store, text, target=Target.MEMORY):
        steps = prepare([Operation(action="add", content=text)])
        return store.write(target, lambda page: apply(page, steps), action="add")

    return added
