"""The section `provider` of the configuration."""

from pathlib import Path

import pytest
from case_files import rows

from beaver_hooks.config import config_schema, structure
from beaver_hooks.config.provider import ProviderSettings
from beaver_hostspecs import ConfigurationError, Secret

DATA = Path(__file__).with_name("data")
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
    rows(DATA / "urls.jsonl", "url"),
)
def test_urls(url):
    """An https address may lead anywhere, and a plain http one only to this machine."""
    assert url == make()(**openai(url)).base_url


@pytest.mark.parametrize(
    "url",
    [*rows(DATA / "refused_urls.jsonl", "url"), "https://a.example/" + "p" * 2048],
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
    rows(DATA / "refused_sections.jsonl", "section", "expected"),
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
