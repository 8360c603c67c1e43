"""The local memory keeps the contract, as the conformance kit sees it."""

import socket

import pytest

from beaver_hooks_local import LocalSettings, make_plugin
from beaver_hostspecs.conformance import PLUGIN_CASES, Outcome, PluginCard, PluginHarness, examine
from beaver_hostspecs.testing import make_canary
from beaver_memory.embedding.settings import EmbeddingSettings


class LocalHarness(PluginHarness):
    """Uses an embedder on a port without a listener: no credential leaves, and words alone find memories."""

    card = PluginCard(plugin="local", confirms_compaction=True)

    def __init__(self):
        self.secret = make_canary().secret

    async def open(self):
        self._taken = socket.create_server(("127.0.0.1", 0))
        port = self._taken.getsockname()[1]
        self._taken.close()
        self.settings = LocalSettings(
            enabled=True,
            embedding=EmbeddingSettings(
                provider="openai-compatible",
                model="any",
                dimensions=8,
                base_url=f"http://127.0.0.1:{port}",
                api_key=self.secret,
                timeout_seconds=1.0,
            ),
        )

    def make(self):
        return make_plugin()

    def saying(self, fact):
        return f"Remember that {fact}"


@pytest.mark.parametrize("case", PLUGIN_CASES, ids=str)
async def test_conformance(case):
    """The plugin passes the case: its card excuses nothing."""
    verdict = await examine(case, LocalHarness)

    assert Outcome.PASSED == verdict.outcome, verdict.reason
