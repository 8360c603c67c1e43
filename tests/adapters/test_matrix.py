import pytest
from adapters.harness_claude_code import cli
from adapters.harnesses import HARNESSES
from adapters.published import published


@pytest.mark.skipif(cli() is None, reason="the `claude` that claude-agent-sdk bundles is not here")
def test_every_card_is_published():
    """The documentation has the card of every adapter, as it is, in order, and no failure."""
    assert [each.card for each in HARNESSES] == [each.card for each in published().values()]
    assert [] == [verdict for each in published().values() for verdict in each.failures]
