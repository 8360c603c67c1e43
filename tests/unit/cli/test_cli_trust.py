"""`beaver trust`, and the conditions under which a file counts as confirmed."""

import io
import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from beaver_hooks.cli import errors
from beaver_hooks.config import is_trusted, load_config
from beaver_hooks.config.trust import record_path

TEXT = {"plugins": {"tally": {"cmd": "/bin/tool --token canary", "url": "https://user:canary@a.example/x", "n": 1}}}


@pytest.fixture
def found(scratch):
    """A configuration in the working directory."""
    path = scratch / ".beaver" / "config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(TEXT))
    return path


def summary(path) -> str:
    return (
        f"{path}\n"
        "  plugins.tally.cmd: program /bin/tool\n"
        "  plugins.tally.url: address a.example\n"
        "  plugins.tally.n: 1\n"
    )


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def answering(monkeypatch):
    """Return a function that runs `beaver` at a terminal where the user gives an answer."""

    def run(answer: str, *words: str) -> tuple[int, str]:
        terminal = Terminal()
        monkeypatch.setattr("sys.stdin", Terminal(answer))
        monkeypatch.setattr("sys.stderr", terminal)
        return errors.run(list(words)), terminal.getvalue()

    return run


def test_yes(cli, found):
    """`trust --yes` shows the configuration without secrets and confirms it; a second run reports it as confirmed."""
    ran = cli("trust", "--yes")

    assert (0, f"{summary(found)}\nThis configuration is not confirmed.\nIt is confirmed from now on.\n", "") == ran
    assert is_trusted(found) is True
    assert (0, f"{summary(found)}\nThis configuration is confirmed.\n") == (cli("trust").code, cli("trust").out)


def test_show(cli, found):
    """`trust --show` reports by text and exit code whether the configuration is confirmed, and changes nothing."""
    before = cli("trust", "--show")
    cli("trust", found, "--yes")
    after = cli("trust", "--show")
    found.write_text(json.dumps(TEXT | {"host": {"background": False}}))
    changed = cli("trust", "--show")

    assert (1, "This configuration is not confirmed.") == (before.code, before.out.splitlines()[-1])
    assert (0, "This configuration is confirmed.") == (after.code, after.out.splitlines()[-1])
    assert (1, "This configuration was changed after it was confirmed.") == (changed.code, changed.out.splitlines()[-1])


def test_forget(cli, found):
    """`trust --forget` revokes a confirmation, also of a file that no longer exists."""
    cli("trust", "--yes")
    found.unlink()

    assert "The confirmation is revoked.\n" == cli("trust", "--forget").out
    assert "There was no confirmation to revoke.\n" == cli("trust", "--forget").out


def test_asked(answering, found, capsys):
    """At a terminal the user is asked, and only a yes confirms the configuration."""
    assert (1, "Use it from now on? [y/N]: Nothing was changed.\n") == answering("n\n", "trust")
    assert is_trusted(found) is False
    assert (0, "Use it from now on? [y/N]: ") == answering("y\n", "trust")
    assert is_trusted(found) is True
    assert capsys.readouterr().out.endswith("It is confirmed from now on.\n")


def test_nobody_to_ask(cli, found):
    """Without a terminal nothing is confirmed, and the error names `--yes`."""
    ran = cli("trust")

    assert 2 == ran.code
    assert ran.err.endswith(
        "Error: There is no terminal to ask for confirmation; review it, and run the command again with --yes.\n"
    )
    assert is_trusted(found) is False


def test_one_thing_at_a_time(cli, found):
    """`--yes` together with `--forget` is refused."""
    ran = cli("trust", "--yes", "--forget")

    assert 2 == ran.code
    assert ran.err.endswith("Error: Give only one of --yes, --forget and --show.\n")


@pytest.mark.parametrize("text", [None, "{", '{"memory": {"mode": "canary"}}'])
def test_what_cannot_be_confirmed(cli, found, text):
    """A missing or wrong file is not confirmed, and the error names the file without any value in it."""
    found.unlink()
    if text is not None:
        found.write_text(text)
    ran = cli("trust", "--yes")

    assert (3, "") == (ran.code, ran.out)
    assert str(found) in ran.err
    assert "canary" not in ran.err


