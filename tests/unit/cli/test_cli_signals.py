"""SIGTERM and SIGHUP end a command as Ctrl-C does, with a code of their own."""

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
    """Under `nohup` the tests are begun with a signal ignored that they are about."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


async def started(*words, ignoring=None):
    """Start `beaver` as a process of its own, perhaps one that ignores a signal from the beginning."""
    pipe = asyncio.subprocess.PIPE
    how = ("-m", "beaver_hooks.cli") if ignoring is None else ("-c", IGNORING.format(ignoring.name))
    return await asyncio.create_subprocess_exec(sys.executable, *how, *words, stdin=pipe, stdout=pipe, stderr=pipe)


def configuration(server):
    return {"kind": "openai", "baseUrl": server.base_url, "model": "m", "maxRetries": 0}


async def left(path):
    """Return what was said in the session, and how its turns ended."""
    async with await EngineLoader(path).load() as engine:
        shown = await engine.sessions.show("s", hidden=True)
    return [each.text for each in shown.messages], [each.name for each in shown.events if "turn_" in each.name][-1]


@BOTH
@pytest.mark.parametrize("ignoring", [None, *campaign(signal.SIGINT)])
async def test_a_run_is_dropped(configured, number, code, ignoring):
    """In the middle of a turn: the turn is dropped and audited, also where Ctrl-C is ignored (a job in background)."""
    async with serve(Reply(parts=(b"{",), end="hang")) as server:
        path = configured(provider=configuration(server))
        process = await started("run", "lost", "--session", "s", ignoring=ignoring)
        await asyncio.wait_for(server.arrived.wait(), 30)
        process.send_signal(number)
        out, err = await asyncio.wait_for(process.communicate(), 30)

    assert (code, b"", True) == (process.returncode, out, err.endswith(b"Interrupted.\n"))
    assert ([], "turn_dropped") == await left(path)


@BOTH
async def test_a_chat_is_ended(configured, number, code):
    """In the middle of an answer: the turn is dropped and audited, and the conversation does not go on."""
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
    """Between two prompts nothing is lost, and the process ends."""
    configured()
    process = await started("chat", "--session", "s")
    await asyncio.wait_for(process.stdout.readuntil(b"Ctrl-D ends the chat.\n"), 30)
    process.send_signal(number)

    assert (b"", code) == ((await asyncio.wait_for(process.communicate(), 30))[0], process.returncode)


async def test_what_is_ignored_stays_ignored(configured):
    """Under `nohup` the end of the terminal does not end the command."""
    async with serve(Reply(parts=(b"{",), end="hang")) as server:
        configured(provider=configuration(server))
        process = await started("run", "lost", "--session", "s", ignoring=signal.SIGHUP)
        await asyncio.wait_for(server.arrived.wait(), 30)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.communicate(), 30)

    assert 143 == process.returncode


def test_the_second_signal_does_nothing_more():
    """The first one interrupts; what is being put in order then is not cut short by another, and all is given back."""
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
    """Where the loop handles Ctrl-C itself, the signal goes the same way."""
    seen = []
    with pytest.MonkeyPatch.context() as patch, Signals() as signals:
        patch.setattr(signal, "getsignal", lambda _: lambda number, _frame: seen.append(number))
        os.kill(os.getpid(), signal.SIGTERM)

    assert ([signal.SIGINT], 143) == (seen, signals.code)


def test_an_event_loop_that_ignores_ctrl_c_is_interrupted_between_two_steps():
    """Where the loop does not handle Ctrl-C, no step is torn: it is finished, and everything is put in order."""
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
    """Only the main thread can handle signals; a command in another one does without."""
    seen = []

    def enter():
        with Signals() as signals:
            seen.append((signal.getsignal(signal.SIGTERM), signals.code))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()

    assert [(signal.SIG_DFL, None)] == seen
