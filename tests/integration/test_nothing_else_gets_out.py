"""Nothing but the errors of the tree gets out of a host, however wrongly it is used, and none of them shows a value."""

import asyncio
import inspect
import threading

import pytest

from beaver_hooks import Host, OpenTurn, SyncHost, SyncTurn
from beaver_hostspecs import (
    BeaverError,
    CommandContext,
    Contribution,
    HostError,
    HostNotOpen,
    InvalidTurn,
    PluginFailed,
    PluginInfo,
    PluginRefused,
    Reference,
    TurnClosed,
    UnknownPlugin,
    UnknownTurn,
    WrongLoop,
    hookimpl,
)
from beaver_hostspecs.testing import Fault, FaultError, FaultPlugin, RecordingPlugin
from beaver_hostspecs.testing.factories import NOON

WORDS = "what nobody but the user may read"
"""Content: no error may show it. It is no secret, so that no scrubber hides that it was shown."""

NAMING = frozenset(
    {"name", "plugin", "plugins", "entry_points", "fail_closed", "path", "state_folder", "person_folder"}
)
"""Arguments whose value an error may name, unless it is a secret."""

CALLER_S_OWN = frozenset({"call", "reach", "within"})
"""What runs the caller's own function, whose errors are the caller's own, and what it runs it with."""

TURN = {
    "prompt": "Hello.",
    "session": "s",
    "supersedes": None,
    "id": "t-new",
    "when": NOON,
    "conversation": "c",
    "user": "u",
    "history": (),
    "scope": None,
    "actors": None,
    "refs": (),
    "registry": None,
    "budget": 100,
    "trust": "full",
}
RESULT = {
    "tool": "search",
    "call_id": "c1",
    "output": "a note",
    "error": None,
    "arguments": {"q": "Ulm"},
    "outcome": "success",
    "registry": None,
    "duration": None,
    "summary": "found",
    "external": False,
    "private": False,
}
BY_ID = {"turn_id": "t"}
HOST = {
    "open": {},
    "close": {},
    "drain": {"seconds": 1},
    "register": {"name": "new", "plugin": RecordingPlugin, "fail_closed": False},
    "unregister": {"name": "good", "drain": False},
    "plugin": {"name": "good"},
    "plugins": {},
    "fail_closed": {},
    "tools": {},
    "commands": {},
    "offered_tools": {"caller": CommandContext},
    "offered_commands": {"caller": CommandContext},
    "switch_memory": {"on": True, "session": "s", "user": "u"},
    "is_memory_off": {"session": "s", "user": "u"},
    "run_tool": BY_ID | {"name": "echo", "arguments": {}},
    "use_tool": {"name": "echo", "arguments": {}}
    | {name: TURN[name] for name in TURN if name not in {"prompt", "supersedes"}},
    "run_command": {"plugin": "good", "command": "say", "words": ["it"], "context": CommandContext},
    "record": {"event": "seen", "plugin": "good", "loudly": False},
    "open_turn": TURN,
    "turn": TURN,
    "find_turn": BY_ID,
    "tool_result": BY_ID | RESULT,
    "commit": BY_ID | {"answer": "Yes."},
    "drop": BY_ID | {"reason": "failed"},
    "before_compaction": {"session": "s", "conversation": "c", "user": "u", "trust": "full", "why": "requested"},
    "health": {},
    "notices": {},
    "receipt": BY_ID,
    "trail": {},
}
"""Every public name of a host, each with arguments that are right; `None` is left out, a class is called."""

CHANGING = frozenset({"open", "close", "register", "unregister"})
"""What leaves a host behind that is another one."""

OPEN_TURN = {
    "id": {},
    "prompt": {},
    "references": {},
    "hints": {},
    "receipt": {},
    "system_prompt": {"base": "You help."},
    "tool_result": RESULT,
    "commit": {"answer": "Yes.", "messages": (), "stored": True},
    "drop": {"reason": "failed"},
    "drop_at_once": {"reason": "failed"},
}
SYNC_TURN = {name: arguments for name, arguments in OPEN_TURN.items() if name != "drop_at_once"}
FIELDS = frozenset({"turn", "recall", "builder", "members", "opened"})
"""What an open turn holds and does not do."""

MADE_WITH = ("plugins", "entry_points", "fail_closed", "config", "state_folder", "person_folder", "services", "sinks", "clock",
             "boundary", "environment")  # fmt: skip


