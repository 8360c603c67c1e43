"""Promises that break where parts are put together: each is looked at from outside, through a whole host."""

import asyncio
import json

import attrs
import pytest
from integration.faults_kit import UNHOSTED_HOOKS

from beaver_hooks.config import parse_config
from beaver_hostspecs import (
    Answer,
    Contribution,
    Deadlines,
    Message,
    PluginError,
    PluginFailed,
    PluginInfo,
    PluginRefused,
    Reference,
    hookimpl,
)
from beaver_hostspecs.testing import FaultPlugin, RecordingPlugin, fault_cases
from beaver_hostspecs.testing.factories import NOON
from beaver_hostspecs.testing.hooked import PLAIN_HOOKS

PROMPT = "Where was the treaty signed?"
ANSWER = "In the town hall, it seems."
RECALLED = "The old cartographer of Ulm kept nine brass compasses behind the river gate."
CONTRIBUTION = Contribution(references=[Reference(text=RECALLED, id="r1")])
PLAIN_CASES = [case for case in fault_cases() if case[1] in PLAIN_HOOKS and case[1] not in UNHOSTED_HOOKS]


def info(**deadlines):
    return PluginInfo(version="1", contract="1.0", deadlines=Deadlines(**deadlines))


def told(plugin, hook, argument):
    """Return the given argument of each call of a hook on a recording plugin."""
    return [call.arguments[argument] for call in plugin.calls if call.hook == hook]


# --- Recalled text ----------------------------------------------------------------------------------------------


class Skeptic:
    """Recalls in one session, and asks of every answer whether it is the recalled text."""

    def __init__(self):
        self.said = {}

    @hookimpl
    async def before_prompt(self, turn):
        return CONTRIBUTION if turn.session == "with recall" else None

    @hookimpl
    async def after_prompt(self, turn, answer):
        self.said[turn.session] = turn.was_injected(answer.text)


async def test_recall_counts_in_its_own_session_only(make_host):
    """The same text counts as recalled in the session that showed it, and in no other one."""
    skeptic = Skeptic()
    async with make_host({"skeptic": skeptic}) as host:
        for session in ("with recall", "another one"):
            async with host.turn(PROMPT, session=session) as turn:
                await turn.commit(RECALLED)
        await host.drain()

    assert {"with recall": True, "another one": False} == skeptic.said


@pytest.mark.shows("000-075", "000-076")
async def test_what_after_prompt_sees_holds_no_recalled_text(make_host):
    """The model was shown it; of the turn that is handed on to be kept it is no part, in no field at any depth."""
    recalling, learning = RecordingPlugin(CONTRIBUTION), RecordingPlugin()
    async with make_host({"recalling": recalling, "learning": learning}) as host:
        async with host.turn(PROMPT, session="s", history=[Message(role="user", text="Hello.")]) as turn:
            shown = [message.text for message in turn.references]
            await turn.commit(ANSWER)
        await host.drain()

    assert [True] == [RECALLED in text for text in shown]
    for plugin in (recalling, learning):
        (answer,), (seen,) = (told(plugin, "after_prompt", argument) for argument in ("answer", "turn"))
        assert [("user", PROMPT), ("assistant", ANSWER)] == [(each.role, each.text) for each in answer.messages]
        assert [("user", "Hello.")] == [(each.role, each.text) for each in seen.history]
        assert [False, False] == ["cartographer" in str(attrs.asdict(each)) for each in (answer, seen)]


async def test_an_answer_with_messages_is_handed_on_with_nothing_put_in(make_host):
    """`after_prompt` gets exactly the answer that the host committed, with recall too."""
    plugin = RecordingPlugin(CONTRIBUTION)
    said = Answer(text=ANSWER, when=NOON, messages=[Message(role="assistant", text=ANSWER)])
    async with make_host({"plugin": plugin}) as host:
        async with host.turn(PROMPT, session="s") as turn:
            await turn.commit(said)
        await host.drain()

    assert [said] == told(plugin, "after_prompt", "answer")


def test_a_record_is_searched_at_any_depth():
    """A recalled text in a message of an answer would be found by the test above."""
    answer = Answer(text=ANSWER, when=NOON, messages=[Message(role="user", text=RECALLED)])

    assert "cartographer" in str(attrs.asdict(answer))


