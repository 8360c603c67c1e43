"""Settings classes: the fields that a plugin's section of the configuration may hold.

A settings class is a frozen, keyword-only attrs class. Each field is made by `setting`, which takes a help
text and validators. The validators here name the accepted values and never the given one, so that no error shows a
value. `None` passes all of them: the type of a field says whether it may be `None`.

    @attrs.frozen(kw_only=True)
    class MottosSettings:
        most_per_turn: int = setting(default=2, help="how many mottos a turn gets", validator=between(1, 10))
        token: Secret | None = setting(default=None, help="the credential of the service")

In the file the keys are camelCase: `mostPerTurn`. A check over several fields goes into
`__attrs_post_init__`, which raises `Unfit`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import attrs

HELP = "beaver_hostspecs.help"
"""The metadata key of a field's help text."""

KEY = "beaver_hostspecs.key"
"""The metadata key of a field's name in the file, where camelCase would not give it."""

KEYWORDS = "beaver_hostspecs.keywords"
"""The metadata key of the JSON Schema keywords that a field's validators stand for."""

Validator = Callable[[Any, Any, Any], object]


class Unfit(ValueError):
    """A setting is not acceptable. The text names the accepted values; it must never hold the given one."""


@attrs.frozen(kw_only=True)
class Check:
    """An attrs validator that refuses without showing the value.

    Attributes:
        wanted: the text of the refusal, for example `must be between 1 and 100`.
        fits: whether a value, never `None`, is acceptable.
        keywords: the same check in JSON Schema keywords, for editors.
    """

    wanted: str
    fits: Callable[[Any], bool]
    keywords: Mapping[str, Any] = MappingProxyType({})

    def __call__(self, _instance: object, _attribute: object, value: object) -> None:
        """Raise `Unfit` unless `value` is `None` or fits."""
        if value is not None and not self.fits(value):
            raise Unfit(self.wanted)


def between(low: float, high: float) -> Check:
    """Return a validator for a number from `low` to `high`, both included."""
    return Check(
        wanted=f"must be between {low} and {high}",
        fits=lambda value: _is_number(value) and low <= value <= high,
        keywords={"minimum": low, "maximum": high},
    )


def at_least(low: float) -> Check:
    """Return a validator for a finite number that is not below `low`."""
    return Check(
        wanted=f"must be at least {low}",
        fits=lambda value: _is_number(value) and value >= low,
        keywords={"minimum": low},
    )


def positive() -> Check:
    """Return a validator for a finite number above 0."""
    return Check(
        wanted="must be a number above 0",
        fits=lambda value: _is_number(value) and value > 0,
        keywords={"exclusiveMinimum": 0},
    )


def not_empty() -> Check:
    """Return a validator for a string, list or mapping that is not empty."""
    return Check(
        wanted="must not be empty",
        fits=lambda value: isinstance(value, Collection) and len(value) > 0,
        keywords={"minLength": 1, "minItems": 1, "minProperties": 1},
    )


def one_of(*values: str | float) -> Check:
    """Return a validator for one of the given strings or numbers; `True` is not 1."""
    return Check(
        wanted=f"must be one of {', '.join(f'`{value}`' for value in values)}",
        fits=lambda value: any(type(value) is type(each) and value == each for each in values),
        keywords={"enum": list(values)},
    )


def distinct() -> Check:
    """Return a validator for a list without repeated values."""
    return Check(
        wanted="must not name anything twice",
        fits=lambda value: isinstance(value, Collection) and _all_differ(list(value)),
        keywords={"uniqueItems": True},
    )


def setting(
    *,
    default: Any = attrs.NOTHING,
    help: str = "",  # noqa: A002 - the word every reader of a settings class looks for
    validator: Validator | Sequence[Validator] = (),
    key: str | None = None,
) -> Any:
    """Return an attrs field of a settings class.

    Args:
        default: the value when the file does not give it, or an `attrs.Factory`; without it the field is
            required.
        help: one line for people; editors show it.
        validator: one or several validators, run in order.
        key: the name in the file, where the camelCase of the field's name is not it.
    """
    validators = list(validator) if isinstance(validator, Sequence) else [validator]
    keywords = {name: value for each in validators if isinstance(each, Check) for name, value in each.keywords.items()}
    return attrs.field(
        default=default, validator=validators or None, metadata={HELP: help, KEY: key, KEYWORDS: keywords}
    )


def _is_number(value: object) -> bool:
    # NaN is below nothing, so the comparison refuses it too.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def _all_differ(values: list[Any]) -> bool:
    # Without a set: the items of a list need not be hashable.
    return all(value not in values[:index] for index, value in enumerate(values))
