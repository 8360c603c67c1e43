"""Work that is not left half done, whoever is cancelled."""

import asyncio

import pytest

from beaver_hooks.agent.shield import uninterrupted


class Work:
    """Waits until it is let go, and then does what it was made for."""

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
    """Its result is returned, and its error raised unchanged."""
    error = ValueError("no")
    (good, first), (bad, second) = await begun("done"), await begun(error)
    good.gate.set()
    bad.gate.set()
    await asyncio.wait([first, second])

    assert ("done", error) == (first.result(), second.exception())


@pytest.mark.parametrize("end", ["done", ValueError("no")])
async def test_cancelling_waits_for_the_end_of_the_work(end):
    """However often: the work comes to its end, and then the cancellation comes out, whatever the end was."""
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
    """Whoever waits for it is cancelled too, once it has ended."""
    work, waiting = await begun("done")
    if also:
        waiting.cancel()
        await asyncio.sleep(0)
    work.task.cancel()
    await asyncio.wait([waiting])

    assert waiting.cancelled()


async def test_a_deadline_of_the_caller():
    """It is a TimeoutError, as anywhere, once the work has ended."""
    work = Work("done")
    asyncio.get_running_loop().call_later(0.01, work.gate.set)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(uninterrupted(work.do()), 0.001)

    assert "done" == work.task.result()
