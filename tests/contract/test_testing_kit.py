"""The testing kit works as documented, so that tests can rely on it."""

import asyncio
import base64
import contextlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from math import inf
from urllib.parse import quote, quote_plus

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hostspecs import (
    Clock,
    Contribution,
    DropReason,
    OutcomeKind,
    Personal,
    PluginInfo,
    Reference,
    Report,
    Secret,
    Setup,
    SystemClock,
    Tool,
    thaw,
)
from beaver_hostspecs.testing import (
    COROUTINE_HOOKS,
    PLAIN_FAULTS,
    PLAIN_HOOKS,
    BareFault,
    Call,
    Canary,
    Fault,
    FaultError,
    FaultPlugin,
    FrozenClock,
    RecordingPlugin,
    RecordingReport,
    Signal,
    fault_cases,
    make_answer,
    make_canary,
    make_compaction,
    make_tool_result,
    make_turn,
    traces,
)

PROMPT = "the prompt of this turn"
TURN, RESULT, ANSWER = make_turn(prompt=PROMPT), make_tool_result(), make_answer()
REPORT = RecordingReport()
RAISED = {
    Fault.RAISE: FaultError,
    Fault.SYSTEM_EXIT: SystemExit,
    Fault.BASE_EXCEPTION: BareFault,
    Fault.GENERATOR_EXIT: GeneratorExit,
    Fault.RAISE_CANCELLED: asyncio.CancelledError,
}
HANGING = (Fault.AWAIT_FOREVER, Fault.SLOW_CLEANUP, Fault.SWALLOW_CANCEL)
ENDED = {
    Fault.AWAIT_FOREVER: "cancelled",
    Fault.SLOW_CLEANUP: "cancelled",
    Fault.SWALLOW_CANCEL: "answered",
}


def arguments_of(hook, folder):
    """Return the arguments with which the host would call `hook`."""
    arguments = {
        "configure": {"setup": Setup(settings=None, state_folder=folder, report=REPORT)},
        "before_prompt": {"turn": TURN, "report": REPORT},
        "on_tool_result": {"turn": TURN, "result": RESULT, "report": REPORT},
        "after_prompt": {"turn": TURN, "answer": ANSWER, "report": REPORT},
        "on_turn_dropped": {"turn": TURN, "reason": DropReason.FAILED, "report": REPORT},
        "before_compaction": {"compaction": make_compaction(), "report": REPORT},
    }
    return arguments.get(hook, {})


async def called(plugin, hook, folder):
    """Return the result of the plugin's hook."""
    answer = getattr(plugin, hook)(**arguments_of(hook, folder))
    return await answer if hook in COROUTINE_HOOKS else answer


# --- The clock --------------------------------------------------------------------------------------------------


def test_the_machines_clock():
    """The clock that is used outside tests gives UTC, and a time that does not run backwards."""
    clock: Clock = SystemClock()

    assert UTC is clock.now().tzinfo
    assert clock.monotonic() <= clock.monotonic()


def test_a_frozen_clock_stands_still():
    """Both times stay the same, however often they are read."""
    clock: Clock = FrozenClock(datetime(2026, 5, 1, tzinfo=UTC), 7.0)

    assert [(datetime(2026, 5, 1, tzinfo=UTC), 7.0)] * 2 == [(clock.now(), clock.monotonic()) for _ in range(2)]


@given(st.lists(st.floats(0, 1e6)))
def test_a_frozen_clock_moves_when_told(steps):
    """`advance` moves both times of the clock by the given seconds."""
    clock = FrozenClock(monotonic=0.0)
    begin = clock.now()
    passed = 0.0  # added up one by one, as the clock does: `sum` makes good for rounding since 3.12
    for step in steps:
        clock.advance(step)
        passed += step

    assert passed == clock.monotonic()
    assert begin + sum((timedelta(seconds=step) for step in steps), timedelta()) == clock.now()


def test_a_frozen_clock_gives_utc():
    """A time of another zone is converted to UTC, and a naive time is refused."""
    clock = FrozenClock(datetime(2026, 5, 1, 5, tzinfo=timezone(timedelta(hours=5))))

    assert (datetime(2026, 5, 1, tzinfo=UTC), UTC) == (clock.now(), clock.now().tzinfo)
    with pytest.raises(ValueError, match="time zone"):
        FrozenClock(datetime(2026, 5, 1))  # noqa: DTZ001


def test_time_does_not_run_backwards():
    """A negative step is refused, and the clock stays where it was."""
    clock = FrozenClock(monotonic=1.0)
    with pytest.raises(ValueError, match="forwards"):
        clock.advance(-1)

    assert 1.0 == clock.monotonic()


