"""Strict JSON, and files that cannot be read."""

import json
import os
import traceback

import pytest

from beaver_hooks.config import Config, parse_config, read_config
from beaver_hooks.config.parser import parse_json
from beaver_hostspecs import ConfigurationError

CANARY = "canary-zq"


def problem(call, argument) -> str:
    with pytest.raises(ConfigurationError) as caught:
        call(argument)
    assert CANARY not in "".join(traceback.format_exception(caught.value, chain=True))
    assert caught.value.__context__ is None
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", "the configuration is not valid JSON (line 1, column 1)"),
        ('{\n "a": canary-zq}', "the configuration is not valid JSON (line 2, column 7)"),
        ('{"a": "canary-zq', "the configuration is not valid JSON (line 1, column 7)"),
        ('{"a": 1,\n }', "the configuration is not valid JSON (there is a trailing comma, line 1, column 8)"),
        ('{"a": [1, ]}', "the configuration is not valid JSON (there is a trailing comma, line 1, column 9)"),
        ('"canary-zq"', "the configuration must be a JSON object"),
        (b'{"a": "canary-zq\xff"}', "the configuration is not UTF-8 text (byte 17)"),
        ("{}".encode("utf-16"), "the configuration is not UTF-8 text (byte 1)"),
        ('{"host": {"a": 1, "a": "canary-zq"}}', "host.a: is given twice"),
        ('{"a": 1, "a": "canary-zq"}', "a: is given twice"),
        ('{"a": [0, NaN]}', "the configuration holds NaN, which JSON does not have"),
        ('{"a": -Infinity}', "the configuration holds -Infinity, which JSON does not have"),
        ('{"a": 1e999}', "a: must be a finite number of sensible size"),
        ('{"a": %s}' % ("9" * 5000), "a: must be a finite number of sensible size"),
        ('{"a": "canary-zq\\ud800"}', "a: must not contain a lone surrogate"),
        ('{"a": "canary-zq\\u0000"}', "a: must not contain a NUL character"),
        ('{"\\udc00": 1}', "the configuration has a key that must not contain a lone surrogate"),
        (
            '{"a":\n' + "[" * 100_000,
            "the configuration is nested more than 50 levels deep (line 2, column 50)",
        ),
        (" " * 1024 * 1024 + "{}", "the configuration is larger than 1048576 bytes"),
    ],
)
def test_refused(text, expected):
    """The error names the line and column or the path of text that is not strict JSON, and shows none of it."""
    assert problem(parse_json, text) == expected


@pytest.mark.parametrize("text", ["\ufeff{}", b"\xef\xbb\xbf{}", "{}", b" {} "])
def test_byte_order_mark_is_accepted(text):
    """A byte order mark, as some editors write it, changes nothing."""
    assert parse_config(text) == Config()


def test_brackets_in_strings_are_no_nesting():
    """Only brackets outside strings count, escaped quotes included; 50 levels are accepted."""
    text = json.dumps({"a": '["' * 100, "b": "\\", "c": eval("[" * 49 + "]" * 49)})  # noqa: S307

    assert parse_json(text) == json.loads(text)


def test_unclosed_quotes_take_linear_time():
    """A megabyte of escaped quotes is refused at once instead of being scanned from each of them."""
    assert problem(parse_json, '"' + '\\"' * 500_000) == "the configuration is not valid JSON (line 1, column 1)"


def test_read_config(tmp_path):
    """Reading a file equals parsing its text, and keeps the path."""
    path = tmp_path / "config.json"
    path.write_text('{"memory": {"mode": "curated"}}', encoding="utf-8")

    assert read_config(path, environment={}) == parse_config(path.read_bytes())
    assert (read_config(path).source, parse_config("{}").source) == (path, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "the configuration is not valid JSON (line 1, column 2)"),
        ("[]", "the configuration must be a JSON object"),
        ('{"host": {"queueLimit": null}}', "host.queueLimit: must be an integer"),
    ],
)
def test_errors_name_the_file(tmp_path, text, expected):
    """Every error of a file names the file, and has no chained exception."""
    path = tmp_path / "con\x1bfig.json"
    path.write_text(text)

    with pytest.raises(ConfigurationError) as caught:
        read_config(path)

    assert str(caught.value) == f"{expected} (in {tmp_path}/con?fig.json)"
    assert caught.value.path == expected.partition(":")[0] * (":" in expected)
    assert caught.value.__context__ is None


def test_unreadable_files(tmp_path):
    """A missing file, a folder, a pipe and a loop of links each have their own error with a remedy."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")

    start = f"the configuration file {tmp_path}"
    assert problem(read_config, tmp_path / "none") == f"{start}/none does not exist; create it or correct the path"
    assert problem(read_config, tmp_path) == f"{start} is not a regular file; name the JSON file itself"
    assert problem(read_config, tmp_path / "pipe") == (f"{start}/pipe is not a regular file; name the JSON file itself")
    assert problem(read_config, tmp_path / "loop") == (
        f"{start}/loop cannot be read (Too many levels of symbolic links); check its permissions and the path"
    )
    assert problem(read_config, tmp_path / "a\0b") == (
        f"{start}/a?b cannot be read (not a valid path); check its permissions and the path"
    )
