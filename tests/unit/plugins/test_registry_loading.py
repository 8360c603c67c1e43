"""Installed distributions are loaded as the mode and the configuration say, each by itself."""

import json
import textwrap

import pytest

from beaver_hooks import Host
from beaver_hooks.config import parse_config
from beaver_hostspecs import ConfigurationError, PluginMissing
from beaver_hostspecs.distributions import install_command
from beaver_hostspecs.testing import RecordingPlugin


def states(host):
    """Return the state of every plugin, by name."""
    return {name: health.state for name, health in host.health().items() if name != "host"}


def closed_for_failing(host):
    return sorted(each.name for each in host._runtime.registry.members() if each.fail_closed)


IMPLICIT = {"curated": "ok", "gateway": "ok", "local": "ok", "third": "ok"}
ALONE = {**IMPLICIT, "curated": "disabled", "local": "disabled"}
MODES = [
    ({"memory": {"mode": "curated"}}, {**IMPLICIT, "gateway": "disabled"}, ["curated"]),
    ({"memory": {"mode": "hybrid"}}, IMPLICIT, ["curated"]),
    ({}, IMPLICIT, ["curated"]),
    ({"memory": {}}, IMPLICIT, ["curated"]),
    ({"memory": {"mode": "memory_gateway"}}, ALONE, []),
    ({"memory": {"mode": "memory_gateway", "local": {"enabled": True}}}, ALONE, []),
]


@pytest.mark.shows("000-050", "000-083", "001-006", "001-041", "001-095")
@pytest.mark.parametrize(("config", "expected", "fail_closed"), MODES)
async def test_what_a_mode_loads(site, configured, config, expected, fail_closed):
    """The mode decides which plugins load and which are fail-closed; blocked plugins are never imported."""
    for name in expected:
        site.install(name)

    async with configured(config) as host:
        assert states(host) == expected
        assert closed_for_failing(host) == fail_closed

    assert site.imported() == [name for name, state in expected.items() if state == "ok"]


CLOSED = [
    ({"plugins": {"third": {"failClosed": True}}}, ["curated", "third"]),
    ({"plugins": {"gateway": {"failClosed": True}}}, ["curated", "gateway"]),
    ({"plugins": {"curated": {"failClosed": False}}}, []),
    ({"plugins": {"curated": {"failClosed": False}, "third": {"failClosed": True}}}, ["third"]),
    ({"memory": {"mode": "curated"}, "plugins": {"gateway": {"failClosed": True}}}, ["curated"]),
    ({"memory": {"mode": "memory_gateway"}, "plugins": {"gateway": {"failClosed": True}}}, ["gateway"]),
]


@pytest.mark.parametrize(("config", "expected"), CLOSED)
async def test_the_configuration_says_who_is_fail_closed(site, configured, config, expected):
    """`plugins.<name>.failClosed` is for any plugin, wherever its settings are, and counts more than the mode."""
    for name in IMPLICIT:
        site.install(name)

    async with configured(config) as host:
        assert (closed_for_failing(host), host.fail_closed) == (expected, frozenset(expected))


async def test_a_plugin_never_sees_that_it_is_fail_closed(site, configured):
    """`failClosed` beside a plugin's own settings is the host's: the plugin gets the others."""
    site.install("curated")
    site.install("third", SETTINGS.format(path=None, rest=""))

    async with configured({"plugins": {"third": {"failClosed": True, "top": 2}}}) as host:
        assert (host.fail_closed, host.plugin("third").setup.settings.top) == ({"curated", "third"}, 2)


async def test_a_plugin_that_fails_closed_stops_the_turn_by_configuration(site, configured):
    """A fail-closed plugin's error comes out of `open_turn`; fail-open, it costs the plugin's contribution alone."""
    site.install("curated")
    site.install("third", plugin(hook("async def before_prompt(self, turn)", "raise ZeroDivisionError")))

    async with configured({}) as host:
        turn = await host.open_turn("hello", session="s")
        await turn.drop()
    async with configured({"plugins": {"third": {"failClosed": True}}}) as host:
        with pytest.raises(ZeroDivisionError):
            await host.open_turn("hello", session="s")


