"""A platform without `fcntl`, as Windows: everything imports, and what cannot work there says what to use."""

import subprocess
import sys
import textwrap

import pytest
from selection import campaign

PACKAGES = [
    "beaver_hostspecs", "beaver_toolkit", "beaver_hooks", "beaver_hooks.cli", "beaver_hooks_curated",
    "beaver_hooks_gateway", "beaver_hooks_local", "beaver_tally",
]  # fmt: skip
FRAMEWORKS = (
    "agent_framework", "claude_agent_sdk", "google_adk", "langchain", "openai_agents", "pydantic_ai", "strands",
)  # fmt: skip
EVERY_MODULE = """
import importlib, pkgutil
from importlib import import_module

package = import_module({package!r})
for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    if not found.name.endswith(("__main__", ".mcp")) and not any(each in found.name for each in {frameworks!r}):
        import_module(found.name)
"""


def run(code, *, folder):
    """Run code in a fresh interpreter whose `fcntl` cannot be imported."""
    lines = f"import sys\nsys.modules['fcntl'] = None\n{textwrap.dedent(code)}"
    done = subprocess.run(
        [sys.executable, "-c", lines], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("package", ["beaver_hooks.coding_agents.claude_code", *campaign(*PACKAGES)])
def test_every_module_imports(package, tmp_path):
    """Each module of a package imports in a fresh interpreter, but for those that need a framework or an extra."""
    foreign = (*FRAMEWORKS, "mcp_server", "beaver_hostspecs.testing")
    code = EVERY_MODULE.format(package=package, frameworks=foreign)

    assert (0, "", "") == run(code, folder=tmp_path)


def test_the_resident_of_claude_code_says_what_to_use(tmp_path):
    """The resident process needs a Unix socket and a lock, does not start, and names `beaver mcp`."""
    code = "from beaver_hooks.coding_agents.claude_code.resident import main\nsys.exit(main([]))"

    expected = "the hooks need Unix sockets and POSIX file locks, which Python lacks on this system; use `beaver mcp`"
    assert (1, "", f"Error: {expected}.\n") == run(code, folder=tmp_path)
