"""A blank id of a user or a session, from an unset variable for example, is refused, so it never means all users."""

import click
import pytest

from beaver_hooks.cli.app import beaver

OPTIONS = {"--user", "--session", "--project"}
NEEDED = {
    "run": ["hello"],
    "add": ["a title"],
    "search": ["words"],
    "forget": ["1"],
    "pin": ["1"],
    "unpin": ["1"],
    "show": ["1"],
    "explain": ["1"],
    "migrate": ["--to", "postgresql://localhost/memories", "--tenant", "acme"],
}
"""What a command must be given besides."""

OFFERED = [(("memory", "curated", "show"), option) for option in ("--user", "--session")]
"""A command that a plugin offers in conversations is in no group: it is known when the plugin is loaded."""


def places(group=beaver, path=()):
    """Return every command with each option of it that takes an id, those of plugins too."""
    context, found = click.Context(group), []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            found += places(command, (*path, name))
        found += [((*path, name), each) for option in command.params for each in OPTIONS & {*option.opts}]
    return sorted(found)


PLACES = [*places(), *OFFERED]


def test_the_commands_are_found():
    """The tests below cover the commands of the host and of its plugins."""
    some = {
        (("run",), "--user"),
        (("memory", "off"), "--user"),
        (("mcp",), "--session"),
        (("hooks", "install"), "--user"),
    }

    assert some <= {*PLACES}
    assert {"curated", "gateway", "local"} <= {path[0] for path, _ in PLACES}


@pytest.mark.parametrize(("path", "option"), PLACES, ids=[f"{' '.join(path)} {option}" for path, option in PLACES])
def test_a_blank_id_is_refused(cli, configured, scratch, path, option):
    """A blank id is an error of usage that names the option, and no state folder is made."""
    configured()
    said = []
    for blank in ("", " ", "\t\n"):
        ran = cli(*path, *NEEDED.get(path[-1], []) if path not in {each for each, _ in OFFERED} else (), option, blank)
        said.append((ran.code, ran.out, f"Invalid value for '{option}'" in ran.err))

    assert ([(2, "", True)] * 3, False) == (said, (scratch / ".beaver").exists())


@pytest.mark.parametrize("word", ["off", "on"])
@pytest.mark.parametrize("more", [[], ["--exact"]])
def test_a_blank_session_is_not_switched(cli, configured, scratch, word, more):
    """`beaver memory off ""` is an error of usage and switches no session."""
    configured()
    ran = [cli("memory", word, blank, *more) for blank in ("", " ")]

    assert [(2, "", True)] * 2 == [(each.code, each.out, "An id must not be blank; leave" in each.err) for each in ran]
    assert not (scratch / ".beaver").exists()
