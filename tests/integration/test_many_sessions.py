"""A plugin that hangs in a hundred sessions at once makes no caller wait beyond its deadline."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import pytest
from integration.faults_kit import PROMPT, Sink, good_plugin, opened, other_tasks

from beaver_hooks import Host, OpenTurn
from beaver_hooks.audit.events import AuditEvent
from beaver_hostspecs import Deadlines, PluginInfo
from beaver_hostspecs.testing import Fault, FaultPlugin, RecordingPlugin

SESSIONS = 100
DEADLINE = 0.2
GENEROUS = 15.0
"""Seconds: one deadline after the other would take 20, and all of them side by side take one."""

T = TypeVar("T")


def names() -> list[str]:
    return [f"session-{number}" for number in range(SESSIONS)]


async def side_by_side(call: Callable[[str], Awaitable[T]]) -> list[T]:
    async def one(name: str) -> T:
        return await call(name)

    return await asyncio.gather(*[one(name) for name in names()])


def sessions_of(plugin: RecordingPlugin, hook: str) -> set[object]:
    return {call.arguments["turn"].session for call in plugin.calls_of(hook)}


def hanging(hook: str, fault: Fault, seconds: float) -> FaultPlugin:
    return FaultPlugin(
        fault, hook, info=PluginInfo(version="0", contract="1.0", deadlines=Deadlines(**{hook: seconds}))
    )


async def open_turns(host: Host, sessions: Iterable[str]) -> list[OpenTurn]:
    return [await host.open_turn(PROMPT, session=session) for session in sessions]


@pytest.mark.shows("003-015", "003-131")
@pytest.mark.parametrize("fault", [Fault.AWAIT_FOREVER, Fault.SWALLOW_CANCEL])
async def test_a_hundred_prompts_wait_for_one_deadline_and_no_longer(fault, tmp_path):
    """All other plugins have answered all sessions before the first deadline ends, and one deadline is all they wait."""
    good, plugin = good_plugin(), hanging("before_prompt", fault, DEADLINE)
    answered_at_failure: list[int] = []

    def heard(event: AuditEvent) -> None:
        if event.name == "plugin_failed":
            answered_at_failure.append(len(good.calls_of("before_prompt")))

    host = Host({"hanging": plugin, "good": good}, state_folder=tmp_path, sinks=[Sink(heard)])
    async with opened(host, plugin):
        async with asyncio.timeout(GENEROUS):
            turns = await side_by_side(lambda name: host.open_turn(PROMPT, session=name))

        assert answered_at_failure == [SESSIONS] * SESSIONS
        assert {len(turn.references) for turn in turns} == {1}
        assert await asyncio.gather(*[turn.commit("He moved the river.") for turn in turns]) == [True] * SESSIONS
        assert await host.drain(30) == 0
        assert sessions_of(good, "after_prompt") == set(names())
        health = host.health()["hanging"]
        assert (health.state, health.consecutive_failures) == ("degraded", SESSIONS)


async def test_a_hundred_answers_that_hang_in_one_plugin_keep_no_other_one_waiting(tmp_path):
    """While a hundred of its calls hang, every other plugin learns of every answer and the next turns are served."""
    good, plugin = good_plugin(), hanging("after_prompt", Fault.AWAIT_FOREVER, 60.0)
    sink = Sink()
    host = Host({"hanging": plugin, "good": good}, state_folder=tmp_path, sinks=[sink])
    async with opened(host, plugin):
        for number in (1, 2):
            for turn in await open_turns(host, names()):
                assert await turn.commit("He moved the river.")
            await good.wait_for("after_prompt", number * SESSIONS, timeout=GENEROUS)
            await plugin.wait_for("after_prompt", SESSIONS, timeout=GENEROUS)

            # In each session the first call hangs, the second one waits behind it.
            assert (plugin.running, len(plugin.calls_of("after_prompt"))) == (SESSIONS, SESSIONS)
            for _ in range(1000):
                # The good plugin's calls have begun; give them the passes of the loop that they need to end.
                if len(host._running().background.backlog) == number * SESSIONS:
                    break
                await asyncio.sleep(0)
            assert len(host._running().background.backlog) == number * SESSIONS
        assert ("plugin_failed", "hanging") not in sink.names()

        await plugin.release()
        assert await host.drain(30) == 0
        assert len(plugin.calls_of("after_prompt")) == 2 * SESSIONS
        assert {health.state for health in host.health().values()} == {"ok"}
    assert other_tasks() == set()


async def test_a_hanging_plugin_that_fills_the_queue_costs_only_what_does_not_fit(tmp_path):
    """Drained within the deadline: a hundred hanging calls end side by side, each as one failure of its plugin."""
    good, plugin = RecordingPlugin(), hanging("after_prompt", Fault.SWALLOW_CANCEL, DEADLINE)
    sink = Sink()
    host = Host({"hanging": plugin, "good": good}, state_folder=tmp_path, sinks=[sink])
    async with opened(host, plugin):
        for turn in await open_turns(host, names()):
            assert await turn.commit("He moved the river.")
        async with asyncio.timeout(GENEROUS):
            left = await host.drain()

        assert left == 0
        assert sink.names()["plugin_failed", "hanging"] == SESSIONS
        assert len(good.calls_of("after_prompt")) == SESSIONS
