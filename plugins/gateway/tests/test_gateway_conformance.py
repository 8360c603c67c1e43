"""The gateway plugin passes the conformance suite, over a fake gateway that recalls the turns that were added."""

import pytest

from beaver_hooks_gateway import Gateway, GatewaySettings
from beaver_hooks_gateway.testing import FakeGateway, Fault
from beaver_hostspecs.conformance import PLUGIN_CASES, Outcome, PluginCard, PluginHarness, examine, examine_all
from beaver_hostspecs.testing import make_canary


class GatewayHarness(PluginHarness):
    card = PluginCard(
        plugin="gateway",
        refuses_injected=False,
        isolated=False,
        offers_tools=False,
        offers_commands=False,
        confirms_compaction=True,
        notes={
            "refuses_injected": "It adds prompt and answer as they were said; decision 0023 says why.",
            "isolated": "Its memory is the gateway's, which all instances with one user share.",
            "offers_tools": "It offers no tools.",
            "offers_commands": "It offers no commands.",
        },
    )

    def __init__(self):
        self.secret = make_canary().secret
        self.server = FakeGateway(user_key=self.secret)
        self.server.answered = self._recall
        self._running = False

    async def open(self):
        await self.server.__aenter__()
        self._running = True
        server = self.server
        self.settings = GatewaySettings(
            base_url=server.base_url, user_id=server.user_id, user_key=self.secret, timeout_seconds=2.0
        )

    def make(self):
        return Gateway()

    async def trouble(self):
        for operation in ("search", "add", "flush"):
            self.server.misbehave(operation, Fault.STATUS_400)  # it repeats the request, and the key in it

    async def close(self):
        if self._running:
            await self.server.__aexit__(None, None, None)

    def _recall(self, operation):
        if operation == "add":
            said = [message["content"] for body in self.server.bodies("add") for message in body["messages"]]
            texts = [text for text in said if text.isprintable() and len(text) < 1000]
            self.server.results = [{"text": text} for text in texts[-20:]]


EXCUSES = {"refuses_injected", "isolated", "offers_tools", "offers_commands"}


@pytest.mark.shows("001-033")
@pytest.mark.parametrize("case", PLUGIN_CASES, ids=str)
async def test_conformance(case):
    """The plugin passes the case, or its card excuses it."""
    verdict = await examine(case, GatewayHarness)

    assert Outcome.FAILED != verdict.outcome, verdict.reason


async def test_excuses():
    """Every field of the card that is `False` excuses something, and no other one does."""
    verdicts = await examine_all([case for case in PLUGIN_CASES if case.flags], GatewayHarness)

    assert EXCUSES == {each.flag for each in verdicts if each.outcome is Outcome.EXCUSED}
