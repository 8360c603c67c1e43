"""The language models that the agent can talk to: one module each, imported when it is asked for."""

from importlib import import_module
from types import MappingProxyType
from typing import cast

from beaver_hooks.agent.messages import Provider
from beaver_hooks.config.provider import ProviderSettings

__all__ = ["PROVIDERS", "make_provider"]

PROVIDERS = MappingProxyType(
    {
        "offline": "beaver_hooks.agent.providers.offline",
        "openai": "beaver_hooks.agent.providers.openai",
    }
)
"""Where each kind of provider is: a module with a function `make(settings)` that returns a `Provider`."""


def make_provider(settings: ProviderSettings) -> Provider:
    """Return the provider that `settings` name. Nothing is sent before it is asked for a completion."""
    return cast("Provider", import_module(PROVIDERS[settings.kind]).make(settings))
