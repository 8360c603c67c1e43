"""The validators of settings classes refuse without showing what they got."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hostspecs.settings import (
    HELP,
    KEY,
    KEYWORDS,
    Check,
    Unfit,
    at_least,
    between,
    distinct,
    not_empty,
    one_of,
    positive,
    setting,
)

NAN, INFINITY, HUGE = float("nan"), float("inf"), 10**400


def verdict(check: Check, value: object) -> str | None:
    try:
        check(None, None, value)
    except Unfit as unfit:
        return str(unfit)
    return None


@pytest.mark.parametrize(
    ("check", "good", "bad", "wanted"),
    [
        (
            between(1, 100),
            [1, 100, 1.5, None],
            [0, 101, NAN, INFINITY, True, "5"],
            "must be between 1 and 100",
        ),
        (at_least(0), [0, 0.5, HUGE, None], [-1, NAN, INFINITY, True, "5"], "must be at least 0"),
        (positive(), [0.001, 1, HUGE, None], [0, -1, NAN, INFINITY, True, "5"], "must be a number above 0"),
        (not_empty(), ["a", (1,), {"a": 1}, None], ["", (), {}, 5], "must not be empty"),
        (one_of("a", 1), ["a", 1, None], ["b", True, 1.0, []], "must be one of `a`, `1`"),
        (distinct(), [(), (1, 2), ([1], [2]), None], [(1, 1), ([1], [1]), 5], "must not name anything twice"),
    ],
)
def test_check(check, good, bad, wanted):
    """A check takes what fits and `None`, and says of everything else what it wants."""
    assert [verdict(check, value) for value in good] == [None] * len(good)
    assert [verdict(check, value) for value in bad] == [wanted] * len(bad)


@given(st.text(min_size=12, alphabet="xyz"))
def test_no_check_shows_the_value(value):
    """The refusal of a string says nothing of it."""
    refusals = [verdict(each, value) for each in (between(1, 2), at_least(1), positive(), one_of("a"))]

    assert [refusal is not None and value not in refusal for refusal in refusals] == [True] * 4


def test_setting_keeps_what_editors_show():
    """Help, key and the keywords of every check are in the field's metadata, and the checks run in order."""

    @attrs.frozen(kw_only=True)
    class Settings:
        names: tuple[str, ...] = setting(
            default=(), help="some names", validator=[not_empty(), distinct()], key="$names"
        )
        plain: int = setting()
        foreign: int = setting(default=1, validator=attrs.validators.gt(0))

    fields = attrs.fields(Settings)

    assert dict(fields.names.metadata) == {
        HELP: "some names",
        KEY: "$names",
        KEYWORDS: {"minLength": 1, "minItems": 1, "minProperties": 1, "uniqueItems": True},
    }
    assert (fields.plain.default, fields.plain.validator) == (attrs.NOTHING, None)
    assert dict(fields.foreign.metadata)[KEYWORDS] == {}
    with pytest.raises(Unfit) as caught:
        Settings(names=("a", "a"), plain=1)
    assert str(caught.value) == "must not name anything twice"
