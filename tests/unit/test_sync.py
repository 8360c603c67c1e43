"""The host for callers without an event loop: the same host, on a loop in a thread of its own."""

import asyncio
import contextlib
import contextvars
import gc
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from processes import in_child

from beaver_hooks import Host, SyncHost
from beaver_hooks.config import Config
from beaver_hooks.config.model import HostSettings
from beaver_hooks.loop_thread import LoopThread
from beaver_hostspecs import (
    Command,
    CommandContext,
    Contribution,
    Deadlines,
    DropReason,
    ForkedHost,
    Hint,
    HostMisused,
    HostNotOpen,
    InvalidTurn,
    NotAllowed,
    PluginFailed,
    PluginInfo,
    PluginRefused,
    Reference,
    Tool,
    Trust,
    TurnAlreadyOpen,
    TurnClosed,
    UnknownPlugin,
    WrongLoop,
    hookimpl,
)
from beaver_hostspecs.testing import Fault, FaultError, FaultPlugin, RecordingPlugin

NOT_OPEN = "this host is not open; enter it with `with host:` or `host.open()`"
OPEN_ALREADY = "this host is open already; close it before you open it again"
FORKED = (
    "this host was opened before a fork and cannot be used in the child; spawn the child instead, and open a host there"
)
FROM_INSIDE = (
    "a SyncHost cannot be used in one of its own hooks, where it would wait for itself; use it outside of hooks"
)
SAFETY = 20.0


@pytest.fixture(autouse=True)
def complaints(caplog):
    """Fail if asyncio has anything to complain about, or a thread is left."""
    before = set(threading.enumerate())
    yield
    gc.collect()
    for thread in set(threading.enumerate()) - before:
        # The idle threads of the loop's executor end as soon as they come round to it.
        thread.join(SAFETY)
    assert [] == [each.getMessage() for each in caplog.records if each.name == "asyncio"]
    assert set() == set(threading.enumerate()) - before


@pytest.fixture
def make_host(tmp_path, sink):
    def make(plugins=None, settings=None, **options):
        return SyncHost(
            plugins,
            config=Config(host=HostSettings(**(settings or {}))),
            **{"state_folder": tmp_path / ".beaver", "sinks": [sink], "environment": {}, **options},
        )

    return make


def refusals(error, *uses):
    """Return what each use says that is refused with this error."""
    said = []
    for use in uses:
        with pytest.raises(error) as caught:
            use()
        said.append(str(caught.value))
    return said


def told(plugin, hook, argument):
    return [call.arguments[argument] for call in plugin.calls_of(hook)]


def test_a_whole_turn(make_host):
    """Everything that an open turn can do, it can do without a loop."""
    hint = Hint(tool="t", registry="r", fingerprint="f", guidance="g")
    contribution = Contribution(blocks=("block",), references=(Reference(text="r", id="1"),), hints=(hint,))
    plugin = RecordingPlugin(contribution)
    with make_host({"p": plugin}) as host:
        turn = host.open_turn("hello", session="s")
        result = turn.tool_result(tool="t", call_id="1", output=7)
        closed = [turn.commit("bye"), turn.commit("again"), turn.drop()]

        assert (0, True, [True, False, False]) == (host.drain(), result, closed)
        assert ("hello", turn.turn.id, "base\n\nblock") == (turn.prompt, turn.id, turn.system_prompt("base"))
        assert (turn.recall.references, [hint]) == (turn.references, [each.hint for each in turn.hints])
        assert ("committed", "ok") == (turn.receipt.state, host.health()["p"].state)
        assert "committed" == host.receipt(turn.id)["state"]
    assert [7] == [each.output for each in told(plugin, "on_tool_result", "result")]
    assert (["bye"], 1) == (
        [each.text for each in told(plugin, "after_prompt", "answer")],
        len(plugin.calls_of("stop")),
    )


