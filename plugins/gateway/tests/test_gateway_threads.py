"""A thread for work that may block."""

import asyncio
import subprocess
import sys
import threading

import pytest

from beaver_hooks_gateway.threads import Worker


async def test_one_after_another():
    """Calls are done in order, in one thread, which is gone when there is nothing to do."""
    worker, seen, going = Worker("the-worker"), [], threading.Event()
    worker.submit(going.wait)
    futures = [
        worker.submit(lambda number=number: seen.append((number, threading.current_thread()))) for number in range(5)
    ]
    going.set()
    await asyncio.gather(*futures)
    (thread,) = {thread for _, thread in seen}
    thread.join()

    assert ([0, 1, 2, 3, 4], "the-worker", True) == ([number for number, _ in seen], thread.name, thread.daemon)
    assert "again" == await worker.submit(lambda: "again")


async def test_what_is_raised():
    """Whoever waits gets the exception."""

    def fail():
        raise LookupError("no")

    with pytest.raises(LookupError, match=r"^no$"):
        await Worker("w").submit(fail)


async def test_nobody_waits_any_more():
    """A result that nobody wants is dropped, and the next call is done."""
    worker, going = Worker("w"), threading.Event()
    future = worker.submit(going.wait)
    future.cancel()
    going.set()

    assert "next" == await worker.submit(lambda: "next")


def test_a_loop_that_has_ended():
    """A call that outlives its loop disturbs nobody."""
    worker, going, threads = Worker("w"), threading.Event(), []

    def wait():
        threads.append(threading.current_thread())
        going.wait()

    async def leave():
        worker.submit(wait)

    asyncio.run(leave())
    going.set()
    for thread in threads:
        thread.join()

    assert "here" == asyncio.run(_later(worker))


async def _later(worker):
    return await worker.submit(lambda: "here")


def test_the_process_ends():
    """A call that never returns does not keep the process."""
    script = (
        "import asyncio, time\nfrom beaver_hooks_gateway.threads import Worker\n"
        "async def main():\n    Worker('w').submit(lambda: time.sleep(300))\nasyncio.run(main())\n"
    )

    assert 0 == subprocess.run([sys.executable, "-c", script], check=False, timeout=60).returncode