def test_a_link_to_a_confirmed_file_is_not_confirmed(cli, found, tmp_path):
    """A link to a confirmed file does not count in another user's folder, whose skills and state it would activate."""
    cli("trust", "--yes")
    theirs = tmp_path / "theirs" / ".beaver"
    theirs.mkdir(parents=True)
    (theirs / "config.json").symlink_to(found)
    os.chdir(theirs.parent)
    expected = f"Error: the configuration {theirs}/config.json is a symbolic link, which cannot be confirmed; replace it with the file itself, or name it with --config or BEAVER_CONFIG.\n"

    assert (3, expected) == (cli("trust", "--yes").code, cli("trust", "--yes").err)
    assert (3, expected) == (cli("run", "hello").code, cli("run", "hello").err)
    assert "given" == load_config(theirs / "config.json").trusted_by


def test_a_link_to_the_folder_is_confirmed_with_it(cli, found, tmp_path):
    """A linked folder counts as confirmed, because its relative paths start in the confirmed folder."""
    cli("trust", "--yes")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".beaver").symlink_to(found.parent)

    assert "confirmed" == load_config(cwd=tmp_path / "other").trusted_by


# --- Changes since the confirmation -------------------------------------------------------------------------------

PROMPT = {"agent": {"systemPrompt": "Be brief."}, "provider": {"kind": "offline", "apiKey": "canary-key"}}
OTHER = {"agent": {"systemPrompt": "Obey."}, "provider": {"kind": "offline", "apiKey": {"env": "A_KEY"}}}
CHANGES = """\
  agent.systemPrompt: "Be brief." -> "Obey."
  provider.apiKey: secret -> environment variable A_KEY
  as they were: 1 other settings
"""


def kept():
    """Return the folder of the confirmed versions, beside the record."""
    return record_path(os.environ).parent / "confirmed"


@pytest.fixture
def changed(cli, found):
    """That configuration, confirmed with other settings than it has now."""
    found.write_text(json.dumps(PROMPT))
    cli("trust", "--yes")
    found.write_text(json.dumps(OTHER))
    return found


@pytest.mark.parametrize("words", [["trust", "--show"], ["trust", "--yes"]])
def test_a_change_is_shown_with_old_and_new_value(cli, changed, words):
    """A changed configuration is shown with old and new value of each changed setting, and secrets by their names."""
    ran = cli(*words)

    assert ran.out.startswith(f"{changed}\n{CHANGES}\nThis configuration was changed after it was confirmed.\n")
    assert "canary" not in ran.out


def test_the_question_of_a_run_shows_what_changed(cli, changed):
    """`beaver run` asks about a changed configuration with the same lines, on stderr."""
    ran = cli("run", "hello", stdin="n\n", terminal=True)

    assert (3, True) == (ran.code, f"{changed}\n{CHANGES}" in ran.err)
    assert "canary" not in ran.out + ran.err


def test_what_was_confirmed_at_the_question_is_compared_with_later(cli, found):
    """A yes to the question of `beaver run` keeps the confirmed version for later comparisons."""
    found.write_text(json.dumps(PROMPT))
    cli("run", "hello", stdin="y\n", terminal=True)
    found.write_text(json.dumps(OTHER))

    assert CHANGES in cli("trust", "--show").out


def test_what_was_made_by_init_is_compared_with_later(cli, scratch):
    """A change is compared with the configuration that `beaver init` wrote."""
    cli("init", "--provider", "offline")
    path = scratch / ".beaver" / "config.json"
    path.write_text(json.dumps({"memory": {"mode": "hybrid"}, "provider": {"kind": "offline"}}))

    assert '\n  memory.mode: "curated" -> "hybrid"\n  as they were: 1 other settings\n' in cli("trust", "--show").out


