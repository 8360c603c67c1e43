"""The life of every turn: opened once, then committed once or dropped once, and the plugins that learn of it."""

import asyncio
import contextlib
import contextvars
import random
from collections import Counter
from datetime import datetime, timedelta, tzinfo

import pytest
from unit.gated_plugin import Gated

from beaver_hooks import Host
from beaver_hooks.turns.context import PluginHint, ReferenceMessage
from beaver_hostspecs import (
    Answer,
    Contribution,
    DropReason,
    Hint,
    InvalidTurn,
    Message,
    PluginFailed,
    PluginInfo,
    Reference,
    Tool,
    TurnAlreadyOpen,
    TurnClosed,
    UnknownTurn,
    hookimpl,
)
from beaver_hostspecs.rendering import render_references
from beaver_hostspecs.testing import RecordingPlugin

pytestmark = pytest.mark.usefixtures("complaints")

BOUNDARY = "0123456789abcdef"
TURN_HOOKS = ("before_prompt", "on_tool_result", "after_prompt", "on_turn_dropped")


@pytest.fixture
def make_host(make_host, clock):
    def make(settings=None, *, fail_closed=(), **plugins):
        return make_host(plugins, settings, fail_closed=fail_closed, clock=clock, boundary=lambda: BOUNDARY)

    return make


def hooks_of(plugin):
    """Return the turn hooks that were called, in order."""
    return [call.hook for call in plugin.calls if call.hook in TURN_HOOKS]


def told(plugin, hook, argument):
    return [call.arguments[argument] for call in plugin.calls_of(hook)]


def refs(*texts):
    return Contribution(references=tuple(Reference(text=text, id=f"id{n}") for n, text in enumerate(texts)))


# --- Once, and only once --------------------------------------------------------------------------------------


async def test_a_turn_is_committed_once(make_host):
    """The first commit closes it; a second commit, a drop or a tool result after it changes nothing."""
    plugin = RecordingPlugin()
    async with make_host(p=plugin) as host:
        turn = await host.open_turn("hello", session="s")
        done = [
            await turn.commit("bye"),
            await turn.commit("again"),
            await turn.drop(),
            await turn.tool_result(tool="t", call_id="1"),
            await host.commit(turn.id, "again"),
            await host.drop(turn.id),
        ]
        await host.drain()

    assert ([True] + [False] * 5, ["before_prompt", "after_prompt"]) == (done, hooks_of(plugin))
    assert ["bye"] == [each.text for each in told(plugin, "after_prompt", "answer")]


@pytest.mark.parametrize("reason", [*DropReason, "blocked"])
async def test_a_turn_is_dropped_once(make_host, reason):
    """The plugins get the reason of a dropped turn, and never an answer."""
    plugin = RecordingPlugin()
    async with make_host(p=plugin) as host:
        turn = await host.open_turn("hello", session="s")
        done = [await turn.drop(reason), await turn.drop(), await turn.commit("late"), await host.drop(turn.id)]
        await host.drain()

    assert ([True, False, False, False], ["before_prompt", "on_turn_dropped"]) == (done, hooks_of(plugin))
    assert [DropReason(reason)] == told(plugin, "on_turn_dropped", "reason")


async def test_ids_are_unique(make_host):
    """An open id, a closed one and an unknown one each have their own error."""
    async with make_host() as host:
        turn = await host.open_turn("hello", session="s", id="one")
        with pytest.raises(TurnAlreadyOpen):
            await host.open_turn("hello", session="t", id="one")
        await turn.commit("bye")
        with pytest.raises(TurnClosed):
            await host.open_turn("hello", session="s", id="one")
        with pytest.raises(TurnClosed):
            host.find_turn("one")
        with pytest.raises(UnknownTurn):
            host.find_turn("two")
        with pytest.raises(UnknownTurn):
            await host.commit("two", "bye")
        with pytest.raises(UnknownTurn):
            await host.drop("two")


async def test_a_refused_second_turn_asks_no_plugin(make_host, caplog):
    """A refused turn asks no plugin, logs nothing, and leaves the first one open."""
    asked = []
    tool = Tool(name="look", description="Look.", parameters={}, run=_look, allows=asked.append)
    plugin = RecordingPlugin(tools=(tool,))
    async with make_host(p=plugin) as host:
        turn = await host.open_turn("hello", session="s", id="one")
        caplog.clear()
        with pytest.raises(TurnAlreadyOpen):
            await host.open_turn("hello", session="s", id="one")
        logged = [each.getMessage() for each in caplog.records if "left_out" in each.getMessage()]
        await turn.commit("bye")
        await host.drain()

    assert (1, [], ["before_prompt", "after_prompt"]) == (len(asked), logged, hooks_of(plugin))


