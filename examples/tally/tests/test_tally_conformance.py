"""The example plugin keeps the contract: the conformance kit examines it, as it would a third party's."""

import pytest

from beaver_hostspecs.conformance import PLUGIN_CASES, Outcome, PluginCard, PluginHarness, examine, examine_all
from beaver_tally import Tally, TallySettings


class TallyHarness(PluginHarness):
    card = PluginCard(
        plugin="tally", holds_secret=False, notes={"holds_secret": "Its settings are a number; it holds no credential."}
    )
    settings = TallySettings(recall_limit=3)

    def make(self):
        return Tally()


@pytest.mark.parametrize("case", PLUGIN_CASES, ids=str)
async def test_conformance(case):
    """The plugin passes the case, or its card excuses it."""
    verdict = await examine(case, TallyHarness)

    assert Outcome.FAILED != verdict.outcome, verdict.reason


async def test_excuses():
    """It is excused from the cases about secrets and compactions, and from nothing else."""
    verdicts = await examine_all([case for case in PLUGIN_CASES if case.flags], TallyHarness)

    assert {"holds_secret", "confirms_compaction"} == {
        each.flag for each in verdicts if each.outcome is Outcome.EXCUSED
    }
