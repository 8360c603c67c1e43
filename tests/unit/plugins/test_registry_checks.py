"""What breaks the contract is refused, with a sentence that says which plugin, which hook, what and what to do."""

import functools

import pytest

from beaver_hooks.plugins.contract_checks import HOOKS, accepted_arguments, check_plugin
from beaver_hostspecs import PluginRefused, hookimpl, hooks
from beaver_hostspecs.testing import RecordingPlugin


class NoMarker:
    async def before_prompt(self, turn):
        """Would never be called."""


class NoHook:
    def helper(self):
        """Is no hook."""


class Misspelt:
    @hookimpl
    async def before_promt(self, turn):
        """Would never be called."""


class Unheard:
    @hookimpl
    def xyzzy(self):
        """Is like no hook at all."""


class RenamedBadly:
    @hookimpl(specname="after_prompts")
    async def learn(self, turn):
        """Would never be called."""


class Wrapper:
    @hookimpl(wrapper=True)
    async def before_prompt(self, turn):
        """Would end before the coroutine starts."""


class OldWrapper:
    @hookimpl(hookwrapper=True)
    def after_prompt(self, turn):
        """Would end before the coroutine starts."""
        yield


class Synchronous:
    @hookimpl
    def before_prompt(self, turn):
        """Would block the event loop."""


class Generator:
    @hookimpl
    async def on_tool_result(self, turn):
        """Is no coroutine function."""
        yield


class AsyncPlain:
    @hookimpl
    async def configure(self, setup):
        """Would never be awaited."""


class AsyncGeneratorPlain:
    @hookimpl
    async def provide_tools(self):
        """Would never be iterated."""
        yield


class Greedy:
    @hookimpl
    async def before_prompt(self, turn, model):
        """Wants an argument that no host gives."""


class GreedyStart:
    @hookimpl
    async def start(self, setup):
        """Wants an argument that no host gives."""


class Keywords:
    @hookimpl
    async def before_prompt(self, **anything):
        """Names no argument."""


class PositionalOnly:
    @hookimpl
    async def before_prompt(self, turn, /):
        """Cannot be called by name."""


class Twice:
    @hookimpl
    async def after_prompt(self, turn):
        """Is the hook."""

    @hookimpl(specname="after_prompt")
    async def again(self, turn):
        """Is the hook too."""


class Forwarding:
    """Wraps a hook, as some decorators do."""

    def __init__(self, function):
        functools.update_wrapper(self, function)

    def __call__(self, *arguments):
        """Would be called if the host looked for it."""


class CallableObject:
    before_prompt = Forwarding(len)


class Decorated:
    @Forwarding
    @hookimpl(specname="before_prompt")
    async def recall(self, turn):
        """Would never be called."""


class Partial:
    @hookimpl
    async def after_prompt(self, answer):
        """Is the hook."""

    start = functools.partialmethod(after_prompt, answer=1)


class Value:
    @hookimpl
    async def after_prompt(self, answer):
        """Is the hook."""

    def __init__(self):
        self.stop = False


NO_METHOD = "`{}` is a {}; write the hook as a method of the class"
REFUSALS = [
    (CallableObject(), NO_METHOD.format("before_prompt", "Forwarding")),
    (Decorated(), NO_METHOD.format("recall", "Forwarding")),
    (Partial(), NO_METHOD.format("start", "partialmethod")),
    (Value(), NO_METHOD.format("stop", "bool")),
    (NoMarker(), "`before_prompt` has the name of a hook, but is not marked with @hookimpl; mark it"),
    (NoHook(), "it implements no hook; mark its hook methods with @hookimpl"),
    (object(), "it implements no hook; mark its hook methods with @hookimpl"),
    (NoHook, "a class was given; give an instance: NoHook()"),
    (Misspelt(), "there is no hook `before_promt` (did you mean `before_prompt`?)"),
    (Unheard(), f"there is no hook `xyzzy`; the hooks are {', '.join(f'`{each}`' for each in HOOKS)}"),
    (RenamedBadly(), "there is no hook `after_prompts` (did you mean `after_prompt`?)"),
    (Wrapper(), "hook `before_prompt` is a wrapper, which cannot wrap a coroutine; write a plain @hookimpl"),
    (OldWrapper(), "hook `after_prompt` is a wrapper, which cannot wrap a coroutine; write a plain @hookimpl"),
    (Synchronous(), "hook `before_prompt` is synchronous; make it `async def before_prompt(...)`"),
    (Generator(), "hook `on_tool_result` is synchronous; make it `async def on_tool_result(...)`"),
    (AsyncPlain(), "hook `configure` is a coroutine function; make it a plain `def configure(...)`"),
    (AsyncGeneratorPlain(), "hook `provide_tools` is a coroutine function; make it a plain `def provide_tools(...)`"),
    (Greedy(), "hook `before_prompt` has an argument `model`; it may take turn, report"),
    (GreedyStart(), "hook `start` has an argument `setup`; it takes no arguments"),
    (Keywords(), "hook `before_prompt` has an argument `anything`; it may take turn, report"),
    (PositionalOnly(), "hook `before_prompt` has an argument `turn`; it may take turn, report"),
    (Twice(), "`after_prompt` and `again` both implement the hook `after_prompt`; keep one of them"),
]


@pytest.mark.parametrize(("plugin", "fault"), REFUSALS, ids=lambda each: type(each).__name__)
def test_refusals(plugin, fault):
    """Every fault is refused with its own sentence."""
    with pytest.raises(PluginRefused) as caught:
        check_plugin("odd", plugin)

    assert (str(caught.value), caught.value.plugin) == (f"plugin `odd` was refused: {fault}", "odd")


def test_every_hook_is_known():
    """The hooks are those of the contract, whatever else its module holds."""
    assert list(HOOKS) == [
        "describe", "configure", "provide_tools", "provide_commands", "provide_backup", "subject_data", "start",
        "stop", "before_prompt", "on_tool_result", "after_prompt", "on_turn_dropped", "before_compaction",
    ]  # fmt: skip


class Everything:
    """Every form that a plugin may have."""

    unset: int

    @property
    def trap(self):
        """Would run the plugin's code when it is read."""
        raise SystemExit

    @functools.cached_property
    def other_trap(self):
        """Would do the same."""
        raise SystemExit

    on_tool_result = None

    @hookimpl(specname="before_prompt")
    async def recall(self, report, turn, *, limit=3):
        """Has another name, and a default of its own."""

    @staticmethod
    @hookimpl
    async def after_prompt(answer):
        """Needs no instance."""

    @classmethod
    @hookimpl
    def describe(cls):
        """Needs no instance either."""


@pytest.mark.parametrize("plugin", [Everything(), RecordingPlugin()])
def test_good_plugins_pass(plugin):
    """Static hooks, renamed hooks, defaults and `None` are fine, and properties are never read."""
    assert set(check_plugin("fine", plugin)) <= {"recall", *HOOKS}


def test_accepted_arguments():
    """A method gets the arguments it names, in the order of the hook, and nothing else."""
    plugin = Everything()

    assert [
        accepted_arguments("before_prompt", plugin.recall),
        accepted_arguments("after_prompt", plugin.after_prompt),
        accepted_arguments("describe", plugin.describe),
    ] == [("turn", "report"), ("answer",), ()]


def test_a_module_may_be_a_plugin():
    """A module without marked functions is refused like any other object, not with an error of Python's."""
    with pytest.raises(PluginRefused) as caught:
        check_plugin("module", hooks)

    assert str(caught.value).endswith("has the name of a hook, but is not marked with @hookimpl; mark it")
