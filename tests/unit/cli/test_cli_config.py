"""`beaver config`: the settings in effect, and edits that keep the formatting and count as confirmed."""

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import click
import pytest

from beaver_hooks.cli.config import command
from beaver_hooks.config import is_trusted, load_config, trust_config
from beaver_hooks.config.trust import record_path

FORMATTED = """{
    "agent":    { "maxToolRounds": 4,  "skills": [] },
    "provider": {
        "kind": "offline"
    }
}
"""
SECRETIVE = """
    import attrs
    from beaver_hostspecs import PluginInfo, Secret, hookimpl
    from beaver_hostspecs.settings import between, setting

    @attrs.frozen(kw_only=True)
    class Settings:
        token: Secret
        most: int = setting(default=2, validator=between(1, 9))
        tags: frozenset[str] = frozenset({"b", "a"})

    class Plugin:
        @hookimpl
        def describe(self):
            return PluginInfo(version="1", contract="1.0", settings=Settings)
"""


@pytest.fixture
def found(scratch) -> Path:
    """A confirmed configuration in the working directory, formatted by hand."""
    path = scratch / ".beaver" / "config.json"
    path.parent.mkdir(mode=0o700)
    path.write_text(FORMATTED)
    trust_config(path)
    return path


def line(change: str, path: Path, end: str = "it takes effect when `beaver` or another host starts next") -> str:
    return f"{change} (in {path}); {end}.\n"


# --- Reading ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("agent.maxToolRounds", 4),
        ("agent.historyMessages", 50),
        ("memory.mode", "hybrid"),
        ("memory.gateway.scope", ["current_chat", "resources"]),
        ("plugins", {"disabled": [], "tally": {"recallLimit": 3}}),
        ("host.stateFolder", None),
        ("provider.apiKey", None),
    ],
)
def test_get(cli, found, path, expected):
    """A setting is printed as JSON with the value in effect: that of the file, else the default."""
    ran = cli("config", "get", path)

    assert (0, expected, "") == (ran.code, ran.json, ran.err)


def test_get_everything(cli, configured, install):
    """Without a path all settings are printed, those of the plugins too, with their defaults."""
    install("mottos", SECRETIVE)
    plugins = json.loads(configured().read_text())["plugins"]
    mottos = {"failClosed": True, "token": {"env": "MOTTOS"}}
    configured(plugins=plugins | {"mottos": mottos}, agent={"skillFolders": ["x"]})
    ran = cli("config", "get")

    assert ["$schema", "memory", "plugins", "provider", "agent", "host"] == [*ran.json]
    assert {"disabled": plugins["disabled"], "mottos": mottos | {"most": 2, "tags": ["a", "b"]}} == ran.json["plugins"]
    assert ("curated", 60.0, ["x"]) == (
        ran.json["memory"]["mode"],
        ran.json["host"]["deadlineCapSeconds"],
        ran.json["agent"]["skillFolders"],
    )
    assert "maxBytes" in ran.json["provider"]


def test_get_shows_no_secret(cli, configured, install):
    """A secret appears by its variable; a literal secret and the values of an unknown plugin are masked."""
    install("mottos", SECRETIVE)
    plugins = json.loads(configured().read_text())["plugins"]
    hidden = {"phrase": "canary", "pin": 4711, "on": True, "none": None, "of": ["canary"], "key": {"env": "KEY"}}
    configured(
        provider={"apiKey": {"env": "NOT_SET"}},
        plugins={"disabled": [*plugins["disabled"], "absent"], "mottos": {"token": "canary"}, "absent": hidden},
    )
    ran = cli("config", "get", "plugins")

    assert {"env": "NOT_SET"} == cli("config", "get", "provider.apiKey").json
    assert "***" == ran.json["mottos"]["token"]
    assert {"phrase": "***", "pin": "***", "on": True, "none": None, "of": ["***"], "key": {"env": "KEY"}} == ran.json[
        "absent"
    ]
    assert ran.err.startswith('"***" hides a secret that is in the file itself')
    assert "canary" not in ran.out + ran.err


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("agent.maxToolRound", "There is no setting agent.maxToolRound (did you mean `maxToolRounds`?)."),
        (
            "zzz.a",
            "There is no setting zzz; the settings are `$schema`, `memory`, `plugins`, `provider`, `agent`, `host`.",
        ),
        ("agent.maxToolRounds.a", "There is no setting agent.maxToolRounds.a."),
        ("agent..a", "Invalid value for '[PATH]': write keys with dots between them, for example agent.maxToolRounds"),
    ],
)
def test_get_what_is_not_there(cli, found, path, said):
    """An unknown setting is refused, and the error suggests the nearest one."""
    ran = cli("config", "get", path)

    assert (2, f"Error: {said}") == (ran.code, ran.err.splitlines()[-1])


