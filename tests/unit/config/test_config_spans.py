"""Edits of the text of a configuration: the wanted object, and not a byte elsewhere."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.config.spans import find, set_value, unset_value, value_at

INDENTED = """{
  "memory": {
    "mode": "curated"
  },
  "plugins": { "disabled": ["a"] }
}
"""


@pytest.mark.parametrize(
    ("text", "path", "value", "expected"),
    [
        ('{"a":1}', "a", 2, '{"a":2}'),
        ('{"a":1}', "b", 2, '{"a":1,"b":2}'),
        ('{"a": 1}', "b", 2, '{"a": 1, "b": 2}'),
        ('{ "a": 1 }', "b", 2, '{ "a": 1, "b": 2 }'),
        ('{"a" : 1,   "b" : 2}', "c", 3, '{"a" : 1,   "b" : 2,   "c" : 3}'),
        ('{"a": {"x":  1}, "b": 2}', "a.x", {"y": 1}, '{"a": {"x":  {"y": 1}}, "b": 2}'),
        ('{"a": null}', "a.b", 1, '{"a": {"b": 1}}'),
        ("{}", "a", 1, '{"a": 1}'),
        (" { } ", "a", 1, ' {"a": 1} '),
        ("{}\n", "a.b", [1], '{"a": {"b": [1]}}\n'),
        ('{"a":{}}', "a.b", "\u00e9\n", '{"a":{"b":"\u00e9\\n"}}'),
        (INDENTED, "memory.mode", "hybrid", INDENTED.replace("curated", "hybrid")),
        (INDENTED, "plugins.disabled", ["a", "b"], INDENTED.replace('["a"]', '["a", "b"]')),
        (
            INDENTED,
            "memory.local.enabled",
            True,
            INDENTED.replace('"curated"\n', '"curated",\n    "local": {\n      "enabled": true\n    }\n'),
        ),
        (
            INDENTED,
            "agent.skills",
            ["x"],
            INDENTED.replace('["a"] }\n', '["a"] },\n  "agent": {\n    "skills": [\n      "x"\n    ]\n  }\n'),
        ),
        ('{\n  "a": {}\n}', "a.b", 1, '{\n  "a": {\n    "b": 1\n  }\n}'),
        ('{\n\t"a": 1\n}', "b", {"c": 1}, '{\n\t"a": 1,\n\t"b": {\n\t\t"c": 1\n\t}\n}'),
        ('{\r\n    "a": 1\r\n}\r\n', "b.c", 1, '{\r\n    "a": 1,\r\n    "b": {\r\n        "c": 1\r\n    }\r\n}\r\n'),
        ('{\n  "a": [\n    1\n  ]\n}', "a", [1, 2], '{\n  "a": [\n    1,\n    2\n  ]\n}'),
        ('{\n  "a": 1\n}', "b", [1, 2], '{\n  "a": 1,\n  "b": [1, 2]\n}'),
        ('{\n  "a": 1\n  ,"b": 2\n}', "c", 3, '{\n  "a": 1\n  ,"b": 2,"c": 3\n}'),
    ],
)
def test_set(text, path, value, expected):
    """A value is replaced in its place, and a new one is written as those beside it are."""
    assert set_value(text, path.split("."), value) == expected


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ('{"a": 1}', "a", "{}"),
        ('{"a": 1, "b": 2}', "a", '{"b": 2}'),
        ('{"a": 1, "b": 2}', "b", '{"a": 1}'),
        ('{"a": 1 , "b": 2 ,"c": 3}', "b", '{"a": 1 , "c": 3}'),
        (INDENTED, "memory.mode", INDENTED.replace('{\n    "mode": "curated"\n  }', "{}")),
        (INDENTED, "plugins", '{\n  "memory": {\n    "mode": "curated"\n  }\n}\n'),
        (INDENTED, "memory", '{\n  "plugins": { "disabled": ["a"] }\n}\n'),
    ],
)
def test_unset(text, path, expected):
    """A member goes with its comma and its line."""
    assert unset_value(text, path.split(".")) == expected


# --- Any text -----------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["a", "b", "c", "d e", '"', "\\", "\u00e9", "", "{", ",", ":"]) | st.text(max_size=4)
SCALARS = st.none() | st.booleans() | st.integers(-9, 99) | st.floats(allow_nan=False, allow_infinity=False) | KEYS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
BLANKS = st.sampled_from(["", "", " ", "  ", "\n", "\n  ", "\r\n\t", "\t", " \n \n  "])


@st.composite
def texts(draw) -> tuple[str, dict[str, Any]]:
    """Return an object, and JSON of it in any formatting."""
    raw = draw(OBJECTS)
    if draw(st.booleans()):
        indent = draw(st.sampled_from([None, 1, 2, 4, "\t"]))
        text = json.dumps(raw, indent=indent, ensure_ascii=draw(st.booleans()))
        return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"]))), raw
    return _blank(draw) + _any_text(draw, raw) + _blank(draw), raw


def _blank(draw) -> str:
    return draw(BLANKS)


def _any_text(draw, value: Any) -> str:
    if isinstance(value, dict):
        members = [
            f"{_blank(draw)}{json.dumps(key)}{_blank(draw)}:{_blank(draw)}{_any_text(draw, each)}{_blank(draw)}"
            for key, each in value.items()
        ]
        return "{" + (",".join(members) or _blank(draw)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_blank(draw) + _any_text(draw, each) + _blank(draw) for each in value) + "]"
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


def paths_in(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    inside = value.items() if isinstance(value, dict) else ()
    return [path, *(each for key, inner in inside for each in paths_in(inner, (*path, key)))]


def with_value(raw: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    made = copy.deepcopy(raw)
    holder = made
    for key in path[:-1]:
        if not isinstance(holder.get(key), dict):
            holder[key] = {}
        holder = holder[key]
    holder[path[-1]] = value
    return made


def same(one: Any, other: Any) -> bool:
    return json.dumps(one) == json.dumps(other)


@given(texts(), st.data())
def test_setting_what_is_there(given_text, data):
    """Setting an existing path changes only the bytes of its value, whatever the formatting."""
    text, raw = given_text
    path = data.draw(st.sampled_from(paths_in(raw)))
    if not path:
        return
    value = data.draw(VALUES)
    span, missing = find(text, path)
    edited = set_value(text, path, value)

    assert (missing, same(value_at(raw, path), json.loads(text[span.start : span.end]))) == ((), True)
    assert same(with_value(raw, path, value), json.loads(edited))
    assert (edited[: span.start], edited[len(edited) - (len(text) - span.end) :]) == (
        text[: span.start],
        text[span.end :],
    )


@given(texts(), st.lists(KEYS, min_size=1, max_size=3), st.data())
def test_setting_anything(given_text, added, data):
    """Setting a missing path makes it, also in place of a value that is no object; bytes outside of the object stay."""
    text, raw = given_text
    path = (*data.draw(st.sampled_from(paths_in(raw))), *added)
    value = data.draw(VALUES)
    span, _ = find(text, path)
    edited = set_value(text, path, value)

    assert same(with_value(raw, path, value), json.loads(edited))
    assert (edited[: span.start], edited[len(edited) - (len(text) - span.end) :]) == (
        text[: span.start],
        text[span.end :],
    )


@given(texts(), st.data())
def test_unsetting(given_text, data):
    """Unsetting removes one member and keeps all others in their order and formatting."""
    text, raw = given_text
    path = data.draw(st.sampled_from(paths_in(raw)))
    if not path:
        return
    wanted = copy.deepcopy(raw)
    del value_at(wanted, path[:-1])[path[-1]]
    holder, _ = find(text, path[:-1])
    others = [text[each.start : each.value.end] for each in holder.members if each.key != path[-1]]
    edited = unset_value(text, path)

    assert same(wanted, json.loads(edited))
    after, _ = find(edited, path[:-1])
    assert others == [edited[each.start : each.value.end] for each in after.members]
    assert (edited[: holder.start], edited[after.end :]) == (text[: holder.start], text[holder.end :])


@given(texts(), KEYS, VALUES)
def test_setting_and_unsetting_is_nothing(given_text, key, value):
    """A new key that is unset again leaves the very text, where the object had a key before."""
    text, raw = given_text
    if raw and key not in raw:
        assert text == unset_value(set_value(text, [key], value), [key])


def test_nothing_there():
    """A missing path is a `KeyError`, also below a value that is no object."""
    for path in (["b"], ["a", "b"]):
        with pytest.raises(KeyError):
            value_at({"a": 1}, path)
