"""A provider whose credential is not there sends nothing, and says which variable to set."""

import json

import pytest

from beaver_hooks.agent.errors import ProviderError
from beaver_hooks.agent.providers import MissingKeyProvider, provider_of
from beaver_hooks.agent.providers.offline import OfflineProvider
from beaver_hooks.agent.providers.openai import OpenAIProvider
from beaver_hooks.config import load_config

OPENAI = {"kind": "openai", "baseUrl": "http://127.0.0.1:9/v1", "model": "m"}


@pytest.fixture
def load(tmp_path):
    def make(provider, **environment):
        path = tmp_path / "config.json"
        path.write_text(json.dumps({"provider": provider}))
        return provider_of(load_config(path, environment=environment), environment)

    return make


@pytest.mark.parametrize(
    ("provider", "environment", "kind"),
    [
        ({"kind": "offline", "apiKey": {"env": "KEY"}}, {}, OfflineProvider),
        (OPENAI, {}, OpenAIProvider),
        ({**OPENAI, "apiKey": {"env": "KEY"}}, {"KEY": "k"}, OpenAIProvider),
        ({**OPENAI, "apiKey": {"env": "KEY"}}, {}, MissingKeyProvider),
        ({**OPENAI, "apiKey": None}, {}, OpenAIProvider),
    ],
)
async def test_which_provider(load, provider, environment, kind):
    """Only a named variable that is not set keeps a provider from being asked."""
    made = load(provider, **environment)
    await made.close()

    assert kind is type(made)


async def test_it_says_what_to_set(load):
    """The error names the variable, and what to do where none is needed."""
    with pytest.raises(ProviderError) as caught:
        await load({**OPENAI, "apiKey": {"env": "KEY"}}).complete([])

    expected = "provider.apiKey is missing: the environment variable `KEY` is not set. Set it, or remove apiKey from the configuration if no key is needed."
    assert (expected, "unauthorised") == (str(caught.value), caught.value.category)


async def test_the_process_s_environment_unless_given(load, monkeypatch, tmp_path):
    """Without an environment the process's own is asked."""
    monkeypatch.setenv("A_KEY_OF_NOBODY", "")
    load({**OPENAI, "apiKey": {"env": "A_KEY_OF_NOBODY"}})

    assert isinstance(provider_of(load_config(tmp_path / "config.json"), None), MissingKeyProvider)
