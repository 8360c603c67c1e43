"""`beaver plugins`."""

import json

from beaver_hooks.cli.app import COMMANDS

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
    """Every plugin is in one object: those in service, disabled ones and those that could not be loaded."""
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


def test_text(cli, configured, scratch):
    """People get a paragraph for each plugin, and are told where the host itself is not well."""
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
    """The host is spoken of only where something is wrong with it."""
    configured()

    assert "The host itself" not in cli("plugins").out


def test_help_names_no_plugin(cli):
    """The help is the command's own, and the root says the same of it."""
    assert COMMANDS["plugins"] in cli("plugins", "--help").out
