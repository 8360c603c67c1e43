"""Wrong plugins: each breaks one demand of the suite, and names the cases that are meant to see it."""

from conformance import mutants_describing, mutants_ending, mutants_keeping, mutants_offering, mutants_turning

MODULES = (mutants_describing, mutants_turning, mutants_keeping, mutants_ending, mutants_offering)
MUTANTS = [
    (case, plugin)
    for module in MODULES
    for plugin in vars(module).values()
    if isinstance(plugin, type)
    for case in vars(plugin).get("fails_in", ())
]
"""The case, and the plugin that it is meant to catch."""
