"""A conversation: prompts are answered in its session, lines with a slash are commands, and it knows how memory is."""

import re
from pathlib import Path

import attrs
import pytest
from case_files import rows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from beaver_hooks.agent.conversation import HELP, Conversation, Ended
from beaver_hooks.agent.errors import SessionError, SkillError
from beaver_hooks.agent.factory import EngineLoader
from beaver_hooks.agent.providers import MissingKeyProvider
from beaver_hooks.agent.providers.offline import NOTHING
from beaver_hooks.config import Config, LoadedConfig, Memory, Plugins
from beaver_hooks.config.model import AgentSettings
from beaver_hostspecs import Command, NotAllowed, NotOffered, SystemClock, Trust
from beaver_hostspecs.testing import Fault, FaultPlugin, FrozenClock, RecordingPlugin

DATA = Path(__file__).with_name("data")


async def say(words, context, _report):
    return f"{'+'.join(words)} {context.session} {context.user} {context.trust.value}"


SAY = Command(name="say", summary="say it", run=say)


@pytest.fixture
async def load(tmp_path):
    engines = []

    async def make(*, skills=(), clock=None, **plugins):
        config = Config(
            memory=Memory(mode="curated", explicit=True),
            plugins=Plugins(disabled=("tally",)),
            agent=AgentSettings(skills=skills),
        )
        loaded = LoadedConfig(config=config, path=None, trusted_by=None, state_folder=tmp_path / ".beaver")
        loader = EngineLoader(loaded, plugins=plugins, clock=clock or FrozenClock(), environment={})
        engines.append(await loader.load())
        return Conversation(engine=engines[-1], session="s", user="u")

    yield make
    for engine in engines:
        await engine.close()


@pytest.fixture
def folder(tmp_path):
    """The folder of skills beside the state, with three of them, one of which cannot be read."""
    for name, text in {"one": "Be one.", "two": "Be two.", "bad": ""}.items():
        (tmp_path / ".beaver" / "skills" / name).mkdir(parents=True)
        skill = f"---\nname: {name}\ndescription: about {name}\n---\n{text}\n"
        (tmp_path / ".beaver" / "skills" / name / "SKILL.md").write_text(skill)
    return tmp_path / ".beaver" / "skills"


async def test_what_is_said_is_answered_in_the_session(load):
    """The answer is the newest one, its pieces arrive, and the turn is the owner's at the terminal."""
    plugin, pieces = RecordingPlugin(), []
    talk = await load(p=plugin)
    result = await talk.say("hello", pieces.append)
    turn = plugin.calls_of("before_prompt")[0].arguments["turn"]

    assert (NOTHING, NOTHING, result) == (result.text, "".join(pieces), talk.last)
    assert ("s", "u", "hello", Trust.FULL) == (turn.session, turn.user, turn.prompt, turn.trust)


async def test_a_conversation_goes_on(load):
    """A conversation remembers its earlier prompts, and offers them for reuse, oldest first, without the answers."""
    talk = await load(clock=SystemClock())
    nothing = await talk.history()
    await talk.say("the map hangs in the hall")
    second = await talk.say("where hangs the map?")

    assert () == nothing
    assert "the map hangs in the hall" in second.text
    said = [message.text for message in await talk.history() if message.role == "user"]
    assert ["the map hangs in the hall", "where hangs the map?"] == said


async def test_without_a_session_there_is_a_new_one(load):
    """A conversation that names no session has one of its own."""
    engine = (await load()).engine
    one, other = Conversation(engine=engine), Conversation(engine=engine)

    assert (True, None, None, []) == (one.session != other.session, one.user, one.last, one.skills)


@pytest.mark.parametrize("line", ["/help", "/", "  /  ", "/help me", "/\t"])
async def test_help_lists_every_command(load, line):
    """A slash alone helps too; every command has its line."""
    talk = await load()
    listed = [each.split()[0] for each in (await talk.command(line.strip())).splitlines()]

    assert [f"/{name}" for name in HELP] == listed


async def test_a_terminal_adds_commands_of_its_own(load):
    """A terminal's commands are in the help before its last line, run with their words, and are completed."""
    talk = await load()

    async def shout(words):
        return " ".join(words).upper()

    talk.further = {"shout": ("say it louder", shout)}
    lines = (await talk.command("/help")).splitlines()

    assert ["/shout    say it louder", True] == [lines[-2], lines[-1].startswith("/exit ")]
    assert ("A B", ["/shout"]) == (await talk.command("/shout a b"), await talk.completions("/sho"))


