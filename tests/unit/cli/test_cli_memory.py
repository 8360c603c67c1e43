"""`beaver memory`: the health of each memory, its switch, and the commands of the plugins."""

import json
import os
from pathlib import Path

import pytest
from processes import run_beaver

BOTH = """
    import click
    from pathlib import Path
    from beaver_hostspecs import Command, hookimpl

    async def say(words, context, report):
        return f"{words} {context.session} {context.user} {context.trust.value}"

    async def fail(words, context, report):
        raise ValueError("a value that nobody should see")

    class Plugin:
        @hookimpl
        def provide_commands(self):
            return [Command(name="say", summary="say the words", run=say), Command(name="ask", summary="a", run=fail)]

        @hookimpl
        async def before_prompt(self, turn):
            with Path("recalled").open("a") as file:
                file.write(f"{turn.prompt}\\n")

        @hookimpl
        async def after_prompt(self, turn):
            with Path("kept").open("a") as file:
                file.write(f"{turn.prompt}\\n")

    class Silent:
        @hookimpl
        async def start(self):
            pass

    class Absent:
        @hookimpl
        def configure(self, setup):
            raise ValueError("no")

    @click.group()
    def group():
        "What the plugin adds."

    @group.command()
    @click.option("--loud", is_flag=True)
    @click.pass_obj
    def ask(shell, loud):
        "Ask the plugin."
        async def asked(plugin):
            return type(plugin).__name__
        click.echo(f"{shell.call(asked)} {loud}")

    @click.command()
    def single():
        "Not a group."
"""


@pytest.fixture
def both(install, configured):
    """An installed plugin with hooks and commands, and a configuration."""
    install("both", BOTH)
    configured()


def test_the_overview(cli, install, configured):
    """The overview shows each plugin with its health, those out of service too, and lists the commands."""
    install("both", BOTH)
    install("absent", BOTH, plugin="Absent")
    configured()
    ran = cli("memory")
    *shown, known = ran.out.splitlines()
    health = dict(line.split(maxsplit=1) for line in shown)

    assert ("ok", "ok", "unavailable since") == (health["curated"], health["both"], health["absent"][:17])
    assert (0, "Commands: off, on; plugins with commands") == (ran.code, known.rpartition(": ")[0])
    assert {"both", "curated"} == {*known.rpartition(": ")[2].removesuffix(".").split(", ")}


def test_the_configuration_may_stand_in_three_places(cli, scratch):
    """`--config` works before `memory`, behind it, and behind its commands."""
    (scratch / "a.json").write_text('{"host": {"stateFolder": "elsewhere"}}')
    cli("run", "hello", "--session", "s", "--config", "a.json")
    for words in (
        ["--config", "a.json", "memory", "off", "s"],
        ["memory", "--config", "a.json", "on", "s"],
        ["memory", "off", "s", "--config", "a.json"],
    ):
        assert 0 == cli(*words).code

    assert (True, False) == ((scratch / "elsewhere").is_dir(), (scratch / ".beaver").exists())


OFF = "Memory is off for {}: nothing is recalled, kept or shown, and no memory tool runs. {} switches it on again{}.\n"
OFF_HERE = OFF.format("this session", "`/memory on`", "")
OFF_FOR_ALL = OFF.format("all sessions of this user", "`beaver memory on`", "; add --user ID if the user has an id")


def beaver(*words):
    """Run `beaver` as a process of its own; return what it prints."""
    ran = run_beaver(*words, cwd=Path.cwd(), env=dict(os.environ))
    assert ("", 0) == (ran.err, ran.code)
    return ran.out


def test_off_and_on_hold_for_a_session_across_processes(cli, both, scratch):
    """A session that one process switches off stays off in other processes, until a process switches it on again."""
    cli("run", "zero", "--session", "quiet")
    off = beaver("memory", "off", "quiet")
    cli("run", "one", "--session", "quiet")
    cli("run", "two", "--session", "loud")
    on = cli("memory", "on", "quiet")
    cli("run", "three", "--session", "quiet")

    assert OFF_HERE == off
    assert (0, "Memory is on for this session.\n", "") == on
    assert ["zero\ntwo\nthree\n"] * 2 == [(scratch / name).read_text() for name in ("recalled", "kept")]


def test_off_without_a_session_is_for_all_sessions_of_a_user(cli, both, scratch):
    """Off without SESSION holds for all sessions of the given user, or for those without a user, new and old ones."""
    said = []
    for switched, user in (((), ()), (("--user", "ada"), ("--user", "ada"))):
        said.append(beaver("memory", "off", *switched))
        cli("run", f"off {user}", *user)
        cli("run", f"elsewhere {user}", "--user", "bob")
        said.append(cli("memory", "on", *switched).out)
        cli("run", f"on {user}", *user)

    assert [OFF_FOR_ALL, "Memory is on for all sessions of this user.\n"] * 2 == said
    expected = "".join(f"elsewhere {user}\non {user}\n" for user in ((), ("--user", "ada")))
    assert [expected] * 2 == [(scratch / name).read_text() for name in ("recalled", "kept")]


