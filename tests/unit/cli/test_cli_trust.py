"""`beaver trust`, and what counts as confirmed."""

import io
import json
import os
import subprocess

import pytest

from beaver_hooks.cli import failing
from beaver_hooks.config import is_trusted, load_config

TEXT = {"plugins": {"tally": {"cmd": "/bin/tool --token canary", "url": "https://user:canary@a.example/x", "n": 1}}}


@pytest.fixture
def found(scratch):
    """A configuration that lies in the working directory."""
    path = scratch / ".beaver" / "config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(TEXT))
    return path


def summary(path) -> str:
    return (
        f"{path}\n"
        "  plugins.tally.cmd: program /bin/tool\n"
        "  plugins.tally.url: address a.example\n"
        "  plugins.tally.n: number\n"
    )


class Terminal(io.StringIO):
    """Stands for a terminal, as far as anybody asks."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def answering(monkeypatch):
    """Return what runs `beaver` at a terminal with somebody who answers."""

    def run(answer: str, *words: str) -> tuple[int, str]:
        terminal = Terminal()
        monkeypatch.setattr("sys.stdin", Terminal(answer))
        monkeypatch.setattr("sys.stderr", terminal)
        return failing.run(list(words)), terminal.getvalue()

    return run


def test_yes(cli, found):
    """A configuration is shown without its values and confirmed; again, it says that it is."""
    ran = cli("trust", "--yes")

    assert (0, f"{summary(found)}\nThis configuration is not confirmed.\nIt is confirmed from now on.\n", "") == (
        ran.code,
        ran.out,
        ran.err,
    )
    assert is_trusted(found) is True
    assert (0, f"{summary(found)}\nThis configuration is confirmed.\n") == (cli("trust").code, cli("trust").out)


def test_show(cli, found):
    """Whether it is confirmed can be asked, by a script too, and changes nothing."""
    before = cli("trust", "--show")
    cli("trust", found, "--yes")
    after = cli("trust", "--show")
    found.write_text(json.dumps(TEXT | {"host": {"background": False}}))
    changed = cli("trust", "--show")

    assert (1, "This configuration is not confirmed.") == (before.code, before.out.splitlines()[-1])
    assert (0, "This configuration is confirmed.") == (after.code, after.out.splitlines()[-1])
    assert (1, "This configuration has changed since it was confirmed.") == (changed.code, changed.out.splitlines()[-1])


def test_forget(cli, found):
    """A confirmation can be taken back, of a file too that is there no more."""
    cli("trust", "--yes")
    found.unlink()

    assert "The confirmation is taken back.\n" == cli("trust", "--forget").out
    assert "There was no confirmation to take back.\n" == cli("trust", "--forget").out


def test_asked(answering, found, capsys):
    """At a terminal a person is asked, and only a yes confirms it."""
    assert (1, "Use it from now on? [y/N]: ") == answering("n\n", "trust")
    assert is_trusted(found) is False
    assert (0, "Use it from now on? [y/N]: ") == answering("y\n", "trust")
    assert is_trusted(found) is True
    assert capsys.readouterr().out.endswith("It is confirmed from now on.\n")


def test_nobody_to_ask(cli, found):
    """Without a terminal nothing is confirmed, and the way to do it is named."""
    ran = cli("trust")

    assert 2 == ran.code
    assert ran.err.endswith("Error: Nobody can be asked without a terminal; review it, and repeat this with --yes.\n")
    assert is_trusted(found) is False


def test_one_thing_at_a_time(cli, found):
    """Confirming and taking back at once is refused."""
    ran = cli("trust", "--yes", "--forget")

    assert 2 == ran.code
    assert ran.err.endswith("Error: Give only one of --yes, --forget and --show.\n")


@pytest.mark.parametrize("text", [None, "{", '{"memory": {"mode": "canary"}}'])
def test_what_cannot_be_confirmed(cli, found, text):
    """A file that is missing or wrong is not confirmed; what is wrong is said without a value."""
    found.unlink()
    if text is not None:
        found.write_text(text)
    ran = cli("trust", "--yes")

    assert (3, "") == (ran.code, ran.out)
    assert str(found) in ran.err
    assert "canary" not in ran.err


def test_a_link_to_a_confirmed_file_is_not_confirmed(cli, found, tmp_path):
    """In somebody else's folder a link to what was confirmed leads to their skills and state, so it does not count."""
    cli("trust", "--yes")
    theirs = tmp_path / "theirs" / ".beaver"
    theirs.mkdir(parents=True)
    (theirs / "config.json").symlink_to(found)
    os.chdir(theirs.parent)
    expected = (
        f"Error: the configuration {theirs}/config.json is a symbolic link, and a confirmation holds for no link;"
        " put the file itself there, or name it by --config or BEAVER_CONFIG.\n"
    )

    assert (3, expected) == (cli("trust", "--yes").code, cli("trust", "--yes").err)
    assert (3, expected) == (cli("run", "hello").code, cli("run", "hello").err)
    assert "given" == load_config(theirs / "config.json").trusted_by


