"""The registry: who is registered, and whose hooks are called in which order."""

import dataclasses

import pytest

from beaver_hooks.plugins.registry import Registry
from beaver_hostspecs import PluginRefused, UnknownPlugin, hookimpl


class Plain:
    @hookimpl
    async def before_prompt(self, turn):
        """Has no wish."""


class First:
    @hookimpl(tryfirst=True)
    async def before_prompt(self, turn, report):
        """Wants to be early."""


class Last:
    @hookimpl(trylast=True)
    async def before_prompt(self):
        """Wants to be late."""


class Other:
    @hookimpl
    async def after_prompt(self, answer):
        """Has another hook."""


def order(registry, hook="before_prompt"):
    return [each.member.name for each in registry.implementations(hook)]


@pytest.mark.shows("003-035")
def test_the_order_of_implementations():
    """`tryfirst` hooks come first and `trylast` hooks last, each group in order of registration."""
    registry = Registry()
    for name, plugin in [
        ("last-1", Last()), ("plain-1", Plain()), ("first-1", First()),
        ("other", Other()), ("first-2", First()), ("plain-2", Plain()), ("last-2", Last()),
    ]:  # fmt: skip
        registry.add(name, plugin)

    assert order(registry) == ["first-1", "first-2", "plain-1", "plain-2", "last-1", "last-2"]
    assert order(registry, "after_prompt") == ["other"]
    assert order(registry, "stop") == []


def test_the_order_follows_who_comes_and_goes():
    """Registering and removing take effect at once; a plugin that comes back is the newest."""
    registry = Registry()
    plugins = {"a": Plain(), "b": Plain()}
    for name, plugin in plugins.items():
        registry.add(name, plugin)
    orders = [order(registry)]

    old = registry.remove("a")
    orders.append(order(registry))
    new = registry.add("a", plugins["a"])
    orders.append(order(registry))

    assert orders == [["a", "b"], ["b"], ["b", "a"]]
    assert (registry.holds(old), registry.holds(new)) == (False, True)
    assert registry.members() == (registry.member("b"), new)


def test_one_plugin_s_implementation():
    """An implementation knows its hook, its member and the arguments that it wants."""
    registry = Registry()
    member = registry.add("first", First(), fail_closed=True)
    found = registry.of(member, "before_prompt")

    assert (found.hook, found.member, found.arguments) == ("before_prompt", member, ("turn", "report"))
    assert registry.of(member, "after_prompt") is None
    assert (member.fail_closed, member.info.version) == (True, "unknown")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("host", "`host` is reserved: the plugin was not registered"),
        ("disabled", "`disabled` is reserved: the plugin was not registered"),
        ("", "`` is not a valid name; use letters, digits, `-` and `_`: the plugin was not registered"),
        ("../up", "`../up` is not a valid name; use letters, digits, `-` and `_`: the plugin was not registered"),
        (
            "a" * 65,
            f"`{'a' * 65}` is not a valid name; use letters, digits, `-` and `_`: the plugin was not registered",
        ),
        ("taken", "a plugin named `taken` is registered; unregister it first"),
    ],
)
def test_names_that_cannot_be_had(name, sentence):
    """A name is a plain one, not one that means something else, and free."""
    registry = Registry()
    member = registry.add("taken", Plain())

    with pytest.raises(PluginRefused) as caught:
        registry.add(name, Plain())

    assert (str(caught.value), caught.value.plugin) == (sentence, name)
    assert registry.members() == (member,)


def test_one_object_has_one_name():
    """An object that is registered cannot be registered again under another name."""
    registry, plugin = Registry(), Plain()
    member = registry.add("one", plugin)

    with pytest.raises(PluginRefused) as caught:
        registry.add("two", plugin)

    assert str(caught.value) == "this object is registered already, as `one`"
    assert registry.members() == (member,)


@dataclasses.dataclass
class Equal:
    """Is equal to every other one."""

    @hookimpl
    async def before_prompt(self):
        """Has a hook."""


class Odd(Plain):
    """Cannot be compared at all."""

    def __eq__(self, _):
        raise SystemExit

    __hash__ = __eq__


@pytest.mark.parametrize("kind", [Equal, Odd])
def test_identity_decides(kind):
    """Two plugins that compare equal, or that raise when they are compared, are two; removing one is effective at once."""
    registry, plugins = Registry(), {"a": kind(), "b": kind()}
    for name, plugin in plugins.items():
        registry.add(name, plugin)
    orders = [order(registry)]
    with pytest.raises(PluginRefused) as caught:
        registry.add("c", plugins["b"])
    removed = registry.remove("a")
    orders.append(order(registry))

    assert orders == [["a", "b"], ["b"]]
    assert removed.plugin is plugins["a"]
    assert str(caught.value) == "this object is registered already, as `b`"


def test_only_this_very_member_is_discarded():
    """Discarding a removed member leaves the plugin that took its name."""
    registry = Registry()
    old = registry.add("a", Plain())
    registry.remove("a")
    new = registry.add("a", Plain())
    registry.discard(old)

    assert (registry.members(), order(registry)) == ((new,), ["a"])


@pytest.mark.parametrize(("plugins", "known"), [({}, "none"), ({"a": Plain(), "b": Other()}, "a, b")])
def test_unknown_names(plugins, known):
    """Asking for a plugin that is not there lists those that are."""
    registry = Registry()
    for name, plugin in plugins.items():
        registry.add(name, plugin)

    with pytest.raises(UnknownPlugin) as caught:
        registry.remove("ghost")

    assert str(caught.value) == f"no plugin named `ghost` is registered; registered: {known}"


def test_names_that_are_no_text():
    """A name that is no str is refused by its type, however it compares and hashes."""
    registry = Registry()

    with pytest.raises(PluginRefused) as refused:
        registry.add(7, Plain())
    with pytest.raises(UnknownPlugin) as unknown:
        registry.member([])

    assert str(refused.value) == "the name of a plugin must be a str, and not int"
    assert str(unknown.value) == "no plugin named `list` is registered; registered: none"
