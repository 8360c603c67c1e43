"""`beaver mcp` without packages of others: its help, misuse, missing packages, and the logs of libraries."""

import logging
import sys

import pytest

from beaver_hooks.cli import mcp
from beaver_hostspecs import Secret
from beaver_hostspecs.distributions import install_command

MISSING = f"Error: `beaver mcp` needs the package `mcp`, version 2; run: {install_command('beaver-hooks', 'mcp')}.\n"


@pytest.fixture
def without(monkeypatch):
    """Return a function that makes a package look as if it were not installed."""

    def hide(name):
        for module in [each for each in sys.modules if each.startswith("beaver_hooks.adapters.mcp_server")]:
            monkeypatch.delitem(sys.modules, module)
        monkeypatch.setitem(sys.modules, name, None)

    return hide


@pytest.fixture
def _other_logs():
    """Restore the loggers of libraries."""
    loggers = [logging.getLogger(name) for name in mcp.ELSEWHERE]
    before = [(each.handlers, each.propagate, each.level) for each in loggers]
    yield
    for logger, (handlers, propagate, level) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


def test_help_needs_nothing(cli, without):
    """The help describes the command without the extra, too."""
    without("mcp_types")
    ran = cli("mcp", "--help")

    assert (0, "", True) == (ran.code, ran.err, "Serve memory to clients of the Model Context Protocol." in ran.out)


@pytest.mark.parametrize("name", ["mcp_types", "uvicorn", "mcp"])
@pytest.mark.parametrize("words", [(), ("--http", "--port", "0")])
def test_without_its_extra(cli, without, monkeypatch, name, words):
    """Without its extra the command prints one sentence with the remedy on stderr, and nothing on stdout."""
    if name != "mcp_types":
        pytest.importorskip("mcp_types", reason="the extra `mcp` is not installed")
    without(name)
    ran = cli("mcp", *words)

    assert (6, "", MISSING) == ran


@pytest.mark.parametrize("words", [("--port", "0"), ("--host", "127.0.0.1"), ("--name", "here.example")])
def test_where_to_listen_is_for_http(cli, words):
    """An address to listen at without `--http` is an error of usage."""
    ran = cli("mcp", *words)

    assert (2, "") == (ran.code, ran.out)
    assert "Error: --host, --port and --name need --http; add it, or leave them out.\n" in ran.err


@pytest.mark.parametrize("words", [("--trust", "total"), ("--port", "65536"), ("--port", "x"), ("more",)])
def test_a_wrong_command_line(cli, words):
    """A wrong command line is an error of usage."""
    ran = cli("mcp", "--http", *words)

    assert (2, "") == (ran.code, ran.out)


def test_another_module_that_is_missing_is_no_extra(cli, without, monkeypatch):
    """A missing module outside the extra is an unexpected error, because pip would not help."""
    monkeypatch.setattr(mcp, "NEEDED", ())
    without("beaver_hooks.adapters.mcp_server")
    ran = cli("mcp")

    assert (1, "", True) == (ran.code, ran.out, ran.err.startswith("Error: an unexpected error happened"))


@pytest.mark.usefixtures("_other_logs")
@pytest.mark.parametrize(
    ("level", "said"),
    [
        (logging.WARNING, ["WARNING mcp.x: two lines, [secret]", "ERROR uvicorn.x: it failed (ValueError)"]),
        (logging.ERROR, ["ERROR uvicorn.x: it failed (ValueError)"]),
        (logging.DEBUG, ["WARNING mcp.x: two lines, [secret]", "ERROR uvicorn.x: it failed (ValueError)"]),
    ],
)
def test_what_others_log(capsys, canary, level, said):
    """Libraries log warnings as one line each on stderr, without secret, traceback or control character."""
    logging.getLogger("beaver_hooks").setLevel(level)
    mcp._set_up_other_logs()
    logging.getLogger("mcp.x").debug("what was said")
    logging.getLogger("mcp.x").warning("two\nlines, %s", canary.reveal())
    try:
        raise ValueError(canary.reveal())
    except ValueError:
        logging.getLogger("uvicorn.x").exception("it failed\x1b")

    out, errors = capsys.readouterr()
    assert ("", said) == (out, [line.replace("\x1b", "").replace("\ufffd", "") for line in errors.splitlines()])
    assert "\x1b" not in errors


def test_trust_is_one_of_four(cli):
    """The help lists the four trusts."""
    assert "[full|inner|familiar|public]" in cli("mcp", "--help").out


def test_a_secret_in_a_name_of_a_logger():
    """The scrubber masks a secret in the name of a logger, too."""
    secret = Secret("a-name-that-is-secret")
    record = logging.LogRecord(f"mcp.{secret.reveal()}", logging.ERROR, "", 0, "said", (), None)

    assert mcp._OneLine().filter(record)
    assert "mcp.[secret]: said" == record.getMessage()
