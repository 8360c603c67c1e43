"""`beaver check` and its findings."""

import json
import os
import socket

import pytest

from beaver_hooks.cli.checks import settings, versions
from beaver_hooks.cli.checks.findings import Finding, from_error, ok, warning
from beaver_hooks.config import Config, LoadedConfig
from beaver_hooks.config.model import Memory
from beaver_hooks.plugins.entry_points import Rivals
from beaver_hostspecs import AuditUnavailable


def findings(ran) -> dict[str, tuple[str, str]]:
    """Return level and text of each finding by its subject."""
    return {each["subject"]: (each["level"], each["text"]) for each in ran.json["findings"]}


@pytest.fixture
def openai(configured, scratch):
    """Return a function that configures a provider with the given key."""

    def configure(**key: object) -> None:
        provider = {"kind": "openai", "baseUrl": "http://localhost:9/v1", "model": "canary-model", **key}
        configured(provider=provider)

    return configure


def test_all_is_well(cli, configured, monkeypatch):
    """A sound configuration gets only findings that are ok, no request is sent, and the exit code is 0."""
    path = configured()
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("something was sent"))
    ran = cli("check", "--json")
    found = findings(ran)

    assert (0, True) == (ran.code, ran.json["ok"])
    assert ("ok", f"{path}; named by you") == found["configuration"]
    assert ("ok", "curated, explicit") == found["memory mode"]
    assert ("ok", "offline; nothing is sent anywhere") == found["provider"]
    assert ("ok", "0 skills in 0 folders") == found["skills"]
    assert ("ok", "ok") == found["plugin curated"]
    assert ("ok", "ok") == found["host"]


def test_lines(cli, configured):
    """Without `--json` each finding is a paragraph of at most 80 columns, and the counts come last."""
    configured(memory={"mode": "hybrid"}, agent={"skills": ["nothing"]})
    ran = cli("check")

    assert 1 == ran.code
    assert ran.out.endswith("2 problems, 0 warnings.\n")
    assert "problem  skills: there is no skill `nothing`" in ran.out
    assert "         -> the skills are: none" in ran.out
    assert [] == [line for line in ran.out.splitlines() if len(line) > 80 and "/" not in line]


@pytest.mark.parametrize("command", ["check", "doctor"])
@pytest.mark.parametrize(
    ("memory", "said"),
    [
        ({"mode": "memory_gateway", "local": {"enabled": True}}, True),
        ({"mode": "memory_gateway", "local": {"enabled": False}}, False),
        ({"mode": "memory_gateway"}, False),
        ({"mode": "curated", "local": {"enabled": True}}, False),
    ],
)
def test_an_enabled_memory_that_the_mode_blocks(cli, configured, command, memory, said):
    """A memory that is enabled but blocked by the mode is a warning that names the setting to change."""
    configured(memory=memory)
    found = {each["subject"]: each for each in cli(command, "--json").json["findings"]}
    expected = {
        "subject": "memory.local.enabled",
        "level": "warning",
        "text": "true, but the memory mode `memory_gateway` blocks `local`",
        "remedy": "set it to false, or set `memory.mode` to `hybrid` or `curated`",
    }

    assert (expected if said else None) == found.get("memory.local.enabled")


@pytest.mark.parametrize("name", ["MEMORY.md", "USER.md"])
def test_a_memory_file_that_cannot_be_read(cli, configured, scratch, name):
    """A memory file that is not UTF-8 fails check and every run; check names the remedy, and a mended file passes."""
    configured()
    folder = scratch / ".beaver" / "plugins" / "curated"
    folder.mkdir(parents=True)
    (folder / name).write_bytes(b"Likes caf\xe9.\n")
    ran = cli("check", "--json")
    (level, text) = findings(ran)["plugin curated"]
    remedy = next(each["remedy"] for each in ran.json["findings"] if each["subject"] == "plugin curated")
    failed, shown = cli("run", "hello"), cli("memory", "curated", "show")
    (folder / name).write_text("Likes café.\n", encoding="utf-8")
    mended = cli("run", "hello"), cli("check")

    assert (1, "problem", True) == (ran.code, level, "unreadable_file (a file cannot be read" in text)
    assert "`beaver memory curated show` names the file and the remedy" == remedy
    assert (6, True) == (failed.code, f"{folder / name} is not UTF-8" in shown.err)
    assert [0, 0] == [each.code for each in mended]


