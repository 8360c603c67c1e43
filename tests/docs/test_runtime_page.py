"""The page of `MemoryRuntime` is true."""

import re
from pathlib import Path

from beaver_memory.dispatch.dispatcher import OF_THE_RUNTIME
from beaver_memory.runtime.table import OPERATIONS, Caller

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "runtime.md").read_text("utf-8")


def test_operations():
    """The table of the page has each operation with its callers."""
    shown = {
        name: {Caller(caller) for caller in callers.split(", ")}
        for name, callers in re.findall(r"^\| `(\w+)` \| .* \| ([\w, ]+) \|$", PAGE, re.MULTILINE)
    }

    assert {name: {*each.callers} for name, each in OPERATIONS.items()} | {
        name: {*callers} for name, callers in OF_THE_RUNTIME.items()
    } == shown
