"""The section `provider` of the configuration."""

import pytest

from beaver_hooks.config import config_schema, structure
from beaver_hooks.config.provider import ProviderSettings
from beaver_hostspecs import ConfigurationError, Secret

URL = "must be an http or https URL without user name, query and fragment, its host in ASCII"
PLAIN = "has a `baseUrl` with plain http on another machine; use https, or set `allowInsecureHttp`"


def make(**environment):
    def made(**section):
        return structure(ProviderSettings, section, "provider", environment=environment)

    return made


def refused(**section):
    with pytest.raises(ConfigurationError) as caught:
        make()(**section)
    return str(caught.value)


def openai(base_url):
    return {"kind": "openai", "baseUrl": base_url, "model": "m"}


def test_the_default_is_offline():
    """Without a section nothing is reached."""
    assert ProviderSettings(kind="offline") == make()()


def test_a_whole_section():
    """Every field is read; the credential comes from the environment."""
    section = openai("https://api.example.com/v1/") | {
        "apiKey": {"env": "KEY"},
        "timeoutSeconds": 5,
        "maxBytes": 2048,
        "maxRetries": 0,
        "allowInsecureHttp": True,
    }
    expected = ProviderSettings(
        kind="openai",
        base_url="https://api.example.com/v1/",
        model="m",
        api_key=Secret("sk-123456"),
        timeout_seconds=5.0,
        max_bytes=2048,
        max_retries=0,
        allow_insecure_http=True,
    )

    assert expected == make(KEY="sk-123456")(**section)
    assert "sk-123456" not in repr(make(KEY="sk-123456")(**section))


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.com",
        "https://api.example.com:8443/v1/",
        "HTTPS://API.example.com/v1",
        "https://my_host/v1",
        "https://10.0.0.1/v1",
        "https://127.1/v1",
        "https://example.com/a@b",
        "https://example.com./v1",
        "https://[2001:db8::1]/v1",
        "http://localhost:11434/v1",
        "http://LOCALHOST/v1",
        "http://127.0.0.1:8000/v1",
        "http://127.1.2.3/v1",
        "http://[::1]:8000/v1",
    ],
)
def test_urls(url):
    """An https address may lead anywhere, and a plain http one only to this machine."""
    assert url == make()(**openai(url)).base_url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "api.example.com",
        "ftp://example.com",
        "https://",
        "https:///v1",
        "https://user@example.com",
        "https://user:canary@example.com/v1",
        "https://example.com/v1?key=canary",
        "https://example.com/v1?",
        "https://example.com/v1#x",
        "https://example.com\\@evil.example",
        "https://example.com/v1 ",
        "https://example.com/\nv1",
        "https://example..com",
        "https://-example.com",
        "https://exämple.com",
        "https://example.com:0",
        "https://example.com:65536",
        "https://example.com:x",
        "https://999.1.1.1/v1",
        "https://[::g]/v1",
        "https://[1:2]/v1",
        "https://" + "a" * 64,
        "https://a.example/" + "p" * 2048,
    ],
)
def test_refused_urls(url):
    """An ambiguous address is refused and never shown."""
    assert f"provider.baseUrl: {URL}" == refused(**openai(url))


@pytest.mark.parametrize(
    "url",
    ["http://example.com/v1", "http://10.0.0.1/v1", "http://127.1", "http://localhost.example.com", "http://[::2]"],
)
def test_plain_http_needs_a_word(url):
    """Plain http to another machine needs `allowInsecureHttp`, because prompts would leave this machine unencrypted."""
    assert f"provider: {PLAIN}" == refused(**openai(url))
    assert url == make()(**openai(url), allowInsecureHttp=True).base_url


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ({"kind": "openai"}, "provider: needs `baseUrl` and `model` for the kind `openai`"),
        ({"kind": "openai", "baseUrl": "https://a.b"}, "provider: needs `baseUrl` and `model` for the kind `openai`"),
        ({"kind": "openai", "model": "m"}, "provider: needs `baseUrl` and `model` for the kind `openai`"),
        ({"kind": "other"}, "provider.kind: must be one of `openai`, `offline`"),
        ({"model": ""}, "provider.model: must not be empty"),
        ({"apiKey": "with blank"}, "provider.apiKey: must be printable ASCII without blanks"),
        ({"apiKey": "line\n"}, "provider.apiKey: must be printable ASCII without blanks"),
        ({"apiKey": "schlüssel"}, "provider.apiKey: must be printable ASCII without blanks"),
        ({"timeoutSeconds": 0}, "provider.timeoutSeconds: must be a number above 0"),
        ({"maxBytes": 10}, "provider.maxBytes: must be between 1024 and 1073741824"),
        ({"maxRetries": 11}, "provider.maxRetries: must be between 0 and 10"),
    ],
)
def test_refused_sections(section, expected):
    """Every refusal names the path of the field and the value that it takes."""
    assert expected == refused(**section)


def test_values_that_no_file_can_hold():
    """Made in code, the same checks hold."""
    with pytest.raises(ValueError, match="must be an http"):
        ProviderSettings(base_url=5)
    with pytest.raises(ValueError, match="must be printable"):
        ProviderSettings(api_key="sk-plain")


def test_the_schema_has_it():
    """The schema for editors has the section's fields."""
    assert {"kind", "baseUrl", "model", "apiKey"} <= {
        *config_schema({"plugins.provider": ProviderSettings})["properties"]["plugins"]["properties"]["provider"][
            "properties"
        ]
    }