# --- Records ----------------------------------------------------------------------------------------------------


def test_records_are_made_with_defaults():
    """Two records made alike are equal, and any field can be given."""
    assert (make_turn(), make_answer(), make_compaction()) == (make_turn(), make_answer(), make_compaction())
    assert make_tool_result() == make_tool_result()
    assert ("hello", "fine", "grep") == (
        make_turn(prompt="hello").prompt,
        make_answer(text="fine").text,
        make_tool_result(tool="grep").tool,
    )


def test_an_unknown_field_is_refused():
    """A misspelt field does not pass unnoticed."""
    with pytest.raises(TypeError, match="promt"):
        make_turn(promt="hello")


# --- The report -------------------------------------------------------------------------------------------------


def test_a_recording_report_keeps_everything():
    """Each method adds its arguments to the list of its name."""
    report = RecordingReport(remaining=2.5)
    contract: Report = report
    contract.event("cache_missed", count=1, who=Personal(value="ann"), ids=["a", "b"], none=None)
    contract.candidates((each, 0.5) for each in "ab")
    contract.decision("recall", "open", "question")
    contract.outcome("notes", "stored", id="n1")
    contract.outcome("notes", OutcomeKind.FAILED)
    contract.clipped("references", 2, 5)
    contract.notice("a move is possible")
    contract.degraded("timeout")
    contract.recovered()

    assert {
        "seconds": 2.5,
        "events": [("cache_missed", {"count": 1, "who": Personal(value="ann"), "ids": ("a", "b"), "none": None})],
        "candidate_lists": [(("a", 0.5), ("b", 0.5))],
        "decisions": [("recall", "open", "question")],
        "outcomes": [("notes", OutcomeKind.STORED, {"id": "n1"}), ("notes", OutcomeKind.FAILED, {})],
        "clippings": [("references", 2, 5)],
        "notices": ["a move is possible"],
        "degradations": ["timeout"],
        "recoveries": 1,
    } == vars(report)
    assert 2.5 == contract.remaining()


def test_a_recording_report_has_no_deadline_by_default():
    """Without a given deadline the remaining time is infinite."""
    assert inf == RecordingReport().remaining()


@pytest.mark.parametrize(
    ("method", "arguments", "facts", "kind"),
    [
        ("event", ["Not Snake"], {}, ValueError),
        ("event", [""], {}, ValueError),
        ("event", ["a"], {"nested": {"b": 1}}, TypeError),
        ("event", ["a"], {"nested": [["b"]]}, TypeError),
        ("outcome", ["notes", "perhaps"], {}, ValueError),
        ("outcome", ["notes", "stored"], {"raw": b"bytes"}, TypeError),
        ("candidates", [["a"]], {}, ValueError),
    ],
)
def test_a_recording_report_is_strict(method, arguments, facts, kind):
    """Wrong arguments raise, as they do in a host, and nothing is kept of them."""
    report = RecordingReport()
    with pytest.raises(kind):
        getattr(report, method)(*arguments, **facts)

    assert vars(RecordingReport()) == vars(report)


# --- Signals ----------------------------------------------------------------------------------------------------


async def test_a_signal_does_not_wait_for_what_is_true():
    """Waiting for a condition that is already true returns without a notice."""
    await Signal().wait_until(lambda: True)


async def test_a_signal_from_another_thread():
    """A notice from another thread wakes the waiting loop, which goes on waiting while the condition is false."""
    signal, seen = Signal(), []
    waiting = asyncio.create_task(signal.wait_until(lambda: len(seen) == 2))
    await asyncio.sleep(0)

    def work():
        for item in range(2):
            seen.append(item)
            signal.notify()

    await asyncio.to_thread(work)
    await asyncio.wait_for(waiting, 5)

    assert [] == signal._wakers


# --- The recording plugin ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook", [*PLAIN_HOOKS, *COROUTINE_HOOKS])
async def test_a_recording_plugin_remembers_each_call(hook, tmp_path):
    """The name of the hook and every argument are kept."""
    plugin = RecordingPlugin()
    arguments = arguments_of(hook, tmp_path)
    await called(plugin, hook, tmp_path)

    expected = [Call(hook=hook, arguments=arguments)]
    assert expected == plugin.calls == list(plugin.calls_of(hook))
    assert () == plugin.calls_of("another hook")


