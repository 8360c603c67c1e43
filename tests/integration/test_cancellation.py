"""A turn that is cancelled, at whatever point, is committed once or dropped once, and nothing is half done."""

import asyncio
from collections import Counter
from collections.abc import Awaitable

import attrs
import pytest
from cancellation import CancelledAt
from integration.faults_kit import Sink, good_plugin, opened, other_tasks

from beaver_hooks import Host
from beaver_hooks.config import Config
from beaver_hooks.config.model import HostSettings
from beaver_hostspecs import Contribution
from beaver_hostspecs.testing import Call, Fault, FaultPlugin, RecordingPlugin

SESSION = "session"
MOST_POINTS = 60
"""More than the body of a turn has points at which it can be cancelled."""


class SteppingPlugin(RecordingPlugin):
    """Takes several steps of the event loop in every turn hook, and counts how its calls ended."""

    def __init__(self) -> None:
        super().__init__(Contribution(blocks=("stepping",)))
        self.ends: Counter[str] = Counter()

    async def answer(self, call: Call) -> object:
        self.ends["begun"] += 1
        try:
            for _ in range(3):
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.ends["cancelled"] += 1
            raise
        self.ends["done"] += 1
        return await super().answer(call)

    @property
    def pending(self) -> int:
        return self.ends["begun"] - self.ends["done"] - self.ends["cancelled"]


async def whole_turn(host: Host, turn_id: str) -> None:
    async with host.turn("Where is the map?", session=SESSION, id=turn_id) as turn:
        await turn.tool_result(tool="search", call_id="1", output="a note")
        await turn.commit("In the hall.")
        await host.drain()


async def cancelled_at_its_suspension(body: Awaitable[None], point: int) -> bool:
    """Cancel the body at its k-th suspension; return whether there was one."""
    stepping = CancelledAt(body, point)

    async def driven() -> None:
        await stepping

    task = asyncio.create_task(driven())
    await asyncio.wait([task])
    assert task.cancelled() == (stepping.suspensions >= point)
    return task.cancelled()


async def cancelled_after_passes(body: Awaitable[None], point: int) -> bool:
    """Cancel the body after k passes of the event loop; return whether it was still running."""
    task = asyncio.ensure_future(body)
    for _ in range(point):
        await asyncio.sleep(0)
    if task.done():
        return False
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    return True


@attrs.frozen(kw_only=True)
class Seen:
    """The outcome of a turn: the hooks that closed it, the events of its end, its receipt and all remaining work."""

    closings: tuple[str, ...]
    events: tuple[str, ...]
    receipt: str | None
    open_turns: int = 0
    queued: int = 0
    pending: int = 0
    tasks: int = 0


NEVER_OPENED = Seen(closings=(), events=(), receipt=None)
COMMITTED = Seen(closings=("after_prompt",), events=("turn_committed",), receipt="committed")
DROPPED = Seen(closings=("on_turn_dropped",), events=("turn_dropped",), receipt="dropped")


def closings_of(plugin: RecordingPlugin, turn_id: str) -> tuple[str, ...]:
    return tuple(
        call.hook
        for call in plugin.calls
        if call.hook in {"after_prompt", "on_turn_dropped"} and call.arguments["turn"].id == turn_id
    )


async def look(host: Host, plugin: SteppingPlugin, sink: Sink, turn_id: str) -> Seen:
    """Return the outcome of the turn, once its background work is done."""
    assert await host.drain(30) == 0
    recorded = host.trail.identify(turn_id)
    kept = await host.receipt(turn_id)
    events = [event.name for event in sink.events if event.turn == recorded and event.name.startswith("turn_")]
    return Seen(
        closings=closings_of(plugin, turn_id),
        events=tuple(events),
        receipt=kept and kept["state"],
        open_turns=len(host._running().turns.open_turns),
        queued=len(host._running().background.backlog),
        pending=plugin.pending,
        tasks=len(other_tasks()),
    )


@pytest.mark.parametrize("background", [True, False])
@pytest.mark.parametrize("cancelled", [cancelled_at_its_suspension, cancelled_after_passes])
async def test_a_turn_cancelled_at_any_point_is_closed_exactly_once(cancelled, background, tmp_path):
    """At every point of cancellation the error comes out, one hook closes the turn once, and the next turn works."""
    plugin, sink = SteppingPlugin(), Sink()
    config = Config(host=HostSettings(background=background, blocked_after_seconds=60))
    seen: list[Seen] = []
    async with Host(
        {"stepping": plugin, "good": good_plugin()}, config=config, state_folder=tmp_path, sinks=[sink]
    ) as host:
        for point in range(MOST_POINTS):
            turn_id = f"turn-{point}"
            # The suspensions of a body are numbered from 1.
            again = await cancelled(whole_turn(host, turn_id), point + (cancelled is cancelled_at_its_suspension))
            seen.append(await look(host, plugin, sink, turn_id))
            if not again:
                break
            await whole_turn(host, f"next-{point}")
            assert await look(host, plugin, sink, f"next-{point}") == COMMITTED

        assert {health.state for health in host.health().values()} == {"ok"}

    # Cancelled before it began, then dropped, then committed: the outcome changes twice at most, and never back.
    assert [each for each in (NEVER_OPENED, DROPPED, COMMITTED) for _ in range(seen.count(each))] == seen
    assert {DROPPED, COMMITTED} <= {*seen}
    assert (seen[0] == NEVER_OPENED) == (cancelled is cancelled_after_passes)
    assert seen[-1] == COMMITTED
    assert len(seen) >= 3


async def test_cancellation_does_not_wait_for_a_hook_that_swallows_it(tmp_path):
    """The caller is free at once; the hook is abandoned, and its later calls are still made."""
    plugin = FaultPlugin(Fault.SWALLOW_CANCEL, "before_prompt")
    async with opened(Host({"stubborn": plugin}, state_folder=tmp_path), plugin) as host:
        task = asyncio.create_task(host.open_turn("Where is the map?", session=SESSION))
        await plugin.wait_for("before_prompt")
        task.cancel()
        await asyncio.wait([task])
        assert await host.drain(30) == 0

        assert (task.cancelled(), plugin.running) == (True, 1)
        assert len(plugin.calls_of("on_turn_dropped")) == 1
