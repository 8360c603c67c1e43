"""From plain JSON data to settings classes."""

import enum
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Optional

import attrs
import pytest

from beaver_hooks.config import structure
from beaver_hostspecs import ConfigurationError, Secret
from beaver_hostspecs.settings import Unfit, between, setting

CANARY = "canary-zq"


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Level(enum.Enum):
    LOW = 1


def refuse_odd(_instance: object, _attribute: object, value: int) -> None:
    if value % 2:
        raise ValueError(f"{value} {CANARY}")


KEYS = (
    "`text`, `count`, `ratio`, `switch`, `colour`, `level`, `choice`, `folder`, `anything`, `inner`, `oldStyle`, `inners`,"
    " `names`, `words`, `kinds`, `bare`, `limits`, `table`, `free`, `token`, `fallback`, `even`, `private`"
)


@attrs.frozen(kw_only=True)
class Inner:
    top_k: int = setting(validator=between(1, 10))
    from_: str = ""


@attrs.frozen(kw_only=True)
class Outer:
    text: str = "t"
    count: int = 1
    ratio: float = 0.5
    switch: bool = True
    colour: Colour = Colour.RED
    level: Level = Level.LOW
    choice: Literal["a", 1] = "a"
    folder: Path = Path()
    anything: Any = None
    inner: Inner | None = None
    old_style: Optional[int] = None  # noqa: UP045
    inners: tuple[Inner, ...] = ()
    names: list[str] = attrs.field(factory=list)
    words: Sequence[str] = ()
    kinds: frozenset[str] = frozenset()
    bare: tuple = ()
    limits: Mapping[str, Inner] = MappingProxyType({})
    table: dict[str, int] = attrs.field(factory=dict)
    free: Mapping = MappingProxyType({})
    token: Secret | None = None
    fallback: Secret = attrs.field(factory=lambda: Secret("x"))
    even: int = attrs.field(default=0, validator=refuse_odd)
    _private: int = 0


def make(value: object, cls: type = Outer, **environment: str) -> Any:
    return structure(cls, value, "memory.gateway", environment=environment)


def problem(value: object, cls: type = Outer, **environment: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        make(value, cls, **environment)
    shown = "".join(traceback.format_exception(caught.value, chain=True))
    assert CANARY not in shown + repr(caught.value) + repr(caught.value.args)
    assert (caught.value.__context__, caught.value.__cause__) == (None, None)
    return str(caught.value).removeprefix("memory.gateway")


def test_defaults():
    """An empty object gives the defaults."""
    assert make({}) == Outer()


def test_everything_that_fits():
    """Each supported annotation takes its JSON counterpart; camelCase names snake_case."""
    value = {
        "text": "x", "count": 2, "ratio": 3, "switch": False, "colour": "blue", "level": 1, "choice": 1,
        "folder": "~/a", "anything": {"a": [1]}, "inner": {"topK": 3, "from": "f"}, "oldStyle": 4,
        "inners": [{"topK": 1}], "names": ["a"], "words": ["b"], "kinds": ["c", "c"], "bare": [1, "a"],
        "limits": {"a": {"topK": 2}}, "table": {"b": 5}, "free": {"c": None}, "token": "secret",
        "fallback": {"env": "TOKEN"}, "even": 2, "private": 7,
    }  # fmt: skip

    made = make(value, TOKEN="from environment")

    assert made == Outer(
        text="x", count=2, ratio=3.0, switch=False, colour=Colour.BLUE, level=Level.LOW, choice=1,
        folder=Path.home() / "a", anything=MappingProxyType({"a": (1,)}), inner=Inner(top_k=3, from_="f"),
        old_style=4, inners=(Inner(top_k=1),), names=["a"], words=("b",), kinds=frozenset("c"), bare=(1, "a"),
        limits=MappingProxyType({"a": Inner(top_k=2)}), table={"b": 5}, free=MappingProxyType({"c": None}),
        token=Secret("secret"), fallback=Secret("from environment"), even=2, private=7,
    )  # fmt: skip
    assert type(made.ratio) is float


@pytest.mark.shows("000-129", "001-099")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (CANARY, ": must be an object"),
        ({"text": 5}, ".text: must be a string"),
        ({"text": {"env": CANARY}}, ".text: must be a string"),
        ({"text": "\0" + CANARY}, ".text: must not contain a NUL character"),
        ({"text": "\ud800" + CANARY}, ".text: must not contain a lone surrogate"),
        ({"count": True}, ".count: must be an integer"),
        ({"count": 1.0}, ".count: must be an integer"),
        ({"count": CANARY}, ".count: must be an integer"),
        ({"count": None}, ".count: must be an integer"),
        ({"ratio": True}, ".ratio: must be a number"),
        ({"ratio": float("nan")}, ".ratio: must be a finite number of sensible size"),
        ({"ratio": float("-inf")}, ".ratio: must be a finite number of sensible size"),
        ({"count": 10**400}, ".count: must be a finite number of sensible size"),
        ({"switch": 1}, ".switch: must be true or false"),
        ({"colour": CANARY}, ".colour: must be one of `red`, `blue`"),
        ({"level": True}, ".level: must be one of `1`"),
        ({"choice": True}, ".choice: must be one of `a`, `1`"),
        ({"choice": [CANARY]}, ".choice: must be one of `a`, `1`"),
        ({"folder": ""}, ".folder: must be the path of a file or folder"),
        ({"folder": 1}, ".folder: must be the path of a file or folder"),
        ({"folder": f"~{CANARY}/a"}, ".folder: names a home folder that cannot be found"),
        ({"inner": []}, ".inner: must be an object"),
        ({"inner": {}}, ".inner.topK: is missing"),
        ({"inner": {"topK": 11}}, ".inner.topK: must be between 1 and 10"),
        ({"inner": {"topk": 1}}, ".inner.topk: is not a setting (did you mean `topK`?)"),
        ({"qqqq": CANARY}, f".qqqq: is not a setting; the settings are {KEYS}"),
        ({"x" * 100: 1}, f".[?]: is not a setting; the settings are {KEYS}"),
        ({"inners": {}}, ".inners: must be a list"),
        ({"inners": [{"topK": 1}, {"topK": CANARY}]}, ".inners[1].topK: must be an integer"),
        ({"names": CANARY}, ".names: must be a list"),
        ({"limits": [CANARY]}, ".limits: must be an object"),
        ({"limits": {"a": {"topK": 0}}}, ".limits.a.topK: must be between 1 and 10"),
        ({"limits": {1: CANARY}}, ".limits: has a key that is not a string"),
        ({"limits": {"\0": CANARY}}, ".limits: has a key that must not contain a NUL character"),
        ({"anything": object()}, ".anything: is not plain JSON data"),
        ({"token": ""}, ".token: must not be empty"),
        ({"token": 5}, '.token: must be a string or {"env": "NAME"}'),
        ({"token": {"env": "A", "b": CANARY}}, '.token: must be a string or {"env": "NAME"}'),
        ({"token": {"env": CANARY}}, '.token: must be a string or {"env": "NAME"}'),
        ({"even": 3}, ".even: is not acceptable"),
        ({"count": CANARY, "text": 5}, ".text: must be a string"),
    ],
)
def test_refusal(value, expected):
    """Each refusal names the whole path and the wanted type, and neither shows nor chains the value."""
    assert problem(value) == expected


