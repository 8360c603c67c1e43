"""Read-only copies of plain data."""

import json
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hostspecs import freeze, thaw
from beaver_hostspecs.freezing import members, texts

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(plain)
def test_thawing_gives_back_what_was_frozen(value):
    """Plain data survives the round trip unchanged, and can be written as JSON again."""
    assert value == thaw(freeze(value))
    assert json.loads(json.dumps(value)) == json.loads(json.dumps(thaw(freeze(value))))


@given(plain)
def test_freezing_twice_changes_nothing(value):
    """Freezing a frozen value returns an equal value."""
    assert freeze(value) == freeze(freeze(value))


def mutable_parts(value):
    if isinstance(value, list | dict | set):
        yield value
    for item in value.values() if isinstance(value, MappingProxyType) else value if isinstance(value, tuple) else ():
        yield from mutable_parts(item)


@given(plain)
def test_nothing_in_it_can_be_changed(value):
    """No list, dict or set is left at any depth."""
    assert [] == list(mutable_parts(freeze(value)))


def test_the_original_can_change_without_the_copy():
    """Changing the original after freezing does not change the copy."""
    original = {"list": [1, {"deep": [2]}], "set": {3}}
    frozen = freeze(original)
    original["list"][1]["deep"].append(4)
    original["set"].add(5)
    original["new"] = 6

    assert {"list": [1, {"deep": [2]}], "set": [3]} == thaw(frozen)


def test_a_frozen_mapping_refuses_changes():
    """Setting and deleting raise."""
    frozen = freeze({"a": 1})

    with pytest.raises(TypeError):
        frozen["a"] = 2
    with pytest.raises(TypeError):
        del frozen["a"]


def test_other_values_are_left_alone():
    """`freeze` and `thaw` return any value that is not plain data as the same object."""
    thing = object()

    assert thing is freeze(thing)
    assert thing is thaw(thing)


def test_members_makes_a_tuple():
    """Anything iterable becomes a tuple of its members."""
    assert (1, 2) == members(iter([1, 2]), int)
    assert ("a", "b") == texts({"a": 1, "b": 2})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("abc", "expected several str, not one str"),
        (["a", 1], "expected str, not int"),
        ([None], "expected str, not NoneType"),
    ],
)
def test_members_refuses_what_does_not_belong(values, expected):
    """A str in place of several, or a member of another type, is refused without showing it."""
    with pytest.raises(TypeError) as caught:
        texts(values)

    assert expected == str(caught.value)
