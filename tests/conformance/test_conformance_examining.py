"""Cards, verdicts, and how a case is examined."""

import asyncio
import contextlib

import attrs
import pytest

from beaver_hostspecs import Secret
from beaver_hostspecs.conformance import (
    Card,
    Case,
    Excused,
    Outcome,
    PluginCard,
    Verdict,
    examine,
    examine_all,
    require,
)
from beaver_hostspecs.conformance.cases import LONGEST_REASON
from beaver_hostspecs.testing.faults import BareFault

FLAGS = [each.name for each in attrs.fields(Card) if each.type is bool]
PLUGIN_FLAGS = [each.name for each in attrs.fields(PluginCard) if each.type is bool]


class Harness:
    """Remembers that it was closed."""

    def __init__(self, card=None, *, fails_to_close=False):
        self.card = card or Card(host="test", sync=False, notes={"sync": "It has no such thing."})
        self.closed = 0
        self._fails_to_close = fails_to_close

    async def close(self):
        self.closed += 1
        if self._fails_to_close:
            raise OSError("it does not close")


async def examined(run, *flags, harness=None, seconds=30.0):
    """Examine a case that does `run`; return verdict and harness."""
    harness = harness or Harness()
    case = Case(name="the case", shows="It shows something.", flags=flags, run=run)
    return await examine(case, lambda: harness, seconds=seconds), harness


# --- Cards ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"host": 1},
        {"reference_placement": "after_user"},
        {"reference_persistence": "sometimes"},
        {"reference_persistence": True},
        {"reference_role": None},
        *({flag: 1} for flag in FLAGS),
        *({flag: None} for flag in FLAGS),
        {"notes": {"sinc": "It has no such thing."}},
    ],
    ids=str,
)
def test_a_card_takes_no_nonsense(wrong):
    """A host's card refuses a value of the wrong type, an unknown word, and a note about an unknown field."""
    with pytest.raises((TypeError, ValueError)) as caught:
        Card(**{"host": "test", **wrong})

    assert next(iter(wrong)) in str(caught.value)


@pytest.mark.parametrize(
    "wrong", [{"plugin": 1}, *({flag: "no"} for flag in PLUGIN_FLAGS), {"notes": {"learn": "Nothing."}}], ids=str
)
def test_a_plugins_card_takes_no_nonsense(wrong):
    """A plugin's card refuses a value of the wrong type, an unknown word, and a note about an unknown field."""
    with pytest.raises((TypeError, ValueError)) as caught:
        PluginCard(**{"plugin": "test", **wrong})

    assert next(iter(wrong)) in str(caught.value)


@pytest.mark.parametrize(("kind", "name"), [(Card, "host"), (PluginCard, "plugin")])
def test_an_unknown_field_is_refused(kind, name):
    """A card refuses an unknown field, and raises when it is asked for one."""
    with pytest.raises(TypeError, match="sings"):
        kind(**{name: "test", "sings": True})
    with pytest.raises(AttributeError):
        kind(**{name: "test"}).can("sings")


@pytest.mark.parametrize("flag", FLAGS)
def test_what_a_host_can(flag):
    """A host's card allows every flag that it does not deny, except that about compactions."""
    assert (flag != "announces_compaction", False) == (
        Card(host="test").can(flag),
        Card(host="test", **{flag: False}).can(flag),
    )


@pytest.mark.parametrize("flag", PLUGIN_FLAGS)
def test_what_a_plugin_does(flag):
    """A plugin's card allows every flag that it does not deny, except that about compactions."""
    assert (flag != "confirms_compaction", False) == (
        PluginCard(plugin="test").can(flag),
        PluginCard(plugin="test", **{flag: False}).can(flag),
    )


@pytest.mark.parametrize(("value", "expected"), [("ephemeral", True), ("replayed", False), ("persisted", False)])
def test_persistence_is_a_flag(value, expected):
    """The flag `reference_persistence` holds when references are gone after their turn."""
    assert expected is Card(host="test", reference_persistence=value).can("reference_persistence")


def test_notes_are_frozen():
    """A card's notes are a frozen copy."""
    notes = {"sync": "It has no such thing."}
    card = Card(host="test", notes=notes)
    notes["sync"] = "It has."

    assert {"sync": "It has no such thing."} == card.notes
    with pytest.raises(TypeError):
        card.notes["sync"] = "It has."


# --- Examining ------------------------------------------------------------------------------------------------------


