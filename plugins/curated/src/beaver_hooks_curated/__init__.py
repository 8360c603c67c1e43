"""Curated memory: MEMORY.md and USER.md, frozen per run, edited only through the tool `memory`.

It imports the contract and the toolkit and nothing of the host, and it never touches a network. The entry point
`curated` names `Curated`, its zero-argument factory.
"""

from beaver_hooks_curated.edits import Operation
from beaver_hooks_curated.entries import Page, Target
from beaver_hooks_curated.errors import (
    CuratedError,
    EditNotTaken,
    EditRefused,
    MemoryLocked,
    MemoryUnconfirmed,
    MemoryUnreadable,
    MemoryUnwritable,
    UnknownChange,
)
from beaver_hooks_curated.plugin import Curated
from beaver_hooks_curated.service import MemoryService
from beaver_hooks_curated.settings import CuratedSettings
from beaver_hooks_curated.snapshot import MemorySnapshot
from beaver_hooks_curated.store import MemoryStore
from beaver_hooks_curated.tool import MemoryTool

__all__ = [
    "Curated",
    "CuratedError",
    "CuratedSettings",
    "EditNotTaken",
    "EditRefused",
    "MemoryLocked",
    "MemoryService",
    "MemorySnapshot",
    "MemoryStore",
    "MemoryTool",
    "MemoryUnconfirmed",
    "MemoryUnreadable",
    "MemoryUnwritable",
    "Operation",
    "Page",
    "Target",
    "UnknownChange",
]