async def _look(*_):
    return "seen"


async def test_an_interrupted_decision_on_trust_drops_the_turn(make_host):
    """Ctrl-C while a plugin decides who may use its tool leaves no open turn behind."""

    def interrupt(_):
        raise KeyboardInterrupt

    plugin = RecordingPlugin(
        tools=(Tool(name="look", description="Look.", parameters={}, run=_look, allows=interrupt),)
    )
    async with make_host(p=plugin) as host:
        with pytest.raises(KeyboardInterrupt):
            await host.open_turn("hello", session="s", id="one")
        with pytest.raises(TurnClosed):
            host.find_turn("one")
        await host.drain()

    assert [DropReason.FAILED] == told(plugin, "on_turn_dropped", "reason")


async def test_a_turn_supersedes_another(make_host):
    """The earlier turn is abandoned; a closed or unknown id in `supersedes` is no error."""
    plugin = RecordingPlugin()
    async with make_host(p=plugin) as host:
        await host.open_turn("hello", session="s", id="one")
        for number in range(2):
            await host.open_turn("hello", session="s", id=f"next-{number}", supersedes="one")
        await host.open_turn("hello", session="s", supersedes="unknown")
        await host.drain()

        assert [("one", "abandoned")] == [(turn.id, reason) for turn, reason in zip(*_drops(plugin), strict=True)]


def _drops(plugin):
    return told(plugin, "on_turn_dropped", "turn"), told(plugin, "on_turn_dropped", "reason")


async def test_an_idle_turn_is_abandoned_after_an_hour(make_host, clock):
    """The next turn sweeps a turn that was idle for an hour; a younger one stays."""
    plugin = RecordingPlugin()
    async with make_host(p=plugin) as host:
        await host.open_turn("hello", session="s", id="old")
        clock.advance(1800)
        young = await host.open_turn("hello", session="s", id="young")
        clock.advance(1800)
        await host.open_turn("hello", session="s", id="new")
        await host.drain()

        assert ([["old"], ["abandoned"]], True) == (
            [[each.id for each in _drops(plugin)[0]], _drops(plugin)[1]],
            await young.commit("bye"),
        )


async def test_turns_of_one_session_may_overlap(make_host):
    """Each of several turns of one session is opened and closed by itself."""
    plugin = RecordingPlugin()
    async with make_host(p=plugin) as host:
        turns = await asyncio.gather(*(host.open_turn(str(n), session="s") for n in range(3)))
        await turns[1].drop()
        await turns[2].commit("2")
        await turns[0].commit("0")
        await host.drain()

    assert ["2", "0"] == [each.text for each in told(plugin, "after_prompt", "answer")]
    assert [turns[1].turn] == told(plugin, "on_turn_dropped", "turn")


# --- A turn that cannot be forgotten --------------------------------------------------------------------------


@pytest.mark.shows("000-096")
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("x"), DropReason.FAILED),
        (SystemExit(1), DropReason.FAILED),
        (KeyboardInterrupt(), DropReason.FAILED),
        (asyncio.CancelledError(), DropReason.CANCELLED),
        (GeneratorExit(), DropReason.CANCELLED),
    ],
)
async def test_a_turn_in_a_with_block_is_dropped_by_any_exception(make_host, error, reason):
    """The exception goes on unchanged, and the plugins learn the reason of the drop."""
    plugin = RecordingPlugin()
    async with make_host(p=plugin) as host:
        with pytest.raises(type(error)) as caught:
            async with host.turn("hello", session="s"):
                raise error
        await host.drain()

    assert (True, [reason]) == (caught.value is error, told(plugin, "on_turn_dropped", "reason"))


async def test_a_with_block_without_commit_abandons_its_turn(make_host):
    """Leaving the block normally is no answer."""
    plugin = RecordingPlugin()
    async with make_host(p=plugin) as host:
        async with host.turn("hello", session="s"):
            pass
        await host.drain()

    assert [DropReason.ABANDONED] == told(plugin, "on_turn_dropped", "reason")


@pytest.mark.parametrize("error", [None, ValueError()])
async def test_a_committed_turn_is_not_dropped_by_its_block(make_host, error):
    """Leaving the block after the commit, with or without an error, does not drop the turn."""
    plugin = RecordingPlugin()
    async with make_host(p=plugin) as host:
        with contextlib.suppress(ValueError):
            async with host.turn("hello", session="s") as turn:
                await turn.commit("bye")
                if error:
                    raise error
        await host.drain()

    assert ["before_prompt", "after_prompt"] == hooks_of(plugin)


