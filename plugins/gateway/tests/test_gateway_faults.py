"""Every fault of a gateway at every operation costs the turn only the gateway's own part."""

import asyncio
import contextlib
import gc
import logging
import pickle
import socket
import traceback
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from selection import campaign

from beaver_hooks_curated import Operation, Target
from beaver_hooks_gateway import GatewayError, GatewayUnknown
from beaver_hooks_gateway.plugin import RULE
from beaver_hooks_gateway.testing import CONNECTION_FAULTS, FakeGateway, Fault
from beaver_hostspecs.testing import Canary, make_answer, make_turn

OPERATIONS = ("search", "add", "flush")
DNS = "dns"
"""The one fault that is not the server's: its name cannot be resolved."""

TIMEOUT = 0.5
"""Seconds for the faults that only a deadline ends."""

PATIENCE = 20.0
"""Seconds for all others: a slow machine must not look like a gateway that hangs."""

HANGING = frozenset({Fault.CONNECT_TIMEOUT, Fault.READ_TIMEOUT, Fault.SLOW_DRIP})
HOST = "localhost"

_TRUNCATED = ("truncated", 200)
_JSON = ("invalid_json", None)
_SHAPE = ("invalid_shape", None)
_REFUSALS = {
    "307": "redirected",
    "400": "bad_request",
    "401": "unauthorised",
    "403": "forbidden",
    "404": "not_found",
    "409": "conflict",
    "422": "invalid_request",
    "429": "rate_limited",
    "500": "server_error",
    "502": "server_error",
    "503": "server_error",
}
_REFUSED = {Fault.REDIRECT: ("redirected", 307)} | {
    Fault(status): (category, int(status)) for status, category in _REFUSALS.items() if status != "307"
}
_UNSENT = {
    Fault.REFUSED: ("connection", None),
    DNS: ("dns", None),
    Fault.TLS: ("tls", None),
    Fault.CONNECT_TIMEOUT: ("timeout", None),
}
_BROKEN = {
    Fault.RESET_BEFORE_HEADERS: ("connection", None),
    Fault.RESET_AFTER_HEADERS: _TRUNCATED,
    Fault.RESET_MID_BODY: _TRUNCATED,
    Fault.READ_TIMEOUT: ("timeout", None),
    Fault.SLOW_DRIP: ("timeout", None),
    Fault.TRUNCATED: _TRUNCATED,
    Fault.WRONG_LENGTH: _JSON,
    Fault.HUGE_BODY: ("too_large", 200),
    Fault.BOMB: ("encoded", 200),
    Fault.STATUS_204: _JSON,
    Fault.EMPTY: _JSON,
    Fault.HTML: _JSON,
    Fault.INVALID_UTF8: _JSON,
    Fault.INVALID_JSON: _JSON,
    Fault.OTHER_SHAPE: _SHAPE,
    Fault.DEEP: _JSON,
    Fault.NAN: _JSON,
}
_UNREAD = {Fault.NO_LIST: _SHAPE, Fault.LONE_SURROGATE: _JSON, Fault.FENCE: None}
"""Faults in what only a search reads: to an add or a flush any JSON object is a yes."""

_SEARCH = {**_UNSENT, **_BROKEN, **_REFUSED, **_UNREAD}
EXPECTED = {
    "search": _SEARCH,
    # The body was sent and no answer confirms it, so the outcome is unknown.
    "add": {
        **_UNSENT,
        **{fault: ("unknown", status) for fault, (_, status) in _BROKEN.items()},
        **_REFUSED,
        **dict.fromkeys(_UNREAD),
    },
    "flush": {**_SEARCH, **dict.fromkeys(_UNREAD)},
}
"""Category and status of the error by operation and fault; `None` for none."""

FAULTS = (*Fault, DNS)
CELLS = [(fault, operation) for operation in OPERATIONS for fault in FAULTS]
TYPICAL = (Fault.REFUSED, DNS, Fault.RESET_MID_BODY, Fault.READ_TIMEOUT, Fault.INVALID_JSON, Fault("401"), Fault("500"))
OF_SEARCH = (
    Fault.TLS, Fault.HUGE_BODY, Fault.BOMB, Fault.OTHER_SHAPE, Fault.REDIRECT, Fault("429"), Fault.LONE_SURROGATE,
    Fault.FENCE,
)  # fmt: skip
"""One of each other kind."""
TURN_CELLS = [
    *((fault, operation) for operation in OPERATIONS for fault in TYPICAL),
    *((each, "search") for each in OF_SEARCH),
]
"""Those that every run tries in a turn; every run tries all of them at the client."""


def patience(fault: Fault | str) -> float:
    """Return how long a request may take in a cell."""
    return TIMEOUT if fault in HANGING else PATIENCE


def is_about_connections(fault: Fault | str) -> bool:
    """Whether a fault is there before any request."""
    return fault == DNS or fault in CONNECTION_FAULTS


