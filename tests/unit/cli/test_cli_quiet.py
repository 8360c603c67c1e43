"""The command line keeps log lines out of a conversation, and shows a notice only once."""

import logging
import stat

import pytest

from beaver_hooks.cli.common import LogFile
from beaver_hooks.log import LOGGER_NAME

FAILING = """
    from beaver_hostspecs import hookimpl

    class Plugin:
        @hookimpl
        async def before_prompt(self, turn):
            raise ValueError("content")
"""
LEAVING = """
    from beaver_hostspecs import PluginUnavailable, hookimpl

    class Plugin:
        @hookimpl
        def configure(self, setup):
            raise PluginUnavailable("it lacks a key; set it")
"""
SAID = "leaving is left out: it lacks a key; set it. This line is shown once; `beaver check` repeats it.\n"


def test_a_failing_plugin_in_chat_is_one_friendly_line(cli, install, configured, scratch):
    """A failing plugin is one line with a remedy in the conversation; its log line is in a private file."""
    install("failing", FAILING)
    configured()
    ran = cli("chat", "--session", "s", stdin="hello\nand again\n")
    log = scratch / ".beaver" / "beaver.log"
    troubles = [line for line in (ran.out + ran.err).splitlines() if "failing" in line]

    assert (0, "", 1) == (ran.code, ran.err, len(troubles))
    assert troubles[0].startswith("! failing is degraded since ")
    assert troubles[0].endswith("before_prompt: raised. You can go on; `beaver doctor` shows the details.")
    assert "WARNING event=beaver_hooks.plugin_failed plugin=failing hook=before_prompt" in log.read_text()
    assert 0o600 == stat.S_IMODE(log.stat().st_mode)


def test_a_log_that_is_asked_for_goes_to_stderr(cli, install, configured, scratch, monkeypatch):
    """With BEAVER_LOG_LEVEL the log goes to stderr and not to the file."""
    install("failing", FAILING)
    configured()
    monkeypatch.setenv("BEAVER_LOG_LEVEL", "warning")
    ran = cli("chat", "--session", "s", stdin="hello\n")

    assert ("plugin_failed plugin=failing" in ran.err, (scratch / ".beaver" / "beaver.log").exists()) == (True, False)


@pytest.mark.parametrize("command", [("run", "hello"), ("chat",)])
def test_what_is_left_out_is_said_once_per_state_folder(cli, install, configured, monkeypatch, command):
    """A plugin that leaves itself out is one line at its first start, without a log line; `check` repeats the line."""
    install("leaving", LEAVING)
    configured()
    first, again = cli(*command), cli(*command)
    checked, listed = cli("check"), cli("plugins")
    configured(host={"stateFolder": "elsewhere"})
    elsewhere = cli(*command)
    monkeypatch.setenv("BEAVER_LOG_LEVEL", "warning")
    asked = cli(*command)

    assert [SAID, "", SAID] == [each.err for each in (first, again, elsewhere)]
    assert [("it lacks a key" in " ".join(each.out.split()), each.err) for each in (checked, listed)] == [
        (True, "")
    ] * 2
    assert "plugin_unavailable plugin=leaving" in asked.err


def test_what_cannot_be_written_down_is_said_again(cli, install, configured, scratch):
    """Where the record of shown lines cannot be written, the line is shown at each start."""
    install("leaving", LEAVING)
    configured()
    cli("run", "hello")
    for path in (scratch / ".beaver" / "notices").iterdir():
        path.unlink()
    (scratch / ".beaver" / "notices").rmdir()
    (scratch / ".beaver" / "notices").write_text("")

    assert [SAID, SAID] == [cli("run", "hello").err for _ in range(2)]


def test_a_log_file_follows_no_link(tmp_path, capsys):
    """A link in place of the log file is not written through; the line goes to stderr."""
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "beaver.log").symlink_to(tmp_path / "precious")
    file = LogFile(tmp_path)
    file.handle(logging.LogRecord(LOGGER_NAME, logging.WARNING, "", 0, "a line", None, None))
    file.close()

    expected = f"WARNING a line ({tmp_path / 'beaver.log'} cannot be written)\n"
    assert ("kept", expected) == ((tmp_path / "precious").read_text(), capsys.readouterr().err)


NOTICING = """
    from beaver_hostspecs import PluginInfo, hookimpl

    class Plugin:
        @hookimpl
        def describe(self):
            return PluginInfo(contract="1.0", version="1", summary="has something to say")

        @hookimpl
        def configure(self, setup):
            setup.report.notice("a move is possible; `beaver move` makes it")
"""


@pytest.mark.parametrize("command", [("run", "hello"), ("chat",)])
def test_a_notice_is_said_once_per_state_folder(cli, install, configured, command):
    """A plugin's notice is one line at its first start; `check` and `memory` repeat it, and it is no fault."""
    install("noticing", NOTICING)
    configured()
    first, again = cli(*command), cli(*command)
    checked, listed = cli("check"), cli("memory")

    said = "a move is possible; `beaver move` makes it"
    assert [f"noticing: {said}. This line is shown once; `beaver check` repeats it.\n", ""] == [first.err, again.err]
    assert [(0, True), (0, True)] == [(each.code, said in " ".join(each.out.split())) for each in (checked, listed)]