def test_defaults_without_a_file(cli):
    """Without a configuration the defaults are in effect."""
    assert 8 == cli("config", "get", "agent.maxToolRounds").json


# --- Editing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "change", "text"),
    [
        (("set", "agent.maxToolRounds", "5"), "agent.maxToolRounds: 4 -> 5", FORMATTED.replace("4", "5")),
        (
            ("set", "agent.skills", '["maps"]'),
            'agent.skills: [] -> ["maps"]',
            FORMATTED.replace("[]", '["maps"]'),
        ),
        (
            ("set", "agent.systemPrompt", "Be brief."),
            'agent.systemPrompt: added "Be brief."',
            FORMATTED.replace("[] }", '[],  "systemPrompt": "Be brief." }'),
        ),
        (
            ("set", "provider.apiKey", '{"env": "A_KEY"}'),
            "provider.apiKey: added environment variable A_KEY",
            FORMATTED.replace('"offline"', '"offline",\n        "apiKey": {\n            "env": "A_KEY"\n        }'),
        ),
        (("unset", "agent.maxToolRounds"), "agent.maxToolRounds: removed, was 4", FORMATTED.replace('"maxToolRounds": 4,  ', "")),
        (
            ("set", "$schema", "s.json"),
            "$schema",
            FORMATTED.replace("    }\n}", '    },\n    "$schema": "s.json"\n}'),
        ),
    ],
)  # fmt: skip
def test_edit(cli, found, words, change, text):
    """One line describes the change; the file keeps its formatting and counts as confirmed."""
    ran = cli("config", *words)

    assert (0, text) == (ran.code, found.read_text())
    assert (True, "") == (is_trusted(found), ran.err)
    assert line(change, found) == ran.out
    assert "confirmed" == load_config().trusted_by


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("agent.maxToolRounds", "0"), "agent.maxToolRounds: must be between 1 and 100 (in {})"),
        (("agent.maxToolRounds", "-5"), "agent.maxToolRounds: must be between 1 and 100 (in {})"),
        (("agent.maxToolRounds", "four"), "agent.maxToolRounds: must be an integer (in {})"),
        (("host.deadlineCapSeconds", "NaN"), "host.deadlineCapSeconds: must be a number (in {})"),
        (("agent.maxToolRound", "4"), "agent.maxToolRound: is not a setting (did you mean `maxToolRounds`?) (in {})"),
        (("memory.mode", "curate"), "memory.mode: must be one of `curated`, `hybrid`, `memory_gateway` (in {})"),
        (("memory.local.enabled", "maybe"), "memory.local.enabled: must be true or false (in {})"),
        (("memory.gateway.topK", "0"), "memory.gateway.topK: must be between 1 and 100 (in {})"),
        (("plugins.taly.failClosed", "true"), "plugins.taly: no plugin of that name is installed (did you mean `tally`?) (in {})"),
        (("plugins.tally.failClosed", "1"), "plugins.tally.failClosed: must be true or false (in {})"),
        (("provider.kind", "openai"), "provider: needs `baseUrl` and `model` for the kind `openai` (in {})"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_not_written(cli, found, words, said):
    """Each edit validates the whole configuration, plugins' sections too, and refuses a wrong value by its name."""
    ran = cli("config", "set", *words)

    assert (3, f"Error: {said.format(found)}\n", "") == (ran.code, ran.err, ran.out)
    assert (FORMATTED, True) == (found.read_text(), is_trusted(found))


def test_a_section_of_a_plugin_that_is_left_out_may_be_anything(cli, found):
    """A disabled plugin is not imported to check its settings, so its section may hold anything."""
    cli("plugins", "disable", "local")

    assert 0 == cli("config", "set", "memory.local.nonsense", "1").code


def test_dry_run(cli, found):
    """A dry run prints the change, and leaves the file and its confirmation as they are."""
    before = found.stat().st_mtime_ns
    ran = cli("config", "set", "agent.maxToolRounds", "5", "--dry-run")

    assert line("agent.maxToolRounds: 4 -> 5", found, "nothing was written") == ran.out
    assert (FORMATTED, before) == (found.read_text(), found.stat().st_mtime_ns)


def test_what_is_so_already(cli, found):
    """A value that the file has already is not written again."""
    before = found.stat().st_mtime_ns
    ran = cli("config", "set", "agent.maxToolRounds", "4")

    assert (0, f"{found} has that value already; nothing was written.\n") == (ran.code, ran.out)
    assert before == found.stat().st_mtime_ns


@pytest.mark.parametrize("path", ["agent.systemPrompt", "host.background", "agent.maxToolRounds.x"])
def test_unset_what_is_not_there(cli, found, path):
    """`unset` refuses a setting that the file does not have."""
    ran = cli("config", "unset", path)

    assert (2, f"Error: There is no {path} in {found}; nothing was changed.") == (ran.code, ran.err.splitlines()[-1])


def test_a_file_is_made(cli, scratch):
    """Without a configuration `set` creates a private, confirmed one in a state folder, as `beaver init` does."""
    path = scratch / ".beaver" / "config.json"
    dry = cli("config", "set", "agent.maxToolRounds", "5", "--dry-run")
    there = path.parent.exists()
    ran = cli("config", "set", "agent.maxToolRounds", "5")

    assert (0, False) == (dry.code, there)
    assert line("agent.maxToolRounds: added 5", path) == ran.out
    assert '{\n  "agent": {\n    "maxToolRounds": 5\n  }\n}\n' == path.read_text()
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (path.parent, path, record_path(os.environ).parent)]
    assert ([0o700, 0o600, 0o700], "*\n", True) == (modes, (path.parent / ".gitignore").read_text(), is_trusted(path))


