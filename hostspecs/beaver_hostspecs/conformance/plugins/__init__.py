"""The suite for plugins: turns of every shape, and everything that a plugin must not do."""

from beaver_hostspecs.conformance.plugins import capture, deadlines, description, offers, secrecy, shutdown, turns
from beaver_hostspecs.conformance.plugins.harness import PluginCard, PluginHarness

PLUGIN_CASES = (
    *description.CASES,
    *turns.CASES,
    *capture.CASES,
    *secrecy.CASES,
    *deadlines.CASES,
    *shutdown.CASES,
    *offers.CASES,
)
"""Every case, in the order of the report."""

__all__ = ["PLUGIN_CASES", "PluginCard", "PluginHarness"]