def test_a_host_that_is_not_open_yet_may_be_given(tmp_path):
    """A `SyncHost` takes a host that is not open, or makes one without plugins."""
    with SyncHost(Host(state_folder=tmp_path)) as host:
        assert host.open_turn("hello", session="s").drop()
    with SyncHost(state_folder=tmp_path) as host:
        assert {"host"} == set(host.health())


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("x"), DropReason.FAILED),
        (KeyboardInterrupt(), DropReason.FAILED),
        (GeneratorExit(), DropReason.CANCELLED),
    ],
)
def test_a_turn_in_a_with_block_is_dropped_by_any_exception(make_host, error, reason):
    """The exception goes on unchanged, and the plugins learn the reason of the drop."""
    plugin = RecordingPlugin()
    with make_host({"p": plugin}) as host:
        with pytest.raises(type(error)) as caught, host.turn("hello", session="s"):
            raise error
        host.drain()

    assert (True, [reason]) == (caught.value is error, told(plugin, "on_turn_dropped", "reason"))


def test_a_turn_in_a_with_block_is_abandoned_unless_it_is_closed(make_host):
    """Leaving the block drops an uncommitted turn."""
    plugin = RecordingPlugin()
    with make_host({"p": plugin}) as host:
        with host.turn("hello", session="s", id="one"):
            pass
        with host.turn("hello", session="s", supersedes="one") as turn:
            turn.commit("bye")
        host.drain()

    assert ([DropReason.ABANDONED], 1) == (
        told(plugin, "on_turn_dropped", "reason"),
        len(plugin.calls_of("after_prompt")),
    )


def test_a_host_closed_inside_a_block_hides_no_error(make_host):
    """The caller's own exception gets out, not the complaint that the host is closed."""
    plugin = RecordingPlugin()
    host = make_host({"p": plugin})
    host.open()

    def run():
        with host.turn("hello", session="s"):
            host.close()
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        run()

    assert [DropReason.ABANDONED] == told(plugin, "on_turn_dropped", "reason")


def test_errors_get_out_unchanged(make_host):
    """Errors of the host and of a fail-closed plugin reach the caller unchanged."""
    with make_host() as host:
        host.open_turn("hello", session="s", id="one")
        with pytest.raises(TurnAlreadyOpen):
            host.open_turn("hello", session="s", id="one")
        with pytest.raises(InvalidTurn):
            host.open_turn("hello", session="")
        with pytest.raises(UnknownPlugin):
            host.unregister("p")
        host.register("p", FaultPlugin(Fault.RAISE, "before_prompt"), fail_closed=True)
        with pytest.raises(FaultError):
            host.open_turn("hello", session="s")
        host.unregister("p", drain=True)
        assert host.open_turn("hello", session="s").drop()


def test_several_threads_share_a_host(make_host):
    """Each of many threads gets its own turn, and the plugins learn of each turn once."""
    plugin = RecordingPlugin()

    def run(number):
        with host.turn(str(number), session=f"s{number % 3}") as turn:
            turn.tool_result(tool="t", call_id="1")
            turn.commit(turn.prompt)
        return turn.prompt

    with make_host({"p": plugin}) as host:
        with ThreadPoolExecutor(8) as pool:
            prompts = list(pool.map(run, range(40)))
        host.drain()

    expected = [str(number) for number in range(40)]
    assert (expected, sorted(expected)) == (
        prompts,
        sorted(each.text for each in told(plugin, "after_prompt", "answer")),
    )


def test_hooks_run_in_the_context_of_the_caller(make_host):
    """Context variables of the calling thread are seen in the turn and in the background."""
    variable, seen = contextvars.ContextVar("variable", default="nobody's"), []

    class Reads:
        @hookimpl
        async def before_prompt(self):
            seen.append(variable.get())

        @hookimpl
        async def after_prompt(self):
            seen.append(variable.get())

    def run(value):
        variable.set(value)
        host.open_turn("hello", session="s").commit("bye")

    with make_host({"p": Reads()}, {"background": False}) as host:
        for value in ("one", "two"):
            contextvars.copy_context().run(run, value)

    assert ["one", "one", "two", "two"] == seen


async def _run(*_):
    return "done"


