"""Opening: the choice of the configuration, the question about it, the level of the log, and the end of the agent."""

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
    """A configuration in the working directory that the user has not confirmed."""
    (scratch / ".beaver").mkdir()
    path = scratch / ".beaver" / "config.json"
    path.write_text(json.dumps({"provider": {"kind": "offline", "model": "evil\u202e"}}))
    return path


def named(path=None, *, before=None):
    """Return the file that takes effect, for a path behind the command and one before it."""
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
    """On a terminal the user sees a harmless summary on stderr and is asked; after a yes no run asks again."""
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
    """A no leaves the configuration unconfirmed, and the command exits with 3."""
    ran = cli("run", "hello", stdin="n\n", terminal=True)

    assert (3, "") == (ran.code, ran.out.strip())


def test_a_change_is_said(cli, found):
    """The question about a changed configuration says that it was changed after its confirmation."""
    cli("run", "hello", stdin="y\n", terminal=True)
    found.write_text(json.dumps({"provider": {"kind": "offline", "model": "other"}}))
    ran = cli("run", "hello", stdin="y\n", terminal=True)

    assert (0, True) == (ran.code, "This configuration was changed after it was confirmed:\n" in ran.err)


@pytest.mark.parametrize("level", [*LEVELS, " INFO "])
def test_the_level_of_the_log_is_that_of_the_environment(monkeypatch, level):
    """BEAVER_LOG_LEVEL sets the lowest level that is written to stderr."""
    monkeypatch.setenv("BEAVER_LOG_LEVEL", level)
    set_up_log()
    logger = logging.getLogger(LOGGER_NAME)

    assert (level.strip().upper(), 1, False) == (
        logging.getLevelName(logger.level),
        len(logger.handlers),
        logger.propagate,
    )


def test_an_unknown_level_is_an_error_of_usage(cli, monkeypatch):
    """An unknown level is refused with the list of levels."""
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
    """An error inside the block closes the agent and reaches the caller."""
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
