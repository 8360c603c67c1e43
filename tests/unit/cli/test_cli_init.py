"""`beaver init` writes a configuration that is confirmed and works at once, and never a key."""

import json
import stat

import pytest

from beaver_hooks.agent.providers.offline import NOTHING
from beaver_hooks.config import is_trusted
from beaver_hostspecs.distributions import install_command

OFFLINE = {"memory": {"mode": "curated"}, "provider": {"kind": "offline"}}
URL = "http://127.0.0.1:11434/v1"


LOCAL = """
    import attrs
    from pathlib import Path
    from beaver_hostspecs import PluginInfo, hookimpl

    @attrs.frozen(kw_only=True)
    class Settings:
        enabled: bool = False

    class Plugin:
        @hookimpl
        def describe(self):
            return PluginInfo(contract="1.0", version="1", settings=Settings, settings_path="memory.local")

        @hookimpl
        def configure(self, setup):
            Path("enabled").write_text(str(setup.settings.enabled))
"""
ON = {**OFFLINE, "memory": {"mode": "curated", "local": {"enabled": True}}}


def openai(**more):
    return {"memory": {"mode": "curated"}, "provider": {"kind": "openai", "baseUrl": URL, "model": "m"} | more}


@pytest.fixture
def path(scratch):
    """The path of the configuration."""
    return scratch / ".beaver" / "config.json"


def written(path):
    return json.loads(path.read_text())


@pytest.fixture
def without_local(install):
    """Hide the local memory if it is installed."""
    install("local", "", plugin=None)


@pytest.fixture
def with_local(install):
    """Install a plugin with the name of the local memory."""
    install("local", LOCAL)


def test_what_is_written_works_at_once(cli, path):
    """Without options `init` chooses the offline provider, and `beaver run` uses the file without a question."""
    ran = cli("init")

    assert (0, f"Wrote {path}.\nNow try: beaver chat\n", "") == ran
    assert (OFFLINE, True) == (written(path), is_trusted(path))
    assert (0, f"{NOTHING}\n", "") == cli("run", "hello")


def test_the_folder_is_private(cli, path):
    """The state folder is private, and hidden from git."""
    cli("init")

    assert (0o700, "*\n") == (stat.S_IMODE(path.parent.stat().st_mode), (path.parent / ".gitignore").read_text())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--provider", "offline"], OFFLINE),
        (["--base-url", URL, "--model", "m"], openai()),
        (["--provider", "openai", "--base-url", URL, "--model", "m", "--api-key-env", "MY_KEY"],
         openai(apiKey={"env": "MY_KEY"})),
    ],
)  # fmt: skip
def test_options_say_what_is_written(cli, path, words, expected):
    """Without a terminal the options alone decide; an address and a model imply the provider `openai`."""
    assert 0 == cli("init", *words).code
    assert expected == written(path)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--provider", "openai"], 3, "needs `baseUrl` and `model`"),
        (["--api-key-env", "MY_KEY"], 3, "needs `baseUrl` and `model`"),
        (["--base-url", "ftp://x", "--model", "m"], 3, "provider.baseUrl"),
        (["--base-url", "http://example.com/v1", "--model", "m"], 3, "allowInsecureHttp"),
        (["--provider", "offline", "--model", "m"], 2, "Only --provider openai takes --base-url"),
        (["--provider", "other"], 2, "'other' is not one of"),
    ],
)
def test_what_cannot_work_is_not_written(cli, path, *, words, code, said):
    """A configuration that could not be loaded is refused with the field, and no folder is created."""
    ran = cli("init", *words)

    assert (code, "", True, False) == (ran.code, ran.out, said in ran.err, path.parent.exists())


@pytest.mark.parametrize("key", ["sk-proj-0123456789", "sk_live_0123456789abcdef", "AKIAIOSFODNN70123456"])
def test_a_key_in_the_place_of_a_name_is_refused(cli, path, key):
    """A name that looks like a credential is neither written nor shown."""
    ran = cli("init", "--base-url", URL, "--model", "m", "--api-key-env", key)

    assert (2, "", False, False) == (ran.code, ran.out, key in ran.err, path.exists())
    assert "Give the name of an environment variable" in ran.err


def test_an_unusual_name_that_is_set_is_a_name(cli, path, monkeypatch):
    """A name in small letters is accepted where an environment variable has it."""
    monkeypatch.setenv("my_key_2024_05", "set")

    assert 0 == cli("init", "--base-url", URL, "--model", "m", "--api-key-env", "my_key_2024_05").code
    assert openai(apiKey={"env": "my_key_2024_05"}) == written(path)


def test_no_key_is_ever_written(cli, scratch, monkeypatch, canary):
    """The key in the environment is neither written nor shown; only the name of its variable is."""
    monkeypatch.setenv("MY_KEY", canary.reveal())
    ran = cli("init", "--base-url", URL, "--model", "m", "--api-key-env", "MY_KEY")

    files = [each.read_bytes() for each in scratch.parent.rglob("*") if each.is_file()]
    canary.assert_clean(ran.out, ran.err, *files)
    assert "put the key into the environment variable MY_KEY.\n" in ran.out


