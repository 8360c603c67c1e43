"""The background queue: bounded, in order per session and plugin, and side by side for all others."""

import asyncio
from collections import defaultdict
from contextvars import copy_context

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.plugins.registry import Implementation, Member
from beaver_hooks.receipts.receipt_builder import ReceiptBuilder
from beaver_hooks.turns.background import Backlog, Job
from beaver_hostspecs.testing import make_turn
from beaver_hostspecs.testing.factories import NOON

pytestmark = pytest.mark.usefixtures("complaints")

LONG = 30.0


class Work:
    """Runs jobs when their gates are open, and records their ends."""

    def __init__(self):
        self.gates = defaultdict(asyncio.Event)
        self.started, self.ran, self.settled = [], [], []
        self.began = asyncio.Event()

    async def run(self, job):
        number = job.arguments["number"]
        self.started.append(number)
        self.began.set()
        await self.gates[number].wait()
        self.ran.append(number)

    def ended(self, job, *, run):
        self.settled.append((job.arguments["number"], run))

    def open(self, *numbers):
        for number in numbers:
            self.gates[number].set()


@pytest.fixture
async def work():
    return Work()


@pytest.fixture
async def backlog(work):
    backlog = Backlog(loop=asyncio.get_running_loop(), limit=5, runner=work)
    yield backlog
    backlog.discard()


def member(name="p"):
    return Member(name=name, plugin=object())


def job(number, plugin, session="s"):
    return Job(
        implementation=Implementation(hook="after_prompt", member=plugin, function=print, arguments=()),
        builder=ReceiptBuilder(turn=make_turn(session=session), recorded="r", session="h", opened=NOON),
        arguments={"number": number},
        context=copy_context(),
    )


@pytest.mark.shows("003-057")
async def test_jobs_of_a_session_and_plugin_run_one_after_the_other(backlog, work):
    """The second one starts when the first one has ended."""
    plugin = member()
    accepted = [backlog.put(job(number, plugin)) for number in (1, 2)]
    await work.began.wait()
    first = list(work.started)
    work.open(1, 2)

    assert 0 == await backlog.drain(LONG)
    assert ([True, True], [1], [1, 2], [(1, True), (2, True)]) == (accepted, first, work.ran, work.settled)


async def test_other_sessions_and_plugins_do_not_wait(backlog, work):
    """A job that hangs holds up its own session and plugin alone."""
    hanging, other = member("hanging"), member("other")
    for each in (job(1, hanging), job(2, hanging), job(3, other), job(4, hanging, "t")):
        backlog.put(each)
    work.open(2, 3, 4)

    assert 2 == await backlog.drain(0.05)
    assert ([3, 4], 2) == (work.ran, len(backlog))


async def test_the_newest_is_refused_when_the_queue_is_full(backlog, work):
    """Running jobs count towards the limit; when one has ended, the queue takes another."""
    plugin = member()
    accepted = [backlog.put(job(number, plugin)) for number in range(6)]
    work.open(*range(7))
    await backlog.drain()

    assert ([True] * 5 + [False], True) == (accepted, backlog.put(job(6, plugin)))
    assert 0 == await backlog.drain()
    assert [0, 1, 2, 3, 4, 6] == work.ran


async def test_draining_an_empty_queue_is_quick(backlog):
    """An empty queue drains at once."""
    assert 0 == await backlog.drain()


async def test_discarding_loses_the_running_job_too(backlog, work):
    """The jobs of one plugin are lost and settled; those of another are run."""
    one, two = member("one"), member("two")
    for each in (job(1, one), job(2, one), job(3, two)):
        backlog.put(each)
    await work.began.wait()
    lost = backlog.discard(one)
    work.open(1, 2, 3)

    assert (0, 2, [3]) == (await backlog.drain(LONG), lost, work.ran)
    assert [(1, False), (2, False), (3, True)] == work.settled