@pytest.mark.parametrize(
    ("line", "expected"),
    rows(DATA / "completions.jsonl", "line", "expected"),
)
async def test_commands_are_completed(load, folder, line, expected):
    """The last word of a command completes to commands, plugins, their commands and skills; prompts never complete."""
    talk = await load(p=RecordingPlugin(commands=[SAY]))
    await talk.command("/skill two")

    assert expected == await talk.completions(line)


async def test_a_missing_key_is_known_before_the_first_prompt(load):
    """The conversation names a missing key and its remedy before the first prompt, and otherwise has no complaint."""
    talk = await load()
    before = talk.complaint
    talk.engine.provider = MissingKeyProvider("names an environment variable that is not set")

    said = "provider.apiKey names an environment variable that is not set. Set it, or remove apiKey from the configuration if no key is needed."
    assert ("", said) == (before, talk.complaint)


@pytest.mark.parametrize("line", ["/exit", "/quit", "/exit now"])
async def test_exit_ends_the_conversation(load, line):
    """`/exit` and `/quit` end the conversation."""
    talk = await load()

    with pytest.raises(Ended):
        await talk.command(line)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("/memroy", " (did you mean `/memory`?)"),
        ("/mem", " (did you mean `/memory`?)"),
        ("/xyzzy", "; /help lists them"),
        ("/Help", " (did you mean `/help`?)"),
    ],
)
async def test_an_unknown_command_is_refused(load, line, meant):
    """The error names the command that the user probably meant, and how to send the line to the agent."""
    talk = await load()
    with pytest.raises(NotOffered) as error:
        await talk.command(line)

    assert f"there is no command {line}{meant}. To send this line to the agent, start it with //" == str(error.value)


async def test_memory_is_that_of_this_session_and_user(load):
    """`/memory` reaches the commands of the plugins with the session, the user and full trust."""
    talk = await load(p=RecordingPlugin(commands=[SAY]))

    assert "a+b s u full" == await talk.command("/memory p say a b")
    assert "Memory is on for this session." in await talk.command("/memory")


@pytest.mark.shows("003-022")
async def test_memory_off_keeps_plugins_out_of_the_conversation(load):
    """After `/memory off` no plugin is called, after `/memory on` they are again."""
    plugin = RecordingPlugin()
    talk = await load(p=plugin)
    for line in ("/memory off", "one", "/memory on", "two"):
        await (talk.command(line) if line.startswith("/") else talk.say(line))

    assert ["two"] == [each.arguments["turn"].prompt for each in plugin.calls_of("before_prompt")]


async def test_a_conversation_at_less_trust(load):
    """Turns and commands of a conversation have its trust."""
    plugin = RecordingPlugin(commands=[SAY])
    talk = attrs.evolve(await load(p=plugin), trust=Trust.FAMILIAR)
    await talk.say("hello")

    assert Trust.FAMILIAR is plugin.calls_of("before_prompt")[0].arguments["turn"].trust
    assert "a s u familiar" == await talk.command("/memory p say a")
    with pytest.raises(
        NotAllowed, match="the command `show` of the plugin `curated` is not allowed for the trust `familiar`"
    ):
        await talk.command("/memory curated show")


async def test_a_conversation_without_memory(load):
    """Each session of a conversation without memory starts with memory off and says so; the user can switch it on."""
    plugin = RecordingPlugin()
    talk = attrs.evolve(await load(p=plugin), no_memory=True)
    started = await talk.start()
    await talk.say("one")
    begun = (await talk.command("/new")).splitlines()
    await talk.say("two")
    await talk.command("/memory on")
    await talk.say("three")

    off = "Memory is off for this session: nothing is recalled, kept or shown, and no memory tool runs. `/memory on` switches it on again."
    assert (off, [f"A new session: {talk.session}", off]) == (started, begun)
    assert ["three"] == [each.arguments["turn"].prompt for each in plugin.calls_of("before_prompt")]
    assert talk.engine.host.is_memory_off(session="s", user="u")


async def test_a_conversation_with_memory_switches_nothing(load):
    """Started without a word about memory it leaves the switch as it is, on or off."""
    talk = await load()
    first = await talk.start()
    await talk.command("/memory off")

    assert ("", "") == (first, await talk.start())
    assert talk.engine.host.is_memory_off(session="s", user="u")


async def test_the_session_can_be_gone_on_with(load):
    """`/session` shows the id and the command line; `/new` begins another one, and only its prompts are offered."""
    talk = await load()
    await talk.say("hello")
    shown, begun = await talk.command("/session"), await talk.command("/new")

    assert "s\nContinue it later: beaver chat --session s" == shown
    assert re.fullmatch("A new session: session-[0-9a-f]{24}", begun)
    assert (begun.split()[-1], []) == (talk.session, list(await talk.history()))