async def test_a_cancelled_opening_drops_the_turn(make_host):
    """Its hooks are cancelled and not waited for; the plugins learn of the drop once, and the id is closed."""
    plugin = Gated("before_prompt")
    async with make_host(p=plugin) as host:
        opening = asyncio.create_task(host.open_turn("hello", session="s", id="one"))
        await plugin.wait_for("before_prompt")
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await host.drain()
        with pytest.raises(TurnClosed):
            host.find_turn("one")

    assert ([DropReason.CANCELLED], ["before_prompt"]) == (told(plugin, "on_turn_dropped", "reason"), plugin.cancelled)


class _BrokenZone(tzinfo):
    def utcoffset(self, _):
        raise ZoneError


class ZoneError(Exception):
    """Raised where a reference with a time of this zone is rendered."""


UNRENDERABLE = Contribution(references=(Reference(text="old", when=datetime(2026, 1, 1, tzinfo=_BrokenZone())),))


async def test_a_contribution_that_cannot_be_rendered_costs_only_itself(make_host):
    """The turn goes on with the other plugins' references; the receipt has the failure."""
    async with make_host(p=RecordingPlugin(UNRENDERABLE), q=RecordingPlugin(refs("good"))) as host:
        turn = await host.open_turn("hello", session="s")

        assert (["q"], [("before_prompt", "wrong_type", "ZoneError")]) == (
            [each.plugin for each in turn.references],
            [(each.hook, each.category, each.error) for each in turn.receipt.plugins["p"].failures],
        )


async def test_a_fail_closed_contribution_that_cannot_be_rendered_drops_the_turn(make_host):
    """It is a wrong type, as the contract has it: the turn of a fail-closed plugin ends with `PluginFailed`."""
    plugin = RecordingPlugin(UNRENDERABLE)
    async with make_host(p=plugin, fail_closed=["p"]) as host:
        with pytest.raises(PluginFailed) as caught:
            await host.open_turn("hello", session="s")
        await host.drain()

    told_so = "plugin `p` failed in before_prompt: wrong_type (ZoneError); it is fail-closed, so the turn was dropped"
    assert (told_so, [DropReason.FAILED]) == (str(caught.value), told(plugin, "on_turn_dropped", "reason"))


# --- The plugins' view of a turn ------------------------------------------------------------------------------


async def test_the_answer_is_made_of_what_was_said(make_host, clock):
    """Text alone becomes an answer with the prompt and itself as messages."""
    plugin = RecordingPlugin()
    async with make_host(p=plugin) as host:
        turn = await host.open_turn("hello", session="s")
        clock.advance(5)
        await turn.commit("bye", stored=True)
        await host.drain()

    opened = clock.now() - timedelta(seconds=5)
    said = (Message(role="user", text="hello", when=opened), Message(role="assistant", text="bye"))
    assert [Answer(text="bye", when=clock.now(), messages=said, stored=True)] == told(plugin, "after_prompt", "answer")


async def test_messages_go_with_a_text(make_host, clock):
    """A host that knows the turn's messages gives them, from any iterable."""
    plugin = RecordingPlugin()
    said = [Message(role="user", text="hello"), Message(role="tool", text="42"), Message(role="assistant", text="bye")]
    async with make_host(p=plugin) as host:
        turn = await host.open_turn("hello", session="s")
        await turn.commit("bye", messages=iter(said))
        await host.drain()

    assert [Answer(text="bye", when=clock.now(), messages=said)] == told(plugin, "after_prompt", "answer")


@pytest.mark.shows("003-037")
async def test_an_answer_is_passed_on_as_it_is(make_host, clock):
    """Nothing is added to a complete answer."""
    plugin = RecordingPlugin()
    answer = Answer(text="bye", when=clock.now() - timedelta(hours=1))
    async with make_host(p=plugin) as host:
        await (await host.open_turn("hello", session="s")).commit(answer)
        await host.drain()

    assert [answer] == told(plugin, "after_prompt", "answer")


@pytest.mark.parametrize("fields", [{"messages": [Message(role="user", text="hello")]}, {"stored": False}])
async def test_fields_beside_a_complete_answer_are_refused(make_host, clock, fields):
    """An `Answer` has its own messages and `stored`; the turn stays open, so that the caller can commit it rightly."""
    async with make_host() as host:
        turn = await host.open_turn("hello", session="s")
        with pytest.raises(InvalidTurn) as caught:
            await turn.commit(Answer(text="bye", when=clock.now()), **fields)

        assert (
            "an `Answer` has `messages` and `stored` of its own; give them only beside a text",
            True,
        ) == (str(caught.value), await turn.commit("bye"))


