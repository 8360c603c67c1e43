"""The suite for hosts can fail: a host that is right passes all of it, and each wrong one is caught where it should."""

from functools import partial

import attrs
import pytest
from conformance.toy_defects import DEFECTS, LATE_DEFECTS
from conformance.toy_host import ToyHarness

from beaver_hostspecs.conformance import HOST_CASES, Card, Outcome, Verdict, examine

CASES = {case.name: case for case in HOST_CASES}
MUTANTS = [(defect, case) for defect, cases in DEFECTS.items() for case in cases]
LET_OUT = {
    "fails with its plugins in a compaction": {"RuntimeError"},
    "fails with its plugins": {"FaultError", "PluginFailed"},
    "gives up after a tool error": {"RuntimeError"},
    "lets tool errors out": {"KeyError"},
}
"""What a host with such a defect raises, where none was to be raised."""
FLAGS = {each.name for each in attrs.fields(Card)} - {"host", "notes", "reference_placement", "reference_role"}


class ModestHarness(ToyHarness):
    """The right host, with a card that says that it can do nothing."""

    card = Card(
        host="modest", reference_persistence="persisted", **dict.fromkeys(FLAGS - {"reference_persistence"}, False)
    )


class LateHarness(ToyHarness):
    """The right host, which shows references before the user's text and says so."""

    card = Card(host="late", reference_placement="before_user")


@pytest.mark.parametrize("case", HOST_CASES, ids=str)
async def test_the_right_host_passes(case):
    """A host without a defect passes every case, without an excuse."""
    assert Verdict(case=case.name, outcome=Outcome.PASSED) == await examine(case, ToyHarness)


@pytest.mark.campaign
@pytest.mark.parametrize(("defect", "case"), MUTANTS, ids=[f"{case}-{defect}" for defect, case in MUTANTS])
async def test_a_wrong_host_is_caught(defect, case):
    """A host with a defect fails in the case that is meant for it, by the demand or by the error that it lets out."""
    verdict = await examine(CASES[case], partial(ToyHarness, defect))

    assert Outcome.FAILED == verdict.outcome
    assert verdict.reason.partition(":")[0] in LET_OUT.get(defect, {"AssertionError"}), verdict.reason


@pytest.mark.parametrize(
    ("defects", "expected"),
    [([], Outcome.PASSED), *(([defect], Outcome.FAILED) for defect in LATE_DEFECTS)],
)
async def test_the_other_placement(defects, expected):
    """A host that shows references before the user's text is held to that."""
    verdict = await examine(CASES["reference placement"], partial(LateHarness, *defects))

    assert expected == verdict.outcome


def test_every_case_catches_something():
    """Each case has at least one wrong host that it is meant to catch."""
    assert set(CASES) == {case for _, case in MUTANTS}


@pytest.mark.parametrize("case", [case for case in HOST_CASES if case.flags], ids=str)
async def test_a_modest_card_is_excused(case):
    """A case is excused by the first of its flags that the card denies, and by no other one."""
    verdict = await examine(case, ModestHarness)

    assert (Outcome.EXCUSED, case.flags[0]) == (verdict.outcome, verdict.flag)


def test_every_flag_excuses_something():
    """Each flag of a host's card excuses at least one case."""
    assert FLAGS == {flag for case in HOST_CASES for flag in case.flags}
