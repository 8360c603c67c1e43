"""When a gateway is left alone, as a pure machine and as a file that processes share."""

import asyncio
import os
import sys
import threading

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from beaver_hooks_gateway import GatewaySettings, kept
from beaver_hooks_gateway import gate as gates
from beaver_hooks_gateway.breaker import (
    CLOSED,
    REASONS,
    REFUSED,
    Policy,
    State,
    admit,
    after_failure,
    after_refusal,
    from_json,
    is_open,
    to_json,
)
from beaver_hooks_gateway.errors import GatewayTimedOut, from_status
from beaver_hooks_gateway.gate import Gate, Verdict, change, judged
from beaver_hooks_gateway.kept import FILE, LOCK_FILE, read, write
from beaver_hostspecs.testing import FrozenClock

POLICY = Policy(failures=3, seconds=30.0)
TIMEOUT = GatewayTimedOut("search", "timeout")


def test_so_many_failures_open_it():
    """The last of so many transient failures in a row opens it, for so long, and says why."""
    states = [CLOSED]
    for _ in range(3):
        states.append(after_failure(states[-1], POLICY, category="timeout", now=100.0))

    assert [CLOSED, State(failures=1), State(failures=2), State(failures=3, until=130.0, reason="timeout")] == states


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (100.0, (False, 130.0)),
        (129.9, (False, 130.0)),
        (130.0, (True, 160.0)),
        (500.0, (True, 530.0)),
        (99.9, (True, 129.9)),
    ],
)
def test_one_call_probes(now, expected):
    """After its time one call is let through, and the time starts again; so it does if the clock was put back."""
    admitted, state = admit(State(failures=3, until=130.0), POLICY, now=now)

    assert expected == (admitted, state.until)


def test_a_failed_probe_leaves_it_open():
    """Whoever fails while it is open changes nothing: its time runs already."""
    _, probing = admit(State(failures=3, until=130.0, reason="timeout"), POLICY, now=130.0)

    assert probing == after_failure(probing, POLICY, category="dns", now=140.0)
    assert is_open(probing, POLICY, now=140.0)


def test_a_late_failure_of_a_probe_opens_it_again():
    """A probe that fails after its time opens it anew."""
    expected = State(failures=4, until=200.0, reason="dns")

    assert expected == after_failure(State(failures=3, until=130.0), POLICY, category="dns", now=170.0)


def test_refused_credentials_open_it_at_once():
    """There is nothing to count where the credentials are refused."""
    assert State(failures=3, until=130.0, reason=REFUSED) == after_refusal(POLICY, now=100.0)


@given(
    st.integers(0, 10**6),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    st.none() | st.sampled_from([*REASONS]),
)
def test_kept_and_read(failures, until, reason):
    """A state is read as it was kept."""
    state = State(failures=failures, until=until, reason=reason)

    assert state == from_json(to_json(state))


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        5,
        {"failures": -1},
        {"failures": "3"},
        {"until": "soon"},
        {"until": float("nan")},
        {"until": 10**400},
        {"reason": 5},
        {"reason": "\x1b[31mRED"},
        {"reason": "breaker: closed"},
        {"reason": []},
    ],
)
def test_what_cannot_be_read_counts_as_closed(value):
    """Whatever else a file holds shuts nobody out."""
    assert CLOSED == from_json(value)


class Breaking(RuleBasedStateMachine):
    """Calls, failures and time in any order."""

    def __init__(self):
        super().__init__()
        self.state, self.now, self.admitted = CLOSED, 1000.0, []

    @rule(seconds=st.floats(0, 40))
    def wait(self, seconds):
        self.now += seconds

    @rule()
    def call_and_fail(self):
        was_open = self.state.until is not None
        admitted, self.state = admit(self.state, POLICY, now=self.now)
        if admitted:
            self.admitted += [self.now] if was_open else []
            self.state = after_failure(self.state, POLICY, category="timeout", now=self.now)

    @rule()
    def call_and_succeed(self):
        admitted, self.state = admit(self.state, POLICY, now=self.now)
        if admitted:
            self.state, self.admitted = CLOSED, []

    @invariant()
    def opens_after_so_many(self):
        assert (self.state.until is not None) == (self.state.failures >= POLICY.failures)

    @invariant()
    def probes_are_far_apart(self):
        gaps = [later - earlier for earlier, later in zip(self.admitted, self.admitted[1:], strict=False)]
        assert all(gap > POLICY.seconds - 0.001 for gap in gaps)


TestBreaking = Breaking.TestCase


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
def make_gate(tmp_path, clock):
    """Makes gates over one folder: several of them are several processes."""

    def make(policy=POLICY, folder=tmp_path, whose=""):
        return Gate(folder, policy, clock, whose=whose)

    return make


