"""What `beaver memory local` shows and asks on a terminal."""

import asyncio
import os
import sys

import click
import pytest

from beaver_hooks import Host
from beaver_hooks.config import Config
from beaver_hooks.config.model import Memory as MemorySection
from beaver_hooks_local import make_plugin
from beaver_hooks_local.cli import group
from beaver_hooks_local.cli.embedder import embedder
from beaver_hooks_local.cli.progress import Bar, Ended


class HostShell:
    """A shell over a host in this process, opened for each call."""

    def __init__(self, folder):
        self.folder = folder

    def call(self, function):
        return asyncio.run(self._call(function))

    async def _call(self, function):
        section = {"enabled": True, "embedding": {"provider": "none"}}
        config = Config(memory=MemorySection(sections={"local": section}))
        plugin = make_plugin()
        async with Host({"local": plugin}, config=config, state_folder=self.folder):
            return await function(plugin)


@pytest.fixture
def terminal(tmp_path, monkeypatch, capsys):
    """Return what runs a command with somebody at a terminal who types `typed`."""

    def run(*words, typed="", command=group):
        read, write = os.pipe()
        os.write(write, typed.encode())
        os.close(write)
        with os.fdopen(read) as stdin, monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", stdin)
            for each in (sys.stdin, sys.stdout, sys.stderr):
                patch.setattr(each, "isatty", lambda: True, raising=False)
            try:
                command.main([*words], obj=HostShell(tmp_path / "state"), standalone_mode=False)
            except click.exceptions.Exit as left:
                assert left.exit_code == 0
        return capsys.readouterr()

    return run


@pytest.mark.parametrize(("typed", "left"), [("n\n", 1), ("\n", 1), ("y\n", 0)])
def test_forget_asks(terminal, typed, left):
    """What would go is shown, and only a yes lets it go."""
    terminal("add", "The office closes at six.")
    try:
        said = terminal("forget", "1", typed=typed)
    except click.Abort:
        said = None
    listed = terminal("list").out

    assert left == ("The office closes at six." in listed)
    assert (said is None) == bool(left)
    assert said is None or ("The office closes at six." in said.err and "Forget 1 memory for good?" in said.err)


def test_removing_a_model_asks(terminal, tmp_path):
    """What has to be fetched again is removed only after a yes."""
    folder = tmp_path / "state" / "plugins" / "local" / "models" / "e5-small"
    terminal("list")
    folder.mkdir(parents=True)
    with pytest.raises(click.Abort):
        terminal("remove", typed="n\n", command=embedder)
    kept = folder.is_dir()
    said = terminal("remove", typed="y\n", command=embedder)

    assert (True, False, "e5-small is removed.\n") == (kept, folder.is_dir(), said.out)


def test_add_without_words(terminal):
    """Nobody waits for what a person at a terminal does not know they are to type."""
    with pytest.raises(click.UsageError, match="Say what is to be remembered"):
        terminal("add")


@pytest.mark.parametrize("unit", ["things", "bytes"])
def test_a_bar_is_shown_on_a_terminal(monkeypatch, capsys, unit):
    """It says what is done and how far, on stderr, and what is done next."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with Bar(unit=unit) as bar:
        bar(1, 7, "counting [sheep]")
        bar(2, None, "resting")
    said = capsys.readouterr()

    assert ("", True) == (said.out, "resting" in said.err or "counting [sheep]" in said.err)


@pytest.mark.parametrize("shown", [True, False])
def test_a_bar_is_not_shown_elsewhere(capsys, shown):
    """Without a terminal, or where it would be in the way, nothing is written."""
    with Bar(shown=shown) as bar:
        bar(1, 2, "counting")

    assert ("", "") == tuple(capsys.readouterr())


def test_what_was_ended_goes_no_further():
    """The next step after the end raises, so that work in another thread stops."""
    bar = Bar()
    bar.end()

    with pytest.raises(Ended):
        bar(1, 2, "counting")
