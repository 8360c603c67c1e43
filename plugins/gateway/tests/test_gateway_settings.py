"""What the section `memory.gateway` may hold."""

from pathlib import Path

import attrs
import pytest
from case_files import rows

from beaver_hooks.config.converter import structure
from beaver_hooks_gateway import BreakerSettings, GatewaySettings
from beaver_hooks_gateway.settings import PATH
from beaver_hostspecs import ConfigurationError, Secret

DATA = Path(__file__).with_name("data")

COMPLETE = {
    "baseUrl": "https://memory.example/prefix/",
    "userId": "u1",
    "userKey": "uk_of_the_settings",
    "appId": "app",
    "projectId": "project",
    "scope": ["all_user_memory"],
    "topK": 100,
    "timeoutSeconds": 3,
    "flushTimeoutSeconds": 60,
    "recall": False,
    "persist": False,
    "allowInsecureHttp": True,
    "caBundle": "ca.pem",
    "proxy": "http://proxy.example:3128",
    "maxBytes": 2048,
    "breaker": {"enabled": False, "failures": 1, "seconds": 0.5},
}


def from_file(section, environment=()):
    return structure(GatewaySettings, section, PATH, environment=dict(environment))


@pytest.mark.shows("000-035", "000-037", "000-038", "000-040", "001-023", "001-025", "001-026", "001-028")
def test_defaults():
    """Without a section every field has its default, and the required fields are listed as missing."""
    settings = from_file({})

    assert GatewaySettings() == settings
    assert ("default", "default", ("current_chat", "resources"), 8, 10.0, 10.0) == (
        settings.app_id,
        settings.project_id,
        settings.scope,
        settings.top_k,
        settings.timeout_seconds,
        settings.flush_seconds,
    )
    assert (True, True, False, 4 * 2**20, BreakerSettings(enabled=True, failures=5, seconds=30.0)) == (
        settings.recall,
        settings.persist,
        settings.allow_insecure_http,
        settings.max_bytes,
        settings.breaker,
    )
    assert ("baseUrl", "userId", "userKey") == settings.missing


@pytest.mark.shows("000-011", "000-027", "000-127", "001-007", "001-019", "001-097")
def test_everything_given():
    """Every camelCase field of the file becomes a typed one."""
    expected = GatewaySettings(
        base_url="https://memory.example/prefix/",
        user_id="u1",
        user_key=Secret("uk_of_the_settings"),
        app_id="app",
        project_id="project",
        scope=("all_user_memory",),
        top_k=100,
        timeout_seconds=3.0,
        flush_timeout_seconds=60.0,
        recall=False,
        persist=False,
        allow_insecure_http=True,
        ca_bundle=Path("ca.pem"),
        proxy="http://proxy.example:3128",
        max_bytes=2048,
        breaker=BreakerSettings(enabled=False, failures=1, seconds=0.5),
    )

    assert expected == from_file(COMPLETE)
    assert (60.0, ()) == (expected.flush_seconds, expected.missing)
    assert {each.name for each in attrs.fields(GatewaySettings)} == {*attrs.asdict(expected, recurse=False)}


@pytest.mark.shows("000-011", "000-118")
def test_a_key_from_the_environment():
    """The key may be the name of a variable; one that is not set counts as missing."""
    section = {"userKey": {"env": "GATEWAY_KEY"}}

    assert Secret("uk_of_a_variable") == from_file(section, {"GATEWAY_KEY": "uk_of_a_variable"}).user_key
    assert None is from_file(section).user_key


@pytest.mark.shows("000-042", "000-119")
def test_the_key_is_not_shown(canary):
    """Neither the settings nor their copy as plain data show the key."""
    settings = GatewaySettings(user_key=canary.secret)

    canary.assert_clean(repr(settings), str(settings), repr(attrs.asdict(settings)))