async def test_plugins_that_are_handed_over_and_their_configuration(tmp_path):
    """A program's own `fail_closed` stands; otherwise the configuration decides, also for plugins registered later."""
    said = {"given": True, "later": True, "program": False}
    config = parse_config(json.dumps({"plugins": {name: {"failClosed": closed} for name, closed in said.items()}}))
    plugins = {"given": RecordingPlugin(), "program": RecordingPlugin(), "later": RecordingPlugin()}
    host = Host(plugins, fail_closed=["program"], config=config, state_folder=tmp_path / "state")

    async with host:
        await host.unregister("later")
        await host.register("later", RecordingPlugin())
        await host.register("open", RecordingPlugin())
        assert host.fail_closed == {"given", "later", "program"}


COMMAND = "the plugin `{0}` is needed by the memory mode `{1}`, but is not installed; run: {2}"


@pytest.mark.shows("000-033", "000-128")
@pytest.mark.parametrize(
    ("config", "present", "missing"),
    [
        ({"memory": {"mode": "curated"}}, "gateway", "curated"),
        ({"memory": {"mode": "hybrid"}}, "curated", "gateway"),
        ({"memory": {"mode": "hybrid"}}, "gateway", "curated"),
        ({}, "gateway", "curated"),
        ({"memory": {"mode": "memory_gateway"}}, "curated", "gateway"),
    ],
)
async def test_what_a_mode_requires(site, configured, config, present, missing):
    """A required plugin that is not installed fails loading with the command that installs it; nothing is imported."""
    site.install(present)

    with pytest.raises(PluginMissing) as caught:
        await configured(config).open()

    mode = config.get("memory", {}).get("mode", "hybrid")
    assert (str(caught.value), caught.value.plugin) == (
        COMMAND.format(missing, mode, install_command(f"beaver-hooks-{missing}")),
        missing,
    )
    assert site.imported() == []


@pytest.mark.shows("000-031")
async def test_an_implicit_hybrid_forgives_a_missing_gateway(site, configured):
    """Without a mode in the file, the curated memory alone is enough."""
    site.install("curated")

    async with configured({}) as host:
        assert states(host) == {"curated": "ok"}


async def test_disabled_plugins_are_never_imported(site, configured, caplog):
    """`plugins.disabled` blocks a plugin before its code can run; the log names a disabled plugin that is unknown."""
    site.install("curated")
    site.install("bomb", "raise SystemExit('imported')")

    async with configured({"plugins": {"disabled": ["bomb", "absent"]}}) as host:
        assert states(host) == {"absent": "disabled", "bomb": "disabled", "curated": "ok"}
        assert host.health()["bomb"].reason == "`plugins.disabled` names it"

    assert site.imported() == ["curated"]
    assert "event=beaver_hooks.disabled_plugin_unknown plugin=absent" in caplog.messages


async def test_a_required_plugin_that_is_disabled(site, configured):
    """Disabling a required plugin fails loading with an error that names both settings."""
    site.install("curated")

    with pytest.raises(PluginMissing) as caught:
        await configured({"plugins": {"disabled": ["curated"]}}).open()

    assert str(caught.value) == (
        "the plugin `curated` is needed by the memory mode `hybrid`, but `plugins.disabled` names it; "
        "remove it from there, or change the mode"
    )
    assert site.imported() == []


LOADED = "plugin `odd` could not be loaded: raised {}"
STARTED = "plugin `odd` could not start: {}"
FAILED = "plugin `odd` failed in `{}`: raised {}"
REFUSED = "plugin `odd` was refused: {}"


def plugin(*lines, make="return Plugin()"):
    """Return the code of a plugin with these methods."""
    body = textwrap.indent(textwrap.dedent("\n".join(lines)), "    ")
    return f"class Plugin:\n{body}\n\ndef make():\n    {make}\n"


def hook(head, *body):
    return "\n".join(["@hookimpl", f"{head}:", *(f"    {line}" for line in body)])