def test_defaults(cli, install):
    """Without a configuration check examines the defaults and names the command that writes one."""
    install("gateway", "", plugin=None)
    ran = cli("check")

    assert 0 == ran.code
    assert "there is no file, so the defaults apply; `beaver init`\n         writes one" in ran.out
    assert "hybrid, the default, because the configuration sets none" in ran.out
    assert ran.out.endswith("No problem found.\n")


@pytest.mark.parametrize(
    ("key", "variable", "code", "expected"),
    [
        ({}, "", 0, ("ok", "none is configured or sent")),
        ({"apiKey": "canary-key"}, "", 0, ("warning", "the credential is in the configuration file itself")),
        ({"apiKey": {"env": "A_KEY"}}, "canary-key", 0, ("ok", "the environment variable A_KEY is set")),
        (
            {"apiKey": {"env": "A_KEY"}},
            "",
            3,
            ("problem", "the environment variable A_KEY is not set, so the model cannot be called"),
        ),
        (
            {"apiKey": {"env": "sk_canary"}},
            "",
            3,
            ("problem", "its environment variable is not set, so the model cannot be called"),
        ),
    ],
)
def test_the_providers_key(cli, openai, monkeypatch, *, key, variable, code, expected):
    """Check reports whether the credential is present, and shows neither its value nor any other but the host."""
    monkeypatch.setenv("A_KEY", variable)
    openai(**key)
    ran = cli("check", "--json")

    assert code == ran.code
    assert ("ok", "openai, at localhost:9") == findings(ran)["provider"]
    assert expected == findings(ran)["provider.apiKey"]
    assert "canary" not in ran.out + ran.err


@pytest.mark.parametrize(
    ("command", "variable", "code", "expected"),
    [
        ("check", "canary-key", 0, ("ok", "the environment variable A_KEY is set")),
        ("check", "", 3, ("problem", "the environment variable A_KEY is not set, so the model cannot be called")),
        ("doctor", "canary-key", 0, ("ok", "the environment variable A_KEY is set")),
    ],
)
def test_the_small_model(cli, configured, monkeypatch, *, command, variable, code, expected):
    """Check and doctor name the small model and its address, and say whether its credential is set."""
    monkeypatch.setenv("A_KEY", variable)
    model = {"baseUrl": "http://localhost:9/v1", "model": "tiny", "apiKey": {"env": "A_KEY"}}
    configured(host={"smallModel": model, "stateFolder": ".beaver"})
    ran = cli(command, "--json")

    found = findings(ran)
    assert (code, ("ok", "tiny, at localhost:9")) == (ran.code, found["small model"])
    assert expected == found["host.smallModel.apiKey"]
    assert "canary" not in ran.out + ran.err


def test_a_small_model_that_is_missing(scratch):
    """A memory that is set to ask a small model, where none is configured, is a warning with the remedy."""
    text = "`hybrid`, but no small model is configured, so the rules capture"
    sections = [{}, {"capture": 1}, {"capture": {"extractor": "rules"}}, {"capture": {"extractor": "hybrid"}}]
    found = [
        settings.small_model(
            LoadedConfig(config=Config(memory=Memory(sections={"local": {"enabled": True, **each}})), path=None,
                         trusted_by=None, state_folder=scratch)
        )
        for each in sections
    ]  # fmt: skip

    wanted = warning("memory.local.capture.extractor", text, "configure `host.smallModel`, or set it to `rules`")
    assert [[], [], [], [wanted]] == found


def test_wrong_configuration(cli, configured):
    """A wrong configuration is a problem that names the setting, and exits with 3."""
    configured(memory={"mode": "canary"})
    ran = cli("check", "--json")

    assert (3, False) == (ran.code, ran.json["ok"])
    assert findings(ran)["configuration"][1].startswith("memory.mode: must be one of")
    assert "canary" not in ran.out


def test_wrong_settings_of_a_plugin(cli, configured):
    """Check also finds a wrong setting that only the plugin itself can judge."""
    configured(memory={"mode": "curated", "curated": {"memoryCharLimit": "canary"}})
    ran = cli("check", "--json")

    assert 3 == ran.code
    assert findings(ran)["configuration"][1].startswith("memory.curated.memoryCharLimit: must be an integer")
    assert "canary" not in ran.out


def test_unconfirmed(cli, scratch):
    """Check refuses a configuration that the user has not confirmed, and names `beaver trust`."""
    (scratch / ".beaver").mkdir()
    (scratch / ".beaver" / "config.json").write_text("{}")
    ran = cli("check", "--json")

    assert 3 == ran.code
    (found,) = (each for each in ran.json["findings"] if each["level"] == "problem")
    assert "review it with `beaver trust`, or name it with --config or BEAVER_CONFIG" == found["remedy"]