def test_a_link_to_the_folder_is_confirmed_with_it(cli, found, tmp_path):
    """What is relative in a configuration of a linked folder starts where it was confirmed, so it counts."""
    cli("trust", "--yes")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".beaver").symlink_to(found.parent)

    assert "confirmed" == load_config(cwd=tmp_path / "other").trusted_by


# --- Files that git may have brought ----------------------------------------------------------------------------


@pytest.fixture
def brought(scratch):
    """A memory file that git lists, with characters that a terminal would obey."""
    path = scratch / ".beaver" / "plugins" / "curated" / "MEMORY.md"
    path.parent.mkdir(parents=True)
    path.write_text("one\x1b[2Jtwo\n")
    subprocess.run(["git", "init", "-q"], cwd=scratch, check=True)
    subprocess.run(["git", "add", "-f", path], cwd=scratch, check=True)
    return path


def test_files(cli, brought):
    """They are shown without what a terminal would obey, confirmed as they are shown, and doubted again."""
    ran = [cli("trust", "--files", *words) for words in (("--show",), ("--yes",), (), ("--forget",), ("--show",))]

    assert [1, 0, 0, 0, 1] == [each.code for each in ran]
    assert "\x1b" not in "".join(each.out for each in ran)
    assert ran[0].out.startswith(f"--- {brought} (as you know it)\n+++ {brought} (now)\n")
    assert ran[1].out.endswith("you have not confirmed this.\nIt is confirmed, as it is shown.\n")
    assert ["No file waits to be confirmed.\n", "The confirmation of 1 file is taken back.\n"] == [
        each.out for each in ran[2:4]
    ]


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1)])
def test_files_at_a_terminal(answering, cli, brought, answer, code):
    """At a terminal a person is asked."""
    assert (code, code) == (answering(answer, "trust", "--files")[0], cli("trust", "--files", "--show").code)


def test_files_and_a_configuration(cli, brought, found):
    """A configuration that nobody has confirmed comes first; a file cannot be named with them."""
    ran = cli("trust", "--files")

    assert (3, True, 2) == (ran.code, "beaver trust" in ran.out, cli("trust", "--files", "x.json").code)


def test_files_and_the_doctor(cli, brought, tmp_path):
    """The doctor names what waits without writing anything down, and a record that cannot be read."""
    first = cli("doctor", "--json").json["findings"]
    record = tmp_path / "xdg_state_home" / "beaver-hooks" / "trusted-files.json"
    made = record.exists()
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text("{")
    second = cli("doctor", "--json").json["findings"]

    def about(findings):
        return [(each["text"], each["remedy"]) for each in findings if each["subject"] == "files in git's index"]

    text = "1 file may have come with a repository, and you have not confirmed this"
    assert ([(text, "run: beaver trust --files")], False) == (about(first), made)
    assert about(second)[0][0].startswith(f"the record {record} cannot be read")


def test_what_git_should_not_list(cli, brought, scratch):
    """The doctor names databases and a key that git lists, each with the command that takes it out."""
    for name in ("host.db", "audit.key"):
        (scratch / ".beaver" / name).touch()
    subprocess.run(["git", "add", "-f", ".beaver"], cwd=scratch, check=True)
    cli("trust", "--files", "--yes")
    found = [each for each in cli("doctor", "--json").json["findings"] if each["subject"] == "files in git's index"]

    key, database = scratch / ".beaver" / "audit.key", scratch / ".beaver" / "host.db"
    assert [
        (f"it lists {key}: everybody with the repository can forge the audit trail", f"run: git rm --cached {key}"),
        (f"it lists {database}: a pull can replace it", f"run: git rm --cached {database}"),
    ] == [(each["text"], each["remedy"]) for each in found]
