"""The watchdog names who blocks the event loop, while it is blocked, and nobody else."""

import asyncio
import sys
import threading
from types import SimpleNamespace

import attrs
import pytest

from beaver_hooks.calls.calls import Calls
from beaver_hooks.calls.watchdog import Watchdog, owner
from beaver_hooks.record.reports import HostReport
from beaver_hooks.registry.registry import Implementation, Member

PATIENCE = 0.02
SAFETY = 20.0
"""How long a blocking test would hang if nobody were named."""


class Blamed:
    """Collects who was named, and frees the loop then."""

    def __init__(self):
        self.named = []
        self.event = threading.Event()

    def __call__(self, call, plugin, seconds):
        self.named.append((call, plugin, seconds, self.event.is_set()))
        self.event.set()

    def block(self):
        """Block until somebody was named; whether that happened."""
        return self.event.wait(SAFETY)


@pytest.fixture
async def calls():
    return Calls(asyncio.get_running_loop())


@pytest.fixture
def blamed():
    return Blamed()


@pytest.fixture
async def make_watchdog(calls, blamed):
    made = []

    def make(packages=None, **options):
        fields = dict(
            loop=asyncio.get_running_loop(),
            calls=calls,
            patience=PATIENCE,
            blame=blamed,
            packages=lambda: packages or {},
        )
        made.append(Watchdog(**(fields | options)))
        made[-1].start()
        return made[-1]

    yield make
    for watchdog in made:
        watchdog.stop()
    assert [False] * len(made) == [watchdog._thread.is_alive() for watchdog in made]


def begin(calls, function, plugin="p"):
    member = Member(name=plugin, plugin=object())
    implementation = Implementation(hook="before_prompt", member=member, function=function, arguments=())
    return calls.begin(implementation, {}, HostReport(plugin=plugin, hook="x", recorder=None), seconds=SAFETY)


async def test_a_blocking_call_is_named_while_it_blocks(calls, blamed, make_watchdog):
    """The blocking hook call is given with its plugin, before it lets go of the loop."""
    make_watchdog()

    async def hook():
        return blamed.block()

    call, other = begin(calls, hook), begin(calls, asyncio.Event().wait, "other")
    await asyncio.wait([call.task])

    assert ([(call, "p", PATIENCE, False)], True) == (blamed.named, call.task.result())
    assert (True, False) == (call.blocked, other.blocked)
    other.task.cancel()


async def test_one_blocking_is_blamed_once_and_the_next_one_again(calls, make_watchdog):
    """While the loop hangs its blocker is named once; once it has answered, the watch begins anew."""
    blamed = Blamed()
    make_watchdog(blame=blamed)

    async def hook():
        blamed.event.clear()
        return blamed.block()

    for _ in range(2):
        await calls.settle([begin(calls, hook)])

    assert ["p", "p"] == [plugin for _, plugin, _, _ in blamed.named]


async def test_a_task_of_its_own_is_known_by_the_stack(calls, blamed, make_watchdog):
    """If no hook call blocks, the innermost code of a plugin on the stack says whose it is; its calls are no success."""
    make_watchdog({__name__.partition(".")[0]: "p"})
    mine, other = begin(calls, asyncio.Event().wait), begin(calls, asyncio.Event().wait, "other")

    async def task():
        return blamed.block()

    assert await asyncio.create_task(task())
    assert ([(None, "p", PATIENCE, False)], True, False) == (blamed.named, mine.blocked, other.blocked)
    mine.task.cancel()
    other.task.cancel()


async def test_the_host_s_own_code_is_blamed_on_nobody(calls, blamed, make_watchdog):
    """If no plugin's code is on the stack, the blocking has no name."""
    make_watchdog({"some_plugin": "p"})
    call = begin(calls, asyncio.Event().wait)
    assert blamed.block()

    assert ([(None, None, PATIENCE, False)], False) == (blamed.named, call.blocked)
    call.task.cancel()


async def test_without_running_calls_nobody_is_watched(make_watchdog, blamed, calls):
    """A loop that blocks while no plugin runs is no business of the watchdog's; it is not even asked to answer."""
    watchdog = make_watchdog()
    asked = threading.Event()
    watchdog._answers = lambda: asked.set() or True
    watchdog._stopping.wait(5 * PATIENCE)

    assert (False, []) == (asked.is_set(), blamed.named)


async def test_a_loop_that_answers_is_left_alone(calls, blamed, make_watchdog):
    """A call that waits without blocking is not named."""
    watchdog = make_watchdog()
    call = begin(calls, asyncio.Event().wait)
    answered = asyncio.Event()
    loop, answers = asyncio.get_running_loop(), watchdog._answers

    def noted():
        found = answers()
        loop.call_soon_threadsafe(answered.set)
        return found

    watchdog._answers = noted
    await answered.wait()

    assert [] == blamed.named
    call.task.cancel()


async def test_a_closed_loop_ends_the_watch(calls, blamed, make_watchdog):
    """If the loop was closed under the watchdog, its thread ends by itself."""
    closed = asyncio.new_event_loop()
    closed.close()
    begun = begin(calls, asyncio.Event().wait)
    watchdog = make_watchdog(loop=closed)
    await asyncio.to_thread(watchdog._thread.join)

    assert [] == blamed.named
    begun.task.cancel()


async def test_stopping_in_the_worst_moment_does_not_hang(calls, blamed, make_watchdog):
    """Whoever stops it in the loop's thread just before it asks that thread for an answer is not waited for."""
    watchdog = make_watchdog()
    event, asked = watchdog._answered, threading.Event()
    # As if `stop` had come between the look at the calls and the question.
    watchdog._answered = SimpleNamespace(
        clear=lambda: (watchdog._stopping.set(), event.clear(), asked.set()), set=event.set, wait=event.wait
    )
    call = begin(calls, asyncio.Event().wait)
    assert asked.wait(SAFETY)
    watchdog._thread.join(SAFETY)

    assert (False, []) == (watchdog._thread.is_alive(), blamed.named)
    call.task.cancel()


async def test_a_watchdog_that_never_started_can_be_stopped(calls, blamed):
    """Stopping is safe however far the start has come."""
    watchdog = Watchdog(loop=asyncio.get_running_loop(), calls=calls, patience=PATIENCE, blame=blamed, packages=dict)
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
    """Of several plugins on one stack the innermost is named, and only by its whole top-level package."""
    frame = None
    for name in reversed(names):
        frame = _Frame(name, frame)

    assert expected == owner(frame, {"plugin_a": "a", "plugin_b": "b"})


def test_real_frames_can_be_asked():
    """A real stack has its modules' names."""
    assert "me" == owner(sys._getframe(), {__name__.partition(".")[0]: "me"})
