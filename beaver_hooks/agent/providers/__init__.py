"""The providers of language models: one module each, imported on first use."""

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any, NoReturn, cast

import attrs

from beaver_hooks.agent.errors import ProviderError
from beaver_hooks.agent.messages import ChatMessage, OnDelta, Provider
from beaver_hooks.config import LoadedConfig
from beaver_hooks.config.environment import is_reference, lookup
from beaver_hooks.config.parser import read_json
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


@attrs.frozen
class MissingKeyProvider:
    """A provider that cannot answer.

    Attributes:
        problem: the fault of its credential.
    """

    problem: str

    async def complete(
        self,
        messages: Sequence[ChatMessage],  # noqa: ARG002 - they are sent nowhere
        *,
        tools: Sequence[Mapping[str, Any]] = (),  # noqa: ARG002 - see above
        on_delta: OnDelta | None = None,  # noqa: ARG002 - see above
    ) -> NoReturn:
        """Raise `ProviderError`."""
        raise ProviderError(self.complaint, category="unauthorised")

    @property
    def complaint(self) -> str:
        """The fault and its remedy."""
        return f"provider.apiKey {self.problem}. Set it, or remove apiKey from the configuration if no key is needed."

    async def close(self) -> None:
        """Nothing to close."""


def provider_of(loaded: LoadedConfig, environment: Mapping[str, str] | None) -> Provider:
    """Return the provider of a configuration. One without its key fails only in `complete`: other uses need no key."""
    settings = loaded.config.provider
    if settings.kind == "offline" or settings.api_key is not None or loaded.path is None:
        return make_provider(settings)
    key = read_json(loaded.path).get("provider", {}).get("apiKey")
    if not is_reference(key):
        return make_provider(settings)
    return MissingKeyProvider(lookup(key, os.environ if environment is None else environment)[1])
