"""The local memory: one embedded store with hybrid recall, as a library and as a plugin.

The entry point `local` names `make_plugin`, a zero-argument factory. What the engine needs is imported when it is asked
for by its name, because every host loads every plugin that is installed, and few have chosen this one.
"""

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from beaver_hooks_local.engine import MemoryEngine
    from beaver_hooks_local.filters import Filters
    from beaver_hooks_local.plugin import Local
    from beaver_hooks_local.query import Answer, Hit, Query
    from beaver_hooks_local.records import Memory, NewMemory, Owner, Store
    from beaver_hooks_local.settings import LocalSettings

__all__ = [
    "Answer",
    "Filters",
    "Hit",
    "Local",
    "LocalSettings",
    "Memory",
    "MemoryEngine",
    "NewMemory",
    "Owner",
    "Query",
    "Store",
    "make_plugin",
]

_ROOMS = MappingProxyType(
    {
        "Answer": "query",
        "Filters": "filters",
        "Hit": "query",
        "Local": "plugin",
        "LocalSettings": "settings",
        "Memory": "records",
        "MemoryEngine": "engine",
        "NewMemory": "records",
        "Owner": "records",
        "Query": "query",
        "Store": "records",
    }
)


def make_plugin() -> "Local":
    """Return a new plugin."""
    plugin: Local = import_module("beaver_hooks_local.plugin").Local()
    return plugin


def __getattr__(name: str) -> object:
    """Return what `__all__` names from the room that it is in."""
    if name in _ROOMS:
        return getattr(import_module(f"beaver_hooks_local.{_ROOMS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
