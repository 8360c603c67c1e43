"""The features that the recall gate takes from a prompt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks_local.recall.prompt_features import PromptFeatures, read


@pytest.mark.parametrize(
    "prompt",
    [
        "ok",
        "OK!",
        "Thanks.",
        "thank you",
        "yes please",
        "Thank you very much!",
        "ok great, thanks a lot",
        "Cool, sounds good.",
        "Great, that worked",
        "👍 great",
        "Ja, genau.",
        "danke",
        "好的",
        "谢谢",
        "merci",
        "sí",
        "はい",
    ],
)
def test_acknowledgements(prompt):
    """Yes, no and thanks in several languages are acknowledgements."""
    assert read(prompt).acknowledges


@pytest.mark.parametrize(
    "prompt",
    [
        "ok?",
        "yes, but use the branch stable",
        "continue",
        "no tests yet",
        "thanks, now deploy it",
        "",
        "👍",
        "ok " * 7,
        "that",
        "so much",
        "all tests",
    ],
)
def test_other_short_prompts(prompt):
    """Questions, orders, longer replies and prompts without a word are no acknowledgements."""
    assert not read(prompt).acknowledges


@pytest.mark.parametrize(
    "prompt",
    [
        "Continue the previous task.",
        "Do it like last time.",
        "Same as before, please.",
        "Do you remember the name of the branch?",
        "What did we decide about the database?",
        "Where we left off?",
        "Where did we leave off",
        "What were we doing?",
        "The bug from the other day is back.",
        "Mach weiter mit dem Umbau.",
        "So wie beim letzten Mal.",
        "Erinnerst du dich an den Namen?",
        "Was haben wir gestern besprochen?",
        "继续上次的任务",
        "你还记得吗",
        "Comme la dernière fois.",
        "¿Recuerdas el nombre?",
    ],
)
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
