"""What the tests of every part share: a home of their own, the profiles of Hypothesis, and a secret to look for."""

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import known_distributions
import pytest
from hypothesis import HealthCheck, settings

from beaver_hostspecs.testing import Canary, make_canary

# No deadline and no complaint about slowness: the speed of the machine is not under test.
settings.register_profile("thorough", deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
# The same few examples in every run.
settings.register_profile("quick", settings.get_profile("thorough"), database=None, max_examples=20, derandomize=True)
settings.load_profile("quick")


MEMORY = Path("/dev/shm")  # noqa: S108 - the system's folder in memory
ROOM = 2 << 30
"""Bytes that must be free there: the tests take less than half a gigabyte."""


def pytest_configure(config: pytest.Config) -> None:
    """Read each installed distribution once, and keep the files of quick tests in memory: they wait for no disk.

    Where `TMPDIR` names a folder, the files are there.
    """
    known_distributions.remember()
    if config.option.markexpr == "not campaign" and "TMPDIR" not in os.environ and _has_room():
        os.environ["TMPDIR"] = config.stash[_FOLDER] = tempfile.mkdtemp(prefix="beaver-tests-", dir=MEMORY)
        tempfile.tempdir = None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Free the memory, at the end of the process that took it."""
    if folder := config.stash.get(_FOLDER, None):
        del os.environ["TMPDIR"]
        shutil.rmtree(folder, ignore_errors=True)


_FOLDER = pytest.StashKey[str]()


def _has_room() -> bool:
    try:
        found = os.statvfs(MEMORY)
    except (AttributeError, OSError):
        return False
    return os.access(MEMORY, os.W_OK) and not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize > ROOM


def pytest_collection_finish() -> None:
    """Keep the collected tests out of garbage collections, which take 0.2 s each otherwise, once or more per test."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty home directory for the whole run of a worker: state that belongs to no project is kept there."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("home")
        patch.setenv("HOME", str(folder))
        yield folder


@pytest.fixture(autouse=True, scope="session")
def shared_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """End the servers that tests of a worker share; their template is in a folder of the whole run."""
    own = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BEAVER_TEST_FOLDER", str(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own))
        yield
    if (servers := sys.modules.get("postgres_server")) is not None:
        servers.end_shared()


@pytest.fixture
def canary() -> Canary:
    """A secret that must not turn up anywhere; `canary.assert_clean(text)` proves it."""
    return make_canary()