def test_what_exists_is_not_overwritten(cli, path):
    """Without a terminal an existing configuration is kept, and the error names `--force`, which overwrites it."""
    cli("init")
    path.write_text("precious")
    refused = cli("init", "--base-url", URL, "--model", "m")
    kept = path.read_text()
    forced = cli("init", "--base-url", URL, "--model", "m", "--force")

    said = f"Error: a configuration exists at {path}; overwrite it with --force.\n"
    assert ((3, "", said), "precious") == (refused, kept)
    assert (0, openai(), True) == (forced.code, written(path), is_trusted(path))


def test_a_link_is_not_followed(cli, scratch, path):
    """A state folder that is a link is refused, and nothing is written behind it."""
    (scratch / "elsewhere").mkdir()
    path.parent.symlink_to(scratch / "elsewhere")
    ran = cli("init")

    assert (5, "", []) == (ran.code, ran.out, [*(scratch / "elsewhere").iterdir()])


@pytest.mark.parametrize(
    ("typed", "words", "expected"),
    [
        ("\n", [], OFFLINE),
        ("openai\n\nm\n\n", [], openai()),
        ("openai\nhttps://example.com/v1\nm\nMY_KEY\n", [],
         openai(baseUrl="https://example.com/v1", apiKey={"env": "MY_KEY"})),
        ("\n", ["--base-url", URL, "--model", "m"], openai()),
        ("nonsense\noffline\n", [], OFFLINE),
        ("", ["--provider", "offline"], OFFLINE),
        ("", ["--base-url", URL, "--model", "m", "--api-key-env", "MY_KEY"], openai(apiKey={"env": "MY_KEY"})),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("without_local")
def test_on_a_terminal_it_asks_what_it_is_not_told(cli, path, typed, words, expected):
    """On a terminal `init` asks on stderr for each missing option; an empty answer takes the default."""
    ran = cli("init", *words, stdin=typed, terminal=True)

    assert (0, expected) == (ran.code, written(path))
    assert ran.out.lstrip().startswith("Wrote ")


@pytest.mark.usefixtures("without_local")
@pytest.mark.parametrize(("typed", "code", "kept"), [("n\n", 1, True), ("", 130, True), ("y\n\n", 0, False)])
def test_on_a_terminal_it_asks_before_it_overwrites(cli, path, *, typed, code, kept):
    """Only a yes overwrites an existing configuration."""
    cli("init")
    path.write_text("precious")
    ran = cli("init", stdin=typed, terminal=True)

    assert (code, kept) == (ran.code, path.read_text() == "precious")
    assert f"A configuration exists at {path}. Overwrite it?" in ran.err


# --- The local memory -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("with_local")
@pytest.mark.parametrize(
    ("words", "typed", "terminal", "expected"),
    [
        (["--local"], "", False, ON),
        (["--no-local"], "", False, OFFLINE),
        ([], "", False, OFFLINE),
        (["--provider", "offline"], "y\n", True, ON),
        (["--provider", "offline"], "\n", True, ON),
        (["--provider", "offline"], "n\n", True, OFFLINE),
        (["--provider", "offline", "--local"], "", True, ON),
        (["--provider", "offline", "--no-local"], "", True, OFFLINE),
    ],
)
def test_the_local_memory_is_chosen(cli, path, *, words, typed, terminal, expected):
    """The local memory is on after `--local` or a yes at the terminal; without a terminal `init` asks no question."""
    ran = cli("init", *words, stdin=typed, terminal=terminal)
    asked = "Use the local memory" in ran.err

    assert (0, expected, bool(typed)) == (ran.code, written(path), asked)
    assert ("beaver memory embedder install e5-small" in ran.out) == ("local" in expected["memory"])


@pytest.mark.usefixtures("with_local")
def test_the_local_memory_is_on_at_once(cli, scratch):
    """The plugin of the local memory gets the chosen setting."""
    cli("init", "--local")
    cli("run", "hello")

    assert "True" == (scratch / "enabled").read_text()


@pytest.mark.usefixtures("without_local")
def test_the_local_memory_is_not_installed(cli, path):
    """`--local` without the plugin is refused with the command that installs it; at a terminal `init` mentions it."""
    wanted = cli("init", "--local")
    was_written = path.exists()
    told = cli("init", "--provider", "offline", terminal=True)
    silent = cli("init", "--force")

    assert (2, "", True, False) == (
        wanted.code,
        wanted.out,
        f"install it with: {install_command('beaver-hooks-local')}\n" in wanted.err,
        was_written,
    )
    assert (0, True, False) == (
        told.code,
        f"{install_command('beaver-hooks-local')}, and beaver init --local\n" in told.out,
        "pip install" in silent.out,
    )
