"""An answer on a terminal: blocks of Markdown, shown as they are complete, of which nothing is lost."""

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.cli.chat import MarkdownPieces, rendered, whole_blocks


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("one", ""),
        ("one\n\n", ""),
        ("one\n\nt", "one\n\n"),
        ("one\ntwo\n\nthree\n\nfour", "one\ntwo\n\nthree\n\n"),
        ("1. one\n\n   still one", ""),
        ("```\na\n\nb\n", ""),
        ("```\na\n\nb\n```\n\nc", "```\na\n\nb\n```\n\n"),
        ("~~~\n```\n\na\n", ""),
        ("````\n```\n\na\n````\n\nb", "````\n```\n\na\n````\n\n"),
        ("```\n``` no end\n\na", ""),
    ],
)
def test_blocks(text, done):
    """A block is over where another one begins behind a blank line; a list goes on indented, code until its fence."""
    assert (done, text.removeprefix(done)) == whole_blocks(text)


@given(st.lists(st.text(alphabet="a`~ \n-1.", max_size=8)))
def test_nothing_of_an_answer_is_lost(pieces):
    """However an answer is cut into pieces, its blocks together are the answer."""
    done, rest = "", ""
    for piece in pieces:
        more, rest = whole_blocks(rest + piece)
        done += more

    assert "".join(pieces) == done + rest


def test_blocks_are_shown_while_the_answer_arrives(capsys):
    """A block is shown when the next one begins, with a blank line between; the waiting is over with the first."""
    over = []
    pieces = MarkdownPieces(lambda: over.append(True))
    seen = []
    for piece in ("one", "\n", "\n", "tw", "o\n\n", "three"):
        pieces(piece)
        seen.append((plain(capsys.readouterr().out).split(), len(over)))
    pieces.end()
    last = plain(capsys.readouterr().out)
    pieces.end()

    assert [([], 0)] * 3 + [(["one"], 1), ([], 1), (["two"], 2)] == seen
    assert ("\nthree", "") == (last.rstrip(), capsys.readouterr().out)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("**bold** and `code`", "bold and code"),
        ("a <b>tag</b> stays", "a <b>tag</b> stays"),
        ("<div>\nhidden?\n</div>", "<div> hidden? </div>"),
        ("[here](https://example.org/x)", "here (https://example.org/x)"),
        ("a \x1b[31mtrick\x1b]0;title\x07", "a [31mtrick]0;title"),
    ],
)
def test_rendering(text, shown):
    """Markup is shown as what it means; HTML is text, links say where they lead, and nothing harms the terminal."""
    assert shown == " ".join(plain(rendered(text)).split())


def test_no_colour_is_no_reason_for_raw_markdown(monkeypatch):
    """With NO_COLOR Markdown is rendered in bold and plain."""
    monkeypatch.setenv("NO_COLOR", "1")

    assert "\x1b[1mbold\x1b[0m" == rendered("**bold**").rstrip()


def test_only_rendering_imports_what_renders():
    """A chat in which nothing is rendered does not pay for it."""
    code = "import sys; import beaver_hooks.cli.chat; sys.exit('rich.markdown' in sys.modules)"

    assert 0 == subprocess.run([sys.executable, "-c", code], check=False).returncode
