"""The watchdog names the plugin that blocks the event loop, while it blocks, and no other."""

import asyncio
import gc
import itertools
import sys
import threading
import time
from types import SimpleNamespace

import attrs
import pytest

from beaver_hooks.log import make_log
from beaver_hooks.plugins import watchdog as module
from beaver_hooks.plugins.hook_calls import Calls
from beaver_hooks.plugins.registry import Implementation, Member
from beaver_hooks.plugins.watchdog import Watchdog, _frame_of, owner
from beaver_hooks.receipts.reports import HostReport

PATIENCE = 0.02
SAFETY = 20.0
"""How long a blocking test would hang if the watchdog named no plugin."""


class Blamed:
    """Stands for the recorder: collects the named plugins and hooks, and frees the loop then."""

    def __init__(self):
        self.named = []
        self.event = threading.Event()

    def blocked(self, plugin, *, hook, seconds, builder):
        self.named.append((hook, plugin, seconds >= PATIENCE, self.event.is_set()))
        self.event.set()

    def block(self):
        """Block until the watchdog names a plugin or the time is over; return whether it did."""
        return self.event.wait(SAFETY)


@pytest.fixture
async def calls():
    return Calls(asyncio.get_running_loop(), None, None)


@pytest.fixture
def blamed():
    return Blamed()


class Plugins:
    """Stands for the registry."""

    def __init__(self, **plugins):
        self.plugins = plugins

    def members(self):
        return [Member(name=name, plugin=plugin) for name, plugin in self.plugins.items()]


class OfThisModule:
    """A plugin whose code is this module."""


def new_watchdog(calls, blamed=None, *, loop=None, **options):
    fields = dict(blocked_after=PATIENCE, registry=Plugins(), suspensions=SimpleNamespace(blocked=lambda _: None))
    loop = loop or asyncio.get_running_loop()
    return Watchdog(loop=loop, calls=calls, recorder=blamed, log=make_log(), **(fields | options))


@pytest.fixture
async def make_watchdog(calls, blamed):
    made = []

    def make(**options):
        made.append(new_watchdog(calls, **({"blamed": blamed} | options)))
        made[-1].start()
        return made[-1]

    yield make
    for watchdog in made:
        watchdog.stop()
    assert [False] * len(made) == [watchdog._thread.is_alive() for watchdog in made]


def begin(calls, function, plugin="p", seconds=SAFETY):
    member = Member(name=plugin, plugin=object())
    implementation = Implementation(hook="before_prompt", member=member, function=function, arguments=())
    return calls.begin(implementation, {}, HostReport(plugin=plugin, hook="x", recorder=None), seconds=seconds)


async def test_a_blocking_call_is_named_while_it_blocks(calls, blamed, make_watchdog):
    """The blocking hook call is given with its plugin, before it lets go of the loop."""
    make_watchdog()

    async def hook():
        return blamed.block()

    call, other = begin(calls, hook), begin(calls, asyncio.Event().wait, "other")
    await asyncio.wait([call.task])

    assert ([("before_prompt", "p", True, False)], True) == (blamed.named, call.task.result())
    assert ((True, False), (False, True)) == ((call.blocked, call.held_up), (other.blocked, other.held_up))
    other.task.cancel()


async def test_one_blocking_is_blamed_once_and_the_next_one_again(calls, make_watchdog):
    """While the loop hangs its blocker is named once; once it has answered, the watch begins anew."""
    blamed = Blamed()
    make_watchdog(blamed=blamed)

    async def hook():
        blamed.event.clear()
        return blamed.block()

    for _ in range(2):
        await calls.settle([begin(calls, hook)])

    assert ["p", "p"] == [plugin for _, plugin, _, _ in blamed.named]


