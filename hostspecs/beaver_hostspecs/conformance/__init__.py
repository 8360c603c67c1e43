"""The conformance kit: proves that a host, or a plugin, keeps the contract. Needs no test framework.

A host author writes a `HostHarness` around a real agent whose model is scripted, and examines it:

    verdicts = await examine_all(HOST_CASES, MyHarness)

A plugin author writes a `PluginHarness` that makes the plugin, and examines it against `PLUGIN_CASES`.

With pytest, parametrise over the cases and demand that no verdict of `examine(case, MyHarness)` is `failed`. Each case
names the fields of the card (`Card` or `PluginCard`) that may excuse it. `python -m beaver_hostspecs.conformance
module:MyHarness` prints the report; for a plugin, with `--plugin`.
"""

from beaver_hostspecs.conformance.cards import Card
from beaver_hostspecs.conformance.cases import Case, Excused, Outcome, Verdict, examine, examine_all, require
from beaver_hostspecs.conformance.harness import (
    BROKEN,
    ECHO,
    Ask,
    CallTool,
    Fail,
    Hang,
    HostHarness,
    ModelCall,
    Say,
    Step,
)
from beaver_hostspecs.conformance.hosts import HOST_CASES
from beaver_hostspecs.conformance.plugins import PLUGIN_CASES, PluginCard, PluginHarness
from beaver_hostspecs.conformance.probes import BASE
from beaver_hostspecs.conformance.report import Examined, as_json, as_markdown, cards_as_markdown

__all__ = [
    "BASE",
    "BROKEN",
    "ECHO",
    "HOST_CASES",
    "PLUGIN_CASES",
    "Ask",
    "CallTool",
    "Card",
    "Case",
    "Examined",
    "Excused",
    "Fail",
    "Hang",
    "HostHarness",
    "ModelCall",
    "Outcome",
    "PluginCard",
    "PluginHarness",
    "Say",
    "Step",
    "Verdict",
    "as_json",
    "as_markdown",
    "cards_as_markdown",
    "examine",
    "examine_all",
    "require",
]