async def opened(gate):
    for _ in range(2):
        assert not await gate.failed(TIMEOUT)
    assert await gate.failed(TIMEOUT)
    return gate


async def test_while_all_is_well_no_file_is_touched(make_gate, tmp_path):
    """Searches that are answered leave nothing on the disk."""
    gate = make_gate()
    assert Verdict(admitted=True) == await gate.admit()
    await gate.answered()

    assert [] == [*tmp_path.iterdir()]


async def test_an_open_gate_skips_until_a_probe(make_gate, clock):
    """It refuses, lets one through, refuses the others meanwhile, and is open again once that one is answered."""
    gate = await opened(make_gate())
    refused = Verdict(admitted=False, reason="timeout")
    verdicts = [await gate.admit()]
    clock.advance(30)
    verdicts += [await gate.admit(), await gate.admit()]
    await gate.answered()
    verdicts.append(await gate.admit())

    assert [refused, Verdict(admitted=True, reason="timeout"), refused, Verdict(admitted=True)] == verdicts


async def test_processes_share_it(make_gate):
    """Failures of processes that live for one turn add up; the next one is refused, until one was answered."""
    for expected in (False, False, True):
        gate = make_gate()
        await gate.load()
        assert expected == await gate.failed(TIMEOUT)
    later = make_gate()
    await later.load()
    assert not (await later.admit()).admitted
    await gate.answered()
    assert (await later.admit()).admitted


async def test_a_refusal_closes_it(make_gate):
    """An answer that refuses is an answer: whoever gives it costs nobody a deadline."""
    gate = make_gate()
    await gate.failed(TIMEOUT)
    assert not await gate.failed(from_status("search", 422))

    assert CLOSED == gate.state


@pytest.mark.parametrize("status", [401, 403])
async def test_refused_credentials_open_the_gate(make_gate, status):
    """The first refusal of the credentials opens it, and it says so."""
    gate = make_gate()
    assert await gate.failed(from_status("search", status))

    assert Verdict(admitted=False, reason="credentials refused") == await gate.admit()


async def test_without_a_policy_everything_passes(make_gate, tmp_path):
    """A breaker that is off counts nothing."""
    gate = make_gate(policy=None)
    await gate.load()
    for _ in range(5):
        assert not await gate.failed(TIMEOUT)

    assert (True, []) == ((await gate.admit()).admitted, [*tmp_path.iterdir()])


async def test_without_a_folder_only_the_sharing_is_lost(make_gate, tmp_path):
    """A folder that is not there costs nobody the breaker of their own process."""
    gate = await opened(make_gate(folder=tmp_path / "none"))
    assert not (await gate.admit()).admitted
    await gate.answered()

    assert (await gate.admit()).admitted


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"[" * 4000,
        b'{"failures": 3, "until": 1e999}',
        b'{"gateway": "", "until": 1' + b"0" * 400 + b"}",
        b'{"failures": 3}',
    ],
)
def test_a_torn_file_counts_as_closed(tmp_path, content):
    """What cannot be read shuts nobody out."""
    (tmp_path / FILE).write_bytes(content)

    assert CLOSED == read(tmp_path, default=State(failures=1))


def test_the_file_is_private(tmp_path):
    """Nobody else may read or write it."""
    write(tmp_path, State(failures=1))

    assert (0o600, State(failures=1)) == ((tmp_path / FILE).stat().st_mode & 0o777, read(tmp_path))


