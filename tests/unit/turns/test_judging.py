"""What hook calls came to becomes an answer, nothing, or a failure that is written down."""

import pytest

from beaver_hooks.config.model import HostSettings
from beaver_hooks.log import make_log
from beaver_hooks.plugins.hook_calls import Call, HookDeadlines, Result
from beaver_hooks.plugins.registry import Implementation, Member
from beaver_hooks.plugins.suspensions import Suspensions
from beaver_hooks.receipts.health_store import HealthStore, StoredHealth
from beaver_hooks.receipts.receipt_builder import ReceiptBuilder
from beaver_hooks.receipts.receipts import Clip, Decision, Failure
from beaver_hooks.receipts.recorder import Recorder
from beaver_hooks.receipts.reports import HostReport
from beaver_hooks.turns import context
from beaver_hooks.turns import results as judging
from beaver_hooks.turns.context import Share
from beaver_hooks.turns.results import EVENT_LOOP, RecallCheck
from beaver_hostspecs import Contribution, Hint, PluginFailed, Reference
from beaver_hostspecs.rendering import render_references
from beaver_hostspecs.testing import BareFault, FrozenClock, make_turn

RULE = "it is fail-closed, so the turn was dropped"


@pytest.fixture
def recorder(sink):
    clock = FrozenClock()
    health = HealthStore(clock=clock, stored=StoredHealth(None, make_log()))
    return Recorder(clock=clock, sinks=[sink], health=health, identify=lambda _: "h:0", log=make_log())


@pytest.fixture
def recall_check(recorder):
    suspensions = Suspensions(
        recorder=recorder,
        clock=FrozenClock(),
        deadlines=HookDeadlines(HostSettings(deadline_cap_seconds=5.0)),
        blocked_after=0.5,
    )
    return RecallCheck(recorder, suspensions)


@pytest.fixture
def builder():
    return ReceiptBuilder(turn=make_turn(), recorded="turn-1", session="h:1", opened=FrozenClock().now())


def result(recorder, value=None, *, plugin="p", hook="before_prompt", fail_closed=False, ended=2.0, **fields):
    member = Member(name=plugin, plugin=object(), fail_closed=fail_closed)
    call = Call(
        implementation=Implementation(hook=hook, member=member, function=print, arguments=()),
        report=HostReport(plugin=plugin, hook=hook, recorder=recorder),
        task=None,
        started=1.0,
        deadline=6.0,
        ended=ended,
    )
    return Result(call=call, value=value, **fields)


def faults(builder, plugin="p"):
    return [each for each in builder.plugins[plugin].entries if isinstance(each, Failure)]


class _Sub(Contribution):
    """A contribution, and more."""


class _SubText(str):
    __slots__ = ()

    def __len__(self):
        raise OSError("looked at")


class _SubReference(Reference):
    pass


class _SubHint(Hint):
    pass


def _hollow():
    return object.__new__(Contribution)


def _hint(kind=Hint, **fields):
    return kind(**{"tool": "t", "registry": "r", "fingerprint": "f", "guidance": "g", **fields})


@pytest.mark.shows("003-059")
def test_answers_keep_their_order_and_none_is_no_answer(recall_check, recorder, builder, sink):
    """A contribution is an answer under its plugin's name; `None` is a success without one."""
    given = Contribution(blocks=("b",), references=(Reference(text="r"),), hints=(_hint(),))
    results = [
        result(recorder, given, plugin="b"),
        result(recorder, None, plugin="n"),
        result(recorder, Contribution(), plugin="a"),
    ]

    assert [("b", given), ("a", Contribution())] == recall_check.answers(results, builder)
    assert ([], ["ok", "ok", "ok"]) == (sink.events, [recorder.health[name].state for name in "bna"])


