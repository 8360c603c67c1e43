"""JSON is read more strictly than the standard library reads it."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.agent.providers.strict_json import InvalidJson, loads

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(plain)
def test_plain_data_comes_back(value):
    """What is strict JSON is read as it was written, from text and from bytes."""
    text = json.dumps(value)

    assert value == loads(text) == loads(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "NaN",
        "[-Infinity]",
        "1e999",
        '{"a": 1, "a": 2}',
        '{"b": [{"a": 1, "a": 1}]}',
        "1" * 101,
        "[" * 100_000,
        '{"a":' * 100_000,
        b"\xff",
        '{"a": 1}'.encode("utf-16"),
    ],
)
def test_what_is_refused(text):
    """Broken, ambiguous, absurd or bottomless text is refused, and nothing of it is chained to the error."""
    with pytest.raises(InvalidJson) as caught:
        loads(text)

    assert ("not strict JSON", None, None) == (str(caught.value), caught.value.__cause__, caught.value.__context__)


@given(st.text() | st.binary())
def test_no_other_error(text):
    """Whatever the text, it is a value or this error."""
    with contextlib.suppress(InvalidJson):
        json.dumps(loads(text), allow_nan=False)