def test_everything_that_a_host_offers_is_there(make_host):
    """`SyncHost` has turns by id, the plugins with their tools and commands, and the trail."""
    tool, command = (
        Tool(name="recall", description="d", parameters={}, run=_run),
        Command(name="status", summary="s", run=_run),
    )
    plugin = RecordingPlugin(tools=[tool], commands=[command])
    with make_host({"p": plugin}) as host:
        for turn_id in ("one", "two"):
            host.open_turn("hello", session="s", id=turn_id)
        found = host.find_turn("one")
        done = [host.tool_result("one", tool="t", call_id="1"), host.commit("one", "bye"), host.drop("two")]
        late = [host.tool_result("one", tool="t", call_id="1"), found.commit("bye"), host.drop("two")]
        with pytest.raises(TurnClosed):
            host.find_turn("one")
        host.drain()
        host.trail.flush()

        assert ("one", [True] * 3, [False] * 3) == (found.id, done, late)
        assert (plugin, {"p": plugin.info}) == (host.plugin("p"), host.plugins)
        assert ({"p": (tool,)}, {"p": (command,)}) == (host.tools, host.commands)
        assert {"turn_committed", "turn_dropped"} == {each.name for each in host.trail.tail()}
    with pytest.raises(HostNotOpen):
        host.trail  # noqa: B018 - the test reads it on purpose


def test_what_a_caller_may_use(make_host):
    """`SyncHost` offers tools and commands to the callers that they allow, and to no caller while memory is off."""

    def is_full(caller):
        return caller.trust is Trust.FULL

    tools = [Tool(name=name, description="d", parameters={}, run=_run, **more)
             for name, more in (("recall", {}), ("write", {"allows": is_full}))]  # fmt: skip
    commands = [Command(name=name, summary="s", run=_run, **more)
                for name, more in (("status", {}), ("purge", {"allows": is_full}))]  # fmt: skip
    owner, stranger = [CommandContext(session="s", user="ann", trust=trust) for trust in (Trust.FULL, Trust.PUBLIC)]
    with make_host({"p": RecordingPlugin(tools=tools, commands=commands)}) as host:
        offered = [
            [[each.name for each in found["p"]] for found in (host.offered_tools(who), host.offered_commands(who))]
            for who in (owner, stranger)
        ]
        with pytest.raises(NotAllowed):
            host.run_command("p", "purge", (), stranger)
        before = host.is_memory_off(session="s", user="ann")
        host.switch_memory(on=False, session="s", user="ann")
        off = [host.is_memory_off(session=session, user="ann") for session in ("s", "t", None)]
        nothing = host.offered_tools(owner), host.offered_commands(owner)
        with host.turn("hello", session="s", user="ann", trust="full") as turn, pytest.raises(NotAllowed):
            host.run_tool(turn.id, "recall", {})
        host.switch_memory(on=True, session="s", user="ann")

        assert [[["recall", "write"], ["status", "purge"]], [["recall"], ["status"]]] == offered
        assert (False, [True, False, False], ({"p": ()}, {"p": ()})) == (before, off, nothing)
        assert "done" == host.run_command("p", "purge", (), owner)
        with pytest.raises(InvalidTurn):
            host.switch_memory(on=False, user=" ")


# --- Misuse ---------------------------------------------------------------------------------------------------


def test_a_host_that_is_not_open_says_so(make_host):
    """Every call raises before the host is entered and after it is left, also a second closing."""
    host = make_host()
    said = []
    for _ in range(2):
        opening = partial(host.open_turn, "hello", session="s")
        said += refusals(HostNotOpen, host.close, host.health, host.drain, opening)
        with host:
            pass

    assert {NOT_OPEN} == set(said)


def test_a_host_is_opened_once_at_a_time(make_host):
    """A second opening is refused and leaves the first one alone; once closed it may be opened again."""
    host = make_host()
    for _ in range(2):
        with host:
            assert ([OPEN_ALREADY], {"host"}) == (refusals(HostNotOpen, host.open), set(host.health()))