@pytest.mark.shows("000-090", "001-068")
async def test_an_answer_is_stamped_at_commit(make_host, clock):
    """An answer has the time of its commit, however late the background runs."""
    plugin = Gated("on_tool_result")
    async with make_host(p=plugin) as host:
        turn = await host.open_turn("hello", session="s")
        await turn.tool_result(tool="t", call_id="1")
        clock.advance(10)
        await turn.commit("bye")
        committed = clock.now()
        clock.advance(100)
        plugin.gate.set()
        await host.drain()

    assert [committed] == [each.when for each in told(plugin, "after_prompt", "answer")]


@pytest.mark.shows("003-038")
async def test_tool_results_come_in_order_and_before_the_answer(make_host):
    """One hook runs at a time per session and plugin: tool results in their order, then the answer."""
    plugin, order = Gated("on_tool_result"), []
    async with make_host(p=plugin) as host:
        turn = await host.open_turn("hello", session="s")
        for number in range(3):
            assert await turn.tool_result(tool="t", call_id=str(number), output=number)
        await turn.commit("bye")
        await plugin.wait_for("on_tool_result")
        order.append(hooks_of(plugin))
        plugin.gate.set()
        await host.drain()

    assert [["before_prompt", "on_tool_result"]] == order
    assert ["0", "1", "2"] == [each.call_id for each in told(plugin, "on_tool_result", "result")]
    assert ["before_prompt", *["on_tool_result"] * 3, "after_prompt"] == hooks_of(plugin) == plugin.ended[1:-1]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "success"),
        ({"error": "no such file"}, "error"),
        ({"error": "a warning", "outcome": "success"}, "success"),
        ({"outcome": "error"}, "error"),
    ],
)
async def test_the_outcome_follows_the_error(make_host, fields, expected):
    """A tool result with an error has the outcome `error`, unless the host gives another outcome."""
    plugin = RecordingPlugin()
    async with make_host(p=plugin) as host:
        turn = await host.open_turn("hello", session="s")
        await turn.tool_result(tool="t", call_id="1", **fields)
        await host.drain()

    assert [(expected, fields.get("error"))] == [
        (each.outcome, each.error) for each in told(plugin, "on_tool_result", "result")
    ]


async def test_the_background_runs_in_the_context_of_the_commit(make_host):
    """Context variables are those at the commit, and one plugin's changes reach no other."""
    variable, seen = contextvars.ContextVar("variable"), {}

    class Reads:
        def __init__(self, name):
            self.name = name

        @hookimpl
        async def after_prompt(self):
            seen[self.name] = variable.get()
            variable.set(self.name)

    async with make_host(one=Reads("one"), two=Reads("two")) as host:
        turn = await host.open_turn("hello", session="s")
        variable.set("committed")
        await turn.commit("bye")
        variable.set("later")
        await host.drain()

    assert ({"one": "committed", "two": "committed"}, "later") == (seen, variable.get())


@pytest.mark.parametrize("closing", ["commit", "drop", "tool_result"])
async def test_without_background_everything_is_awaited(make_host, closing):
    """Without background the host waits for the plugins."""
    plugin = Gated("after_prompt", "on_turn_dropped", "on_tool_result")
    async with make_host({"background": False}, p=plugin) as host:
        turn = await host.open_turn("hello", session="s")
        close = {
            "commit": lambda: turn.commit("bye"),
            "drop": turn.drop,
            "tool_result": lambda: turn.tool_result(tool="t", call_id="1"),
        }[closing]
        hook = {"commit": "after_prompt", "drop": "on_turn_dropped", "tool_result": "on_tool_result"}[closing]
        task = asyncio.create_task(close())
        await plugin.wait_for(hook)
        waiting = not task.done()
        plugin.gate.set()

        assert (True, True) == (waiting, await task)
        assert hook == plugin.ended[-1]
        plugin.gate.set()


async def test_without_background_and_plugins_nothing_is_awaited(make_host):
    """Without background and plugins a commit waits for nothing."""
    async with make_host({"background": False}) as host:
        assert await (await host.open_turn("hello", session="s")).commit("bye")


async def test_a_plugin_registered_later_is_not_told_of_the_turn(make_host):
    """A plugin that is registered later learns nothing of an open turn, and takes part in the next one."""
    late = RecordingPlugin()
    async with make_host() as host:
        turn = await host.open_turn("hello", session="s")
        await host.register("late", late)
        await turn.tool_result(tool="t", call_id="1")
        await turn.commit("bye")
        await host.drain()
        early = hooks_of(late)
        await (await host.open_turn("hello", session="s")).commit("bye")
        await host.drain()

    assert ([], ["before_prompt", "after_prompt"]) == (early, hooks_of(late))


# --- What does not fit ----------------------------------------------------------------------------------------


TRUSTS = "it is one of `full`, `inner`, `familiar`, `public`"
FIELDS = (
    "`session`, `id`, `prompt`, `when`, `conversation`, `user`, `history`, `scope`, `actors`, `refs`, `registry`, "
    "`budget`, `trust`"
)