def test_unset_without_a_file(cli, scratch):
    """`unset` without a file is an error of usage and creates no file."""
    assert (2, False) == (cli("config", "unset", "agent.skills").code, (scratch / ".beaver").exists())


def test_a_credential_in_the_file(cli, found):
    """`set` accepts a literal secret, never shows it, and recommends an environment variable."""
    ran = cli("config", "set", "provider.apiKey", "canary-key")

    assert (0, line("provider.apiKey: added secret", found)) == (ran.code, ran.out)
    assert 'an environment variable is safer: write {"env": "NAME"}' in ran.err
    assert "canary" not in ran.out + ran.err


# --- Trust, and what may be written -------------------------------------------------------------------------------


def test_an_unconfirmed_file_is_not_edited(cli, found):
    """`set` refuses to edit an unconfirmed file, because the edit would confirm all of it, and names the remedy."""
    text = FORMATTED.replace("offline", "openai").replace("}\n}", ', "baseUrl": "http://evil", "model": "m"}\n}')
    found.write_text(text)
    ran = cli("config", "set", "agent.maxToolRounds", "5")

    assert 3 == ran.code
    assert (
        f"{found} was not confirmed in its present form; review it with `beaver trust`, and run the command again."
        in ran.err
    )
    assert (text, False) == (found.read_text(), is_trusted(found))


def test_a_file_that_is_named_is_edited_and_not_confirmed(cli, scratch):
    """`set` edits a file that `--config` names, and does not confirm it."""
    path = scratch / "mine.json"
    path.write_text(FORMATTED)
    ran = cli("config", "set", "agent.maxToolRounds", "5", "--config", path)
    again = cli("--config", path, "config", "get", "agent.maxToolRounds")

    assert (0, 5, False) == (ran.code, again.json, is_trusted(path))