@pytest.mark.parametrize(
    ("plugin", "expected"), [(FaultPlugin, PluginRefused), (FaultPlugin(Fault.SYSTEM_EXIT, "start"), PluginFailed)]
)
def test_an_opening_that_fails_leaves_nothing(make_host, plugin, expected):
    """The thread is gone, and the host is as it was before."""
    host = make_host({"p": plugin})
    for _ in range(2):
        with pytest.raises(expected):
            host.open()
    with pytest.raises(HostNotOpen):
        host.health()


def test_a_hook_of_its_own_cannot_use_it(make_host):
    """A hook that calls the facade would wait for itself; each call raises instead, and the host stays open."""
    said = []

    class Inside:
        @hookimpl
        async def before_prompt(self):
            for use in (host.health, host.close, lambda: host.open_turn("hello", session="s")):
                try:
                    use()
                except WrongLoop as error:
                    said.append(str(error))

    with make_host({"p": Inside()}) as host:
        assert host.open_turn("hello", session="s").commit("bye")

    assert [FROM_INSIDE] * 3 == said


def test_an_inner_host_belongs_to_its_own_thread(make_host):
    """A caller that reaches around the facade gets `WrongLoop`."""
    host = make_host()
    with host, pytest.raises(WrongLoop):
        host._host.health()


def test_a_forked_child_is_refused(make_host):
    """Every call in a forked child raises at once instead of waiting for a thread that was not forked."""
    with make_host() as host:
        turn = host.open_turn("hello", session="s")
        uses = (host.health, host.open, host.close, lambda: turn.commit("bye"), host.health)

        assert [f"{ForkedHost.__name__}: {FORKED}"] * 5 == [in_child(use) for use in uses]
        assert turn.commit("bye")


class Parting:
    """Stops only when the test tells it to."""

    def __init__(self):
        self.begun = threading.Event()

    @hookimpl
    def describe(self):
        return PluginInfo(version="0", contract="1.0", deadlines=Deadlines(stop=SAFETY))

    @hookimpl
    async def start(self):
        self.loop, self.gate = asyncio.get_running_loop(), asyncio.Event()

    @hookimpl
    async def stop(self):
        self.begun.set()
        await self.gate.wait()

    def go(self):
        self.loop.call_soon_threadsafe(self.gate.set)


def test_two_who_close_at_once(make_host):
    """The first closing takes its time; a second caller gets the error that the host is not open."""
    plugin = Parting()
    host = make_host({"p": plugin})
    host.open()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(host.close)
        assert plugin.begun.wait(SAFETY)
        said = refusals(HostNotOpen, host.close, host.health, host.open)
        still = first.running()
        plugin.go()

        assert ([NOT_OPEN, NOT_OPEN, OPEN_ALREADY], True) == (said, still)
        assert first.result(SAFETY) is None


def test_many_who_close_at_once(make_host):
    """Exactly one of four callers closes the host, and none of them hangs."""
    host = make_host()
    for _ in range(20):
        host.open()
        with ThreadPoolExecutor(4) as pool:
            errors = [each.exception(SAFETY) for each in [pool.submit(host.close) for _ in range(4)]]
        assert [HostNotOpen] * 3 == [type(each) for each in errors if each is not None]


def test_a_call_that_meets_a_closing_host_is_refused(make_host):
    """A call that holds the thread of a closed host raises that the host is not open."""
    host = make_host()
    with host:
        thread = host._thread

    assert [NOT_OPEN] * 2 == refusals(
        HostNotOpen, partial(thread.call, host._host.drain), partial(thread.end, host._host.close)
    )


def test_a_host_that_is_given_takes_no_options(tmp_path):
    """Options beside a given host are refused, because they would be lost."""
    said = "a `Host` that is given has its options already; give it these: state_folder"
    assert [said] == refusals(HostMisused, partial(SyncHost, Host(), state_folder=tmp_path))


# --- Interruptions --------------------------------------------------------------------------------------------


