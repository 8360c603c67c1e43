"""Cases about the hooks, the description and the offers of a plugin: the same in every instance, at any time."""

import json

from beaver_hostspecs.conformance.cases import Case
from beaver_hostspecs.conformance.plugins.driver import (
    QUESTION,
    Driven,
    demand,
    made,
    need,
    not_shown,
    same,
    started,
    teach,
)
from beaver_hostspecs.conformance.plugins.harness import PluginHarness
from beaver_hostspecs.conformance.plugins.hook_reader import faults_of
from beaver_hostspecs.freezing import thaw
from beaver_hostspecs.markers import CONTRACT_VERSION

MOST_RULES, LONGEST_RULE = 10, 4_000


async def _hooks(harness: PluginHarness) -> None:
    await harness.open()
    same([], faults_of(harness.make()), "why a host would refuse it")


async def _description(harness: PluginHarness) -> None:
    await harness.open()
    async with made(harness) as driven:
        info = driven.info
    major = CONTRACT_VERSION.partition(".")[0]
    same(major, info.contract.partition(".")[0], "the major version of the contract")
    demand(len(info.rules) <= MOST_RULES, f"it has {len(info.rules)} rules, and {MOST_RULES} are allowed")
    demand(all(len(rule) <= LONGEST_RULE for rule in info.rules), f"a rule is longer than {LONGEST_RULE} characters")
    wanted = info.settings or type(None)
    demand(
        isinstance(harness.settings, wanted), f"its settings are to be a {wanted.__name__}, and the harness's are not"
    )


async def _described_twice(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as one, started(harness) as other:
        same(one.info, other.info, "the descriptions of two instances")
        await one.run(QUESTION)
        await teach(harness, one, "Ardea")
        same(one.info, one.plain("describe") or one.info, "its description after turns")


async def _offered_twice(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as one, started(harness) as other:
        same(_offers(one), _offers(other), "what two instances offer")


async def _blocks_twice(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as driven:
        await driven.run(QUESTION)
        first, second = [await driven.ask(QUESTION) for _ in range(2)]
        same(first and first.blocks, second and second.blocks, "the trusted blocks of two turns with nothing between")


async def _unshared(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as one, started(harness) as other:
        demand(one.plugin is not other.plugin, "`make` gives the same object twice")
        await teach(harness, one, "Ardea")
        heard = await other.ask(QUESTION)
        need(harness, "isolated")
        not_shown([heard], "Ardea", "one instance recalls what another one was told")


def _offers(driven: Driven) -> tuple[list[str], list[tuple[str, str]]]:
    return [_plain(each.schema) for each in driven.tools], [(each.name, each.summary) for each in driven.commands]


def _plain(schema: object) -> str:
    return json.dumps(thaw(schema), default=repr)


CASES: tuple[Case[PluginHarness], ...] = (
    Case(
        name="valid hooks",
        shows="Its hooks are of the contract, marked, of the right kind, and take what is given.",
        run=_hooks,
    ),
    Case(
        name="description",
        shows="It says which contract it keeps, its rules are within bounds, and its settings are of its class.",
        run=_description,
    ),
    Case(name="same description", shows="Instances describe themselves alike, also after turns.", run=_described_twice),
    Case(name="same offers", shows="Instances offer the same tools and commands.", run=_offered_twice),
    Case(name="same blocks", shows="Trusted blocks do not change by being asked for.", run=_blocks_twice),
    Case(
        name="instances share nothing",
        shows="What one instance was told, one with another state folder does not recall.",
        flags=("isolated",),
        run=_unshared,
    ),
)
