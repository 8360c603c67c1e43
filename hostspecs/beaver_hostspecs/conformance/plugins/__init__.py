"""The suite for plugins: turns of every shape, and everything that a plugin must not do."""

from beaver_hostspecs.conformance.plugins import (
    describing,
    learning,
    offering,
    secrecy,
    stopping,
    timing,
    turning,
)
from beaver_hostspecs.conformance.plugins.harness import PluginCard, PluginHarness

PLUGIN_CASES = (
    *describing.CASES,
    *turning.CASES,
    *learning.CASES,
    *secrecy.CASES,
    *timing.CASES,
    *stopping.CASES,
    *offering.CASES,
)
"""Every case, in the order of the report."""

__all__ = ["PLUGIN_CASES", "PluginCard", "PluginHarness"]