def test_off_before_anything_is_stored(cli, both, scratch):
    """With `--exact` any id can be switched off: a session of another agent, or a future one."""
    off = beaver("memory", "off", "mine", "--exact", "--user", "ada")
    for session, user in (("mine", "ada"), ("mine-2", "ada"), ("mine", "bob")):
        cli("run", f"{session} {user}", "--session", f"{session}", "--user", user)
    listed = cli("sessions", "list", "--json").json["sessions"]

    assert OFF_HERE == off
    assert "mine-2 ada\n" == (scratch / "recalled").read_text()
    # Ada began the session, so bob was refused.
    assert {"mine", "mine-2"} == {each["id"] for each in listed}
    assert (0, "Memory is on for this session.\n", "") == cli("memory", "on", "mine", "--exact", "--user", "ada")


def test_an_exact_id_is_no_beginning(cli, configured):
    """With `--exact` an id is the whole id, also where a stored session begins with it."""
    configured()
    cli("run", "hello", "--session", "quiet")
    cli("memory", "off", "qui", "--exact")
    of_the_stored = cli("memory", "curated", "show", "--session", "quiet")
    of_the_beginning = cli("memory", "curated", "show", "--session", "qui")

    assert (0, 2) == (of_the_stored.code, of_the_beginning.code)


def test_while_it_is_off_the_commands_of_the_plugins_are(cli, both):
    """A command for a session or user whose memory is off is refused with the remedy; for other users it runs."""
    cli("memory", "off", "--user", "ada")
    refused = cli("memory", "both", "say", "--user", "ada")
    other = cli("memory", "both", "say", "--user", "bob")

    said = "Error: memory is off for this session or user; `/memory on` or `beaver memory on` switches it on again.\n"
    assert (2, "", said) == refused
    assert (0, "() None bob full\n", "") == other


def test_the_commands_of_a_plugin(cli, configured):
    """`beaver memory PLUGIN` lists its commands with their lines, and `beaver memory PLUGIN COMMAND` runs one."""
    configured()
    cli("run", "remember that the map hangs in the hall")
    listed, shown = cli("memory", "curated"), cli("memory", "curated", "show")

    assert (0, True) == (listed.code, "\ncurated undo " in listed.out)
    assert (0, True) == (shown.code, "the map hangs in the hall" in shown.out)


def test_words_and_context_reach_the_command(cli, both):
    """`beaver` takes session and user; all other words reach the plugin's command, which runs with full trust."""
    assert (0, "('a', '--b', '--help') None None full\n", "") == cli(
        "memory", "both", "say", "a", "--b", "--", "--help"
    )
    assert (0, "('--x',) s u full\n", "") == cli("memory", "both", "say", "--session", "s", "--user", "u", "--", "--x")


@pytest.mark.parametrize(
    "words", [["--help"], ["-h"], ["a", "--help"], ["--session", "s", "-h"], ["--nonsense", "--help"]]
)
def test_help_runs_nothing(cli, both, scratch, words):
    """Help before `--` names the command that lists the plugin's commands, and opens nothing."""
    ran = cli("memory", "both", "ask", *words)

    assert (0, "", False) == (ran.code, ran.err, (scratch / ".beaver").exists())
    assert "Run the command `ask` of the plugin `both`. `beaver memory both` lists" in ran.out


@pytest.mark.parametrize(
    "words", [["--config", "b.json"], ["a", "--config=b.json"], ["--debug", "a", "--config", "b.json"]]
)
def test_the_configuration_may_stand_behind_a_plugins_command(cli, install, scratch, words):
    """`--config` anywhere before `--` selects the memory that the plugin's command uses."""
    install("both", BOTH)
    (scratch / "b.json").write_text('{"host": {"stateFolder": "elsewhere"}}')
    ran = cli("memory", "both", "say", *words)

    assert (0, True, False) == (ran.code, (scratch / "elsewhere").is_dir(), (scratch / ".beaver").exists())
    assert f"{('a',) if 'a' in words else ()} None None full\n" == ran.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--", "--config", "-h"], ("--config", "-h")),
        (["-"], ("-",)),
        (["a", "--x", "--", "--y"], ("a", "--x", "--y")),
        (["--", "--x", "--"], ("--x", "--")),
    ],
)
def test_what_is_behind_two_dashes_is_the_plugins(cli, both, words, said):
    """Words behind `--` reach the plugin unchanged, and so do words like options behind the first word."""
    assert (0, f"{said} None None full\n", "") == cli("memory", "both", "say", *words)