# --- The limit of recalled text ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("tokens", "shown"), [(60, range(1)), (240, range(1, 20)), (2000, range(20, 21))])
async def test_the_configured_limit_cuts_recalled_text(make_host, tokens, shown):
    """`host.referenceTokens` of a configuration file limits the tokens of one plugin's references in a turn."""
    config = parse_config(json.dumps({"host": {"referenceTokens": tokens}}))
    many = Contribution(references=[Reference(text=f"{number}. {RECALLED}", id=f"r{number}") for number in range(20)])
    async with make_host({"plugin": RecordingPlugin(many)}, config=config) as host:
        async with host.turn(PROMPT, session="s") as turn:
            await turn.commit(ANSWER)
        part = turn.receipt.plugins["plugin"]

    assert len(part.injected) in shown
    assert part.tokens <= tokens


# --- Deadlines --------------------------------------------------------------------------------------------------


class Diligent:
    """Needs its time to learn, and declares it."""

    def __init__(self, *, needs, asks_for):
        self.learned = []
        self._needs = needs
        self._info = info(after_prompt=asks_for)

    @hookimpl
    def describe(self):
        return self._info

    @hookimpl
    async def after_prompt(self, answer):
        await asyncio.sleep(self._needs)
        self.learned.append(answer.text)


async def test_closing_waits_for_the_largest_declared_deadline(make_host, sink):
    """A plugin that keeps to its deadline has learned everything when the host is closed, and nothing is lost."""
    diligent = Diligent(needs=0.8, asks_for=2.0)
    host = make_host({"diligent": diligent, "quick": Diligent(needs=0, asks_for=0.5)})
    async with host, host.turn(PROMPT, session="s") as turn:
        await turn.commit(ANSWER)

    assert [ANSWER] == diligent.learned
    assert [] == [each.name for each in sink.events if each.name in {"background_lost", "plugin_failed"}]


class Hanging:
    """Never answers, and declares how long that may take."""

    @hookimpl
    def describe(self):
        return info(before_prompt=0.2)

    @hookimpl
    async def before_prompt(self):
        await asyncio.Event().wait()


async def test_a_turn_is_open_when_the_declared_deadline_is_over(make_host, sink):
    """A plugin that hangs holds the turn up for the 0.2 seconds it declares, and not for the default of 5."""
    async with make_host({"hanging": Hanging()}) as host:
        opening = asyncio.create_task(host.open_turn(PROMPT, session="s"))
        clock = asyncio.create_task(asyncio.sleep(4.5))
        await asyncio.wait({opening, clock}, return_when=asyncio.FIRST_COMPLETED)
        in_time = opening.done() and not clock.done()
        clock.cancel()
        await opening

    assert (True, ["timeout"]) == (in_time, [each.facts["category"] for each in sink.named("plugin_failed")])


# --- The answer comes first -------------------------------------------------------------------------------------


class Gated:
    """Learns only when its gate is opened."""

    def __init__(self):
        self.gate = asyncio.Event()
        self.learned = []

    @hookimpl
    def describe(self):
        return info(on_tool_result=30, after_prompt=30, on_turn_dropped=30)

    @hookimpl
    async def on_tool_result(self, result):
        await self.gate.wait()
        self.learned.append(result.tool)

    @hookimpl
    async def after_prompt(self, answer):
        await self.gate.wait()
        self.learned.append(answer.text)

    @hookimpl
    async def on_turn_dropped(self, reason):
        await self.gate.wait()
        self.learned.append(reason.value)


async def end_of(turn, *, commit):
    """Use a tool in a turn, and close it."""
    await turn.tool_result(tool="search", call_id="c1")
    await (turn.commit(ANSWER) if commit else turn.drop())


@pytest.mark.shows("003-056", "003-057")
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "drop"])
async def test_the_answer_comes_first(make_host, commit):
    """Telling of a tool, committing and dropping return while no plugin has learned anything; it learns afterwards."""
    plugin = Gated()
    async with make_host({"plugin": plugin}) as host:
        turn = await host.open_turn(PROMPT, session="s")
        ending = asyncio.create_task(end_of(turn, commit=commit))
        await asyncio.wait({ending}, timeout=5)
        before = (ending.done(), turn.receipt.state, tuple(plugin.learned))
        plugin.gate.set()
        await ending
        await host.drain()

    assert (True, "pending", ()) == before
    assert ["search", ANSWER if commit else "failed"] == plugin.learned