def _endless():
    loop = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"prompt": b"CANARY"}, "Turn: prompt must be a str"),
        ({"session": ""}, "Turn: session must be a non-empty str"),
        ({"session": ["CANARY"]}, "Turn: session must be a non-empty str"),
        ({"id": ""}, "Turn: id must be a non-empty str"),
        ({"when": "CANARY"}, "Turn: when must be a datetime with a time zone"),
        ({"trust": "CANARY"}, f"Turn: not a valid Trust; {TRUSTS}"),
        ({"trust": "CANARY\nCANARY"}, f"Turn: not a valid Trust; {TRUSTS}"),
        ({"history": "CANARY"}, "Turn: expected several Message, not one str"),
        ({"history": ["CANARY"]}, "Turn: expected Message, not str"),
        ({"scope": "CANARY"}, "Turn: scope must be a Scope"),
        ({"budget": "CANARY"}, "Turn: budget must be a number of tokens, 0 or more, or None"),
        ({"budget": -1}, "Turn: budget must be a number of tokens, 0 or more, or None"),
        ({"user": 42}, "Turn: user must be a str that is not blank, or None"),
        ({"user": ""}, "Turn: user must be a str that is not blank, or None"),
        ({"user": " \t"}, "Turn: user must be a str that is not blank, or None"),
        ({"histroy": "CANARY"}, "Turn: there is no field `histroy` (did you mean `history`?)"),
        ({"colour": "CANARY"}, f"Turn: there is no field `colour`; the fields are {FIELDS}"),
    ],
)
async def test_what_is_wrong_with_a_turn_is_said_without_values(make_host, fields, expected):
    """The error names the field and shows no value of the caller; no turn is opened."""
    async with make_host() as host:
        with pytest.raises(InvalidTurn) as caught:
            await host.open_turn(**{"prompt": "CANARY", "session": "CANARY", **fields})

        assert (expected, 0) == (str(caught.value), len(host._running().turns.open_turns))


async def test_what_is_wrong_with_the_rest_is_said_without_values(make_host):
    """Answers, reasons and tool results that do not fit leave the turn open."""
    async with make_host() as host:
        turn = await host.open_turn("hello", session="s")
        said = []
        for attempt in (
            lambda: turn.commit(b"CANARY"),
            lambda: turn.commit("CANARY", messages=["CANARY"]),
            lambda: turn.commit("CANARY", messages=7),
            lambda: turn.drop("CANARY"),
            lambda: turn.tool_result(tool="", call_id="CANARY"),
            lambda: turn.tool_result(tool="t", call_id="1", outcome="CANARY"),
            lambda: turn.tool_result(tool="t", call_id="1", output=_endless()),
            lambda: turn.tool_result(tool="t", calls="CANARY"),
            lambda: turn.tool_result(output="CANARY"),
        ):
            with pytest.raises(InvalidTurn) as caught:
                await attempt()
            said.append(str(caught.value))

        assert [
            "Message: text must be a str",
            "Answer: expected Message, not str",
            "tuple: 'int' object is not iterable",
            "DropReason: not a valid DropReason; it is one of `failed`, `cancelled`, `blocked`, `abandoned`",
            "ToolResult: tool must be a non-empty str",
            "ToolResult: outcome must be `success` or `error`",
            "ToolResult: a value is nested too deeply, or holds itself",
            "ToolResult: there is no field `calls` (did you mean `call_id`?)",
            "ToolResult: `call_id`, `tool` must be given",
        ] == said
        assert await turn.commit("bye")


# --- What the model sees --------------------------------------------------------------------------------------


def _hint():
    return Hint(tool="t", registry="r", fingerprint="f", guidance="ask first")


@pytest.mark.shows("000-073", "000-080", "001-034", "001-063", "003-017", "003-036")
async def test_what_memory_gives_a_turn_is_rendered_in_order(make_host):
    """Base, rules, blocks make the system prompt; one reference message per plugin follows, in order."""
    one = RecordingPlugin(
        Contribution(blocks=("block 1",), references=refs("r1").references, hints=(_hint(),)),
        info=PluginInfo(version="0", contract="1.0", rules=("rule 1a", "rule 1b")),
    )
    two = RecordingPlugin(
        Contribution(blocks=("block 2",), references=refs("r2").references),
        info=PluginInfo(version="0", contract="1.0", rules=("rule 2",)),
    )
    async with make_host(one=one, silent=RecordingPlugin(), two=two) as host:
        turn = await host.open_turn("hello", session="s")

    assert "base\n\nrule 1a\n\nrule 1b\n\nrule 2\n\nblock 1\n\nblock 2" == turn.system_prompt("base")
    assert (
        tuple(
            ReferenceMessage(plugin=name, text=render_references(name, refs(text).references, boundary=BOUNDARY).text)
            for name, text in (("one", "r1"), ("two", "r2"))
        )
        == turn.references
    )
    assert ((PluginHint(plugin="one", hint=_hint()),), "hello") == (turn.hints, turn.prompt)