class Resolver:
    """The system's resolver, which fails once `failing` is set."""

    def __init__(self) -> None:
        self.failing = False
        self._real = socket.getaddrinfo

    def __call__(self, host, *args, **kwargs):
        if self.failing:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self._real("127.0.0.1" if host in (HOST, HOST.encode()) else host, *args, **kwargs)


@contextlib.contextmanager
def resolving() -> Iterator[Resolver]:
    """Put a resolver in the place of the system's."""
    with pytest.MonkeyPatch.context() as patch:
        resolver = Resolver()
        patch.setattr(socket, "getaddrinfo", resolver)
        yield resolver


def break_it(gateway, fault, operation, resolver):
    """Let an operation fail in this way; faults of connections begin when the one before it was answered."""
    if not is_about_connections(fault):
        gateway.misbehave(operation, fault)
        return
    begin = _beginning(gateway, fault, resolver)
    if operation == "search":
        begin()
        return
    before = {"add": "search", "flush": "add"}[operation]
    gateway.answered = lambda answered: begin() if answered == before else None


def _beginning(gateway, fault, resolver):
    def begin():
        if fault == DNS:
            resolver.failing = True
        else:
            gateway.break_connections(fault)

    return begin


def expected_events(fault, operation):
    """Return name, category and status of every event of a turn in this cell, in order."""
    found = EXPECTED[operation][fault]
    good = [
        ("memory_gateway_recall_succeeded",),
        ("memory_gateway_add_succeeded",),
        ("memory_gateway_flush_succeeded",),
    ]
    if found is None:
        return good
    at = OPERATIONS.index(operation)
    failed = (good[at][0].replace("succeeded", "failed"), *found)
    opened = [("memory_gateway_breaker_opened", found[0])] if operation == "search" and found[1] in (401, 403) else []
    if operation == "search":
        # Without connections the add comes to nothing either.
        rest = [("memory_gateway_add_failed", *found)] if is_about_connections(fault) else good[1:]
        if opened:
            opened = [("memory_gateway_breaker_opened", "credentials_refused")]
        return [failed, *opened, *rest]
    return [*good[:at], failed]


async def perform(client, operation, seconds=PATIENCE):
    """Make one request, without a host."""
    if operation == "search":
        return await client.search(session="s1", query="What?", seconds=seconds)
    if operation == "add":
        return await client.add(make_turn(), make_answer(), seconds=seconds)
    return await client.flush(session="s1", seconds=seconds)


async def error_of(client, operation, seconds):
    """Return the error that one request raises, or `None`."""
    try:
        await perform(client, operation, seconds)
    except GatewayError as error:
        return error
    return None


def shown(error):
    """Return everything that an error shows of itself, the local variables of its frames included."""
    crash = traceback.TracebackException.from_exception(error, capture_locals=True)
    return "\n".join([str(error), repr(error), repr(vars(error)), repr(error.args), *crash.format()])


PROMPT = "What did the cartographer of Ulm decide?"
ANSWER = "He moved the river."
MOST_MEMORY = 8 * 2**20


class Events:
    def __init__(self):
        self.all = []

    def append(self, event):
        self.all.append(event)

    def of_gateway(self):
        """Return name, category and status of the gateway's events."""
        found = [each for each in self.all if each.name.startswith("memory_gateway")]
        return [
            (each.name, *([each.facts["category"]] if "category" in each.facts else []),
             *([each.facts["status"]] if "status" in each.facts else []))
            for each in found
        ]  # fmt: skip


@attrs.frozen(kw_only=True)
class Surroundings:
    """The surroundings of a cell."""

    canary: Canary
    server_tls: Any
    ca_bundle: Path
    caplog: Any
    capfd: Any
    tmp_path: Path


@pytest.fixture
def around(request):
    found = Surroundings(**{name: request.getfixturevalue(name) for name in attrs.fields_dict(Surroundings)})
    found.caplog.set_level(logging.DEBUG)
    return found


def reach(gateway, fault, ca_bundle):
    """Return the settings by which a cell's gateway is reached."""
    if fault == Fault.TLS:
        return {"baseUrl": gateway.base_url, "caBundle": str(ca_bundle)}
    return {"baseUrl": gateway.base_url.replace("127.0.0.1", HOST)} if fault == DNS else {}


def serving(around, fault):
    """Return a gateway for a cell; where connections fail, it makes a new one for each request."""
    return FakeGateway(
        user_key=around.canary.secret,
        tls=around.server_tls if fault == Fault.TLS else None,
        keep_alive=not is_about_connections(fault),
    )


def test_the_matrix_is_complete():
    """Every fault of the kit has an expected result for every operation."""
    assert {operation: {*FAULTS} for operation in OPERATIONS} == {
        operation: {*faults} for operation, faults in EXPECTED.items()
    }
    assert 105 == len(CELLS)


