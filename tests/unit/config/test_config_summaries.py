"""What of a configuration is shown as a program."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.config.summaries import summarise


def shown(key: str, value: object) -> list[str]:
    summary = summarise({key: value}, Path("/x"), changed=False)
    return [f"{each.kind} {each.name}".rstrip() for each in summary.entries]


@pytest.mark.parametrize(
    "key",
    [
        "command", "program", "executable", "cmd", "CMD", "startcmd", "run", "exec", "script", "shell", "bin", "binary",
        "interpreter", "entrypoint", "buildScript", "pre-run", "on_start_shell", "runHTTPScript", "scripts", "commands",
    ],
)  # fmt: skip
def test_programs_by_whatever_name(key):
    """What is started is shown as a program, under the unusual names for one too."""
    assert shown(key, "/bin/sh -c canary") == ["program /bin/sh"]


@pytest.mark.parametrize("key", ["transcript", "description", "seashell", "shellName", "runAs", "robin", "s", "1", ""])
def test_what_only_sounds_like_a_program(key):
    """A text under a key that merely has such letters in it is not shown."""
    assert shown(key, "canary") == ["text"]


def test_lists_of_programs():
    """Of a command in a list the first word is shown; of several commands the first word of each."""
    assert shown("cmd", ["/bin/sh", "canary"]) == ["program /bin/sh", "text"]
    assert shown("scripts", ["one canary", "two canary"]) == ["program one", "program two"]
    assert shown("shell", {"token": "canary"}) == ["text"]


@given(st.text(max_size=30).filter(lambda key: key != "$schema"))
def test_any_key(key):
    """Whatever a key is, its text is an entry, and after the first word nothing of it is shown."""
    (entry,) = shown(key, "first canary")

    assert "canary" not in entry