async def test_discarding_before_anything_has_run_loses_everything(backlog, work):
    """A worker that had no chance to begin never does."""
    for number in (1, 2):
        backlog.put(job(number, member(str(number))))

    assert (2, 0, 0) == (backlog.discard(), len(backlog), await backlog.drain())
    await asyncio.sleep(0)
    assert ([], 0) == (work.started, backlog.discard())


async def test_a_plugin_is_not_mistaken_for_an_earlier_one_of_its_name(backlog, work):
    """A plugin that is registered again under a name does not share the jobs of the earlier one."""
    old, new = member(), member()
    backlog.put(job(1, old))
    backlog.put(job(2, new))
    work.open(1)
    await backlog.drain_plugin(old, LONG)
    drained = list(work.ran)
    backlog.put(job(3, old))
    work.open(2)

    assert ([1], 1, 0, [1, 2]) == (drained, backlog.discard(old), await backlog.drain(LONG), work.ran)


async def test_draining_one_plugin_waits_for_no_other(backlog, work):
    """Draining a plugin runs its jobs in every session, and does not wait for another plugin's hanging job."""
    one, two = member("one"), member("two")
    for each in (job(1, one), job(2, one), job(3, one, "t"), job(4, two)):
        backlog.put(each)
    work.open(1, 2, 3)
    await backlog.drain_plugin(one, LONG)
    await backlog.drain_plugin(member(), LONG)

    assert ([1, 2, 3], 1) == (sorted(work.ran), len(backlog))


async def test_draining_one_plugin_ends_in_time(backlog, work):
    """A job that hangs is left where it is."""
    plugin = member()
    backlog.put(job(1, plugin))
    await backlog.drain_plugin(plugin, 0.01)

    assert ([], 1) == (work.ran, len(backlog))


async def test_a_lane_that_breaks_keeps_nobody_waiting():
    """A job whose run lets something through is lost; those behind it still have their turn."""
    settled = []

    class Failing:
        async def run(self, job):
            if job.arguments["number"] == 1:
                raise RuntimeError("goes through")

        def ended(self, job, *, run):
            settled.append((job.arguments["number"], run))

    backlog = Backlog(loop=asyncio.get_running_loop(), limit=5, runner=Failing())
    plugin = member()
    for number in (1, 2):
        backlog.put(job(number, plugin))
    await asyncio.sleep(0)
    (worker,) = [each.worker for each in backlog._lanes.values()]

    assert 0 == await backlog.drain(LONG)
    assert "goes through" == str((await asyncio.gather(worker, return_exceptions=True))[0])
    assert backlog.put(job(3, plugin))
    assert 0 == await backlog.drain(LONG)
    assert [(1, False), (2, True), (3, True)] == settled


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("st"), st.integers(0, 1)),
        st.tuples(st.just("pass"), st.just(""), st.just(0)),
        st.tuples(st.just("discard"), st.just(""), st.integers(0, 1)),
    ),
    max_size=25,
)


@given(_STEPS)
def test_every_accepted_job_is_settled_once_and_in_order(steps):
    """Each accepted job runs or is lost exactly once, in the order of its session and plugin."""
    asyncio.run(_drive(steps))


async def _drive(steps):
    ran, settled, accepted = defaultdict(list), [], []

    class Noting:
        async def run(self, job):
            await asyncio.sleep(0)
            ran[job.builder.turn.session, job.implementation.member.name].append(job.arguments["number"])

        def ended(self, job, *, run):
            settled.append(job.arguments["number"])

    backlog = Backlog(loop=asyncio.get_running_loop(), limit=4, runner=Noting())
    plugins = [member("0"), member("1")]
    for number, (step, session, index) in enumerate(steps):
        if step == "put" and backlog.put(job(number, plugins[index], session)):
            accepted.append(number)
        elif step == "discard":
            backlog.discard(plugins[index])
        await asyncio.sleep(0)
    assert 0 == await backlog.drain(LONG)
    await asyncio.sleep(0)
    assert (accepted, 0, {}) == (sorted(settled), len(backlog), backlog._lanes)
    assert all(numbers == sorted(numbers) for numbers in ran.values())