async def test_a_call_that_blocks_beyond_its_deadline_is_told_once(calls, make_watchdog):
    """While it still blocks, and only the call that may not take so long; one that merely waits is not meant."""
    overran, free = [], threading.Event()

    def heard(calls):
        overran.extend(calls)
        free.set()

    make_watchdog(suspensions=SimpleNamespace(blocked=heard))

    async def hook():
        return free.wait(SAFETY) and not threading.Event().wait(PATIENCE * 2)

    call, other = begin(calls, hook, seconds=PATIENCE * 4), begin(calls, asyncio.Event().wait, seconds=PATIENCE)
    await asyncio.wait([call.task])

    assert ([call], True, True, False) == (overran, call.task.result(), call.overran, other.overran)
    other.task.cancel()


@pytest.mark.parametrize(
    ("looks", "seconds"), [([1.0] * 3, []), ([1.0] * 5, [4.0]), ([1.0, 1.0, 900.0, 1.0], [4.0]), ([900.0] * 2, [])]
)
async def test_a_process_that_stood_still_blocks_nothing(calls, monkeypatch, *, looks, seconds):
    """A late look counts for two looks, however late it is, because the process may have stood still."""
    times, named = itertools.accumulate(looks, initial=0.0), []
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(times)))
    recorder = SimpleNamespace(blocked=lambda _, **said: named.append(said["seconds"]))
    watchdog = new_watchdog(calls, recorder, blocked_after=4.0, registry=Plugins(p=OfThisModule()))
    ends = iter([*[False] * len(looks), True])
    monkeypatch.setattr(watchdog, "_stopping", SimpleNamespace(wait=lambda _: next(ends)))
    monkeypatch.setattr(watchdog, "_overdue", lambda: True)
    monkeypatch.setattr(watchdog, "_step", lambda: calls)
    watchdog._watch()

    assert seconds == named


@pytest.mark.parametrize(("looks", "late"), [([1.0] * 3, False), ([1.0, 2.0], False), ([1.0, 2.1, 1.0], True)])
async def test_a_call_while_the_process_stood_still(calls, monkeypatch, *, looks, late):
    """A look that comes more than a look late marks the running call."""
    call, times = begin(calls, asyncio.Event().wait), itertools.accumulate(looks, initial=0.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(times)))
    watchdog = new_watchdog(calls, blocked_after=4.0)
    ends = iter([*[False] * len(looks), True])
    monkeypatch.setattr(watchdog, "_stopping", SimpleNamespace(wait=lambda _: next(ends)))
    monkeypatch.setattr(watchdog, "_overdue", lambda: False)
    watchdog._watch()

    assert late == call.stood_still
    call.task.cancel()


async def test_a_task_of_its_own_is_known_by_the_stack(calls, blamed, make_watchdog):
    """If no hook call blocks, the innermost plugin code on the stack names the plugin; its calls count as blocked."""
    mine, other = begin(calls, asyncio.Event().wait), begin(calls, asyncio.Event().wait, "other")
    make_watchdog(registry=Plugins(p=OfThisModule()))

    async def task():
        return blamed.block()

    assert await asyncio.create_task(task())
    assert ([(None, "p", True, False)], True, False) == (blamed.named, mine.blocked, other.blocked)
    mine.task.cancel()
    other.task.cancel()


async def test_the_host_s_own_code_is_blamed_on_nobody(calls, blamed, make_watchdog):
    """If no plugin's code is on the stack, the blocking has no name."""
    make_watchdog(registry=Plugins(p=attrs))
    call = begin(calls, asyncio.Event().wait)
    assert blamed.block()

    assert ([(None, None, True, False)], False) == (blamed.named, call.blocked)
    call.task.cancel()


async def test_the_host_s_own_code_is_nobody_s_business_while_no_plugin_runs(make_watchdog, blamed):
    """A loop that its own application blocks, between turns, is not complained of."""
    make_watchdog(registry=Plugins(p=attrs))
    threading.Event().wait(10 * PATIENCE)

    assert [] == blamed.named


async def test_many_short_steps_are_no_blocking(calls, blamed, make_watchdog):
    """Many short calls keep the loop busy without blocking it, and the watchdog names no plugin."""
    # One step on a busy machine takes several times as long as it waits.
    make_watchdog(blocked_after=20 * PATIENCE)

    async def hook():
        threading.Event().wait(PATIENCE)

    await calls.settle([begin(calls, hook) for _ in range(40)])

    assert [] == blamed.named