async def test_a_recording_plugin_answers_what_it_was_given(tmp_path):
    """The hooks return the given contribution, tools and description; the other hooks return `None`."""

    async def run(*arguments):
        """Do nothing."""

    info, contribution = PluginInfo(version="9", contract="1.0"), Contribution(blocks=["a"])
    tool = Tool(name="t", description="d", parameters={}, run=run)
    plugin = RecordingPlugin(contribution, [tool], info)
    answers = {hook: await called(plugin, hook, tmp_path) for hook in (*PLAIN_HOOKS, *COROUTINE_HOOKS)}

    expected = dict.fromkeys([*PLAIN_HOOKS, *COROUTINE_HOOKS]) | {
        "describe": info,
        "provide_tools": (tool,),
        "provide_commands": (),
        "before_prompt": contribution,
    }
    assert expected == answers


async def test_wait_for_returns_the_calls(tmp_path):
    """A test can await the calls that a host makes in the background."""
    plugin = RecordingPlugin()
    waiting = asyncio.ensure_future(plugin.wait_for("after_prompt", count=2))
    for hook in ("after_prompt", "start", "after_prompt"):
        await asyncio.sleep(0)
        await called(plugin, hook, tmp_path)

    call = Call(hook="after_prompt", arguments=arguments_of("after_prompt", tmp_path))
    assert (call, call) == await waiting


async def test_wait_for_gives_up():
    """Calls that do not come are a `TimeoutError`, and nothing is left behind."""
    plugin = RecordingPlugin()
    with pytest.raises(TimeoutError):
        await plugin.wait_for("start", timeout=0.001)

    assert [] == plugin._signal._wakers


async def test_wait_for_calls_from_another_loop(tmp_path):
    """`wait_for` sees calls from a host on another loop."""
    plugin = RecordingPlugin()
    waiting = asyncio.ensure_future(plugin.wait_for("start"))
    await asyncio.to_thread(asyncio.run, called(plugin, "start", tmp_path))

    assert (Call(hook="start"),) == await waiting


def test_a_call_cannot_be_changed():
    """Neither the fields nor the arguments of a recorded call can be changed."""
    call = Call(hook="start", arguments={"a": 1})

    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        call.hook = "stop"
    with pytest.raises(TypeError):
        call.arguments["a"] = 2
    assert {"a": 1} == thaw(call.arguments)


# --- The fault plugin -------------------------------------------------------------------------------------------


def test_the_cases_cover_everything():
    """Every fault comes with every coroutine hook, and four of them with the plain hooks."""
    expected = {(fault, hook) for fault in Fault for hook in COROUTINE_HOOKS}
    expected |= {(fault, hook) for fault in PLAIN_FAULTS for hook in PLAIN_HOOKS}

    assert sorted(expected) == sorted(fault_cases())


@pytest.mark.parametrize(("fault", "hook"), [(Fault.AWAIT_FOREVER, "describe"), (Fault.RAISE, "befor_prompt")])
def test_an_impossible_case_is_refused(fault, hook):
    """A plain hook cannot hang, and a misspelt hook is none."""
    with pytest.raises(ValueError) as caught:
        FaultPlugin(fault, hook)

    assert f"{hook} cannot have the fault {fault}" == str(caught.value)


@pytest.mark.parametrize("hook", [*PLAIN_HOOKS, *COROUTINE_HOOKS])
async def test_it_is_trivial_in_the_other_hooks(hook, tmp_path):
    """The other hooks return `None`, and `describe` returns the given description."""
    info = PluginInfo(version="3", contract="1.0")
    plugin = FaultPlugin(Fault.RAISE, hook, info=info)
    others = [other for other in (*PLAIN_HOOKS, *COROUTINE_HOOKS) if other != hook]
    answers = {other: await called(plugin, other, tmp_path) for other in others}

    assert {other: info if other == "describe" else None for other in others} == answers
    assert others == [call.hook for call in plugin.calls]


@pytest.mark.parametrize(("fault", "hook"), [case for case in fault_cases() if case[0] in RAISED])
async def test_it_raises(fault, hook, tmp_path, canary):
    """The exception is of the kind that was asked for, and shows secret and prompt."""
    plugin = FaultPlugin(fault, hook, secret=canary.secret)
    with pytest.raises(RAISED[fault]) as caught:
        await called(plugin, hook, tmp_path)

    assert RAISED[fault] is type(caught.value)
    assert canary.reveal() in str(caught.value)
    assert (PROMPT in str(caught.value)) is ("turn" in arguments_of(hook, tmp_path))
    assert 0 == plugin.running


@pytest.mark.parametrize(("fault", "hook"), [case for case in fault_cases() if case[0] is Fault.GARBAGE])
async def test_it_answers_garbage(fault, hook, tmp_path, canary):
    """The answer has no type that a hook may answer, and tries to leak."""
    answer = await called(FaultPlugin(fault, hook, secret=canary.secret), hook, tmp_path)

    assert dict is type(answer)
    assert [canary.reveal() in each for each in (answer["references"], answer["blocks"][0])] == [True, True]


