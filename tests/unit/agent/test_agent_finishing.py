"""Work that runs to its end, whichever task that waits for it is cancelled."""

import asyncio

import pytest

from beaver_hooks.agent.shield import uninterrupted


class Work:
    """Waits at its gate, and then returns or raises its end."""

    def __init__(self, end):
        self.end, self.begun, self.gate, self.task = end, asyncio.Event(), asyncio.Event(), None

    async def do(self):
        self.task = asyncio.current_task()
        self.begun.set()
        await self.gate.wait()
        if isinstance(self.end, Exception):
            raise self.end
        return self.end


async def begun(end):
    """Return the work and the task that waits for it."""
    work = Work(end)
    waiting = asyncio.create_task(uninterrupted(work.do()))
    await work.begun.wait()
    return work, waiting


async def test_what_the_work_comes_to():
    """The caller gets the work's result, or its error unchanged."""
    error = ValueError("no")
    (good, first), (bad, second) = await begun("done"), await begun(error)
    good.gate.set()
    bad.gate.set()
    await asyncio.wait([first, second])

    assert ("done", error) == (first.result(), second.exception())


@pytest.mark.parametrize("end", ["done", ValueError("no")])
async def test_cancelling_waits_for_the_end_of_the_work(end):
    """A cancelled caller waits until the work ends, however often it is cancelled, and is then cancelled."""
    work, waiting = await begun(end)
    for _ in range(3):
        waiting.cancel()
        await asyncio.sleep(0)
    early = waiting.done()
    work.gate.set()
    await asyncio.wait([waiting])

    assert (False, True, True) == (early, work.task.done(), waiting.cancelled())


@pytest.mark.parametrize("also", [False, True])
async def test_work_that_is_cancelled_itself(also):
    """A task that waits for cancelled work is cancelled too, once the work has ended."""
    work, waiting = await begun("done")
    if also:
        waiting.cancel()
        await asyncio.sleep(0)
    work.task.cancel()
    await asyncio.wait([waiting])

    assert waiting.cancelled()


async def test_a_deadline_of_the_caller():
    """A deadline of the caller raises `TimeoutError` once the work has ended."""
    work = Work("done")
    asyncio.get_running_loop().call_later(0.01, work.gate.set)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(uninterrupted(work.do()), 0.001)

    assert "done" == work.task.result()