async def test_a_lock_that_is_held_is_not_waited_for(make_gate, tmp_path):
    """A process that hangs with the lock holds up nobody for long."""
    fcntl = pytest.importorskip("fcntl")
    descriptor = os.open(tmp_path / LOCK_FILE, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        gate = make_gate()
        await gate.failed(TIMEOUT)
    finally:
        os.close(descriptor)

    assert (State(failures=1), CLOSED) == (gate.state, read(tmp_path))


async def test_without_locks(make_gate, monkeypatch):
    """Where a system has no such locks, the breaker works without."""
    monkeypatch.setitem(sys.modules, "fcntl", None)

    assert not (await (await opened(make_gate())).admit()).admitted


def test_many_threads_count_together(tmp_path, monkeypatch):
    """No failure is lost among many at once, as long as each gets the lock."""
    monkeypatch.setattr(kept, "_TRIES", 10_000)

    def count():
        for _ in range(10):
            change(tmp_path, CLOSED, [lambda state: (False, State(failures=state.failures + 1))])

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert State(failures=80) == read(tmp_path)


async def test_failures_at_once_are_done_in_one_go(make_gate, monkeypatch):
    """Hundreds of failures at once change the file a few times, and one of them has opened it."""
    changes, real = [], gates.change

    def counted(*arguments, **keywords):
        changes.append(1)
        return real(*arguments, **keywords)

    monkeypatch.setattr(gates, "change", counted)
    gate = make_gate()
    opened = await asyncio.gather(*[gate.failed(TIMEOUT, seconds=60.0) for _ in range(500)])

    assert (1, True) == (sum(opened), len(changes) <= 3)
    assert State(failures=3, until=gate.state.until, reason="timeout") == gate.state


async def test_a_disk_that_hangs(make_gate, monkeypatch):
    """A turn waits for the file as long as it is told to; then this process decides alone, and opens it all the same."""
    going, real = threading.Event(), gates.change

    def hanging(*arguments, **keywords):
        going.wait()
        return real(*arguments, **keywords)

    monkeypatch.setattr(gates, "change", hanging)
    gate = make_gate()
    try:
        opened = [await gate.failed(TIMEOUT, seconds=0.01) for _ in range(5)]
        refused = await gate.admit()
    finally:
        going.set()

    assert ([False, False, False, True, False], Verdict(admitted=False, reason="timeout")) == (opened, refused)


async def test_an_opening_that_came_too_late_to_say_is_said_next(make_gate, monkeypatch):
    """Whoever opens it without waiting for that leaves saying so to the next one who fails."""
    going, real = threading.Event(), gates.change

    def hanging(*arguments, **keywords):
        going.wait()
        return real(*arguments, **keywords)

    monkeypatch.setattr(gates, "change", hanging)
    gate = make_gate(policy=Policy(failures=1, seconds=30.0))
    assert not await gate.failed(TIMEOUT, seconds=0.0)
    going.set()

    assert [True, False] == [await gate.failed(TIMEOUT, seconds=60.0) for _ in range(2)]


async def test_a_disk_that_hangs_at_the_start(make_gate, monkeypatch):
    """What is not read in time counts as closed."""
    going = threading.Event()
    monkeypatch.setattr(gates, "read", lambda *_, **__: going.wait())
    monkeypatch.setattr(gates, "PATIENCE", 0.01)
    gate = make_gate()
    try:
        await gate.load()
    finally:
        going.set()

    assert CLOSED == gate.state


async def test_another_gateway_is_not_judged_by_it(make_gate):
    """The state is about one address, user and key: another one starts afresh, and has the file for itself then."""
    await opened(make_gate(whose="a"))
    other, same = make_gate(whose="b"), make_gate(whose="a")
    await other.load()
    await same.load()
    assert [True, False] == [(await gate.admit()).admitted for gate in (other, same)]

    await other.failed(TIMEOUT)
    await same.load()
    assert CLOSED == same.state


def test_what_a_state_is_about(canary):
    """Address, user and key make the difference, and none of them can be read from it."""
    one = GatewaySettings(base_url="https://a.example", user_id="u", user_key=canary.secret)
    others = [
        attrs.evolve(one, base_url="https://b.example"),
        attrs.evolve(one, user_id="v"),
        attrs.evolve(one, user_key=None),
    ]
    hashes = [judged(each) for each in (one, *others)]

    assert (4, judged(attrs.evolve(one, top_k=1))) == (len({*hashes}), hashes[0])
    canary.assert_clean(*hashes)


@pytest.mark.parametrize("kind", ["fifo", "link", "folder"])
async def test_a_file_that_is_none(make_gate, tmp_path, kind):
    """Neither a pipe nor a link is waited for or followed; the breaker works without the file."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = tmp_path / FILE
    if kind == "link":
        path.symlink_to(victim)
    elif kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    gate = make_gate()
    await gate.load()
    await opened(gate)

    assert (False, "precious", CLOSED) == ((await gate.admit()).admitted, victim.read_text(), read(tmp_path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders here")
def test_a_pipe_that_somebody_reads(tmp_path):
    """Nothing is written into a pipe either."""
    os.mkfifo(tmp_path / FILE)
    descriptor = os.open(tmp_path / FILE, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(tmp_path, State(failures=1))
        assert b"" == os.read(descriptor, 1)
    finally:
        os.close(descriptor)


def test_a_lock_that_is_a_link(tmp_path):
    """A link in the place of the lock is not followed; the state is then this process's own."""
    (tmp_path / LOCK_FILE).symlink_to(tmp_path / "elsewhere")
    end = change(tmp_path, CLOSED, [lambda _: (True, State(failures=1))])

    assert (([True], State(failures=1)), [LOCK_FILE]) == (end, [each.name for each in tmp_path.iterdir()])