@pytest.mark.parametrize("words", [["--x"], ["--x", "a"], ["-5"], ["--x", "--", "a"]])
def test_an_unknown_option_before_the_words_is_refused(cli, both, scratch, words):
    """A mistyped option is refused, and no command runs."""
    ran = cli("memory", "both", "say", *words)

    said = f"Error: No such option: {words[0]}. Put the options of the plugin's command after `--`.\n"
    assert (2, "", True, False) == (ran.code, ran.out, ran.err.endswith(said), (scratch / ".beaver").exists())


def test_off_takes_the_beginning_of_an_id_and_makes_no_session(cli, configured):
    """`off` takes the beginning of a stored session's id; an unknown session is refused and is not created."""
    configured()
    cli("run", "hello", "--session", "quiet")
    off, unknown = cli("memory", "off", "qui"), cli("memory", "off", "quite")

    assert (0, 2, "") == (off.code, unknown.code, unknown.out)
    assert "Error: There is no session `quite`; `beaver sessions list` lists the stored ones.\n" == unknown.err
    assert 2 == cli("sessions", "show", "quite").code
    assert OFF_HERE == off.out


def test_a_group_of_its_own_is_merged_with_the_commands(cli, install, configured):
    """A plugin's group and its commands are merged; of two with one name the group's command runs, with its options."""
    install("both", BOTH, group="group")
    configured()
    listed = cli("memory", "both")

    assert (0, "both ask  Ask the plugin\nboth say  say the words\n", "") == listed
    assert (0, "Plugin True\n", "") == cli("memory", "both", "ask", "--loud")
    assert (0, "('a',) None None full\n", "") == cli("memory", "both", "say", "a")


def test_a_single_command_is_no_group(cli, install, configured):
    """A plugin whose entry point is a single command has under `memory` the commands of its conversations."""
    install("both", BOTH, group="single")
    configured()

    assert (0, "both say  say the words\nboth ask  a\n", "") == cli("memory", "both")
    assert (0, "() None None full\n", "") == cli("memory", "both", "say")


def test_the_help_of_a_plugins_commands(cli, install):
    """`beaver memory PLUGIN --help` shows its group without loading the plugin."""
    install("both", BOTH, group="group")
    ran = cli("memory", "both", "--help")

    assert (0, True, True) == (ran.code, "Commands of the plugin `both`" in ran.out, "ask  Ask the plugin." in ran.out)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["curatd"], 2, "Error: there is no plugin or command `curatd` (did you mean `curated`?). Commands: off, on"),
        (["curated", "shwo"], 2, "Error: "),
        (["curated", "undo", "--all"], 2, "No such option: --all. Put the options of the plugin's command after `--`."),
        (["off", "nope"], 2, "Error: Nothing is stored yet; `beaver run` will store sessions in "),
    ],
)
def test_unknown_names_are_refused(cli, configured, *, words, code, said):
    """An unknown plugin, an unknown command and a missing session are errors of usage that name the known ones."""
    configured()
    ran = cli("memory", *words)

    assert (code, "", True) == (ran.code, ran.out, said in ran.err)


def test_a_plugin_that_is_out_of_service_is_no_unknown_one(cli, install, configured):
    """The error for a plugin out of service says since when it is unavailable, not that it is unknown."""
    install("absent", BOTH, plugin="Absent")
    configured()
    ran = cli("memory", "absent", "say")

    assert (2, "", True) == (
        ran.code,
        ran.out,
        "Error: `absent` cannot be used: it is unavailable since " in ran.err,
    )


def test_a_command_that_raises_is_unexpected(cli, both):
    """The error of a plugin's command is named by its type with the plugin and the command, without its text."""
    ran = cli("memory", "both", "ask")

    known = "`beaver audit tail` shows the failure"
    assert (6, "") == (ran.code, ran.out)
    assert ran.err.endswith(f"Error: `both ask` failed unexpectedly (ValueError); {known}.\n")
    assert "nobody" not in ran.err


# --- Without the plugin's name ----------------------------------------------------------------------------------

SHARED = """
    import click
    from pathlib import Path
    from beaver_hostspecs import hookimpl

    Path("imported_{name}").touch()

    class Plugin:
        @hookimpl
        async def start(self):
            pass

    @click.group()
    def group():
        "What the plugin adds."

    @group.command()
    @click.argument("words", nargs=-1)
    @click.option("--loud", is_flag=True)
    @click.pass_obj
    def {command}(shell, words, loud):
        "Do it."
        async def asked(plugin):
            return type(plugin).__module__
        click.echo(f"{{shell.call(asked)}} {{words}} {{loud}}")
"""