def odd_values(argument, canary):
    """Return values that fit in few places, by a name for each."""
    words = canary.reveal() if argument in NAMING else WORDS
    return {
        "None": None,
        "True": True,
        "7": 7,
        "-1": -1,
        "nan": float("nan"),
        "bytes": words.encode(),
        "empty": "",
        "words": words,
        "NUL": f"\0{words}",
        "surrogate": f"\ud800{words}",
        "list": [words],
        "list of lists": [[words]],
        "dict": {words: words},
        "dict of 7": {7: words},
        "object": object(),
        "function": lambda: words,
        "class": RecordingPlugin,
        "plugin": RecordingPlugin(),
    }


def odd_arguments(arguments, canary):
    """Return each argument with each of the odd values, and the name of the value."""
    return [(argument, odd, value) for argument in arguments for odd, value in odd_values(argument, canary).items()]


def right(arguments):
    """Return arguments that are right, made anew."""
    return {
        name: value() if isinstance(value, type) else value for name, value in arguments.items() if value is not None
    }


def each_argument(*tables):
    """Run a test for every argument of every call in the tables."""
    cases = [(name, argument) for table in tables for name, arguments in table.items() for argument in arguments]
    return pytest.mark.parametrize(("name", "argument"), cases, ids=[f"{name}-{argument}" for name, argument in cases])


def each_name(table):
    return pytest.mark.parametrize("name", table)


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


class Recalling:
    """Recalls in every turn, so that the turn uses all parts of which turns are made."""

    @hookimpl
    def describe(self):
        return PluginInfo(version="1", contract="1.0")

    @hookimpl
    async def before_prompt(self, turn):
        return Contribution(references=[Reference(text="The map hangs in the hall.", id=turn.session)])

    @hookimpl
    async def after_prompt(self, turn, answer):
        turn.was_injected(answer.text)


@pytest.fixture
def make_host(tmp_path):
    def make(plugins=None, **options):
        plugins = {"good": Recalling()} if plugins is None else plugins
        return Host(plugins, **{"state_folder": tmp_path / "state", "environment": {}, **options})

    return make


def value_of(target, name, arguments):
    """Return the attribute of `target`, or the result of calling it."""
    found = getattr(target, name)
    return found(**arguments) if callable(found) else found


async def use(target, name, arguments):
    """Use a name of `target` as its callers do: call it, await it, enter it."""
    value = value_of(target, name, arguments)
    if inspect.isawaitable(value):
        value = await value
    if hasattr(value, "__aenter__"):
        async with value:
            pass


def use_now(target, name, arguments):
    """Use a name of `target` as callers without a loop do."""
    value = value_of(target, name, arguments)
    if hasattr(value, "__enter__"):
        with value:
            pass


def faults(error, canary):
    """Return the fault of an error that got out, or `None` for a good one."""
    if error is None:
        return None
    texts = (str(error), repr(error))
    if not isinstance(error, BeaverError):
        return f"{type(error).__name__} got out"
    if any(WORDS in text for text in texts) or any(canary.traces(text) for text in texts):
        return f"{type(error).__name__} shows a value"
    return None


async def escaped(using):
    """Return the exception of an awaitable, or `None`."""
    try:
        await using
    except BaseException as error:
        return error
    return None


def escaped_now(function, *arguments):
    """Return the exception of a call, or `None`."""
    try:
        function(*arguments)
    except BaseException as error:
        return error
    return None


def wrong(found):
    """Return the faults among the findings, by the value that brought them about."""
    return {name: fault for name, fault in found.items() if fault}


# --- The tables are complete ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "tried"),
    [
        (Host, {*HOST, "from_config"}),
        (SyncHost, {*HOST, *CALLER_S_OWN}),
        (OpenTurn, {*OPEN_TURN, *FIELDS}),
        (SyncTurn, {*SYNC_TURN, *FIELDS}),
    ],
    ids=lambda each: each.__name__ if isinstance(each, type) else "",
)
def test_everything_public_is_tried(kind, tried):
    """A public name that no test here uses is found."""
    assert set() == public(kind) - tried


def test_everything_that_a_host_is_made_with_is_tried():
    """An argument of the constructor that no test here uses is found."""
    assert ["self", *MADE_WITH] == list(inspect.signature(Host.__init__).parameters)


# --- Wrong values, one at a time --------------------------------------------------------------------------------


