"""Opening: which configuration, who is asked about it, how much is logged, and that everything is closed."""

import json
import logging

import click
import pytest

from beaver_hooks.cli.app import CONFIG, beaver
from beaver_hooks.cli.common import LEVELS, configured, in_loop, opened, set_up_log
from beaver_hooks.log import LOGGER_NAME

NOISY = """
    from beaver_hostspecs import hookimpl

    class Plugin:
        @hookimpl
        async def before_prompt(self):
            raise ValueError("content")
"""


@pytest.fixture
def found(scratch):
    """A configuration that lies in the working directory, and that nobody has confirmed."""
    (scratch / ".beaver").mkdir()
    path = scratch / ".beaver" / "config.json"
    path.write_text(json.dumps({"provider": {"kind": "offline", "model": "evil\u202e"}}))
    return path


def named(path=None, *, before=None):
    """Return which file takes effect, for a path behind the command and one before it."""
    with click.Context(beaver) as context:
        context.meta[CONFIG] = before
        return configured(path).path


def test_the_configuration_that_is_named_takes_effect(scratch):
    """`--config` behind the command wins over the one before it, which wins over none."""
    one, two = scratch / "one.json", scratch / "two.json"
    one.write_text("{}")
    two.write_text("{}")

    assert (one, two, one, None) == (named(one), named(before="two.json"), named(one, before="two.json"), named())


@pytest.mark.parametrize("words", [["run", "hello", "--config", "a.json"], ["--config", "a.json", "run", "hello"]])
def test_config_stands_before_or_behind_the_command(cli, scratch, words):
    """Both places of `--config` name the same file."""
    (scratch / "a.json").write_text('{"host": {"stateFolder": "elsewhere"}}')
    ran = cli(*words)

    assert (0, True) == (ran.code, (scratch / "elsewhere").is_dir())


def test_a_person_is_asked_about_a_configuration_that_was_found(cli, found):
    """On a terminal a summary is shown, harmless, on stderr; yes is remembered, and nobody is asked again."""
    first = cli("run", "hello", "--json", stdin="y\n", terminal=True)

    assert (0, "completed") == (first.code, first.json["status"])
    assert "This configuration was found here:\n" in first.err
    assert ("Use it from now on?" in first.err, "\u202e" in first.err, '"evil\\u202e"' in first.err) == (
        True,
        False,
        True,
    )
    assert (0, False) == ((again := cli("run", "hello", terminal=True)).code, "Use it" in again.err)


def test_a_person_who_says_no_is_obeyed(cli, found):
    """No leaves the configuration unconfirmed, with the exit code of configuration."""
    ran = cli("run", "hello", stdin="n\n", terminal=True)

    assert (3, "") == (ran.code, ran.out.strip())


def test_a_change_is_said(cli, found):
    """A confirmed configuration that was changed is asked about again, and the question says so."""
    cli("run", "hello", stdin="y\n", terminal=True)
    found.write_text(json.dumps({"provider": {"kind": "offline", "model": "other"}}))
    ran = cli("run", "hello", stdin="y\n", terminal=True)

    assert (0, True) == (ran.code, "This configuration was changed after it was confirmed:\n" in ran.err)


@pytest.mark.parametrize("level", [*LEVELS, " INFO "])
def test_the_level_of_the_log_is_that_of_the_environment(monkeypatch, level):
    """BEAVER_LOG_LEVEL says from which level on lines are written to stderr."""
    monkeypatch.setenv("BEAVER_LOG_LEVEL", level)
    set_up_log()
    logger = logging.getLogger(LOGGER_NAME)

    assert (level.strip().upper(), 1, False) == (
        logging.getLevelName(logger.level),
        len(logger.handlers),
        logger.propagate,
    )


def test_an_unknown_level_is_an_error_of_usage(cli, monkeypatch):
    """A level that there is not is refused with those that there are."""
    monkeypatch.setenv("BEAVER_LOG_LEVEL", "loud")
    ran = cli("run", "hello")

    said = "BEAVER_LOG_LEVEL must be one of debug, info, warning, error, critical."
    assert (2, "", True) == (ran.code, ran.out, said in ran.err)


@pytest.mark.parametrize(("level", "heard"), [(None, True), ("critical", False)])
def test_warnings_go_to_stderr(cli, install, configured, monkeypatch, *, level, heard):
    """A failing plugin is a warning on stderr by default; the answer alone is on stdout."""
    install("noisy", NOISY)
    configured()
    if level:
        monkeypatch.setenv("BEAVER_LOG_LEVEL", level)
    ran = cli("run", "hello")

    assert (0, "I was given nothing about that.\n") == (ran.code, ran.out)
    assert (heard, False) == (
        "WARNING event=beaver_hooks." in ran.err and "plugin=noisy" in ran.err,
        "content" in ran.err,
    )


def test_the_agent_is_closed_whatever_happens(configured):
    """What is raised meanwhile comes out, and the agent is closed before."""
    configured()
    seen = []

    async def work():
        with click.Context(beaver):
            from beaver_hooks.cli.common import configured as loaded

            async with opened(loaded(None)) as engine:
                seen.append(engine)
                raise LookupError("meanwhile")

    with pytest.raises(LookupError, match="meanwhile"):
        in_loop(work())
    with pytest.raises(Exception, match="not open"):
        seen[0].status  # noqa: B018 - asking is the test