PROMPT = hook("async def before_prompt(self, turn)", "return None")
BROKEN = {
    "import error": ("import no_such_module_of_anybody", LOADED.format("ModuleNotFoundError")),
    "exit on import": ("raise SystemExit('bye')", LOADED.format("SystemExit")),
    "syntax error": ("def (", LOADED.format("SyntaxError")),
    "no factory": ("made = None", LOADED.format("AttributeError")),
    "no function": ("make = 5", LOADED.format("TypeError")),
    "factory with arguments": ("def make(host): pass", LOADED.format("TypeError")),
    "factory raises": (plugin(PROMPT, make="raise ValueError('x')"), LOADED.format("ValueError")),
    "factory exits": (plugin(PROMPT, make="raise SystemExit"), LOADED.format("SystemExit")),
    "factory ends": (plugin(PROMPT, make="raise GeneratorExit"), LOADED.format("GeneratorExit")),
    "factory cancels": (plugin(PROMPT, make="raise asyncio.CancelledError"), LOADED.format("CancelledError")),
    "factory claims to be missing": (
        plugin(PROMPT, make="raise PluginMissing('me')"),
        LOADED.format("PluginMissing"),
    ),
    "factory returns nothing": (
        plugin(PROMPT, make="return None"),
        REFUSED.format("it implements no hook; mark its hook methods with @hookimpl"),
    ),
    "factory returns a class": (
        plugin(PROMPT, make="return Plugin"),
        REFUSED.format("a class was given; give an instance: Plugin()"),
    ),
    "unavailable": (
        plugin(hook("def configure(self, setup)", "raise PluginUnavailable('the moon is down')")),
        "the moon is down",
    ),
    "describe raises": (
        plugin(hook("def describe(self)", "raise ValueError")),
        FAILED.format("describe", "ValueError"),
    ),
    "no description": (
        plugin(hook("def describe(self)", "return None")),
        REFUSED.format("hook `describe` returned NoneType; it must return a PluginInfo"),
    ),
    "configure exits": (
        plugin(hook("def configure(self, setup)", "raise SystemExit")),
        FAILED.format("configure", "SystemExit"),
    ),
    "tools are no tools": (
        plugin(hook("def provide_tools(self)", "return ['hammer']")),
        REFUSED.format("hook `provide_tools` returned a str; it must return Tools"),
    ),
    "tools are no iterable": (
        plugin(hook("def provide_tools(self)", "return 5")),
        REFUSED.format("hook `provide_tools` returned a int; it must return Tools"),
    ),
    "tools raise": (
        plugin(hook("def provide_tools(self)", "yield from ()", "raise ValueError")),
        FAILED.format("provide_tools", "ValueError"),
    ),
    "tools have no end": (
        plugin(
            hook(
                "def provide_tools(self)",
                "while True:",
                "    yield Tool(name='saw', description='', parameters={}, run=print)",
            ),
        ),
        REFUSED.format("hook `provide_tools` returned more than 1,000 Tools; it must return fewer"),
    ),
    "a tool without a name": (
        plugin(hook("def provide_tools(self)", "return [object.__new__(Tool)]")),
        REFUSED.format("hook `provide_tools` returned a Tool whose name is a NoneType; it must return one with a str"),
    ),
    "unavailable without a reason": (
        plugin(hook("def configure(self, setup)", "raise PluginUnavailable.__new__(PluginUnavailable)")),
        "it gave no reason",
    ),
    "hostile settings": (
        "class Meta(type):\n    def __getattribute__(cls, name): raise SystemExit\n\n"
        "class Settings(metaclass=Meta): pass\n\n"
        + plugin(hook("def describe(self)", "return PluginInfo(version='1', contract='1.0', settings=Settings)")),
        FAILED.format("describe", "SystemExit"),
    ),
    "cannot be examined": (
        plugin(PROMPT, "def __dir__(self):", "    raise SystemExit"),
        "plugin `odd` could not be examined: raised SystemExit",
    ),
    "commands are no commands": (
        plugin(hook("def provide_commands(self)", "return [None]")),
        REFUSED.format("hook `provide_commands` returned a NoneType; it must return Commands"),
    ),
    "start raises": (plugin(hook("async def start(self)", "raise ValueError")), STARTED.format("raised ValueError")),
    "start exits": (plugin(hook("async def start(self)", "raise SystemExit")), STARTED.format("raised SystemExit")),
    "start cancels": (
        plugin(hook("async def start(self)", "raise asyncio.CancelledError")),
        STARTED.format("cancelled"),
    ),
    "start takes for ever": (
        plugin(
            hook(
                "def describe(self)", "return PluginInfo(version='1', contract='1.0', deadlines=Deadlines(start=0.01))"
            ),
            hook("async def start(self)", "await asyncio.Event().wait()"),
        ),
        STARTED.format("timeout"),
    ),
}


