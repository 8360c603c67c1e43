"""Turns that are opened and abandoned leave nothing behind."""

import asyncio
import gc
from collections import Counter

from integration.faults_kit import CONTRIBUTION, other_tasks

from beaver_hooks import Host, OpenTurn
from beaver_hooks.config import Config
from beaver_hooks.config.model import HostSettings
from beaver_hooks.plugins.hook_calls import Call
from beaver_hooks.receipts.receipt_builder import PluginReceiptBuilder, ReceiptBuilder
from beaver_hooks.turns.background import Job
from beaver_hostspecs import Turn, hookimpl
from beaver_hostspecs.testing import FrozenClock

TURNS = 400
BETWEEN = 60.0
"""Seconds between two turns: sixty of them are open before the first one has idled for an hour."""

KINDS = (ReceiptBuilder, Call, Job, OpenTurn, PluginReceiptBuilder, Turn)


class Generous:
    """Contributes to every turn, learns from each, and keeps nothing itself."""

    @hookimpl
    async def before_prompt(self, turn):
        return CONTRIBUTION

    @hookimpl
    async def on_tool_result(self, turn, result):
        pass

    @hookimpl
    async def on_turn_dropped(self, turn, reason):
        pass


def living() -> dict[str, int]:
    """Return the number of objects of each kind."""
    gc.collect()
    kinds = Counter(type(each) for each in gc.get_objects())
    return {kind.__name__: kinds[kind] for kind in KINDS}


def held(host: Host) -> dict[str, int]:
    """Return the number of entries in each store of the host."""
    engine = host._running()
    return {
        "open turns": len(engine.turns.open_turns),
        "closed ids": len(engine.turns.open_turns._closed),
        "sessions with fingerprints": len(engine.turns.injected),
        "queued": len(engine.background.backlog),
        "lanes": len(engine.background.backlog._lanes),
        "waiting": len(engine.background._waiting),
        "running calls": len(engine.calls.running),
        "abandoned calls": len(engine.calls.abandoned),
        "tasks": len(other_tasks()),
    }


async def abandon_turns(host: Host, clock: FrozenClock, count: int) -> None:
    for number in range(count):
        turn = await host.open_turn("Where is the map?", session=f"session-{number}")
        assert turn.turn.was_injected(CONTRIBUTION.references[0].text)
        await turn.tool_result(tool="search", call_id="1", output="a note")
        clock.advance(BETWEEN)


async def settled(host: Host) -> None:
    """Wait until the background work has ended and the trail is written."""
    assert await host.drain(30) == 0
    await asyncio.to_thread(host.trail.flush)


async def let_all_idle(host: Host, clock: FrozenClock) -> None:
    """Let an hour pass twice and sweep after each: the host drops the open turns, then forgets their ids."""
    for _ in range(2):
        clock.advance(3601)
        host._running().turns.sweep()
        host._running().turns.injected.sweep()
        await settled(host)


async def test_hundreds_of_abandoned_turns_leave_no_growth(tmp_path):
    """Abandoned turns leave nothing in the book, the tasks, the fingerprints, the queue and on the heap."""
    clock = FrozenClock()
    before = living()
    # This test is not about a busy machine on which the whole process stands still.
    patient = Config(host=HostSettings(blocked_after_seconds=60))
    async with Host({"generous": Generous()}, config=patient, state_folder=tmp_path, clock=clock) as host:
        await abandon_turns(host, clock, TURNS)
        await settled(host)
        # An hour's worth of turns is open, however many were abandoned before.
        assert len(host._running().turns.open_turns) == 60

        await let_all_idle(host, clock)

        assert held(host) == dict.fromkeys(held(host), 0)
        assert living() == before
        assert host.health()["generous"].state == "ok"
