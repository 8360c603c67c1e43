"""Errors of providers show little, and nothing that must not be shown."""

import json

import pytest

from beaver_hooks.agent.providers.faults import brief, detail_of, fault, from_error, from_status
from beaver_hostspecs import Secret

KEY = "sk-ql-0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("two\nlines\tand \x1b[31mcolour\x07", "two lines and [31mcolour"),
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 197 + "..."),
        ("x" * 10_001, ""),
        (f"key {KEY}!", "key [secret]!"),
        (f"key {KEY[:5]}\u200b{KEY[5:]}", "key [secret]"),
        ("x" * 190 + KEY, "x" * 190 + "[secret]"),
    ],
)
def test_foreign_texts(text, expected):
    """They are on one line, short, and without control characters and credentials."""
    Secret(KEY)

    assert expected == brief(text)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"error": {"message": "No such model."}}', "No such model"),
        (b'{"error": "no such model"}', "no such model"),
        (b'{"error": {"message": 5}}', ""),
        (b'{"error": ["x"]}', ""),
        (b'{"detail": "x"}', ""),
        (b"[]", ""),
        (b"<html>", ""),
        (b"\xff", ""),
    ],
)
def test_details(body, expected):
    """Of a body only the error's own message is shown."""
    assert expected == detail_of(body)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"message": "m", "code": 404}, ("not_found", 404)),
        ({"message": "m", "code": 503}, ("server_error", 503)),
        ({"message": "m", "code": "404"}, ("server_error", None)),
        ({"message": "m", "code": 200}, ("server_error", None)),
        ({"message": "m", "code": True}, ("server_error", None)),
        ("m", ("server_error", None)),
    ],
)
def test_codes(error, expected):
    """A code that is an HTTP status counts as one."""
    found = from_error(error)

    assert expected == (found.category, found.status)


def test_an_error_without_words():
    """An error that says nothing is still a sentence."""
    assert "There is no answer: the provider reports an error. Try again later." == str(from_error({"code": "x"}))


def test_nothing_is_shown_of_a_refused_credential():
    """Providers repeat parts of it."""
    assert json.dumps(KEY) not in str(from_status(401, KEY))
    assert str(from_status(401)) == str(from_status(401, "Incorrect key sk-ql-0***def"))


def test_seconds_are_readable():
    """Whole seconds have no decimals."""
    assert "The provider did not answer within 120 seconds." == str(fault("timeout", 120.0)).partition(" Try")[0]
