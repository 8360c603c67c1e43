"""Arguments of models are checked against the schemas, and errors do not repeat them."""

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks_local.tools.schemas import DESCRIPTIONS, SCHEMAS, ArgumentError, checked

NAMES = sorted(SCHEMAS)


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("memory_search", "after as_of before file limit max_tokens people query stores types"),
        ("memory_timeline", "after anchor before"),
        ("memory_get", "ids"),
        (
            "memory_write",
            "expires facts narrative related_files related_people session_key source store supersedes tags title token_count type",
        ),
        ("memory_history", "observation_id"),
        ("memory_people", "query"),
        ("memory_sessions", "limit"),
    ],
)
def test_argument_sets(tool, expected):
    """Each tool accepts its known arguments and refuses others."""
    schema = SCHEMAS[tool]

    assert expected.split() == sorted(schema["properties"])
    assert (False, True) == (schema["additionalProperties"], bool(DESCRIPTIONS[tool]))
    with pytest.raises(ArgumentError, match=r"unknown arguments \(1\); the arguments are: "):
        checked({"no_such": "Canary"}, schema)


@pytest.mark.parametrize("tool", NAMES)
def test_schemas(tool):
    """Each schema is a valid JSON Schema."""
    jsonschema.Draft202012Validator.check_schema(dict(SCHEMAS[tool]))


@pytest.mark.parametrize(
    ("tool", "arguments", "problem"),
    [
        ("memory_get", {}, "`ids` is missing."),
        ("memory_get", {"ids": None}, "`ids` is missing."),
        ("memory_get", {"ids": []}, "`ids` must have 1 to 20 entries."),
        ("memory_get", {"ids": [1] * 21}, "`ids` must have 1 to 20 entries."),
        ("memory_get", {"ids": "12"}, "`ids` must be a list."),
        ("memory_get", {"ids": [0]}, "each entry of `ids` must be from 1 to 9223372036854775807."),
        ("memory_get", {"ids": [True]}, "each entry of `ids` must be a whole number."),
        ("memory_search", {"limit": 51}, "`limit` must be from 1 to 50."),
        ("memory_search", {"limit": float("nan")}, "`limit` must be a whole number."),
        ("memory_search", {"stores": ["secret"]}, "each entry of `stores` must be one of: private, shared, social."),
        ("memory_search", {"query": 1}, "`query` must be a text."),
        ("memory_timeline", {"anchor": 1, "before": 21}, "`before` must be from 0 to 20."),
        ("memory_write", {"title": ""}, "`title` must have 1 to 1000 characters."),
        ("memory_sessions", {"limit": 0}, "`limit` must be from 1 to 50."),
        *(
            (
                "memory_search",
                {"after": value},
                "`after` must be an ISO date such as 2026-11-18 or 2026-11-18T09:30:00Z.",
            )
            for value in ("yesterday", "20261118", "2026-13-01", "2026-11-18T25:00", "0001-01-01T00:00+14:00")
        ),
        ("memory_search", {"after": 1794000000000}, "`after` must be a text."),
    ],
)
def test_refused(tool, arguments, problem):
    """A wrong argument raises an error that names the argument and the accepted values."""
    with pytest.raises(ArgumentError) as caught:
        checked(arguments, SCHEMAS[tool])

    assert problem == str(caught.value)


def test_taken():
    """Accepted arguments lose `None`, turn `3.0` into a whole number, and hold texts that can be stored."""
    given = {"query": "a\ud800\0", "limit": 3.0, "stores": ["shared"], "file": None}

    assert {"query": "a\ufffd\ufffd", "limit": 3, "stores": ("shared",)} == checked(given, SCHEMAS["memory_search"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2026-11-18", "2026-11-18T00:00:00+00:00"),
        ("2026-11-18T09:30", "2026-11-18T09:30:00+00:00"),
        ("2026-11-18T09:30:00Z", "2026-11-18T09:30:00+00:00"),
        ("2026-11-18 09:30:00+02:00", "2026-11-18T07:30:00+00:00"),
    ],
)
def test_dates(given, expected):
    """A model gives ISO dates, with a time or without; they are UTC unless they say otherwise."""
    assert expected == checked({"before": given}, SCHEMAS["memory_search"])["before"].isoformat()


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(NAMES), st.data())
def test_it_agrees_with_json_schema(tool, data):
    """The checker accepts exactly the arguments that are valid by the JSON Schema."""
    names = [*SCHEMAS[tool]["properties"], "other"]
    given = data.draw(st.dictionaries(st.sampled_from(names), values, max_size=4))
    given = {name: value for name, value in given.items() if value is not None}
    valid = jsonschema.Draft202012Validator(dict(SCHEMAS[tool])).is_valid(given)
    try:
        checked(given, SCHEMAS[tool])
    except ArgumentError:
        assert not valid
    else:
        assert valid