@each_name(HOST)
async def test_no_value_lets_another_error_out_of_a_host(make_host, canary, name):
    """Each call accepts an odd value for an argument, or refuses it with an error of the tree."""
    found, spent = {}, []
    for argument, odd, value in odd_arguments(HOST[name], canary):
        if name in CHANGING or not spent:
            spent.append(await make_host().__aenter__())
        host, turn_id = spent[-1], f"t-{argument}-{odd}"
        await host.open_turn("Hello.", session="s", id=turn_id)
        given = right(HOST[name]) | ({"turn_id": turn_id} if "turn_id" in HOST[name] else {}) | {argument: value}
        found[argument, odd] = faults(await escaped(use(host, name, given)), canary)
    for host in spent:
        await host.close()

    assert {} == wrong(found)


@each_argument(OPEN_TURN)
async def test_no_value_lets_another_error_out_of_a_turn(make_host, canary, name, argument):
    """No wrong argument of a call on an open turn lets out an error from outside the tree."""
    found = {}
    async with make_host() as host:
        for odd, value in odd_values(argument, canary).items():
            turn = await host.open_turn("Hello.", session="s")
            found[odd] = faults(await escaped(use(turn, name, right(OPEN_TURN[name]) | {argument: value})), canary)

    assert {} == wrong(found)


@pytest.mark.parametrize("argument", MADE_WITH)
async def test_no_value_lets_another_error_out_of_the_making_of_a_host(tmp_path, monkeypatch, canary, argument):
    """An odd option of a host raises only errors of the tree, through its opening, a turn and its closing."""
    monkeypatch.chdir(tmp_path)
    found = {}
    for number, (odd, value) in enumerate(odd_values(argument, canary).items()):
        options = {"plugins": {"good": Recalling()}, "state_folder": tmp_path / str(number), "environment": {}}
        found[odd] = faults(await escaped(whole_life(options | {argument: value})), canary)

    assert {} == wrong(found)


async def whole_life(options):
    """Make a host, open it, run a turn, close it."""
    async with Host(**options) as host, host.turn("Hello.", session="s") as turn:
        await turn.commit("Yes.")


