"""The local memory keeps the contract, as the conformance kit sees it."""

import socket

import pytest

from beaver_hooks_local import LocalSettings, make_plugin
from beaver_hostspecs.conformance import PLUGIN_CASES, Outcome, PluginCard, PluginHarness, examine, examine_all
from beaver_hostspecs.testing import make_canary
from beaver_memory.embedding.settings import EmbeddingSettings


class LocalHarness(PluginHarness):
    """Uses an embedder on a port without a listener: no credential leaves, and words alone find memories."""

    card = PluginCard(
        plugin="local",
        recalls=False,
        learns=False,
        refuses_injected=False,
        notes={
            "recalls": "It learns nothing from turns by itself, so there is nothing to recall.",
            "learns": "What is said is kept through its tool only.",
            "refuses_injected": "It learns nothing from turns by itself.",
        },
    )

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


EXCUSES = {"recalls", "learns", "refuses_injected"}


@pytest.mark.parametrize("case", PLUGIN_CASES, ids=str)
async def test_conformance(case):
    """The plugin passes the case, or its card excuses it."""
    verdict = await examine(case, LocalHarness)

    assert Outcome.FAILED != verdict.outcome, verdict.reason


async def test_excuses():
    """Every field of the card that is `False` excuses something, and no other one does."""
    verdicts = await examine_all([case for case in PLUGIN_CASES if case.flags], LocalHarness)

    assert EXCUSES == {each.flag for each in verdicts if each.outcome is Outcome.EXCUSED}