@pytest.mark.parametrize(
    "value",
    [
        "text",
        {"blocks": ["b"]},
        _Sub(),
        _hollow(),
        Contribution(blocks=(_SubText("b"),)),
        Contribution(references=(_SubReference(text="r"),)),
        Contribution(references=(Reference(text=_SubText("r")),)),
        Contribution(hints=(_hint(_SubHint),)),
        Contribution(hints=(_hint(guidance=_SubText("g")),)),
    ],
)
def test_what_is_no_plain_contribution_is_the_wrong_type(recall_check, recorder, builder, sink, value):
    """Subclasses of the contract's records and of `str` are refused unseen: looking at them runs a plugin's code."""
    assert [] == recall_check.answers([result(recorder, value)], builder)
    assert [("plugin_failed", "wrong_type")] == [(each.name, each.facts["category"]) for each in sink.events]
    assert [Failure(hook="before_prompt", category="wrong_type")] == faults(builder)


def test_too_much_is_refused(recall_check, recorder, builder, sink, monkeypatch):
    """A contribution beyond all measure is that plugin's failure, by its size or by its number of items."""
    monkeypatch.setattr(context, "MOST_CHARACTERS", 3)
    monkeypatch.setattr(context, "MOST_ITEMS", 2)
    monkeypatch.setattr(judging, "MOST_ITEMS", 2)
    results = [
        result(recorder, Contribution(blocks=("long",)), plugin="a"),
        result(recorder, Contribution(blocks=("",) * 3), plugin="b"),
    ]

    assert [] == recall_check.answers(results, builder)
    assert ["too_large", "too_large"] == [each.facts["category"] for each in sink.named("plugin_failed")]


@pytest.mark.shows("000-007")
@pytest.mark.parametrize(
    ("category", "error"),
    [("raised", ValueError("x")), ("raised", SystemExit(1)), ("timeout", None), ("cancelled", None)],
)
def test_a_fail_open_failure_is_written_down_and_no_more(recall_check, recorder, builder, *, sink, category, error):
    """Receipt, health and audit have the hook, the category and the type of the error; others' answers stand."""
    results = [result(recorder, category=category, error=error), result(recorder, Contribution(), plugin="q")]
    kind = type(error).__name__ if error else None

    assert [("q", Contribution())] == recall_check.answers(results, builder)
    assert [Failure(hook="before_prompt", category=category, error=kind)] == faults(builder)
    assert {"before_prompt": category} == recorder.health["p"].faults
    assert [("plugin_failed", "p", category, kind)] == [
        (each.name, each.plugin, each.facts["category"], each.facts["error"]) for each in sink.events
    ]


def test_a_fail_closed_plugin_s_error_is_raised_unchanged(recall_check, recorder, builder):
    """The first one's own exception gets out, after every result was judged."""
    first = ValueError("mine")
    results = [
        result(recorder, category="raised", error=first, fail_closed=True),
        result(recorder, category="raised", error=OSError(), fail_closed=True, plugin="q"),
        result(recorder, category="timeout", plugin="r"),
    ]
    with pytest.raises(ValueError, match="mine") as caught:
        recall_check.answers(results, builder)

    assert first is caught.value
    assert [1, 1, 1] == [len(faults(builder, name)) for name in "pqr"]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"category": "timeout"}, "timeout"),
        ({"category": "cancelled"}, "cancelled"),
        ({"category": "raised", "error": BareFault("secret")}, "raised (BareFault)"),
        ({"category": "raised", "error": SystemExit("secret")}, "raised (SystemExit)"),
        ({"value": 7}, "wrong_type"),
    ],
)
def test_what_is_no_exception_becomes_plugin_failed(recall_check, recorder, builder, fields, told):
    """Time, wrong answers and bare exceptions of a fail-closed plugin stop the turn with a sentence of ours."""
    with pytest.raises(PluginFailed) as caught:
        recall_check.answers([result(recorder, fail_closed=True, **fields)], builder)

    assert (f"plugin `p` failed in before_prompt: {told}; {RULE}", "p") == (str(caught.value), caught.value.plugin)


@pytest.mark.parametrize(
    ("value", "category", "expected"), [(None, None, None), (0, None, "wrong_type"), (None, "timeout", "timeout")]
)
def test_a_background_hook_answers_nothing(recall_check, recorder, builder, *, value, category, expected):
    """Any answer but `None` is a failure of the plugin."""
    recall_check.background(result(recorder, value, hook="after_prompt", category=category), builder)

    assert ([expected] if expected else []) == [each.category for each in faults(builder)]
    assert ("degraded" if expected else "ok") == recorder.health["p"].state


