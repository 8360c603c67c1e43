import enum
from dataclasses import dataclass, field
from datetime import date
from types import MappingProxyType

import pytest

from beaver_hooks.adapters.adapter_turn import text_of


@dataclass
class Data:
    raw: object = b"\xff"
    more: object = field(default_factory=dict)


class Model:
    """Looks as a model of pydantic does."""

    def model_dump(self):
        return {"when": date(2026, 1, 2), "raw": b"\xff\xfe"}


class Silent:
    def __str__(self):
        raise RuntimeError("no text")


class Broken(Silent):
    def model_dump(self):
        raise RuntimeError("no data")


class Color(enum.Enum):
    RED = "red"


RING = []
RING.append(RING)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is\ud800", "as it is\ud800"),
        (None, ""),
        (True, "true"),
        (float("nan"), "NaN"),
        ({"a": [1, (2,)]}, '{"a":[1,[2]]}'),
        (MappingProxyType({"ö": 1}), '{"ö":1}'),
        ({3, 1}, "[1,3]"),
        (Color.RED, "red"),
        (b"\xff\xfe", "[2 bytes]"),
        (Data(), '{"raw":"[1 bytes]","more":{}}'),
        (Model(), '{"when":"2026-01-02","raw":"[2 bytes]"}'),
        ([Silent()], '["[Silent]"]'),
        (Silent(), "[Silent]"),
        (Broken(), "[Broken]"),
        ({(1, 2): 3}, "{(1, 2): 3}"),
        (RING, "[[...]]"),
        (Data, str(Data)),
        (ValueError("why"), "why"),
    ],
)
def test_a_value_as_text(value, text):
    """Whatever a framework hands around has a text, and none of it raises."""
    assert text == text_of(value)


def test_an_iterator_is_not_consumed():
    """It is the framework's, which is about to read it."""
    numbers = iter([1, 2])
    text_of(numbers)
    text_of({"numbers": numbers})

    assert [1, 2] == list(numbers)