@pytest.mark.shows("000-006", "000-007", "000-008", "000-042", "000-069", "000-113", "000-116", "000-147", "001-032")
@pytest.mark.shows("001-055", "001-093")
@pytest.mark.parametrize(
    ("fault", "operation"), [*TURN_CELLS, *campaign(*(cell for cell in CELLS if cell not in TURN_CELLS))]
)
async def test_a_fault_costs_the_turn_nothing(fault, operation, around, make_host):
    """A fault leaves the rest of the turn unchanged, and one event without content reports it."""
    events, tasks = Events(), asyncio.all_tasks()
    with resolving() as resolver:
        async with serving(around, fault) as gateway:
            section = {"timeoutSeconds": patience(fault), **reach(gateway, fault, around.ca_bundle)}
            async with make_host(gateway, sinks=[events], **section) as host:
                host.plugin("curated").service.change(Target.USER, [Operation(action="add", content="Likes tea.")])
                break_it(gateway, fault, operation, resolver)
                async with host.turn(PROMPT, session="s1", trust="full") as turn:
                    assert await turn.commit(ANSWER)
                await host.drain()
                health = host.health()
                host_shows = repr([vars(host), vars(host.plugin("gateway")), vars(host.plugin("gateway").service)])
                kept = repr(await host.receipt(turn.id))
                await host.unregister("gateway")
                without = await host.open_turn(PROMPT, session="s2", trust="full")
                await without.drop()
            left = (gateway.open, asyncio.all_tasks() - tasks - {*gateway._open})
            sent = len(gateway.bodies("add"))

    fails = EXPECTED[operation][fault] is not None
    assert turn.system_prompt("Base.").replace(f"{RULE}\n\n", "") == without.system_prompt("Base.")
    assert "Likes tea." in without.system_prompt()
    assert (operation == "search" and fault is Fault.FENCE) == bool(turn.references)
    assert expected_events(fault, operation) == events.of_gateway()
    assert ("degraded" if fails else "ok") == health["gateway"].state
    assert "ok" == health["curated"].state
    assert () == turn.receipt.plugins["gateway"].failures
    assert sent <= 1
    assert (0, set()) == left
    files = [path.read_bytes() for path in around.tmp_path.rglob("*") if path.is_file() and path.name != "config.json"]
    texts = [around.caplog.text, *around.capfd.readouterr(), kept, repr(turn.receipt), repr(events.all), host_shows]
    around.canary.assert_clean(*texts, *files, *(f"{each} {each!r}" for each in health.values()))


@pytest.mark.shows("000-042", "000-058", "000-062", "000-119", "000-120", "000-133", "000-134", "001-032", "001-049")
@pytest.mark.shows("001-092", "001-102", "001-103")
@pytest.mark.parametrize(("fault", "operation"), CELLS)
async def test_a_fault_is_one_typed_error(fault, operation, around, make_client):
    """Each fault raises its typed error, which does not show the key in its text, record or traceback."""
    with resolving() as resolver:
        async with serving(around, fault) as gateway:
            base = reach(gateway, fault, around.ca_bundle)
            given = {"base_url": base["baseUrl"]} if base else {}
            client = make_client(gateway, **given, **({"ca_bundle": around.ca_bundle} if fault == Fault.TLS else {}))
            break_it(gateway, fault, "search" if is_about_connections(fault) else operation, resolver)
            error = await error_of(client, operation, patience(fault))
            await client.close()

    if error is None:
        assert EXPECTED[operation][fault] is None
        return
    assert EXPECTED[operation][fault] == (error.category, error.status)
    assert {"operation": operation, "path": f"/memories/{operation}", "category": error.category,
            "status": error.status, "plugin": "gateway"} == vars(error)  # fmt: skip
    assert (None, True) == (error.__cause__, error.__context__ is None or error.__suppress_context__)
    assert isinstance(error, GatewayUnknown) == (error.category == "unknown")
    texts = [shown(error), repr(client), repr(vars(client)), repr(pickle.dumps(error)), around.caplog.text]
    around.canary.assert_clean(*texts)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("fault", [Fault.HUGE_BODY, Fault.BOMB, Fault.DEEP, Fault.SLOW_DRIP])
async def test_a_fault_takes_little_memory(fault, operation, gateway, make_client):
    """A body without end, or a small one that unpacks to a big one, takes little memory."""
    client = make_client(gateway)
    await perform(client, operation)
    gateway.misbehave(operation, fault)
    gc.collect()
    tracemalloc.start()
    try:
        assert await error_of(client, operation, patience(fault)) is not None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < MOST_MEMORY


async def test_what_is_searched_for_leaks_would_show_them(canary, caplog):
    """A leak into a frame's variables or a log line is found."""
    caplog.set_level(logging.DEBUG)
    key = canary.reveal()
    logging.getLogger("somebody.else").debug("sent %s", key)
    try:
        raise LookupError(key)
    except LookupError as error:
        seen = shown(error)

    assert ([], []) != (canary.traces(seen), canary.traces(caplog.text))
    assert ["in part"] != canary.traces(seen)
