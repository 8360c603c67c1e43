"""Hook calls: contained in their tasks, ended by their deadlines, and never waited for after them."""

import asyncio
import contextvars
import math
import subprocess
import sys
import textwrap

import pytest

from beaver_hooks.plugins.hook_calls import Calls
from beaver_hooks.plugins.registry import Implementation, Member
from beaver_hooks.receipts.reports import HostReport
from beaver_hostspecs.testing import BareFault

pytestmark = pytest.mark.usefixtures("complaints")

LONG = 30.0
"""A deadline that no test reaches."""

SHORT = 0.01


@pytest.fixture
async def calls():
    return Calls(asyncio.get_running_loop(), None, None)


def begin(calls, function, *, seconds=LONG, plugin="p", arguments=(), given=None, **options):
    implementation = Implementation(
        hook="before_prompt", member=Member(name=plugin, plugin=object()), function=function, arguments=tuple(arguments)
    )
    report = HostReport(plugin=plugin, hook="before_prompt", recorder=None)
    return calls.begin(implementation, given or {}, report, seconds=seconds, **options)


def raising(error):
    async def hook():
        raise error

    return hook


def answering(value):
    async def hook():
        return value

    return hook


async def forever():
    await asyncio.get_running_loop().create_future()


def summary(result):
    return result.value, result.category, result.error


async def test_a_call_gets_what_it_wants_and_answers(calls):
    """A hook gets the arguments that it names, its report among them; its value is the result."""

    async def hook(turn, report):
        return turn, report

    call = begin(calls, hook, arguments=("turn", "report"), given={"turn": 1, "result": 2})
    (result,) = await calls.settle([call])

    assert ((1, call.report), None, None) == summary(result)
    assert ("p", "before_prompt", False, {}) == (call.plugin, call.hook, call.stopped, calls.running)
    assert call.started <= call.ended <= call.deadline


async def test_results_come_in_the_order_of_the_calls(calls):
    """Results are in the order of the calls, whichever call answers first."""
    gate = asyncio.Event()

    async def slow():
        await gate.wait()
        return "slow"

    async def quick():
        gate.set()
        return "quick"

    results = await calls.settle([begin(calls, slow), begin(calls, quick)])

    assert ["slow", "quick"] == [each.value for each in results]


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        SystemExit(3),
        GeneratorExit(),
        BareFault("x"),
        StopAsyncIteration(),
        ExceptionGroup("g", [OSError()]),
    ],
)
async def test_what_a_plugin_raises_stays_in_its_task(calls, error):
    """An exception of a plugin becomes a value of its result, and another call answers as usual."""
    results = await calls.settle([begin(calls, raising(error)), begin(calls, answering(7))])

    assert [(None, "raised", error), (7, None, None)] == [summary(each) for each in results]


async def test_a_stop_iteration_is_contained_too(calls):
    """A `StopIteration` in a coroutine is contained, in the form that Python gives it."""
    (result,) = await calls.settle([begin(calls, raising(StopIteration()))])

    assert ("raised", True) == (result.category, isinstance(result.error, StopIteration | RuntimeError))


async def test_raising_cancelled_error_cancels_nobody_else(calls):
    """A plugin that raises `CancelledError` has cancelled itself and no other."""
    results = await calls.settle([begin(calls, raising(asyncio.CancelledError())), begin(calls, answering(7))])

    assert [(None, "cancelled", None), (7, None, None)] == [summary(each) for each in results]


async def test_cancelling_itself_cancels_nobody_else(calls):
    """A plugin that cancels its own task ends as cancelled."""

    async def hook():
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    (result,) = await calls.settle([begin(calls, hook)])

    assert (None, "cancelled", None) == summary(result)


async def test_an_overdue_call_is_abandoned_and_counted(calls):
    """An overdue call is cancelled at its deadline; another call keeps its value."""
    calls_begun = [begin(calls, forever, seconds=SHORT), begin(calls, answering(7))]
    results = await calls.settle(calls_begun)

    assert [(None, "timeout", None), (7, None, None)] == [summary(each) for each in results]
    assert (True, 1) == (calls_begun[0].stopped, calls.abandoned_count)
    await asyncio.wait([calls_begun[0].task])
    await asyncio.sleep(0)
    assert (set(), {}, 1) == (calls.abandoned, calls.running, calls.abandoned_count)


async def test_each_call_has_its_own_deadline(calls):
    """A short deadline does not shorten the time of others, and a long one does not lengthen it."""
    gate = asyncio.Event()

    async def patient():
        await gate.wait()
        return "done"

    async def hasty():
        try:
            await forever()
        finally:
            gate.set()

    results = await calls.settle([begin(calls, patient), begin(calls, hasty, seconds=SHORT)])

    assert [("done", None, None), (None, "timeout", None)] == [summary(each) for each in results]


