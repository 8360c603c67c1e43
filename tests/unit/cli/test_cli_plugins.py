"""`beaver plugins`."""

import json

import click
import pytest

from beaver_hooks.cli.app import COMMANDS
from beaver_hooks.cli.plugins import command

CURATED = {
    "name": "curated",
    "state": "ok",
    "since": None,
    "why": None,
    "faults": {},
    "suspendedUntil": None,
    "failClosed": True,
    "tools": ["memory"],
}


def announce(tmp_path, monkeypatch, name, target):
    """Install a distribution that announces a plugin."""
    folder = tmp_path / "site" / f"{name}_dist-1.0.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-dist\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[beaver_hooks]\n{name} = {target}\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))


def test_json(cli, configured, tmp_path, monkeypatch):
    """One object lists every plugin: those in service, disabled ones and those that failed to load."""
    raw = json.loads(configured().read_text())
    configured(plugins={"disabled": [*raw["plugins"]["disabled"], "nowhere"]})
    announce(tmp_path, monkeypatch, "broken", "no_such_module:Plugin")
    ran = cli("plugins", "--json")
    found = {each["name"]: each for each in ran.json["plugins"]}

    assert (0, "curated", "ok") == (ran.code, ran.json["mode"], ran.json["host"]["state"])
    assert CURATED == {key: found["curated"][key] for key in CURATED}
    assert {
        "name": "broken",
        "version": "1.0",
        "state": "unavailable",
        "since": found["broken"]["since"],
        "why": "plugin `broken` could not be loaded: raised ModuleNotFoundError",
        "faults": {},
        "suspendedUntil": None,
        "failClosed": False,
        "summary": "",
        "tools": [],
        "commands": [],
        "distribution": "broken-dist 1.0",
    } == found["broken"]
    assert ("disabled", "`plugins.disabled` names it", None) == tuple(
        found["nowhere"][key] for key in ("state", "why", "distribution")
    )


def test_fail_closed(cli, configured):
    """The list shows the configured `failClosed`, of a disabled plugin too."""
    disabled = json.loads(configured().read_text())["plugins"]["disabled"]
    closed = {"curated": {"failClosed": False}, "local": {"failClosed": True}}
    configured(plugins={"disabled": disabled, **closed})
    found = {each["name"]: each["failClosed"] for each in cli("plugins", "--json").json["plugins"]}

    assert (False, True) == (found["curated"], found["local"])


def test_text(cli, configured, scratch):
    """The text has a paragraph for each plugin, and one for the host where it is degraded."""
    (scratch / ".beaver").mkdir()
    (scratch / ".beaver" / "audit.key").write_text("no key")
    configured(plugins={"disabled": ["nowhere", "tally", "gateway", "local", "server"]})
    ran = cli("plugins")
    paragraphs = ran.out.split("\n\n")

    assert (0, "Memory mode: curated") == (ran.code, paragraphs[0])
    assert paragraphs[1].startswith("curated 0.1.0 (fail-closed): ok\n  MEMORY.md and USER.md")
    assert "\n  tools: memory\n  commands: " in paragraphs[1]
    assert "\n  from: beaver-hooks-curated 0.1.0" in paragraphs[1]
    assert any(each.startswith("nowhere (fail-open): disabled since ") for each in paragraphs)
    assert "\n  not installed" in ran.out
    assert paragraphs[-1].startswith("The host itself is degraded since ")


def test_a_host_that_is_well_is_not_mentioned(cli, configured):
    """A host in good health is not mentioned."""
    configured()

    assert "The host itself" not in cli("plugins").out


def test_help_names_no_plugin(cli):
    """The help of the command begins with its line in the root's table."""
    assert COMMANDS["plugins"] in cli("plugins", "--help").out


# --- Enabling and disabling ---------------------------------------------------------------------------------------

SWITCHED = """
    import attrs
    from beaver_hostspecs import PluginInfo, hookimpl

    @attrs.frozen(kw_only=True)
    class Settings:
        enabled: bool = False

    class Plugin:
        @hookimpl
        def describe(self):
            return PluginInfo(version="1", contract="1.0", settings=Settings, settings_path="memory.switched")
"""
PLAIN = """
    from beaver_hostspecs import hookimpl

    class Plugin:
        @hookimpl
        async def before_prompt(self):
            return None
"""


def switched(path):
    """Return the plugin's section in the file, and whether `plugins.disabled` names the plugin."""
    raw = json.loads(path.read_text())
    return raw["memory"].get("switched"), "switched" in raw["plugins"]["disabled"]


