"""The factory makes each provider from its settings, and imports only the modules that the provider needs."""

import subprocess
import sys
from typing import get_args

import pytest

from beaver_hooks.agent.providers import PROVIDERS, make_provider
from beaver_hooks.agent.providers.offline import OfflineProvider
from beaver_hooks.agent.providers.openai import OpenAIProvider
from beaver_hooks.config.provider import ProviderKind, ProviderSettings

OPENAI = ProviderSettings(kind="openai", base_url="http://127.0.0.1:1/v1", model="m")


@pytest.mark.parametrize(("settings", "expected"), [(ProviderSettings(), OfflineProvider), (OPENAI, OpenAIProvider)])
async def test_making(settings, expected):
    """Each kind makes its own class; without settings the provider is the offline one."""
    provider = make_provider(settings)
    await provider.close()

    assert expected is type(provider)


def test_every_kind_has_its_provider():
    """The table and the settings know the same kinds."""
    assert {*get_args(ProviderKind)} == {*PROVIDERS}


def test_the_offline_provider_needs_no_http():
    """Making the offline provider imports no HTTP client."""
    code = (
        "import sys; from beaver_hooks.agent.providers import make_provider;"
        "from beaver_hooks.config.provider import ProviderSettings; make_provider(ProviderSettings());"
        "print([name for name in ('httpx', 'httpcore') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    assert "[]\n" == ran.stdout