@pytest.mark.parametrize("ending", ["returns", "raises", "is cancelled"])
async def test_slow_cleaning_up_is_not_waited_for(calls, ending):
    """Settling does not wait for the clean-up of an abandoned call, however it ends."""
    gate = asyncio.Event()

    async def hook():
        try:
            await forever()
        finally:
            await gate.wait()
            if ending == "raises":
                raise OSError
            if ending == "returns":
                return "late"  # noqa: B012 - swallowing the cancellation is the fault

    call = begin(calls, hook, seconds=SHORT)
    (result,) = await calls.settle([call])

    assert ((None, "timeout", None), {call.task}, None) == (summary(result), calls.abandoned, call.ended)
    gate.set()
    await asyncio.wait([call.task])
    await asyncio.sleep(0)
    assert (set(), {}) == (calls.abandoned, calls.running)


async def test_an_ended_call_cannot_be_abandoned(calls):
    """Abandoning a call that has ended changes nothing."""
    call = begin(calls, answering(7))
    await calls.settle([call])
    calls.abandon(call)

    assert (False, 0) == (call.stopped, calls.abandoned_count)


async def test_a_call_is_abandoned_once(calls):
    """Abandoning it again neither counts it nor disturbs its cleaning up."""
    gate, cancelled = asyncio.Event(), []

    async def hook():
        try:
            await forever()
        finally:
            cancelled.append("once")
            await gate.wait()
            cancelled.append("cleaned up")

    call = begin(calls, hook, seconds=SHORT)
    await calls.settle([call])
    await asyncio.sleep(0)
    calls.abandon(call)
    gate.set()
    await asyncio.wait([call.task])

    assert (["once", "cleaned up"], 1) == (cancelled, calls.abandoned_count)


async def test_cancelling_the_wait_abandons_every_call(calls):
    """The cancellation goes on at once, without waiting for slow hooks."""
    started, gate = asyncio.Event(), asyncio.Event()

    async def stubborn():
        started.set()
        try:
            await forever()
        finally:
            await gate.wait()

    begun = [begin(calls, stubborn), begin(calls, answering(7))]
    waiting = asyncio.create_task(calls.settle(begun))
    await started.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert ([True, False], {begun[0].task}) == ([each.stopped for each in begun], calls.abandoned)
    gate.set()
    await asyncio.wait([begun[0].task])


async def test_a_call_that_ends_in_its_last_moment_counts(calls):
    """If the deadline has passed and the call had no chance to run until then, it gets one more pass of the loop."""

    async def hook():
        return 7

    (result,) = await calls.settle([begin(calls, hook, seconds=0.0)])

    assert (7, None, None) == summary(result)


async def test_settling_nothing_is_quick(calls):
    """Without calls there are no results."""
    assert [] == await calls.settle([])


async def test_the_report_knows_the_deadline(calls):
    """A call can ask how long it has."""

    async def hook(report):
        return 0 < report.remaining() <= LONG

    (result,) = await calls.settle([begin(calls, hook, arguments=("report",))])

    assert result.value is True


async def test_a_call_runs_in_the_context_it_is_given(calls):
    """A call sees the variables of the given context, and its changes stay there."""
    variable = contextvars.ContextVar("variable", default="here")
    context = contextvars.copy_context()
    context.run(variable.set, "there")

    async def hook():
        found = variable.get()
        variable.set("changed")
        return found

    (result,) = await calls.settle([begin(calls, hook, context=context)])

    assert ("there", "here", "changed") == (result.value, variable.get(), context[variable])


def test_a_keyboard_interrupt_goes_through():
    """A `KeyboardInterrupt` in a hook goes through and ends the event loop."""
    source = """
        import asyncio
        from beaver_hooks import Host
        from beaver_hostspecs import hookimpl
        import tempfile

        class Interrupts:
            @hookimpl
            async def before_prompt(self, turn):
                raise KeyboardInterrupt

        async def main():
            async with Host({"p": Interrupts()}, state_folder=tempfile.mkdtemp()) as host:
                await host.open_turn("hello", session="s")

        try:
            asyncio.run(main())
        except KeyboardInterrupt:
            print("interrupted")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)], capture_output=True, text=True, check=False, timeout=60
    )

    assert ("interrupted\n", 0, "") == (done.stdout, done.returncode, done.stderr)


async def test_how_late_the_event_loop_was_for_a_deadline():
    """A call that hangs while something else holds the loop knows by how much its deadline was missed."""
    loop = asyncio.get_running_loop()
    calls = Calls(loop, None, None)
    call, free = begin(calls, asyncio.Event().wait, seconds=0.01), begin(calls, asyncio.Event().wait, seconds=0.0)
    await calls.settle([free])

    def hold():
        while loop.time() < call.deadline + 0.05:
            pass

    loop.call_soon(hold)
    await calls.settle([call])

    assert (True, "timeout") == (call.late >= 0.05, (await calls.settle([call]))[0].category)


@pytest.mark.parametrize(("due", "expected"), [(math.inf, False), (0.0, True)])
async def test_a_deadline_while_the_watchdog_is_late(due, expected):
    """A call that is overdue knows that the process stood still, also before the watchdog has looked again."""
    calls = Calls(asyncio.get_running_loop(), None, None)
    calls.look_due = due
    call = begin(calls, asyncio.Event().wait, seconds=0.0)
    await calls.settle([call])

    assert expected == call.stood_still
