"""Whatever is given to the trail becomes short, plain, scrubbed text."""

import json
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.audit.sanitiser import attempt, body_text, column, facts_text, optional_column, short, stamp
from beaver_hostspecs import Personal, Secret

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None))
    | st.binary()
    | st.datetimes(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec=None)), inner, max_size=4),
    max_leaves=12,
)


class Kind(StrEnum):
    STORED = "stored"

    def __str__(self):
        return "something else"


def identify(value):
    return f"h:{value}"


@given(st.dictionaries(st.text(st.characters(codec=None)) | st.integers(), anything))
def test_facts_always_become_json(facts):
    """Any facts become strict, flat ASCII JSON."""
    text = facts_text(facts, identify)

    assert text.isascii()
    for value in json.loads(text, parse_constant=pytest.fail).values():
        assert isinstance(value, str | int | float | bool | list | None)


@given(anything)
def test_bodies_always_become_json(body):
    """No body breaks the text."""
    assert body_text(body) == json.dumps(
        json.loads(body_text(body), parse_constant=pytest.fail), sort_keys=True, separators=(",", ":")
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", "text"),
        (Kind.STORED, "stored"),
        (1, 1),
        (True, True),
        (None, None),
        (1.5, 1.5),
        (float("nan"), "float"),
        (float("-inf"), "float"),
        (2**63, "int"),
        (HTTPStatus.OK, 200),
        (-(2**63), -(2**63)),
        (b"bytes", "bytes"),
        (Secret("canary-facts-1"), "Secret"),
        ({"nested": 1}, "dict"),
        ([1, "a", [2]], [1, "a", "list"]),
        ((1, None), [1, None]),
        ("x" * 501, "x" * 497 + "..."),
        ("x" * 500, "x" * 500),
        ([0] * 1002, [*([0] * 1000), "and 2 more"]),
        ("\ud800\0", "\ud800\0"),
    ],
)
def test_facts(value, expected):
    """Facts and lists of facts stay; any other value becomes the name of its type; a cut value says so."""
    assert {"fact": expected} == json.loads(facts_text({"fact": value}, identify))


def test_personal_facts_are_hashed():
    """A personal fact leaves a keyed hash and its length."""
    assert json.loads(facts_text({"user": Personal(value="eve")}, identify)) == {
        "user": "h:eve",
        "user_length": 3,
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": {"b": [1, {"c": None}]}}, {"a": {"b": [1, {"c": None}]}}),
        ({"when": WHEN}, {"when": "2026-01-02T03:04:05.000000+00:00"}),
        ({"ids": {"b", "a"}}, {"ids": ["a", "b"]}),
        ({"ids": ("b", "a")}, {"ids": ["b", "a"]}),
        ({1: object()}, {"int": "object"}),
        ([[[[[[[[[1]]]]]]]]], [[[[[[[["list"]]]]]]]]),
    ],
)
def test_bodies(value, expected):
    """Mappings and lists stay to a depth, sets are sorted, times are UTC."""
    assert expected == json.loads(body_text(value))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain", "plain"),
        ("Biber", "Biber"),
        ("caf\u00e9", "caf\u00e9"),
        ("a\0b", "a\\x00b"),
        ("a\ud800b", "a\\ud800b"),
        (7, "int"),
    ],
)
def test_columns(value, expected):
    """A column holds text that every SQLite tool can show."""
    assert expected == column(value) == optional_column(value)
    assert optional_column(None) is None


def test_secrets_are_masked_before_anything_is_cut():
    """A secret that straddles the cut leaves no half of itself."""
    secret = Secret("canary-straddles-the-cut-0123456789")
    text = "x" * 490 + secret.reveal()

    assert short(text) == "x" * 490 + "[secret]"
    assert "canary" not in facts_text({text: [text]}, identify) + body_text({text: {text: text}}) + column(text)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (WHEN, "2026-01-02T03:04:05.000000+00:00"),
        (WHEN.astimezone(timezone(timedelta(hours=2))), "2026-01-02T03:04:05.000000+00:00"),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=2))), "0001-01-01T00:00:00.000000+00:00"),
        ("yesterday", "str"),
    ],
)
def test_stamps(value, expected):
    """A time is UTC text that sorts; at the ends of the calendar the zone is given up; anything else is named."""
    assert expected == stamp(value)


def test_attempt_contains_everything():
    """An exception of foreign code, even `SystemExit`, becomes the name of its type."""
    assert attempt(lambda: 7) == (7, None)
    assert attempt(exit_now) == (None, "SystemExit")


def exit_now():
    raise SystemExit("with text")