def test_enable_and_disable(cli, configured, install):
    """A plugin with a setting `enabled` is enabled by it, and disabled by `plugins.disabled`; both take effect."""
    install("switched", SWITCHED)
    path = configured()
    seen = []
    for word in ("enable", "disable", "disable", "enable", "enable"):
        ran = cli("plugins", word, "switched")
        listed = {each["name"]: each["state"] for each in cli("plugins", "--json").json["plugins"]}
        seen.append((ran.code, ran.err, switched(path), listed["switched"], ran.out.partition(" (in ")[0]))

    on, others = {"enabled": True}, json.loads(path.read_text())["plugins"]["disabled"]
    without, with_it = (json.dumps(names) for names in (others, [*others, "switched"]))
    assert [
        (0, "", (on, False), "ok", "memory.switched.enabled: added true"),
        (0, "", (on, True), "disabled", f"plugins.disabled: {without} -> {with_it}"),
        (0, "", (on, True), "disabled", f"{path} has that value already; nothing was written.\n"),
        (0, "", (on, False), "ok", f"plugins.disabled: {with_it} -> {without}"),
        (0, "", (on, False), "ok", f"{path} has that value already; nothing was written.\n"),
    ] == seen


def test_enabling_takes_back_both(cli, configured, install):
    """One command enables a plugin that `plugins.disabled` and its own setting both disable."""
    install("switched", SWITCHED)
    disabled = [*json.loads(configured().read_text())["plugins"]["disabled"], "switched"]
    path = configured(plugins={"disabled": disabled}, memory={"mode": "curated", "switched": {"enabled": False}})

    assert (0, ({"enabled": True}, False)) == (cli("plugins", "enable", "switched").code, switched(path))


@pytest.mark.parametrize("code", [PLAIN, "raise RuntimeError"], ids=["no settings", "broken"])
def test_enabling_a_plugin_without_a_switch(cli, configured, install, code):
    """A plugin without a setting `enabled`, or one that fails to load, is only removed from `plugins.disabled`."""
    install("plain", code)
    before = json.loads(configured().read_text())
    disabled = [*before["plugins"]["disabled"], "plain"]
    path = configured(plugins={"disabled": disabled})

    assert (0, before) == (cli("plugins", "enable", "plain").code, json.loads(path.read_text()))


def test_enabling_what_the_mode_blocks(cli, configured):
    """The file enables the plugin, and a line on stderr names the mode that still blocks it."""
    path = configured()
    ran = cli("plugins", "enable", "gateway")

    assert (0, "The memory mode `curated` still blocks `gateway`; change `memory.mode` to use it.\n") == (
        ran.code,
        ran.err,
    )
    assert "gateway" not in json.loads(path.read_text())["plugins"]["disabled"]


def test_a_plugin_that_the_mode_needs_is_not_disabled(cli, configured):
    """Disabling a plugin that the memory mode needs is refused, and the error names the setting to change first."""
    path = configured()
    before = path.read_text()
    ran = cli("plugins", "disable", "curated")

    said = "plugins.disabled: the memory mode `curated` needs `curated`; change `memory.mode` first"
    assert (3, True, before) == (ran.code, said in ran.err, path.read_text())


@pytest.mark.parametrize("word", ["enable", "disable"])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("curatd", "no plugin named `curatd` is installed (did you mean `curated`?)."),
        ("server", "no plugin named `server` is installed; run: pip install beaver-hooks-server."),
        (
            "zzzzzz",
            "no plugin named `zzzzzz` is installed; the installed plugins are `curated`, `gateway`, `local`, `tally`.",
        ),
    ],
)
def test_a_name_that_is_not_installed(cli, configured, word, name, said):
    """An unknown name is refused, with the nearest plugin, the list, or the command that installs it."""
    before = configured().read_text()
    ran = cli("plugins", word, name)

    assert (2, f"Error: Invalid value for 'NAME': {said}") == (ran.code, ran.err.splitlines()[-1])
    assert before == configured().read_text()


def test_options_before_the_command(cli, configured, scratch):
    """`--config` may stand before `enable`, and `--json` is for the list alone; `--dry-run` writes nothing."""
    path = configured().rename(scratch / "other.json")
    before = path.read_text()
    dry = cli("plugins", "--config", path, "enable", "tally", "--dry-run")

    assert (0, True, before) == (dry.code, dry.out.endswith("nothing was written.\n"), path.read_text())
    assert 2 == cli("plugins", "--json", "enable", "tally").code


@pytest.mark.parametrize("word", ["enable", "disable"])
def test_names_are_completed(word):
    """A shell completes the names of installed plugins."""
    name = command.commands[word].params[0]
    with click.Context(command) as context:
        assert ["curated"] == [each.value for each in name.shell_complete(context, "cura")]