def test_named_before_the_command(cli, scratch):
    """Check uses the configuration that `--config` names before the command."""
    (scratch / "a.json").write_text("{}")

    assert ("ok", f"{scratch}/a.json; named by you") == findings(
        cli("--config", scratch / "a.json", "check", "--json")
    )["configuration"]


def test_skills(cli, configured, scratch):
    """A skill or a skill folder that cannot be read is a warning, also beside good skills."""
    (scratch / "skills" / "good").mkdir(parents=True)
    (scratch / "skills" / "good" / "SKILL.md").write_text("---\nname: good\ndescription: x\n---\nDo it.")
    configured(agent={"skillFolders": ["skills"], "skills": ["good"]})

    assert ("ok", "1 skill in 1 folder") == findings(cli("check", "--json"))["skills"]
    (scratch / "skills" / "bad").mkdir()
    (scratch / "skills" / "bad" / "SKILL.md").write_text("nothing")
    assert "warning" == findings(cli("check", "--json"))["skills"][0]
    configured(agent={"skillFolders": ["nowhere"]})
    ran = cli("check", "--json")
    assert (0, "warning") == (ran.code, findings(ran)["skills"][0])
    assert "nowhere cannot be read" in findings(ran)["skills"][1]


def test_state_folder_that_cannot_be_used(cli, configured, scratch):
    """A state folder that cannot be used is one problem among the other findings."""
    (scratch / "taken").write_text("")
    configured(host={"stateFolder": "taken"})
    ran = cli("check", "--json")

    assert 1 == ran.code
    assert "problem" == findings(ran)["agent"][0]
    assert f"{scratch}/taken" in findings(ran)["agent"][1]


def test_state_folder_that_cannot_be_written(cli, configured, scratch, monkeypatch):
    """Check names the existing folder that lacks write permission for a state folder inside it."""
    configured(host={"stateFolder": "not/yet"})
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    ran = cli("check", "--json")

    assert ("problem", f"{scratch} cannot be written") == findings(ran)["state folder"]


@pytest.mark.parametrize(("section", "level", "code"), [({}, "warning", 0), ({"broken": {"a": 1}}, "problem", 1)])
def test_unavailable_plugin(cli, configured, tmp_path, monkeypatch, *, section, level, code):
    """A plugin that fails to load is a warning, or a problem where the configuration has settings for it."""
    folder = tmp_path / "site" / "broken_dist-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-dist\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[beaver_hooks]\nbroken = no_such_module:Plugin\n")
    disabled = json.loads(configured().read_text())["plugins"]["disabled"]
    configured(plugins={"disabled": disabled, **section})
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    ran = cli("check", "--json")

    assert (code, level) == (ran.code, findings(ran)["plugin broken"][0])


def test_damaged_key_of_the_trail(cli, configured, scratch):
    """A damaged audit key leaves the host running, with a warning."""
    (scratch / ".beaver").mkdir()
    (scratch / ".beaver" / "audit.key").write_text("no key")
    configured()

    assert "warning" == findings(cli("check", "--json"))["host"][0]


def test_versions_of_sqlite():
    """An SQLite version that can damage a database is a warning with a remedy."""
    assert ok("SQLite", "3.51.3") == versions.sqlite_version("3.51.3")
    assert (
        warning("SQLite", "3.50.0 has a bug that can damage a database; 3.51.3 fixes it", "run: pip install --upgrade apsw")
        == versions.sqlite_version("3.50.0")
    )  # fmt: skip


def test_rival_plugins(monkeypatch):
    """Two distributions with one plugin name are a warning; a missing distribution is called unknown."""
    rivals = Rivals(name="a", targets=("x:A", "y:A"))
    monkeypatch.setattr(versions, "installed", lambda: {"a": rivals})
    (_, found) = versions.distributions()

    assert (
        warning(
            "distribution of a",
            "several installed distributions offer a plugin named `a` (x:A and y:A)",
            "uninstall all of them but one",
        )
        == found
    )
    assert "from an unknown distribution" == versions.distribution(None)


def test_findings_hold_no_secret(canary):
    """The scrubber cleans every finding, and a remedy in the error's own text wins over the given one."""
    found = from_error("x", AuditUnavailable(f"It is gone: {canary.reveal()}"), f"find {canary.reveal()}")

    canary.assert_clean(json.dumps(found.to_json()))
    assert Finding(subject="x", level="problem", text="a", remedy="b") == from_error("x", AuditUnavailable("a; b"), "c")
