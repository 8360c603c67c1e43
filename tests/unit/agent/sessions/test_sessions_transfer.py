"""Sessions as JSON lines."""

import contextlib
import json
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.agent.errors import SessionError
from beaver_hooks.agent.sessions.records import Session, SessionInfo
from beaver_hooks.agent.sessions.transfer import read_lines, session_lines

TIME = "2026-01-01T00:00:00+00:00"
SESSION = {"type": "session", "id": "a", "created": TIME, "updated": TIME}
MESSAGE = {"type": "message", "role": "user", "text": "t", "when": TIME}
EVENT = {"type": "event", "name": "n", "when": TIME, "payload": {}}


@pytest.mark.parametrize(
    "bad",
    [
        "{",
        "[]",
        "7",
        "null",
        "[" * 100_000,
        '{"type": NaN}',
        "{}",
        json.dumps({"type": "other"}),
        json.dumps(SESSION),
        *[
            json.dumps({**SESSION, "id": "b", **wrong})
            for wrong in ({"id": 7}, {"user": ""}, {"title": 7}, {"created": "x"})
        ],
        *[
            json.dumps({**MESSAGE, **wrong})
            for wrong in ({"role": "tool"}, {"text": 7}, {"when": "2026-01-01"}, {"id": 7})
        ],
        *[json.dumps({**EVENT, **wrong}) for wrong in ({"payload": []}, {"name": 7}, {"when": None})],
    ],
)
def test_bad_lines(bad):
    """A line that is none of ours is named."""
    with pytest.raises(SessionError) as caught:
        read_lines([json.dumps(SESSION), bad])

    assert "Line 2 is not a line of an exported session; nothing was imported. Correct or remove the line." == str(
        caught.value
    )


def test_a_session_does_not_say_whether_memory_is_off():
    """That is the host's to keep: the line says what the session is, and nothing of the switch."""
    when = datetime.fromisoformat(TIME)
    (line,) = session_lines(Session(info=SessionInfo(id="a", created=when, updated=when)))

    # A session without a title has an empty one.
    assert {**SESSION, "title": ""} == json.loads(line)


def test_a_message_before_any_session():
    """It belongs nowhere, and is refused."""
    with pytest.raises(SessionError, match=r"^Line 1 "):
        read_lines([json.dumps(MESSAGE)])


@given(st.lists(st.one_of(st.text(), st.sampled_from([SESSION, MESSAGE, EVENT]).map(json.dumps))))
def test_only_one_error_gets_out(lines):
    """Whatever the lines are, they are read or refused with a sentence."""
    with contextlib.suppress(SessionError):
        assert {session.id for session in read_lines(lines)} <= {"a"}