@pytest.mark.parametrize("argument", ["path", "plugins", "services", "sinks", "environment"])
async def test_no_value_lets_another_error_out_of_from_config(tmp_path, monkeypatch, canary, argument):
    """An odd option of `from_config` raises only errors of the tree."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "config.json"
    path.write_text('{"plugins": {"disabled": ["tally"]}}')
    found = {}
    for odd, value in odd_values(argument, canary).items():
        options = {"path": path, "environment": {}, argument: value}
        found[odd] = faults(await escaped(from_config(options)), canary)

    assert {} == wrong(found)


async def from_config(options):
    """Make a host from a configuration, open it and close it."""
    async with Host.from_config(**options):
        pass


@each_name(HOST)
def test_no_value_lets_another_error_out_of_a_sync_host(make_host, canary, name):
    """An odd argument of a `SyncHost` raises only errors of the tree; one odd value is tried for each argument."""
    found = {}
    for argument, odd, value in odd_arguments(HOST[name], canary):
        if odd == "dict of 7":
            with SyncHost(make_host()) as host:
                host.open_turn("Hello.", session="s", id="t")
                error = escaped_now(use_now, host, name, right(HOST[name]) | {argument: value})
                found[argument] = faults(error, canary)

    assert {} == wrong(found)


@each_argument(SYNC_TURN)
def test_no_value_lets_another_error_out_of_a_sync_turn(make_host, canary, name, argument):
    """An odd argument of a turn of `SyncHost` raises only errors of the tree."""
    found = {}
    with SyncHost(make_host()) as host:
        for odd, value in odd_values(argument, canary).items():
            turn = host.open_turn("Hello.", session="s")
            error = escaped_now(use_now, turn, name, right(SYNC_TURN[name]) | {argument: value})
            found[odd] = faults(error, canary)

    assert {} == wrong(found)


# --- Misuse that must be refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"plugins": ["good"]},
        {"plugins": "good"},
        {"plugins": {7: RecordingPlugin()}},
        {"entry_points": "tally"},
        {"entry_points": [7]},
        {"entry_points": 7},
        {"fail_closed": "good"},
        {"fail_closed": ["nobody"]},
        {"fail_closed": 7},
        {"config": {}},
        {"config": {"host": {}}},
        {"config": "config.json"},
        {"state_folder": 7},
        {"person_folder": 7},
        {"services": {}},
        {"sinks": 7},
        {"sinks": [object()]},
        {"clock": object()},
        {"boundary": "fence"},
        {"environment": 7},
    ],
    ids=lambda options: " ".join(f"{name}={type(value).__name__}" for name, value in options.items()),
)
def test_a_host_is_not_made_with_what_cannot_work(options):
    """The constructor refuses an impossible option with a `HostError` that names it."""
    with pytest.raises(HostError) as caught:
        Host(**({"plugins": {"good": RecordingPlugin()}} | options))

    assert next(iter(options)) in str(caught.value)


@pytest.mark.parametrize("options", [{"entry_points": "tally"}, {"config": {}}, {"fail_closed": ["nobody"]}])
def test_a_sync_host_is_not_made_with_what_cannot_work(options):
    """`SyncHost` refuses the same impossible options."""
    with pytest.raises(HostError):
        SyncHost({"good": RecordingPlugin()}, **options)


@pytest.mark.parametrize("host", [["good"], "good", 7, {7: RecordingPlugin()}], ids=["list", "str", "int", "name"])
def test_a_sync_host_takes_plugins_or_a_host(host):
    """`SyncHost` refuses anything but plugins or a host."""
    with pytest.raises(HostError):
        SyncHost(host)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("register", {"name": 123, "plugin": RecordingPlugin()}, PluginRefused),
        ("register", {"name": "", "plugin": RecordingPlugin()}, PluginRefused),
        ("register", {"name": "a b", "plugin": RecordingPlugin()}, PluginRefused),
        ("register", {"name": "host", "plugin": RecordingPlugin()}, PluginRefused),
        ("register", {"name": "good", "plugin": RecordingPlugin()}, PluginRefused),
        ("register", {"name": "x", "plugin": object()}, PluginRefused),
        ("register", {"name": "x", "plugin": None}, PluginRefused),
        ("register", {"name": "x", "plugin": RecordingPlugin}, PluginRefused),
        ("unregister", {"name": "nobody"}, UnknownPlugin),
        ("unregister", {"name": 7}, UnknownPlugin),
        ("unregister", {"name": []}, UnknownPlugin),
        ("plugin", {"name": "nobody"}, UnknownPlugin),
        ("open_turn", {"prompt": 7, "session": "s"}, InvalidTurn),
        ("open_turn", {"prompt": "p", "session": 7}, InvalidTurn),
        ("open_turn", {"prompt": "p", "session": ""}, InvalidTurn),
        ("open_turn", {"prompt": "p", "session": "s", "when": "now"}, InvalidTurn),
        ("open_turn", {"prompt": "p", "session": "s", "when": NOON.replace(tzinfo=None)}, InvalidTurn),
        ("open_turn", {"prompt": "p", "session": "s", "history": ["Hello."]}, InvalidTurn),
        ("open_turn", {"prompt": "p", "session": "s", "history": "Hello."}, InvalidTurn),
        ("open_turn", {"prompt": "p", "session": "s", "scope": {}}, InvalidTurn),
        ("open_turn", {"prompt": "p", "session": "s", "budget": "much"}, InvalidTurn),
        ("open_turn", {"prompt": "p", "session": "s", "trust": "boss"}, InvalidTurn),
        ("open_turn", {"prompt": "p", "session": "s", "unheard_of": 1}, InvalidTurn),
        ("find_turn", {"turn_id": "unheard of"}, UnknownTurn),
        ("commit", {"turn_id": "unheard of", "answer": "Yes."}, UnknownTurn),
        ("commit", {"turn_id": "t", "answer": 7}, InvalidTurn),
        ("drop", {"turn_id": "unheard of"}, UnknownTurn),
        ("drop", {"turn_id": "t", "reason": "boredom"}, InvalidTurn),
        ("tool_result", {"turn_id": "unheard of", "tool": "search", "call_id": "c"}, UnknownTurn),
        ("tool_result", {"turn_id": "t", "tool": 7, "call_id": "c"}, InvalidTurn),
        ("tool_result", {"turn_id": "t", "tool": "search", "call_id": "c", "outcome": "maybe"}, InvalidTurn),
        ("open", {}, HostNotOpen),
    ],
)
async def test_misuse_has_its_own_error(make_host, name, arguments, expected):
    """Each wrong use is refused by the error that the documentation names for it, and the turn that is open stays open."""
    async with make_host() as host:
        turn = await host.open_turn("Hello.", session="s", id="t")
        error = await escaped(use(host, name, arguments))
        committed = await turn.commit("Yes.")

    assert (expected, True) == (type(error), committed)


async def test_an_id_is_used_once(make_host):
    """A second turn with the id of a closed one is refused."""
    async with make_host() as host:
        await (await host.open_turn("Hello.", session="s", id="t")).drop()
        error = await escaped(use(host, "open_turn", {"prompt": "p", "session": "s", "id": "t"}))

    assert TurnClosed is type(error)


# --- The wrong time and the wrong place -------------------------------------------------------------------------


@pytest.mark.parametrize("ever_open", [True, False], ids=["closed", "never opened"])
async def test_a_host_that_is_not_open(make_host, ever_open):
    """Each call raises that the host is not open."""
    host, names = make_host(), [name for name in HOST if name != "open"]
    if ever_open:
        async with host:
            pass
    raised = {name: type(await escaped(use(host, name, right(HOST[name])))) for name in names}

    assert dict.fromkeys(names, HostNotOpen) == raised


@pytest.mark.parametrize("ever_open", [True, False], ids=["closed", "never opened"])
def test_a_sync_host_that_is_not_open(make_host, ever_open):
    """Each call of a `SyncHost` raises that the host is not open."""
    host, names = SyncHost(make_host()), [name for name in HOST if name != "open"]
    if ever_open:
        with host:
            pass
    raised = {name: type(escaped_now(use_now, host, name, right(HOST[name]))) for name in names}

    assert dict.fromkeys(names, HostNotOpen) == raised


async def test_a_host_in_another_loop(make_host):
    """Each call raises that the host belongs to the loop that opened it."""
    raised = {}

    def elsewhere():
        for name, arguments in HOST.items():
            raised[name] = type(asyncio.run(escaped(use(host, name, right(arguments)))))

    async with make_host() as host:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        await asyncio.to_thread(thread.join)

    # The trail is safe to use from any thread, and belongs to no loop.
    assert dict.fromkeys(HOST, WrongLoop) | {"open": HostNotOpen, "trail": type(None)} == raised


@each_name(["tool_result", "commit", "drop"])
async def test_a_turn_outlives_its_host_harmlessly(make_host, name):
    """A call on a turn whose host is closed changes nothing, or raises an error of the tree."""
    async with make_host() as host:
        turn = await host.open_turn("Hello.", session="s")
    error = await escaped(use(turn, name, right(OPEN_TURN[name])))

    assert isinstance(error, BeaverError | None)


# --- Exceptions that the host does not keep ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault.RAISE, FaultError),
        (Fault.SYSTEM_EXIT, PluginFailed),
        (Fault.BASE_EXCEPTION, PluginFailed),
        (Fault.CANCEL_ITSELF, PluginFailed),
        (Fault.GARBAGE, PluginFailed),
    ],
    ids=str,
)
async def test_a_fail_closed_plugin_has_its_own_error(make_host, canary, fault, expected):
    """A plugin's own exception comes out unchanged; any other fault is an error about the plugin without values."""
    info = PluginInfo(version="1", contract="1.0")
    plugin = FaultPlugin(fault, "before_prompt", secret=canary.secret, info=info)
    async with make_host({"closed": plugin}, fail_closed=["closed"]) as host:
        error = await escaped(host.open_turn("Hello.", session="s"))

    assert expected is type(error)
    assert expected is FaultError or faults(error, canary) is None


class Interrupting:
    """Stands for a Ctrl-C that hits while a plugin is asked."""

    @hookimpl
    async def before_prompt(self):
        raise KeyboardInterrupt


def test_an_interruption_goes_through(make_host):
    """A Ctrl-C while a hook runs goes through as `KeyboardInterrupt`."""

    async def chat():
        async with make_host({"interrupting": Interrupting()}) as host:
            await host.open_turn("Hello.", session="s")

    assert KeyboardInterrupt is type(escaped_now(asyncio.run, chat()))


async def test_cancellation_goes_through(make_host):
    """A caller that cancels an opening gets its `CancelledError`."""
    asked = asyncio.Event()

    class Waiting:
        @hookimpl
        async def before_prompt(self):
            asked.set()
            await asyncio.Event().wait()

    async with make_host({"waiting": Waiting()}) as host:
        opening = asyncio.create_task(host.open_turn("Hello.", session="s"))
        await asked.wait()
        opening.cancel()
        error = await escaped(opening)

    assert asyncio.CancelledError is type(error)
