"""Hooks, policies, stores, extraction and commands are in files of their own."""

import subprocess
import sys

import pytest

PARTS = {
    "beaver_hooks_local.plugin",
    "beaver_hooks_local.recall.gate",
    "beaver_memory.capture.gates.chain",
    "beaver_memory.store.sqlite.store",
    "beaver_memory.store.postgres.store",
    "beaver_memory.capture.rules",
    "beaver_hooks_local.commands",
}


@pytest.mark.shows("003-121", "003-122", "003-123", "003-124", "003-125")
@pytest.mark.parametrize("part", sorted(PARTS))
def test_a_part_imports_no_other_part(part):
    """A fresh interpreter that imports one part has none of the others."""
    code = f"import {part}, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()

    assert {part} == PARTS & {*loaded}