@pytest.mark.parametrize("case", BROKEN)
async def test_an_optional_plugin_that_cannot_be_loaded(site, configured, sink, caplog, case):
    """A broken optional plugin is left out with its reason and one event, and the others load."""
    code, reason = BROKEN[case]
    site.install("curated")
    site.install("odd", code)
    site.install("zebra")

    async with configured({}) as host:
        assert states(host) == {"curated": "ok", "odd": "unavailable", "zebra": "ok"}
        assert host.health()["odd"].reason == reason
        assert list(host.plugins) == ["curated", "zebra"]

    (event,) = sink.named("plugin_unavailable")
    (line,) = [each for each in caplog.messages if "plugin_unavailable" in each]
    assert (event.plugin, [*event.facts], "reason=" in line) == ("odd", ["error"], True)


async def test_a_plugin_may_turn_itself_off(site, configured, sink, caplog):
    """A plugin that turns itself off is disabled with its reason and without a warning."""
    site.install("curated")
    site.install("odd", plugin(hook("def configure(self, setup)", "raise PluginTurnedOff('odd.enabled is false')")))

    with caplog.at_level("WARNING", "beaver_hooks"):
        async with configured({}) as host:
            assert states(host) == {"curated": "ok", "odd": "disabled"}
            assert host.health()["odd"].reason == "odd.enabled is false"

    assert [] == caplog.records
    (event,) = sink.named("plugin_turned_off")
    assert ("odd", {"error": "PluginTurnedOff"}) == (event.plugin, dict(event.facts))
    assert [] == sink.named("plugin_unavailable")


@pytest.mark.parametrize("case", BROKEN)
async def test_a_required_plugin_that_cannot_be_loaded(site, configured, case):
    """Loading fails with the reason and the command that reinstalls it."""
    code, reason = BROKEN[case]
    site.install("curated", code)
    site.install("zebra")

    with pytest.raises(PluginMissing) as caught:
        await configured({}).open()

    assert str(caught.value) == (
        f"the plugin `curated` is needed by the memory mode `hybrid`: {reason.replace('`odd`', '`curated`')}; "
        f"fix it, or reinstall it with: {install_command('beaver-hooks-curated')}"
    )
    assert "zebra" not in site.imported()


async def test_another_major_contract(site, configured):
    """A plugin for another major contract is left out, and its health gives the reason."""
    site.install("curated")
    site.install("odd", plugin(hook("def describe(self)", "return PluginInfo(version='1', contract='99.1')")))

    async with configured({}) as host:
        assert host.health()["odd"].reason.startswith("plugin `odd` was refused: it needs contract 99.1, and")


SEVERAL = "several installed distributions offer a plugin named `{}` (plugin_"


@pytest.mark.parametrize("disabled", [False, True])
async def test_two_distributions_with_the_same_name(site, configured, sink, disabled):
    """Of two distributions with one plugin name none is imported; an event reports it, unless the name is disabled."""
    site.install("curated")
    site.install("odd", distribution="one")
    site.install("odd", distribution="two")

    async with configured({"plugins": {"disabled": ["odd"]}} if disabled else {}) as host:
        assert states(host) == {"curated": "ok", "odd": "disabled" if disabled else "unavailable"}
        assert disabled or host.health()["odd"].reason.startswith(SEVERAL.format("odd"))

    assert [event.plugin for event in sink.named("plugin_unavailable")] == ([] if disabled else ["odd"])
    assert site.imported() == ["curated"]


async def test_two_distributions_of_a_required_plugin(site, configured):
    """The host does not open while two distributions offer a required plugin."""
    site.install("curated", distribution="one")
    site.install("curated", distribution="two")

    with pytest.raises(PluginMissing) as caught:
        await configured({}).open()

    assert str(caught.value).startswith(
        f"the plugin `curated` is needed by the memory mode `hybrid`: {SEVERAL.format('curated')}"
    )
    assert site.imported() == []


