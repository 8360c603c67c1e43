"""What a user asks of memory: how it is, off and on, and the commands of the plugins."""

from types import SimpleNamespace

import attrs
import pytest

from beaver_hooks.agent.commands import MemoryCommands
from beaver_hooks.agent.factory import EngineLoader
from beaver_hooks.config import Config, LoadedConfig, Memory, Plugins
from beaver_hostspecs import Command, CommandContext, NotAllowed, NotOffered, PluginError, PluginFailed, Trust
from beaver_hostspecs.testing import Fault, FaultPlugin, FrozenClock, RecordingPlugin

IN_SESSION = CommandContext(session="s", user="u", trust=Trust.FULL)
ON = "Memory is on for this session."
OFF = "Memory is off for {}: nothing is recalled, kept or shown, and no memory tool runs. {} switches it on again{}."
OFF_HERE = OFF.format("this session", "`/memory on`", "")
OFF_FOR_ALL = OFF.format("all sessions of this user", "`beaver memory on`", "; add --user ID if the user has an id")


async def say(words, context, _report):
    return f"{'+'.join(words)} {context.session} {context.user} {context.trust.value}"


async def fail(_words, _context, _report):
    raise ValueError("of the plugin")


async def refuse(_words, _context, _report):
    raise PluginError("say which one")


SAY = Command(name="say", summary="say it", run=say)
FAIL = Command(name="failing", summary="fail", run=fail)
REFUSE = Command(name="refusing", summary="refuse", run=refuse)


def overview(run):
    return Command(name="overview", summary="what is shown in the overview of all", run=run)


@pytest.fixture
async def load(tmp_path):
    engines = []

    async def make(**plugins):
        config = Config(memory=Memory(mode="curated", explicit=True), plugins=Plugins(disabled=("tally",)))
        folder = tmp_path / ".beaver"
        loaded = LoadedConfig(config=config, path=None, trusted_by=None, state_folder=folder)
        engines.append(await EngineLoader(loaded, plugins=plugins, clock=FrozenClock(), environment={}).load())
        return MemoryCommands(engines[-1])

    yield make
    for engine in engines:
        await engine.close()


async def refusal(commands, *words, context=IN_SESSION):
    with pytest.raises(NotOffered) as error:
        await commands.run(words, context)
    return str(error.value)


async def test_the_overview_shows_every_plugin(load):
    """The overview shows each plugin's health in a column, the session's memory, and the available commands."""
    commands = await load(p=RecordingPlugin(commands=[SAY]), longer_name=RecordingPlugin())
    lines = (await commands.run([], IN_SESSION)).splitlines()

    shown = [line for line in lines if not line.startswith(("tally", "gateway", "local"))]
    assert {"curated      ok", "p            ok", "longer_name  ok"} == {*shown[:3]}
    assert [ON] == shown[3:-1]
    assert shown[-1].startswith("Commands: off, on; plugins with commands: ")
    assert {"p", "curated"} == {*shown[-1].removesuffix(".").rpartition(": ")[2].split(", ")}


@pytest.mark.shows("003-019")
async def test_a_plugin_shows_what_it_has(load):
    """A plugin's command `overview` gets the session and no words, and its answer stands below the plugin's health."""

    async def two_lines(words, context, _report):
        return f"words: {len(words)}\nsession: {context.session}"

    commands = await load(p=RecordingPlugin(commands=[overview(two_lines), SAY]))
    lines = (await commands.run([], IN_SESSION)).splitlines()
    place = lines.index("p        ok")

    assert ["p        ok", "  words: 0", "  session: s"] == lines[place : place + 3]


async def test_an_overview_that_fails_costs_itself_alone(load):
    """The overview names a plugin whose own overview raises, and shows the others."""
    commands = await load(p=RecordingPlugin(commands=[overview(fail)]), q=RecordingPlugin(commands=[overview(say)]))
    lines = (await commands.run([], IN_SESSION)).splitlines()

    assert "  Its overview cannot be shown (ValueError); `beaver doctor` shows the details." in lines
    assert "   s u full" in lines
    assert ON in lines


async def test_a_command_without_its_plugin(load):
    """A command that only one plugin has is run without the plugin's name; the name of a plugin comes first."""
    commands = await load(p=RecordingPlugin(commands=[SAY]), say2=RecordingPlugin())

    assert "a+b s u full" == await commands.run(["say", "a", "b"], IN_SESSION)
    assert "`say2` has no commands. It is ok." == await commands.run(["say2"], IN_SESSION)