def shared(name, command):
    return SHARED.format(name=name, command=command)


def test_the_plugins_name_may_be_left_out(cli, install, configured):
    """A command of only one plugin's group runs without the plugin's name, with its options and its help."""
    install("one", shared("one", "fetch"), group="group")
    install("two", shared("two", "carry"), group="group")
    configured()

    assert cli("memory", "one", "fetch", "a", "--loud") == cli("memory", "fetch", "a", "--loud")
    assert (0, "installed_two ('b',) False\n", "") == cli("memory", "carry", "b")
    assert cli("memory", "two", "carry", "--help").out == cli("memory", "carry", "--help").out


def test_a_command_of_several_plugins_is_not_guessed(cli, install, configured):
    """A command of several plugins is refused, and the error names each full command."""
    install("one", shared("one", "fetch"), group="group")
    install("two", shared("two", "fetch"), group="group")
    configured()
    ran = cli("memory", "fetch")

    said = (
        "Error: Several plugins have a command `fetch`; write `beaver memory one fetch` or `beaver memory two fetch`.\n"
    )
    assert (2, "", True) == (ran.code, ran.out, ran.err.endswith(said))


def test_a_plugin_that_is_disabled_is_not_looked_at(cli, install, configured, scratch):
    """A disabled plugin is not imported, so the command of the other plugin runs."""
    install("one", shared("one", "fetch"), group="group")
    install("two", shared("two", "fetch"), group="group")
    path = configured()
    raw = json.loads(path.read_text())
    raw["plugins"]["disabled"].append("two")
    path.write_text(json.dumps(raw))

    assert (0, "installed_one () False\n", "") == cli("memory", "fetch")
    assert (True, False) == ((scratch / "imported_one").exists(), (scratch / "imported_two").exists())


def test_ours_and_the_names_of_plugins_come_first(cli, install, configured):
    """A plugin's command hides neither `off` nor a plugin with the same name."""
    install("one", shared("one", "off"), group="group")
    install("two", shared("two", "silent"), group="group")
    install("silent", BOTH, plugin="Silent")
    configured()

    assert (0, "`silent` has no commands. It is ok.\n", "") == cli("memory", "silent")
    assert (0, OFF_FOR_ALL, "") == cli("memory", "off")


def test_a_group_that_cannot_be_loaded_is_passed_over(cli, install, configured):
    """A group that fails to load is reported on stderr, and the command of the other plugin runs."""
    install("one", shared("one", "fetch"), group="group")
    install("two", "raise ValueError('a value that nobody should see')", plugin=None, group="group")
    install("three", shared("three", "fetch").replace("def fetch", "def carry"), plugin="Plugin", group="nothing")
    configured()
    ran = cli("memory", "fetch")

    said = "Skipped: the commands of the plugin `three` cannot be loaded (AttributeError);"
    assert (0, "installed_one () False\n", True) == (ran.code, ran.out, ran.err.startswith(said))
    assert ("nobody" in ran.err) is False


def test_help_lists_the_commands_of_plugins(cli, install, configured, scratch):
    """`beaver memory --help` lists the commands of each plugin's group, and leaves out disabled plugins."""
    install("one", shared("one", "fetch"), group="group")
    install("two", shared("two", "carry"), group="group")
    install("three", "raise ValueError", plugin=None, group="group")
    path = configured()
    raw = json.loads(path.read_text())
    raw["plugins"]["disabled"].append("two")
    path.write_text(json.dumps(raw))
    helped = cli("memory", "--help")
    path.write_text("{")
    without = cli("memory", "--help")

    listed = "Commands of the plugin `one`:\n  fetch  Do it.\n"
    assert (0, True, False) == (helped.code, helped.out.endswith(listed), "two" in helped.out)
    assert (0, True) == (without.code, helped.out.startswith(without.out))
    assert "may be left out where only one has" in " ".join(helped.out.split())
    assert (True, False) == ((scratch / "imported_one").exists(), (scratch / "imported_two").exists())


def test_completion_loads_no_plugin(cli, install, configured, monkeypatch, capsys):
    """Completion offers our commands and the names of plugins, and imports no plugin."""
    install("one", shared("one", "fetch"), group="group")
    folder = configured().parent
    monkeypatch.setenv("_BEAVER_COMPLETE", "bash_complete")
    given = []
    for typed in ("o", "fetch --"):
        monkeypatch.setenv("COMP_WORDS", f"beaver memory {typed}")
        monkeypatch.setenv("COMP_CWORD", str(2 + typed.count(" ")))
        with pytest.raises(SystemExit, match="0"):
            cli()
        given.append([each.partition(",")[2] for each in capsys.readouterr().out.splitlines()])

    assert ([["off", "on", "one"], ["--help"]], False) == (given, (folder / "imported_one").exists())
