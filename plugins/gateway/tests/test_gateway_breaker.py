"""When a gateway is left alone, in a process and in a file that processes share."""

import asyncio
import errno
import os
import threading
from dataclasses import asdict

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks_gateway import GatewaySettings, shared_breaker
from beaver_hooks_gateway.errors import GatewayTimedOut, from_status
from beaver_hooks_gateway.shared_breaker import (
    FILE,
    LOCK_FILE,
    REASONS,
    SharedBreaker,
    change,
    fingerprint,
    from_json,
    read,
    write,
)
from beaver_hostspecs.testing import FrozenClock
from beaver_toolkit.breaker import CLOSED, BreakerPolicy, BreakerState
from beaver_toolkit.locks import locked

POLICY = BreakerPolicy(failures=3, seconds=30.0)
TIMEOUT = GatewayTimedOut("search", "timeout")


@given(
    st.integers(0, 10**6),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    st.none() | st.sampled_from([*REASONS]),
)
def test_kept_and_read(failures, until, reason):
    """A state is read as it was kept."""
    state = BreakerState(failures=failures, until=until, reason=reason)

    assert state == from_json(asdict(state))


@pytest.mark.parametrize(
    "value",
    [
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
    """A breaker whose file cannot be parsed is closed."""
    assert CLOSED == from_json(value)


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
def make_breaker(tmp_path, clock):
    """Makes breakers over one folder, where each one stands for a process."""

    def make(policy=POLICY, folder=tmp_path, whose=""):
        return SharedBreaker(folder, policy, clock, whose=whose)

    return make


async def opened(breaker):
    for _ in range(2):
        assert not await breaker.failed(TIMEOUT)
    assert await breaker.failed(TIMEOUT)
    return breaker


async def test_while_all_is_well_no_file_is_touched(make_breaker, tmp_path):
    """Answered searches write no file."""
    breaker = make_breaker()
    assert None is await breaker.refusal()
    await breaker.answered()

    assert [] == [*tmp_path.iterdir()]


async def test_an_open_breaker_skips_until_a_probe(make_breaker, clock):
    """An open breaker refuses searches, lets one probe through, and closes after an answer."""
    breaker = await opened(make_breaker())
    told = [await breaker.refusal()]
    clock.advance(30)
    told += [await breaker.refusal(), await breaker.refusal()]
    await breaker.answered()
    told.append(await breaker.refusal())

    assert ["timeout", None, "timeout", None] == told


async def test_processes_share_it(make_breaker):
    """Failures of short processes add up, and the next process is refused until a search is answered."""
    for expected in (False, False, True):
        breaker = make_breaker()
        await breaker.load()
        assert expected == await breaker.failed(TIMEOUT)
    later = make_breaker()
    await later.load()
    assert "timeout" == await later.refusal()
    await breaker.answered()
    assert None is await later.refusal()


async def test_a_refusal_closes_it(make_breaker):
    """A refusal by the server counts as an answer, because it takes no deadline."""
    breaker = make_breaker()
    await breaker.failed(TIMEOUT)
    assert not await breaker.failed(from_status("search", 422))

    assert CLOSED == breaker.state


async def test_without_a_policy_everything_passes(make_breaker, tmp_path):
    """A breaker that is off counts nothing."""
    breaker = make_breaker(policy=None)
    await breaker.load()
    for _ in range(5):
        assert not await breaker.failed(TIMEOUT)

    assert (None, []) == (await breaker.refusal(), [*tmp_path.iterdir()])


async def test_without_a_folder_only_the_sharing_is_lost(make_breaker, tmp_path):
    """Without its folder a process has its own breaker."""
    breaker = await opened(make_breaker(folder=tmp_path / "none"))
    assert "timeout" == await breaker.refusal()
    await breaker.answered()

    assert None is await breaker.refusal()


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
    """A breaker is closed where its file is damaged."""
    (tmp_path / FILE).write_bytes(content)

    assert CLOSED == read(tmp_path, default=BreakerState(failures=1))


def test_the_file_is_private(tmp_path):
    """Other users may neither read nor write it."""
    write(tmp_path, BreakerState(failures=1))

    assert (0o600, BreakerState(failures=1)) == ((tmp_path / FILE).stat().st_mode & 0o777, read(tmp_path))


async def test_a_lock_that_is_held_is_not_waited_for(make_breaker, tmp_path):
    """A lock held by another process is not waited for, and this process counts its failures itself."""
    with locked(tmp_path / LOCK_FILE):
        breaker = make_breaker()
        await breaker.failed(TIMEOUT)

    assert (BreakerState(failures=1), CLOSED) == (breaker.state, read(tmp_path))


async def test_without_locks(make_breaker, monkeypatch, tmp_path):
    """On a file system without locks each process has its own breaker."""

    def missing(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", missing)
    breaker = await opened(make_breaker())

    assert ("timeout", CLOSED) == (await breaker.refusal(), read(tmp_path))


def test_many_threads_count_together(tmp_path, monkeypatch):
    """Failures of many threads at once are all counted, if each gets the lock."""
    monkeypatch.setattr(shared_breaker, "LOCK_SECONDS", 60.0)

    def count():
        for _ in range(10):
            change(tmp_path, CLOSED, [lambda state: (False, BreakerState(failures=state.failures + 1))])

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert BreakerState(failures=80) == read(tmp_path)


async def test_failures_at_once_are_done_in_one_go(make_breaker, monkeypatch):
    """Hundreds of failures at once change the file a few times, and exactly one opens the breaker."""
    changes, real = [], shared_breaker.change

    def counted(*arguments, **keywords):
        changes.append(1)
        return real(*arguments, **keywords)

    monkeypatch.setattr(shared_breaker, "change", counted)
    breaker = make_breaker()
    opened = await asyncio.gather(*[breaker.failed(TIMEOUT, seconds=60.0) for _ in range(500)])

    assert (1, True) == (sum(opened), len(changes) <= 3)
    assert BreakerState(failures=3, until=breaker.state.until, reason="timeout") == breaker.state


async def test_a_disk_that_hangs(make_breaker, monkeypatch):
    """When the disk hangs, a turn waits only for its limit, and this process opens the breaker on its own."""
    going, real = threading.Event(), shared_breaker.change

    def hanging(*arguments, **keywords):
        going.wait()
        return real(*arguments, **keywords)

    monkeypatch.setattr(shared_breaker, "change", hanging)
    breaker = make_breaker()
    try:
        opened = [await breaker.failed(TIMEOUT, seconds=0.01) for _ in range(5)]
        refused = await breaker.refusal()
    finally:
        going.set()

    assert ([False, False, False, True, False], "timeout") == (opened, refused)


async def test_an_opening_that_came_too_late_to_say_is_said_next(make_breaker, monkeypatch):
    """An opening that a failed search did not wait for is reported by the next failed search."""
    going, real = threading.Event(), shared_breaker.change

    def hanging(*arguments, **keywords):
        going.wait()
        return real(*arguments, **keywords)

    monkeypatch.setattr(shared_breaker, "change", hanging)
    breaker = make_breaker(policy=BreakerPolicy(failures=1, seconds=30.0))
    assert not await breaker.failed(TIMEOUT, seconds=0.0)
    going.set()

    assert [True, False] == [await breaker.failed(TIMEOUT, seconds=60.0) for _ in range(2)]


async def test_a_disk_that_hangs_at_the_start(make_breaker, monkeypatch):
    """A breaker is closed where its file is not read in time."""
    going = threading.Event()
    monkeypatch.setattr(shared_breaker, "read", lambda *_, **__: going.wait())
    monkeypatch.setattr(shared_breaker, "PATIENCE", 0.01)
    breaker = make_breaker()
    try:
        await breaker.load()
    finally:
        going.set()

    assert CLOSED == breaker.state


async def test_another_gateway_is_not_judged_by_it(make_breaker):
    """Another address, user or key starts with a closed breaker, and replaces the state in the file."""
    await opened(make_breaker(whose="a"))
    other, same = make_breaker(whose="b"), make_breaker(whose="a")
    await other.load()
    await same.load()
    assert [None, "timeout"] == [await breaker.refusal() for breaker in (other, same)]

    await other.failed(TIMEOUT)
    await same.load()
    assert CLOSED == same.state


def test_what_a_state_is_about(canary):
    """The fingerprint depends on address, user and key, and shows none of them."""
    one = GatewaySettings(base_url="https://a.example", user_id="u", user_key=canary.secret)
    others = [
        attrs.evolve(one, base_url="https://b.example"),
        attrs.evolve(one, user_id="v"),
        attrs.evolve(one, user_key=None),
    ]
    hashes = [fingerprint(each) for each in (one, *others)]

    assert (4, fingerprint(attrs.evolve(one, top_k=1))) == (len({*hashes}), hashes[0])
    canary.assert_clean(*hashes)


@pytest.mark.parametrize(("kind", "shared"), [("fifo", True), ("link", True), ("folder", False)])
async def test_a_file_that_is_none(make_breaker, tmp_path, kind, shared):
    """A file replaces a pipe or link in its place, and a folder there costs only the sharing."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = tmp_path / FILE
    if kind == "link":
        path.symlink_to(victim)
    elif kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    breaker = make_breaker()
    await breaker.load()
    await opened(breaker)

    assert ("timeout", "precious") == (await breaker.refusal(), victim.read_text())
    assert (breaker.state if shared else CLOSED) == read(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders here")
def test_a_pipe_that_is_read(tmp_path):
    """The breaker writes nothing into a pipe in the place of its file."""
    os.mkfifo(tmp_path / FILE)
    descriptor = os.open(tmp_path / FILE, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(tmp_path, BreakerState(failures=1))
        assert b"" == os.read(descriptor, 1)
    finally:
        os.close(descriptor)


def test_a_lock_that_is_a_link(tmp_path):
    """A link in the place of the lock is not followed, and the process uses its own state."""
    (tmp_path / LOCK_FILE).symlink_to(tmp_path / "elsewhere")
    end = change(tmp_path, CLOSED, [lambda _: (True, BreakerState(failures=1))])

    assert (([True], BreakerState(failures=1)), [LOCK_FILE]) == (end, [each.name for each in tmp_path.iterdir()])
