"""The curated memory keeps the contract, as the conformance kit sees it."""

import pytest

from beaver_hooks_curated import Curated, CuratedSettings
from beaver_hostspecs.conformance import PLUGIN_CASES, Outcome, PluginCard, PluginHarness, examine, examine_all


class CuratedHarness(PluginHarness):
    card = PluginCard(
        plugin="curated",
        recalls=False,
        learns=False,
        refuses_injected=False,
        holds_secret=False,
        notes={
            "recalls": "It shows what the tool `memory` was told, and the suite's turns tell it nothing.",
            "learns": "It keeps what the tool `memory` is told, and nothing of what is said in turns.",
            "refuses_injected": "It learns nothing of turns; the tool's answer says when an entry repeats recall.",
            "holds_secret": "It holds no credential.",
            "confirms_compaction": "It holds nothing of a session.",
        },
    )
    settings = CuratedSettings()

    def make(self):
        return Curated()


class ApprovingHarness(CuratedHarness):
    """The same with approval, users apart, and the oldest entries making room."""

    settings = CuratedSettings(approval=True, per_user=True, overflow="archive", memory_char_limit=100)


EXCUSES = {"recalls", "learns", "refuses_injected", "holds_secret", "confirms_compaction"}


@pytest.mark.shows("001-033")
@pytest.mark.parametrize("make", [CuratedHarness, ApprovingHarness])
@pytest.mark.parametrize("case", PLUGIN_CASES, ids=str)
async def test_conformance(case, make):
    """The plugin passes the case, or its card excuses it."""
    verdict = await examine(case, make)

    assert Outcome.FAILED != verdict.outcome, verdict.reason


async def test_excuses():
    """Every field of the card that is `False` excuses something, and no other one does."""
    verdicts = await examine_all([case for case in PLUGIN_CASES if case.flags], CuratedHarness)

    assert EXCUSES == {each.flag for each in verdicts if each.outcome is Outcome.EXCUSED}
