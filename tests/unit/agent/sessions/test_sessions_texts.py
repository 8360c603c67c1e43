"""How texts and ids enter the database and come back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.agent.errors import SessionError
from beaver_hooks.agent.sessions.texts import checked_id, decode, encode, kept, opening, title_of
from beaver_hostspecs import Message


@given(st.text(st.characters()))
def test_every_text_comes_back(text):
    """Any text survives encoding and decoding."""
    assert text == decode(encode(text))


def test_bytes_that_are_none_of_ours():
    """Decoding shows bytes that are no UTF-8 as escapes and raises nothing."""
    assert "a\\xff" == decode(b"a\xff")


@pytest.mark.parametrize("bad", ["", "x" * 513, "a\nb", "a\0", "\ud800", 7, None])
def test_ids_that_are_refused(bad):
    """An id that no terminal or database should be sent is refused with the rule."""
    with pytest.raises(SessionError) as caught:
        checked_id(bad)

    assert "A session id is a text of 1 to 512 characters without control characters; use another one." == str(
        caught.value
    )


@pytest.mark.parametrize("good", ["x" * 512, " ", "../../etc/passwd", "':--", "会议"])
def test_ids_that_are_used_as_they_are(good):
    """Any other text is accepted as an id unchanged."""
    assert good == checked_id(good)


def test_what_stays_of_a_turn():
    """The store keeps the user's messages and the last answer, and drops tool rounds and system messages."""
    said = [
        Message(role="system", text="rules"),
        Message(role="user", text="ask"),
        Message(role="assistant", text="done"),
        Message(role="tool", text="output"),
        Message(role="assistant", text="done"),
    ]

    assert [said[1], said[4]] == kept(said)
    assert [said[1]] == kept(said[:2])


@pytest.mark.parametrize(
    ("texts", "expected"),
    [([" \n", "\0two  words\ud800"], "\ufffdtwo words\ufffd"), (["x" * 81], "x" * 79 + "…"), ([" "], None), ([], None)],
)
def test_the_first_words(texts, expected):
    """A session is called by the first words of its first prompt that has any."""
    assert expected == opening([Message(role="user", text=text) for text in texts])
    assert "" == title_of("  ")
