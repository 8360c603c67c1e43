"""Measures the cost of one event of Claude Code, compared with starting an interpreter that imports the host.

The time of an event is that of the client process from start to exit, with a resident process that has an open host.
The benchmark runs the command of the settings without a shell. The sides alternate, and medians are compared. The
resident process serves only the benchmark.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from beaver_hooks.coding_agents.claude_code import client

ROUNDS = 31
TARGET = 1 / 3
FLOOR = [sys.executable, "-c", "import beaver_hooks.host"]
BARE = [sys.executable, "-I", "-S", "-c", "pass"]
CLIENT = [sys.executable, "-I", "-S", client.__file__, "--seconds=6"]
CONFIG = {"memory": {"mode": "curated"}}


def event(name: str, **fields: object) -> bytes:
    """Return an event of one session."""
    common = {"session_id": "bench", "transcript_path": "/bench.jsonl", "cwd": "/"}
    return json.dumps({**common, "hook_event_name": name, **fields}).encode()


def seconds(command: list[str], said: bytes, environment: dict[str, str]) -> float:
    """Return the seconds of a process from start to exit."""
    started = time.perf_counter()
    subprocess.run(command, input=said, env=environment, check=True, capture_output=True)
    return time.perf_counter() - started


def measure(environment: dict[str, str]) -> dict[str, float]:
    """Return the median of each side."""
    runs: dict[str, list[float]] = {}
    for number in range(ROUNDS):
        prompt = {"prompt": "When do we release?", "prompt_id": f"p{number}"}
        tool = {"prompt_id": f"p{number}", "tool_name": "Bash", "tool_use_id": "t", "tool_response": "x" * 10_000}
        sides = {
            "floor": (FLOOR, b""),
            "bare": (BARE, b""),
            "UserPromptSubmit": (CLIENT, event("UserPromptSubmit", **prompt)),
            "PostToolUse": (CLIENT, event("PostToolUse", **tool)),
            "Stop": (CLIENT, event("Stop", prompt_id=f"p{number}", last_assistant_message="On Thursday.")),
        }
        for name, (command, said) in sides.items():
            runs.setdefault(name, []).append(seconds(command, said, environment))
    return {name: median(spent) for name, spent in runs.items()}


def main() -> int:
    """Measure, print, and return the exit code."""
    with tempfile.TemporaryDirectory(prefix="bb-") as name:
        folder = Path(name)
        config = folder / "config.json"
        config.write_text(json.dumps(CONFIG))
        places = {"XDG_RUNTIME_DIR": name, "XDG_STATE_HOME": str(folder / "state"), "CLAUDE_PROJECT_DIR": name}
        places["BEAVER_CONFIG"] = str(config)
        environment = {**os.environ, **places}
        command = [sys.executable, "-m", client.RESIDENT, f"--folder={name}"]
        with subprocess.Popen(command, env=environment, cwd=name) as resident:
            try:
                path = client.socket_path([], environment)
                while not Path(path).exists():
                    assert resident.poll() is None
                    time.sleep(client.PAUSE)
                client.ask(path, event("SessionStart"), 30)
                assert json.loads(client.ask(path, event(client.STATUS), 5) or b"{}")["memory"] == "on"
                spent = measure(environment)
            finally:
                resident.terminate()
    print(f"\nmedian of {ROUNDS} interleaved runs, Python {sys.version.split()[0]}:")
    worst = 0.0
    for name, each in spent.items():
        worst = max(worst, each / spent["floor"]) if name not in ("floor", "bare") else worst
        print(f"  {each * 1000:7.1f} ms   {each / spent['floor']:5.2f} x   {name}")
    print(f"  target at most {TARGET:.2f} x the floor: {'met' if worst <= TARGET else 'MISSED'}")
    return 0 if worst <= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