def test_interrupting_the_caller_cancels_the_call(tmp_path):
    """Control-C while a hook hangs gets out at once, cancels the hook and drops the turn."""
    source = """
        import os, signal, sys, threading
        from beaver_hooks import SyncHost
        from beaver_hostspecs import hookimpl
        import asyncio

        told = []

        class Hangs:
            @hookimpl
            async def before_prompt(self):
                main = threading.main_thread().ident
                while sys._current_frames()[main].f_code.co_name != "wait":
                    await asyncio.sleep(0)
                os.kill(os.getpid(), signal.SIGINT)
                try:
                    await asyncio.Event().wait()
                finally:
                    told.append("cancelled")

            @hookimpl
            async def on_turn_dropped(self, reason):
                told.append(reason.value)

        with SyncHost({"p": Hangs()}, state_folder=sys.argv[1]) as host:
            try:
                host.open_turn("hello", session="s")
            except KeyboardInterrupt:
                told.append("interrupted")
            host.drain()
        print(sorted(told))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source), str(tmp_path / ".beaver")],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert ("['cancelled', 'cancelled', 'interrupted']\n", "", 0) == (done.stdout, done.stderr, done.returncode)


READ = """
    import asyncio, sys
    from beaver_hooks import Host

    async def read():
        async with Host(state_folder=sys.argv[1]) as host:
            print(*sorted({each.name for each in host.trail.tail()}))

    asyncio.run(read())
"""


def run(source, folder):
    """Run a script to its end; return its output and the output of a later look at its trail."""
    said = []
    for each in (source, READ):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(each), str(folder)],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        said += [done.stdout, done.stderr]
    return said


@pytest.mark.campaign
def test_interrupting_the_closing_cuts_it_short(tmp_path):
    """Control-C while the background drains: the plugin is stopped, and the trail has the lost calls."""
    source = """
        import asyncio, os, signal, sys, threading
        from beaver_hooks import SyncHost
        from beaver_hostspecs import Deadlines, PluginInfo, hookimpl

        class Hangs:
            @hookimpl
            def describe(self):
                return PluginInfo(version="0", contract="1.0", deadlines=Deadlines(after_prompt=60.0))

            @hookimpl
            async def after_prompt(self):
                main = threading.main_thread().ident
                while host._thread is not None or sys._current_frames()[main].f_code.co_name != "wait":
                    await asyncio.sleep(0)
                os.kill(os.getpid(), signal.SIGINT)
                await asyncio.Event().wait()

            @hookimpl
            async def stop(self):
                await asyncio.sleep(0.3)  # longer than what is merely left on the loop gets
                print("stopped")

        host = SyncHost({"p": Hangs()}, state_folder=sys.argv[1])
        host.open()
        turns = [host.open_turn("hello", session="s") for _ in range(2)]
        for turn in turns:
            turn.commit("bye")
        try:
            host.close()
        except KeyboardInterrupt:
            print("interrupted", [each.name for each in threading.enumerate() if each.name.startswith("beaver")])
    """

    said, log, events, _ = run(source, tmp_path / "state")

    assert "stopped\ninterrupted []\n" == said
    assert ("event=beaver_hooks.background_lost count=2 why=closing\n", "background_lost turn_committed\n") == (
        log,
        events,
    )


def test_a_host_that_nobody_closes_is_closed_with_the_interpreter(tmp_path):
    """The interpreter's end writes the committed turn and stops the plugins; a forked child leaves the host alone."""
    source = """
        import asyncio, os, sys
        from beaver_hooks import SyncHost
        from beaver_hostspecs import hookimpl

        class Learns:
            @hookimpl
            async def after_prompt(self, answer):
                await asyncio.sleep(0.05)
                print("learned", answer.text)

            @hookimpl
            async def stop(self):
                print("stopped")

        def forgetful():
            host = SyncHost({"p": Learns()}, state_folder=sys.argv[1])
            host.open()
            child = os.fork()
            if not child:
                sys.exit(7)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
            host.open_turn("hello", session="s").commit("bye")

        forgetful()
    """

    assert ["7\nlearned bye\nstopped\n", "", "turn_committed\n", ""] == run(source, tmp_path / "state")


