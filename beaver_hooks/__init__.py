"""The host of Beaver Hooks: memory for any Python agent, as plugins.

`Host` loads plugins, runs turns, and keeps audit, receipts and health; `SyncHost` does so for callers without an event
loop. Plugins depend on the contract only: `beaver_hostspecs`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from beaver_hooks.host import Host
    from beaver_hooks.receipts.health import Health
    from beaver_hooks.receipts.receipts import Receipt
    from beaver_hooks.sync import SyncHost, SyncTurn
    from beaver_hooks.turns.compactions import CompactionReport
    from beaver_hooks.turns.context import Recall, ReferenceMessage
    from beaver_hooks.turns.open_turn import OpenTurn

__version__ = "0.1.0"

__all__ = [
    "CompactionReport",
    "Health",
    "Host",
    "OpenTurn",
    "Recall",
    "Receipt",
    "ReferenceMessage",
    "SyncHost",
    "SyncTurn",
    "__version__",
]

_MODULES = {
    "CompactionReport": "beaver_hooks.turns.compactions",
    "Health": "beaver_hooks.receipts.health",
    "Host": "beaver_hooks.host",
    "OpenTurn": "beaver_hooks.turns.open_turn",
    "Recall": "beaver_hooks.turns.context",
    "Receipt": "beaver_hooks.receipts.receipts",
    "ReferenceMessage": "beaver_hooks.turns.context",
    "SyncHost": "beaver_hooks.sync",
    "SyncTurn": "beaver_hooks.sync",
}
"""The module of each name. A name is imported at its first use: `beaver --version` needs no host."""


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
