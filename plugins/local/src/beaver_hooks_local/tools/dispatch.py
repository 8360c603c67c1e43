"""The function of each tool. Blocking."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from beaver_hooks_local.memory import LocalMemory
from beaver_hooks_local.tools import search_tools, write_tool
from beaver_hostspecs import Report, Turn

Do = Callable[[LocalMemory, Mapping[str, Any], Turn, Report], dict[str, Any]]

DONE: Mapping[str, Do] = MappingProxyType(
    {
        "memory_search": search_tools.search,
        "memory_timeline": search_tools.timeline,
        "memory_get": search_tools.get,
        "memory_write": write_tool.write,
        "memory_history": search_tools.history,
        "memory_people": search_tools.people,
        "memory_sessions": search_tools.sessions,
    }
)
