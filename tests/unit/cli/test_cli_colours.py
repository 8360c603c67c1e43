"""Colours on a terminal: they repeat what a word says, and go where they are wanted."""

import re

import pytest

from beaver_hooks.cli import terminal

GREEN, YELLOW, RED, CYAN, MAGENTA = (f"\x1b[{number}m" for number in (32, 33, 31, 36, 35))
RESET = "\x1b[0m"


@pytest.fixture(autouse=True)
def _a_terminal_with_colours(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def plain(text):
    return re.sub(r"\x1b\[\d+m", "", text)


@pytest.mark.parametrize(
    ("paint", "text", "expected"),
    [
        (terminal.level, "ok       a: ok\n         ok", f"{GREEN}ok{RESET}       a: ok\n         ok"),
        (terminal.level, "problem  a: b\n         -> c", f"{RED}problem{RESET}  a: b\n         -> c"),
        (terminal.level, "warning  a: b", f"{YELLOW}warning{RESET}  a: b"),
        (terminal.state, "curated  ok\n  local  ok\nx  okay", f"curated  {GREEN}ok{RESET}\n  local  ok\nx  okay"),
        (terminal.state, "local  unavailable: why", f"local  {RED}unavailable{RESET}: why"),
        (terminal.listed_state, "x 1.0 (fail-open): degraded", f"x 1.0 (fail-open): {YELLOW}degraded{RESET}"),
        (terminal.role, "user, 2026\n  user, 2026", f"{CYAN}user{RESET}, 2026\n  user, 2026"),
        (terminal.role, "hidden, 2026: x", f"{MAGENTA}hidden{RESET}, 2026: x"),
        (terminal.hit_role, "s-1  assistant, 2026\n  user", f"s-1  {GREEN}assistant{RESET}, 2026\n  user"),
        (terminal.whole("red"), "a\n\nb", f"{RED}a{RESET}\n\n{RED}b{RESET}"),
    ],
)
def test_words_are_coloured_where_they_are_ours(paint, text, expected):
    """The word that says it is coloured at its own place only: indented text is a person's or a plugin's."""
    assert (expected, text) == (paint(text), plain(paint(text)))


@pytest.mark.parametrize(
    ("variables", "expected"),
    [({}, True), ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), (None, False)],
)
def test_colour_goes_where_it_is_wanted(cli, configured, monkeypatch, variables, expected):
    """Each command colours states and roles on a terminal, unless NO_COLOR is set; the words are the same without."""
    terminal = variables is not None
    for name, value in (variables or {}).items():
        monkeypatch.setenv(name, value)
    configured()
    cli("run", "remember that I like tea", "--session", "s")
    coloured = {
        "check": f"{GREEN}ok{RESET}       memory mode: curated",
        "doctor": f"{GREEN}ok{RESET}       sessions:",
        "plugins": f"(fail-closed): {GREEN}ok{RESET}",
        "memory": f"curated  {GREEN}ok{RESET}",
        "sessions show s": f"{CYAN}user{RESET}, 20",
        "sessions search tea": f"  {CYAN}user{RESET}, 20",
    }
    shown = {words: cli(*words.split(), terminal=terminal).out for words in coloured}

    assert dict.fromkeys(coloured, expected) == {words: text in shown[words] for words, text in coloured.items()}
    assert dict.fromkeys(coloured, True) == {
        words: plain(text) in plain(shown[words]) for words, text in coloured.items()
    }
    assert expected == any("\x1b" in text for text in shown.values())
