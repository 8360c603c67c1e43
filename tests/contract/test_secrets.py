"""`Secret` shows its value only through `reveal`."""

import copy
import dataclasses
import io
import json
import logging
import pickle
import pprint
import sys
import traceback

import attrs
import pytest
import structlog

from beaver_hostspecs import MASK, Secret, holds_secret, scrub
from beaver_hostspecs.testing import make_canary

HIDDEN = "Secret(...)"


@attrs.frozen(kw_only=True)
class Settings:
    key: Secret
    nested: tuple[Secret, ...] = ()


@dataclasses.dataclass
class Plain:
    key: Secret


def failing(key):
    local = key
    raise RuntimeError(f"failed with {local}")


def traceback_of(key):
    try:
        failing(key)
    except RuntimeError as error:
        return error
    raise AssertionError("it did not fail")


def with_stdlib_locals(key):
    error = traceback.TracebackException.from_exception(traceback_of(key), capture_locals=True)
    return "".join(error.format())


def printed_by_rich(value):
    rich = pytest.importorskip("rich.console")
    console = rich.Console(file=io.StringIO(), width=200, color_system=None)
    console.print(value)
    return console.file.getvalue()


def with_rich_locals(key):
    rich = pytest.importorskip("rich.traceback")
    error = traceback_of(key)
    shown = rich.Traceback.from_exception(type(error), error, error.__traceback__, show_locals=True)
    return printed_by_rich(shown)


def with_structlog_locals(key):
    transform = structlog.tracebacks.ExceptionDictTransformer(show_locals=True)
    error = traceback_of(key)
    return json.dumps(transform((type(error), error, error.__traceback__)))


def logged_by_stdlib(key):
    stream = io.StringIO()
    record = logging.LogRecord("a", logging.INFO, "p", 1, "key %s %r", (key, key), None)
    logging.StreamHandler(stream).handle(record)
    return stream.getvalue()


def logged_by_structlog(key):
    stream = io.StringIO()
    structlog.wrap_logger(structlog.PrintLogger(stream), processors=[structlog.processors.JSONRenderer()]).info(
        "beaver.keyed", key=key
    )
    return stream.getvalue()


SHOWINGS = {
    "str": str,
    "repr": repr,
    "ascii": ascii,
    "format": "{}".format,
    "format with a width": "{:>40}".format,
    "f-string": lambda key: f"{key} {key!r} {key!s}",
    "percent": "%s".__mod__,
    "in a list": lambda key: str([key, {key: key}]),
    "pprint": pprint.pformat,
    "rich": lambda key: printed_by_rich([key, {"key": key}]),
    "json": lambda key: json.dumps({"key": key}, default=str),
    "attrs record": lambda key: repr(Settings(key=key, nested=(key,))),
    "attrs.asdict": lambda key: str(attrs.asdict(Settings(key=key, nested=(key,)))),
    "attrs.astuple": lambda key: str(attrs.astuple(Settings(key=key))),
    "dataclass": lambda key: repr(Plain(key)),
    "dataclasses.asdict": lambda key: str(dataclasses.asdict(Plain(key))),
    "copy": lambda key: repr(copy.copy(key)),
    "deepcopy": lambda key: repr(copy.deepcopy({"key": [key]})),
    "dir": lambda key: str(dir(key)),
    "traceback": lambda key: "".join(traceback.format_exception(traceback_of(key))),
    "traceback with locals": with_stdlib_locals,
    "rich traceback with locals": with_rich_locals,
    "structlog traceback with locals": with_structlog_locals,
    "logging": logged_by_stdlib,
    "structlog": logged_by_structlog,
}


@pytest.mark.shows("000-042", "001-032")
@pytest.mark.parametrize("show", SHOWINGS.values(), ids=SHOWINGS.keys())
def test_nothing_shows_it(show, canary):
    """Printing, logging, dumping or copying a secret shows no shape of its value."""
    canary.assert_clean(show(canary.secret))


@pytest.mark.parametrize("show", [str, repr, "{}".format, "{:>40}".format])
def test_it_is_shown_as_a_placeholder(show):
    """The placeholder is the same for every secret, so not even its length shows."""
    assert HIDDEN == show(Secret("short")) == show(Secret("a much longer credential"))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_it_cannot_be_pickled(protocol, canary):
    """Pickling raises, names the remedy and shows nothing."""
    with pytest.raises(TypeError) as caught:
        pickle.dumps(Settings(key=canary.secret), protocol)

    assert "a Secret cannot be pickled; hand over the name of its environment variable instead" == str(caught.value)


def test_it_has_no_state_to_hand_out(canary):
    """Neither `vars` nor `__getstate__` gives the value."""
    with pytest.raises(TypeError, match="__dict__"):
        vars(canary.secret)
    with pytest.raises(TypeError, match="cannot be pickled"):
        canary.secret.__getstate__()


def test_reveal_is_the_way_out():
    """`reveal` returns the exact value."""
    assert "s3cret" == Secret("s3cret").reveal()


def test_copies_are_the_same_secret():
    """A copy, deep or not, is the secret itself."""
    secret = Secret("copied credential")

    assert secret is copy.copy(secret)
    assert secret is copy.deepcopy(secret)


def test_equality():
    """Secrets are equal by value, to other secrets only, whatever their characters."""
    assert Secret("pässword \ud800") == Secret("pässword \ud800")
    assert Secret("one") != Secret("two")
    assert Secret("one") != "one"
    assert 1 == len({Secret("one"), Secret("one")})


def test_it_does_not_hash_like_its_value():
    """The hash of a secret is not that of its text, so a lookup by text finds nothing."""
    assert hash("one") != hash(Secret("one"))


def test_truth_is_having_a_value():
    """An empty secret is false: an unset variable counts as missing."""
    assert (True, False) == (bool(Secret("x")), bool(Secret("")))


@pytest.mark.parametrize("value", [b"bytes", None, 5, ["list"]])
def test_it_wraps_text_only(value):
    """Anything but a str is refused, and the refusal names the type, not the value."""
    with pytest.raises(TypeError) as caught:
        Secret(value)

    assert f"a Secret wraps a str, not {type(value).__name__}" == str(caught.value)


def test_making_it_makes_it_known():
    """The scrubber of the process masks a secret as soon as it is created."""
    canary = make_canary()

    assert holds_secret(canary.reveal())
    assert f"key={MASK}!" == scrub(f"key={canary.reveal()}!")


def test_nothing_can_be_hung_on_it():
    """A secret has slots only, so no attribute can be added."""
    with pytest.raises(AttributeError):
        Secret("slots").other = 1
    assert sys.getsizeof(Secret("slots")) < 100