async def test_a_command_that_several_have(load):
    """If several plugins have a command, the error lists the full form for each of them."""
    commands = await load(p=RecordingPlugin(commands=[SAY]), q=RecordingPlugin(commands=[SAY]))

    expected = "several plugins have a command `say`; write `/memory p say a b` or `/memory q say a b`"
    assert expected == await refusal(commands, "say", "a", "b")
    assert "(did you mean `say`?)." in await refusal(commands, "saay")


async def test_outside_of_a_session_nothing_is_said_of_one(load):
    """Without a session the overview shows the plugins and not the state of a session's memory."""
    commands = await load()

    assert ON not in await commands.run([], CommandContext())


@pytest.mark.parametrize(
    ("turns", "more"),
    [
        (1, ""),
        (3, " (3 in a row); before_prompt is suspended until 2026-01-02 12:00:30 UTC and then tried again"),
    ],
)
async def test_a_degraded_plugin_is_shown_with_since_when(load, turns, more):
    """A fault shows in the overview with its hook, and a suspension with its end."""
    commands = await load(p=FaultPlugin(Fault.RAISE, "before_prompt"))
    for _ in range(turns):
        await commands._engine.host.open_turn("hello", session="s", trust="full")
    (line,) = [line for line in (await commands.overview(CommandContext())).splitlines() if line.startswith("p ")]

    expected = f"degraded since 2026-01-02 12:00:00 UTC: before_prompt: raised{more}"
    assert ("p", expected) == tuple(line.split(maxsplit=1))


async def test_a_host_that_is_not_well_is_no_plugin(load):
    """The host's own health is not in the list of memories."""
    commands = await load()

    assert "host" not in {line.split()[0] for line in (await commands.overview(CommandContext())).splitlines()}


@pytest.mark.shows("003-022")
async def test_off_and_on(load):
    """`off` and `on` switch the session's memory, also before its first prompt, and make no session in the store."""
    commands = await load(p=RecordingPlugin())
    other = CommandContext(session="other", user="u", trust=Trust.FULL)

    assert [OFF_HERE, ON] == [await commands.run([word], IN_SESSION) for word in ("off", "on")]
    await commands.run(["off"], IN_SESSION)
    assert OFF_HERE in await commands.overview(IN_SESSION)
    assert ON in await commands.overview(other)
    assert () == await commands._engine.sessions.list()


async def test_off_without_a_session_is_for_all_sessions_of_the_user(load):
    """`off` without a session switches memory off in every session of this user, and of no other user."""
    commands, everywhere = await load(p=RecordingPlugin()), CommandContext(user="u", trust=Trust.FULL)
    said = [await commands.run(["off"], everywhere)]
    in_one = await commands.overview(IN_SESSION)
    nobody = await commands.overview(CommandContext(session="s", trust=Trust.FULL))
    # Switching one session on has no effect here: the command names the one that has.
    said.append(await commands.run(["on"], IN_SESSION))
    said.append(await commands.run(["on"], everywhere))

    remedy = "`beaver memory on` switches it on again; add --user ID if the user has an id."
    in_all = f"Memory is off for all sessions of this user. {remedy}"
    assert [OFF_FOR_ALL, in_all, "Memory is on for all sessions of this user."] == said
    assert (True, True) == (in_all in in_one, ON in nobody)
    assert ON in await commands.overview(IN_SESSION)


async def test_off_holds_for_a_session_that_the_owner_goes_on_with(load):
    """`off` in a session holds for its user and for the owner at the terminal, who need not name the user."""
    commands = await load()
    engine = commands._engine
    await engine.sessions.ensure("s", "u")
    asked = [CommandContext(session="s", user=user, trust=Trust.FULL) for user in ("u", None, "other")]
    for context in asked[:2]:
        await commands.run(["off"], context)
        off = [engine.host.is_memory_off(session="s", user=each.user) for each in asked]
        await commands.run(["on"], context)
        on = [engine.host.is_memory_off(session="s", user=each.user) for each in asked]

        assert ([True, True, False], [False] * 3) == (off, on)