async def test_skills_are_listed(load, folder):
    """`/skill` lists the available skills, the problems of unusable ones, and the active skills."""
    talk = await load()
    *listed, problem, active = (await talk.command("/skill")).splitlines()

    assert ["one                  about one", "two                  about two"] == listed
    assert (True, "Active: none") == ("bad" in problem and "no instructions" in problem, active)


async def test_without_skills_the_list_says_so(load):
    """Without skills, `/skill` says that there are no skills."""
    talk = await load()

    assert "There are no skills.\nActive: none" == await talk.command("/skill")


async def test_skills_are_activated_and_put_away(load, folder):
    """A skill is active from now on, each once, beside those of the configuration, until it is put away."""
    talk = await load(skills=("two",))
    said = [await talk.command(line) for line in ("/skill one one", "/skill one", "/skill off one", "/skill two")]

    assert ["Active: two, one", "Active: two, one", "Active: two", "Active: two"] == said
    assert ["two"] == talk.skills


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/skill off one nope", "the skill `nope` is not active. Active: two, one"),
        (
            "/skill off two",
            "the skill `two` is active because `agent.skills` in the configuration names it. Active: two, one",
        ),
        ("/new x", "/new takes no words; the new session gets its own id"),
    ],
)
async def test_what_cannot_be_done_is_said(load, folder, line, said):
    """A skill that is not active is not put away, `/new` takes no words, and nothing has changed."""
    talk = await load(skills=("two",))
    await talk.command("/skill one")
    with pytest.raises(NotOffered) as error:
        await talk.command(line)

    assert (said, ["one"], "s") == (str(error.value), talk.skills, talk.session)


async def test_an_unknown_skill_is_refused(load, folder):
    """A command with an unknown skill activates none of the skills that it names."""
    talk = await load()
    with pytest.raises(SkillError):
        await talk.command("/skill one absent")
    with pytest.raises(SkillError):
        await talk.command("/skill off")

    assert [] == talk.skills


async def test_an_active_skill_reaches_the_model(load, folder):
    """The model gets the instructions of an active skill."""
    talk = await load()
    await talk.command("/skill one")

    assert "Be one." in (await talk.say("be one, be what?")).text


async def test_troubles_are_those_that_are_not_well(load):
    """A degraded memory is a trouble, named with since when and why; one that is disabled by will is none."""
    talk = await load(p=FaultPlugin(Fault.RAISE, "before_prompt"), good=RecordingPlugin())
    before = await talk.troubles()
    await talk.say("hello")

    assert ({}, {"p": "degraded since 2026-01-02 12:00:00 UTC: before_prompt: raised"}) == (
        before,
        await talk.troubles(),
    )


@pytest.fixture
async def talk(load):
    """One conversation, for all examples of a test."""
    return await load()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(line=st.text() | st.sampled_from([*HELP, "quit", "skill off", "memory on", "memory off"]))
async def test_any_line_with_a_slash_is_answered_or_refused(talk, line):
    """Any line with a slash returns a text, raises an error of the tree, or ends the conversation."""
    try:
        shown = await talk.command(f"/{line}")
    except (NotOffered, SkillError, Ended):
        return

    assert isinstance(shown, str)


async def test_a_stranger_in_the_owners_session_changes_and_reads_nothing(load):
    """Another user can neither switch the memory of the owner's session nor read its prompts."""
    owner = await load(p=RecordingPlugin())
    await owner.say("a prompt of the owner")
    await owner.command("/memory off")
    stranger = Conversation(engine=owner.engine, session="s", user="stranger", trust=Trust.PUBLIC)
    for refused in (stranger.command("/memory on"), stranger.history()):
        with pytest.raises(SessionError, match="belongs to another user"):
            await refused

    host = owner.engine.host
    assert [True, True] == [host.is_memory_off(session="s", user=user) for user in ("u", None)]


async def test_a_user_of_less_trust_switches_for_themselves_alone(load):
    """Without full trust a switch is the user's own; the owner at the terminal is not concerned."""
    talk = await load(p=RecordingPlugin())
    guest = Conversation(engine=talk.engine, session="t", user="guest", trust=Trust.PUBLIC)
    await guest.command("/memory off")

    host = talk.engine.host
    assert [True, False] == [host.is_memory_off(session="t", user=user) for user in ("guest", None)]
