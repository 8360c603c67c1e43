"""The providers of language models: one module each, imported on first use."""

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
"""The module of each kind of provider; its function `make(settings)` returns a `Provider`."""


def make_provider(settings: ProviderSettings) -> Provider:
    """Return the provider that `settings` name. It sends no request before the first completion."""
    return cast("Provider", import_module(PROVIDERS[settings.kind]).make(settings))
