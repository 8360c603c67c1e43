"""Two hosts share nothing, and a host that does not open leaves nothing."""

import asyncio
import os
import threading

import pytest

from beaver_hooks import Host
from beaver_hostspecs import ConfigurationError, PluginMissing, PluginUnavailable, hookimpl

LISTENING = """
class Plugin:
    @hookimpl
    async def start(self):
        log.append("{name} started")

    @hookimpl
    async def stop(self):
        log.append("{name} stopped")

def make():
    return Plugin()
"""


REFUSED = """
class Plugin:
    @hookimpl
    def configure(self, setup):
        raise ConfigurationError("plugins.zebra", "no")

def make():
    return Plugin()
"""
ENDLESS = """
started = asyncio.Event()

class Plugin:
    @hookimpl
    async def start(self):
        started.set()
        await asyncio.Event().wait()

def make():
    return Plugin()
"""


async def test_two_hosts_share_nothing(site, tmp_path):
    """A factory is called once per host, and each host has its own instance."""
    site.install("odd")
    hosts = [Host(entry_points=["odd"], state_folder=tmp_path / name) for name in ("one", "two")]

    for host in hosts:
        await host.open()
    first, second = (host.plugin("odd") for host in hosts)
    for host in hosts:
        await host.close()

    assert type(first) is type(second) is site.module("odd").Plugin
    assert first is not second


async def test_only_the_entry_points_that_are_named(site, tmp_path):
    """A host that names its entry points loads those, requires them and may make them fail-closed."""
    site.install("odd")
    site.install("zebra")

    async with Host(entry_points=["odd"], fail_closed=["odd"], state_folder=tmp_path / "state") as host:
        assert [(each.name, each.fail_closed) for each in host._runtime.registry.members()] == [("odd", True)]
    with pytest.raises(PluginMissing):
        await Host(entry_points=["ghost"], state_folder=tmp_path / "state").open()

    assert site.imported() == ["odd"]


def remnants():
    """Return the current threads, tasks and open files of a host."""
    threads = sorted(each.name for each in threading.enumerate() if not each.name.startswith("asyncio_"))
    files = [os.readlink(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd") if is_open(each)]  # noqa: PTH115, PTH208 - what /proc shows are no paths
    return threads, len(asyncio.all_tasks()), sorted(each for each in files if "state" in each)


def is_open(descriptor):
    return os.path.lexists(f"/proc/self/fd/{descriptor}")


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="only Linux shows its open files")  # noqa: PTH112 - no path either
async def test_a_loading_failure_leaves_nothing(site, configured):
    """The host stops started plugins in reverse order, and leaves no thread, task or file."""
    before = remnants()
    log = []
    for name in ("ant", "bee"):
        site.install(name, "log = []\n" + LISTENING.format(name=name))
    site.install("curated", "log = []\n" + LISTENING.format(name="curated"))
    site.install("zebra", REFUSED)
    for name in ("ant", "bee", "curated"):
        __import__(site.modules[name]).log = log

    with pytest.raises(ConfigurationError):
        await configured({}).open()

    assert log == [
        "curated started", "ant started", "bee started",
        "bee stopped", "ant stopped", "curated stopped",
    ]  # fmt: skip
    assert remnants() == before


class Configured:
    """Remembers its setup."""

    @hookimpl
    def configure(self, setup):
        self.setup = setup


@pytest.mark.parametrize("place", ["state", "state/plugins", "state/below"])
async def test_a_state_folder_that_cannot_be_made(tmp_path, sink, place):
    """A plugin may need no state, so it is registered, and that its folder is missing is an event."""
    state, obstacle = tmp_path / place.replace("plugins", ""), tmp_path / place.replace("/below", "")
    obstacle.parent.mkdir(exist_ok=True)
    obstacle.write_text("in the way")

    async with Host({"odd": Configured()}, state_folder=state, sinks=[sink]) as host:
        assert host.plugin("odd").setup.state_folder == state / "plugins" / "odd"
        assert host.health()["odd"].state == "ok"

    assert [event.plugin for event in sink.named("plugin_folder_unusable")] == ["odd"]
    assert obstacle.read_text() == "in the way"


async def test_a_state_folder_that_is_a_link(tmp_path):
    """A link would lead a plugin's writes to wherever its author pleased: the plugin is left out."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "state").symlink_to(tmp_path / "elsewhere")

    async with Host({}, state_folder=tmp_path / "state") as host:
        with pytest.raises(PluginUnavailable) as caught:
            await host.register("odd", Configured())

    assert "is a symbolic link; name its target instead" in str(caught.value)
    assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_loading_can_be_cancelled(site, configured):
    """Cancelling a host that opens is not taken for a failure of the plugin that starts just then."""
    site.install("curated", ENDLESS)
    started = __import__(site.modules["curated"]).started

    opening = asyncio.create_task(configured({}).open())
    await started.wait()
    opening.cancel()

    with pytest.raises(asyncio.CancelledError):
        await opening