@pytest.mark.shows("000-086", "001-035", "001-065", "002-081", "003-037")
async def test_nothing_is_learned_before_the_answer_is_there(make_host):
    """No hook of the answer runs before the turn is committed, even while the background is idle."""
    plugin = RecordingPlugin()
    async with make_host({"plugin": plugin}) as host, host.turn(PROMPT, session="s") as turn:
        await host.drain()
        before = told(plugin, "after_prompt", "turn")
        await turn.commit(ANSWER)
        await host.drain()
        after = told(plugin, "after_prompt", "turn")

    assert ([], [turn.turn]) == (before, after)


# --- Reports ----------------------------------------------------------------------------------------------------


class Reporting:
    """Decides per turn about recall and writes, and reports its decisions."""

    @hookimpl
    async def before_prompt(self, turn, report):
        report.candidates([("r1", 0.5), ("r2", None)])
        wanted = "treaty" in turn.prompt
        report.decision("recall", "allowed" if wanted else "refused", "topic")
        return CONTRIBUTION if wanted else None

    @hookimpl
    async def after_prompt(self, turn, report):
        if "treaty" in turn.prompt:
            report.outcome("facts", "stored")
            report.outcome("profile", "duplicate")
        else:
            report.decision("write", "refused", "small_talk")
            report.outcome("facts", "skipped")


@pytest.mark.shows("002-127", "003-005", "003-043", "003-047", "003-050")
@pytest.mark.parametrize(
    ("prompt", "decisions", "injected", "outcomes"),
    [
        (PROMPT, [("recall", "allowed")], ["r1"], [("facts", "stored"), ("profile", "duplicate")]),
        ("Good morning.", [("recall", "refused"), ("write", "refused")], [], [("facts", "skipped")]),
    ],
)
async def test_the_receipt_says_what_gates_decided_and_how_writes_ended(
    make_host, prompt, decisions, injected, outcomes
):
    """The receipt has a plugin's candidates, decisions and outcomes in its words, and the references that it showed."""
    async with make_host({"plugin": Reporting()}) as host:
        async with host.turn(prompt, session="s") as turn:
            await turn.commit(ANSWER)
        await host.drain()
        part = (await host.receipt(turn.id))["plugins"]["plugin"]

    assert 2 == part["considered"]
    assert decisions == [(each["gate"], each["verdict"]) for each in part["decisions"]]
    assert injected == part.get("injected", [])
    assert outcomes == [(each["plane"], each["kind"]) for each in part["outcomes"]]


# --- Whom a plain hook can harm ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("fault", "hook"), PLAIN_CASES, ids=str)
async def test_a_plain_hook_lets_nothing_out_when_a_plugin_is_registered(make_host, fault, hook):
    """Any exception, even `SystemExit`, comes out as an error about that plugin, and the host goes on without it."""
    good = RecordingPlugin()
    async with make_host({"good": good}) as host:
        with pytest.raises(BaseException) as caught:
            await host.register("faulty", FaultPlugin(fault, hook, info=info()))
        async with host.turn(PROMPT, session="s") as turn:
            await turn.commit(ANSWER)
        known = list(host.plugins)

    assert isinstance(caught.value, (PluginFailed, PluginRefused))
    assert ("faulty", ["good"]) == (caught.value.plugin, known)
    assert [turn.turn] == told(good, "before_prompt", "turn")


@pytest.mark.parametrize(("fault", "hook"), PLAIN_CASES, ids=str)
async def test_a_plain_hook_lets_nothing_out_when_a_host_is_opened(make_host, fault, hook):
    """A plugin object that the host was made with is required: opening fails with an error about it, and can be repeated."""
    host = make_host({"good": RecordingPlugin(), "faulty": FaultPlugin(fault, hook, info=info())})

    with pytest.raises(BaseException) as caught:
        await host.open()
    with pytest.raises(BaseException) as again:
        await host.open()

    assert [True, True] == [isinstance(each.value, PluginError) for each in (caught, again)]
    assert type(caught.value) is type(again.value)


class Interrupting:
    """Stands for a Ctrl-C that hits while a plugin is configured."""

    @hookimpl
    def configure(self):
        raise KeyboardInterrupt


async def test_an_interruption_goes_through(make_host):
    """A Ctrl-C while a plugin is configured ends the process and registers no plugin."""
    async with make_host({}) as host:
        with pytest.raises(KeyboardInterrupt):
            await host.register("interrupting", Interrupting())
        known = list(host.plugins)

    assert [] == known