@pytest.mark.parametrize(
    ("present", "sentence"),
    [
        (["tally"], "no plugin named `taly` is installed (did you mean `tally`?)"),
        (["ant", "zebra"], "no plugin named `taly` is installed; the installed plugins are `ant`, `zebra`"),
        ([], "no plugin named `taly` is installed"),
    ],
)
async def test_a_name_that_nobody_has(site, tmp_path, present, sentence):
    """The error names the installed plugins, and no install command for an unknown plugin."""
    for name in present:
        site.install(name)

    with pytest.raises(PluginMissing) as caught:
        await Host(entry_points=["taly"], state_folder=tmp_path / "state").open()

    assert str(caught.value) == sentence


async def test_a_third_party_plugin_that_is_required(site, tmp_path):
    """The remedy for a broken plugin of an unknown distribution names no command."""
    site.install("odd", "raise ValueError")

    with pytest.raises(PluginMissing) as caught:
        await Host(entry_points=["odd"], state_folder=tmp_path / "state").open()

    assert str(caught.value) == (
        "the plugin `odd` is needed: plugin `odd` could not be loaded: raised ValueError; "
        "fix it, or reinstall its distribution"
    )


SETTINGS = """
@attrs.frozen(kw_only=True)
class Settings:
    top: int = 3

class Plugin:
    @hookimpl
    def describe(self):
        return PluginInfo(version="1", contract="1.0", settings=Settings, settings_path={path!r})

    @hookimpl
    def configure(self, setup):
        self.setup = setup
        {rest}

def make():
    return Plugin()
"""


@pytest.mark.shows("001-030")
@pytest.mark.parametrize(
    ("path", "config", "sentence"),
    [
        (None, {"plugins": {"odd": {"top": "many"}}}, "plugins.odd.top: must be an integer"),
        ("memory.odd", {"memory": {"odd": {"top": None}}}, "memory.odd.top: must be an integer"),
        (None, {"plugins": {"odd": {"topp": 4}}}, "plugins.odd.topp: is not a setting (did you mean `top`?)"),
    ],
)
async def test_wrong_settings_fail_loading(site, configured, path, config, sentence):
    """A wrong setting fails loading even for an optional plugin, and names the path of the field."""
    site.install("curated")
    site.install("odd", SETTINGS.format(path=path, rest=""))

    with pytest.raises(ConfigurationError) as caught:
        await configured(config).open()

    assert str(caught.value).partition(" (in ")[0].partition(",")[0] == sentence


async def test_a_configuration_error_of_the_plugin_s_own(site, configured, canary):
    """A `ConfigurationError` of `configure` fails loading with its scrubbed message."""
    site.install("curated")
    complaint = f"raise ConfigurationError('plugins.odd.top', 'clashes with ' + {canary.reveal()!r})"
    site.install("odd", SETTINGS.format(path=None, rest=complaint))

    with pytest.raises(ConfigurationError) as caught:
        await configured({"plugins": {"odd": {"top": 4}}}).open()

    assert str(caught.value) == "plugins.odd.top: clashes with [secret]"


@pytest.mark.shows("000-043")
@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, (3, "hybrid", False)),
        ({"memory": {"mode": "curated"}, "plugins": {"odd": {"top": 7}}}, (7, "curated", True)),
    ],
)
async def test_what_configure_gets(site, configured, tmp_path, config, expected):
    """A plugin gets its settings as its own class, the mode, and an existing folder of its own."""
    site.install("curated")
    site.install("odd", SETTINGS.format(path=None, rest=""))

    async with configured(config) as host:
        setup = host.plugin("odd").setup
        assert isinstance(setup.settings, site.module("odd").Settings)
        assert (setup.settings.top, setup.mode, setup.explicit) == expected
        assert setup.state_folder == tmp_path / "state" / "plugins" / "odd"
        assert setup.state_folder.is_dir()
        setup.report.event("indexed", items=3)
        assert setup.report.remaining() == float("inf")