async def test_another_loop_s_steps_are_known_by_their_task(calls, blamed, make_watchdog, monkeypatch):
    """Where a loop's steps leave no frame of asyncio, a task that stays current counts as the step."""
    monkeypatch.setattr(asyncio, "Handle", type("Handle", (), {"_run": lambda _: None}))
    make_watchdog()

    async def hook():
        return blamed.block()

    call = begin(calls, hook)
    await asyncio.wait([call.task])

    assert [("before_prompt", "p", True, False)] == blamed.named


async def test_a_watchdog_that_cannot_look_says_so_and_goes_on(calls, make_watchdog, caplog):
    """The watchdog logs its own error, and still names the next blocking plugin."""
    blamed, members = Blamed(), iter([None, Plugins(p=OfThisModule()).members()])
    make_watchdog(blamed=blamed, registry=SimpleNamespace(members=lambda: next(members)))
    call = begin(calls, asyncio.Event().wait)

    end = time.monotonic() + SAFETY

    async def task(enough):
        while not enough() and time.monotonic() < end:
            threading.Event().wait(PATIENCE / 10)

    await asyncio.create_task(task(lambda: caplog.messages))
    await asyncio.create_task(task(blamed.event.is_set))

    assert (["event=beaver_hooks.watchdog_failed error=TypeError"], "p") == (caplog.messages, blamed.named[0][1])
    call.task.cancel()


async def test_a_watchdog_that_never_started_can_be_stopped(calls, blamed):
    """Stopping is safe however far the start has come."""
    watchdog = new_watchdog(calls, blamed)
    watchdog.stop()

    assert not watchdog._thread.is_alive()


@attrs.frozen
class _Frame:
    name: object
    f_back: "_Frame | None" = None

    @property
    def f_globals(self):
        return {} if self.name is None else {"__name__": self.name}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], None),
        (["asyncio.base_events", "threading"], None),
        (["time_lib", "plugin_b.store", "plugin_a"], "b"),
        (["plugin_a.sub.mod"], "a"),
        (["plugin_abc", None], None),
    ],
)
def test_the_innermost_code_of_a_plugin_owns_the_stack(names, expected):
    """The innermost plugin on the stack is named, and only by its whole top-level package."""
    frame = None
    for name in reversed(names):
        frame = _Frame(name, frame)

    assert expected == owner(frame, {"plugin_a": "a", "plugin_b": "b"})


def test_real_frames_can_be_asked():
    """A real stack has its modules' names."""
    assert "me" == owner(sys._getframe(), {__name__.partition(".")[0]: "me"})


def test_a_loop_that_answers_is_not_looked_at(monkeypatch):
    """The stack of another thread is read only while the loop owes an answer: reading it is not without risk."""
    looks, pauses = [], iter(range(20))
    loop = asyncio.new_event_loop()
    watchdog = new_watchdog(Calls(loop, None, None), loop=loop)

    def answer(_):
        loop.run_until_complete(asyncio.sleep(0))
        return next(pauses, None) is None

    monkeypatch.setattr(watchdog._stopping, "wait", answer)
    monkeypatch.setattr(Watchdog, "_step", lambda _: looks.append(1))
    watchdog._watch()
    loop.close()

    assert [] == looks


def test_a_loop_that_was_closed_ends_the_watching():
    """Nothing can block it any more."""
    loop = asyncio.new_event_loop()
    watchdog = new_watchdog(Calls(loop, None, None), loop=loop)
    loop.close()
    watchdog.start()
    watchdog._thread.join(SAFETY)

    assert not watchdog._thread.is_alive()


@pytest.mark.parametrize("collecting", [True, False])
def test_collecting_is_as_it_was(collecting):
    """Garbage collection pauses while the watchdog reads a stack, and resumes only if it was on."""
    seen = []
    (gc.enable if collecting else gc.disable)()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "_current_frames", lambda: seen.append(gc.isenabled()) or {})
            _frame_of(0)
        assert ([False], collecting) == (seen, gc.isenabled())
    finally:
        gc.enable()
