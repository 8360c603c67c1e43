"""The shell: a plugin's command reaches its plugin in service, or gets an error with the reason."""

import asyncio
import stat
from datetime import UTC, datetime

import click
import pytest

from beaver_hooks.agent.errors import UnknownSession
from beaver_hooks.cli.app import beaver
from beaver_hooks.cli.shell import PluginShell
from beaver_hooks.cli.state import sessions_in
from beaver_hostspecs import Message, PluginUnavailable, Shell, StoredSession, Trust, UnknownPlugin

PLUGIN = """
    from beaver_hostspecs import PluginUnavailable, hookimpl

    class Plugin:
        started = stopped = False

        @hookimpl
        async def start(self):
            self.started = True

        @hookimpl
        async def stop(self):
            self.stopped = True

    class Absent:
        @hookimpl
        def configure(self, setup):
            raise PluginUnavailable("its server is not configured")
"""


def call(name, function):
    """Call a function through the shell of a plugin, within a command."""
    shell: Shell = PluginShell(name)
    with click.Context(beaver):
        return shell.call(function)


def test_the_plugin_is_in_service_for_as_long_as_the_call_takes(install, configured):
    """The function gets the started plugin, which stops when the function has returned."""
    install("lent", PLUGIN)
    configured()
    seen = []

    async def look(plugin):
        seen.append(plugin)
        await asyncio.sleep(0)
        return plugin.started, plugin.stopped

    assert (True, False) == call("lent", look)
    assert [True] == [plugin.stopped for plugin in seen]


def test_what_the_function_raises_comes_out(install, configured):
    """The error of the function reaches the caller, and the plugin is stopped all the same."""
    install("lent", PLUGIN)
    configured()
    seen = []

    async def fail(plugin):
        seen.append(plugin)
        raise LookupError("nothing of that name")

    with pytest.raises(LookupError, match="nothing of that name"):
        call("lent", fail)
    assert [True] == [plugin.stopped for plugin in seen]


def test_the_folder_of_a_plugin_that_is_not_in_service(install, configured, scratch):
    """The plugin's own folder exists and is private, in service or not; the plugin is not started for it."""
    install("lent", PLUGIN, plugin="Absent")
    configured()
    with click.Context(beaver):
        folder = PluginShell("lent").folder()

    assert (scratch / ".beaver" / "plugins" / "lent", 0o700) == (folder, stat.S_IMODE(folder.stat().st_mode))


def test_the_folder_that_all_projects_share(install, configured, monkeypatch, tmp_path):
    """The plugin's folder for all projects of a person is in the home directory, and private."""
    install("lent", PLUGIN, plugin="Absent")
    configured(host={})
    monkeypatch.setenv("HOME", str(tmp_path))
    with click.Context(beaver):
        folder = PluginShell("lent").person_folder()

    assert (tmp_path / ".beaver" / "plugins" / "lent", 0o700) == (folder, stat.S_IMODE(folder.stat().st_mode))


async def never(_plugin):
    """Fail the test, because the plugin is in service."""
    raise AssertionError


def message(name, kind=UnknownPlugin):
    with pytest.raises(kind) as error:
        call(name, never)
    return error.value.plugin, str(error.value)


def test_a_plugin_that_is_not_installed_is_named(configured):
    """The error for a plugin that is not installed names the command that lists the plugins."""
    configured()

    said = "the plugin `absent` is not installed; `beaver plugins` shows the state of every plugin"
    assert ("absent", said) == message("absent")


def test_a_plugin_that_is_out_of_service_is_named_with_the_reason(install, configured):
    """The error for an unavailable plugin names the time since when it is, and the reason."""
    install("lent", PLUGIN, plugin="Absent")
    configured()
    name, said = message("lent", PluginUnavailable)

    assert ("lent", "the plugin `lent` is unavailable since ") == (name, said[: said.index("since ") + 6])
    assert said.endswith(": its server is not configured; `beaver plugins` shows the state of every plugin")


def stored(beginning):
    """Return a stored session through the shell of a plugin."""
    with click.Context(beaver):
        return PluginShell("absent").session(beginning)


def test_a_stored_session(configured, scratch):
    """A plugin gets a stored conversation by the beginning of its id: user, trust and messages."""
    configured()
    message = Message(role="user", text="hello", when=datetime(2026, 1, 2, tzinfo=UTC), id="t1")

    async def fill():
        async with sessions_in(scratch / ".beaver") as store:
            await store.begin("holidays", "ann", trust=Trust.INNER)
            await store.append_exchange("holidays", [message])

    asyncio.run(fill())

    expected = StoredSession(id="holidays", user="ann", trust=Trust.INNER, messages=(message,))
    assert expected == stored("holi")
    with pytest.raises(UnknownSession, match="There is no session `work`"):
        stored("work")


def test_the_sessions_that_quote_a_text(configured, scratch):
    """A plugin counts the stored conversations that hold a text, of one user or of all."""
    configured()

    async def fill():
        async with sessions_in(scratch / ".beaver") as store:
            for user in ("ann", "bob"):
                await store.ensure(user, user)
                await store.append_exchange(user, [Message(role="user", text="hello")])

    asyncio.run(fill())
    with click.Context(beaver):
        shell = PluginShell("absent")
        assert [1, 2] == [shell.quoting_sessions(["hello"], user="ann"), shell.quoting_sessions(["hello"])]


def test_no_stored_session(configured):
    """Without stored conversations the error says so."""
    configured()

    with pytest.raises(UnknownSession, match="Nothing is stored yet"):
        stored("holi")