async def test_passed():
    """A case that ends has passed."""

    async def run(harness):
        assert 0 == harness.closed

    verdict, harness = await examined(run)

    assert (Verdict(case="the case", outcome=Outcome.PASSED), 1) == (verdict, harness.closed)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (AssertionError("it is not so"), "AssertionError: it is not so"),
        (LookupError(), "LookupError"),
        (BaseExceptionGroup("several", [ValueError("one")]), "ExceptionGroup: several (1 sub-exception)"),
        (TimeoutError(), "it took longer than 30 seconds, or something in it timed out"),
        (SystemExit(0), "SystemExit: 0"),
        (BareFault("no exception"), "BareFault: no exception"),
        (asyncio.CancelledError(), "CancelledError"),
        (AssertionError("x" * 10_000), ("AssertionError: " + "x" * 10_000)[:LONGEST_REASON]),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_failed(error, reason):
    """A case that raises has failed, and says why; the harness is closed."""

    async def run(_):
        raise error

    verdict, harness = await examined(run)

    assert (Verdict(case="the case", outcome=Outcome.FAILED, reason=reason), 1) == (verdict, harness.closed)


async def test_a_harness_that_cannot_be_made():
    """A harness that cannot be made fails the case."""

    def make():
        raise OSError("no database")

    case = Case(name="the case", shows="It.", run=None)
    expected = Verdict(case="the case", outcome=Outcome.FAILED, reason="OSError: no database")

    assert expected == await examine(case, make)


async def test_interrupted():
    """KeyboardInterrupt in a case is raised to the caller, and the harness is closed."""

    async def run(_):
        raise KeyboardInterrupt

    harness = Harness()
    with pytest.raises(KeyboardInterrupt):
        await examined(run, harness=harness)

    assert 1 == harness.closed


async def test_a_secret_is_masked():
    """A reason shows no credential that the process knows."""

    async def run(_):
        raise AssertionError(f"it said {Secret('a-credential-of-the-test').reveal()}")

    verdict, _ = await examined(run)

    assert "AssertionError: it said [secret]" == verdict.reason


async def test_excused():
    """A case that asks for what the card denies is excused, with the card's note."""

    async def run(harness):
        require(harness.card, "streaming", "sync")

    verdict, harness = await examined(run, "streaming", "sync")
    expected = Verdict(case="the case", outcome=Outcome.EXCUSED, flag="sync", reason="It has no such thing.")

    assert (expected, 1) == (verdict, harness.closed)


async def test_no_note():
    """An excuse without a note has no reason."""

    async def run(harness):
        require(harness.card, "plain")

    verdict, _ = await examined(run, "plain", harness=Harness(Card(host="test", plain=False)))

    assert Verdict(case="the case", outcome=Outcome.EXCUSED, flag="plain") == verdict


async def test_an_excuse_that_is_not_named():
    """A case that is excused by a flag it does not name fails."""

    async def run(_):
        raise Excused("sync")

    verdict, harness = await examined(run, "streaming")
    expected = "the case is excused by `sync`, which it does not name"

    assert (Verdict(case="the case", outcome=Outcome.FAILED, reason=expected), 1) == (verdict, harness.closed)


async def test_too_long():
    """A case that does not end fails after its time, and the harness is closed."""

    async def run(_):
        await asyncio.Event().wait()

    verdict, harness = await examined(run, seconds=0.01)
    expected = "it took longer than 0.01 seconds, or something in it timed out"

    assert (Verdict(case="the case", outcome=Outcome.FAILED, reason=expected), 1) == (verdict, harness.closed)


async def test_too_long_and_unmoved():
    """A case that catches its cancellation at the time limit fails."""

    async def run(_):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    verdict, _ = await examined(run, seconds=0.01)

    assert Outcome.FAILED == verdict.outcome


async def test_cancelled():
    """Cancellation gets out, and the harness is closed."""
    begun = asyncio.Event()

    async def run(_):
        begun.set()
        await asyncio.Event().wait()

    harness = Harness()
    task = asyncio.create_task(examined(run, harness=harness))
    await begun.wait()
    task.cancel()
    await asyncio.wait([task])

    assert (True, 1) == (task.cancelled(), harness.closed)


async def test_a_harness_that_does_not_close():
    """A harness that cannot be closed fails the case."""

    async def run(_):
        pass

    verdict, _ = await examined(run, harness=Harness(fails_to_close=True))

    assert Verdict(case="the case", outcome=Outcome.FAILED, reason="OSError: it does not close") == verdict


async def test_all_with_fresh_harnesses():
    """Several cases are examined in order, each with a harness of its own."""
    made = []

    def make():
        made.append(Harness())
        return made[-1]

    async def run(harness):
        assert harness is made[-1]

    cases = [Case(name=name, shows="It.", run=run) for name in ("one", "two")]
    verdicts = await examine_all(cases, make)

    assert [Verdict(case=name, outcome=Outcome.PASSED) for name in ("one", "two")] == list(verdicts)
    assert [1, 1] == [each.closed for each in made]


def test_a_case_shows_its_name():
    """A case is named in a test report."""
    assert "one" == str(Case(name="one", shows="It.", run=None))