@attrs.frozen(kw_only=True)
class Needy:
    token: Secret


@pytest.mark.shows("000-118")
def test_unset_variable_counts_as_missing():
    """An unset or empty variable leaves an optional secret out, falls back to a default, else is named."""
    unset = {"token": {"env": "TOKEN"}, "fallback": {"env": "TOKEN"}}

    assert make(unset) == make(unset, TOKEN="") == Outer()
    assert problem({"token": {"env": "TOKEN"}}, Needy) == (
        ".token: is missing: the environment variable `TOKEN` is not set"
    )
    assert problem({"token": {"env": "TOKEN"}}, Needy, TOKEN="a\udc80") == (
        ".token: the environment variable `TOKEN` must not contain a lone surrogate"
    )
    assert problem({}, Needy) == ".token: is missing"


def test_credential_in_place_of_a_variable_is_not_shown():
    """The error does not repeat a text that does not look like a variable's name."""
    assert problem({"token": {"env": "ghp_abc"}}, Needy) == (".token: is missing: its environment variable is not set")


@attrs.frozen(kw_only=True)
class Converted:
    size: int = attrs.field(default=1, converter=int)
    odd: int = attrs.field(default=1, converter=attrs.Converter(lambda value, _: 1 // (value - 5), takes_self=True))
    plain: int = attrs.field(default=1, converter=lambda value: 1 // (value - 5))


def test_converters_of_a_class():
    """A converter that raises is named by its field, whatever it raises."""
    assert make({"odd": 6}, Converted) == Converted(odd=6)
    assert problem({"odd": 5}, Converted) == ".odd: is not acceptable"
    assert problem({"plain": 5}, Converted) == ".plain: is not acceptable"


@attrs.frozen(kw_only=True)
class Crossed:
    low: int = 1
    high: int = 2
    kept: int = attrs.field(default=5, init=False)

    def __attrs_post_init__(self) -> None:
        if self.low > self.high:
            raise Unfit("low must not exceed high")
        if self.low == self.high:
            raise Unfit


def test_checks_over_several_fields():
    """An error of `__attrs_post_init__` names the object, and a field without `init` is no setting."""
    assert problem({"low": 5}, Crossed) == ": low must not exceed high"
    assert problem({"low": 2}, Crossed) == ": is not acceptable"
    assert problem({"kept": 5}, Crossed) == ".kept: is not a setting; the settings are `low`, `high`"


class MyText(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "kind",
    [
        bytes,
        complex,
        MyText,
        int | str,
        tuple[int, str],
        dict[int, str],
        Mapping[int, str],
        set | list,
        "Missing",
    ],
)
def test_unsupported_annotations(kind):
    """A settings class that no configuration can fill is refused, and nothing is made into something else."""
    cls = attrs.make_class("Odd", {"it": attrs.field(type=kind)}, kw_only=True)

    assert problem({"it": {}}, cls).endswith(": is declared with a type that a configuration cannot hold")


def test_deep_values_are_refused():
    """More than 50 levels are refused without a recursion error."""
    value: Any = CANARY
    for _ in range(5000):
        value = [value]

    assert problem({"anything": value}).endswith("is nested more than 50 levels deep")
