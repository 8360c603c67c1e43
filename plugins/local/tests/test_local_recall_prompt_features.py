"""The features that the recall gate takes from a prompt."""

from pathlib import Path

import pytest
from case_files import rows
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks_local.recall.prompt_features import PromptFeatures, read

DATA = Path(__file__).with_name("data")


@pytest.mark.shows("003-064")
@pytest.mark.parametrize("prompt", rows(DATA / "acknowledgements.jsonl", "prompt"))
def test_acknowledgements(prompt):
    """Yes, no and thanks in several languages are acknowledgements."""
    assert read(prompt).acknowledges


@pytest.mark.parametrize("prompt", rows(DATA / "short_prompts.jsonl", "prompt"))
def test_other_short_prompts(prompt):
    """Questions, orders, longer replies and prompts without a word are no acknowledgements."""
    assert not read(prompt).acknowledges


@pytest.mark.shows("003-062")
@pytest.mark.parametrize("prompt", rows(DATA / "earlier_work.jsonl", "prompt"))
def test_earlier_work(prompt):
    """Prompts that speak of earlier work are recognised in several languages."""
    assert read(prompt).refers_back


@pytest.mark.parametrize("prompt", ["Check it before you commit.", "Write a test.", "Was ist das?", "写一个测试"])
def test_no_earlier_work(prompt):
    """Prompts that merely contain such a word do not refer to earlier work."""
    assert not read(prompt).refers_back


@pytest.mark.parametrize("prompt", ["", " \t\n", "...", "👍", "?!", "\u200b", "___"])
def test_wordless(prompt):
    """A prompt without a letter or a digit is wordless."""
    assert read(prompt).wordless


def test_fingerprint():
    """Case and blanks do not change the fingerprint of a question, and a word does."""
    one, same, other = (read(each).fingerprint for each in ("Which  Branch?", "which branch?\n", "which tag?"))

    assert (True, False) == (one == same, one == other)


def test_what_is_handed_on():
    """Terms and the cause of the turn are passed on unchanged."""
    said = read("Deploy it.", frozenset({1, 2}), by_tool=True)

    assert PromptFeatures(fingerprint=said.fingerprint, terms=frozenset({1, 2}), by_tool=True) == said


@given(st.text(alphabet=st.characters(), max_size=300))
def test_any_text(prompt):
    """Any text has features, lone surrogates included, and the same ones each time."""
    assert read(prompt) == read(prompt)