async def test_a_budget_is_kept_and_the_cut_is_on_the_receipt(make_host):
    """Blocks are paid first, the references share the rest, and the receipt counts the cut ones."""
    block = Contribution(blocks=("b" * 400,))
    long = refs(*["word " * 40] * 40)
    async with make_host(blocks=RecordingPlugin(block), one=RecordingPlugin(long), two=RecordingPlugin(long)) as host:
        turn = await host.open_turn("hello", session="s", budget=500)
        plugins = turn.receipt.plugins

    assert (100, 1) == (plugins["blocks"].tokens, plugins["blocks"].blocks)
    assert (
        plugins["one"].injected
        == plugins["two"].injected
        == tuple(f"id{n}" for n in range(len(plugins["one"].injected)))
    )
    assert [(len(plugins["one"].injected), 40)] == [(each.shown, each.total) for each in plugins["one"].clipped]
    assert 100 < turn.receipt.tokens <= 500


class _Score(float):
    def __format__(self, _):
        raise OSError("hostile")


class _Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("answer", "category"),
    [
        ("garbage", "wrong_type"),
        (type("Sub", (Contribution,), {})(), "wrong_type"),
        (Contribution(blocks=(_Text("block"),)), "wrong_type"),
        (Contribution(references=(Reference(text="r", score=_Score(1)),), blocks=("never shown",)), "wrong_type"),
        (Contribution(blocks=("b" * 1_000_001,)), "too_large"),
        (Contribution(blocks=("",) * 10_001), "too_large"),
    ],
)
async def test_a_bad_contribution_changes_nobody_else_s_bytes(make_host, sink, answer, category):
    """The turn is the one in which that plugin answered `None`, whatever it answered; the failure is its own."""
    bad, good = RecordingPlugin(), RecordingPlugin(Contribution(blocks=("b",), references=refs("r").references))
    async with make_host(bad=bad, good=good) as host:
        without = await host.open_turn("hello", session="s", budget=300)
        bad.contribution = answer
        turn = await host.open_turn("hello", session="s", budget=300)

        assert (without.recall, "degraded") == (turn.recall, host.health()["bad"].state)
    assert [("bad", "before_prompt", category)] == [
        (each.plugin, each.hook, each.facts["category"]) for each in sink.named("plugin_failed")
    ]


async def test_a_plugin_can_ask_what_was_injected(make_host):
    """A plugin recognises a text that this session showed in later turns, and no other text."""
    text = "Ada moved to Lisbon in the spring of 2024 and works on tide models for the harbour there."
    async with make_host(p=RecordingPlugin(refs(text))) as host:
        first = await host.open_turn("hello", session="s")
        later = await host.open_turn("hello", session="s")
        other = await host.open_turn("hello", session="t", id="other")

        assert (True, True, False) == (
            first.turn.was_injected(text.upper()),
            later.turn.was_injected(f"> {text}"),
            later.turn.was_injected("Grace lives in Arlington and has written a compiler for ships of the navy."),
        )
        await other.drop()


async def test_a_turn_dropped_while_it_is_opened_stays_dropped(make_host):
    """A turn that is closed by its id while the plugins are still asked stays closed."""
    plugin = Gated("before_prompt")
    async with make_host(p=plugin) as host:
        opening = asyncio.create_task(host.open_turn("hello", session="s", id="one"))
        await plugin.wait_for("before_prompt")
        assert await host.drop("one")
        with pytest.raises(TurnClosed) as caught:
            await opening

        assert "the turn was closed while it was being opened" == str(caught.value)
        await host.drain()
    assert (["before_prompt"], ["before_prompt", "on_turn_dropped"]) == (plugin.cancelled, hooks_of(plugin))


async def test_a_turn_in_use_does_not_idle(make_host, clock):
    """A tool result begins the hour anew; a turn in a `with` block never idles."""
    plugin = RecordingPlugin()
    async with make_host(p=plugin) as host:
        used = await host.open_turn("used", session="a")
        async with host.turn("held", session="b") as held:
            for number in range(7):
                clock.advance(600)
                await used.tool_result(tool="t", call_id=str(number))
                host._running().turns.sweep()
            clock.advance(3000)
            host._running().turns.sweep()

            assert (True, True) == (await used.commit("late"), await held.commit("later"))
        idle = await host.open_turn("idle", session="c")
        clock.advance(3600)
        host._running().turns.sweep()

        assert not await idle.commit("too late")


