"""The place of memory in the model's request, and its absence everywhere else."""

import re

from beaver_hostspecs.conformance.cases import Case, require
from beaver_hostspecs.conformance.harness import HostHarness, ModelCall
from beaver_hostspecs.conformance.hosts.scenes import (
    ANSWER,
    PROMPT,
    apart,
    demand,
    recalled,
    same,
    simple,
    ways,
    with_probe,
    with_tool,
)
from beaver_hostspecs.conformance.probes import BASE, BLOCK, RECALLED, RULE, Probe

FIRST = "The first prompt of this session."
FENCED = re.compile(r"<<<beaver-reference (\S+) begin>>>\n(.*)\n<<<beaver-reference \1 end>>>", re.DOTALL)


async def _placed(harness: HostHarness) -> None:
    probe = await _two_turns(harness)
    call, mine = harness.calls[-1], probe.recalled[probe.turns[-1].id]
    apart(harness)
    same(1, sum(mine in message.text for message in call.messages), "the messages that hold what was recalled")
    if harness.card.can("reference_persistence"):
        same(1, len(recalled(call)), "the messages that hold anything that was ever recalled")
    place = _index(call, mine)
    same(harness.card.reference_role, call.messages[place].role, "the role of the reference message")
    fenced = FENCED.search(call.messages[place].text)
    demand(fenced and mine in fenced[2], "what was recalled stands behind no fence")
    first, last = _index(call, FIRST), _index(call, PROMPT)
    if harness.card.reference_placement == "before_history":
        demand(place < first, "the reference message stands after the history")
    else:
        demand(first < place, "the reference message stands before the history")
        between = [each.text for each in call.messages[place + 1 : last] if RECALLED not in each.text]
        same([], between, "what stands between the reference message and the user's text")
    demand(place < last, "the reference message stands after the user's text")


async def _not_again(harness: HostHarness) -> None:
    probe = await _two_turns(harness)
    require(harness.card, "reference_persistence")
    old = probe.recalled[probe.turns[0].id]
    demand(
        not any(old in message.text for message in harness.calls[-1].messages),
        "the second turn carries a reference of the first",
    )


async def _not_stored(harness: HostHarness) -> None:
    await _two_turns(harness)
    require(harness.card, "reference_persistence")
    stored = [message.text for message in await harness.stored("session-1")]
    demand(any(FIRST in text for text in stored), "the history holds nothing of the first turn")
    same([], [text for text in stored if RECALLED in text], "references in the stored history")


async def _replayed(harness: HostHarness) -> None:
    probe = await with_probe(harness)
    for number, way in enumerate(ways(harness.card), 1):
        before = len(harness.calls)
        await harness.run(with_tool(f"Prompt {number}.", way=way, session=f"session-{number}"))
        same(number, len(probe.turns), "how often plugins were asked")
        shown = [recalled(call) for call in harness.calls[before:]]
        same(2, len(shown), "how often the model was asked")
        same(shown[0], shown[1], "the references at the second step")
        same(1, len(shown[0]), "the messages that hold what was recalled")
    apart(harness)


async def _stable(harness: HostHarness) -> None:
    require(harness.card, "system_prompt")
    await with_probe(harness)
    for number, way in enumerate(("whole", *ways(harness.card))):
        await harness.run(with_tool(f"Prompt {number}.", call=f"call-{number}", way=way))
    prompts = [call.system for call in harness.calls]
    for text in (BASE, RULE, BLOCK):
        same(1, prompts[0].count(text), f"how often {text!r} stands in the system prompt")
    same([prompts[0]] * len(prompts), prompts, "the system prompts of every step")


async def _unregistered(harness: HostHarness) -> None:
    probe = await with_probe(harness)
    require(harness.card, "unregister")
    same(ANSWER, await harness.run(simple(FIRST)), "the first answer")
    await harness.settle()
    await harness.unregister("probe")
    told = probe.told
    same(ANSWER, await harness.run(simple(PROMPT)), "the answer without the plugin")
    await harness.settle()
    same(told, probe.told, "the hooks that were called after unregistering")
    call = harness.calls[-1]
    demand(RULE not in call.system, "the rule of a plugin that is gone is in the system prompt")
    if harness.card.can("reference_persistence"):
        same((), recalled(call), "references of a plugin that is gone")


async def _silent(harness: HostHarness) -> None:
    require(harness.card, "plain")
    await harness.open({})
    await harness.run(with_tool())
    await harness.close()
    await harness.open_plain()
    await harness.run(with_tool())
    same(4, len(harness.calls), "how often the model was asked")
    for plain, with_host in zip(harness.calls[2:], harness.calls[:2], strict=True):
        same(plain.messages, with_host.messages, "the messages where no plugin has anything to say")
        same(plain.system.strip(), with_host.system.strip(), "the system prompt")
        same(set(plain.tools), set(with_host.tools), "the tools")


async def _two_turns(harness: HostHarness) -> Probe:
    probe = await with_probe(harness)
    await harness.run(simple(FIRST))
    await harness.run(simple(PROMPT))
    await harness.settle()
    call = harness.calls[-1]
    demand(any(FIRST in message.text for message in call.messages), "the framework sends no history in the second turn")
    return probe


def _index(call: ModelCall, text: str) -> int:
    found = [index for index, each in enumerate(call.messages) if text in each.text]
    demand(found, f"the model is not shown {text!r}")
    return found[-1]


CASES: tuple[Case[HostHarness], ...] = (
    Case(
        name="reference placement",
        shows="One fenced message stands before the history, or directly before the prompt, as the card says.",
        run=_placed,
    ),
    Case(
        name="references are ephemeral",
        shows="The second turn carries no reference of the first.",
        flags=("reference_persistence",),
        run=_not_again,
    ),
    Case(
        name="references are not stored",
        shows="The stored history holds no reference.",
        flags=("reference_persistence",),
        run=_not_stored,
    ),
    Case(
        name="recall once, replay at each step",
        shows="Plugins are asked once, and each model step gets the same references.",
        run=_replayed,
    ),
    Case(
        name="stable system prompt",
        shows="Rules and blocks stand in the system prompt, with the same bytes at every step of every turn.",
        flags=("system_prompt",),
        run=_stable,
    ),
    Case(
        name="unregistered in between",
        shows="A plugin that is unregistered is gone from the next turn on.",
        flags=("unregister",),
        run=_unregistered,
    ),
    Case(
        name="nothing to say",
        shows="Without plugins the model gets what it gets without memory.",
        flags=("plain",),
        run=_silent,
    ),
)