def test_a_keyboard_interrupt_of_a_plugin_reaches_its_caller(make_host):
    """A plugin's `KeyboardInterrupt` reaches the waiting thread, and the host's own thread lives on."""

    class Interrupts:
        interrupting = True

        @hookimpl
        async def before_prompt(self):
            if self.interrupting:
                raise KeyboardInterrupt

    plugin = Interrupts()
    with make_host({"p": plugin}) as host:
        with pytest.raises(KeyboardInterrupt):
            host.open_turn("hello", session="s")
        plugin.interrupting = False
        assert host.open_turn("hello", session="s").commit("bye")


def test_closing_sets_those_free_who_still_wait(make_host):
    """A thread that waits for a hanging hook when another one closes the host is not left waiting."""
    begun = threading.Event()

    class Hangs:
        @hookimpl
        def describe(self):
            return PluginInfo(version="0", contract="1.0", deadlines=Deadlines(before_prompt=60.0))

        @hookimpl
        async def before_prompt(self):
            begun.set()
            await asyncio.Event().wait()

    with ThreadPoolExecutor(1) as pool:
        with make_host({"p": Hangs()}) as host:
            waiting = pool.submit(host.open_turn, "hello", session="s")
            assert begun.wait(SAFETY)
        error = waiting.exception(SAFETY)

    assert (HostNotOpen, "the host was closed while the turn was being opened") == (type(error), str(error))


@pytest.mark.parametrize("stubborn", [False, True])
def test_closing_sets_those_free_who_wait_for_other_things(make_host, caplog, stubborn):
    """A thread that waits for a coroutine gets a `CancelledError`, also if that swallows its own and dies with the loop."""
    begun = threading.Event()

    async def wait():
        begun.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        if stubborn:
            await wait()
        raise asyncio.CancelledError

    with ThreadPoolExecutor(1) as pool:
        with make_host() as host:
            waiting = pool.submit(host.call, wait)
            assert begun.wait(SAFETY)
        error = waiting.exception(SAFETY)

    assert "CancelledError" == type(error).__name__
    if stubborn:
        del host, waiting, error
        gc.collect()
        caplog.clear()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_a_call_that_means_the_process_ends_no_loop(make_host, error):
    """The error reaches the caller, and the host's thread serves further calls."""

    async def leave():
        raise error

    with make_host() as host:
        with pytest.raises(error):
            host.call(leave)
        assert 0 == host.drain()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_closing_that_fails_ends_the_thread(make_host, error):
    """The error of a failing closing gets out, and its thread ends."""
    host = make_host()
    host.open()
    closing = host._host.close

    async def fails():
        await closing()
        raise error

    host._host.close = fails
    with pytest.raises(error):
        host.close()
    with pytest.raises(HostNotOpen):
        host.close()


def test_hurrying_cuts_the_closing_short():
    """Hurrying cancels the last work, and waits for its clean-up."""
    begun, told = threading.Event(), []

    async def last():
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            told.append("written")

    thread, hurry = LoopThread(), asyncio.Event()
    ended = thread._begin(thread._wind_up(last, hurry))
    assert begun.wait(SAFETY)
    thread._loop.call_soon_threadsafe(hurry.set)

    thread._thread.join(SAFETY)

    assert (True, ["written"]) == (ended.cancelled(), told)


def test_what_does_not_end_is_abandoned_with_the_loop(make_host, caplog):
    """A plugin that swallows its cancellation does not keep the host from closing; asyncio may log its task."""
    info = PluginInfo(version="0", contract="1.0", deadlines=Deadlines(before_prompt=0.01))
    plugin = FaultPlugin(Fault.SLOW_CLEANUP, "before_prompt", info=info, duration=60.0)
    with make_host({"p": plugin}) as host:
        host.open_turn("hello", session="s").commit("bye")

    assert 1 == plugin.running
    del host, plugin
    gc.collect()
    assert all("destroyed but it is pending" in each.getMessage() for each in caplog.records if each.name == "asyncio")
    caplog.clear()


def test_signals_are_left_alone(make_host):
    """A library does not touch the handlers of the program."""
    before = signal.getsignal(signal.SIGINT)
    with make_host():
        assert before == signal.getsignal(signal.SIGINT)
