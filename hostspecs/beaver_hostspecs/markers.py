"""The two markers, and the version of the contract they stand for."""

import pluggy

PROJECT = "beaver_hooks"
"""pluggy's project name, and the entry-point group in which plugins announce themselves."""

CONTRACT_VERSION = "1.0"
"""Major and minor. A plugin written for another major version is refused; see `docs/reference/deprecation.md`."""

hookspec = pluggy.HookspecMarker(PROJECT)
"""Marks a hook of this contract. Only this package uses it."""

hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a plugin's implementation of a hook: `@hookimpl`, or `@hookimpl(tryfirst=True)` and `trylast`."""