def test_a_plugins_secret_is_one_by_its_class(cli, found, install):
    """A setting that the settings class of a plugin marks as a secret is hidden, and its other texts are shown."""
    install(
        "mottos",
        """
        import attrs
        from beaver_hostspecs import PluginInfo, Secret, hookimpl

        @attrs.frozen(kw_only=True)
        class Settings:
            phrase: Secret
            style: str = "short"

        class Plugin:
            @hookimpl
            def describe(self):
                return PluginInfo(version="1", contract="1.0", settings=Settings)
        """,
    )
    found.write_text(json.dumps({"plugins": {"mottos": {"phrase": "canary phrase", "style": "long"}}}))
    shown = cli("trust", "--yes").out
    found.write_text(json.dumps({"plugins": {"mottos": {"phrase": "canary other", "style": "odd"}}}))
    changed = cli("trust", "--show").out

    assert '  plugins.mottos.phrase: secret\n  plugins.mottos.style: "long"\n' in shown
    assert (
        "  plugins.mottos.phrase: secret -> secret (changed where it is not shown)\n"
        '  plugins.mottos.style: "long" -> "odd"\n'
    ) in changed
    assert "canary" not in "".join(each.read_text() for each in kept().iterdir()) + shown + changed


UNRESOLVED = """
import attrs
from beaver_hostspecs import PluginInfo, hookimpl

@attrs.frozen
class Settings:
    name: "Nothing"

class Plugin:
    @hookimpl
    def describe(self):
        return PluginInfo(version="1", contract="1.0", settings=Settings)
"""


@pytest.mark.parametrize(
    "code",
    [
        "raise RuntimeError",
        "class Plugin:\n    pass",
        UNRESOLVED,
    ],
    ids=["broken", "no plugin", "wrong annotation"],
)
def test_a_plugin_that_does_not_describe_itself(cli, found, install, code):
    """Texts of a plugin that fails to load, or whose settings cannot be resolved, are not shown."""
    install("mottos", code)
    found.write_text(json.dumps({"plugins": {"mottos": {"name": "canary"}}}))
    ran = cli("trust", "--yes")

    assert (0, True) == (ran.code, "  plugins.mottos.name: text\n" in ran.out)


def test_a_plugin_that_is_disabled_is_not_imported_to_be_asked(cli, found, install):
    """A disabled plugin is not imported for a summary, and its texts are not shown."""
    install("mottos", "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()")
    found.write_text(json.dumps({"plugins": {"disabled": ["mottos"], "mottos": {"name": "canary"}}}))
    ran = cli("trust", "--yes")
    site = Path(os.environ["PYTHONPATH"])

    assert ('  plugins.disabled: ["mottos"]\n  plugins.mottos.name: text\n' in ran.out) is True
    assert [] == [*site.glob("*.ran")]


@pytest.mark.parametrize(
    "text", [None, "", "[]", "{}", '{"version": 2}', '{"version": 1, "fingerprint": 1, "salt": "", "entries": []}']
)
def test_a_version_that_was_not_kept(cli, changed, text):
    """Without a readable confirmed version, all settings are shown with their present values."""
    (file,) = kept().iterdir()
    file.unlink() if text is None else file.write_text(text)
    ran = cli("trust", "--show")

    assert ran.out.splitlines() == [
        str(changed),
        '  agent.systemPrompt: "Obey."',
        '  provider.kind: "offline"',
        "  provider.apiKey: environment variable A_KEY",
        "",
        "This configuration was changed after it was confirmed.",
    ]


def test_what_is_kept_holds_no_secret_and_goes_with_the_confirmation(cli, found):
    """The confirmed version is private and holds no credential; `--forget` removes it."""
    found.write_text(json.dumps(PROMPT | TEXT))
    cli("trust", "--yes")
    (file,) = kept().iterdir()
    text, mode = file.read_text(), stat.S_IMODE(file.stat().st_mode)
    cli("trust", "--forget")

    assert ("Be brief." in text, "canary" in text, 0o600) == (True, False, mode)
    assert [] == [*kept().iterdir()]


# --- Files that git may have brought ----------------------------------------------------------------------------


@pytest.fixture
def brought(scratch):
    """A memory file in git's index, with characters that a terminal would obey."""
    path = scratch / ".beaver" / "plugins" / "curated" / "MEMORY.md"
    path.parent.mkdir(parents=True)
    path.write_text("one\x1b[2Jtwo\n")
    subprocess.run(["git", "init", "-q"], cwd=scratch, check=True)
    subprocess.run(["git", "add", "-f", path], cwd=scratch, check=True)
    return path


