"""The hook specifications are the plugin author's guide, and pluggy accepts them."""

import inspect

import pluggy
import pytest

from beaver_hostspecs import PROJECT, hookimpl, hooks
from beaver_hostspecs.testing import COROUTINE_HOOKS, PLAIN_HOOKS, RecordingPlugin

SPECS = {
    name: function
    for name, function in inspect.getmembers(hooks, inspect.isfunction)
    if function.__module__ == hooks.__name__
}
EVERY_HOOK = pytest.mark.parametrize(("name", "spec"), SPECS.items(), ids=SPECS.keys())


@pytest.fixture
def manager():
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(hooks)
    return manager


def described_arguments(spec):
    """Return the names under `Args:` in a docstring."""
    lines = iter(inspect.getdoc(spec).splitlines())
    if "Args:" not in lines:
        return []
    names = []
    for line in lines:
        if not line.startswith("    "):
            break
        if line[4] != " ":
            names.append(line.strip().split(":")[0])
    return names


def test_the_hooks():
    """The hooks are the coroutine hooks and the plain hooks, and no others."""
    assert sorted((*COROUTINE_HOOKS, *PLAIN_HOOKS)) == sorted(SPECS)


@EVERY_HOOK
def test_its_kind(name, spec):
    """Turn hooks, `start` and `stop` are coroutine functions; the others are plain functions."""
    assert (name in COROUTINE_HOOKS) is inspect.iscoroutinefunction(spec)


@EVERY_HOOK
def test_its_guide(name, spec):
    """Each hook's docstring says when it is called, in which order, and what happens on failure."""
    doc = inspect.getdoc(spec)

    assert [] == [part for part in ("Called ", "Ordering:", "On failure") if part not in doc]


@EVERY_HOOK
def test_its_arguments_are_described(name, spec):
    """Each argument has a line in the docstring, in the order of the signature."""
    assert list(inspect.signature(spec).parameters) == described_arguments(spec)


@EVERY_HOOK
def test_its_answer_is_described(name, spec):
    """A hook that returns a value, and every background hook, documents its return value."""
    answers = inspect.signature(spec).return_annotation is not None
    background = name.startswith("on_") or name in {"after_prompt", "before_compaction"}

    assert (answers or background) is ("Returns:" in inspect.getdoc(spec))


@EVERY_HOOK
def test_its_types_are_given(name, spec):
    """Every argument and the answer are annotated."""
    signature = inspect.signature(spec)

    assert [] == [each for each in signature.parameters.values() if each.annotation is each.empty]
    assert signature.return_annotation is not signature.empty


@EVERY_HOOK
def test_a_specification_does_nothing(name, spec):
    """The body of a specification is its docstring only, so calling it runs no code."""
    assert {"None"} == {str(const) for const in spec.__code__.co_consts if const != spec.__doc__}


def test_pluggy_knows_them_all(manager):
    """Pluggy finds exactly these hooks; none stops at the first result or is historic."""
    options = {name: getattr(manager.hook, name).spec.opts for name in SPECS}
    quiet = {"firstresult": False, "historic": False, "warn_on_impl": None, "warn_on_impl_args": None}

    assert dict.fromkeys(SPECS, quiet) == options


def test_pluggy_accepts_a_plugin_with_every_hook(manager):
    """A plugin that implements all of them passes validation."""
    manager.register(RecordingPlugin(), name="recorder")
    manager.check_pending()

    assert SPECS.keys() == {caller.name for caller in manager.get_hookcallers(manager.get_plugin("recorder"))}


def test_an_implementation_takes_the_arguments_it_wants(manager):
    """Fewer arguments than the specification has are fine."""

    class Modest:
        @hookimpl
        async def before_prompt(self, turn):
            return None

    manager.register(Modest(), name="modest")
    manager.check_pending()

    assert [("turn",)] == [each.argnames for each in manager.hook.before_prompt.get_hookimpls()]


def test_pluggy_finds_a_misspelt_hook(manager):
    """A name that is no hook does not pass unnoticed."""

    class Misspelt:
        @hookimpl
        async def before_promt(self, turn):
            return None

    manager.register(Misspelt(), name="misspelt")

    with pytest.raises(pluggy.PluginValidationError, match="before_promt"):
        manager.check_pending()


def test_pluggy_refuses_an_unknown_argument(manager):
    """An argument that the hook does not have is refused at registration."""

    class Greedy:
        @hookimpl
        async def before_prompt(self, turn, model):
            return None

    with pytest.raises(pluggy.PluginValidationError, match="model"):
        manager.register(Greedy(), name="greedy")
