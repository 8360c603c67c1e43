"""The memory engine as a library: adds, searches and forgets memories, without any host.

`MemoryRuntime` is its door: every operation takes a request of `runtime.requests` and returns a report of
`runtime.reports`. `dispatch` carries out the same operations by name, for transports. Below them, `engine` joins
`store`, which keeps memories, `search`, which finds and ranks them, and `embedding`, which turns texts into vectors.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from beaver_memory.runtime.memory_runtime import MemoryRuntime

__all__ = ["MemoryRuntime"]


def __getattr__(name: str) -> Any:
    """Load `MemoryRuntime` at its first use, because its imports are slow."""
    if name != "MemoryRuntime":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from beaver_memory.runtime.memory_runtime import MemoryRuntime  # noqa: PLC0415 - see the docstring

    return MemoryRuntime
