"""Importing the host is cheap: it imports no plugin, no HTTP client, no command-line library and no database."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEPENDENCIES = "import pluggy, attrs, structlog"
UNWANTED = ("apsw", "cattrs", "click", "filelock", "httpx", "rich", "sqlite3", "importlib.metadata")
PRINT_MODULES = "; import json, sys; print(json.dumps(sorted(sys.modules)))"


def modules_after(code: str) -> set[str]:
    """Return the names of the modules that a fresh interpreter has after running `code`."""
    ran = subprocess.run([sys.executable, "-c", code + PRINT_MODULES], capture_output=True, check=True, text=True)
    return {*json.loads(ran.stdout)}


def test_importing_the_host_imports_nothing_that_it_may_not_need():
    """A fresh interpreter imports no unwanted module beyond those that the dependencies import for themselves."""
    added = modules_after("from beaver_hooks import Host") - modules_after(DEPENDENCIES)

    assert "beaver_hooks.host" in added
    assert [name for name in sorted(added) if name.startswith(UNWANTED)] == []


@pytest.mark.shows("001-009", "001-044", "003-001", "003-033", "003-034")
def test_importing_the_host_imports_no_plugin():
    """Host and agent bring the host, its contract and the toolkit, and no other distribution of the family."""
    loaded = modules_after("from beaver_hooks import Host; import beaver_hooks.agent.loop")
    ours = {name.partition(".")[0] for name in loaded if name.startswith("beaver_")}

    assert ours == {"beaver_hooks", "beaver_hostspecs", "beaver_toolkit"}


def test_the_testing_kit_is_imported_by_those_who_test_only():
    """Importing the host or the contract does not import the kit for tests."""
    kit = [
        name for name in modules_after("from beaver_hooks import Host") if name.startswith("beaver_hostspecs.testing")
    ]

    assert kit == []


@pytest.mark.shows("003-034", "004-003", "004-004", "004-006", "004-007", "004-237", "004-238")
def test_each_part_imports_what_its_contract_allows(tmp_path):
    """The import contracts hold: a plugin knows no host, and reaches the memories by the operations alone."""
    linter = Path(sys.executable).with_name("lint-imports")
    ran = subprocess.run(
        [linter, "--no-logo", "--cache-dir", tmp_path], capture_output=True, check=False, cwd=ROOT, text=True
    )

    assert (0, []) == (ran.returncode, [line for line in ran.stdout.splitlines() if line.endswith("BROKEN")])
