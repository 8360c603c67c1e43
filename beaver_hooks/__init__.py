"""The host of Beaver Hooks: memory for any Python agent, as plugins.

`Host` loads plugins, runs turns, and keeps audit, receipts and health; `SyncHost` does so for callers without an event
loop. Plugins know the contract alone: `beaver_hostspecs`.
"""

from beaver_hooks.host import Host
from beaver_hooks.record.health import Health
from beaver_hooks.record.receipts import Receipt
from beaver_hooks.sync import SyncHost, SyncTurn
from beaver_hooks.turns.composing import Recall, ReferenceMessage
from beaver_hooks.turns.open_turn import OpenTurn

__all__ = ["Health", "Host", "OpenTurn", "Recall", "Receipt", "ReferenceMessage", "SyncHost", "SyncTurn"]
