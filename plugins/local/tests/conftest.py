"""The factories of an open local memory, with a frozen clock and without a host, and of its commands over a host."""

import asyncio
import sys

import click
import pytest
from processes import Ran

from beaver_hooks import Host
from beaver_hooks.config import Config
from beaver_hooks.config.model import Memory
from beaver_hooks.state_folder import plugin_folder
from beaver_hooks_local import make_plugin
from beaver_hooks_local.cli import group
from beaver_hooks_local.memory import LocalMemory
from beaver_hooks_local.settings import LocalSettings
from beaver_hostspecs import PluginError
from beaver_hostspecs.testing import FrozenClock, RecordingReport
from beaver_memory.engine import MemoryEngine
from beaver_memory.runtime.operations import Operations
from beaver_memory.runtime.profile import Profile, RuntimeServices, SqliteLocation


@pytest.fixture
def make_operations(tmp_path):
    """Return a function that opens the operations of a memory; they are closed after the test."""
    made = []

    def make(*, embedder=None, formula="context", reranker="none", trace=lambda *_, **__: None):
        folder, clock = tmp_path / str(len(made)), FrozenClock()
        engine = MemoryEngine.open(folder, clock=clock, embedder=embedder, reranker=reranker)
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


class HostShell:
    """A shell over a host in this process, opened for each call."""

    def __init__(self, folder, section):
        self.folder_of_state, self.section = folder, section
        self.quoting = lambda *_: 0

    def call(self, function):
        return asyncio.run(self._call(function))

    def folder(self):
        return plugin_folder(self.folder_of_state, "local")

    person_folder = folder

    def quoting_sessions(self, texts, *, user=None):
        return self.quoting(texts, user)

    async def _call(self, function):
        config = Config(memory=Memory(sections={"local": self.section}))
        plugin = make_plugin()
        async with Host({"local": plugin}, config=config, state_folder=self.folder_of_state):
            return await function(plugin)


@pytest.fixture
def here(tmp_path, monkeypatch, capsys):
    """Return what runs a command of the group in this process; `terminal` makes all three streams look like one.

    Its `section` is the configuration of the memory.
    """
    section = {"enabled": True, "embedding": {"provider": "none"}}
    monkeypatch.setenv("COLUMNS", "120")
    shell = HostShell(tmp_path / "state", section)

    def run(*words, stdin="", terminal=False):
        (tmp_path / "stdin").write_bytes(stdin if isinstance(stdin, bytes) else stdin.encode())
        with (tmp_path / "stdin").open() as typed, monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", typed)
            for each in (sys.stdin, sys.stdout, sys.stderr):
                patch.setattr(each, "isatty", lambda: terminal, raising=False)
            code = _code([*map(str, words)], shell)
        out, err = capsys.readouterr()
        return Ran(out=out, err=err, code=code)

    run.section, run.shell, run.code = section, shell, lambda *words: _code([*words], shell)
    return run


def _code(words, shell):
    try:
        return group.main(words, obj=shell, standalone_mode=False) or 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return 130
    except PluginError as error:
        click.echo(f"Error: {error}", err=True)
        return 6
