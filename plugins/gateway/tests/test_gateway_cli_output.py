"""What the command line shows of a gateway."""

import re

import pytest

from beaver_hooks_gateway import BreakerSettings, GatewayRefused, GatewaySettings
from beaver_hooks_gateway.cli import ping, search, status
from beaver_hooks_gateway.shared_breaker import fingerprint, read, write
from beaver_hooks_gateway.testing import Fault
from beaver_hostspecs import ConfigurationError
from beaver_hostspecs.testing import FrozenClock
from beaver_toolkit.breaker import BreakerState

OPEN = BreakerState(failures=5, until=4e9, reason="timeout")


@pytest.fixture
def settings(gateway, make_client):
    return make_client(gateway)._settings


async def test_ping(gateway, settings, tmp_path, canary):
    """`ping` makes one small search and reports the address, the user and the time that it took."""
    line = await ping(settings, tmp_path)

    expected = rf"{gateway.base_url} answers and accepts the credentials of gateway_test_user \(\d+ ms\)\."
    assert re.fullmatch(expected, line)
    assert [("ping", 1)] == [(body["query"], body["top_k"]) for body in gateway.bodies("search")]
    canary.assert_clean(line)


@pytest.mark.parametrize(("enabled", "expected"), [(True, BreakerState()), (False, OPEN)])
async def test_a_ping_that_succeeds_ends_the_waiting(make_client, gateway, tmp_path, enabled, expected):
    """A ping that succeeds closes the breaker, and leaves one that is off as it is."""
    settings = make_client(gateway, breaker=BreakerSettings(enabled=enabled))._settings
    write(tmp_path, OPEN, whose=fingerprint(settings))
    await ping(settings, tmp_path)

    assert expected == read(tmp_path, whose=fingerprint(settings))


async def test_a_ping_that_fails(gateway, settings, tmp_path, canary):
    """A refused ping raises an error with a remedy and without the key."""
    gateway.misbehave("search", Fault.STATUS_401)
    with pytest.raises(GatewayRefused, match=r"Set memory\.gateway\.userId and userKey") as caught:
        await ping(settings, tmp_path)

    canary.assert_clean(str(caught.value))


async def test_without_credentials(tmp_path):
    """Without credentials the error names the first missing field."""
    with pytest.raises(ConfigurationError) as caught:
        await ping(GatewaySettings(), tmp_path)

    assert ("memory.gateway.baseUrl", "is missing") == (caught.value.path, caught.value.problem)


async def test_search(gateway, settings, canary):
    """A search prints the message that a turn would get, with the key masked."""
    gateway.results = [{"text": f"We chose PostgreSQL. {canary.reveal()}", "id": "r1"}]
    text = await search(settings, "What?", session="s1")

    assert 'by the memory plugin "gateway": 1 of 1 items' in text
    assert "| We chose PostgreSQL. [secret]" in text
    assert "s1" == gateway.bodies("search")[0]["conversation_id"]
    canary.assert_clean(text)


async def test_a_search_that_finds_nothing(gateway, settings):
    """A search without usable results says so, with the number of results."""
    gateway.results = [{"text": ""}]

    assert "Nothing would be injected (1 results)." == await search(settings, "What?")


@pytest.mark.shows("000-042")
async def test_status(gateway, settings, tmp_path, canary):
    """The status shows the settings and the breaker, never the key, and touches no network."""
    text = await status(settings, tmp_path)

    assert [
        f"address: {gateway.base_url}",
        "user: gateway_test_user",
        "key: set",
        "app and project: default, default",
        "scope: current_chat, resources",
        "recall: on",
        "persist: on",
        "breaker: closed",
    ] == text.splitlines()
    assert 0 == gateway.connections
    canary.assert_clean(text)


NOW = FrozenClock().now().timestamp()


@pytest.mark.parametrize(
    ("breaker", "state", "expected"),
    [
        (BreakerSettings(enabled=False), BreakerState(), "off"),
        (BreakerSettings(), BreakerState(failures=2), "closed (2 failures in a row)"),
        (
            BreakerSettings(),
            BreakerState(failures=5, until=NOW + 20, reason="timeout"),
            "open (timeout), the next search is tried in 20 seconds",
        ),
        (
            BreakerSettings(),
            BreakerState(failures=5, until=NOW - 1, reason="timeout"),
            "open (timeout), the next search is tried at once",
        ),
    ],
)
async def test_status_of_the_breaker(tmp_path, breaker, state, expected):
    """The status shows the shared state of the breaker."""
    settings = GatewaySettings(breaker=breaker, recall=False)
    write(tmp_path, state, whose=fingerprint(settings))
    text = await status(settings, tmp_path, clock=FrozenClock())

    assert ("address: none", "recall: off", f"breaker: {expected}") == tuple(
        text.splitlines()[index] for index in (0, 5, 7)
    )
