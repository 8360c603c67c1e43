"""The local memory as a plugin: the engine `beaver_memory` in a host.

The entry point `local` names `make_plugin`, a zero-argument factory. The engine is imported on the first access to a
name that needs it, because every host loads every installed plugin, and few configurations enable this one.
"""

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from beaver_hooks_local.plugin import Local
    from beaver_hooks_local.settings import LocalSettings

__all__ = ["Local", "LocalSettings", "make_plugin"]

_MODULES = MappingProxyType({"Local": "beaver_hooks_local.plugin", "LocalSettings": "beaver_hooks_local.settings"})


def make_plugin() -> "Local":
    """Return a new plugin."""
    from beaver_hooks_local.plugin import Local  # noqa: PLC0415 - the command line imports this package without it

    return Local()


def __getattr__(name: str) -> object:
    """Import a name of `__all__` from its module."""
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
