"""Factories for the tests of the host and of the packages that build on it."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from beaver_hooks import Host
from beaver_hooks.audit.memory_sink import MemorySink
from beaver_hooks.config import Config
from beaver_hooks.config.model import HostSettings
from beaver_hostspecs.testing import FrozenClock


@pytest.fixture
def sink() -> MemorySink:
    """The audit events of the hosts that `make_host` makes."""
    return MemorySink()


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def make_host(tmp_path: Path, sink: MemorySink) -> Callable[..., Host]:
    """Makes hosts with plugins by name and settings of the section `host`; other options are those of `Host`."""

    def make(plugins: Any = None, settings: dict[str, Any] | None = None, **options: Any) -> Host:
        config = Config(host=HostSettings(**(settings or {})))
        usual = {"config": config, "state_folder": tmp_path / ".beaver", "sinks": [sink], "environment": {}}
        return Host(plugins or {}, **(usual | options))

    return make


@pytest.fixture
async def complaints() -> AsyncIterator[None]:
    """Fail if asyncio complains, also when tasks are collected; for `pytest.mark.usefixtures`."""
    messages: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: messages.append(context["message"]))
    yield
    gc.collect()
    await asyncio.sleep(0)
    assert [] == messages