def test_the_mode_of_a_file_is_kept(cli, found):
    """An edit keeps the permissions of the file."""
    found.chmod(0o640)
    cli("config", "set", "agent.maxToolRounds", "5")

    assert 0o640 == stat.S_IMODE(found.stat().st_mode)


@pytest.mark.parametrize("named", [False, True])
def test_nothing_is_written_through_a_link(cli, found, scratch, named):
    """An edit refuses a symbolic link in place of the file, found or named."""
    real = scratch / "real.json"
    found.rename(real)
    found.symlink_to(real)
    ran = cli("config", "set", "agent.maxToolRounds", "5", *(["--config", found] if named else []))

    assert (3, True) == (ran.code, "is a symbolic link, which is never written through" in ran.err)
    assert (FORMATTED, True) == (real.read_text(), found.is_symlink())


def test_bytes_are_kept(cli, found):
    """An edit keeps a byte order mark and CRLF line ends."""
    found.write_bytes(b"\xef\xbb\xbf" + FORMATTED.replace("\n", "\r\n").encode())
    trust_config(found)
    cli("config", "set", "agent.maxToolRounds", "5")

    assert b"\xef\xbb\xbf" + FORMATTED.replace("\n", "\r\n").replace("4", "5").encode() == found.read_bytes()


def test_an_edit_leaves_the_file_where_it_cannot_be_written(cli, found, monkeypatch):
    """A write that fails leaves the file as it was, and the error is one sentence."""

    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("beaver_hooks.config.edits.replace", full)
    ran = cli("config", "set", "agent.maxToolRounds", "5")

    assert (3, FORMATTED) == (ran.code, found.read_text())
    assert f"{found} cannot be written (No space left on device); check the permissions of its folder." in ran.err


def no_locks(*_):
    raise OSError(errno.ENOSYS, "Function not implemented")


def test_where_nothing_can_be_locked(cli, found, monkeypatch, tmp_path):
    """Without file locks, or without a folder for them, an edit is refused."""
    with monkeypatch.context() as patch:
        patch.setattr("fcntl.flock", no_locks)
        unlocked = cli("config", "set", "agent.maxToolRounds", "5")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    unwritable = cli("config", "set", "agent.maxToolRounds", "5")

    assert "editing a configuration needs file locks, which this system lacks; edit the file by hand" in unlocked.err
    assert "cannot be written (Not a directory); check its permissions, or set XDG_STATE_HOME" in unwritable.err
    assert (3, 3, FORMATTED) == (unlocked.code, unwritable.code, found.read_text())


@pytest.mark.campaign
def test_edits_of_many_processes(found):
    """Processes that edit different settings at the same moment lose none of them."""
    keys = ["host.queueLimit", "host.referenceTokens", "agent.historyMessages", "agent.maxToolRounds"]
    run = [sys.executable, "-m", "beaver_hooks.cli", "config", "set"]
    started = [
        subprocess.Popen([*run, key, str(number)], stdout=subprocess.DEVNULL) for number, key in enumerate(keys, 20)
    ]
    codes = [each.wait() for each in started]
    raw = json.loads(found.read_text())

    assert [0] * 4 == codes
    assert [20, 21, 22, 23] == [raw[section][key] for section, key in (each.split(".") for each in keys)]
    assert is_trusted(found)


def test_a_text_that_cannot_be_edited(cli, found, monkeypatch):
    """An edit that does not give the wanted object is not written."""
    monkeypatch.setattr("beaver_hooks.config.edits.set_value", lambda text, _path, _value: text)
    ran = cli("config", "set", "agent.maxToolRounds", "5")

    assert (3, FORMATTED) == (ran.code, found.read_text())
    assert "cannot be edited without losing its formatting; edit it by hand" in ran.err


@pytest.mark.parametrize("name", ["get", "set", "unset"])
def test_paths_are_completed(name):
    """A shell completes the host's own settings."""
    path = command.commands[name].params[0]
    with click.Context(command) as context:
        found = [each.value for each in path.shell_complete(context, "agent.s")]

    assert ["agent.systemPrompt", "agent.storeSecrets", "agent.skills", "agent.skillFolders"] == found


