"""The builder of a receipt, from open to pending to committed, and as plain data."""

import asyncio
import json
from datetime import timedelta

import pytest

from beaver_hooks import Host
from beaver_hooks.receipts.receipt_builder import ReceiptBuilder
from beaver_hooks.receipts.receipts import Clip, Decision, Failure, Outcome, PluginReceipt, Receipt, to_json
from beaver_hostspecs import Contribution, DropReason, Reference, hookimpl
from beaver_hostspecs.testing import FrozenClock, RecordingPlugin, make_turn

NOON = FrozenClock().now()


def identify(value):
    return f"h:{len(value)}"


def make_builder():
    return ReceiptBuilder(turn=make_turn(prompt="What?"), recorded="t1", session="h:s", opened=NOON)


def test_a_receipt_as_plain_data():
    """JSON takes all of it: times are text, and empty parts are gone."""
    part = PluginReceipt(
        candidates=(("a", 0.5), ("b", None)), considered=2, injected=("a", None), tokens=9,
        decisions=(Decision(gate="recall", verdict="yes", reason="why not"),),
        outcomes=(Outcome(plane="disk", kind="stored", facts={"ids": [1, 2]}),),
        clipped=(Clip(what="references", shown=1, total=2),),
        failures=(Failure(hook="stop", category="raised", error="ValueError", at="notes:3"),),
        milliseconds={"before_prompt": 1.5},
    )  # fmt: skip
    receipt = Receipt(
        turn="t1", session="h:s", prompt="h:5", prompt_characters=5, opened=NOON, state="dropped",
        reason=DropReason.CANCELLED, plugins={"p": part, "silent": PluginReceipt()},
    )  # fmt: skip
    expected = {
        "turn": "t1", "session": "h:s", "prompt": "h:5", "prompt_characters": 5, "opened": NOON.isoformat(),
        "closed": None, "state": "dropped", "reason": "cancelled", "tokens": 0, "lost": 0,
        "plugins": {
            "silent": {},
            "p": {
                "candidates": [["a", 0.5], ["b", None]], "considered": 2, "injected": ["a", None], "tokens": 9,
                "decisions": [{"gate": "recall", "verdict": "yes", "reason": "why not"}],
                "outcomes": [{"plane": "disk", "kind": "stored", "facts": {"ids": [1, 2]}}],
                "clipped": [{"what": "references", "shown": 1, "total": 2}],
                "failures": [{"hook": "stop", "category": "raised", "error": "ValueError", "at": "notes:3"}],
                "milliseconds": {"before_prompt": 1.5},
            },
        },
    }  # fmt: skip

    assert json.loads(json.dumps(to_json(receipt), allow_nan=False)) == expected


def test_the_states_of_a_builder():
    """A turn is open, then pending while background calls are left, then what it was closed as."""
    builder, states = make_builder(), []
    states.append(builder.state)
    builder.closed, builder.open_calls = NOON + timedelta(seconds=1), 2
    states.append(builder.state)
    builder.open_calls = 0
    states.append(builder.state)
    builder.reason = DropReason.FAILED
    states.append(builder.state)

    assert states == ["open", "pending", "committed", "dropped"]


@pytest.mark.shows("003-013", "003-048", "003-051")
def test_a_receipt_is_read_off_its_builder():
    """The receipt adds up tokens and times, hashes the prompt, and shows the plugins' ids made clean."""
    builder = make_builder()
    one, two = builder.plugins["one"], builder.plugins["two"]
    one.tokens, one.blocks, one.injected = 5, 1, ("session-1", None)
    two.tokens = 7
    for seconds in (0.001, 0.0025):
        two.spend("before_prompt", seconds)
    one.enter(Failure(hook="stop", category="timeout"))

    assert builder.receipt(identify) == Receipt(
        turn="t1", session="h:s", prompt="h:5", prompt_characters=5, opened=NOON, tokens=12,
        plugins={
            "one": PluginReceipt(
                tokens=5, blocks=1, injected=("h:9/9", None), failures=(Failure(hook="stop", category="timeout"),)
            ),
            "two": PluginReceipt(tokens=7, milliseconds={"before_prompt": 3.5}),
        },
    )  # fmt: skip
    assert one.receipt().injected == ("session-1", None)


class Learner:
    """Learns in the background, when it is let."""

    def __init__(self, gate):
        self.gate = gate

    @hookimpl
    async def after_prompt(self, turn, answer, report):
        await self.gate.wait()
        report.outcome("disk", "stored", items=2)


async def test_a_receipt_is_pending_and_then_committed(tmp_path):
    """The kept receipt says `pending` until the background is done, and then what came of it."""
    gate = asyncio.Event()
    recall = RecordingPlugin(Contribution(references=(Reference(text="a note", id="n1"),)))
    async with Host({"recall": recall, "learner": Learner(gate)}, state_folder=tmp_path / "state") as host:
        turn = await host.open_turn("What did we decide?", session="s")
        states = [turn.receipt.state]
        await turn.commit("To wait.")
        states += [turn.receipt.state, (await host.receipt(turn.id))["state"]]
        gate.set()
        await host.drain()
        states += [turn.receipt.state, (await host.receipt(turn.id))["state"]]
        kept = (await host.receipt(turn.id))["plugins"]

    assert states == ["open", "pending", "pending", "committed", "committed"]
    assert kept["recall"]["injected"] == ["n1"]
    assert kept["learner"]["outcomes"] == [{"plane": "disk", "kind": "stored", "facts": {"items": 2}}]