@pytest.mark.shows("003-051")
def test_time_is_written_down(recall_check, recorder, builder):
    """A call that has not ended has taken all of its deadline; times of one hook add up."""
    recall_check.background(result(recorder, hook="on_tool_result", ended=2.5), builder)
    recall_check.background(result(recorder, hook="on_tool_result", ended=2.0), builder)
    recall_check.background(result(recorder, hook="after_prompt", ended=None, category="timeout"), builder)

    assert {"on_tool_result": 2.5, "after_prompt": 5.0} == builder.plugins["p"].seconds


def test_success_clears_the_fault_of_its_hook(recall_check, recorder, builder, sink):
    """A good call of the hook that failed, and no other, is the recovery; it is audited once."""
    recall_check.background(result(recorder, hook="after_prompt", category="timeout"), builder)
    recall_check.background(result(recorder, hook="on_tool_result"), builder)
    degraded = recorder.health["p"].state
    recall_check.background(result(recorder, hook="after_prompt"), builder)
    recall_check.background(result(recorder, hook="after_prompt"), builder)

    assert ("degraded", "ok", 1) == (degraded, recorder.health["p"].state, len(sink.named("plugin_recovered")))


def test_a_good_call_clears_blocking_outside_of_hooks(recall_check, recorder, builder):
    """A plugin that was seen blocking the loop by itself recovers by its next good call."""
    recorder.health.failed("p", source=EVENT_LOOP, category="blocked")
    recall_check.background(result(recorder, hook="after_prompt"), builder)

    assert "ok" == recorder.health["p"].state


@pytest.mark.parametrize("trouble", ["reported", "blocked"])
def test_a_troubled_call_is_no_success(recall_check, recorder, builder, trouble):
    """A call that reported trouble, or was seen blocking, recovers nothing by ending normally."""
    recorder.health.failed("p", source="after_prompt", category="blocked")
    ended = result(recorder, hook="after_prompt")
    if trouble == "reported":
        ended.call.report.degraded("store_down")
    else:
        ended.call.blocked = True
    recall_check.background(ended, builder)

    assert "degraded" == recorder.health["p"].state


def test_what_cannot_be_rendered_is_the_wrong_type(recall_check, recorder, builder):
    """It is written down as a failure of `before_prompt`."""
    recall_check.unrenderable(Member(name="p", plugin=object()), builder, OSError("x"))

    assert [Failure(hook="before_prompt", category="wrong_type", error="OSError")] == faults(builder)


@pytest.mark.shows("003-048")
def test_a_share_is_written_down(builder):
    """Blocks, tokens and shown ids are kept, and a cut only if there was one."""
    references = [Reference(text="a", id="1"), Reference(text="b", id="2")]
    rendered = render_references("p", references, boundary="0123456789abcdef")
    RecallCheck.write_down("p", Share(blocks=1, tokens=9, offered=2, rendered=rendered), builder)
    RecallCheck.write_down("q", Share(blocks=2, tokens=8, offered=3), builder)

    one, two = builder.plugins["p"], builder.plugins["q"]
    assert ((1, 9, ("1", "2"), []), (2, 8, (), [Clip(what="references", shown=0, total=3)])) == (
        (one.blocks, one.tokens, one.injected, one.entries),
        (two.blocks, two.tokens, two.injected, two.entries),
    )


def test_a_reference_that_was_cut_is_written_down(builder):
    """A text that did not fit is a decision of the budget, even where no reference is missing."""
    rendered = render_references("p", [Reference(text="word " * 500)], boundary="b" * 16, budget=120)
    RecallCheck.write_down("p", Share(tokens=rendered.tokens, offered=1, rendered=rendered), builder)

    assert [
        Decision(gate="budget", verdict="cut", reason="a reference is longer than what is left")
    ] == builder.plugins["p"].entries