# --- The sections of plugins --------------------------------------------------------------------------------------

RICH = """
    import enum
    from collections.abc import Mapping
    from pathlib import Path
    from types import MappingProxyType
    import attrs
    from beaver_hostspecs import PluginInfo, Secret, hookimpl

    class Colour(enum.Enum):
        RED = "red"

    @attrs.frozen(kw_only=True)
    class Store:
        login: Secret | None = None

    @attrs.frozen(kw_only=True)
    class Settings:
        colour: Colour = Colour.RED
        folder: Path = Path("x")
        stores: tuple[Store, ...] = ()
        named: Mapping[str, Store] = MappingProxyType({})

    class Plugin:
        @hookimpl
        def describe(self):
            return PluginInfo(version="1", contract="1.0", settings=Settings)
"""


def test_get_a_plugins_settings(cli, configured, install):
    """Settings of all kinds are printed as they would stand in the file, and nested secrets by their variables."""
    install("rich", RICH)
    plugins = json.loads(configured().read_text())["plugins"]
    stores = {"stores": [{"login": {"env": "ONE"}}, {"login": "canary"}, {}], "named": {"a": {"login": {"env": "TWO"}}}}
    configured(plugins=plugins | {"rich": stores})

    assert {
        "colour": "red",
        "folder": "x",
        "stores": [{"login": {"env": "ONE"}}, {"login": "***"}, {"login": None}],
        "named": {"a": {"login": {"env": "TWO"}}},
    } == cli("config", "get", "plugins.rich").json


SILENT = """
    from beaver_hostspecs import hookimpl

    class Plugin:
        @hookimpl
        async def start(self):
            pass
"""
BARE = """
    from beaver_hostspecs import PluginInfo, hookimpl

    class Plugin:
        @hookimpl
        def describe(self):
            return PluginInfo(version="1", contract="1.0")
"""
NO_SETTINGS = "Error: plugins.mottos: the plugin `mottos` has no settings (in {})\n"


@pytest.mark.parametrize(
    ("code", "said"),
    [(SILENT, NO_SETTINGS), (BARE, NO_SETTINGS), ("raise RuntimeError", "")],
    ids=["no description", "no settings", "broken"],
)
def test_set_what_a_plugin_does_not_know(cli, found, install, code, said):
    """A section of a plugin without settings is refused; that of a plugin that fails to load may hold anything."""
    install("mottos", code)
    ran = cli("config", "set", "plugins.mottos.most", "3")

    assert (3 if said else 0, said.format(found)) == (ran.code, ran.err)


def test_a_name_that_two_distributions_announce(cli, found, install, tmp_path):
    """With two distributions of one plugin name the section may hold anything, and its texts are not shown."""
    install("mottos", "class Plugin: pass")
    folder = tmp_path / "site" / "rival_mottos-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: rival-mottos\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[beaver_hooks]\nmottos = elsewhere:Plugin\n")
    ran = cli("config", "set", "plugins.mottos.name", "canary")

    assert (0, line("plugins.mottos.name: added text", found)) == (ran.code, ran.out)


def test_what_the_mode_needs_is_not_disabled(cli, found):
    """Disabling a plugin that the memory mode needs is refused, as `plugins disable` does, and nothing is written."""
    before = found.read_bytes()
    ran = cli("config", "set", "plugins.disabled", '["curated"]')

    assert (3, True, before) == (ran.code, "needs `curated`; change `memory.mode` first" in ran.err, found.read_bytes())


def test_what_is_empty_without_a_value_goes_with_it(cli, found):
    """`unset` also removes objects that it leaves empty, because a plugin may refuse an empty section."""
    cli("config", "set", "plugins.curated.failClosed", "false")
    before = json.loads(found.read_text())["plugins"]
    cli("config", "unset", "plugins.curated.failClosed")

    assert ({"curated": {"failClosed": False}}, False) == (before, "plugins" in json.loads(found.read_text()))
