"""The root of the command line: the table of commands, the plugins' groups, and the moment of each import."""

import subprocess
import sys
from importlib import import_module

import click
import pytest

from beaver_hooks import __version__
from beaver_hooks.cli.app import COMMANDS, EXIT_CODES, beaver, plugin_group

BROKEN = "raise ImportError('this must not be imported')"

GROUP = """
    import click
    from beaver_hostspecs import hookimpl

    class Plugin:
        answer = "not started"

        @hookimpl
        async def start(self):
            self.answer = "of the plugin in service"

    @click.group()
    def group():
        "What the plugin adds."

    @group.command()
    @click.pass_obj
    def ask(shell):
        "Ask the plugin."
        async def asked(plugin):
            return plugin.answer
        click.echo(shell.call(asked))

    @group.command()
    def count():
        "Return a number, which is no exit code."
        return 7

    @group.command()
    @click.pass_context
    def leave(ctx):
        "Leave with an exit code."
        ctx.exit(9)

    @group.command()
    def harm():
        "Raise."
        raise ValueError("a value that nobody should see")
"""


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_is_there(name):
    """Each name of the table has a module whose command has that name, and whose help begins with its line."""
    command = import_module(f"beaver_hooks.cli.{name}").command

    assert (name, True) == (command.name, command.help.startswith(COMMANDS[name].removesuffix(".")))


@pytest.mark.parametrize("name", ["init", "chat", "run", "memory"])
def test_the_help_of_a_command_fits_into_80_columns(cli, name):
    """Each command shows its line of the table, and no line of its help is longer than 80 columns."""
    ran = cli(name, "--help")

    assert (0, "", []) == (ran.code, ran.err, [line for line in ran.out.splitlines() if len(line) > 80])
    assert COMMANDS[name] in " ".join(ran.out.split())


def test_the_version(cli):
    """`--version` prints the version and nothing else."""
    assert (0, f"beaver {__version__}\n") == (cli("--version").code, cli("--version").out)


def test_the_help_lists_every_command_and_exit_code(cli):
    """`--help`, `-h` and no argument at all list the commands in the order of the table, and the exit codes."""
    ran = cli("--help")
    listed = [line.split()[0] for line in ran.out.partition("Commands:\n")[2].splitlines() if line[:3].strip()]

    assert [*COMMANDS][:3] == listed[:3]
    assert all(f"\n  {name} " in ran.out for name in COMMANDS)
    assert all(f"  {line.strip()}\n" in ran.out for line in EXIT_CODES.splitlines()[3:])
    assert ran == cli("-h")
    assert (2, ran.out.splitlines()[0]) == (cli().code, cli().err.splitlines()[0])


def test_the_help_imports_no_command_and_no_plugin(install):
    """`--help` lists a plugin's commands without importing them, its plugin, or any module of a command."""
    install("fragile", BROKEN, group="group")
    code = (
        "import sys; from beaver_hooks.cli.errors import run; code = run(['--help']);"
        "print(code, sorted(each for each in sys.modules if each.startswith(('beaver', 'installed_'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "  fragile  Commands of the plugin `fragile`.\n" in done.stdout.partition("\nCommands of plugins:\n")[2]
    rooms = ("app", "codes", "errors", "signals", "streams")
    own = ["beaver_hooks", "beaver_hooks.cli", *(f"beaver_hooks.cli.{each}" for each in rooms)]
    assert f"0 {own}" == done.stdout.splitlines()[-1]


def test_without_commands_of_plugins_none_are_spoken_of(cli, monkeypatch):
    """Where no plugin adds a command, the help has no section for plugins."""
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [])

    assert (0, False) == ((ran := cli("--help")).code, "Commands of plugins" in ran.out)


def test_completion_imports_no_command_and_no_plugin(install, monkeypatch):
    """Completion offers the names of commands, those of plugins too, without importing any of them."""
    install("charming", BROKEN, group="group")
    monkeypatch.setattr("beaver_hooks.cli.app.import_module", None)
    completed = beaver.shell_complete(click.Context(beaver), "ch")

    expected = [("chat", COMMANDS["chat"]), ("check", COMMANDS["check"]), ("charming", None)]
    assert expected == [(each.value, each.help) for each in completed]
    assert ["--config"] == [each.value for each in beaver.shell_complete(click.Context(beaver), "--c")]


@pytest.mark.parametrize(
    ("word", "meant"),
    [("chatt", "Did you mean 'chat'?"), ("fragil", "Did you mean 'fragile'?"), ("xyzzy", "`beaver --help` lists")],
)
def test_an_unknown_command_suggests(cli, install, word, meant):
    """A mistyped command is an error of usage that suggests the nearest command, those of plugins included."""
    install("fragile", BROKEN, group="group")
    ran = cli(word)

    assert (2, "") == (ran.code, ran.out)
    assert f"No such command '{word}'. {meant}" in ran.err


def test_an_unknown_option_is_an_error_of_usage(cli):
    """A mistyped option of the root is an error of usage from click."""
    ran = cli("--verson")

    assert (2, True) == (ran.code, "No such option '--verson'" in ran.err or "No such option: --verson" in ran.err)


def test_the_group_of_a_plugin_works_on_the_plugin_in_service(cli, install, configured):
    """A plugin's command gets a shell that calls a function with the plugin, in a host that is open meanwhile."""
    install("lent", GROUP, group="group")
    configured()

    assert (0, "of the plugin in service\n", "") == cli("lent", "ask")


def test_the_group_of_a_plugin_uses_the_configuration_that_is_named(cli, install, scratch):
    """A plugin's command loads the configuration that `--config` before it names."""
    install("lent", GROUP, group="group")
    (scratch / "other.json").write_text('{"plugins": {"disabled": ["lent"]}}')

    assert 2 == cli("--config", "other.json", "lent", "ask").code


def test_what_a_command_of_a_plugin_returns_is_no_exit_code(cli, install):
    """The number that a plugin's command returns is ignored; the code that it exits with becomes the exit code."""
    install("lent", GROUP, group="group")

    assert [0, 9] == [cli("lent", "count").code, cli("lent", "leave").code]


def test_a_command_of_a_plugin_that_raises_is_unexpected(cli, install):
    """The error of a plugin's command is named by its type only."""
    install("lent", GROUP, group="group")

    expected = (
        "Error: an unexpected error happened (ValueError). Run the command again with --debug to see the traceback.\n"
    )
    assert (1, "", expected) == cli("lent", "harm")


@pytest.mark.parametrize(("code", "why"), [(BROKEN, "ImportError"), ("group = 1", "they are not a click command")])
def test_commands_that_cannot_be_loaded_are_named(cli, install, code, why):
    """Commands of a plugin that fail to import, or are no click command, exit with 6 and name the remedy."""
    install("fragile", code, group="group")

    said = f"the commands of the plugin `fragile` cannot be loaded ({why}); update or remove its distribution."
    assert (6, "", f"Error: {said}\n") == cli("fragile", "ask")


def test_a_plugin_cannot_take_the_name_of_a_command(install):
    """A plugin's group with the name of a built-in command is neither listed nor loaded."""
    install("chat", BROKEN, group="group")
    context = click.Context(beaver)

    assert (1, "chat") == (beaver.list_commands(context).count("chat"), beaver.get_command(context, "chat").name)


def test_only_the_group_that_is_asked_for_is_imported(install):
    """Loading one plugin's group does not import that of another plugin."""
    install("fragile", BROKEN, group="group")
    install("lent", GROUP, group="group")

    assert ("group", None) == (plugin_group("lent").name, plugin_group("absent"))
