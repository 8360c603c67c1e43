"""The function of each tool. Blocking."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from beaver_hooks_local.memory import LocalMemory
from beaver_hooks_local.tools import search_tools as reading
from beaver_hooks_local.tools import write_tool as writing
from beaver_hostspecs import Report, Turn

Do = Callable[[LocalMemory, Mapping[str, Any], Turn, Report], dict[str, Any]]

DONE: Mapping[str, Do] = MappingProxyType(
    {
        "memory_search": reading.search,
        "memory_timeline": reading.timeline,
        "memory_get": reading.get,
        "memory_write": writing.write,
        "memory_history": reading.history,
        "memory_people": reading.people,
        "memory_sessions": reading.sessions,
    }
)