async def test_a_full_queue_is_its_plugin_s_own(make_host, sink):
    """A hanging plugin fills only its own background queue, and the other plugins' calls run."""
    hanging, good = Gated("after_prompt"), RecordingPlugin()
    async with make_host({"queue_limit": 3}, hanging=hanging, good=good) as host:
        for number in range(10):
            async with host.turn(f"turn {number}", session="s") as turn:
                await turn.commit("bye")
        await good.wait_for("after_prompt", 10)
        states = {name: host.health()[name].state for name in ("hanging", "good", "host")}
        hanging.gate.set()

    assert {"hanging": "degraded", "good": "ok", "host": "ok"} == states
    assert {"hanging"} == {event.plugin for event in sink.named("background_full")}


async def test_an_interrupted_call_is_written_down_and_the_next_ones_run(make_host):
    """A `KeyboardInterrupt` in a background call is that plugin's failure, and its other calls still run."""

    class Interrupted(RecordingPlugin):
        async def answer(self, call):
            if call.hook == "after_prompt" and len(self.calls_of("after_prompt")) == 1:
                raise KeyboardInterrupt

    plugin, states = Interrupted(), []

    async def run():
        async with make_host(p=plugin) as host:
            for _ in range(3):
                async with host.turn("hello", session="s") as turn:
                    await turn.commit("bye")
            await host.drain()
            states.append(host.health()["p"].category)

    def drive():
        loop = asyncio.new_event_loop()
        task = loop.create_task(run())
        while not task.done():
            with contextlib.suppress(KeyboardInterrupt):  # it ends the loop's run, as Ctrl-C would, and we go on
                loop.run_until_complete(task)
        loop.close()
        return task.exception()

    assert await asyncio.to_thread(drive) is None
    assert (3, ["interrupted"]) == (len(plugin.calls_of("after_prompt")), states)


# --- When there is too much -----------------------------------------------------------------------------------


async def test_a_full_queue_refuses_the_newest(make_host, sink):
    """A refused call is counted and audited once; the plugin is degraded until its queue takes calls again."""
    plugin = Gated("on_tool_result")
    async with make_host({"queue_limit": 2}, p=plugin) as host:
        turn = await host.open_turn("hello", session="s")
        for number in range(4):
            await turn.tool_result(tool="t", call_id=str(number))
        full = host.health()["p"]
        plugin.gate.set()
        await host.drain()
        still = host.health()["p"].state
        await turn.commit("bye")
        await host.drain()

        assert ("degraded", {"queue": "queue_full"}, "degraded", "ok") == (
            full.state,
            full.faults,
            still,
            host.health()["p"].state,
        )
        assert ("committed", 2) == (turn.receipt.state, turn.receipt.lost)
    assert ["before_prompt", "on_tool_result", "on_tool_result", "after_prompt"] == hooks_of(plugin)
    assert [("background_full", {"limit": 2}), ("background_lost", {"count": 2, "why": "queue_full"})] == [
        (each.name, each.facts) for each in sink.events if each.name.startswith("background")
    ]


async def test_what_was_refused_is_counted_when_the_host_closes(make_host, sink):
    """A queue that was full to the end is written down too, and the next host finds no fault of the last one."""
    plugin = Gated("on_tool_result", on_tool_result=0.02, stop=0.02)
    host = make_host({"queue_limit": 1}, p=plugin)
    async with host:
        turn = await host.open_turn("hello", session="s")
        for number in range(3):
            await turn.tool_result(tool="t", call_id=str(number))
        await host.drain()
        await turn.tool_result(tool="t", call_id="3")
        for number in range(2):
            await turn.tool_result(tool="t", call_id=str(number))
    async with host:
        assert {} == {source: fault for source, fault in host.health()["p"].faults.items() if source == "queue"}

    lost = [each.facts for each in sink.named("background_lost")]
    assert {"count": 2, "why": "queue_full"} == lost[0]
    # Two tool results, and the drop of the turn that closing found open.
    assert {"count": 3, "why": "queue_full"} in lost


async def test_the_fault_of_a_process_that_died_is_cleared(make_host, sink):
    """A host that never closed may have left its queue full; the next one begins with an empty queue."""
    host = make_host(p=RecordingPlugin())
    async with host:
        host._running().recorder.health.failed("p", source="queue", category="queue_full")
    async with host:
        assert "ok" == host.health()["p"].state


# --- Everything at once ---------------------------------------------------------------------------------------


