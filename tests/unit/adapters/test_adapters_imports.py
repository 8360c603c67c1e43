"""An adapter imports its own framework and no other, and nothing imports an adapter without being asked for it."""

import ast
import subprocess
import sys
from pathlib import Path

import beaver_hooks.adapters

FOLDER = Path(beaver_hooks.adapters.__file__).parent
OURS = {"beaver_hooks", "beaver_hostspecs", "beaver_toolkit", "attrs"}
# Beside each framework itself, what it brings along and has in its own signatures.
FRAMEWORKS = {
    "agent_framework": {"agent_framework"},
    "claude_agent_sdk": {"claude_agent_sdk"},
    "google_adk": {"google"},
    "langchain": {"langchain", "langchain_core", "langgraph", "pydantic_core", "typing_extensions"},
    "mcp_server": {"mcp", "mcp_types", "anyio", "starlette", "uvicorn", "pydantic"},
    "openai_agents": {"agents", "pydantic_core", "typing_extensions"},
    "pydantic_ai": {"pydantic_ai", "pydantic_core", "typing_extensions"},
    "strands": {"strands", "typing_extensions"},
}


def imported(path: Path) -> set[str]:
    """Return the top-level packages that a file imports, wherever in it."""
    names = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
    return {name.split(".")[0] for name in names} - set(sys.stdlib_module_names)


def test_each_adapter_imports_its_own_framework_only():
    """Beyond the host, the contract and attrs, a file of this folder imports what it is for."""
    found = {}
    for path in sorted(FOLDER.rglob("*.py")):
        room = path.relative_to(FOLDER).parts[0].removesuffix(".py")
        if foreign := imported(path) - OURS - FRAMEWORKS.get(room, set()):
            found[str(path.relative_to(FOLDER))] = foreign

    assert {} == found


def test_the_host_loads_no_adapter():
    """Neither the host nor the command line imports an adapter by itself."""
    code = (
        "import sys, beaver_hooks, beaver_hooks.host, beaver_hooks.sync, beaver_hooks.cli.app, beaver_hooks.agent.loop;"
        "print([name for name in sys.modules if name.startswith('beaver_hooks.adapters')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]" == done.stdout.strip()
