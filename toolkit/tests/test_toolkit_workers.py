"""Threads for blocking calls: bounded, prompt, and gone when they are idle."""

import asyncio
import subprocess
import sys
import threading

import pytest

from beaver_toolkit.workers import Overloaded, Workers


def named(name):
    return [thread for thread in threading.enumerate() if thread.name == name]


async def test_results_and_errors():
    """`run` returns the result of a call, and raises its error."""
    workers = Workers("test-results")

    assert 4 == await workers.run(lambda: 2 + 2)
    with pytest.raises(ZeroDivisionError):
        await workers.run(lambda: 1 // 0)
    workers.shut()
    assert await workers.ended(5)


async def test_threads_are_few():
    """All calls are run, by at most the given number of threads at once."""
    workers, lock = Workers("test-few", threads=3, waiting=1000), threading.Lock()
    running, most = 0, 0

    def work(number):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        with lock:
            running -= 1
        return number

    done = await asyncio.gather(*(workers.run(lambda number=number: work(number)) for number in range(500)))
    workers.shut()

    assert ([*range(500)], True, True) == (done, most <= 3, await workers.ended(5))


async def test_a_hanging_call_leaves_the_others():
    """A call that hangs occupies one thread, and other calls go on."""
    workers, hang = Workers("test-hang", threads=2), threading.Event()
    hanging = workers.run(hang.wait)

    assert [*range(50)] == [await workers.run(lambda number=number: number) for number in range(50)]
    assert not hanging.done()
    hang.set()
    assert await hanging


async def test_bounded():
    """A call beyond the queue is refused, and shutting refuses new and waiting calls."""
    workers, hang, entered = Workers("test-bounded", threads=1, waiting=2), threading.Event(), threading.Event()
    first = workers.run(lambda: entered.set() or hang.wait())
    await asyncio.to_thread(entered.wait, 5)
    waiting = [workers.run(lambda: None) for _ in range(2)]
    with pytest.raises(Overloaded, match="try again later"):
        workers.run(lambda: None)
    workers.shut()
    with pytest.raises(Overloaded):
        workers.run(lambda: None)
    hang.set()
    refused = await asyncio.gather(*waiting, return_exceptions=True)

    assert (True, True, [Overloaded] * 2) == (await first, await workers.ended(5), [type(each) for each in refused])


async def test_what_nobody_waits_for_is_not_begun():
    """A call that is cancelled while it waits does not run."""
    workers, hang, entered = Workers("test-cancel", threads=1), threading.Event(), threading.Event()
    done = []
    first = workers.run(lambda: entered.set() or hang.wait())
    await asyncio.to_thread(entered.wait, 5)
    workers.run(lambda: done.append("cancelled")).cancel()
    hang.set()
    await first
    await workers.run(lambda: done.append("kept"))
    workers.shut()

    assert (["kept"], True) == (done, await workers.ended(5))


def hang_until(event, entered):
    entered.release()
    return event.wait(30)


@pytest.mark.parametrize("busy", [0, 3])
async def test_the_last_thing(busy):
    """The last call runs once, after all running calls, and also when no call ran."""
    workers, hang, entered, done = Workers("test-last"), threading.Event(), threading.Semaphore(0), []
    running = [workers.run(lambda: hang_until(hang, entered)) for _ in range(busy)]
    for _ in running:
        await asyncio.to_thread(entered.acquire, timeout=5)
    workers.shut(lambda: done.append("last"))
    workers.shut(lambda: done.append("again"))
    before = [*done]
    hang.set()

    assert ([True] * busy, True, ["last"]) == ([await each for each in running], await workers.ended(5), done)
    assert [] == before or not busy


async def test_it_does_not_wait_for_ever():
    """Waiting for the end returns `False` when its time is over."""
    workers, hang, entered = Workers("test-ended"), threading.Event(), threading.Semaphore(0)
    running = workers.run(lambda: hang_until(hang, entered))
    await asyncio.to_thread(entered.acquire, timeout=5)
    workers.shut()

    assert not await workers.ended(0.05)
    hang.set()
    assert (True, True) == (await running, await workers.ended(5))


async def test_idle_threads_end():
    """A thread without work ends after a while, and a new one starts for the next call."""
    workers = Workers("test-idle", idle_seconds=0.01)
    await workers.run(lambda: None)
    for thread in named("test-idle"):
        await asyncio.to_thread(thread.join, 5)

    assert ([], 3) == (named("test-idle"), await workers.run(lambda: 3))


def test_a_loop_that_has_ended():
    """A call that outlives its event loop does no harm, and the workers serve the next loop."""
    workers, hang, threads = Workers("test-loop", idle_seconds=0), threading.Event(), []

    def wait():
        threads.append(threading.current_thread())
        hang.wait(30)

    async def leave():
        workers.run(wait)

    async def later():
        return await workers.run(lambda: "here")

    asyncio.run(leave())
    hang.set()
    for thread in threads:
        thread.join()

    assert "here" == asyncio.run(later())


def test_the_process_ends():
    """A call that never returns does not keep the process."""
    script = (
        "import asyncio, time\nfrom beaver_toolkit.workers import Workers\n"
        "async def main():\n    Workers('w').run(lambda: time.sleep(300))\nasyncio.run(main())\n"
    )

    assert 0 == subprocess.run([sys.executable, "-c", script], check=False, timeout=60).returncode