@pytest.mark.parametrize("hook", COROUTINE_HOOKS)
async def test_it_answers_hundreds_of_megabytes(hook, tmp_path):
    """The answer is a valid contribution of one shared text, so that it costs the test nothing."""
    answer = await called(FaultPlugin(Fault.HUGE, hook), hook, tmp_path)

    assert Contribution is type(answer)
    assert sum(len(reference.text) for reference in answer.references) >= 300_000_000
    assert 1 == len({id(reference.text) for reference in answer.references})


@pytest.mark.parametrize("hook", COROUTINE_HOOKS)
async def test_it_answers_what_raises_when_looked_at(hook, tmp_path, canary):
    """The contribution passes every type check, and its reference raises on any attribute."""
    plugin = FaultPlugin(Fault.SUBCLASS_GARBAGE, hook, secret=canary.secret)
    answer = await called(plugin, hook, tmp_path)

    (reference,) = answer.references
    assert Contribution is type(answer)
    assert isinstance(reference, Reference)
    for look in (lambda: reference.text, lambda: reference.when, lambda: repr(reference)):
        with pytest.raises(FaultError) as caught:
            look()
        assert canary.reveal() in str(caught.value)


@pytest.mark.parametrize("hook", COROUTINE_HOOKS)
@pytest.mark.parametrize("fault", HANGING)
async def test_it_hangs_until_released(fault, hook, tmp_path):
    """The hook is called, does not end by itself, and returns `None` once released."""
    plugin = FaultPlugin(fault, hook)
    task = asyncio.create_task(called(plugin, hook, tmp_path))
    await plugin.wait_for(hook)
    await asyncio.sleep(0)
    assert (1, False) == (plugin.running, task.done())

    await plugin.release()
    assert (0, None) == (plugin.running, await task)


async def ending_of(task):
    """Return how a task ended."""
    try:
        await task
    except asyncio.CancelledError:
        return "cancelled"
    return "answered"


@pytest.mark.parametrize("fault", HANGING)
async def test_how_it_takes_being_cancelled(fault, tmp_path):
    """One fault ends on cancellation, one cleans up through several cancellations, and one runs until released."""
    plugin = FaultPlugin(fault, "before_prompt", duration=600)
    task = asyncio.create_task(called(plugin, "before_prompt", tmp_path))
    await plugin.wait_for("before_prompt")
    for _ in range(3):
        task.cancel()
        for _ in range(5):
            await asyncio.sleep(0)

    assert (fault is Fault.AWAIT_FOREVER) is task.done()
    await plugin.release()
    assert ENDED[fault] == await ending_of(task)


async def test_a_slow_clean_up_ends_by_itself(tmp_path):
    """After its time the clean-up is over, and the cancellation goes on."""
    plugin = FaultPlugin(Fault.SLOW_CLEANUP, "stop", duration=0.01)
    task = asyncio.create_task(called(plugin, "stop", tmp_path))
    await plugin.wait_for("stop")
    task.cancel()

    assert "cancelled" == await ending_of(task)


@pytest.mark.parametrize("hook", COROUTINE_HOOKS)
async def test_it_cancels_itself(hook, tmp_path):
    """Its own task ends as cancelled, although the test cancels no task."""
    plugin = FaultPlugin(Fault.CANCEL_ITSELF, hook)
    task = asyncio.create_task(called(plugin, hook, tmp_path))

    assert "cancelled" == await ending_of(task)
    assert 0 == plugin.running


@pytest.mark.parametrize("hook", COROUTINE_HOOKS)
def test_it_blocks_the_loop(hook, tmp_path):
    """A blocking hook stops all other callbacks of its loop, and another thread can release it."""
    plugin = FaultPlugin(Fault.BLOCK, hook, duration=600)
    entered = threading.Event()

    async def host():
        ran = []
        asyncio.get_running_loop().call_soon(ran.append, "another callback")
        entered.set()
        return await called(plugin, hook, tmp_path), tuple(ran)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(asyncio.run, host())
        entered.wait()
        plugin.release()

        assert (None, ()) == done.result()


async def test_blocking_ends_by_itself(tmp_path):
    """The time it blocks for can be chosen."""
    plugin = FaultPlugin(Fault.BLOCK, "start", duration=0.001)

    assert None is await called(plugin, "start", tmp_path)