def test_files(cli, brought):
    """Files are shown with escapes for control characters, confirmed as shown, and unconfirmed after `--forget`."""
    ran = [cli("trust", "--files", *words) for words in (("--show",), ("--yes",), (), ("--forget",), ("--show",))]

    assert [1, 0, 0, 0, 1] == [each.code for each in ran]
    assert "\x1b" not in "".join(each.out for each in ran)
    assert ran[0].out.startswith(f"--- {brought} (unchanged since you confirmed it)\n+++ {brought} (now)\n")
    assert ran[1].out.endswith("and must be confirmed.\nThe file is confirmed as shown.\n")
    assert ["No file needs to be confirmed.\n", "The confirmation of 1 file is revoked.\n"] == [
        each.out for each in ran[2:4]
    ]


HIDDEN = {
    "tag": "\U000e0041", "zero width": "\u200b", "bidi": "\u202e", "joiner": "\u200d", "selector": "\ufe0f",
    "selector of the supplement": "\U000e0100", "Hangul filler": "\u3164", "grapheme joiner": "\u034f",
    "line separator": "\u2028", "carriage return": "\r", "next line": "\x85", "escape": "\x1b", "private": "\ue000",
}  # fmt: skip


@pytest.mark.parametrize("character", HIDDEN.values(), ids=HIDDEN)
def test_files_with_what_a_terminal_does_not_show(cli, brought, character):
    """A character that a terminal does not show appears as an escape, so the user sees all that is confirmed."""
    brought.write_bytes(f"one{character}two\tthree é\n".encode())
    escape = character.encode("unicode_escape").decode()

    assert f"\n+one{escape}two\tthree é\n" in cli("trust", "--files", "--show").out


def test_files_that_are_no_text(cli, brought):
    """A byte that is not UTF-8 appears as an escape."""
    brought.write_bytes(b"one\xff\n")

    assert "\n+one\\xff\n" in cli("trust", "--files", "--show").out


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1)])
def test_files_at_a_terminal(answering, cli, brought, answer, code):
    """At a terminal the user is asked about the files, and only a yes confirms them."""
    assert (code, code) == (answering(answer, "trust", "--files")[0], cli("trust", "--files", "--show").code)


def test_files_and_a_configuration(cli, brought, found):
    """An unconfirmed configuration must be confirmed before files; `--files` with a path is an error of usage."""
    ran = cli("trust", "--files")

    assert (3, True, 2) == (ran.code, "beaver trust" in ran.out, cli("trust", "--files", "x.json").code)


def test_files_and_the_doctor(cli, brought, tmp_path):
    """The doctor names unconfirmed files without writing a record, and names a record that cannot be read."""
    first = cli("doctor", "--json").json["findings"]
    record = tmp_path / "xdg_state_home" / "beaver-hooks" / "trusted-files.json"
    made = record.exists()
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text("{")
    second = cli("doctor", "--json").json["findings"]

    def about(findings):
        return [(each["text"], each["remedy"]) for each in findings if each["subject"] == "files in git's index"]

    text = "1 file may have come with a repository and must be confirmed"
    assert ([(text, "run: beaver trust --files")], False) == (about(first), made)
    assert about(second)[0][0].startswith(f"the record {record} cannot be read")


def test_what_git_should_not_list(cli, brought, scratch):
    """The doctor names databases, SQLite side files, a key and a switch in git's index, each with its remedy."""
    key, switch = scratch / ".beaver" / "audit.key", scratch / ".beaver" / "memory-off.json"
    databases = [scratch / ".beaver" / name for name in ("host.db", "plugins/local/memory.db", "sessions.db")]
    databases = sorted(Path(f"{each}{end}") for each in databases for end in ("", "-journal", "-shm", "-wal"))
    (scratch / ".beaver" / "plugins" / "local").mkdir()
    for path in (key, switch, *databases):
        path.write_text("x")
    subprocess.run(["git", "add", "-f", ".beaver"], cwd=scratch, check=True)
    for path in databases[-4:]:  # the conversations are asked about by name, as a run does
        path.unlink()
    cli("trust", "--files", "--yes")
    found = [each for each in cli("doctor", "--json").json["findings"] if each["subject"] == "files in git's index"]

    why = {key: "every user of the repository can forge the audit trail", switch: "a pull can switch memory on or off"}
    assert [
        (f"it lists {path}: {why.get(path, 'a pull can replace it')}", f"run: git rm --cached {path}")
        for path in sorted([key, switch, *databases])
    ] == [(each["text"], each["remedy"]) for each in found]
