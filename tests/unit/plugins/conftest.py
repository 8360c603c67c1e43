"""Real installed distributions, for the tests of the registry."""

import json
import sys
import textwrap
from importlib import metadata
from uuid import uuid4

import pytest

from beaver_hooks import Host

GOOD = """
class Plugin:
    calls = []

    @hookimpl
    async def before_prompt(self, turn):
        return None

def make():
    return Plugin()
"""
PREAMBLE = """
from pathlib import Path
Path(__file__).with_suffix(".imported").touch()
import asyncio
import attrs
from beaver_hostspecs import *
from beaver_hostspecs import hookimpl
"""


class Site:
    """A folder with installed distributions."""

    def __init__(self, folder):
        self.folder = folder
        self.modules = {}
        self.found = metadata.distributions

    def install(self, name, code=GOOD, *, distribution=None):
        """Install a plugin: one module, and the metadata that announce it."""
        module = f"plugin_{uuid4().hex}"
        self.modules[name] = module
        (self.folder / f"{module}.py").write_text(PREAMBLE + textwrap.dedent(code))
        info = self.folder / f"{distribution or module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution or module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[beaver_hooks]\n{name} = {module}:make\n")

    def imported(self):
        """Return the plugins whose code has run, by name."""
        return sorted(name for name, module in self.modules.items() if (self.folder / f"{module}.imported").exists())

    def module(self, name):
        return sys.modules[self.modules[name]]

    def distributions(self):
        """Find these distributions only, whatever else this machine has."""
        return self.found(path=[str(self.folder)])


@pytest.fixture
def site(tmp_path, monkeypatch):
    site = Site(tmp_path / "site")
    site.folder.mkdir()
    monkeypatch.syspath_prepend(site.folder)
    monkeypatch.setattr(metadata, "distributions", site.distributions)
    yield site
    for module in site.modules.values():
        sys.modules.pop(module, None)


@pytest.fixture
def configured(tmp_path, sink):
    """Make a host from a configuration file."""

    def make(config, **options):
        path = tmp_path / "config.json"
        path.write_text(json.dumps({"host": {"stateFolder": "state", "deadlineCapSeconds": 30}, **config}))
        return Host.from_config(path, environment={}, sinks=[sink], **options)

    return make
