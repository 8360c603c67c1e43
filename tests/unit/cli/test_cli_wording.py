"""The text formats of commands."""

import sys
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.cli.terminal import counted, cut, facts_text, filled, moment, table


@pytest.mark.parametrize(
    ("number", "expected"), [(0, "0 sessions"), (1, "1 session"), (2, "2 sessions"), (2000, "2,000 sessions")]
)
def test_counting(number, expected):
    """A count of one takes the singular, and all other counts take the plural."""
    assert expected == counted(number, "session")


def test_moments():
    """Times are shown in UTC, from any time zone."""
    at = datetime(2026, 1, 2, 1, 4, 5, tzinfo=timezone(timedelta(hours=2)))

    assert ("2026-01-01 23:04:05", "2026-01-01 23:04") == (moment(at), moment(at, seconds=False))
    assert "2026-01-02 03:04:05" == moment(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))


@pytest.mark.parametrize(
    ("terminal", "last"), [(True, f"{'z' * 17}\n       {'z' * 17}\n       zzzzzz"), (False, "z" * 40)]
)
def test_a_table_is_wrapped_on_a_terminal_and_whole_in_a_pipe(monkeypatch, terminal, last):
    """Columns are aligned, a long cell moves only its own row, and the last column is shown in full."""
    monkeypatch.setenv("COLUMNS", "24")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)

    shown = table([("A", "B"), ("long-name", "x"), ("y", "z" * 40), ("e", "")], widest=5)

    assert f"A      B\nlong-name  x\ny      {last}\ne" == shown


@given(st.text(), st.integers(min_value=1, max_value=100))
def test_cutting(text, width):
    """A cut text fits the width, and a text that fits stays unchanged."""
    shown = cut(text, width)

    assert len(shown) <= width
    assert shown == text or (len(text) > width and shown.endswith("…"))


def test_filled_lines_keep_words_whole():
    """A filled text breaks only between words, and its later lines are indented."""
    assert "one two\n  three-four-five" == filled("one two three-four-five", indent="  ", width=9)


def test_facts():
    """Facts are names with values, and ambiguous values are quoted."""
    facts = {"a": 1, "b": "x", "c": None, "d": "two words", "e": "", "f": [1, "x"], "g": True}

    assert 'a=1 b=x c=null d="two words" e="" f="[1, \\"x\\"]" g=true' == facts_text(facts)
