"""Every failure becomes one sentence with a remedy, and an exit code for its kind."""

import runpy
import socket
import subprocess
import sys

import pytest

from beaver_hooks.agent.errors import (
    AgentError,
    AnswerNotStored,
    ProviderError,
    SessionError,
    SkillError,
    StorageError,
    UnknownSession,
)
from beaver_hooks.cli import errors
from beaver_hooks.cli.errors import sentence
from beaver_hostspecs import (
    AuditUnavailable,
    ConfigurationError,
    HostNotOpen,
    InvalidTurn,
    NotOffered,
    PluginFailed,
    UnknownPlugin,
    UnknownTurn,
)

RAISING = """
    import os
    import click

    @click.command()
    def group():
        raise RuntimeError(os.environ["CREDENTIAL"])
"""


def closed_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def unreachable():
    url = f"http://127.0.0.1:{closed_port()}/v1"
    return {"kind": "openai", "baseUrl": url, "model": "m", "maxRetries": 0}


@pytest.mark.parametrize(
    ("code", "sections", "words", "said"),
    [
        (0, {}, ["run", "hello"], ""),
        (2, {}, ["run", "hello", "--skill", "absent"], "Error: there is no skill `absent`; the skills are: none.\n"),
        (2, {}, ["run", " \t"], "Error: "),
        (2, {}, ["memory", "absent"], "Error: there is no plugin or command `absent`."),
        (2, {}, ["chat", "--session", "s", "--continue"], "Give either --session or --continue."),
        (3, {"memroy": {}}, ["run", "hello"], "Error: memroy: "),
        (3, {}, ["run", "hello", "--config", "absent.json"], "Error: the configuration file "),
        (4, {"provider": unreachable()}, ["run", "hello"], "Error: "),
        (2, {}, ["run", "hello", "--session", "a\x1b"], "Error: A session id is a text of 1 to 512 characters"),
        (5, {"host": {"stateFolder": "config.json"}}, ["run", "hello"], "Error: "),
        (6, {"plugins": {"disabled": ["curated"]}}, ["run", "hello"], "Error: "),
    ],
)
def test_the_exit_code_of_each_kind_of_error(cli, configured, *, code, sections, words, said):
    """Every kind of error has its exit code and one sentence on stderr; stdout stays empty."""
    configured(**sections)
    ran = cli(*words)

    assert (code, code == 0) == (ran.code, ran.out != "")
    assert said in ran.err
    assert code in (0, 2) or 1 == ran.err.count("\n")


def test_a_configuration_that_nobody_has_confirmed(cli, scratch):
    """A configuration that the user has not confirmed is refused with its remedy, and nothing is written."""
    (scratch / ".beaver").mkdir()
    (scratch / ".beaver" / "config.json").write_text("{}")
    ran = cli("run", "hello")

    assert (3, "", True) == (ran.code, ran.out, "review it with `beaver trust`" in ran.err)
    assert ["config.json"] == [path.name for path in (scratch / ".beaver").iterdir()]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidTurn("x"), 2),
        (NotOffered("x"), 2),
        (ConfigurationError("", "x"), 3),
        (ProviderError("x", category="c"), 4),
        (StorageError("x"), 5),
        (AnswerNotStored("x", text="t"), 5),
        (AuditUnavailable("x"), 5),
        (UnknownPlugin("x"), 2),
        (UnknownTurn("x"), 2),
        (UnknownSession("x"), 2),
        (SessionError("x"), 2),
        (PluginFailed("x"), 6),
        (SkillError("x"), 2),
        (HostNotOpen("x"), 1),
        (AgentError("x"), 1),
        (OSError("x"), 1),
    ],
)
def test_the_code_of_an_error_of_the_tree(error, code, capsys):
    """The nearest base class with a code decides; an error of another library is unexpected."""
    assert (code, "") == (errors._say(error, debug=False), capsys.readouterr().out)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it is wrong", "it is wrong."),
        ("Is it?", "Is it?"),
        ("It is.", "It is."),
        ("wrong (in a.json)", "wrong (in a.json)"),
        ("a\x1b[2Jb", "a[2Jb."),
    ],
)
def test_a_sentence_ends_and_does_no_harm(text, expected):
    """The sentence of an error ends with a full stop, and holds no control character for the terminal."""
    assert expected == sentence(ValueError(text))


def test_debug_shows_a_scrubbed_traceback(cli, install, canary, monkeypatch):
    """`--debug` shows a traceback without the credential in the error; without `--debug` only the type is shown."""
    monkeypatch.setenv("CREDENTIAL", canary.reveal())
    install("lent", RAISING, group="group")
    plain, debug = cli("lent"), cli("--debug", "lent")

    unexpected = (
        "Error: an unexpected error happened (RuntimeError). Run the command again with --debug to see the traceback.\n"
    )
    assert (1, "", unexpected) == plain
    assert (1, "", True) == (debug.code, debug.out, debug.err.startswith("Traceback (most recent call last):\n"))
    assert ("in group\n" in debug.err, debug.err.endswith(unexpected)) == (True, True)
    canary.assert_clean(debug.err)


def test_debug_of_an_error_of_ours(cli, configured):
    """`--debug` behind the command shows the traceback before the sentence."""
    configured()
    ran = cli("run", " ", "--debug")

    assert (2, True, True) == (ran.code, "Traceback" in ran.err, ran.err.splitlines()[-1].startswith("Error: "))


def test_the_end_of_input_at_a_question_interrupts(cli, scratch):
    """The end of the input in place of an answer interrupts the command."""
    (scratch / ".beaver").mkdir()
    (scratch / ".beaver" / "config.json").write_text("{}")
    ran = cli("run", "hello", terminal=True)

    assert (130, True) == (ran.code, ran.err.endswith("Interrupted.\n"))


def test_the_arguments_are_those_of_the_process_unless_given(monkeypatch, capsys):
    """Without arguments `run` takes those of the process."""
    monkeypatch.setattr(sys, "argv", ["beaver", "--version"])

    assert (0, True) == (errors.run(), capsys.readouterr().out.startswith("beaver "))


def test_the_process_ends_with_the_exit_code(monkeypatch):
    """The console script leaves with the code of the command."""
    from beaver_hooks.cli import main

    monkeypatch.setattr(sys, "argv", ["beaver", "--version"])
    with pytest.raises(SystemExit) as left:
        main()

    assert 0 == left.value.code


def test_the_module_is_the_command(monkeypatch, capsys):
    """`python -m beaver_hooks.cli` is `beaver`, and its exit code is that of the process."""
    monkeypatch.setattr(sys, "argv", ["beaver", "nonsense"])
    with pytest.raises(SystemExit) as left:
        runpy.run_module("beaver_hooks.cli", run_name="__main__")

    out, err = capsys.readouterr()
    assert (2, "", True) == (left.value.code, out, "No such command 'nonsense'" in err)


@pytest.mark.campaign
def test_a_reader_that_has_enough_is_no_error_to_speak_of(configured):
    """`beaver` ends without a traceback when the reader of stdout is gone, and still stores the exchange."""
    configured()
    command = [sys.executable, "-m", "beaver_hooks.cli", "run", "hello", "--session", "s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        said = process.stderr.read()

    assert (1, "") == (process.returncode, said)
    again = [sys.executable, "-m", "beaver_hooks.cli", "run", "hello", "--session", "s", "--json"]
    assert "hello" in subprocess.run(again, capture_output=True, text=True, check=True).stdout