@pytest.mark.parametrize(
    "url",
    [
        *rows(DATA / "addresses_refused.jsonl", "url"),
        f"https://{'a' * 64}.example",
        f"https://{'a.' * 127}example",
        f"https://memory.example/{'x' * 2048}",
    ],
)
def test_addresses_that_are_refused(url):
    """An address has a scheme and a host; user, query and fragment have no place in it."""
    with pytest.raises(ConfigurationError) as caught:
        from_file({"baseUrl": url})

    expected = "must be an http or https address without user, query or fragment"
    assert ("memory.gateway.baseUrl", expected) == (caught.value.path, caught.value.problem)


@pytest.mark.parametrize(
    "url", [*rows(DATA / "addresses_accepted.jsonl", "url"), f"https://memory.example/{'x' * 2000}"]
)
def test_addresses_that_are_accepted(url):
    """An address may have any path, port and case; plain http is allowed to this machine."""
    assert url == from_file({"baseUrl": url}).base_url


@pytest.mark.parametrize(
    "url", ["http://memory.example", "http://10.0.0.1", "http://127.1", "http://localhost.example", "HTTP://[::2]"]
)
def test_the_key_is_not_sent_in_the_clear(url):
    """Plain http to another machine is refused unless `allowInsecureHttp` is set."""
    with pytest.raises(ConfigurationError) as caught:
        from_file({"baseUrl": url})

    expected = (
        "`baseUrl` is plain http to another machine, so others can read `userKey` on the way; use https, or set"
        " `allowInsecureHttp` to true"
    )
    assert ("memory.gateway", expected) == (caught.value.path, caught.value.problem)
    assert url == from_file({"baseUrl": url, "allowInsecureHttp": True}).base_url


@pytest.mark.parametrize("url", ["http://127.0.0.1:8010", "http://memory.example"])
@pytest.mark.parametrize("proxy", ["http://10.0.0.1:3128", "https://proxy.example", "HTTP://[::2]"])
def test_the_key_is_not_given_to_a_proxy_in_the_clear(url, proxy):
    """Plain http through a proxy on another machine is refused unless `allowInsecureHttp` is set."""
    with pytest.raises(ConfigurationError) as caught:
        from_file({"baseUrl": url, "proxy": proxy})

    expected = (
        "`baseUrl` is plain http through a proxy on another machine, so others can read `userKey` on the way; use https,"
        " or set `allowInsecureHttp` to true"
    )
    assert ("memory.gateway", expected) == (caught.value.path, caught.value.problem)
    assert proxy == from_file({"baseUrl": url, "proxy": proxy, "allowInsecureHttp": True}).proxy


@pytest.mark.parametrize(
    ("url", "proxy"),
    [("http://127.0.0.1:8010", "http://localhost:3128"), ("https://memory.example", "http://proxy.example:3128")],
)
def test_proxies_that_read_nothing(url, proxy):
    """A proxy on this machine is accepted for plain http to this machine, and any proxy for https."""
    assert proxy == from_file({"baseUrl": url, "proxy": proxy}).proxy


@pytest.mark.parametrize(
    ("section", "path"),
    [
        ({"breaker": {"failures": 0}}, "memory.gateway.breaker.failures"),
        ({"breaker": {"seconds": 0}}, "memory.gateway.breaker.seconds"),
        ({"breaker": {"attempts": 1}}, "memory.gateway.breaker.attempts"),
        ({"flushTimeoutSeconds": 0}, "memory.gateway.flushTimeoutSeconds"),
        ({"maxBytes": 1}, "memory.gateway.maxBytes"),
        ({"topK": True}, "memory.gateway.topK"),
        ({"topK": 8.0}, "memory.gateway.topK"),
        ({"proxy": "socks5://proxy.example"}, "memory.gateway.proxy"),
        ({"proxy": "https://999.1.1.1"}, "memory.gateway.proxy"),
        ({"appId": ""}, "memory.gateway.appId"),
        ({"projectId": " "}, "memory.gateway.projectId"),
        ({"recall": "yes"}, "memory.gateway.recall"),
    ],
)
def test_what_is_refused(section, path):
    """Every field has its bounds, and an error names it."""
    with pytest.raises(ConfigurationError) as caught:
        from_file(section)

    assert path == caught.value.path
