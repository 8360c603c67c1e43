"""Standard streams that are closed or full: a sentence on an open stream, and an exit code."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from selection import campaign

from beaver_hooks.agent.providers.offline import NOTHING
from beaver_hooks.cli import errors
from beaver_hooks.cli.streams import STREAMS, fault, mend, settle, tell

UNFLUSHED = """
    import click

    @click.command()
    def group():
        print("said, and not flushed", end="")
"""

CLOSED = "Error: Nothing can be written to stdout (Bad file descriptor). Open stdout, or make room on its disk.\n"
FULL = CLOSED.replace("Bad file descriptor", "No space left on device")


def beaver(redirection, *words, stdin=""):
    """Run `beaver` from a shell that redirects its streams."""
    command = ["sh", "-c", f'exec "$0" "$@" {redirection}', sys.executable, "-m", "beaver_hooks.cli", *words]
    ran = subprocess.run(command, capture_output=True, text=True, input=stdin, check=False)
    return ran.returncode, ran.stdout, ran.stderr


@pytest.mark.parametrize(
    ("redirection", "words", "expected"),
    [
        (">&-", ["run", "hi"], (1, "", CLOSED)),
        (">/dev/full", ["run", "hi"], (1, "", FULL)),
        ("2>&-", ["run", " "], (2, "", "")),
        ("<&- >&- 2>&-", ["run", "hi"], (1, "", "")),
        *campaign(
            (">&-", ["run", "hi", "--stream"], (1, "", CLOSED)),
            (">&-", ["run", "hi", "--json"], (1, "", CLOSED)),
            (">&-", ["chat"], (1, "", CLOSED)),
            (">&-", ["--version"], (1, "", CLOSED)),
            (">/dev/full", ["chat"], (1, "", FULL)),
            (">/dev/full", ["run", "--help"], (1, "", FULL)),
            (">/dev/full 2>&1", ["run", "hi"], (1, "", "")),
            ("2>&-", ["run", "hi"], (0, f"{NOTHING}\n", "")),
            ("2>&-", ["run", " ", "--debug"], (2, "", "")),
            ("2>/dev/full", ["run", " "], (2, "", "")),
            ("2>/dev/full", ["run"], (2, "", "")),
            ("<&-", ["run", "hi"], (0, f"{NOTHING}\n", "")),
        ),
    ],
)
@pytest.mark.parametrize("unbuffered", ["", *campaign("1")])
def test_closed_and_full_streams(configured, monkeypatch, *, redirection, words, expected, unbuffered):
    """A closed or full stream is reported in one sentence where stderr is open, and never as an unexpected error."""
    configured()
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)

    assert expected == beaver(redirection, *words)


@pytest.mark.campaign
def test_a_closed_stdin_is_empty(configured):
    """With stdin closed a conversation ends at once, and `run -` refuses the empty prompt."""
    configured()
    code, out, err = beaver("<&-", "chat")
    run = beaver("<&-", "run", "-")

    assert (0, True, "") == (code, out.endswith("Ctrl-D ends the chat.\n\n"), err)
    assert (2, "", True) == (run[0], run[1], run[2].startswith("Error: "))


@pytest.mark.parametrize("words", [["run", "-"], ["chat"]])
def test_a_stdin_that_cannot_be_read(cli, configured, words):
    """A stdin that cannot be read is an error of usage that names the cause."""
    configured()
    with os.fdopen(os.open(os.devnull, os.O_WRONLY), "r") as stream:
        ran = cli(*words, stdin=stream)

    said = "Error: stdin cannot be read (Bad file descriptor); redirect a file or a pipe to it.\n"
    assert (2, True) == (ran.code, ran.err.endswith(said))
    assert (2, True) == ((again := beaver("0>/dev/null", *words))[0], again[2].endswith(said))


@pytest.mark.campaign
def test_the_exchange_is_stored_all_the_same(configured):
    """An answer that cannot be written is stored in its session."""
    configured()
    beaver(">/dev/full", "run", "hi", "--session", "s")

    assert (0, True) == ((ran := beaver("", "sessions", "show", "s"))[0], NOTHING in ran[1])


def test_what_a_plugin_left_unsaid_is_noticed(install, configured, monkeypatch):
    """Text that a plugin's command printed and that cannot be written at the end is an error too."""
    install("hasty", UNFLUSHED, group="group")
    configured()
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)

    assert (1, "", FULL) == beaver(">/dev/full", "hasty")


@pytest.fixture
def numbers(monkeypatch):
    """Close the replacement of a stream after the test."""
    opened = []
    real = os.open

    def spied(*arguments, **keywords):
        opened.append(real(*arguments, **keywords))
        return opened[-1]

    monkeypatch.setattr(os, "open", spied)
    yield opened
    os.close(opened[0])


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_that_is_closed_is_replaced(monkeypatch, numbers, name):
    """A closed stdin is read as empty, a closed stdout fails, a closed stderr discards; open streams stay."""
    open_ones = {each: getattr(sys, each) for each in STREAMS if each != name}
    monkeypatch.setattr(sys, name, None)
    mend()
    stream = getattr(sys, name)

    assert 1 == len(numbers)
    assert open_ones == {each: getattr(sys, each) for each in open_ones}
    if name == "stdin":
        assert "" == stream.read()
    else:
        tell("something")
        stream.write("something")
        assert (name == "stdout") == (fault() is not None)
        settle()
    assert fault() is None


def full(*, buffered):
    """Return a text stream on a full device."""
    raw = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115 - the test closes it
    return io.TextIOWrapper(io.BufferedWriter(raw) if buffered else raw, write_through=not buffered)


@pytest.mark.parametrize("buffered", [True, False])
def test_a_full_stdout_in_this_process(monkeypatch, capsys, buffered):
    """A full stdout is reported once, the exit code is 1, and no output is left for the end of Python."""
    with full(buffered=buffered) as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        code = errors.run(["--version"])

    assert (1, FULL) == (code, capsys.readouterr().err)


def test_what_was_not_flushed_cannot_be_written(monkeypatch, capsys):
    """A command whose buffered output cannot be written at its end exits with 1 and reports the full stdout."""
    with full(buffered=True) as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(errors.beaver, "main", lambda *_, **__: stream.write("left") * 0)
        code = errors.run([])

    assert (1, FULL) == (code, capsys.readouterr().err)


def test_an_error_that_was_never_raised_is_not_of_stdout():
    """An error without a traceback is not taken for an error of stdout."""
    assert None is fault(OSError(28, "No space left on device"))


def test_an_error_of_the_system_elsewhere_stays_unexpected(monkeypatch, capsys):
    """An error of the system is unexpected while stdout works; a full stderr does not change the exit code."""

    class Full(io.StringIO):
        def write(self, _text):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(errors.beaver, "main", lambda *_, **__: (_ for _ in ()).throw(OSError(5, "I/O error")))
    codes = [errors.run([])]
    said = capsys.readouterr().err
    monkeypatch.setattr(sys, "stderr", Full())
    codes.append(errors.run([]))

    assert ([1, 1], True) == (codes, said.startswith("Error: an unexpected error happened (OSError)."))
