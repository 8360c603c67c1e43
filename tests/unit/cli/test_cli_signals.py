"""SIGTERM and SIGHUP end a command as Ctrl-C does, each with its own exit code."""

import asyncio
import os
import signal
import sys
import threading

import pytest
from integration.openai_server import Reply, serve, streamed
from selection import campaign

from beaver_hooks.agent.factory import EngineLoader
from beaver_hooks.cli.signals import Signals, Terminated

BOTH = pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
IGNORING = "import signal, sys; signal.signal(signal.{}, signal.SIG_IGN); from beaver_hooks.cli import main; main()"


@pytest.fixture(autouse=True)
def nothing_ignored():
    """Restore the default handlers: under `nohup` pytest starts with SIGHUP ignored."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


async def started(*words, ignoring=None):
    """Start `beaver` as a process of its own, optionally with a signal ignored from the beginning."""
    pipe = asyncio.subprocess.PIPE
    how = ("-m", "beaver_hooks.cli") if ignoring is None else ("-c", IGNORING.format(ignoring.name))
    return await asyncio.create_subprocess_exec(sys.executable, *how, *words, stdin=pipe, stdout=pipe, stderr=pipe)


def configuration(server):
    return {"kind": "openai", "baseUrl": server.base_url, "model": "m", "maxRetries": 0}


async def left(path):
    """Return the messages of the session, and the last event of its turns."""
    async with await EngineLoader(path).load() as engine:
        shown = await engine.sessions.show("s", hidden=True)
    return [each.text for each in shown.messages], [each.name for each in shown.events if "turn_" in each.name][-1]


@BOTH
@pytest.mark.parametrize("ignoring", [None, *campaign(signal.SIGINT)])
async def test_a_run_is_dropped(configured, number, code, ignoring):
    """A signal in the middle of a turn drops the turn, also in a background job, where Ctrl-C is ignored."""
    async with serve(Reply(parts=(b"{",), end="hang")) as server:
        path = configured(provider=configuration(server))
        process = await started("run", "lost", "--session", "s", ignoring=ignoring)
        await asyncio.wait_for(server.arrived.wait(), 30)
        process.send_signal(number)
        out, err = await asyncio.wait_for(process.communicate(), 30)

    assert (code, b"", True) == (process.returncode, out, err.endswith(b"Interrupted.\n"))
    assert ([], "turn_dropped") == await left(path)


@pytest.mark.campaign
@BOTH
async def test_a_chat_is_ended(configured, number, code):
    """A signal in the middle of an answer drops the turn and ends the conversation."""
    async with serve(streamed("Hel", end="hang"), streamed("never")) as server:
        path = configured(provider=configuration(server))
        process = await started("chat", "--session", "s")
        process.stdin.write(b"lost\nand more\n")
        await process.stdin.drain()
        await asyncio.wait_for(process.stdout.readuntil(b"Hel"), 30)
        process.send_signal(number)
        out, err = await asyncio.wait_for(process.communicate(), 30)

    assert (code, b"\n", True, 1) == (process.returncode, out, err.endswith(b"Interrupted.\n"), len(server.requests))
    assert ([], "turn_dropped") == await left(path)


@BOTH
async def test_a_chat_that_waits_for_a_line_is_ended(configured, number, code):
    """A signal between two prompts ends the conversation with the exit code of the signal."""
    configured()
    process = await started("chat", "--session", "s")
    await asyncio.wait_for(process.stdout.readuntil(b"Ctrl-D ends the chat.\n"), 30)
    process.send_signal(number)

    assert (b"", code) == ((await asyncio.wait_for(process.communicate(), 30))[0], process.returncode)


@pytest.mark.campaign
async def test_what_is_ignored_stays_ignored(configured):
    """Under `nohup` SIGHUP does not end the command, and SIGTERM still does."""
    async with serve(Reply(parts=(b"{",), end="hang")) as server:
        configured(provider=configuration(server))
        process = await started("run", "lost", "--session", "s", ignoring=signal.SIGHUP)
        await asyncio.wait_for(server.arrived.wait(), 30)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.communicate(), 30)

    assert 143 == process.returncode


def test_the_second_signal_does_nothing_more():
    """The second signal does not interrupt the cleanup after the first one; then the old handlers are restored."""
    with Signals() as signals:
        with pytest.raises(Terminated):
            os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGTERM)
        code = signals.code

    assert (129, signal.SIG_DFL, signal.SIG_DFL) == (
        code,
        signal.getsignal(signal.SIGTERM),
        signal.getsignal(signal.SIGHUP),
    )


def test_the_event_loop_is_interrupted_in_its_own_way():
    """Where the event loop has its own handler of Ctrl-C, the signal calls that handler."""
    seen = []
    with pytest.MonkeyPatch.context() as patch, Signals() as signals:
        patch.setattr(signal, "getsignal", lambda _: lambda number, _frame: seen.append(number))
        os.kill(os.getpid(), signal.SIGTERM)

    assert ([signal.SIGINT], 143) == (seen, signals.code)


def test_an_event_loop_that_ignores_ctrl_c_is_interrupted_between_two_steps():
    """Where the event loop ignores Ctrl-C, the signal lets the current step finish and then runs the cleanup."""
    seen = []

    async def work():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            seen.append("the step")
            await asyncio.sleep(60)
        finally:
            seen.append("put in order")

    ignored = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Signals() as signals, pytest.raises(Terminated):
            asyncio.run(work())
    finally:
        signal.signal(signal.SIGINT, ignored)

    assert (["the step", "put in order"], 143) == (seen, signals.code)


def test_another_thread_leaves_the_signals_alone():
    """A command in another thread than the main one leaves the signal handlers alone."""
    seen = []

    def enter():
        with Signals() as signals:
            seen.append((signal.getsignal(signal.SIGTERM), signals.code))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()

    assert [(signal.SIG_DFL, None)] == seen