class _Walk:
    """A random walk over the host's calls, with a model of the plugins that must learn of each turn."""

    def __init__(self, host, clock, seed):
        self.host, self.clock, self.random = host, clock, random.Random(seed)
        self.there = {}
        self.open = {}
        self.expected = []
        self.number = 0

    async def step(self):
        step = self.random.choices(
            ["open", "commit", "drop", "tool", "register", "unregister", "wait", "run"], [6, 4, 2, 4, 1, 1, 1, 3]
        )[0]
        await getattr(self, f"_{step}")()

    async def _open(self):
        self.number += 1
        session = self.random.choice("st")
        supersedes = self.random.choice([None, *self.open]) if self.random.random() < 0.2 else None
        if supersedes:
            self._closed(supersedes)
        self._swept()
        turn = await self.host.open_turn("hello", session=session, id=str(self.number), supersedes=supersedes)
        self.open[turn.id] = (turn, dict(self.there), self.clock.monotonic())

    async def _commit(self):
        await self._close(lambda turn: turn.commit("bye"))

    async def _drop(self):
        await self._close(lambda turn: turn.drop(self.random.choice(list(DropReason))))

    async def _close(self, close):
        if self.open:
            turn_id = self.random.choice(list(self.open))
            turn = self.open[turn_id][0]
            self._closed(turn_id)
            assert [True, False] == [await close(turn), await close(turn)]

    async def _tool(self):
        if self.open:
            turn, _, _ = self.open[self.random.choice(list(self.open))]
            assert await turn.tool_result(tool="t", call_id="1")

    async def _register(self):
        name = self.random.choice("abc")
        if name not in self.there:
            self.there[name] = RecordingPlugin()
            await self.host.register(name, self.there[name])

    async def _unregister(self):
        if self.there:
            await self.host.unregister(name := self.random.choice(list(self.there)), drain=True)
            del self.there[name]

    async def _wait(self):
        self.clock.advance(self.random.choice([60, 1800]))

    async def _run(self):
        await asyncio.sleep(0)

    def _swept(self):
        young = self.clock.monotonic() - 3600
        for turn_id in [turn_id for turn_id, (_, _, since) in self.open.items() if since <= young]:
            self._closed(turn_id)

    def _closed(self, turn_id):
        _, plugins, _ = self.open.pop(turn_id)
        # Every plugin that was there at the opening and still is learns of the end exactly once.
        self.expected += [(plugin, turn_id) for name, plugin in plugins.items() if self.there.get(name) is plugin]

    def told(self, plugins):
        return Counter(
            (plugin, call.arguments["turn"].id)
            for plugin in plugins
            for hook in ("after_prompt", "on_turn_dropped")
            for call in plugin.calls_of(hook)
        )


@pytest.mark.shows("003-035", "003-052")
@pytest.mark.parametrize("seed", range(12))
async def test_every_turn_is_closed_exactly_once_for_everybody(make_host, clock, seed):
    """After any steps, each turn calls one closing hook per plugin exactly once, and no work is left."""
    host = make_host()
    before = asyncio.all_tasks()
    plugins = set()
    async with host:
        walk = _Walk(host, clock, seed)
        for _ in range(80):
            await walk.step()
            plugins.update(walk.there.values())
        for turn_id in list(walk.open):
            walk._closed(turn_id)
        engine = host._running()
    await asyncio.sleep(0)

    assert Counter(walk.expected) == walk.told(plugins)
    assert (0, 0, {}, set(), {}) == (
        len(engine.turns.open_turns),
        len(engine.background.backlog),
        engine.calls.running,
        engine.calls.abandoned,
        engine.background._waiting,
    )
    assert before == asyncio.all_tasks()


async def test_a_boundary_that_fences_nothing(tmp_path):
    """A boundary that could be guessed or broken is the host's own fault, and blamed on no plugin."""
    recalling = RecordingPlugin(refs("one"))

    async with Host({"p": recalling}, state_folder=tmp_path / "state", boundary=lambda: "x") as host:
        with pytest.raises(InvalidTurn) as caught:
            await host.open_turn("hello", session="s")

        assert str(caught.value).startswith("check_boundary: boundary must be 8 to 128")
        assert host.health()["p"].state == "ok"


async def test_an_error_whose_class_is_hostile(make_host):
    """A hostile class name of a plugin's error raises nothing in the host."""

    class Hostile(type):
        @property
        def __name__(cls):
            raise SystemExit("asked")

    class OddError(Exception, metaclass=Hostile):
        pass

    class Plugin:
        @hookimpl
        async def before_prompt(self):
            raise OddError

        @hookimpl
        async def after_prompt(self):
            raise OddError

    async with make_host(p=Plugin()) as host:
        async with host.turn("hello", session="s") as turn:
            await turn.commit("answer")
        await host.drain()

        assert [("before_prompt", "OddError"), ("after_prompt", "OddError")] == [
            (fault.hook, fault.error) for fault in turn.receipt.plugins["p"].failures
        ]
