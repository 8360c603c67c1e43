"""The suite for plugins can fail: a plugin that is right passes all of it, and each wrong one is caught where it should."""

from functools import partial

import attrs
import pytest
from conformance.mutants import MUTANTS
from conformance.notes import Notes, NotesHarness

from beaver_hostspecs import Contribution, Reference
from beaver_hostspecs.conformance import PLUGIN_CASES, Outcome, PluginCard, PluginHarness, Verdict, examine
from beaver_hostspecs.testing import RecordingPlugin, traces

CASES = {case.name: case for case in PLUGIN_CASES}
LEAKS = [(case, plugin) for case, plugin in MUTANTS if "secret" in case]
FLAGS = {each.name for each in attrs.fields(PluginCard)} - {"plugin", "notes"}


class RecordingHarness(PluginHarness):
    card = PluginCard(
        plugin="recording",
        **dict.fromkeys(["learns", "refuses_injected", "holds_secret", "offers_tools", "offers_commands"], False),
        notes={"learns": "It recalls what it was made with."},
    )

    def make(self):
        return RecordingPlugin(Contribution(references=[Reference(text="a note")]))


class ModestHarness(NotesHarness):
    """The right plugin, with a card that says that it can do nothing."""

    card = PluginCard(plugin="notes", **dict.fromkeys(FLAGS, False))


@pytest.mark.parametrize("case", PLUGIN_CASES, ids=str)
async def test_the_right_plugin_passes(case):
    """A plugin that keeps the contract passes every case, without an excuse."""
    assert Verdict(case=case.name, outcome=Outcome.PASSED) == await examine(case, NotesHarness)


@pytest.mark.parametrize("case", PLUGIN_CASES, ids=str)
async def test_the_recording_plugin_passes(case):
    """The kit's own plugin passes every case, or its card excuses it."""
    verdict = await examine(case, RecordingHarness)

    assert Outcome.FAILED != verdict.outcome, verdict.reason


@pytest.mark.campaign
@pytest.mark.parametrize(("case", "plugin"), MUTANTS, ids=[f"{plugin.__name__}-{case}" for case, plugin in MUTANTS])
async def test_a_wrong_plugin_is_caught(case, plugin):
    """A wrong plugin fails in the case that is meant for it, by the demand and not by the clock."""
    verdict = await examine(CASES[case], partial(NotesHarness, plugin))

    assert Outcome.FAILED == verdict.outcome
    assert verdict.reason.startswith("AssertionError: "), verdict.reason


async def test_the_same_object_twice():
    """A harness whose `make` returns one plugin object twice fails with that reason."""
    harness, plugin = NotesHarness(), Notes()
    harness.make = lambda: plugin

    verdict = await examine(CASES["instances share nothing"], lambda: harness)

    assert "AssertionError: `make` gives the same object twice" == verdict.reason


async def test_a_secret_that_is_not_there():
    """A card that speaks of a secret needs one."""
    harness = NotesHarness()
    harness.secret = None

    verdict = await examine(CASES["says no secret"], lambda: harness)

    assert "AssertionError: the card says that it holds a secret, and the harness has none" == verdict.reason


def test_every_case_catches_something():
    """Each case has at least one wrong plugin that it is meant to catch."""
    assert set(CASES) == {case for case, _ in MUTANTS}


@pytest.mark.parametrize("case", [case for case in PLUGIN_CASES if case.flags], ids=str)
async def test_a_modest_card_is_excused(case):
    """A case is excused by the first of its flags that the card denies, and by no other one."""
    verdict = await examine(case, ModestHarness)

    assert (Outcome.EXCUSED, case.flags[0]) == (verdict.outcome, verdict.flag)


def test_every_flag_excuses_something():
    """Each flag of a plugin's card excuses at least one case."""
    assert FLAGS == {flag for case in PLUGIN_CASES for flag in case.flags}


@pytest.mark.parametrize(("case", "plugin"), LEAKS, ids=[plugin.__name__ for _, plugin in LEAKS])
async def test_reasons_name_no_secret(case, plugin):
    """What a verdict says of a plugin that leaks does not leak again."""
    harness = NotesHarness(plugin)

    verdict = await examine(CASES[case], lambda: harness)

    assert [] == traces(harness.secret.reveal(), verdict.reason)