async def test_releasing_is_free_of_duty(tmp_path):
    """`release` can be awaited or left, before, after and instead of a fault."""
    plugin = FaultPlugin(Fault.AWAIT_FOREVER, "start")
    plugin.release()
    await plugin.release()

    assert None is await called(plugin, "start", tmp_path)


# --- Canaries ---------------------------------------------------------------------------------------------------

CANARY = make_canary()
VALUE = CANARY.reveal()
B64 = [base64.b64encode(("x" * offset + VALUE).encode()).decode() for offset in range(3)]
TRACED = [
    (VALUE, ["plain"]),
    (f"key={VALUE};", ["plain"]),
    (VALUE.encode(), ["plain"]),
    (b"\xff" + VALUE.encode(), ["plain"]),
    (VALUE[::-1], ["reversed"]),
    (quote(VALUE), ["percent-encoded"]),
    (quote(VALUE, safe=""), ["percent-encoded"]),
    (quote_plus(VALUE), ["percent-encoded"]),
    ("".join(f"%{byte:02x}" for byte in VALUE.encode()), ["percent-encoded"]),
    (json.dumps(VALUE), ["escaped"]),
    (json.dumps({"a": [VALUE]}, ensure_ascii=False), ["escaped"]),
    (repr(VALUE), ["escaped"]),
    (ascii(VALUE), ["escaped"]),
    (repr(VALUE.encode()), ["escaped"]),
    ("".join(f"\\U{ord(char):08x}" for char in VALUE), ["escaped"]),
    *((text, ["base64"]) for text in B64),
    (base64.urlsafe_b64encode(VALUE.encode()), ["base64"]),
    (f"Basic/{B64[0].rstrip('=')}", ["base64"]),
    (VALUE.encode().hex(), ["hex"]),
    (VALUE.encode().hex().upper(), ["hex"]),
    (f"{VALUE} {VALUE[::-1]} {B64[1]}", ["plain", "reversed", "base64"]),
    (VALUE[1:], ["in part"]),
    (VALUE[:-1], ["in part"]),
    (VALUE[:12], ["in part"]),
    ("", []),
    ("[secret] 100 % + \\ \\u12 \\UFFFFFFFF \\n AAAAAAAAAAAA", []),
    ("Secret(...)", []),
    (VALUE[:11], []),
]


# Numbered, as every process that collects this makes its own canary.
@pytest.mark.parametrize(("text", "expected"), TRACED, ids=map(str, range(len(TRACED))))
def test_a_canary_is_traced_in_every_shape(text, expected):
    """Each encoding of the canary has a name, in text and in bytes, and other text has no trace."""
    assert expected == CANARY.traces(text) == traces(VALUE, text)


@given(st.text(st.characters()), st.binary())
def test_foreign_text_holds_no_canary(text, data):
    """Tracing any foreign text or bytes finds no canary."""
    assert ([], []) == (CANARY.traces(text), CANARY.traces(data))


@given(st.text(st.characters(), min_size=8), st.text(st.characters()))
def test_any_secret_is_traced(secret, before):
    """Tracing finds secrets of any characters, lone surrogates too."""
    assert "plain" in traces(secret, before + secret)
    assert traces(secret, json.dumps(secret))


def test_assert_clean_names_the_shape_only():
    """The message says which text shows it in which shape, and does not show it itself."""
    CANARY.assert_clean("clean", b"clean too")
    with pytest.raises(AssertionError) as caught:
        CANARY.assert_clean("clean", json.dumps(VALUE), VALUE)

    assert "text 1 shows the canary: escaped" == str(caught.value)
    assert "Canary(secret=Secret(...))" == repr(CANARY)


def test_canaries_differ():
    """Canaries are all different, and their length can be chosen."""
    assert 20 == len({make_canary().reveal() for _ in range(20)})
    assert [32, 100] == [len(make_canary().reveal()), len(make_canary(100).reveal())]


def test_a_canary_changes_under_every_encoding():
    """No encoding leaves the canary's value unchanged."""
    encodings = [str.upper, quote, quote_plus, json.dumps, repr, ascii, lambda text: text[::-1]]

    assert [] == [encode for encode in encodings if VALUE in encode(VALUE)]


def test_a_canary_has_a_least_length():
    """A value shorter than the least length is refused, and one of the least length works."""
    with pytest.raises(ValueError) as caught:
        make_canary(8)

    least = int(str(caught.value).split()[-2])
    assert least == len(make_canary(least).reveal())
    with contextlib.suppress(ValueError):
        make_canary(least - 1)
        raise AssertionError("shorter than the least")


def test_any_secret_can_be_a_canary():
    """A test that needs a certain value can make a canary of it."""
    assert ["plain"] == Canary(secret=Secret("an own credential")).traces("<an own credential>")