async def test_while_it_is_off_no_command_runs(load):
    """`on` is the only one that does; the overview shows how the plugins are, and nothing that they hold."""
    commands = await load(p=RecordingPlugin(commands=[SAY, overview(say)]))
    await commands.run(["off"], IN_SESSION)
    shown = await commands.overview(IN_SESSION)
    for words in (["p", "say"], ["say"], ["curated", "show"]):
        with pytest.raises(
            NotAllowed,
            match="memory is off for this session or user; `/memory on` or `beaver memory on` switches it on",
        ):
            await commands.run(words, IN_SESSION)

    assert (True, False) == ("p        ok" in shown, "   s u full" in shown)
    assert ON == await commands.run(["on"], IN_SESSION)
    assert "a s u full" == await commands.run(["say", "a"], IN_SESSION)


async def test_commands_are_for_those_whom_they_allow(load):
    """A command that refuses the caller does not run, and its overview is not shown."""
    owners = attrs.evolve(overview(say), allows=lambda caller: caller.trust is Trust.FULL)
    commands, stranger = await load(p=RecordingPlugin(commands=[owners])), attrs.evolve(IN_SESSION, trust=Trust.PUBLIC)
    shown = ["  s u" in await commands.overview(each) for each in (IN_SESSION, stranger)]
    with pytest.raises(
        NotAllowed, match="the command `overview` of the plugin `p` is not allowed for the trust `public`"
    ):
        await commands.run(["p", "overview"], stranger)

    assert [True, False] == shown


async def test_the_commands_of_a_plugin_are_listed(load):
    """The name of a plugin alone lists its commands in columns, or says that it has none."""
    commands = await load(p=RecordingPlugin(commands=[SAY, FAIL]), silent=RecordingPlugin())

    assert "p say      say it\np failing  fail" == await commands.run(["p"], IN_SESSION)
    assert "`silent` has no commands. It is ok." == await commands.run(["silent"], IN_SESSION)


@pytest.mark.shows("003-035")
async def test_a_command_gets_the_rest_of_the_words(load):
    """A plugin's command gets the words after its name and the context; the user sees its answer."""
    commands = await load(p=RecordingPlugin(commands=[SAY]))

    assert "a+--b+off s u full" == await commands.run(["p", "say", "a", "--b", "off"], IN_SESSION)


async def test_an_error_of_a_command_names_the_plugin(load):
    """The user sees a plugin's own `PluginError`, and only the type of any other error; the cause stays attached."""
    commands = await load(p=RecordingPlugin(commands=[FAIL, REFUSE]))
    said = []
    for name in ("failing", "refusing"):
        with pytest.raises(PluginFailed) as raised:
            await commands.run(["p", name], IN_SESSION)
        said.append((str(raised.value), type(raised.value.__cause__)))

    known = "`beaver audit tail` shows the failure"
    assert [
        (f"`p failing` failed unexpectedly (ValueError); {known}", ValueError),
        ("`p refusing`: say which one", PluginError),
    ] == said


async def test_unknown_names_are_refused(load):
    """The error for an unknown name lists the probable name and the known ones."""
    commands = await load(notes=RecordingPlugin())
    known = "Commands: off, on; plugins with commands: curated."

    assert f"there is no plugin or command `nots` (did you mean `notes`?). {known}" == await refusal(commands, "nots")
    assert f"there is no plugin or command `xyzzy`. {known}" == await refusal(commands, "xyzzy")
    assert f"there is no plugin or command `host`. {known}" == await refusal(commands, "host")
    assert "the plugin `notes` has no such command; its commands are: none" == await refusal(commands, "notes", "sya")


async def test_a_plugin_out_of_service_is_refused_with_the_reason(load):
    """The error for a plugin out of service gives its health, and does not call it unknown."""
    commands = await load()
    await commands._engine.host.register("p", FaultPlugin(Fault.RAISE, "stop"))
    await commands._engine.host.unregister("p")

    said = "`p` cannot be used: it is degraded since 2026-01-02 12:00:00 UTC: stop: raised. "
    assert (await refusal(commands, "p")).startswith(said)


async def test_without_any_plugin_the_overview_says_so():
    """Without any plugin the overview says that no memory plugin is installed."""
    host = SimpleNamespace(commands={}, offered_commands=lambda _caller: {}, is_memory_off=lambda **_who: False)
    bare = SimpleNamespace(status={}, host=host)

    assert "No memory plugin is installed.\nCommands: off, on." == await MemoryCommands(bare).overview(CommandContext())
