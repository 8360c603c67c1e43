"""Measures how long a client waits for the first answers of `beaver mcp`, from the start of the server's process.

A client starts the server, sends `initialize`, and sends `tools/list` after the answer. `first` is a start without
recorded answers, and `later` is a start that uses the record of an earlier one. The server loads curated and local
memory if they are installed. The floor is `python -c "import mcp"`: a server on the SDK cannot be faster unless it
answers before the import ends. The sides alternate, and medians are compared. `call` is the time from the start to a
tool's answer, which waits for the host in both cases.

It needs the package `mcp`, and is skipped without it. `BEAVER_MCP_ROUNDS` sets the number of rounds.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

ROUNDS = int(os.environ.get("BEAVER_MCP_ROUNDS", "11"))
TARGET = 0.4
COMMAND = [sys.executable, "-m", "beaver_hooks.cli", "mcp"]
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}
WORDS = {"target": "user", "action": "add", "content": "The user likes tea."}

Times = dict[str, float]


def importing() -> float:
    """Return the seconds of the floor."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import mcp"], check=True)
    return time.perf_counter() - started


def serving(folder: Path, environment: Mapping[str, str]) -> Times:
    """Start a server; return the time of each of its answers."""
    started = time.perf_counter()
    process = subprocess.Popen(
        COMMAND, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    times = {}
    for method, parameters in (("initialize", HELLO), ("tools/list", {}), ("tools/call", _call())):
        answer = _ask(process, method, parameters)
        times[method] = time.perf_counter() - started
        if "result" not in answer:
            raise SystemExit(f"{method} is answered {answer}")
    process.communicate(timeout=60)
    return times


def _call() -> dict[str, Any]:
    return {"name": "memory", "arguments": WORDS}


def _ask(process: "subprocess.Popen[bytes]", method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    request = {"jsonrpc": "2.0", "id": method, "method": method, "params": parameters}
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(request).encode() + b"\n")
    if method == "initialize":
        process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
    process.stdin.flush()
    while True:
        answer: dict[str, Any] = json.loads(process.stdout.readline())
        if answer.get("id") == method:
            return answer


def measure(folder: Path) -> tuple[list[float], dict[str, list[Times]]]:
    """Return the seconds of the floor, and those of servers without and with recorded answers."""
    sections = {"memory": {"mode": "curated", "local": {"enabled": True}}}
    (folder / "config.json").write_text(json.dumps(sections if find_spec("beaver_hooks_local") else {}))
    home = folder / "home"
    environment = {**os.environ, "HOME": str(home), "BEAVER_CONFIG": str(folder / "config.json")}
    environment.pop("XDG_STATE_HOME", None)
    for _ in range(2):  # the byte code and the state folder exist from then on
        serving(folder, environment)
    floor: list[float] = []
    served: dict[str, list[Times]] = {"first": [], "later": []}
    for _ in range(ROUNDS):
        floor.append(importing())
        shutil.rmtree(home, ignore_errors=True)
        for times in served.values():
            times.append(serving(folder, environment))
    return floor, served


def main() -> int:
    """Print the figures; return the exit code."""
    if find_spec("mcp") is None:
        print("skipped: the package `mcp` is not installed; pip install 'beaver-hooks[mcp]'")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        floor, served = measure(Path(folder))
    imported = median(floor)
    print(f"median of {ROUNDS} interleaved starts, Python {sys.version.split()[0]}, milliseconds from process start:")
    print(f"  {imported * 1000:7.0f}           python -c 'import mcp'")
    for name, times in served.items():
        for method in times[0]:
            seconds = median(each[method] for each in times)
            print(f"  {seconds * 1000:7.0f}   {seconds / imported:5.2f} x   {method}, {name} start")
    worst = median(each["tools/list"] for each in served["later"])
    met = worst <= TARGET
    print(f"target: `initialize` and `tools/list` of a later start within {TARGET} s: {'met' if met else 'NOT met'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
