"""Output for a terminal: harmless text, and a waiting line that leaves the answer alone."""

import contextlib
import io
import os
import pty
import sys
from pathlib import Path
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.cli import terminal
from beaver_hooks.cli.streams import Unwritable
from beaver_hooks.cli.terminal import Pieces, ended, harmless, show, waiting

HOSTILE = "a\x1b[31mred\x1b]0;title\x07\u202ereversed\u200b\0b"
HARMLESS = "a[31mred]0;titlereversedb"


class Screen(io.StringIO):
    """A stream that is a terminal."""

    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain\ttext\nüñ 日本 🎉", "plain\ttext\nüñ 日本 🎉"),
        (HOSTILE, HARMLESS),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("\ud800", "\ufffd"),
        ("\x9b31m", "31m"),
    ],
)
def test_harmless_text(text, expected):
    """Escape sequences, bidirectional controls and lone surrogates are removed or replaced, and other text stays."""
    assert expected == harmless(text)


@given(st.text() | st.text(alphabet="\x1b[]m;\r\n\t\x07\u202e\u2066\u200b\ud800\x9ba"))
def test_harmless_text_holds_nothing_that_a_terminal_obeys(text):
    """Harmless text has no control character but line ends and tabs, no surrogate and no bidirectional override."""
    shown = harmless(text)

    assert set() == {each for each in shown if each not in "\n\t" and category(each) in {"Cc", "Cs"}}
    assert set() == {*shown} & {*"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f"}
    assert shown == harmless(shown)


def test_a_terminal_gets_harmless_text_and_a_program_gets_all(monkeypatch):
    """A terminal gets harmless text, a pipe the text unchanged, and each text goes to its own stream."""
    screen, pipe = Screen(), io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", pipe)
    monkeypatch.setattr(sys, "stderr", screen)
    show(HOSTILE)
    show(HOSTILE, err=True, end="")
    show(err=True)

    assert (f"{HOSTILE}\n", f"{HARMLESS}\n") == (pipe.buffer.getvalue().decode(), screen.getvalue())


@pytest.mark.parametrize(
    ("encoding", "text", "expected"),
    [("ascii", "é \ud800", b"? ?\n"), ("utf-8", "é \ud800", "é ?\n".encode()), ("latin-1", "é €", b"\xe9 ?\n")],
)
def test_what_a_stream_cannot_encode_is_replaced(monkeypatch, encoding, text, expected):
    """Characters that the stream's encoding lacks become question marks."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="\n")
    monkeypatch.setattr(sys, "stdout", stream)
    show(text)

    assert expected == stream.buffer.getvalue()


def test_a_stream_without_an_encoding_takes_anything(monkeypatch):
    """In a stream without an encoding, characters that UTF-8 lacks become question marks."""
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    show("é \ud800")

    assert "é ?\n" == stream.getvalue()


def test_without_a_terminal_waiting_says_nothing(monkeypatch, capsys):
    """In a pipe `waiting` prints nothing, however long it takes, and its end prints nothing either."""
    monkeypatch.setattr(terminal, "PATIENCE", 0.0)
    with waiting("Thinking") as over:
        over()

    assert ("", "") == capsys.readouterr()


def test_what_is_quick_says_nothing(monkeypatch):
    """On a terminal a step that ends within the patience prints no waiting line."""
    monkeypatch.setattr(terminal, "PATIENCE", 3600.0)
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    with waiting("Thinking"):
        pass

    assert "" == screen.getvalue()


def test_what_is_over_is_not_started_any_more(monkeypatch):
    """A waiting line that starts after its end is not shown."""
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    status = terminal._Status("Thinking")
    status.stop()
    status.start()

    assert "" == screen.getvalue()


@contextlib.contextmanager
def screen():
    """Make stdout and stderr a real pseudo-terminal; give its other end."""
    outer, inner = pty.openpty()
    with os.fdopen(inner, "w", encoding="utf-8") as stream, pytest.MonkeyPatch.context() as patch:
        for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
            patch.delenv(name, raising=False)
        patch.setenv("TERM", "xterm")
        patch.setattr(terminal, "PATIENCE", 0.0)
        # A fixture is too early: pytest sets the streams between a fixture and its test.
        patch.setattr(sys, "stdout", stream)
        patch.setattr(sys, "stderr", stream)
        yield outer
    os.close(outer)


def read_until(outer, text):
    """Return all text of the terminal up to and including `text`."""
    seen = b""
    while text.encode() not in seen:
        seen += os.read(outer, 1024)
    return seen.decode()


def test_on_a_terminal_it_says_what_is_being_waited_for():
    """After the patience a line names the awaited step; the end erases the line."""
    with screen() as outer:
        with waiting("Thinking hard"):
            read_until(outer, "Thinking hard")
        show("the end")
        after = read_until(outer, "the end")

    # The line is erased, and the cursor is shown again.
    assert (True, True) == ("\x1b[2K" in after, "\x1b[?25h" in after)


def test_an_answer_ends_the_waiting_and_reaches_stdout_in_pieces():
    """The first piece erases the waiting line, and the pieces follow each other on one line of the real stdout."""
    with screen() as outer:
        stdout = sys.stdout
        with waiting("Thinking hard") as over:
            read_until(outer, "Thinking hard")
            show_piece = Pieces(over)
            show_piece("one ")
            first = sys.stdout
            show_piece("two")
            seen = read_until(outer, "two")

    assert (True, True) == (stdout is first, seen.endswith("one two"))


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [([], ""), (["one ", "two"], "one two\n"), (["one\n"], "one\n"), (["one\n", ""], "one\n"), (["one", ""], "one\n")],
)
def test_the_line_of_an_answer_is_ended_once(capsys, pieces, expected):
    """An open line of an answer ends once, also where an error ends the answer."""

    def show_all():
        with ended(lambda: None) as show_piece:
            for each in pieces:
                show_piece(each)
            raise LookupError

    with pytest.raises(LookupError):
        show_all()
    assert expected == capsys.readouterr().out


@pytest.mark.parametrize(("err", "expected"), [(False, Unwritable), (True, None)])
def test_a_stream_that_cannot_be_written(monkeypatch, err, expected):
    """A stdout that cannot be written raises `Unwritable`; a stderr that cannot be written raises nothing."""
    raised = None
    with Path("/dev/full").open("wb", buffering=0) as full:
        stream = io.TextIOWrapper(full, write_through=True)
        monkeypatch.setattr(sys, "stderr" if err else "stdout", stream)
        try:
            show("x", err=err)
        except Unwritable as error:
            raised = type(error)
        monkeypatch.undo()
        with contextlib.suppress(OSError):
            stream.detach()

    assert expected is raised
