"""The tree of errors is as it is drawn, and none of them leaks or gets lost on the way."""

import copy
import inspect
import pickle
import re

import pytest

import beaver_hostspecs
from beaver_hostspecs import MASK, BeaverError, ConfigurationError, PluginUnavailable, UnknownPlugin, errors

CLASSES = [
    each
    for _, each in inspect.getmembers(errors, inspect.isclass)
    if issubclass(each, BaseException) and each.__module__ == errors.__name__
]
EVERY_CLASS = pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)


def drawn_tree():
    """Return class name -> parent's name, from the drawing."""
    parents, path = {}, {}
    for line in errors.__doc__.splitlines():
        if match := re.match(r" {4}([│├└─ ]*)([A-Z]\w+)( {2,}|$)", line):
            depth = len(match[1]) // 4
            path[depth] = match[2]
            parents[match[2]] = path[depth - 1] if depth else "Exception"
    return parents


def pickled(error, protocol=pickle.DEFAULT_PROTOCOL):
    return pickle.loads(pickle.dumps(error, protocol))  # noqa: S301


def made(kind, text):
    return kind("memory.path", text) if issubclass(kind, ConfigurationError) else kind(text)


def test_the_tree_is_as_drawn():
    """The drawing in the module's docstring shows every class, under its parent."""
    assert drawn_tree() == {kind.__name__: kind.__bases__[0].__name__ for kind in CLASSES}


def test_the_drawing_names_the_other_bases():
    """Where an error is also a built-in one, the drawing says so."""
    drawn = dict(re.findall(r"(\w+) .*\(also a (\w+)\)", errors.__doc__))

    assert drawn == {kind.__name__: kind.__bases__[1].__name__ for kind in CLASSES if kind.__bases__[1:]}


@EVERY_CLASS
def test_every_error_is_public(kind):
    """A caller can catch each of them by its public name."""
    assert kind.__name__ in beaver_hostspecs.__all__
    assert kind is getattr(beaver_hostspecs, kind.__name__)


@pytest.mark.shows("000-130", "000-134", "001-092")
@EVERY_CLASS
def test_the_text_has_passed_the_scrubber(kind, canary):
    """A secret in the text, in the attributes or in the arguments is masked."""
    error = made(kind, f"refused {canary.reveal()}")

    assert MASK in str(error)
    canary.assert_clean(str(error), repr(error), repr(error.args), repr(vars(error)))


@EVERY_CLASS
def test_it_survives_copying_and_pickling(kind):
    """A copy has the type, the text, the attributes and the notes of the original."""
    error = made(kind, "it broke")
    error.add_note("while closing")
    copies = [copy.copy(error), copy.deepcopy(error), pickled(error)]

    assert [(kind, str(error), error.args, vars(error))] * 3 == [
        (type(copied), str(copied), copied.args, vars(copied)) for copied in copies
    ]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol_of_pickle_will_do(protocol):
    """Old protocols carry errors too, with what the class added."""
    error = pickled(ConfigurationError("memory.mode", "no such mode"), protocol)

    assert ("memory.mode", "no such mode", "memory.mode: no such mode") == (
        error.path,
        error.problem,
        str(error),
    )


def test_a_configuration_error_names_the_path():
    """The text is path and problem, or the problem alone for the file as a whole."""
    assert ["memory.mode: no such mode", "is no JSON"] == [
        str(ConfigurationError("memory.mode", "no such mode")),
        str(ConfigurationError("", "is no JSON")),
    ]


def test_plugin_errors_carry_the_name():
    """The plugin's name and reason are attributes, not only text."""
    error = PluginUnavailable("no address is set", plugin="gateway")

    assert ("gateway", "no address is set", "no address is set") == (error.plugin, error.reason, str(error))
    assert "" == UnknownPlugin("no plugin of that name").plugin


def test_attributes_are_scrubbed(canary):
    """No attribute keeps what the text masks."""
    key = canary.reveal()

    canary.assert_clean(
        repr(vars(ConfigurationError(f"a.{key}", key))),
        repr(vars(PluginUnavailable(key, plugin=key))),
    )


def test_one_clause_catches_them_all():
    """Every error is a `BeaverError`, and each has a sentence about itself."""
    assert [] == [kind for kind in CLASSES if not issubclass(kind, BeaverError) or not kind.__doc__]
